"""Races of one's own code, and all their interleavings."""
