"""What Spark filters a table by that stands in a join and is written to: what its scan, and so Delta, has of the join.

Spark moves what a condition says of one table alone to the scan of that table, adds that columns which are
compared are not NULL, and carries what is said of one column over to those that equal it
(PushPredicateThroughJoin, InferFiltersFromConstraints). Where more than the first two may happen, what Delta
records is not certain.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql.conditions import columns, optimized, query_surprise

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["scanned_by"]

BOTH = ("inner", "semi")
"""Joins after which their condition holds of rows on both sides."""
Said = list[tuple[ex.Expr, qu.JoinSource | None]]
"""Conjuncts, each with the source that it joins; None: of WHERE."""


def scanned_by(branch: qu.Joined, side: int) -> tuple[ex.Expr | None, bool]:
    """By which condition the table of a side is scanned, and whether that is certain.

    >>> from isolitmus.model.schema import Column, Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> t, s = (Schema(name, (Column("id", "INT"), Column("x", "INT"))) for name in "ts")
    >>> def asked(sql):
    ...     return scanned_by(read_statement(sql, {"t": t, "s": s}).query[0], 0)
    >>> [str(said) for said in asked("SELECT t.id FROM t JOIN s ON t.id = s.id WHERE t.x > 1")]
    ['x > 1 AND NOT (id IS NULL)', 'True']
    >>> asked("SELECT t.id FROM t JOIN s ON t.id = s.id WHERE s.id = 3")[1]
    False
    """
    found = [_plain(source) for source in branch.sources]
    table = found[side]
    if table is None or None in found:
        return None, False
    said: Said = [(part, None) for part in ex.conjuncts(branch.where)]
    said += [(part, source) for source in branch.sources for part in ex.conjuncts(source.on)]
    if not _certain(branch, side, said):
        return None, False
    own = ex.conjuncts(table.where)
    if len(own) != sum(_alone(part, side) for part, _ in said):
        return None, False
    compared = [
        _base(table, c)
        for part, _ in _of_both(branch, side, said)
        for c in columns(part)
        if c.side == side
    ]
    known = [ex.Not(ex.IsNull(column)) for column in dict.fromkeys(compared)]
    parts = (*own, *known)
    where = reduce(ex.And, parts) if parts else None
    return where, where is None or query_surprise(where) is None


def _plain(source: qu.JoinSource) -> qu.Select | None:
    """The table that a source is, with all of its columns as they are."""
    branch = source.query[0]
    if not isinstance(branch, qu.Select) or branch.keys or branch.grouped:
        return None
    return branch if all(isinstance(item, ex.ColumnRef) for item in branch.items) else None


def _base(table: qu.Select, column: ex.ColumnRef) -> ex.ColumnRef:
    found = table.items[column.index]
    assert isinstance(found, ex.ColumnRef)
    return replace(found, name=column.name.rpartition(".")[2])


def _alone(part: ex.Expr, side: int) -> bool:
    return all(column.side == side for column in columns(part))


def _equal(part: ex.Expr) -> bool:
    """Whether it equates columns of two sides."""
    match part:
        case ex.Compare("=", ex.ColumnRef() as a, ex.ColumnRef() as b):
            return a.side != b.side
    return False


def _of_columns(part: ex.Expr) -> bool:
    """Whether it compares columns as they are."""
    match part:
        case ex.Compare(_, ex.ColumnRef(), ex.ColumnRef()):
            return True
    return False


def _of_both(
    branch: qu.Joined, side: int, said: Said
) -> Iterator[tuple[ex.Expr, qu.JoinSource | None]]:
    """The conditions that hold of the rows of a side and of others, as they come out of the join."""
    own = branch.sources[side]
    for part, source in said:
        holds = source is None or source.how in BOTH or source is own
        if holds and not all(_alone(part, k) for k in {c.side for c in columns(part)}):
            yield part, source


def _certain(branch: qu.Joined, side: int, said: Said) -> bool:
    """Whether nothing else can be inferred of a side."""
    own = branch.sources[side]
    outer = {k for k, source in enumerate(branch.sources) if source.how in ("left", "anti")}
    if any(source.how in ("right", "full") for source in branch.sources):
        return False
    named = {
        c.side
        for part, source in said
        if source is None or source.how in BOTH
        for c in columns(part)
    }
    if outer & named:  # a condition that NULL does not meet makes an inner join of it
        return False
    classes: dict[tuple[int, int], set[tuple[int, int]]] = {}
    others: set[tuple[int, int]] = set()
    for part, source in said:
        if not columns(part) or ex.subqueries(part) or optimized(part):
            return False
        pairs = [(c.side, c.index) for c in columns(part)]
        sides = {k for k, _ in pairs}
        if source is not None and source.how not in BOTH and source is not own:
            continue
        if _equal(part):
            both = classes.setdefault(pairs[0], {pairs[0]}) | classes.setdefault(
                pairs[1], {pairs[1]}
            )
            classes.update(dict.fromkeys(both, both))
        elif sides != {side}:
            others.update(pairs)
            if len(sides) > 1 and not _of_columns(part):
                return False
    for members in classes.values():
        mine = [member for member in members if member[0] == side]
        if len(mine) > 1 or (mine and others & (members - set(mine))):
            return False
    return True
