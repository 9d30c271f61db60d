"""What of a snapshot the effect of a statement depends on: the files that its scans leave, no others.

That is why Delta may compare commits by these files; and a sweep runs a statement once on all states
that are alike there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.running.merging import target_filters
from isolitmus.checker.running.skipping import command_filters, query_filters
from isolitmus.model import expression as ex
from isolitmus.model import statement as st

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.checker.running.skipping import Filters
    from isolitmus.model.schema import Schema

__all__ = ["scans"]

Scans = tuple[tuple[str, "Filters"], ...]


def scans(statement: st.Statement, schemas: Mapping[str, Schema]) -> Scans | None:
    """Tables and filters such that the effect is a function of the files that some filter leaves of its
    table; None if that is not known of the statement: then it is one of the whole snapshot.

    Known are appends, DELETE, UPDATE, OPTIMIZE and MERGE without clauses BY SOURCE, on tables that
    nobody altered, without subqueries and arithmetic in conditions (which fails on rows of any file).

    >>> from isolitmus.model.schema import Column, Schema
    >>> from isolitmus.specs.sql import read_statement
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
        case st.Insert(query=query, overwrite=False, grows=None):
            return _of_query(query, schemas)
        case st.Delete(target=target, where=where) | st.Optimize(target=target, where=where):
            return _of_command(target, where, schemas)
        case st.Update(target=target, sets=sets, where=where):
            values = [value for _, value in sets]
            return None if ex.subqueries(*values) else _of_command(target, where, schemas)
        case st.Merge(target=target, source=source, on=on, by_source=()):
            conditions = [on, *(c.condition for c in statement.matched)]
            conditions += [c.condition for c in statement.not_matched]
            values = [v for c in statement.matched for _, v in c.sets]
            values += [v for c in statement.not_matched for v in c.values]
            read = _of_query(source, schemas)
            plain = _plain(*conditions) and not ex.subqueries(*values)
            if read is None or not plain:
                return None
            return (*read, (target, target_filters(schemas[target], statement)))
    return None


def _of_command(target: str, where: ex.Expr | None, schemas: Mapping[str, Schema]) -> Scans | None:
    return ((target, command_filters(schemas[target], where)),) if _plain(where) else None


def _of_query(query: st.Query, schemas: Mapping[str, Schema]) -> Scans | None:
    found = []
    for branch in query:
        items = branch.items if isinstance(branch, st.Select) else sum(branch.rows, ())
        if not _plain(branch.where) or ex.subqueries(*items):
            return None
        if isinstance(branch, st.Select):
            if branch.version is not None:
                return None
            found.append((branch.table, query_filters(schemas[branch.table], branch.where)))
    return tuple(found)


def _plain(*conditions: ex.Expr | None) -> bool:
    return not any(
        isinstance(part, ex.Subquery | ex.Arithmetic | ex.Negate)
        for condition in conditions
        if condition is not None
        for part in ex.walk(condition)
    )
