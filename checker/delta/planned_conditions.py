"""Conditions at planning time: constants are folded, opaque parts get tried values.

Constants are computed when a statement is planned, whatever rows there are (Spark's
ConstantFolding). So is the cast of a constant that is stored into a column: UPDATE t SET id =
2147483648 fails on an INT column even if no row matches.

Opaque parts of conditions get values from ``model.sql.nondeterminism``. For each part it is tried
whether the statement fails on it, whether Spark finds it to be a constant, and else its value on
each row: the same for equal values of its columns in one statement. Nothing is tried for random
values, nor for parts that are in no condition, or in a subquery or join. If Spark or Delta rejects
a random value, the statement fails.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from isolitmus.model.errors import UndeterminedError
from isolitmus.model.memo import memoize_by_identity
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.evaluation import evaluate
from isolitmus.model.sql.nondeterminism import choose
from isolitmus.model.sql.query import Origin, Resolved, unknown_parts
from isolitmus.model.sql.types import UNNAMED, EvaluationError
from isolitmus.model.sql.values import store_value
from isolitmus.specs.sql.functions import is_random
from isolitmus.specs.sql.statements import refused_part, syntax_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.model.sql.nondeterminism import TriedAnswers
    from isolitmus.model.sql.schema import Schema


def fold_constants(
    statement: st.Statement, schema: Schema | None, *, insert: str, update: str
) -> None:
    """Raise EvaluationError if a constant in a statement overflows or does not fit into its column.

    Parameters
    ----------
    statement : Statement
        The statement.
    schema : Schema or None
        The target.
    insert, update : str
        Exception of an INSERT, and of other statements, for a constant that does not fit.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> t = Schema("t", (Column("id", "INT"),))
    >>> update = read_statement("UPDATE t SET id = 2147483648", {"t": t})
    >>> fold_constants(update, t, insert="a", update="b")
    Traceback (most recent call last):
    isolitmus.model.sql.types.EvaluationError: 2147483648 does not fit into INT
    """
    _fold(statement, schema, insert if isinstance(statement, st.Insert) else update)


@memoize_by_identity
def _fold(statement: st.Statement, schema: Schema | None, error: str) -> None:
    """Raise EvaluationError if a constant of a statement fails or does not fit its column."""
    for expr in _expressions(statement):
        _computed(expr)
    columns = schema.columns if schema is not None else ()
    for index, expr in _stored(statement):
        value = evaluate(expr, ()) if _constant(expr) else None
        if value is not None:
            store_value(value, columns[index].type, error)


def _constant(expr: ex.Expr) -> bool:
    rows = ex.ColumnRef | ex.Aggregate | ex.Subquery | ex.Parameter | ex.Opaque
    return not any(isinstance(e, rows) for e in ex.walk(expr))


def _computed(expr: ex.Expr) -> None:
    """Evaluate the constant parts of an expression, so that their errors are raised."""
    for part in ex.walk(expr, certain=True):
        if isinstance(part, ex.Arithmetic | ex.Negate | ex.Call) and _constant(part):
            evaluate(part, ())
        if isinstance(part, ex.Subquery):
            _computed(part.item)
            _computed(part.where or ex.TRUE)


def _queried(query: qu.Query) -> Iterator[ex.Expr]:
    """Yield the expressions of a query and of its nested queries."""
    for branch in query:
        for items in branch.rows if isinstance(branch, qu.Values) else (branch.items,):
            yield from items
        yield branch.where or ex.TRUE
        for source in branch.sources if isinstance(branch, qu.Joined) else ():
            yield from _queried(source.query)
            yield source.on or ex.TRUE


def _expressions(statement: st.Statement) -> Iterator[ex.Expr]:
    """Yield the expressions that a statement computes."""
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
    """Return an inserted value; if the MERGE only inserts, with the source's constants in it."""
    branch = statement.source[0]
    several = isinstance(branch, qu.Values) and len(branch.rows) > 1
    if statement.matched or statement.by_source or several or len(statement.source) > 1:
        return value
    items = branch.rows[0] if isinstance(branch, qu.Values) else branch.items

    def known(part: ex.ColumnRef | ex.Subquery) -> ex.Expr:
        if isinstance(part, ex.ColumnRef) and part.side == 1 and _constant(items[part.index]):
            return items[part.index]
        return part

    return ex.map_columns(value, known)


def _stored(statement: st.Statement) -> Iterator[tuple[int, ex.Expr]]:
    """Yield the index of each assigned column, with its value."""
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


OPEN = "open"
"""Choice that an opaque part is not a constant."""


def refuse_subquery(statement: st.Statement) -> None:
    """Raise EvaluationError for a DELETE or UPDATE with a subquery in its condition.

    Source: PreprocessTableDelete.scala, PreprocessTableUpdate.scala.
    """
    if isinstance(statement, st.Delete | st.Update) and ex.subqueries(statement.where):
        raise EvaluationError(
            "DeltaAnalysisException",
            "Delta takes no subquery in this condition",
            "DELTA_UNSUPPORTED_SUBQUERY",
        )


def refuse_random(statement: st.Statement) -> None:
    """Raise EvaluationError if Spark or Delta rejects a nondeterministic part of the statement."""
    refused = refused_part(statement)
    if refused is not None:
        refuse_subquery(statement)
        raise EvaluationError(refused.exception, refused.problem, refused.error_class)


@memoize_by_identity
def refuse_opaque(statement: st.Statement) -> None:
    """Raise UndeterminedError if an opaque part gets no tried values, or a parameter has no value.

    Then it is unknown even whether Spark accepts the statement.
    """
    parts = unknown_parts(statement) if isinstance(statement, Resolved) else ()
    if not parts or not syntax_of(statement).opaque:
        return
    found = Counter(parts)
    found.subtract(
        part
        for condition in _conditions(statement)
        for part in ex.walk(condition)
        if isinstance(part, ex.Opaque) and part.type == "BOOLEAN"
    )
    for part, elsewhere in found.items():
        if elsewhere or is_random(str(part)):
            raise UndeterminedError(part.unsaid)


def replace_opaque_parts(statement: st.Statement, choices: TriedAnswers | None) -> st.Statement:
    """Return the statement with tried constants for opaque parts, or with parts tried row by row.

    Raises
    ------
    EvaluationError
        If the tried choice is that the statement fails.
    """
    parts = tuple(dict.fromkeys(unknown_parts(statement)))
    if not parts or not isinstance(statement, Resolved) or not syntax_of(statement).opaque:
        return statement
    why = parts[0].unsaid
    if choose(choices, "fails", (False, True), why):
        raise EvaluationError(UNNAMED, f"{why}, nor whether it fails")
    constants: dict[object, ex.Expr] = {}
    for part in parts:
        found = choose(choices, ("constant", part), (OPEN, False, True, None), why)
        if found != OPEN:
            constants[part] = ex.Const(found, "BOOLEAN")
        elif isinstance(part, ex.Opaque):
            constants[part] = replace(part, choices=choices)
    return _with(statement, constants) if constants else statement


def _conditions(statement: st.Statement) -> Iterator[ex.Expr]:
    """Yield the conditions in which opaque parts get tried values."""
    found: list[ex.Expr | None] = []
    match statement:
        case st.Delete(where=where) | st.Update(where=where):
            found = [where]
        case st.Merge():
            found = [statement.on, *(c.condition for c in statement.matched)]
            found += [clause.condition for clause in statement.not_matched]
            found += [clause.condition for clause in statement.by_source]
        case st.Read(query=query):
            found = [branch.where for branch in query if not isinstance(branch, qu.Joined)]
        case st.Insert(query=query, overwrite=False) if statement.options == st.Options():
            found = [branch.where for branch in query if not isinstance(branch, qu.Joined)]
    yield from (condition for condition in found if condition is not None)


def _with(noun: Any, constants: Mapping[object, ex.Expr]) -> Any:
    """Return a statement, or a part of it, with constants in place of opaque parts."""
    if isinstance(noun, ex.Opaque):
        return constants.get(noun, noun)
    if isinstance(noun, tuple):
        return tuple(_with(each, constants) for each in noun)
    if is_dataclass(noun) and not isinstance(noun, Origin | type):
        changed = {one.name: _with(getattr(noun, one.name), constants) for one in fields(noun)}
        return replace(noun, **changed)
    return noun
