"""The tables as the transactions of a litmus test alter their columns, for the statements that use those."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.model.definition import AddColumns, Definition, DropColumn, RenameColumn
from isolitmus.model.errors import SqlError
from isolitmus.model.schema import Column
from isolitmus.specs.sql import read_statement
from isolitmus.specs.sql_definitions import is_definition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from isolitmus.model.schema import Schema

__all__ = ["altered"]


def altered(
    texts: Iterable[object], schemas: Mapping[str, Schema]
) -> tuple[dict[str, Schema], dict[str, Schema]]:
    """The tables with every column that some transaction adds or gives another name, and those with
    all that transactions alter.
    """
    wider: dict[str, Schema] = {}
    final: dict[str, Schema] = {}
    for text in texts:
        if not isinstance(text, str) or not is_definition(text):
            continue
        try:
            read = read_statement(text, {**schemas, **wider})
        except SqlError:  # it says so when its turn comes
            continue
        if not isinstance(read, Definition):
            continue
        grown, last = ({**schemas, **known}[read.target] for known in (wider, final))
        match read.change:
            case AddColumns(columns):
                more = columns
            case RenameColumn(name, other):
                more = (Column(other, grown.columns[grown.index(name) or 0].type),)
            case DropColumn():
                more = ()
            case _:
                continue
        wider[read.target] = replace(grown, columns=(*grown.columns, *more))
        final[read.target] = _after(last, read.change)
    return wider, final


def _after(schema: Schema, change: AddColumns | DropColumn | RenameColumn) -> Schema:
    """A table's columns once a transaction has altered them."""
    if isinstance(change, AddColumns):
        return replace(schema, columns=(*schema.columns, *change.columns))
    return schema.renamed(change.name, change.other if isinstance(change, RenameColumn) else "")
