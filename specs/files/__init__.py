"""Readers of TOML files and of jobs, the catalogue, and stored evidence."""
