"""Registries of formats and engines."""
