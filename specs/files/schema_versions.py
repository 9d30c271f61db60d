"""Possible schemas of the tables of a litmus test, if transactions alter columns."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from isolitmus.model.errors import SqlError
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.model.sql.statement import AddColumns, Definition, DropColumns, RenameColumn
from isolitmus.specs.sql.statements import alters_columns, resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from isolitmus.model.sql.statement import Statement
    from isolitmus.specs.sql.syntax import Syntax

Tables = Mapping[str, Schema]


def reachable_tables(syntaxes: Iterable[Syntax], schemas: Tables) -> tuple[Tables, ...]:
    """Return the schemas that transactions may find, without duplicates.

    These are the declared schemas; the schemas with every column that some transaction adds or
    renames to; and the schemas after all alterations.
    """
    most, last = dict(schemas), dict(schemas)
    for syntax in syntaxes:
        read = None
        with suppress(SqlError):  # the error is reported when this statement is resolved itself
            read = resolve(syntax, most) if alters_columns(syntax) else None
        if not isinstance(read, Definition):
            continue
        known = most[read.target]
        match read.change:
            case AddColumns(columns):
                more = columns
            case RenameColumn(name, other):
                more = (Column(other, known.columns[known.index(name) or 0].type),)
            case DropColumns():
                more = ()
            case _:
                continue
        most[read.target] = replace(known, columns=(*known.columns, *more))
        last[read.target] = _after(last[read.target], read.change)
    found: list[Tables] = []
    for tables in (schemas, most, last):
        if tables not in found:
            found.append(tables)
    return tuple(found)


def only_add_columns(found: Sequence[Tables]) -> bool:
    """Return whether the alterations only add columns, without dropping or renaming any."""
    return all(
        set(schema.columns) <= set(found[-1][name].columns)
        for tables in found
        for name, schema in tables.items()
    )


def _after(schema: Schema, change: AddColumns | DropColumns | RenameColumn) -> Schema:
    """Return the schema after a transaction has altered columns."""
    if isinstance(change, AddColumns):
        return replace(schema, columns=(*schema.columns, *change.columns))
    if isinstance(change, DropColumns):
        return reduce(lambda left, name: left.renamed(name, ""), change.names, schema)
    return schema.renamed(change.name, change.other)


def resolve_late(syntax: Syntax, found: Sequence[Tables]) -> Statement:
    """Return the statement on the first schemas on which it resolves; otherwise raise the last
    error.
    """
    *earlier, last = found
    for tables in earlier:
        with suppress(SqlError):
            return resolve(syntax, tables)
    return resolve(syntax, last)
