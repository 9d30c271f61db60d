"""Serialization of values as TOML."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from isolitmus.model.sql.values import Rows, Value


def toml_rows(table: Rows) -> str:
    """Return rows as a TOML list of lists."""
    return toml_list(toml_list(map(toml_value, row)) for row in table)


def toml_value(of: Value) -> str:
    """Return one value in TOML; NULL, which TOML lacks, is a table."""
    match of:
        case None:
            return "{ null = true }"
        case bool():
            return "true" if of else "false"
        case date():
            return of.isoformat()
        case int() | float():
            return str(of)
        case Decimal():
            return quoted(f"{of:f}")
        case str():
            return quoted(of)


def quoted(text: str) -> str:
    """Return a TOML basic string: JSON's escapes are those of TOML, except for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def quoted_table(table: Mapping[str, str]) -> str:
    """Return an inline table of strings; its keys may contain dots."""
    return inline_table({k if is_bare_key(k) else quoted(k): quoted(v) for k, v in table.items()})


def toml_list(parts: Iterable[str]) -> str:
    """Return a list of parts that are TOML already."""
    return f"[{', '.join(parts)}]"


def inline_table(table: Mapping[str, str]) -> str:
    """Return an inline table of keys and values that are TOML already."""
    return f"{{ {', '.join(f'{k} = {v}' for k, v in table.items())} }}"


def is_bare_key(key: str) -> bool:
    """Return whether a key needs no quotes."""
    return bool(key) and key.replace("-", "").replace("_", "").isalnum() and key.isascii()
