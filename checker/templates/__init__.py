"""Statements with parameters as formulas over rows: what any format has of them."""
