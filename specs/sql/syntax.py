"""Syntax of a statement: text parsed once by sqlglot and normalized, before name resolution.

``specs.sql.statements.resolve`` resolves its names, again whenever tables change. Values of
parameters (``:name``) are put into a copy of the tree. Equivalent notations are reduced to those
that the readers support (``desugar``). Readers declare the statements that they translate by the
decorator ``resolves``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError

from isolitmus.model.errors import SqlError, brief
from isolitmus.specs.disk.input_files import DEEPEST, is_deeper
from isolitmus.specs.sql.parameters import (
    BLANK,
    bind_text,
    parameter_places,
    strip_end,
    with_markers,
)
from isolitmus.specs.sql.quiet_sqlglot import parse_one, parse_sql
from isolitmus.specs.sql.source_text import locate_error

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.types import Type
    from isolitmus.model.sql.values import Value

SUGAR = (exp.Insert, exp.Select, exp.Between, exp.Case, exp.If, exp.NullSafeEQ, exp.Nullif)
"""Classes of nodes that `desugar` may change; INSERT and SELECT for a part of them."""


def desugar(tree: exp.Expr) -> exp.Expr:
    """Return the tree with equivalent notations reduced, in place.

    BETWEEN becomes two comparisons; CASE x WHEN, IF and NULLIF become CASE WHEN; SELECT DISTINCT
    of columns (and of literals beside them) becomes GROUP BY; TABLE s becomes SELECT * FROM s; a
    WITH before UPDATE or DELETE moves into the subqueries that name its queries; and ``<=>`` of two
    columns, from which Delta derives no filter, says that both are NULL or equal.

    Examples
    --------
    >>> import sqlglot
    >>> print(desugar(sqlglot.parse_one("SELECT IF(x BETWEEN 1 AND 2, NULLIF(a, b), 0)")).sql())
    SELECT CASE WHEN (x >= 1 AND x <= 2) THEN CASE WHEN a = b THEN NULL ELSE a END ELSE 0 END
    >>> print(desugar(sqlglot.parse_one("SELECT DISTINCT a, b AS c FROM t")).sql())
    SELECT a, b AS c FROM t GROUP BY a, b
    """
    if isinstance(tree, exp.Update | exp.Delete) and tree.args.get("with_"):
        _move_with(tree)
    for insert in tree.find_all(exp.Insert):
        if insert.args.get("source"):
            insert.set("expression", exp.select("*").from_(insert.args["source"]))
            insert.set("source", None)
    for select in tree.find_all(exp.Select):
        _grouped(select)
    found = list(tree.find_all(*SUGAR[2:], bfs=False))
    for node in reversed(found):  # inner nodes first
        plain = _plain(node)
        if plain is None:
            continue
        if node is tree:
            return plain
        node.replace(plain)
    return tree


def _move_with(tree: exp.Update | exp.Delete) -> None:
    """Move the WITH of a statement into those of its subqueries that name a query of it."""
    given = tree.args["with_"]
    names = {part.alias.lower() for part in given.expressions}
    tree.set("with_", None)
    for query in list(tree.find_all(exp.Subquery)):
        inner = query.this
        named = {table.name.lower() for table in inner.find_all(exp.Table) if not table.db}
        if query.find_ancestor(exp.Query) is None and named & names and not inner.args.get("with_"):
            inner.set("with_", given.copy())


def _grouped(select: exp.Select) -> None:
    """Turn a SELECT DISTINCT of columns into GROUP BY, as Spark does
    (ReplaceDistinctWithAggregate).
    """
    distinct = select.args.get("distinct")
    items = [item.unalias() for item in select.expressions]
    columns = [item for item in items if isinstance(item, exp.Column) and not item.is_star]
    constants = [item for item in items if isinstance(item, exp.Literal | exp.Null | exp.Boolean)]
    if (
        distinct is None
        or distinct.args.get("on") is not None
        or select.args.get("group") is not None
        or not columns
        or len(columns) + len(constants) < len(items)
    ):
        return
    select.set("distinct", None)
    select.set("group", exp.Group(expressions=[column.copy() for column in columns]))


def _plain(node: exp.Expr) -> exp.Expr | None:
    """Return the reduced form of a node, or None if it has none or was changed in place."""
    subject = node.this.copy() if isinstance(node.this, exp.Expr) else None
    match node:
        case exp.Between() if subject is not None and not node.args.get("symmetric"):
            low = exp.GTE(this=subject, expression=node.args["low"].copy())
            high = exp.LTE(this=subject.copy(), expression=node.args["high"].copy())
            return exp.Paren(this=exp.And(this=low, expression=high))
        case exp.NullSafeEQ(this=exp.Column() as a, expression=exp.Column() as b):
            nulls = [exp.Is(this=one.copy(), expression=exp.null()) for one in (a, b)]
            there = (exp.not_(one, copy=True) for one in nulls)
            same = exp.and_(*there, exp.EQ(this=a.copy(), expression=b.copy()))
            return exp.paren(exp.or_(exp.and_(*nulls), same))
        case exp.Case() if subject is not None:
            for part in node.args["ifs"]:
                part.set("this", exp.EQ(this=subject.copy(), expression=part.this.copy()))
            node.set("this", None)
        case exp.If() if not isinstance(node.parent, exp.Case):
            then = exp.If(this=subject, true=node.args["true"].copy())
            other = node.args.get("false")
            return exp.Case(ifs=[then], default=other.copy() if other is not None else None)
        case exp.Nullif() if subject is not None:
            same = exp.EQ(this=subject, expression=node.expression.copy())
            return exp.Case(ifs=[exp.If(this=same, true=exp.null())], default=subject.copy())
    return None


Trees = dict[tuple[int, int | None], exp.Expr]
VERB = re.compile(
    rf"{BLANK}(?:OPTIMIZE|REORG\s+TABLE|VACUUM)\s+((?:(?!delta\s*\.)[\w`]++\s*+\.\s*+)+)",
    re.IGNORECASE,
)
"""OPTIMIZE, REORG or VACUUM, with the database of its table."""
MISSING = re.compile(r"Required keyword: '\w+' missing for <class .*>")
"""Message of sqlglot about an operator with a missing operand."""
INCOMPLETE = "this statement is incomplete, or of a form that is not supported"
UNFORESEEN = (AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""Exceptions that reading a tree of unexpected shape raises."""


class _Wanted(NamedTuple):
    """Arguments of which SQL demands one where sqlglot accepts none, with the message for that
    case.
    """

    keys: tuple[str, ...]
    problem: str


EMPTY: Mapping[type[exp.Expr], _Wanted] = {
    exp.In: _Wanted(
        ("expressions", "query", "unnest", "field"), "IN () has no value; write IN (1, 2)"
    ),
    exp.Select: _Wanted(("expressions",), "this SELECT has no column"),
    exp.Update: _Wanted(("expressions",), "this UPDATE sets nothing; write SET column = value"),
    exp.Values: _Wanted(("expressions",), "VALUES has no row; write VALUES (1, 2)"),
    exp.Merge: _Wanted(
        ("whens",), "this MERGE does nothing; write WHEN MATCHED THEN … or WHEN NOT MATCHED THEN …"
    ),
    exp.Insert: _Wanted(
        ("expression", "source", "default"),
        "this INSERT inserts nothing; write VALUES (1, 2) or SELECT …",
    ),
}
TRANSACT = re.compile(
    r"\bSELECT\s+TOP\s*+(?:\(\s*+)?\d|\bCOUNT_BIG\s*\(|\[[A-Za-z_]\w*\]|\bWITH\s*\("
    r"|\(\s*(?:NOLOCK|HOLDLOCK|UPDLOCK)\s*\)",
    re.IGNORECASE,
)
"""Notation that only Transact-SQL has, as far as it is supported."""
PARSED: dict[str, exp.Expr] = {}
"""Cache of trees by text; cases of a matrix or a search contain the same few statements repeatedly.
"""
KEPT, SHORT = 1_000, 1_000
"""Maximum number of cached texts, and maximum length of a cached text."""
EVOLUTION = re.compile(
    rf"{BLANK}MERGE\b({BLANK}WITH\b{BLANK}SCHEMA\b{BLANK}EVOLUTION\b)", re.IGNORECASE
)
"""Words of a MERGE that may add columns to its table."""
DEEP = f"is nested more than {DEEPEST} deep"


@dataclass(frozen=True, slots=True, eq=False)
class Syntax:
    """Statement as written, with its parsed trees.

    Examples
    --------
    >>> read = Syntax("DELETE FROM t WHERE id = :key")
    >>> read.tree() is read.tree(), read.bound({"key": 7}).tree().sql()
    (True, 'DELETE FROM t WHERE id = 7')
    """

    text: str
    """Text as written, without a semicolon and comments at its end."""
    label: str = "SQL"
    """Name of the text in messages."""
    values: Mapping[str, Value] = field(default_factory=dict)
    """Values of its parameters, as far as they are known."""
    types: Mapping[str, Type] = field(default_factory=dict)
    """Types of the other parameters."""
    opaque: bool = False
    """True if unsupported expressions are kept (``Opaque``)."""
    constants: bool = False
    """True if those without columns that have one value in a run are parameters."""
    queried: bool = False
    """True if the conditions of DELETE and UPDATE may have subqueries, which Databricks accepts and
    Delta refuses.
    """
    _trees: Trees = field(default_factory=dict)
    _bound: Trees = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", strip_end(self.text))

    @property
    def sql(self) -> str:
        """Text with values for its parameters, and tables without database: tables of a test are in
        a database of their own.
        """
        return bind_text(self._unqualified(), self.values)

    def _unqualified(self) -> str:
        """Return the text without the qualifiers before table names."""
        text = self.text
        if "." not in text:
            return text
        cuts: set[tuple[int, int]] = set()
        if verb := VERB.match(text):
            cuts.add(verb.span(1))
        for table in self.tables():
            first = table.args.get("catalog") or table.args.get("db")
            if first is not None and table.db.lower() != "delta" and "start" in first.meta:
                cuts.add((first.meta["start"], table.this.meta["start"]))
        for start, end in sorted(cuts, reverse=True):
            text = text[:start] + text[end:]
        return text

    @property
    def evolves(self) -> bool:
        """True for MERGE WITH SCHEMA EVOLUTION."""
        return EVOLUTION.match(self.text) is not None

    def bound(self, values: Mapping[str, Value]) -> Syntax:
        """Return the syntax with values; nothing is parsed again."""
        return replace(self, values=values, _bound={})

    def typed(
        self,
        types: Mapping[str, Type],
        *,
        opaque: bool = False,
        constants: bool = False,
        queried: bool = False,
    ) -> Syntax:
        """Return the syntax with types of parameters, which stay parameters."""
        return replace(self, types=types, opaque=opaque, constants=constants, queried=queried)

    def tree(self, start: int = 0, end: int | None = None) -> exp.Expr:
        """Return the tree of the text, or of a part of it that is SQL by itself.

        It must be copied before a change. SqlError is raised for text that does not parse.
        """
        if (start, end) not in self._trees:
            blank = re.sub(r"\S", " ", self.text[:start])
            self._trees[start, end] = _parsed(blank + self.text[start:end], self)
        tree = self._trees[start, end]
        if not self.values:
            return tree
        if (start, end) not in self._bound:
            self._bound[start, end] = _with(tree, self.values)
        return self._bound[start, end]

    def named_tables(self) -> set[str]:
        """Return the names of its tables in lower case; none for what is no SQL by itself.

        Examples
        --------
        >>> sorted(Syntax("DELETE FROM shop.T").named_tables()), Syntax("VACUUM t").named_tables()
        (['t'], set())
        """
        tree = self.tree()
        found = () if isinstance(tree, exp.Command) else tree.find_all(exp.Table)
        return {table.name.lower() for table in found}

    def tables(self) -> Iterator[exp.Table]:
        """Yield the nodes that name tables in the parsed trees."""
        for tree in self._trees.values():
            yield from tree.find_all(exp.Table)


@contextmanager
def well_formed(text: str, label: str) -> Iterator[None]:
    """Refuse a statement whose tree lacks parts that its reader needs.

    sqlglot builds trees of truncated statements, and of some meaningless ones.

    Examples
    --------
    >>> with well_formed("MERGE INTO t", "SQL"):
    ...     Syntax("SELECT 1").tree().args["using"]
    Traceback (most recent call last):
    isolitmus.model.errors.SqlError: SQL:1:1: this statement is incomplete, or of a form that is \
not supported
        MERGE INTO t
        ^
    """
    try:
        yield
    except UNFORESEEN:
        raise locate_error(label, text, _beginning(text), INCOMPLETE) from None


def _beginning(text: str) -> int:
    """Return the position of the first word of a statement."""
    found = re.match(BLANK, text)
    return found.end() if found and found.end() < len(text) else 0


def to_portable_sql(text: str) -> str:
    """Return a Transact-SQL statement in portable SQL.

    TOP becomes LIMIT, COUNT_BIG becomes COUNT, names lose their brackets, and table hints are
    removed. A statement with OPTION (…) is returned as it is.

    Examples
    --------
    >>> to_portable_sql("SELECT TOP (1) id FROM cases WHERE [worker] IS NULL ORDER BY created")
    'SELECT id FROM cases WHERE `worker` IS NULL ORDER BY created LIMIT 1'
    >>> to_portable_sql("SELECT  id FROM cases")
    'SELECT  id FROM cases'
    """
    if TRANSACT.search(text) is None:
        return text
    try:
        tree = parse_one(text, "tsql")
        return text if tree.args.get("options") else tree.sql("databricks")
    except (SqlglotError, ValueError):
        return text


def _parsed(text: str, of: Syntax) -> exp.Expr:
    """Return the tree of a text, a copy for each syntax, because readers annotate its nodes with
    types.
    """
    tree = PARSED.get(text)
    if tree is None:
        tree = _tree(text, of)
        if len(text) > SHORT:
            return tree
        if len(PARSED) >= KEPT:
            PARSED.clear()
        PARSED[text] = tree
    return tree.copy()


def without_evolution(text: str) -> str:
    """Return the text with blanks for WITH SCHEMA EVOLUTION, which sqlglot does not parse.

    Examples
    --------
    >>> without_evolution("MERGE WITH SCHEMA EVOLUTION INTO t").split()
    ['MERGE', 'INTO', 't']
    """
    found = EVOLUTION.match(text)
    if found is None:
        return text
    start, end = found.span(1)
    return text[:start] + re.sub(r"\S", " ", text[start:end]) + text[end:]


def _tree(text: str, of: Syntax) -> exp.Expr:
    """Return the parsed tree of one statement, or raise SqlError at the place of the problem."""
    try:
        trees = parse_sql(with_markers(without_evolution(text)), "databricks")
    except SqlglotError as error:
        details = getattr(error, "errors", None) or [{}]
        line, column = details[0].get("line") or 1, details[0].get("col") or 1
        what = details[0].get("description") or str(error).splitlines()[0]
        before = text.split("\n")[: line - 1]
        start = sum(len(one) + 1 for one in before) + column - 1
        said = MISSING.sub("an operand is missing", what.rstrip("."))
        problem = f"this does not parse: {brief(said)}"
        raise locate_error(of.label, of.text, start, problem, "syntax") from None
    except RecursionError:
        raise SqlError(f"{of.label}: the statement {DEEP}") from None
    found = [tree for tree in trees if tree is not None]
    if len(found) != 1:
        raise SqlError(
            f"{of.label}: expected one statement, found {len(found) or 'none'}", kind="syntax"
        )
    if is_deeper(found[0], methodcaller("iter_expressions")):
        raise SqlError(f"{of.label}: the statement {DEEP}")
    kinds = {type(node) for node in found[0].walk()}
    for node in found[0].find_all(*EMPTY) if _has_kind(kinds, tuple(EMPTY)) else ():
        wanted = EMPTY[type(node)]
        starred = isinstance(node, exp.Insert) and isinstance(node.this, exp.Star)  # of a MERGE
        if not starred and not any(map(node.args.get, wanted.keys)):
            place = min((n.meta["start"] for n in node.walk() if "start" in n.meta), default=0)
            raise locate_error(of.label, of.text, place, wanted.problem, "syntax")
    with well_formed(of.text, of.label):
        return _placed(found[0], text, kinds)


def _has_kind(kinds: Iterable[type], wanted: tuple[type, ...]) -> bool:
    """Return whether one of these classes of nodes is wanted."""
    return any(issubclass(kind, wanted) for kind in kinds)


def _placed(tree: exp.Expr, text: str, kinds: Collection[type]) -> exp.Expr:
    """Return the normalized tree, with the positions of parameters, which sqlglot omits.

    `kinds` are the classes of its nodes.
    """
    if exp.Placeholder in kinds:
        starts = parameter_places(text)
        for node in tree.find_all(exp.Placeholder, bfs=False):
            if starts.get(node.name):
                node.meta["start"] = starts[node.name].pop(0)
    return desugar(tree) if _has_kind(kinds, SUGAR) else tree


def _with(tree: exp.Expr, values: Mapping[str, Value]) -> exp.Expr:
    """Return a copy of the tree with values for its parameters."""
    tree = tree.copy()
    for node in list(tree.find_all(exp.Placeholder)):
        if node.name in values:
            value = _constant(values[node.name])
            value.meta.update(node.meta)
            node.replace(value)
    return tree


def _constant(value: Value) -> exp.Expr:
    """Return the literal of a value as a sqlglot tree."""
    match value:
        case None:
            return exp.null()
        case bool():
            return exp.Boolean(this=value)
        case int() if value < 0:
            return exp.Paren(this=exp.Neg(this=exp.Literal.number(-value)))
        case int():
            return exp.Literal.number(value)
        case float():
            return exp.cast(exp.Literal.string(repr(value)), "double")
        case Decimal():
            number: exp.Expr = exp.Literal.number(f"{abs(value):f}")
            return exp.Paren(this=exp.Neg(this=number)) if value < 0 else number
        case datetime():
            text = exp.Literal.string(value.isoformat(" "))
            return exp.cast(text, "timestamp", dialect="databricks")
        case date():
            return exp.cast(exp.Literal.string(value.isoformat()), "date")
    return exp.Literal.string(value)


Head = str | type[exp.Expr]
Method = TypeVar("Method", bound=Callable[..., Any])


class StatementReader(NamedTuple):
    """Reader class and method for a kind of statement; a method for trees receives the tree."""

    reader: Callable[..., Any]
    resolve: Callable[..., Statement]


def resolves(*heads: Head) -> Callable[[Method], Method]:
    """Declare the statements that a reader's method translates.

    They are given by the class of their tree or by their first word, for statements that sqlglot
    parses only as a Command or not at all.

    Examples
    --------
    >>> class Reader:
    ...     @resolves("GENERATE")
    ...     def manifest(self): ...
    >>> statement_readers(Reader)["GENERATE"].resolve is Reader.manifest
    True
    """

    def said(method: Method) -> Method:
        method.__dict__["resolves"] = heads
        return method

    return said


def statement_readers(*readers: type) -> Mapping[Head, StatementReader]:
    """Return the reader of each statement that these classes declare."""
    return {
        head: StatementReader(reader, method)
        for reader in readers
        for method in vars(reader).values()
        for head in getattr(method, "resolves", ())
    }
