"""`python -m isolitmus` is `isolitmus`."""

from isolitmus.cli.main import main

if __name__ == "__main__":
    main()
