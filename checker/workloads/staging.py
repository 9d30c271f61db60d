"""What a solver proposes as a litmus test: parameters and rows from its model, cut down to what is needed.

A proposal is not an answer: the test is carried out, and what becomes of it decides.
"""

from __future__ import annotations

from itertools import combinations, islice, product
from typing import TYPE_CHECKING, Any

from isolitmus.checker.templates.codes import NoValue
from isolitmus.model.client import Client
from isolitmus.model.litmus import Litmus
from isolitmus.model.schedule import Schedule
from isolitmus.model.sql.statement import Optimize
from isolitmus.model.sql.types import is_opaque
from isolitmus.model.sql.values import literal, sort_rows
from isolitmus.specs.sql.bound_statement import bound_statement

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.checker.templates.codes import Codes
    from isolitmus.checker.templates.expression_formulas import ValueTerm
    from isolitmus.checker.workloads.instances import Instances, Participant
    from isolitmus.checker.workloads.solver import Solution
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.values import Row, Value

__all__ = ["Stage", "executed_part", "value_of", "values_of"]

MOST = 3
"""So many of the rows that play a part an example has at first."""
FEW = 2
"""So many of those that play none."""
TESTS = 80
"""So many ways to fill the tables are tried for a proposal."""


class Stage:
    """A model of the solver for some roles, and a schedule of them."""

    def __init__(
        self,
        cast: Instances,
        model: Solution,
        roles: Sequence[Participant],
        schedule: str,
        beside: Sequence[tuple[str, Row]] = (),
    ) -> None:
        self.cast = cast
        self.model = model
        self.roles = roles
        self.schedule = schedule
        self.beside = beside
        """Rows that the model does not need, with their tables."""

    def tests(self, title: str, most: int = TESTS) -> Iterator[Litmus]:
        """Litmus tests with the proposed parameters, those with few rows at the start first."""
        transactions, clients = self._transactions()
        schedule = Schedule.parse(self.schedule, transactions)
        for inits in islice(self._starts(), most):
            yield Litmus(
                "example", title, "", self.cast.workload.tables, inits, transactions, schedule,
                clients=clients,
            )  # fmt: skip

    def _starts(self) -> Iterator[tuple[Statement, ...]]:
        """Ways to fill the tables at the start, each once: few rows first, in one file, in one each, and in two."""
        rows = self._rows()
        others = [row for row in self.beside if row not in rows]
        statements = [role.statement.statement for role in self.roles]
        compacted = {one.target for one in statements if isinstance(one, Optimize)}
        seen: set[tuple[str, ...]] = set()
        for many in range(min(MOST, len(rows)) + min(FEW, len(others)) + 1):
            for more in range(max(0, many - min(MOST, len(rows))), min(FEW, many, len(others)) + 1):
                for some, besides in product(
                    combinations(rows, many - more), combinations(others, more)
                ):
                    for way in self._ways(some, besides, compacted):
                        key = tuple(one.sql for one in way)
                        if key not in seen:
                            seen.add(key)
                            yield way

    def _ways(
        self,
        some: tuple[tuple[str, Row], ...],
        besides: tuple[tuple[str, Row], ...],
        compacted: set[str],
    ) -> Iterator[tuple[Statement, ...]]:
        """How these rows may lie in files."""
        every = (*some, *besides)
        together = tuple(self._inits(every, together=True))
        yield together
        yield tuple(self._inits(every, together=False))
        if some and besides:
            yield (*self._inits(some, together=True), *self._inits(besides, together=True))
        if again := [row for row in every if row[0] in compacted]:
            yield (*together, *self._inits(again, together=True))

    def _transactions(self) -> tuple[dict[str, Statement], dict[str, Client]]:
        transactions: dict[str, Statement] = {}
        clients: dict[str, Client] = {}
        for role in self.roles:
            values = values_of(self.cast.codes, self.model, role)
            transactions[role.name], queries = bound_statement(
                role.statement, values, self.cast.workload.tables, self.cast.read
            )
            if queries or role.statement.conf:
                clients[role.name] = Client(let=queries, conf=role.statement.conf)
        return transactions, clients

    def _rows(self) -> list[tuple[str, Row]]:
        found: dict[tuple[str, Row], None] = {}
        for table, row in self.model.rows:
            schema = self.cast.workload.tables[table]
            try:
                values = tuple(
                    value_of(self.cast.codes, self.model, term, column.type)
                    for term, column in zip(row, schema.columns, strict=True)
                )
            except NoValue:
                continue
            found[table, values] = None
        return list(found)

    def _inits(self, rows: Sequence[tuple[str, Row]], *, together: bool) -> Iterator[Statement]:
        by_table: dict[str, list[Row]] = {}
        for table, row in rows:
            by_table.setdefault(table, []).append(row)
        for table, some in by_table.items():
            lists = [sort_rows(some)] if together else [(row,) for row in sort_rows(some)]
            for each in lists:
                written = ", ".join(f"({', '.join(map(literal, row))})" for row in each)
                yield self.cast.read(f"INSERT INTO {table} VALUES {written}")


def executed_part(test: Litmus) -> tuple[object, ...]:
    """What is carried out of a test: all but its title, and what is expected."""
    queries = [(name, *(q.sql for q in one.let.values())) for name, one in test.clients.items()]
    statements = [(name, one.sql) for name, one in test.transactions.items()]
    return tuple(one.sql for one in test.init), *statements, str(test.schedule), *queries


def values_of(codes: Codes, model: Solution, role: Participant) -> dict[str, Value]:
    """The parameters of a role in a model; NoValue if one has none."""
    types = role.statement.types
    return {
        p: value_of(codes, model, role.terms.parameters[p], type_) for p, type_ in types.items()
    }


def value_of(codes: Codes, model: Solution, term: ValueTerm, type_: Any) -> Value:
    """The value of a term in a model."""
    if model.has(term.null) or is_opaque(type_):  # that it is written as NULL is looked at again
        return None
    found = model.value(term.value)
    return found if isinstance(found, bool) else codes.value(found, type_)
