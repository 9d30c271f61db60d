"""Rendering of results as text, pictures and pages."""
