"""Catalogue of levels, protocols, litmus tests and scopes by name, each with its source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from isolitmus.specs.files.catalogue import level, litmus, protocol, scope, spec

__all__ = ["level", "litmus", "protocol", "scope", "spec"]

__getattr__ = lazy_getattr(__name__, dict.fromkeys(__all__, "files.catalogue"))
