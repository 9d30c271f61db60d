"""Readers of TOML files and of jobs, the catalogue, evidence."""
