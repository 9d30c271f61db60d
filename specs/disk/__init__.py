"""Files on disk: bounded input, atomic output, and files that ship in the package."""
