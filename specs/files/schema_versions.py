"""The tables as the transactions of a litmus test may find them, whichever have altered columns
before.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.model.errors import SqlError
from isolitmus.model.schema import Column, Schema
from isolitmus.model.sql.statement import AddColumns, Definition, DropColumn, RenameColumn
from isolitmus.specs.sql.statements import alters_columns, resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from isolitmus.model.sql.statement import Statement
    from isolitmus.specs.sql.syntax import Syntax

__all__ = ["Tables", "only_add_columns", "reachable_tables", "resolve_late"]

Tables = Mapping[str, Schema]


def reachable_tables(syntaxes: Iterable[Syntax], schemas: Tables) -> tuple[Tables, ...]:
    """The tables as declared; with every column that some transaction adds or gives another name;
    and with all that transactions alter. What is the same as another is left out.
    """
    most, last = dict(schemas), dict(schemas)
    for syntax in syntaxes:
        read = None
        with suppress(SqlError):  # it says so when its turn comes
            read = resolve(syntax, most) if alters_columns(syntax) else None
        if not isinstance(read, Definition):
            continue
        known = most[read.target]
        match read.change:
            case AddColumns(columns):
                more = columns
            case RenameColumn(name, other):
                more = (Column(other, known.columns[known.index(name) or 0].type),)
            case DropColumn():
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
    """Whether tables only get columns: none goes, or has another name."""
    return all(
        set(schema.columns) <= set(found[-1][name].columns)
        for tables in found
        for name, schema in tables.items()
    )


def _after(schema: Schema, change: AddColumns | DropColumn | RenameColumn) -> Schema:
    """A table's columns once a transaction has altered them."""
    if isinstance(change, AddColumns):
        return replace(schema, columns=(*schema.columns, *change.columns))
    return schema.renamed(change.name, change.other if isinstance(change, RenameColumn) else "")


def resolve_late(syntax: Syntax, found: Sequence[Tables]) -> Statement:
    """The statement on the first of the tables on which it is one; the error is that of the
    last.
    """
    *earlier, last = found
    for tables in earlier:
        with suppress(SqlError):
            return resolve(syntax, tables)
    return resolve(syntax, last)
