"""Resolve a statement (Spark's dialect) into the model's: its names are of tables and columns.

The readers say which statements they resolve (``specs.sql.syntax``). Node types and their arguments
are white-listed: what is outside is refused with its place, never guessed.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.model.delta.raw_transaction import Raw
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.query import Origin, unknown_parts
from isolitmus.model.sql.statement import Clone
from isolitmus.specs.sql.definitions import DefinitionReader, TableCreationReader
from isolitmus.specs.sql.functions import is_nondeterministic
from isolitmus.specs.sql.maintenance import VerbReader
from isolitmus.specs.sql.parameters import BLANK, tables_by_path
from isolitmus.specs.sql.queries import JoinReader, QueryReader
from isolitmus.specs.sql.row_statements import InsertReader, MergeReader, RowsReader
from isolitmus.specs.sql.syntax import Syntax, statement_readers, well_formed
from isolitmus.specs.sql.unsupported_pairs import OUTSIDE, features_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.types import Type
    from isolitmus.specs.sql.unsupported_pairs import Feature

__all__ = [
    "RefusedPart",
    "alters_columns",
    "read_statement",
    "refused_part",
    "resolve",
    "resolve_again",
    "syntax_of",
    "tables_named",
]


KINDS = statement_readers(
    InsertReader,
    RowsReader,
    MergeReader,
    JoinReader,
    VerbReader,
    DefinitionReader,
    TableCreationReader,
)
"""Who resolves a statement, by the class of its tree or by its first word."""
FIRST = re.compile(rf"{BLANK}(\w+)\b")
GENERATED: frozenset[Feature] = frozenset(
    {"identity columns", "a statement that cannot write generated values"}
)


def read_statement(
    sql: str,
    schemas: Mapping[str, Schema],
    label: str = "SQL",
    types: Mapping[str, Type] | None = None,
    *,
    opaque: bool = False,
) -> st.Statement:
    """The statement of a text, its tables and columns resolved against the schemas (by table name).

    ``label`` says in messages where the text stands, ``types`` of which type each of its parameters
    is: they stay in it (``Parameter``). ``opaque``: so does what is not modelled in an expression
    (``Opaque``), and ``current_date()`` and ``current_timestamp()`` are parameters of these names.
    Raises SqlError with line, column and caret.

    >>> from isolitmus.model.schema import Column, Schema
    >>> t = Schema("t", (Column("id", "INT"), Column("part", "INT")), ("part",))
    >>> read_statement("DELETE FROM t WHERE part = 0", {"t": t}).where.op
    '='
    >>> print(read_statement("DELETE FROM t WHERE part < :p + 1", {"t": t}, types={"p": "INT"}).where)
    part < (:p + 1)
    >>> print(read_statement("DELETE FROM t WHERE part = 1 AND mine(id) > 3", {"t": t}, opaque=True).where)
    part = 1 AND mine(id) > 3
    """
    return resolve(Syntax(sql, label).typed(types or {}, opaque=opaque, queried=True), schemas)


def resolve(syntax: Syntax, schemas: Mapping[str, Schema]) -> st.Statement:
    """The statement that a syntax is on these tables; SqlError says what it is not."""
    with well_formed(syntax.text, syntax.label):
        return _resolved(syntax, schemas)


def _resolved(syntax: Syntax, schemas: Mapping[str, Schema]) -> st.Statement:
    word = _first(syntax)
    tree = None if word in KINDS else syntax.tree()
    kind = KINDS.get(word if tree is None else type(tree))
    if kind is None:
        problem = f"a statement that begins '{syntax.text.split()[0]}' {OUTSIDE}"
        QueryReader(syntax, schemas).place.refuse(tree, problem)
    reader = kind.reader(syntax, schemas)
    statement = kind.resolve(reader) if tree is None else kind.resolve(reader, tree)
    if not isinstance(statement, st.Read) and schemas[statement.target].generates:
        found = features_of(statement, schema=schemas[statement.target]) & GENERATED
        reader.apart(found, verb=syntax.text.split(maxsplit=1)[0])
    assert not isinstance(statement, Raw)
    return replace(statement, origin=Origin(syntax, schemas))


def _first(syntax: Syntax) -> str:
    found = FIRST.match(syntax.text)
    return "" if found is None else found[1].upper()


def alters_columns(syntax: Syntax) -> bool:
    """Whether it is a statement that may alter columns.

    >>> alters_columns(Syntax("alter table t add columns (z INT)")), alters_columns(Syntax("DELETE FROM t"))
    (True, False)
    """
    return _first(syntax) == "ALTER"


def tables_named(statement: st.Statement) -> frozenset[str]:
    """The tables that a statement names, in lower case.

    >>> from isolitmus.model.schema import Column, Schema
    >>> tables = {name: Schema(name, (Column("id", "INT"),)) for name in ("s", "T")}
    >>> sorted(tables_named(read_statement("INSERT INTO T SELECT id FROM T WHERE id > 1", tables)))
    ['t']
    """
    names = set() if isinstance(statement, st.Read) else {statement.target}
    if isinstance(statement, Clone):
        names.add(statement.source)
    if isinstance(statement, Raw):
        return frozenset(name.lower() for name in names)
    found = statement.origin.tables if statement.origin is not None else {}
    for table in syntax_of(statement).tables():
        names.add(tables_by_path(table, found) or table.name)
    return frozenset(name.lower() for name in names)


def syntax_of(statement: st.Statement) -> Syntax:
    """What a statement was resolved from."""
    if isinstance(statement, Raw) or statement.origin is None:
        return Syntax(statement.sql)
    assert isinstance(statement.origin.syntax, Syntax)
    return statement.origin.syntax


class RefusedPart(NamedTuple):
    """A part of a statement that Spark or Delta refuses when it analyses it."""

    part: ex.Opaque
    exception: str
    """The class that is raised."""
    error_class: str

    @property
    def problem(self) -> str:
        """That it is refused, and why."""
        return f"'{self.part}' is refused here, for it is not deterministic ({self.error_class})"


def refused_part(statement: st.Statement) -> RefusedPart | None:
    """The part of an UPDATE or DELETE that Spark refuses, since it is not deterministic
    (CheckAnalysis.scala), or the condition of a MERGE that Delta does (PreprocessTableMerge.scala);
    None where there is none, or where a function may be unknown, which fails before.

    >>> from isolitmus.model.schema import Column, Schema
    >>> t = {"t": Schema("t", (Column("id", "INT"),))}
    >>> for condition in ("id < 7 * rand()", "id < mine(rand())"):
    ...     found = refused_part(read_statement(f"DELETE FROM t WHERE {condition}", t, opaque=True))
    ...     print(found and found.error_class)
    INVALID_NON_DETERMINISTIC_EXPRESSIONS
    None
    """
    if not isinstance(statement, st.Delete | st.Update | st.Merge):
        return None
    parts = [part for part in unknown_parts(statement) if isinstance(part, ex.Opaque)]
    if not all(is_nondeterministic(part.text) for part in parts):
        return None
    if not isinstance(statement, st.Merge):
        error = ("ExtendedAnalysisException", "INVALID_NON_DETERMINISTIC_EXPRESSIONS")
        return RefusedPart(parts[0], *error) if parts else None
    conditions: list[ex.Expr | None] = [
        statement.on,
        *(clause.condition for clause in statement.not_matched),
    ]
    conditions += [clause.condition for clause in (*statement.matched, *statement.by_source)]
    found = unknown_parts(tuple(conditions))
    error = ("DeltaAnalysisException", "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED")
    return next((RefusedPart(part, *error) for part in parts if part in found), None)


def unbind_statement(statement: st.Statement) -> st.Statement:
    """A statement that was resolved with examples for its parameters, as it was written."""
    if isinstance(statement, Raw) or statement.origin is None:
        return statement
    syntax = syntax_of(statement).bound({})
    return replace(statement, sql=syntax.sql, origin=Origin(syntax, statement.origin.tables))


def resolve_again(
    statement: st.Statement, syntax: Syntax, schemas: Mapping[str, Schema]
) -> st.Statement:
    """The statement resolved anew; what only its client says of it stays."""
    found = resolve(syntax, schemas)
    if isinstance(found, st.Insert) and isinstance(statement, st.Insert):
        return replace(found, options=statement.options)
    return found
