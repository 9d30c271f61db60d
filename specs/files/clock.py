"""The clock of a litmus file, ``clock = "2026-01-02 10:00:00"``: what ``current_date()`` says in all of its statements."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from isolitmus.model.errors import UndeterminedError
from isolitmus.model.sql.casting import cast_value
from isolitmus.model.sql.failing import EvaluationError
from isolitmus.specs.files.toml_reader import shown
from isolitmus.specs.sql.parameters import CLOCKS, bound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.sql.values import Value
    from isolitmus.specs.files.toml_reader import Node

__all__ = ["at_its_clock"]

STATED = ("table", "tables", "transactions", "postconditions")
"""The keys under which there are statements."""


def at_its_clock(document: Node) -> Node:
    r"""The document with the time that it says in the place of ``current_date()`` and ``current_timestamp()``.

    >>> from isolitmus.specs.files.toml_reader import Source
    >>> text = 'clock = "2026-01-02 10:00:00"\n[transactions]\na = "DELETE FROM t WHERE day < current_date()"'
    >>> at_its_clock(Source("f.toml", text).node()).value["transactions"]
    {'a': "DELETE FROM t WHERE day < DATE '2026-01-02'"}
    """
    if "clock" not in document:
        return document
    now = _moment(document)
    values = dict(zip(CLOCKS, (now.date(), now), strict=True))
    return replace(
        document,
        value={k: _said(v, values) if k in STATED else v for k, v in document.value.items()},
    )


def _moment(document: Node) -> datetime:
    given = document.value["clock"]
    if isinstance(given, date) and getattr(given, "tzinfo", None) is None:
        given = given.isoformat()
    with suppress(EvaluationError, UndeterminedError):
        found = cast_value(given, "TIMESTAMP") if isinstance(given, str) else None
        if isinstance(found, datetime):
            return found
    document.refuse(
        f"clock is {shown(given)}; a time without a zone is wanted, '2026-01-02 10:00:00'"
    )


def _said(value: Any, values: Mapping[str, Value]) -> Any:
    match value:
        case str():
            return bound(value, values)
        case list():
            return [_said(one, values) for one in value]
        case dict():
            return {key: _said(one, values) for key, one in value.items()}
    return value
