"""Catalogue of levels, protocols, litmus tests and scopes by name, each with its source."""

from isolitmus.specs.files.catalogue import level, litmus, protocol, scope, spec

__all__ = ["level", "litmus", "protocol", "scope", "spec"]
