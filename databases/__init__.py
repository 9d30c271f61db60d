"""Databases with locks and scans: a format, and the engines Derby and PostgreSQL."""
