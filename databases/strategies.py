"""Hypothesis strategies for sessions in format locking: stops at rows, commits, rollbacks.

The table is one that the caller declares, or one of three rows.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise, permutations
from typing import TYPE_CHECKING, NamedTuple, cast

from hypothesis import strategies as st

from isolitmus.checker.execution.commit_loop import initial_stages
from isolitmus.checker.search.separation import separate
from isolitmus.checker.strategies.level_tests import (
    ROWS,
    SECONDS,
    BetweenLevels,
    SmallestTest,
    between_levels,
    complete_test,
    draw_between,
    fails_when_drawn,
    samples,
    too_few_tests,
)
from isolitmus.checker.strategies.table_strategies import (
    constants_in,
    read_declaration,
    table_rows_for,
)
from isolitmus.databases.locking.query_plans import scanned_tables_of
from isolitmus.databases.locking.random_tests import is_executable, session_tests
from isolitmus.model.budget import Budget
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.litmus import Litmus
from isolitmus.model.sql.statement import Read
from isolitmus.model.toml_text import inline_table, quoted, toml_list
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.scope_file import read_scope
from isolitmus.specs.files.table_file import HEAP
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hypothesis.strategies import DrawFn, SearchStrategy

    from isolitmus.model.litmus import ClientSettings
    from isolitmus.model.scope import Scope
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement
    from isolitmus.specs.files.spec_catalogue import SpecLike

FORM = "locking"
FACTOR = 10
"""Time units between two steps of a smallest test."""
SAMPLES = 8
"""Number of statements drawn from strategies to search for the smallest tests."""
SAMPLED_ROWS = 24
"""Number of rows that are drawn for the search."""
FEW = 5
"""Up to so many rows, every pair is tried as a table; with more rows, only neighbours."""


THREE_ROWS = "CREATE TABLE t (id INT, k INT, v INT)"
BOTH = {"by_id": "id", "by_k": "k"}
AT_ROWS = (
    "SELECT id, k, v FROM t WHERE k > 0",
    "UPDATE t SET k = 30 WHERE id = 1",
    "UPDATE t SET v = v + 10 WHERE id = 1",
    "INSERT INTO t VALUES (2, 1, 0)",
    "DELETE FROM t WHERE id = 1",
)
"""Statements of sessions, few of which suffice to cause most anomalies."""
ROWS_OF_THREE = ("(1, 10, 1)", "(2, 20, 2)", "(3, 30, 3)")


class SessionPart(NamedTuple):
    """Transaction of one statement, with its steps in time."""

    sql: str
    """SQL text of the statement."""
    scan: str
    """Index that its scans use; empty if it does not scan."""
    steps: tuple[tuple[int, str], ...]
    """Time and text of each step; the text is that of a schedule without the transaction's name."""


@dataclass(frozen=True)
class SessionDomain:
    """Table with indexes, and strategies for statements and rows: a ``TestDomain``."""

    schema: Schema
    """Declared schema of the table."""
    index: Mapping[str, str]
    """Indexes by name, as a litmus file has them."""
    statements: SearchStrategy[str]
    """Strategy for statements on the table."""
    plain: tuple[str, ...]
    """Statements that were given as texts."""
    rows: SearchStrategy[str]
    """Strategy for a row as VALUES has it."""
    _read: dict[str, Statement] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        table: str | Schema,
        index: Mapping[str, str],
        statements: Sequence[str | SearchStrategy[str]],
        rows: SearchStrategy[str] | None,
    ) -> SessionDomain:
        """Return the domain of a table with statements, given as texts or strategies of texts.

        Raises
        ------
        IsolitmusError
            If there are no statements, or a text is invalid.
        """
        if not statements:
            raise IsolitmusError(
                "a table of one's own needs statements=[…], SQL texts or strategies"
            )
        schema = read_declaration(table)
        texts = tuple(s for s in statements if isinstance(s, str))
        every = st.one_of([st.just(s) if isinstance(s, str) else s for s in statements])
        drawn = table_rows_for(schema, constants_in(texts)) if rows is None else rows
        own = cls(schema, dict(index), every, texts, drawn)
        for text in texts:
            own.litmus([own.alone(text)], [])
        return own

    def statement(self, sql: str) -> Statement:
        """Return the statement that a text says; each text is parsed once."""
        if sql not in self._read:
            schemas = {self.schema.name: self.schema}
            self._read[sql] = format_named(FORM).statement(sql, schemas, "SQL")
        return self._read[sql]

    @property
    def indexes(self) -> tuple[str, ...]:
        """Names of the indexes that scans may use, and the heap."""
        return (*self.index, HEAP)

    @property
    def _table(self) -> list[str]:
        """Lines that declare the table in a litmus file."""
        orders = inline_table({name: quoted(text) for name, text in self.index.items()})
        return [
            f"[tables.{self.schema.name}]",
            f"columns = {quoted(self.schema.ddl())}",
            f"index = {orders}",
        ]

    def _init(self, row: str) -> str:
        """Return the statement that inserts a row."""
        return f"INSERT INTO {self.schema.name} VALUES {row}"

    def sessions(self) -> SearchStrategy[SessionPart]:
        """Return a strategy for a transaction, which may stop at a row, and may roll back."""
        return _sessions(self)

    def scans(self, sql: str) -> bool:
        """Return whether a statement scans a table."""
        return any(scanned_tables_of(self.statement(sql)))

    def litmus(self, parts: Sequence[SessionPart], rows: Sequence[str]) -> Litmus:
        """Return the litmus test of these transactions, on a table with these rows.

        Each row is inserted by a commit of its own.
        """
        names = [f"t{k}" for k in range(1, len(parts) + 1)]
        steps = sorted(
            (when, k, number, f"{names[k]}{step}")
            for k, part in enumerate(parts)
            for number, (when, step) in enumerate(part.steps)
        )
        made = [
            f"{name} = {{ sql = {quoted(part.sql)}, scan ="
            f" {toml_list([quoted(part.scan)] * bool(part.scan))} }}"
            for name, part in zip(names, parts, strict=True)
        ]
        lines = [
            'title = "Drawn at random"',
            f"format = {quoted(FORM)}",
            f"schedule = {quoted(' '.join(text for *_, text in steps))}",
            *self._table,
            f"init = {toml_list(quoted(self._init(row)) for row in rows)}",
            "[transactions]",
            *made,
        ]
        return cast("Litmus", read_litmus("\n".join(lines), "drawn"))

    def later(self, part: SessionPart, by: int) -> SessionPart:
        """Return the transaction with all its steps `by` time units later."""
        return part._replace(steps=tuple((when + by, step) for when, step in part.steps))

    def ends(self, part: SessionPart) -> int:
        """Return the time of the transaction's last step."""
        return max(when for when, _ in part.steps)

    def instead(self, part: SessionPart, other: SessionPart) -> SessionPart | None:
        """Return `other`'s statement at the times of `part`, or None if only one of them scans."""
        fits = bool(part.scan) == bool(other.scan)
        return part._replace(sql=other.sql, scan=other.scan) if fits else None

    def cores(self, asked: BetweenLevels, *, least: int) -> list[SmallestTest[SessionPart]]:
        """Return tests of two transactions that meet the constraints, at most one per index.

        Every order of their steps is tried.

        Raises
        ------
        IsolitmusError
            If no such test is known.
        """
        assert asked.forbidden_by is not None
        known = dict.fromkeys((*self.plain, *samples(self.statements, SAMPLES)))
        budget = Budget(SECONDS)
        found: list[SmallestTest[SessionPart]] = []
        for scan in self.indexes:
            scope = self._scope(list(known), scan)
            answer = separate(asked.level, asked.forbidden_by, scope, shipped=False, budget=budget)
            if isinstance(answer.litmus, Litmus):
                core = self._core(answer.litmus)
                whole = complete_test(asked, self, core, map(self.alone, known), least)
                if whole is not None and whole.parts not in [one.parts for one in found]:
                    found.append(whole)
        if not found:
            raise too_few_tests(asked, least)
        return found

    def alone(self, sql: str) -> SessionPart:
        """Return a transaction that takes no time."""
        return SessionPart(sql, HEAP if self.scans(sql) else "", ((0, "[1]"), (0, ".commit")))

    def _scope(self, statements: Sequence[str], scan: str) -> Scope:
        """Return the scope of these statements, with queries that use one index, on a few rows."""
        reads = [sql for sql in statements if isinstance(self.statement(sql), Read)]
        lines = [
            'title = "Statements that are drawn"',
            f"format = {quoted(FORM)}",
            *self._table,
            "init = "
            + toml_list(
                toml_list(quoted(self._init(row)) for row in rows) for rows in self._starts()
            ),
            "[scope]",
            "transactions = [2]",
            f"scan = {quoted(scan)}",
            f"statements = {toml_list(quoted(sql) for sql in statements if sql not in reads)}",
            f"readers = {toml_list(map(quoted, reads))}",
        ]
        return read_scope("\n".join(lines), "drawn")

    def _starts(self) -> list[list[str]]:
        """Return initial tables: each drawn row alone, and pairs that the table can hold."""
        known = sorted(samples(self.rows, SAMPLED_ROWS), key=lambda row: "NULL" in row)
        form, schemas = format_named(FORM), {self.schema.name: self._schema}
        found: list[list[str]] = []
        pairs = permutations(known, 2) if len(known) <= FEW else pairwise(known)
        for rows in (*((row,) for row in known), *pairs):
            with suppress(IsolitmusError):
                initial_stages(form, schemas, [self.statement(self._init(row)) for row in rows])
                found.append(list(rows))
        return found

    @property
    def _schema(self) -> Schema:
        """Schema of the table with its indexes."""
        sql, *_ = (*self.plain, f"DELETE FROM {self.schema.name}")
        return self.litmus([self.alone(sql)], []).tables[self.schema.name]

    def _core(self, test: Litmus) -> SmallestTest[SessionPart]:
        """Return a test that the search found in the form of a drawn test."""
        steps: dict[str, list[tuple[int, str]]] = {name: [] for name in test.transactions}
        for k, step in enumerate(test.schedule.steps):
            steps[step.transaction].append((FACTOR * k, str(step).removeprefix(step.transaction)))
        parts = [
            SessionPart(one.sql, self._scan(one.sql, test.client(name)), tuple(steps[name]))
            for name, one in test.transactions.items()
        ]
        rows = [init.sql.removeprefix(self._init("")) for init in test.init]
        return SmallestTest(tuple(parts), tuple(rows), self.sessions())

    def _scan(self, sql: str, client: ClientSettings) -> str:
        """Return the index that a statement of a found test uses; empty if it does not scan."""
        if not self.scans(sql):
            return ""
        return client.scan if isinstance(client.scan, str) else next(iter(client.scan), HEAP)


@st.composite
def _sessions(draw: DrawFn, own: SessionDomain) -> SessionPart:
    """Return a strategy for sessions: statement, index, stop in a scan, commit or rollback."""
    sql = draw(own.statements)
    scans = own.scans(sql)
    scan = draw(st.sampled_from(own.indexes)) if scans else ""
    stop = draw(st.integers(0, 2)) if scans else 0
    at, gap = draw(st.integers(0, 5)), draw(st.integers(0, 3))
    end = ".rollback" if draw(st.integers(0, 5)) == 5 else ".commit"
    stops = ((at, f".scan[{stop}]"),) if stop else ()
    return SessionPart(sql, scan, (*stops, (at + gap, "[1]"), (at + 2 * gap, end)))


@fails_when_drawn
def locking_tests(
    *,
    table: str | Schema | None = None,
    index: Mapping[str, str] | None = None,
    statements: Sequence[str | SearchStrategy[str]] = (),
    rows: SearchStrategy[str] | None = None,
    level: SpecLike | None = None,
    forbidden_by: SpecLike | None = None,
    least: int = 2,
    most: int = 3,
) -> SearchStrategy[Litmus]:
    """Return a strategy for litmus tests of format locking, without expectations.

    Transactions may stop at a row of a scan, and may roll back. By default there are three rows and
    two indexes, and transactions of one or two statements. Without a level, every database protocol
    can execute the drawn tests.

    If the result depends on which of two sessions is faster, ``run`` raises SeveralRuns, which
    holds all possible ``runs``.

    Parameters
    ----------
    table : str or Schema, optional
        Table to use, as its CREATE TABLE statement declares it. Each transaction is then one of the
        ``statements``, and its scan uses any of the indexes or none.
    index : mapping of str to str, optional
        Indexes of the table, as a litmus file has them.
    statements : sequence of str or SearchStrategy
        SQL texts, or strategies that draw SQL texts.
    rows, level, forbidden_by : optional
        As in ``litmus_tests``.
    least, most : int
        Least and greatest number of transactions.

    Examples
    --------
    >>> from hypothesis import find
    >>> tests = locking_tests(
    ...     table="CREATE TABLE cases (id INT, day INT)",
    ...     index={"by_day": "day"},
    ...     statements=[
    ...         "UPDATE cases SET day = 30 WHERE id = 1",
    ...         "SELECT count(*) FROM cases WHERE day > 0",
    ...     ],
    ...     level="locking-read-committed",
    ...     forbidden_by="row-once",
    ... )
    >>> [one.sql for one in find(tests, lambda test: True).transactions.values()]
    ['UPDATE cases SET day = 30 WHERE id = 1', 'SELECT count(*) FROM cases WHERE day > 0']
    """
    asked = between_levels(level, forbidden_by)
    if table is None and asked is None:
        return session_tests(most).filter(lambda test: len(test.transactions) >= least)
    own = SessionDomain.of(
        THREE_ROWS if table is None else table,
        BOTH if index is None and table is None else index or {},
        statements or (AT_ROWS if table is None else ()),
        st.sampled_from(ROWS_OF_THREE) if rows is None and table is None else rows,
    )
    lists = st.lists(own.sessions(), min_size=least, max_size=most)
    if asked is None:
        inits = st.lists(own.rows, min_size=1, max_size=ROWS, unique=True)
        return st.builds(own.litmus, lists, inits).filter(is_executable)
    cores = [] if asked.forbidden_by is None else own.cores(asked, least=least)
    return draw_between(asked, own, lists, cores, least=least, most=most)
