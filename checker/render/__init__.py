"""Words, pictures and pages of results."""
