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

from isolitmus.model.registry import Registry

if TYPE_CHECKING:
    from isolitmus.model.format import Format

LOGS = {"databricks": "delta", "delta-rs": "delta"}
"""Log of each built-in format whose log is not named after it; known without importing them."""


def _is_format(one: object) -> bool:
    from isolitmus.model.format import Format

    return isinstance(one, Format)


FORMATS: Registry[Format] = Registry("format", check=_is_format)
format_named, formats, offer = FORMATS.named, FORMATS.names, FORMATS.offer


def log_of_format(name: str) -> str:
    """Return the log of a format; a built-in one is not imported for it.

    Examples
    --------
    >>> log_of_format("delta-rs"), log_of_format("locking")
    ('delta', 'locking')
    """
    return LOGS.get(name, name) if name in FORMATS.shipped else format_named(name).log
