"""Values as TOML writes them."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from isolitmus.model.sql.values import Rows, Value

__all__ = [
    "inline_table",
    "is_bare_key",
    "quoted",
    "quoted_table",
    "toml_list",
    "toml_rows",
    "toml_value",
]


def toml_rows(table: Rows) -> str:
    """Rows as a list of lists."""
    return toml_list(toml_list(map(toml_value, row)) for row in table)


def toml_value(of: Value) -> str:
    """One value; TOML has no NULL."""
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
    """A TOML basic string: JSON's escapes are TOML's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def quoted_table(table: Mapping[str, str]) -> str:
    """A table of texts; its keys may hold dots."""
    return inline_table({k if is_bare_key(k) else quoted(k): quoted(v) for k, v in table.items()})


def toml_list(parts: Iterable[str]) -> str:
    """A list, of parts that are TOML."""
    return f"[{', '.join(parts)}]"


def inline_table(table: Mapping[str, str]) -> str:
    """An inline table, of keys and values that are TOML."""
    return f"{{ {', '.join(f'{k} = {v}' for k, v in table.items())} }}"


def is_bare_key(key: str) -> bool:
    """Whether a key may stand without quotes."""
    return bool(key) and key.replace("-", "").replace("_", "").isalnum() and key.isascii()
