"""Hypothesis strategies for a table that the caller declares: its statements and its rows.

Rows hold few values, and those that the statements name.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from hypothesis import strategies as st
from sqlglot import expressions as exp

from isolitmus.checker.strategies.level_tests import (
    SmallestTest,
    complete_test,
    read_times,
    samples,
    search_smallest,
    too_few_tests,
)
from isolitmus.checker.universes.schedules import TIMES, Times, schedule_at
from isolitmus.model.errors import IsolitmusError, UndeterminedError
from isolitmus.model.litmus import ClientSettings, Litmus
from isolitmus.model.sql.types import INTEGERS, EvaluationError, is_number
from isolitmus.model.sql.values import cast_value, literal
from isolitmus.specs.files.table_ddl import read_ddl
from isolitmus.specs.files.table_file import read_table
from isolitmus.specs.files.toml_reader import Node, Source
from isolitmus.specs.sql.statements import read_statement
from isolitmus.specs.sql.syntax import Syntax

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hypothesis.strategies import SearchStrategy

    from isolitmus.checker.strategies.level_tests import BetweenLevels
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.types import Type
    from isolitmus.model.sql.values import Value

FORM = "delta"
FRACTION = re.compile(r"[0-9]*\.[0-9]+")

SAMPLES = 12
"""Number of statements, and of rows, in the search for the smallest tests between two levels."""
NUMBERS = (0, 1, 2)
FEW: dict[Type, tuple[Value, ...]] = {
    "STRING": ("a", "b"),
    "DATE": (date(2026, 1, 1), date(2026, 1, 2)),
    # without a zone: in the time zone of the session
    "TIMESTAMP": (datetime(2026, 1, 1), datetime(2026, 1, 2)),  # noqa: DTZ001
    "BOOLEAN": (False, True),
}
"""Values of each type other than numbers, the simplest first."""


class TableTransaction(NamedTuple):
    """Transaction on the declared table."""

    statement: Statement
    times: Times
    """Times of its start and its end."""
    session: int = 0
    """Number of its session; 0 if it has a session of its own."""


@dataclass(frozen=True)
class TableDomain:
    """Table, and strategies for its statements and rows: a ``TestDomain`` of drawn tests."""

    schema: Schema
    """Declared schema of the table."""
    statements: SearchStrategy[Statement]
    """Strategy for transactions on the table."""
    rows: SearchStrategy[str]
    """Strategy for a row as VALUES has it."""
    plain: tuple[Statement, ...] = ()
    """Statements that were given as texts."""
    varied: bool = True
    """True if `statements` draws others besides `plain`."""
    _inits: dict[str, Statement] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        table: str | Schema,
        statements: Sequence[str | SearchStrategy[str]],
        rows: SearchStrategy[str] | None = None,
    ) -> TableDomain:
        """Return the domain of a table with statements, given as texts or strategies of texts.

        Parameters
        ----------
        table : str or Schema
            Schema, or the CREATE TABLE statement that declares it.
        statements : sequence of str or SearchStrategy
            SQL texts or strategies that draw them.
        rows : SearchStrategy, optional
            Rows as VALUES has them; by default few values and those that the texts name.

        Raises
        ------
        IsolitmusError
            With the location, for unsupported SQL: at once for texts, while drawing for strategies.
        """
        if not statements:
            raise IsolitmusError(
                "a table of one's own needs statements=[…], SQL texts or strategies"
            )
        schema = read_declaration(table)
        schemas = {schema.name: schema}

        def read(sql: str) -> Statement:
            return read_statement(sql, schemas)

        texts = [s for s in statements if isinstance(s, str)]
        known = {text: read(text) for text in texts}
        every = [st.just(known[s]) if isinstance(s, str) else s.map(read) for s in statements]
        return cls(
            schema,
            st.one_of(every),
            table_rows_for(schema, constants_in(texts)) if rows is None else rows,
            tuple(known.values()),
            len(texts) < len(statements),
        )

    def transactions(self, *, sessions: bool = False) -> SearchStrategy[TableTransaction]:
        """Return a strategy for a transaction; with ``sessions`` it may share one with others."""
        of = st.integers(0, 2 if sessions else 0)
        return st.builds(TableTransaction, self.statements, TIMES, of)

    def litmus(self, parts: Sequence[TableTransaction], rows: Sequence[str]) -> Litmus:
        """Return the litmus test of these transactions, on a table with these rows.

        Each row is inserted by a commit of its own.
        """
        names = [f"t{k}" for k in range(1, len(parts) + 1)]
        named = dict(zip(names, parts, strict=True))
        sessions = {name: f"s{one.session}" for name, one in named.items() if one.session}
        return Litmus(
            "drawn", "", "", self.schemas, tuple(map(self.init, rows)),
            {name: one.statement for name, one in named.items()},
            schedule_at({name: one.times for name, one in named.items()}, sessions),
            clients={name: ClientSettings(session=session) for name, session in sessions.items()},
            format=FORM,
        )  # fmt: skip

    @property
    def schemas(self) -> dict[str, Schema]:
        """The table's schema by its name."""
        return {self.schema.name: self.schema}

    def init(self, row: str) -> Statement:
        """Return the statement that inserts a row; each is parsed once."""
        if row not in self._inits:
            sql = f"INSERT INTO {self.schema.name} VALUES {row}"
            self._inits[row] = read_statement(sql, self.schemas)
        return self._inits[row]

    def later(self, part: TableTransaction, by: int) -> TableTransaction:
        """Return the transaction with its start `by` time units later."""
        return part._replace(times=part.times._replace(start=part.times.start + by))

    def ends(self, part: TableTransaction) -> int:
        """Return the time of the transaction's commit."""
        return part.times.end

    def instead(self, part: TableTransaction, other: TableTransaction) -> TableTransaction | None:
        """Return `other`'s statement at the times of `part`."""
        return part._replace(statement=other.statement)

    def cores(
        self, asked: BetweenLevels, *, least: int, most: int
    ) -> list[SmallestTest[TableTransaction]]:
        """Return the smallest tests that meet the constraints.

        Raises
        ------
        IsolitmusError
            If no such test is known.
        """
        others = samples(self.statements, SAMPLES) if self.varied else []
        statements = {one.sql: one for one in (*self.plain, *others)}
        rows = {self.init(row).sql: row for row in samples(self.rows, SAMPLES)}
        inits = list(map(self.init, rows.values()))
        more = self.transactions()
        known = list(statements.values())
        found = []
        for test in search_smallest(asked, self.schemas, known, inits, most, form=FORM):
            times = read_times(test)
            core = SmallestTest(
                tuple(
                    TableTransaction(statements[one.sql], times[name])
                    for name, one in test.transactions.items()
                ),
                tuple(rows[one.sql] for one in test.init),
                more,
            )
            last = (TableTransaction(one, Times(0, 0)) for one in known)
            whole = complete_test(asked, self, core, last, least)
            if whole is not None:
                found.append(whole)
        if not found:
            raise too_few_tests(asked, least)
        return found


def read_declaration(table: str | Schema) -> Schema:
    """Return the schema of a table that is given as schema or as CREATE TABLE statement.

    Raises
    ------
    IsolitmusError
        With the location, if the text does not declare a supported table.

    Examples
    --------
    >>> ddl = "CREATE TABLE shop.orders (id INT, day DATE) USING delta PARTITIONED BY (day)"
    >>> read_declaration(ddl).partitioned_by
    ('day',)
    """
    if not isinstance(table, str):
        return table
    found = read_ddl(table, "table")
    return read_table(found.name, Node(found.table, "", Source("table")))


def constants_in(statements: Iterable[str]) -> tuple[Value, ...]:
    """Return the distinct numbers and strings that occur in the statements.

    Examples
    --------
    >>> constants_in(
    ...     ["DELETE FROM t WHERE day = 'mon' AND id > 7", "DELETE FROM t WHERE x = 1.5 OR id = 7"]
    ... )
    ('mon', 7, Decimal('1.5'))
    """
    found: dict[Value, None] = {}
    for sql in statements:
        for node in Syntax(sql).tree().find_all(exp.Literal):
            if isinstance(node.parent, exp.Command):  # this literal is the command's whole text
                continue
            if node.is_string:
                found[node.name] = None
            elif node.is_int:
                found[int(node.name)] = None
            elif FRACTION.fullmatch(node.name):
                found[Decimal(node.name)] = None
    return tuple(found)


def values_for(type_: Type, named: Iterable[Value]) -> tuple[Value, ...]:
    """Return values of a type: those of `named` that the type can hold, and a few others.

    Examples
    --------
    >>> values_for("DATE", ["mon", "2026-03-01", 7])
    (datetime.date(2026, 3, 1), datetime.date(2026, 1, 1), datetime.date(2026, 1, 2))
    >>> values_for("INT", [7, Decimal("1.5")]), values_for("STRING", ["mon"])
    ((7, 0, 1, 2), ('mon', 'a', 'b'))
    """
    own = (_as_type(value, type_) for value in named)
    few = NUMBERS if is_number(type_) else FEW[type_]
    return tuple(dict.fromkeys(v for v in (*own, *few) if v is not None))


def _as_type(value: Value, type_: Type) -> Value:
    """Return a named value as a column of the type holds it; None if it cannot."""
    if isinstance(value, Decimal):
        return value if is_number(type_) and type_ not in INTEGERS else None
    if isinstance(value, int):
        return value if is_number(type_) else None
    if type_ not in ("STRING", "DATE", "TIMESTAMP"):
        return None
    with suppress(EvaluationError, UndeterminedError):
        return cast_value(value, type_)
    return None


def table_rows_for(schema: Schema, named: Iterable[Value]) -> SearchStrategy[str]:
    """Return a strategy for a row as VALUES has it.

    Its cells are the named values, a few others, and NULL.
    """
    known = tuple(named)
    cells = [
        st.sampled_from([*map(literal, values_for(column.type, known)), "NULL"])
        for column in schema.columns
    ]
    return st.tuples(*cells).map(lambda row: f"({', '.join(row)})")
