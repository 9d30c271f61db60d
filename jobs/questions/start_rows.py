"""Rows at the start of a run: whether a job may have written them.

A violation starts with tables that satisfy the invariants. No program but the jobs writes to the
tables, so a row of a table that they write to has the values that they compute. The solver does
not compute every function: of ``md5(id) AS k`` it proposes any text for k. So a row counts only if
some statement computes its values from the others, as far as all statements compute them.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from isolitmus.jobs.questions.query_witnesses import SIMPLE
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql.evaluation import evaluate
from isolitmus.model.sql.statement import Insert, Merge
from isolitmus.model.sql.values import literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.jobs.workload import Workload
    from isolitmus.model.execution import Database
    from isolitmus.model.sql.values import Row, Value

MOST_TRIED = 64
"""Maximum number of values of operands that are tried for one row."""


def unwritten_start_row(workload: Workload, start: Database) -> str | None:
    """Return why a row at the start of a run may not be there; None if jobs may write all rows.

    Parameters
    ----------
    workload : Workload
        The jobs.
    start : Database
        Tables at the start.
    """
    for name, state in start.items():
        written = [*_written_rows(workload, name)]
        for row in state.rows():
            if written and not any(_may_be(items, row) for items in written):
                shown = ", ".join(map(literal, row))
                return (
                    f"a run was found that violates it if {name} holds the row ({shown}); no"
                    " statement was found that writes this row"
                )
    return None


def _written_rows(workload: Workload, table: str) -> Iterator[tuple[ex.Expr, ...]]:
    """Yield the values of the columns in the rows that statements insert into a table."""
    for one in workload.statements:
        statement = one.statement
        if isinstance(statement, Insert) and statement.target == table:
            for branch in statement.query:
                rows = branch.rows if isinstance(branch, qu.Values) else (branch.items,)
                sources = _sources(branch)
                yield from (_traced(row, sources, workload) for row in rows)
        elif isinstance(statement, Merge) and statement.target == table:
            sources = ((), statement.source)
            for clause in statement.not_matched:
                yield _traced(clause.values, sources, workload)


def _sources(branch: qu.Branch) -> tuple[qu.Query, ...]:
    """Return the query of each side of a branch; a branch of one table has its own columns."""
    return tuple(source.query for source in branch.sources) if isinstance(branch, qu.Joined) else ()


def _traced(
    items: Sequence[ex.Expr], sources: Sequence[qu.Query], workload: Workload
) -> tuple[ex.Expr, ...]:
    """Return expressions in terms of columns of tables instead of nested queries."""

    def origin(part: ex.ColumnRef | ex.Subquery) -> ex.Expr:
        if isinstance(part, ex.Subquery) or part.side >= len(sources):
            return part
        query = sources[part.side]
        if len(query) != 1:
            return part
        branch, item = query[0], qu.items_of(query[0])[part.index]
        if not isinstance(branch, qu.Select):
            return _traced([item], _sources(branch), workload)[0]
        table = branch.table
        if isinstance(item, ex.ColumnRef) and _is_computed_by_query(table, item, workload):
            return ex.Opaque(item.name, (item,), item.type)

        def of_side(one: ex.ColumnRef | ex.Subquery) -> ex.Expr:
            own = len(sources) + part.side  # columns of different tables stay different
            return replace(one, side=own) if isinstance(one, ex.ColumnRef) else one

        return ex.map_columns(item, of_side)

    return tuple(ex.map_columns(item, origin) for item in items)


def _is_computed_by_query(table: str, column: ex.ColumnRef, workload: Workload) -> bool:
    """Return whether a column of a table that stands for a query is computed by the query."""
    query = workload.queries.get(table)
    if query is None or column.index >= len(query.places):
        return False
    place = query.places[column.index]
    return bool(query.parts[place]) and not {*query.parts[place]} & {*query.columns[place]}


def _is_computed(value: ex.Expr) -> bool:
    """Return whether an expression may give only some values, depending on others."""
    if isinstance(value, ex.Call):
        if value.function == "cast":
            return _is_computed(value.operands[0])
        return value.function not in ex.CONDITIONAL
    return isinstance(value, ex.Opaque) and bool(value.operands)


def _may_be(items: Sequence[ex.Expr], row: Row) -> bool:
    """Return whether some operands give the values of a row, as far as they are computed."""
    known = {
        item: value
        for item, value in zip(items, row, strict=True)
        if isinstance(item, ex.ColumnRef | ex.Parameter)
    }
    return all(
        value is None or not _is_computed(item) or _may_give(item, value, known)
        for item, value in zip(items, row, strict=True)
    )


def _may_give(item: ex.Expr, value: Value, known: Mapping[Any, Value]) -> bool:
    """Return whether an expression gives a value for the known values of columns and parameters,
    and simple values of others.
    """
    leaves = dict.fromkeys(p for p in ex.walk(item) if isinstance(p, ex.ColumnRef | ex.Parameter))
    if any(isinstance(part, ex.Opaque | ex.Subquery) for part in ex.walk(item)):
        return False
    ways = [
        (known[leaf],) if leaf in known else (value, SIMPLE.get(leaf.type, SIMPLE["INT"]))
        for leaf in leaves
    ]
    for _, values in zip(range(MOST_TRIED), product(*ways), strict=False):
        given = {leaf: ex.Const(each, leaf.type) for leaf, each in zip(leaves, values, strict=True)}
        try:
            if evaluate(_bound(item, given), ()) == value:
                return True
        except (IsolitmusError, TypeError, ValueError, AttributeError):
            continue  # the value has another type than the operand
    return False


def _bound(part: Any, given: Mapping[Any, ex.Const]) -> Any:
    """Return an expression with constants in place of columns and parameters."""
    if isinstance(part, ex.ColumnRef | ex.Parameter):
        return given[part]
    if isinstance(part, tuple):
        return tuple(_bound(each, given) for each in part)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    changed = {one.name: _bound(getattr(part, one.name), given) for one in fields(part)}
    return replace(part, **changed)
