"""Parser of the SQL in PostgreSQL's isolation tests into small trees; other SQL is refused.

Statements that read or write rows must parse with sqlglot and consist of the nodes in ``KNOWN``; of
any other one it is unknown which rows it reads. The condition on rows is used if the statement
reads a single table; a query of several tables reads all rows of each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError

from isolitmus.model.errors import RecordingError, brief
from isolitmus.specs.sql.quiet_sqlglot import parse_one
from isolitmus.specs.sql.syntax import UNFORESEEN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.histories.readers.pg_isolation import SqlBlock


@dataclass(frozen=True, slots=True)
class PgBegin:
    """BEGIN: isolation level as written, in capitals; ``deferrable`` waits for a safe snapshot."""

    level: str
    deferrable: bool


@dataclass(frozen=True, slots=True)
class PgEnd:
    """End of a transaction, or of the one ``prepared`` under a name; PREPARE gives it that name."""

    verb: str
    prepared: str = ""


@dataclass(frozen=True, slots=True)
class MadeTable:
    """CREATE TABLE, or keys added to an existing table, which then has no ``columns``."""

    name: str
    """Name of the table."""
    columns: tuple[tuple[str, str], ...]
    """Columns with their types in DuckDB."""
    keys: tuple[tuple[str, ...], ...]
    """Columns of each key."""
    text: str
    """Text as written."""
    place: str
    """Place of the text, for messages."""


@dataclass(frozen=True, slots=True)
class Drops:
    """DROP TABLE."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Idle:
    """Statement that reads and writes no rows: a setting, an index, VACUUM."""


@dataclass(frozen=True, slots=True, eq=False)
class OfRows:
    """SELECT, INSERT, UPDATE or DELETE as parsed by sqlglot, with its place for messages."""

    tree: exp.Expr
    text: str
    place: str


PgStatement = PgBegin | PgEnd | MadeTable | Drops | Idle | OfRows


@dataclass(frozen=True, slots=True)
class TableScan:
    """Read of a table by a statement: node of its name, and condition on rows (None for all)."""

    table: exp.Table
    condition: exp.Expr | None


BLANK = r"\s+"
LEVEL = r"ISOLATION LEVEL (SERIALIZABLE|REPEATABLE READ|READ COMMITTED|READ UNCOMMITTED)"
BEGIN = re.compile(
    rf"(?:BEGIN|START)(?: TRANSACTION| WORK)?(?:,? {LEVEL}|,? READ (?:ONLY|WRITE)|,?(?P<not> NOT)?"
    r" (?P<wait>DEFERRABLE))*"
)
END = re.compile(r"(COMMIT|END|ROLLBACK|ABORT)(?: TRANSACTION| WORK)?")
PREPARED = re.compile(
    r"(PREPARE TRANSACTION|COMMIT PREPARED|ROLLBACK PREPARED) '([^']*)'", re.IGNORECASE
)
IDLE = re.compile(
    r"SET (?!TRANSACTION\b|SESSION"
    r" CHARACTERISTICS\b|\S*TRANSACTION_ISOLATION\b).*|VACUUM\b.*|ANALYZE\b.*"
)
OPERATORS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Add, exp.Sub, exp.Mul, exp.Neg)
LOGIC = (exp.And, exp.Or, exp.Not, exp.Paren, exp.In, exp.Between, exp.Is, exp.Null, exp.Boolean)
NAMES = (exp.Column, exp.Identifier, exp.Star, exp.Literal, exp.Alias, exp.Table, exp.TableAlias)
FUNCTIONS = (exp.Count, exp.Sum, exp.Min, exp.Max, exp.Coalesce, exp.Cast, exp.DataType)
SERIES = (exp.GenerateSeries, exp.ExplodingGenerateSeries)
CLAUSES = (exp.Select, exp.From, exp.Where, exp.Join, exp.Subquery, exp.Order, exp.Ordered)
CHANGES = (exp.Insert, exp.Update, exp.Delete, exp.Values, exp.Tuple, exp.Schema)
KNOWN = frozenset(
    (
        *OPERATORS,
        *LOGIC,
        *NAMES,
        *FUNCTIONS,
        *SERIES,
        *CLAUSES,
        *CHANGES,
        exp.DPipe,
        exp.DataTypeParam,
    )
)
"""Kinds of nodes that DuckDB is known to evaluate as PostgreSQL does."""
ORDERING = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)
PARTS = frozenset(
    {"this", "expression", "expressions", "from_", "where", "joins", "order", "alias"}
)
"""Arguments that statements may have."""


def pg_statements(block: SqlBlock, file: str) -> tuple[PgStatement, ...]:
    """Return the statements of a block; RecordingError for the first unsupported one.

    Examples
    --------
    >>> from isolitmus.histories.readers.pg_isolation import SqlBlock
    >>> text = "BEGIN ISOLATION LEVEL SERIALIZABLE; SET LOCAL x = 1; COMMIT;"
    >>> pg_statements(SqlBlock(text, 3), "h.spec")
    (PgBegin(level='SERIALIZABLE', deferrable=False), Idle(), PgEnd(verb='COMMIT', prepared=''))
    >>> pg_statements(SqlBlock("SELECT f(1)", 3), "h.spec")
    Traceback (most recent call last):
    isolitmus.model.errors.RecordingError: h.spec:3: 'SELECT f(1)' has 'F(1)', \
whose read set is not defined here
    """
    try:
        tokens = sqlglot.tokenize(block.text, read="postgres")
    except SqlglotError:
        raise RecordingError(
            f"{file}:{block.line}: '{brief(block.text, 60)}' is not valid SQL"
        ) from None
    ends = [t.start for t in tokens if t.token_type is sqlglot.TokenType.SEMICOLON]
    found = []
    for start, end in zip([0, *(at + 1 for at in ends)], [*ends, len(block.text)], strict=True):
        inside = [t for t in tokens if start <= t.start < end]
        if inside:
            text = block.text[inside[0].start : inside[-1].end + 1]
            line = block.line + block.text.count("\n", 0, inside[0].start)
            try:
                found.append(_statement(text, f"{file}:{line}"))
            except UNFORESEEN:  # sqlglot builds incomplete trees of truncated statements
                raise _unread(text, f"{file}:{line}") from None
    return tuple(found)


def table_scans(tree: exp.Expr) -> Iterator[TableScan]:
    """Yield the tables that a statement reads, with the conditions on their rows.

    The table that an UPDATE or DELETE changes is included.

    Examples
    --------
    >>> [one] = table_scans(sqlglot.parse_one("UPDATE t SET a = 1 WHERE b = 2"))
    >>> one.condition.sql()
    'b = 2'
    """
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier):
            continue
        owner = table.find_ancestor(exp.Select, exp.Update, exp.Delete, exp.Insert)
        if owner is None or isinstance(owner, exp.Insert):
            continue
        alone = not owner.args.get("joins")
        where = owner.args.get("where")
        yield TableScan(table, where.this if where is not None and alone else None)


def _statement(text: str, place: str) -> PgStatement:
    """Return the statement as one of the small trees, or raise RecordingError."""
    words = " ".join(re.sub(BLANK, " ", text).upper().replace(" ,", ",").split())
    if found := BEGIN.fullmatch(words):
        return PgBegin(found[1] or "READ COMMITTED", bool(found["wait"]) and not found["not"])
    if found := END.fullmatch(words):
        return PgEnd({"END": "COMMIT", "ABORT": "ROLLBACK"}.get(found[1], found[1]))
    if found := PREPARED.fullmatch(re.sub(BLANK, " ", text)):
        return PgEnd(found[1].upper().split()[0], found[2])
    if IDLE.fullmatch(words):
        return Idle()
    try:
        tree = parse_one(text, "postgres")
    except SqlglotError:
        raise _unread(text, place) from None
    match tree:
        case exp.Create(kind="TABLE", this=exp.Schema() as schema) if _plain(
            tree, {"kind", "this"}
        ):
            return _made(schema, text, place)
        case exp.Create(kind="INDEX"):
            if tree.args.get("unique"):
                raise _unread(text, place, "UNIQUE")
            return Idle()
        case exp.Alter(kind="TABLE", this=exp.Table() as table):
            keys = [key for action in tree.args["actions"] for key in _keys(action)]
            if len(keys) == len(tree.args["actions"]):
                return MadeTable(table.name.lower(), (), tuple(keys), text, place)
        case exp.Drop(kind="TABLE"):
            return Drops(tuple(table.name.lower() for table in tree.find_all(exp.Table)))
        case exp.Select() | exp.Insert() | exp.Update() | exp.Delete():
            _refuse_unknown(tree, text, place)
            return OfRows(tree, text, place)
    raise _unread(text, place)


def _unread(text: str, place: str, what: str = "") -> RecordingError:
    """Return the error for unsupported SQL; `what` is the unsupported part."""
    part = f" has '{brief(what, 60)}'" if what else ""
    return RecordingError(f"{place}: '{brief(text, 60)}'{part}, whose read set is not defined here")


def _plain(tree: exp.Expr, parts: frozenset[str] | set[str]) -> bool:
    """Return whether a node has no arguments other than these."""
    return all(not value or key in parts for key, value in tree.args.items())


def _refuse_unknown(tree: exp.Expr, text: str, place: str) -> None:
    """Raise RecordingError for unsupported nodes, clauses, joins and orderings of strings."""
    for node in tree.walk():
        if type(node) not in KNOWN:
            raise _unread(text, place, node.sql("postgres"))
        if isinstance(node, ORDERING) and any(
            isinstance(each, exp.Literal) and each.is_string for each in node.args.values()
        ):
            raise _unread(text, place, node.sql("postgres"))  # the collation is unknown
        if isinstance(node, exp.In) and node.args.get("query"):
            raise _unread(text, place, node.sql("postgres"))
        if isinstance(node, exp.Query | exp.DML) and not isinstance(
            node, exp.Subquery | exp.Values
        ):
            for key, value in node.args.items():
                if value and key not in PARTS:
                    shown = value.sql("postgres") if isinstance(value, exp.Expr) else key.upper()
                    raise _unread(text, place, shown)
    target = tree.this if isinstance(tree, exp.Update | exp.Delete) else None
    if target is not None and target.args.get("joins"):
        raise _unread(text, place, target.sql("postgres"))
    if isinstance(tree, exp.Update) and tree.args.get("from_"):
        raise _unread(text, place, tree.args["from_"].sql("postgres"))


def _made(schema: exp.Schema, text: str, place: str) -> MadeTable:
    """Return the table that CREATE TABLE defines, with its columns and unique keys."""
    columns: list[tuple[str, str]] = []
    keys: list[tuple[str, ...]] = []
    for part in schema.expressions:
        if isinstance(part, exp.ColumnDef):
            columns.append((part.name.lower(), part.args["kind"].sql("duckdb")))
            for constraint in part.args.get("constraints") or ():
                match constraint.args["kind"]:
                    case exp.NotNullColumnConstraint():
                        pass
                    case exp.PrimaryKeyColumnConstraint() | exp.UniqueColumnConstraint():
                        keys.append((part.name.lower(),))
                    case other:
                        raise _unread(text, place, other.sql("postgres"))
        else:
            found = list(_keys(part))
            if not found:
                raise _unread(text, place, part.sql("postgres"))
            keys += found
    return MadeTable(schema.this.name.lower(), tuple(columns), tuple(keys), text, place)


def _keys(node: exp.Expr) -> Iterator[tuple[str, ...]]:
    """Yield the columns of the keys in a table constraint; none for other constraints."""
    match node:
        case exp.PrimaryKey():
            yield tuple(each.name.lower() for each in node.expressions)
        case exp.UniqueColumnConstraint(this=exp.Schema() as schema):
            yield tuple(each.name.lower() for each in schema.expressions)
        case exp.Constraint() | exp.AddConstraint():
            for each in node.expressions:
                yield from _keys(each)
