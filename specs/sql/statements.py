"""Translation of SQL statements in Spark's dialect into the model's, with name resolution.

Each reader declares the statements that it translates (``specs.sql.syntax``). It works by
allow-list: nodes and arguments that are not handled are refused with their place, never guessed.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.query import Origin, unknown_parts
from isolitmus.model.sql.raw_transaction import Raw
from isolitmus.model.sql.statement import Clone, Definition, EarlierCommit
from isolitmus.specs.sql.definitions import DefinitionReader
from isolitmus.specs.sql.functions import is_nondeterministic
from isolitmus.specs.sql.maintenance import VerbReader
from isolitmus.specs.sql.parameters import BLANK, tables_by_path
from isolitmus.specs.sql.queries import JoinReader, QueryReader
from isolitmus.specs.sql.row_statements import InsertReader, MergeReader, RowsReader
from isolitmus.specs.sql.syntax import Syntax, statement_readers, well_formed
from isolitmus.specs.sql.table_creations import TableCreationReader
from isolitmus.specs.sql.unsupported_pairs import OUTSIDE, features_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.types import Type
    from isolitmus.specs.sql.unsupported_pairs import Feature

KINDS = statement_readers(
    InsertReader,
    RowsReader,
    MergeReader,
    JoinReader,
    VerbReader,
    DefinitionReader,
    TableCreationReader,
)
"""Reader of each statement, by the class of its tree or by its first word."""
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
    """Return the statement of a text, resolved against the schemas (by table name).

    Parameters
    ----------
    sql : str
        Text of the statement.
    schemas : mapping of str to Schema
        Schemas of the tables.
    label : str
        Name of the text in messages.
    types : mapping of str to str, optional
        Types of its parameters, which stay in it (``Parameter``).
    opaque : bool
        Whether unsupported expressions are kept (``Opaque``); ``current_date()`` and
        ``current_timestamp()`` are then parameters with these names.

    Raises
    ------
    SqlError
        If the statement is not supported, with line, column and caret.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> tables = {"t": Schema("t", (Column("id", "INT"), Column("part", "INT")), ("part",))}
    >>> read_statement("DELETE FROM t WHERE part = 0", tables).where.op
    '='
    >>> print(read_statement("DELETE FROM t WHERE part < :p + 1", tables, types={"p": "INT"}).where)
    part < (:p + 1)
    >>> delete = "DELETE FROM t WHERE part = 1 AND mine(id) > 3"
    >>> print(read_statement(delete, tables, opaque=True).where)
    part = 1 AND mine(id) > 3
    """
    return resolve(Syntax(sql, label).typed(types or {}, opaque=opaque, queried=True), schemas)


def resolve(syntax: Syntax, schemas: Mapping[str, Schema]) -> st.Statement:
    """Return the statement of a syntax, resolved on these tables; SqlError if unsupported."""
    with well_formed(syntax.text, syntax.label):
        return _resolved(syntax, schemas)


class LateOrigin:
    """Origin of a statement that was made without reading its text.

    The text is read when its syntax is needed.
    """

    def __init__(self, syntax: Syntax, tables: Mapping[str, Schema]) -> None:
        self._given = syntax
        self.tables = tables
        self._read: Syntax | None = None

    @property
    def syntax(self) -> Syntax:
        """Syntax with the trees that its reading parses and annotates."""
        if self._read is None:
            origin = getattr(resolve(self._given, self.tables), "origin", None)
            self._read = self._given if origin is None else origin.syntax
        return self._read


def _resolved(syntax: Syntax, schemas: Mapping[str, Schema]) -> st.Statement:
    """Return the statement with resolved names, translated by the reader of its kind."""
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
    """Return whether a statement may alter columns.

    Examples
    --------
    >>> alters_columns(Syntax("alter table t add columns (z INT)"))
    True
    >>> alters_columns(Syntax("DELETE FROM t"))
    False
    """
    return _first(syntax) == "ALTER"


def tables_named(statement: st.Statement) -> frozenset[str]:
    """Return the tables that a statement names, in lower case.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
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
    """Return the syntax that a statement was resolved from."""
    if isinstance(statement, Raw) or statement.origin is None:
        return Syntax(statement.sql)
    assert isinstance(statement.origin.syntax, Syntax)
    return statement.origin.syntax


class RefusedPart(NamedTuple):
    """Part of a statement that Spark or Delta refuses during analysis."""

    part: ex.Opaque
    exception: str
    """Class of the exception."""
    error_class: str

    @property
    def problem(self) -> str:
        """Message that it is refused, with the reason."""
        return f"'{self.part}' is rejected here, since it is not deterministic ({self.error_class})"


def refused_part(statement: st.Statement) -> RefusedPart | None:
    """Return the nondeterministic part of a statement that is refused during analysis, or None.

    Spark refuses it in an UPDATE or DELETE (CheckAnalysis.scala), Delta in a condition of a MERGE
    (PreprocessTableMerge.scala). The result is None as well if a function may be unknown, which
    fails earlier.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
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
    """Return a statement that was resolved with example values as it was written."""
    if isinstance(statement, Raw) or statement.origin is None:
        return statement
    syntax = syntax_of(statement).bound({})
    return replace(statement, sql=syntax.sql, origin=Origin(syntax, statement.origin.tables))


def resolve_again(
    statement: st.Statement, syntax: Syntax, schemas: Mapping[str, Schema]
) -> st.Statement:
    """Return the statement resolved again; options of its client are kept."""
    found = resolve(syntax, schemas)
    if isinstance(found, st.Insert) and isinstance(statement, st.Insert):
        return replace(found, options=statement.options)
    if (
        isinstance(found, Definition)
        and isinstance(statement, Definition)
        and isinstance(statement.change, EarlierCommit)
    ):
        return replace(found, change=statement.change)
    return found
