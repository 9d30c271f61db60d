"""SQL of engines that scan: ordered and limited queries, subqueries, and table hints.

The statement types are those of ``model.sql.statement``. A SELECT that is an ``OrderedQuery``, and
a ``Lookup`` in an expression, have an order and a limit in addition.

Table hints of Transact-SQL, ``FROM t WITH (UPDLOCK, HOLDLOCK)``, change the locks of one scan.
Their effects are Microsoft's, Table Hints (Transact-SQL): NOLOCK reads uncommitted rows;
READCOMMITTEDLOCK, REPEATABLEREAD and SERIALIZABLE (HOLDLOCK) lock as those levels do; UPDLOCK and
XLOCK take another mode until the end of the transaction; TABLOCK and TABLOCKX lock the table, the
former until the end of the statement; READPAST skips rows that others have locked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError

from isolitmus.databases.locking.protocol_rules import LockRule
from isolitmus.model.errors import Refused, SqlError, near
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql import statement as st
from isolitmus.specs.sql.expressions import read_expression
from isolitmus.specs.sql.quiet_sqlglot import parse_one
from isolitmus.specs.sql.row_statements import InsertReader, RowsReader
from isolitmus.specs.sql.source_text import NameScope, refuse_other_arguments
from isolitmus.specs.sql.syntax import Syntax, to_portable_sql
from isolitmus.specs.sql.unsupported_pairs import OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.databases.locking.protocol_rules import ProtocolRules
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.types import Type
    from isolitmus.specs.sql.source_text import Side

SAME = {"READUNCOMMITTED": "NOLOCK", "HOLDLOCK": "SERIALIZABLE"}
"""Synonyms of hints."""
UNTIL_COMMIT = {"REPEATABLEREAD", "SERIALIZABLE", "UPDLOCK", "XLOCK", "TABLOCKX"}
PLACE = re.compile(r"\bWITH\s*\(|\(\s*(?:NOLOCK|HOLDLOCK|UPDLOCK)\s*\)", re.IGNORECASE)
"""Pattern of a place where a hint may be."""
KNOWN = (
    "NOLOCK", "READUNCOMMITTED", "READCOMMITTEDLOCK", "REPEATABLEREAD", "SERIALIZABLE", "HOLDLOCK",
    "UPDLOCK", "XLOCK", "ROWLOCK", "TABLOCK", "TABLOCKX", "READPAST",
)  # fmt: skip
CONTRARY = (
    ({"NOLOCK"}, {*KNOWN} - {"NOLOCK", "READUNCOMMITTED"}),
    ({"SERIALIZABLE"}, {"READPAST"}),
    ({"ROWLOCK"}, {"TABLOCK", "TABLOCKX"}),
)
"""Hints that SQL Server does not accept together."""
NOT_WRITTEN = {"NOLOCK", "TABLOCK"}
"""Hints unsupported on the table that an UPDATE or DELETE changes; SQL Server rejects the first."""


class ScanLocks(NamedTuple):
    """Visibility and locks of a scan."""

    sight: str
    """Visibility rule (``protocol_rules.SIGHTS``)."""
    held: LockRule | None
    """Lock that it takes; None if it takes none."""
    ranges: bool
    """True if it locks the gaps between the rows that it reaches."""
    skips: bool = False
    """True if it skips rows that others have locked."""


@cache
def scan_hints(sql: str, label: str = "SQL") -> tuple[frozenset[str], ...]:
    """Return the hints of each scan of a statement: its own first, then those of its subqueries.

    Subqueries are taken from left to right.

    Raises
    ------
    SqlError
        For an unsupported hint, or for two hints that exclude each other.

    Examples
    --------
    >>> sql = "SELECT id FROM t WITH (UPDLOCK, READPAST) WHERE k > 0"
    >>> [sorted(hints) for hints in scan_hints(sql)]
    [['READPAST', 'UPDLOCK']]
    """
    if PLACE.search(sql) is None:
        return ()
    try:
        tree = parse_one(sql, "tsql")
    except (SqlglotError, ValueError):
        return ()
    tables = [
        table
        for table in tree.find_all(exp.Table)
        if isinstance(table.parent, exp.From | exp.Update | exp.Delete)
    ]
    own = tree.expression if isinstance(tree, exp.Insert) else tree
    tables.sort(
        key=lambda table: (
            table.parent is not tree and table.find_ancestor(exp.Select) is not own,
            table.this.meta["start"],
        )
    )
    return tuple(_hints(table, label) for table in tables)


def _hints(table: exp.Table, label: str) -> frozenset[str]:
    """Return the hints of a table; raise SqlError for unknown, contradictory or misplaced hints."""
    written = table.find_ancestor(exp.Select) is None
    named = [
        hint.sql().upper() for part in table.args.get("hints") or () for hint in part.expressions
    ]
    for name in named:
        if name not in KNOWN:
            raise SqlError(f"{label}: hint {name} {OUTSIDE}{near(name, KNOWN)}")
    found = frozenset(SAME.get(name, name) for name in named)
    for some, others in CONTRARY:
        if found & some and found & others:
            one, other = min(found & some), min(found & others)
            raise SqlError(f"{label}: hints {one} and {other} do not go together; leave one out")
    if written and found & NOT_WRITTEN:
        name = min(found & NOT_WRITTEN)
        raise SqlError(
            f"{label}: hint {name} {OUTSIDE} of a table that is changed"
            + ("; write TABLOCKX" if name == "TABLOCK" else "")
        )
    return found


def takes_hints(rules: ProtocolRules) -> bool:
    """Return whether scans under a protocol may have hints.

    Its statements have locks or a snapshot each, and its sessions no threads.
    """
    return rules.see in {"current", "statement"} and not rules.threads


def scan_locks(
    usual: ScanLocks, hints: frozenset[str], rules: ProtocolRules, *, writes: bool
) -> ScanLocks:
    """Return the visibility and locks of a scan with hints.

    Parameters
    ----------
    usual : ScanLocks
        Visibility and locks without hints.
    hints : frozenset of str
        Hints of the scan.
    rules : ProtocolRules
        Clauses of the protocol.
    writes : bool
        Whether the scan searches for rows to write.

    Raises
    ------
    Refused
        If the locks of the protocol differ from SQL Server's.
    """
    if not hints:
        return usual
    if not takes_hints(rules):
        raise Refused(
            "table hints are of SQL Server; they are modelled under protocols of locks, and of a"
            " snapshot for each statement"
        )
    uncommitted = usual[:2] == ("current", None) and rules.searches is not None  # None: runs alone
    if "READPAST" in hints and (usual.ranges or uncommitted):
        raise Refused(
            "table hints are of SQL Server, which has READPAST only at READ COMMITTED and"
            " REPEATABLE READ"
        )
    if "NOLOCK" in hints:
        return ScanLocks("current", None, ranges=False)
    if hints == {"ROWLOCK"} and usual.held is None:  # the unit of locks, where none are taken
        return usual
    before = usual.held or LockRule("U" if writes else "S", rules.writes.granule, "next-asked")
    until = (
        "commit"
        if hints & UNTIL_COMMIT or before.until == "commit"
        else (
            "statement"
            if "TABLOCK" in hints
            else "next-asked"
            if "READCOMMITTEDLOCK" in hints
            else before.until
        )
    )
    mode = "X" if hints & {"XLOCK", "TABLOCKX"} else "U" if "UPDLOCK" in hints else before.mode
    granule = (
        "table"
        if hints & {"TABLOCK", "TABLOCKX"}
        else "row"
        if "ROWLOCK" in hints
        else before.granule
    )
    held = replace(before, mode=mode, granule=granule, until=until)
    return ScanLocks("current", held, "SERIALIZABLE" in hints or usual.ranges, "READPAST" in hints)


SortOrder = tuple[tuple[int, bool], ...]
"""Indices of columns of the scanned table, each with whether it is descending."""


@dataclass(frozen=True, slots=True)
class OrderedQuery(qu.Select):
    """Query with an order and a limit: ``SELECT … FROM t WHERE … ORDER BY day DESC LIMIT 1``."""

    order: SortOrder = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Lookup(ex.Subquery):
    """Subquery with an order and a limit: ``(SELECT id FROM t WHERE … ORDER BY day LIMIT 1)``.

    Its value is that of its first row, or of its aggregate.
    """

    order: SortOrder = ()
    limit: int | None = None


def read_scan_statement(
    sql: str, schemas: Mapping[str, Schema], label: str = "SQL"
) -> st.Statement:
    """Return the statement that a text says.

    TOP and COUNT_BIG of Transact-SQL are supported, and table hints, with which the text is kept as
    it is.

    Parameters
    ----------
    sql : str
        Text of the statement.
    schemas : mapping of str to Schema
        Tables by name.
    label : str
        Name of the text in error messages.

    Raises
    ------
    SqlError
        With the location, for an invalid or unsupported statement.
    """
    hinted = any(scan_hints(sql, label))
    found = _read(to_portable_sql(sql), schemas, label)
    return replace(found, sql=sql) if hinted else found


def _read(sql: str, schemas: Mapping[str, Schema], label: str) -> st.Statement:
    """Return the statement of an SQL text."""
    syntax = Syntax(sql, label)
    tree = syntax.tree()
    reader = _Reader(syntax, schemas)
    match tree:
        case exp.Select():
            return st.Read(sql, (reader.select(tree, None),))
        case exp.Insert():
            return reader.insert(tree)
        case exp.Update():
            return reader.update(tree)
        case exp.Delete():
            return reader.delete(tree)
    return reader.place.refuse(
        tree, f"a statement that begins '{sql.split(maxsplit=1)[0]}' {OUTSIDE}"
    )


class _Reader(InsertReader, RowsReader):
    """Reader of SQL without Delta's restrictions, which concern its log and Spark's plans."""

    def __init__(self, syntax: Syntax, schemas: Mapping[str, Schema]) -> None:
        super().__init__(syntax, schemas)
        self.place = replace(self.place, plain=True)

    def condition(self, scope: NameScope, node: exp.Expr) -> ex.Expr:
        """Return a condition; refuse an expression that is not BOOLEAN."""
        condition = read_expression(scope, node)
        if condition.type != "BOOLEAN":
            written = self.place.written(node)
            self.place.refuse(node, f"'{written}' is {condition.type}; expected a condition")
        return condition

    def foreseen(self, where: ex.Expr | None, node: exp.Expr | None) -> None:
        """Accept any condition."""

    def evaluated(self, schema: Schema, where: ex.Expr | None, node: exp.Expr | None) -> None:
        """Accept any aggregate."""

    def command_where(self, side: Side, node: exp.Expr | None) -> ex.Expr | None:
        return self.where(NameScope(self.place, (side,), self.subquery), node)

    def query(self, node: exp.Expr, types: tuple[Type, ...] | None = None) -> qu.Query:
        if isinstance(node, exp.Union):
            self.place.refuse(node, f"UNION ALL {OUTSIDE} in format locking")
        return super().query(node, types)

    def select(self, node: exp.Select, types: tuple[Type, ...] | None) -> qu.Branch:
        """Return a SELECT on one table with its order and limit."""
        if node.args.get("group"):
            self.place.refuse(node, f"GROUP BY {OUTSIDE} in format locking")
        plain = self.plain(node)
        found = super().select(plain, types)
        assert not isinstance(found, qu.Joined), "joins are refused where engines scan"
        if isinstance(found, qu.Values):
            if plain is not node:
                self.place.refuse(node, "ORDER BY and LIMIT are of a SELECT … FROM a table")
            return found
        _, side = self.table(node.args["from_"].this)
        order, limit = self.cut(node, self.scope(side), 0)
        if found.grouped and (order or limit is not None):
            self.place.refuse(
                node, "ORDER BY and LIMIT are of rows, and this SELECT is an aggregate"
            )
        return OrderedQuery(
            found.table, found.items, found.where, found.grouped, order=order, limit=limit
        )

    def plain(self, node: exp.Select) -> exp.Select:
        """Return the SELECT without its ORDER BY and LIMIT."""
        if not node.args.get("order") and not node.args.get("limit"):
            return node
        copy = node.copy()
        copy.set("order", None)
        copy.set("limit", None)
        return copy

    def cut(self, node: exp.Select, scope: NameScope, side: int) -> tuple[SortOrder, int | None]:
        """Return the order and the limit of a SELECT."""
        order: list[tuple[int, bool]] = []
        given = node.args.get("order")
        for part in given.expressions if given is not None else ():
            if not isinstance(part, exp.Ordered) or not isinstance(part.this, exp.Column):
                self.place.refuse(part, f"ORDER BY anything but columns {OUTSIDE}")
            column = scope.resolve(part.this)
            if column.side != side:
                self.place.refuse(part, "ORDER BY takes columns of the table that is scanned")
            order.append((column.index, bool(part.args.get("desc"))))
        limit = node.args.get("limit")
        if limit is not None and limit.args.get("limit_options"):
            self.place.refuse(limit, f"LIMIT with PERCENT or TIES {OUTSIDE}")
        if limit is None:
            return tuple(order), None
        number = limit.expression
        if not isinstance(number, exp.Literal) or number.is_string or not number.this.isdecimal():
            self.place.refuse(limit, "LIMIT takes a whole number")
        return tuple(order), int(number.this)

    def subquery(
        self, around: NameScope, kind: Literal["exists", "in", "scalar"], node: exp.Expr
    ) -> ex.Subquery:
        """Return a subquery on one table with its order and limit."""
        if not isinstance(node, exp.Select) or node.args.get("from_") is None:
            self.place.refuse(node, "a subquery is a SELECT … FROM one table")
        refuse_other_arguments(self.place, node, "expressions", "from_", "where", "order", "limit")
        schema, side = self.table(node.args["from_"].this)
        inner = len(around.sides)
        within = f"a subquery in a subquery {OUTSIDE}"
        scope = NameScope(self.place, (*around.sides, side), within, inner)
        item, grouped = self.subquery_item(scope, kind, node, plain=True)
        order, limit = self.cut(node, scope, inner)
        if kind == "scalar" and not grouped and limit != 1:
            self.place.refuse(
                node, "a subquery that gives one value is an aggregate here, or has LIMIT 1"
            )
        return Lookup(
            kind, schema.name, item, self.where(scope, node.args.get("where")), inner,
            "BOOLEAN" if kind != "scalar" else item.type, grouped=grouped, order=order, limit=limit,
        )  # fmt: skip


def scanned_tables_of(one: st.Statement) -> Iterator[str]:
    """Yield the tables that a statement scans: its own first, then those of its subqueries.

    Subqueries are taken from left to right.
    """
    yield from outer(one)
    yield from (lookup.table for lookup in lookups(one))


def outer(one: st.Statement) -> Iterator[str]:
    """Yield the table whose rows the statement reads or changes, if it scans one."""
    match one:
        case st.Update(target=target) | st.Delete(target=target):
            yield target
        case st.Read(query=query) | st.Insert(query=query):
            yield from (branch.table for branch in query if isinstance(branch, qu.Select))


def lookups(one: st.Statement) -> tuple[Lookup, ...]:
    """Return the subqueries of a statement from left to right."""
    match one:
        case st.Update(sets=sets, where=where):
            found = ex.subqueries(*(value for _, value in sets), where)
        case st.Delete(where=where):
            found = ex.subqueries(where)
        case st.Read(query=query) | st.Insert(query=query):
            found = ()
            for branch in query:
                rows = branch.rows if isinstance(branch, qu.Values) else (branch.items,)
                found += ex.subqueries(*(item for row in rows for item in row), branch.where)
        case _:
            found = ()
    return tuple(part for part in found if isinstance(part, Lookup))
