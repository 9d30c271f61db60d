"""Parsers of SQL text into statements; the only package that uses sqlglot."""
