"""Registry of formats: built-in ones, those of installed packages, and registered ones.

Examples
--------
>>> format_named("delta").log, format_named("delta-rs").log
('delta', 'delta')
>>> format_named("dleta")
Traceback (most recent call last):
isolitmus.model.errors.UnknownName: unknown format 'dleta'; did you mean 'delta'?
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.defaults import DELTA
from isolitmus.model.registry import Registry

if TYPE_CHECKING:
    from isolitmus.model.format import Format

__all__ = ["FORMATS", "SHIPPED", "format_named", "formats", "offer"]

SHIPPED = {
    DELTA: "isolitmus.checker.delta.format:DELTA",
    "databricks": "isolitmus.checker.delta.format:DATABRICKS",
    "delta-rs": "isolitmus.checker.delta.format:DELTA_RS",
    "locking": "isolitmus.checker.locking.format:LOCKING",
}
"""Import path of each built-in format."""
FORMATS: Registry[Format] = Registry("format", SHIPPED)
format_named, formats, offer = FORMATS.named, FORMATS.names, FORMATS.offer
