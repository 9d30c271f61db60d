"""Formats and engines by name."""
