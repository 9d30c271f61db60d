"""Catalogue of levels, protocols, litmus tests and scopes by name, each with its source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from isolitmus.specs.files.catalogue import litmus, scope
    from isolitmus.specs.files.spec_catalogue import level, protocol, spec

__all__ = ["level", "litmus", "protocol", "scope", "spec"]

__getattr__ = lazy_getattr(
    __name__,
    {
        "level": "files.spec_catalogue",
        "litmus": "files.catalogue",
        "protocol": "files.spec_catalogue",
        "scope": "files.catalogue",
        "spec": "files.spec_catalogue",
    },
)
