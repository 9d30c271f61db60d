"""Row versions in DuckDB tables, from which any snapshot can be queried.

Each table has three additional columns. ``_row`` is the row of the version. ``_by`` is the number
of the transaction that wrote it, 0 before the permutation. ``_gone`` is the number of the
transaction that replaced or deleted it; it is negative if the writer aborted, so that others never
saw it. PostgreSQL has such columns, too (xmin, xmax).
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
from sqlglot import expressions as exp

from isolitmus.checker.execution.duckdb_dialect import open_duck, rolled_back
from isolitmus.histories.pg_isolation.pg_sql import Drops, MadeTable, OfRows, table_scans
from isolitmus.model.errors import RecordingError, brief

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

SEEN = "list_contains(getvariable('makers'), _by)"
"""SQL condition that the writer of a version is visible (see ``_asked``)."""


class SnapshotView(NamedTuple):
    """Snapshot: the transaction's number, and the transactions that had committed before it."""

    number: int
    committed: frozenset[int]


class RowScan(NamedTuple):
    """Read of a table by a condition, whose subqueries are replaced by their values."""

    table: str
    alias: str
    condition: str


class _Columns(NamedTuple):
    names: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]


class RowVersions:
    """Tables with the versions of their rows.

    They are filled before a permutation, and changed by its transactions.

    Examples
    --------
    >>> from isolitmus.histories.readers.pg_isolation import SqlBlock
    >>> from isolitmus.histories.pg_isolation.pg_sql import pg_statements
    >>> versions = RowVersions()
    >>> sql = "CREATE TABLE t (i int); INSERT INTO t VALUES (7); SELECT i FROM t"
    >>> made, filled, query = pg_statements(SqlBlock(sql, 1), "h")
    >>> versions.prepare([made, filled])
    >>> versions.query(query, SnapshotView(1, frozenset()))
    [(7,)]
    """

    def __init__(self) -> None:
        self._connection = open_duck()
        # the time zone of isolationtester
        self._connection.execute("SET TimeZone = 'America/Los_Angeles'")
        self._tables: dict[str, _Columns] = {}
        self._next = 0
        self._texts: dict[tuple[OfRows | str, int], str] = {}
        """SQL text by statement or table, and number of the query."""
        self._makers: list[int] = []
        """Transactions whose versions are visible now."""
        self.changed: list[tuple[str, int, int]] = []
        """Writes in order: table, row, and transaction number."""

    def prepare(self, statements: Iterable[MadeTable | Drops | OfRows]) -> None:
        """Create and fill the tables before any permutation."""
        nobody = SnapshotView(0, frozenset())
        for statement in statements:
            match statement:
                case MadeTable(name, ()) if name not in self._tables:
                    raise RecordingError(
                        f"{statement.place}: '{statement.text}' is of no table that was made before"
                    )
                case MadeTable(columns=()):
                    table = self._tables[statement.name]
                    self._tables[statement.name] = table._replace(keys=table.keys + statement.keys)
                case MadeTable(name, columns, keys):
                    listed = "".join(f'"{column}" {kind}, ' for column, kind in columns)
                    self._run(
                        f'CREATE TABLE "{name}" ({listed}_row BIGINT, _by INT, _gone INT)',
                        statement,
                    )
                    self._tables[name] = _Columns(tuple(column for column, _ in columns), keys)
                case Drops(names):
                    for name in names:
                        self._run(f'DROP TABLE IF EXISTS "{name}"')
                        self._tables.pop(name, None)
                case OfRows(tree=exp.Select()):
                    pass
                case OfRows():
                    self.change(statement, nobody)
        for name in self._tables:
            self._run(f'DELETE FROM "{name}" WHERE _gone = 0')
        self.changed.clear()

    @contextmanager
    def permutation(self) -> Iterator[None]:
        """Return a context whose changes are undone at its end."""
        before = self._next
        try:
            with rolled_back(self._connection):
                yield
        finally:
            self.changed.clear()
            self._next = before

    def query(self, statement: OfRows, by: SnapshotView) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return self._asked(by, statement, 0, lambda: self._seen(statement.tree)).fetchall()

    def scanned(self, statement: OfRows, by: SnapshotView) -> list[RowScan]:
        """Return the reads of a statement."""
        found = []
        number = 0  # 0 is the statement itself, its subqueries follow
        for scan in table_scans(statement.tree):
            name = self._known(scan.table, statement)
            condition = scan.condition.copy() if scan.condition is not None else exp.true()
            holder = exp.Paren(this=condition)
            inner = [
                each
                for each in holder.find_all(exp.Subquery)
                if each.find_ancestor(exp.Subquery) is None
            ]
            for each in inner:
                number += 1
                value = exp.select(each.copy())
                seen = partial(self._seen, value)
                [row] = self._asked(by, statement, number, seen).fetchall()
                each.replace(exp.convert(row[0]))
            found.append(RowScan(name, scan.table.alias_or_name, holder.sql("duckdb")))
        return found

    def matches(self, scan: RowScan, rows: Iterable[int]) -> dict[tuple[int, int], bool]:
        """Return whether the condition of a read holds of the versions of rows, by row and writer.

        The last version of each row and writer counts; versions that no other transaction ever saw
        are left out.
        """
        among = ", ".join(map(str, rows))
        if not among:
            return {}
        found = self._run(
            f'SELECT _row, _by, ({scan.condition}) IS TRUE FROM "{scan.table}" AS "{scan.alias}"'
            f" WHERE _row IN ({among}) AND (_gone IS NULL OR _gone <> _by)"
        )
        return {(row, by): holds for row, by, holds in found.fetchall()}

    def change(self, statement: OfRows, by: SnapshotView) -> None:
        """Execute INSERT, UPDATE or DELETE.

        Raises
        ------
        RecordingError
            If PostgreSQL rejects it.
        """
        match statement.tree:
            case exp.Insert() as tree:
                self._insert(tree, statement, by)
            case tree:
                self._replace(tree, statement, by)

    def abort(self, number: int) -> None:
        """Undo the writes of a transaction."""
        for name in self._tables:
            new = f"_by = {number} AND _gone IS NULL"
            self._run(f'UPDATE "{name}" SET _gone = -_by WHERE {new}')
            self._run(
                f'UPDATE "{name}" SET _gone = NULL WHERE _gone = {number} AND _by <> {number}'
            )

    def digest(self, name: str, by: SnapshotView) -> tuple[int, int]:
        """Return the number of rows of a table, and a hash that does not depend on their order."""

        def made() -> exp.Expr:
            seen = self._visible(name).subquery("seen")
            return exp.select("count(*)", "sum(hash(seen))").from_(seen)

        [(count, number)] = self._asked(by, name, 0, made).fetchall()
        return count, number

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables."""
        return tuple(self._tables)

    def _insert(self, tree: exp.Insert, statement: OfRows, by: SnapshotView) -> None:
        """Insert the rows of an INSERT as new versions of new rows."""
        into = tree.this
        table = into.this if isinstance(into, exp.Schema) else into
        name = self._known(table, statement)
        listed = [each.name.lower() for each in into.expressions] if into is not table else []
        values = self._asked(by, statement, 0, lambda: self._seen(tree.expression))
        width = len(values.description or ())
        names = ", ".join(f'"{each}"' for each in (listed or self._tables[name].names)[:width])
        first = self._next
        done = self._run(
            f'INSERT INTO "{name}" ({names}, _row, _by) SELECT *, {first} + row_number() OVER (),'
            f" {by.number} FROM ({self._texts[statement, 0]}) AS source",
            statement,
        ).fetchone()
        self._next += done[0] if done else 0
        rows = range(first + 1, self._next + 1)
        if by.number:
            self.changed += [(name, row, by.number) for row in rows]
            self._refuse_doubles(name, statement, by)

    def _replace(self, tree: exp.Expr, statement: OfRows, by: SnapshotView) -> None:
        """Execute an UPDATE or DELETE: end the matching versions, and insert those of an UPDATE."""
        name = self._known(tree.this, statement)
        columns = self._tables[name].names
        sets = {each.this.name.lower(): each.expression for each in tree.expressions}

        def made() -> exp.Expr:
            values = [
                exp.alias_(self._seen(sets.get(each, exp.column(each))), each, quoted=True)
                for each in columns
            ]
            seen = self._visible(name, "_row", "_gone").subquery(tree.this.alias_or_name)
            found = exp.select("_row", "_gone", *values).from_(seen)
            where = tree.args.get("where")
            return found.where(self._seen(where.this)) if where else found

        self._asked(by, statement, 0, made, "CREATE OR REPLACE TEMP TABLE _made AS ")
        taken = self._run("SELECT any_value(_gone) FROM _made").fetchall()[0][0]
        if taken is not None:
            raise RecordingError(
                f"{statement.place}: '{statement.text}' changes a row that another transaction has"
                " changed since its snapshot, which PostgreSQL rejects"
            )
        old = f"_row IN (SELECT _row FROM _made) AND _gone IS NULL AND {SEEN}"
        self._run(f'UPDATE "{name}" SET _gone = {by.number} WHERE {old}')
        rows = [row for (row,) in self._run("SELECT _row FROM _made").fetchall()]
        if isinstance(tree, exp.Update):
            listed = ", ".join(f'"{each}"' for each in columns)
            self._run(f'INSERT INTO "{name}" SELECT {listed}, _row, {by.number}, NULL FROM _made')
        self._run("DROP TABLE _made")
        if by.number:
            self.changed += [(name, row, by.number) for row in rows]
            self._refuse_doubles(name, statement, by)

    def _refuse_doubles(self, name: str, statement: OfRows, by: SnapshotView) -> None:
        """Raise RecordingError if a row that the transaction wrote repeats the key of another."""
        for key in self._tables[name].keys:
            same = " AND ".join(f'a."{column}" = b."{column}"' for column in key)
            found = self._run(
                f'SELECT 1 FROM "{name}" a JOIN "{name}" b ON {same} AND a._row <> b._row WHERE'
                f" a._by = {by.number} AND a._gone IS NULL AND b._gone IS NULL LIMIT 1"
            )
            if found.fetchall():
                raise RecordingError(
                    f"{statement.place}: '{statement.text}' makes a second row of one key"
                    f" ({', '.join(key)}), which PostgreSQL rejects"
                )

    def _known(self, table: exp.Table, statement: OfRows) -> str:
        """Return the name of a table; raise RecordingError unless the setup creates it."""
        name = table.name.lower()
        if name not in self._tables or table.db:
            raise RecordingError(
                f"{statement.place}: '{table.sql('postgres')}' is not a table that the setup makes"
            )
        return name

    def _visible(self, name: str, *more: str) -> exp.Select:
        chosen = [*more, *(f'"{column}"' for column in self._tables[name].names)]
        there = f"{SEEN} AND (_gone IS NULL OR NOT list_contains(getvariable('makers'), _gone))"
        return exp.select(*chosen).from_(exp.to_table(f'"{name}"')).where(there)

    def _seen(self, tree: exp.Expr) -> exp.Expr:
        """Return a query in which each table is replaced by its visible rows."""
        made = tree.copy()
        for table in list(made.find_all(exp.Table)):
            if isinstance(table.this, exp.Identifier) and table.name.lower() in self._tables:
                seen = self._visible(table.name.lower())
                table.replace(seen.subquery(table.alias_or_name))
        return made

    def _asked(
        self,
        by: SnapshotView,
        of: OfRows | str,
        number: int,
        make: Callable[[], exp.Expr],
        into: str = "",
    ) -> duckdb.DuckDBPyConnection:
        """Return the result of SQL that is built once, as a transaction sees the tables."""
        if (of, number) not in self._texts:
            self._texts[of, number] = make().sql("duckdb")
        makers = sorted({0, by.number, *by.committed})
        if makers != self._makers:
            self._run(f"SET VARIABLE makers = {makers}")
            self._makers = makers
        return self._run(into + self._texts[of, number], None if isinstance(of, str) else of)

    def _run(
        self, sql: str, statement: OfRows | MadeTable | None = None
    ) -> duckdb.DuckDBPyConnection:
        """Return the result of SQL in DuckDB; raise RecordingError instead of DuckDB's errors."""
        try:
            return self._connection.execute(sql)
        except duckdb.Error as problem:
            said = str(problem).split("\n", 1)[0]
            if statement is None:
                raise RecordingError(
                    f"DuckDB does not execute '{brief(sql, 120)}': {said}"
                ) from None
            raise RecordingError(
                f"{statement.place}: DuckDB does not execute '{statement.text}': {said}"
            ) from None
