"""Expressions, values, queries and statements of the SQL fragment."""
