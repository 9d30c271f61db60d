"""Table format of database engines with locks and scans, or with statement snapshots."""
