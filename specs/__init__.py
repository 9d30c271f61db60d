"""What is claimed: levels, protocols, litmus tests and scopes, each with its source, by name."""

from isolitmus.specs.files.catalogue import level, litmus, protocol, scope, spec

__all__ = ["level", "litmus", "protocol", "scope", "spec"]
