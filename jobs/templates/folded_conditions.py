"""Conditions that Spark's optimizer folds to FALSE for some parameters, so that it plans no scan.

A scan that is not planned is not recorded: an INSERT without another one is a blind append.
``normalize`` is the same for values.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql.conditions import columns_in, normalize, strict_leaves

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from isolitmus.checker.delta.read_set import Access
    from isolitmus.jobs.templates.expression_formulas import Terms
    from isolitmus.model.sql import statement as st

MOST_WAYS = 100
"""Number of ways to choose branches of sources; of more, nothing is known of the columns."""
UNKNOWN = ex.Opaque("…", (), "BOOLEAN")


class Folded(NamedTuple):
    """Formulas that a condition is folded to FALSE: what suffices, and what is necessary."""

    surely: Any
    perhaps: Any


def fold_condition(condition: ex.Expr | None, terms: Terms) -> Folded:
    """Return when Spark folds a condition to FALSE; ``terms`` has the parameters."""
    if condition is None:
        return Folded(terms.z3.BoolVal(False), terms.z3.BoolVal(False))
    return Folded(*map(terms.z3.simplify, _fold(normalize(condition), terms)))


def has_null(conditions: Iterable[ex.Expr], terms: Terms) -> Any:
    """Return the formula that a parameter in some conditions is NULL."""
    return _some_null((part for one in conditions for part in ex.walk(one)), terms)


def fold_access(access: Access, terms: Terms) -> Folded:
    """Return when Spark plans no scan for an access, judging by its own condition."""
    own = access.subquery.where if access.subquery is not None else access.where
    return fold_condition(None if access.doubtful else own, terms)


def scans_left_out(accesses: Sequence[Access], statement: st.Insert, terms: Terms) -> list[Any]:
    """Return for each access of an INSERT the formula that Spark plans no scan for it."""
    z3 = terms.z3
    # another condition may leave a part of the plan without rows, and so without scans
    conditions = _in_query(statement.query) if accesses else ()
    perhaps = z3.simplify(z3.Or(*(fold_condition(one, terms).perhaps for one in conditions)))
    if z3.is_false(perhaps):
        return [perhaps] * len(accesses)
    return [
        z3.Or(fold_access(one, terms).surely, z3.And(perhaps, terms.some("blind")))
        for one in accesses
    ]


def _in_query(query: qu.Query) -> Iterator[ex.Expr]:
    """Yield all conditions of a query, in terms of columns of tables."""
    for branch in query:
        rows = branch.rows if isinstance(branch, qu.Values) else (branch.items,)
        given = [branch.where]
        ways: list[tuple[tuple[ex.Expr, ...], ...]] = [()]
        if isinstance(branch, qu.Joined):
            given += [source.on for source in branch.sources]
            for source in branch.sources:
                yield from _in_query(source.query)
            ways = _sides(branch)
        known = [condition for condition in given if condition is not None]
        every = (_substituted(condition, way) for way, condition in product(ways, known))
        yield from dict.fromkeys(every)
        inner = ex.subqueries(*given, *(item for row in rows for item in row))
        yield from (one.where for one in inner if one.where is not None)


def _sides(branch: qu.Joined) -> list[tuple[tuple[ex.Expr, ...], ...]]:
    """Return the columns of each side of a join in terms of columns of tables, for each way to
    choose a branch of each source.
    """
    every = [_columns(source.query) for source in branch.sources]
    if prod(map(len, every)) > MOST_WAYS:
        every = [[(UNKNOWN,) * len(some[0])] for some in every]
    return list(product(*every))


def _columns(query: qu.Query) -> list[tuple[ex.Expr, ...]]:
    """Return the columns that each branch of a query gives, in terms of columns of tables."""
    found: list[tuple[ex.Expr, ...]] = []
    for branch in query:
        items = qu.items_of(branch)
        ways = _sides(branch) if isinstance(branch, qu.Joined) else [()]
        found += [tuple(_substituted(item, way) for item in items) for way in ways]
    return list(dict.fromkeys(found))


def _substituted(expr: ex.Expr, sides: tuple[tuple[ex.Expr, ...], ...]) -> ex.Expr:
    """Return an expression with the columns of each side replaced."""

    def of_side(part: ex.ColumnRef | ex.Subquery) -> ex.Expr:
        if isinstance(part, ex.Subquery) or part.side >= len(sides):
            return part
        return sides[part.side][part.index]

    return ex.map_columns(expr, of_side)


def _fold(form: ex.Expr, terms: Terms) -> Folded:
    """Return when a condition in normal form, none of whose parts is negated, becomes FALSE."""
    z3 = terms.z3
    match form:
        case ex.And(left, right):
            both = _fold(left, terms), _fold(right, terms)
            return Folded(*(z3.Or(*some) for some in zip(*both, strict=True)))
        case ex.Or(left, right):
            a, b = _fold(left, terms), _fold(right, terms)
            return Folded(z3.And(a.surely, b.surely), z3.And(a.perhaps, b.perhaps))
    parts = [*ex.walk(form)]
    parameters = any(isinstance(part, ex.Parameter) for part in parts)
    if any(isinstance(part, ex.Subquery) for part in parts):
        return Folded(z3.BoolVal(False), z3.BoolVal(parameters))
    if not columns_in(form) and not any(isinstance(part, ex.Opaque) for part in parts):
        exact, terms.exact = terms.exact, True
        holds = terms.holds(form, ())
        certain, terms.exact = terms.exact, exact
        false = z3.Not(holds)
        return Folded(false, false) if certain else Folded(z3.BoolVal(False), z3.BoolVal(True))
    match form:
        case ex.Not(ex.IsNull(operand)):
            leaves = strict_leaves(operand)
        case ex.IsNull():
            leaves = ()
        case _:
            leaves = strict_leaves(form)
    null = _some_null(leaves, terms)
    opened = any(
        isinstance(part, ex.Opaque)
        or (isinstance(part, ex.Call) and part.function in ex.CONDITIONAL)
        for part in parts
    )
    foldable = parameters or not columns_in(form)
    return Folded(null, z3.BoolVal(True) if opened and foldable else null)


def _some_null(parts: Iterable[ex.Expr], terms: Terms) -> Any:
    """Return the formula that one of these parts is a parameter that is NULL."""
    named = {part.name for part in parts if isinstance(part, ex.Parameter)}
    nulls = (terms.parameters[name].null for name in sorted(named & terms.parameters.keys()))
    return terms.z3.simplify(terms.z3.Or(*nulls))
