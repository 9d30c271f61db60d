"""What of a snapshot the effect of a statement depends on: the files that its scans leave, no others.

That is why Delta may compare commits by these files; and a sweep runs a statement once on all states
that are alike there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.delta.read_set import accesses
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import statement as st

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.format import Scans
    from isolitmus.model.schema import Schema

__all__ = ["scans"]


def scans(statement: st.Statement, schemas: Mapping[str, Schema]) -> Scans | None:
    """Tables and filters such that the effect is a function of the files that some filter leaves of its
    table; None if that is not known of the statement: then it is one of the whole snapshot.

    Known are appends, DELETE, UPDATE, OPTIMIZE and MERGE without clauses BY SOURCE, on tables that
    nobody altered, without subqueries and arithmetic in conditions (which fails on rows of any file).

    >>> from isolitmus.model.schema import Column, Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> t = {"t": Schema("t", (Column("id", "INT"), Column("part", "INT")), ("part",))}
    >>> delete = read_statement("DELETE FROM t WHERE part = 1", t)
    >>> [(table, list(map(str, filters.partition))) for table, filters in scans(delete, t)]
    [('t', ['part = 1'])]
    >>> scans(read_statement("INSERT INTO t VALUES (1, 1)", t), t)
    ()
    >>> scans(read_statement("INSERT OVERWRITE t VALUES (1, 1)", t), t) is None
    True
    """
    match statement:
        case st.Insert(overwrite=False, options=st.Options(grows=None)):
            conditions: list[ex.Expr | None] = []
        case st.Delete() | st.Update() | st.Optimize():
            conditions = []
        case st.Merge(by_source=()):
            conditions = [clause.condition for clause in statement.matched]
            conditions += [clause.condition for clause in statement.not_matched]
        case _:
            return None
    found = accesses(statement, schemas)
    conditions += [access.where for access in found]
    apart = any(a.subquery is not None or a.version is not None for a in found)
    if apart or not _plain(*conditions):
        return None
    return tuple((access.table, access.filters(schemas[access.table])) for access in found)


def _plain(*conditions: ex.Expr | None) -> bool:
    return not any(
        isinstance(part, ex.Subquery | ex.Arithmetic | ex.Negate)
        for condition in conditions
        if condition is not None
        for part in ex.walk(condition)
    )
