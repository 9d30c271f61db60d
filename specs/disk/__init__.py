"""Files on disk: input within limits, output whole or not at all, what ships in the package."""
