"""Kinds of statements, as documentation of conflicts distinguishes them.

They are the names of sets of a frame, and depend only on the statement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from isolitmus.model.memo import memoize_by_identity
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import raw_transaction as rw
from isolitmus.model.sql import statement as df
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.conditions import columns_in
from isolitmus.model.sql.query import source_tables
from isolitmus.specs.sql.functions import is_complex
from isolitmus.specs.sql.source_text import NESTED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.model.sql.query import Query

KINDS = (
    "Merging", "Deleting", "Updating", "Appending", "Overwriting", "Compacting", "Purging",
    "Vacuuming", "Creating", "Complex", "Unfiltered", "InsertsUnmatched", "BySource", "ReadsTarget",
)  # fmt: skip
"""Names of the kinds."""


@memoize_by_identity
def statement_kinds(statement: st.Statement) -> tuple[str, ...]:
    """Return the kinds of a statement.

    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> t = {"t": Schema("t", (Column("id", "INT"),))}
    >>> merge = "MERGE INTO t USING (SELECT 1 AS id) AS s ON {} WHEN MATCHED THEN DELETE"
    >>> for on in ("t.id = s.id", "t.id = s.id AND t.id > 0"):
    ...     print(statement_kinds(read_statement(merge.format(on), t)))
    ('Merging', 'Unfiltered')
    ('Merging',)
    """
    return tuple(_kinds(statement))


def _kinds(statement: st.Statement) -> Iterator[str]:
    """Yield the kinds of a statement; "Complex" if a condition has a subquery or a complex part."""
    conditions: list[ex.Expr | None] = []
    match statement:
        case st.Merge(source=source, on=on):
            yield "Merging"
            if not any({column.side for column in columns_in(c)} == {0} for c in ex.conjuncts(on)):
                yield "Unfiltered"
            if statement.not_matched:
                yield "InsertsUnmatched"
            if statement.by_source:
                yield "BySource"
            conditions = [on, *_wheres(source), *(c.condition for c in statement.not_matched)]
            conditions += (c.condition for c in (*statement.matched, *statement.by_source))
        case st.Delete(where=where):
            yield "Deleting"
            conditions = [where]
        case st.Update(where=where):
            yield "Updating"
            conditions = [where]
        case st.Insert(query=query):
            yield "Overwriting" if statement.overwrite else "Appending"
            conditions = [statement.where, *_wheres(query)]
        case st.Optimize(rewrite=rewrite):
            yield "Compacting"
            if rewrite == "vector":
                yield "Purging"
        case st.Vacuum():
            yield "Vacuuming"
        case df.Create() | df.Replace():
            yield "Creating"
        case st.Read() | st.Truncate() | st.Block() | df.Definition() | df.Restore():
            pass
        case df.Clone() | df.Convert() | rw.Raw():
            pass
        case _:
            assert_never(statement)
    if _reads_target(statement):
        yield "ReadsTarget"
    if ex.subqueries(*conditions) or any(
        map(_is_complex, (part for one in conditions if one is not None for part in ex.walk(one)))
    ):
        yield "Complex"


def _reads_target(statement: st.Statement) -> bool:
    """Return whether a source, a query or a subquery of a statement reads the table it changes.

    The search for the rows that it changes does not count, and an earlier version does.
    """
    sources: frozenset[str] = frozenset()
    parts: list[ex.Expr | None] = []
    match statement:
        case st.Merge(source=query, on=on):
            sources = source_tables(query)
            for clause in (*statement.matched, *statement.by_source):
                parts += (clause.condition, *(value for _, value in clause.sets))
            for new in statement.not_matched:
                parts += (new.condition, *new.values)
            parts.append(on)
        case st.Insert(query=query, where=where):
            sources, parts = source_tables(query), [where]
        case st.Update(where=where, sets=sets):
            parts = [where, *(value for _, value in sets)]
        case st.Delete(where=where):
            parts = [where]
        case _:
            return False
    return statement.target in sources | {inner.table for inner in ex.subqueries(*parts)}


def _is_complex(part: ex.Expr) -> bool:
    """Return whether a part of a condition uses nested types or is nondeterministic."""
    match part:
        case ex.ColumnRef(type=type_):
            return type_.upper().startswith(NESTED)
        case ex.Opaque(text=text, operands=operands):
            return is_complex(text) or any(map(_is_complex, operands))
    return False


def _wheres(query: Query) -> Iterator[ex.Expr | None]:
    return (branch.where for branch in query)
