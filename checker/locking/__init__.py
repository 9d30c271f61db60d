"""Engines with locks and scans, or with snapshots of statements, as a format."""
