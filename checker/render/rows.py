"""Rows as people see them: under the names of their columns, marked where another table has not the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from isolitmus.checker.execution.serial_orders import writers
from isolitmus.model.sql.values import sort_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.checker.execution.run_result import Judged
    from isolitmus.checker.execution.serial_orders import ModelExecutor
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import Run
    from isolitmus.model.sql.values import Row, Rows

__all__ = [
    "Mark",
    "ShownRow",
    "ShownTable",
    "against_the_log",
    "at_every_version",
    "column_names",
    "columned",
]

Mark = Literal["", "extra", "missing"]
"""Whether a row is in both tables, only in the one that is shown, or only in the other one."""


@dataclass(frozen=True, slots=True)
class ShownRow:
    """The values of a row as texts."""

    values: tuple[str, ...]
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table with the names of its columns."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[ShownRow, ...]

    @property
    def marked(self) -> bool:
        """Whether any row is in one of the two tables only."""
        return any(row.mark for row in self.rows)


def columned(
    name: str, columns: Sequence[str], rows: Rows, other: Rows | None = None
) -> ShownTable:
    """The rows of a table; with ``other``, what that table has should be here, and nothing else: of two
    like rows against one the second is extra.

    >>> table = columned("t", ["id"], ((1,), (2,)), ((2,), (None,)))
    >>> [(row.values, row.mark) for row in table.rows]
    [(('NULL',), 'missing'), (('1',), 'extra'), (('2',), '')]
    """
    left = Counter(rows if other is None else other)
    marked: list[tuple[Row, Mark]] = []
    for row in rows:
        marked.append((row, "" if left[row] > 0 else "extra"))
        left[row] -= 1
    gone = (+left).elements()
    marked += [(row, "missing") for row in gone]
    place = {row: k for k, row in enumerate(sort_rows([row for row, _ in marked]))}
    marked.sort(key=lambda each: place[each[0]])
    shown = tuple(ShownRow(tuple(map(_text, row)), mark) for row, mark in marked)
    return ShownTable(name, tuple(columns), shown)


def _text(value: object) -> str:
    return "NULL" if value is None else str(value)


def against_the_log(judged: Judged) -> tuple[ShownTable, ...]:
    """The tables at the end of a run, marked where the same transactions, one after another in the order
    of the log, would have left others.

    >>> from isolitmus.checker import run
    >>> from isolitmus.specs import litmus, protocol
    >>> (table,) = against_the_log(run(litmus("reorder"), protocol("delta-write-serializable")))
    >>> [row.values for row in table.rows if row.mark == "extra"]
    [('100', '0')]
    """
    if judged.litmus.raw:
        return ()
    order = writers(judged.run)
    promised = judged.executor.after(order) or {}
    names = column_names(judged.litmus, order, judged.executor)
    return tuple(
        columned(name, names[name], rows, promised.get(name))
        for name, rows in judged.run.tables.items()
    )


def at_every_version(
    litmus: Litmus, run: Run, executor: ModelExecutor
) -> Iterator[tuple[ShownTable, ...]]:
    """The tables at every version, marked where they are other than one version before."""
    before: Mapping[str, Rows] | None = None
    for k, tables in enumerate(run.versions):
        names = column_names(litmus, writers(run, k), executor)
        yield tuple(
            columned(name, names[name], rows, None if before is None else before.get(name))
            for name, rows in tables.items()
        )
        before = tables


def column_names(
    litmus: Litmus, order: tuple[str, ...], executor: ModelExecutor
) -> dict[str, list[str]]:
    """What the columns of each table are called after these transactions, one after another."""
    state = {} if litmus.raw else executor.state(order) or {}
    headers = {name: table.header for name, table in state.items()}
    found = {}
    for name, schema in litmus.tables.items():
        header = headers.get(name)
        written = schema.columns if header is None else header.metadata.columns
        found[name] = [column.name for column in written if column.name]
    return found
