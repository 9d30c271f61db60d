"""A query without WITH: the queries that WITH names stand where they are used.

Models of dbt name queries ``source``, ``renamed`` or ``final``, and a name stands for another query
in each of them, or for a query on the table of this name. In a statement that has several models in
it, each model is therefore one query without names of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.jobs.sql.uninterpreted_sources import statement_tree
from isolitmus.specs.sql.source_text import DIALECT

if TYPE_CHECKING:
    from collections.abc import Mapping

LARGEST = 20_000
"""Most nodes of a query in which the queries of WITH stand where they are used."""


def inline_with(text: str) -> str:
    """Return a query with the queries of its WITH where they are used, also those of nested ones.

    A query without WITH is returned unchanged, and so is one that does not parse, is recursive, or
    would be too large.

    Examples
    --------
    >>> inline_with("WITH s AS (SELECT id FROM s) SELECT s.id FROM s JOIN t ON t.id = s.id")
    'SELECT s.id FROM (SELECT id FROM s) AS s JOIN t ON t.id = s.id'
    """
    tree = statement_tree(text)
    if not isinstance(tree, exp.Query) or tree.args.get("with_") is None:
        return text
    try:
        made = _inlined(tree, {})
    except _KeptError:
        return text
    _project_values(made)
    found = made.sql(DIALECT)
    return found if statement_tree(found) == made else text


class _KeptError(Exception):
    """WITH that is kept where it is."""


def _inlined(query: exp.Query, visible: Mapping[str, exp.Subquery]) -> exp.Query:
    """Return a query, which is changed, with the queries that are visible where it names them."""
    named = query.args.get("with_")
    known = dict(visible)
    if named is not None:
        if named.args.get("recursive"):
            raise _KeptError
        query.set("with_", None)
        for one in named.expressions:
            if not isinstance(one.this, exp.Query):
                raise _KeptError
            body = _inlined(one.this, known)
            known[one.alias.lower()] = exp.Subquery(this=body, alias=one.args["alias"])
    if query.find(exp.With) is not None:
        raise _KeptError
    size = sum(1 for _ in query.walk())
    for table in [*query.find_all(exp.Table)]:
        source = known.get(table.name.lower())
        if source is None or table.db:
            continue
        if {key for key, value in table.args.items() if value} - {"this", "alias", "joins"}:
            raise _KeptError
        made = source.copy()
        if given := table.args.get("alias"):
            columns = given.args.get("columns") or made.args["alias"].args.get("columns")
            alias = exp.TableAlias(this=given.this.copy(), columns=columns)
            made.set("alias", alias)
        if joins := table.args.get("joins"):
            made.set("joins", joins)
        size += sum(1 for _ in made.walk())
        if size > LARGEST:
            raise _KeptError
        table.replace(made)
    return query


def _project_values(query: exp.Query) -> None:
    """Put the column of an inner query in the place of a query that only selects it, where that is
    a value in a condition: ``(SELECT at FROM (SELECT max(x) AS at FROM t) AS m)``.
    """
    for outer in [*query.find_all(exp.Select)]:
        above = outer.parent
        value = isinstance(above, exp.Subquery | exp.In) and not isinstance(
            above.parent, exp.From | exp.Join
        )
        given = {key for key, part in outer.args.items() if part}
        if not value or given != {"expressions", "from_"} or len(outer.expressions) != 1:
            continue
        source, column = outer.args["from_"].this, outer.expressions[0].unalias()
        inner = source.this if isinstance(source, exp.Subquery) else None
        if not isinstance(inner, exp.Select) or inner.args.get("distinct"):
            continue
        if source.args.get("joins") or source.args.get("pivots"):
            continue
        if source.args["alias"] is None or source.args["alias"].args.get("columns"):
            continue
        items = [
            item
            for item in inner.expressions
            if isinstance(column, exp.Column)
            and column.table.lower() in ("", source.alias.lower())
            and item.alias_or_name.lower() == column.name.lower()
            and isinstance(item, exp.Alias | exp.Column)
        ]
        if len(items) == 1:
            inner.set("expressions", items)
            outer.replace(inner)
