"""Every candidate of a scope counted."""
