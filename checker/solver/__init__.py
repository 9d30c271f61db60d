"""Boolean circuits, specs as circuits, and refutations that other programs can check."""
