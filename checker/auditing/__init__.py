"""Audit of table logs: dependencies, findings, winning commits."""
