"""Statements with parameters as formulas over rows."""
