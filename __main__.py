"""`python -m isolitmus` is `isolitmus`: modules of the current folder are not imported."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the current folder, whose modules are not Python's

    from isolitmus.cli.main import main

    main()
