"""The engine derby: its SQL dialect, isolation levels and error codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.databases.derby.server import derby_jars, open_derby
from isolitmus.databases.sessions.gated_sql import Dialect
from isolitmus.databases.sessions.schedule_runner import SqlEngine, database_engine
from isolitmus.model.errors import Refused

if TYPE_CHECKING:
    from isolitmus.model.sql.schema import Column, Index, Schema

COMPARED = (exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
LONGEST = 1000
WIDEST = 20
TYPES = {
    "INT": "INT",
    "BIGINT": "BIGINT",
    "STRING": f"VARCHAR({LONGEST})",
    "DATE": "DATE",
    "BOOLEAN": "BOOLEAN",
}


def _text(tree: exp.Expr) -> str:
    """Return SQL for Derby: ``FETCH FIRST`` for ``LIMIT``, without ``NULLS FIRST`` and ``LAST``."""
    tree = tree.copy()
    for limit in list(tree.find_all(exp.Limit)):
        limit.replace(exp.Fetch(direction="FIRST", count=limit.expression))
    return tree.sql(dialect="postgres").replace(" NULLS FIRST", "").replace(" NULLS LAST", "")


def _cell(column: Column, value: exp.Expr) -> exp.Expr:
    if column.type == "STRING":
        return value
    return _characters(value)


def _characters(value: exp.Expr) -> exp.Expr:
    """Return a value padded with blanks; to Derby, each result of TRIM is another value."""
    return exp.Cast(this=exp.Paren(this=value), to=exp.DataType.build(f"CHAR({WIDEST})"))


def _hint(index: Index | None) -> str:
    """Return the optimizer hint for an index.

    By default Derby fetches 16 rows at a time, and no statement of others could run in between.
    """
    name = "null" if index is None else index.name.upper()
    return f"--DERBY-PROPERTIES index={name}, bulkFetch=1\n"


def _steer(tree: exp.Update | exp.Delete, schema: Schema, index: Index | None) -> None:
    """Rewrite an UPDATE or DELETE so that it uses an index.

    They take no hint, and use an index exactly if their condition compares its first column with a
    constant. So the first columns of other indexes are hidden in an expression.
    """
    where = tree.args["where"]
    wanted = None if index is None else index.columns[0]
    hidden = {one.columns[0] for one in schema.indexes} - {wanted}
    compared = False
    for node in list(where.find_all(exp.Column)):
        if node.find_ancestor(exp.Select, exp.Anonymous) is not None:
            continue
        place = schema.index(node.name)
        compared |= place == wanted and isinstance(node.parent, COMPARED)
        if place in hidden:
            node.replace(exp.Coalesce(this=node.copy(), expressions=[node.copy()]))
    if index is not None and not compared:
        column = schema.columns[index.columns[0]].name
        raise Refused(
            f"UPDATE and DELETE use {index.name} only if their condition compares {column}"
            " with a constant"
        )


DERBY_SQL = Dialect(
    _text, TYPES, _cell, _hint, _steer, "SELECT * FROM {} WITH UR",
    dirty=True, snapshot=False, first=_characters,
)  # fmt: skip


SQL = SqlEngine(
    "derby",
    "Derby",
    DERBY_SQL,
    {
        "derby-read-uncommitted": "read uncommitted",
        "derby-read-committed": "read committed",
        "derby-repeatable-read": "repeatable read",
        "derby-serializable": "serializable",
    },
    {"40001": "Deadlock"},
    {"23505": "DuplicateKey", "22003": "OutOfRange", "22012": "DivisionByZero"},
)

DERBY = database_engine(
    SQL,
    "Apache Derby, which is among PySpark's jars: locks on rows, held as each of its levels says",
    open_derby,
    ready=derby_jars,
)
