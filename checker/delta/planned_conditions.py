"""Constants are computed when a statement is planned, whatever rows there are (Spark's ConstantFolding).

So is the cast of a constant that is stored into a column: UPDATE t SET id = 2147483648 fails on an INT
column even where no row matches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.memo import by_object
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.casting import stored
from isolitmus.model.sql.evaluation import evaluate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.model.schema import Schema

__all__ = ["fold"]


def fold(statement: st.Statement, schema: Schema | None, *, insert: str, update: str) -> None:
    """EvaluationError if a constant in a statement overflows or does not fit into its column of the
    target's ``schema``; ``insert`` and ``update`` are what is raised for the latter.

    >>> from isolitmus.model.schema import Column, Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> t = Schema("t", (Column("id", "INT"),))
    >>> fold(read_statement("UPDATE t SET id = 2147483648", {"t": t}), t, insert="a", update="b")
    Traceback (most recent call last):
    isolitmus.model.sql.failing.EvaluationError: 2147483648 does not fit into INT
    """
    _fold(statement, schema, insert if isinstance(statement, st.Insert) else update)


@by_object
def _fold(statement: st.Statement, schema: Schema | None, error: str) -> None:
    for expr in _expressions(statement):
        _computed(expr)
    columns = schema.columns if schema is not None else ()
    for index, expr in _stored(statement):
        value = evaluate(expr, ()) if _constant(expr) else None
        if value is not None:
            stored(value, columns[index].type, error)


def _constant(expr: ex.Expr) -> bool:
    rows = ex.ColumnRef | ex.Aggregate | ex.Subquery | ex.Parameter | ex.Opaque
    return not any(isinstance(e, rows) for e in ex.walk(expr))


def _computed(expr: ex.Expr) -> None:
    for part in ex.walk(expr, certain=True):
        if isinstance(part, ex.Arithmetic | ex.Negate | ex.Call) and _constant(part):
            evaluate(part, ())
        if isinstance(part, ex.Subquery):
            _computed(part.item)
            _computed(part.where or ex.TRUE)


def _queried(query: qu.Query) -> Iterator[ex.Expr]:
    for branch in query:
        for items in branch.rows if isinstance(branch, qu.Values) else (branch.items,):
            yield from items
        yield branch.where or ex.TRUE
        for source in branch.sources if isinstance(branch, qu.Joined) else ():
            yield from _queried(source.query)
            yield source.on or ex.TRUE


def _expressions(statement: st.Statement) -> Iterator[ex.Expr]:
    """The expressions that are computed."""
    match statement:
        case st.Insert(query=query) | st.Read(query=query):
            yield from _queried(query)
        case st.Delete(where=where):
            yield where or ex.TRUE
        case st.Update(where=where):
            yield where or ex.TRUE
        case st.Merge(source=source, on=on):
            yield from _queried(source)
            yield on
            for clause in (*statement.matched, *statement.by_source):
                yield clause.condition or ex.TRUE
            for inserts in statement.not_matched:
                yield inserts.condition or ex.TRUE
        case _:
            pass
    for _, value in _stored(statement):
        yield value


def _known(statement: st.Merge, value: ex.Expr) -> ex.Expr:
    """What a clause inserts; if no clause does anything else, the plan knows the source's constants."""
    branch = statement.source[0]
    several = isinstance(branch, qu.Values) and len(branch.rows) > 1
    if statement.matched or statement.by_source or several or len(statement.source) > 1:
        return value
    items = branch.rows[0] if isinstance(branch, qu.Values) else branch.items

    def known(part: ex.ColumnRef | ex.Subquery) -> ex.Expr:
        if isinstance(part, ex.ColumnRef) and part.side == 1 and _constant(items[part.index]):
            return items[part.index]
        return part

    return ex.mapped(value, known)


def _stored(statement: st.Statement) -> Iterator[tuple[int, ex.Expr]]:
    """What is stored into which column."""
    match statement:
        case st.Insert(query=query):
            for branch in query:
                for items in branch.rows if isinstance(branch, qu.Values) else (branch.items,):
                    yield from enumerate(items)
        case st.Update(sets=sets):
            yield from sets
        case st.Merge():
            for clause in (*statement.matched, *statement.by_source):
                yield from clause.sets
            for inserts in statement.not_matched:
                yield from enumerate(_known(statement, value) for value in inserts.values)
        case _:
            pass
