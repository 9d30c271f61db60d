"""What is said otherwise to PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import expressions as exp

from isolitmus.conformance.gated import Dialect

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.conformance.connections import Server
    from isolitmus.model.schema import Column, Index, Schema

__all__ = ["POSTGRES_SQL", "explained"]

TYPES = {"INT": "INT", "BIGINT": "BIGINT", "STRING": "TEXT", "DATE": "DATE", "BOOLEAN": "BOOLEAN"}


def _text(tree: exp.Expr) -> str:
    return tree.sql(dialect="postgres")


def _cell(_column: Column, value: exp.Expr) -> exp.Expr:
    return exp.Cast(this=value, to=exp.DataType.build("text"))


def _hint(_index: Index | None) -> str:
    """It takes none."""
    return ""


def _steer(_tree: exp.Update | exp.Delete, _schema: Schema, _index: Index | None) -> None:
    """Nor here."""


def _bar(around: exp.Expr, table: exp.Table, schema: Schema, index: Index | None) -> None:
    """Where no scan is by the order of rows if an index will do, columns of other indexes are hidden from it."""
    free = {schema.columns[k].name.lower() for k in index.columns} if index is not None else set()
    own = {column.name.lower() for column in schema.columns} - free
    for part in ("where", "order"):
        for column in _columns(around.args.get(part)):
            here = not column.table or column.table.lower() == table.alias_or_name.lower()
            if here and column.name.lower() in own:
                column.replace(exp.Anonymous(this="bare", expressions=[column.copy()]))


def _columns(tree: exp.Expr | None) -> list[exp.Column]:
    """The columns in a part of a query, without those in the queries inside it."""
    if tree is None:
        return []
    walked = tree.walk(prune=lambda node: isinstance(node, exp.Select))
    return [node for node in walked if isinstance(node, exp.Column)]


def explained(server: Server, text: str) -> tuple[tuple[str, str], ...]:
    """The tables that a statement scans, each with the index by which it goes; empty: by none."""
    found: Any = server.run(f"EXPLAIN (FORMAT JSON, COSTS OFF) {text}")
    return tuple(sorted(_scanned(found[0][0][0]["Plan"])))


def _scanned(node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if str(node["Node Type"]).endswith("Scan"):
        yield node["Relation Name"], node.get("Index Name", "")
    for inner in node.get("Plans", ()):
        yield from _scanned(inner)


POSTGRES_SQL = Dialect(
    _text, TYPES, _cell, _hint, _steer, "SELECT * FROM {}", dirty=False, snapshot=True, bar=_bar
)
