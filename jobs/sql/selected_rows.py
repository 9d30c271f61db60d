"""Rows of one table that a plain query selects, as a table that stands for the query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.jobs.workload import StandIn
from isolitmus.specs.sql.merged_queries import is_every_column
from isolitmus.specs.sql.source_text import DIALECT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.sql.schema import Schema

PLAIN = ("expressions", "from_", "where")
"""Parts of a query that selects rows of one source."""


def selected_rows(query: exp.Expr, schemas: Mapping[str, Schema]) -> StandIn | None:
    """Return the rows of a table that a query selects, if it shows their columns by their names.

    A condition ``run = :run`` on the last column of the table selects the rows of a run.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> tables = {"s": Schema("s", (Column("id", "INT"), Column("run", "BIGINT")))}
    >>> selected_rows(parse_one("SELECT id FROM s WHERE id > 1"), tables)
    StandIn(table='s', run='', where='id > 1')
    >>> selected_rows(parse_one("SELECT id FROM s WHERE run = :run AND id > 1"), tables)
    StandIn(table='s', run='run', where='id > 1')
    >>> selected_rows(parse_one("SELECT id + 1 AS id FROM s"), tables) is None
    True
    """
    source = query.args.get("from_") if isinstance(query, exp.Select) else None
    known = {name.lower(): name for name in schemas}
    if source is None or any(value for key, value in query.args.items() if key not in PLAIN):
        return None
    table = source.this
    if isinstance(table, exp.Subquery) and not table.args.get("pivots"):
        whole = is_every_column(query.expressions) and query.args.get("where") is None
        return selected_rows(table.this, schemas) if whole else None
    if not isinstance(table, exp.Table) or table.name.lower() not in known:
        return None
    for item in query.expressions:
        inner = item.unalias()
        same = isinstance(inner, exp.Column) and inner.name.lower() == item.alias_or_name.lower()
        if not is_every_column([item]) and not same:
            return None
    where = query.args.get("where")
    name = known[table.name.lower()]
    if where is None:
        return StandIn(name)
    condition = where.this.copy()
    if condition.find(exp.Query) is not None:
        return None
    for column in condition.find_all(exp.Column):
        column.set("table", None)
    run = schemas[name].columns[-1].name
    parts = [*condition.flatten(unnest=False)] if isinstance(condition, exp.And) else [condition]
    of_run = [part for part in parts if _is_of_run(part, run)]
    rest = [part for part in parts if not _is_of_run(part, run)]
    if len(of_run) > 1 or any(part.find(exp.Placeholder) is not None for part in rest):
        return None
    return StandIn(name, run if of_run else "", " AND ".join(part.sql(DIALECT) for part in rest))


def _is_of_run(part: exp.Expr, run: str) -> bool:
    """Return whether a condition is that a column has the value of a parameter."""
    return (
        isinstance(part, exp.EQ)
        and isinstance(part.this, exp.Column)
        and part.this.name.lower() == run.lower()
        and isinstance(part.expression, exp.Placeholder)
    )
