"""Boolean circuits, specs as circuits, refutations that other programs can check."""
