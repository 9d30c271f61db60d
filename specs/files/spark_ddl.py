"""A declared table as Spark's SQL makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isolitmus.model.schema import Schema

__all__ = ["table_ddl"]


def table_ddl(name: str, schema: Schema, format_: str = "delta") -> str:
    """The statement that makes the table, by a name.

    >>> from isolitmus.model.schema import Column, Schema
    >>> table_ddl("t", Schema("t", (Column("id", "INT"), Column("day", "INT")), ("day",)))
    'CREATE TABLE t (id INT, day INT) USING delta PARTITIONED BY (day)'
    """
    parts = [f"CREATE TABLE {name} ({schema.ddl()}) USING {format_}"]
    if schema.partitioned_by:
        parts.append(f"PARTITIONED BY ({', '.join(schema.partitioned_by)})")
    if schema.clustered_by:
        parts.append(f"CLUSTER BY ({', '.join(schema.clustered_by)})")
    if schema.properties:
        pairs = (f"{_text(key)} = {_text(value)}" for key, value in schema.properties.items())
        parts.append(f"TBLPROPERTIES ({', '.join(pairs)})")
    return " ".join(parts)


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
