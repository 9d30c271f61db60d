"""Races of user code with concurrent commits, and all their interleavings."""
