"""Answers about jobs as text, pages and exchange formats."""
