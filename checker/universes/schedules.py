"""Where transactions wait for each other, what is searched is schedules: all of some transactions, step by step.

A candidate is an initial table, writers, readers, and an order of their steps. A reader stops at each entry that its scans
come to, and after the last commits; a writer stops after each statement, then commits. Those in which somebody waits
are steps of others at other moments, and are looked at as they come. Fewest transactions first, then the order of the
scope; the same scope gives the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement, groupby, product
from math import factorial, prod
from typing import TYPE_CHECKING

from isolitmus.model.client import Client
from isolitmus.model.litmus import Litmus
from isolitmus.model.schedule import Schedule, Step
from isolitmus.model.sql.statement import Block, statements_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.model.scope import Scope
    from isolitmus.model.sql.statement import Statement

__all__ = ["Cast", "Scheduled", "casts"]


@dataclass(frozen=True, slots=True)
class Cast:
    """An initial table and the transactions on it: writers, then readers."""

    scope: Scope
    init: tuple[Statement, ...]
    writers: tuple[Statement, ...]
    readers: tuple[Statement, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What the transactions are called."""
        of = (("write", self.writers), ("read", self.readers))
        return tuple(
            name if len(some) == 1 else f"{name}{k}"
            for name, some in of
            for k in range(1, len(some) + 1)
        )

    @property
    def stops(self) -> tuple[int, ...]:
        """How many steps each takes: a reader one for each row, one for each writer, which may put a row
        before it once more, and one to the end; a writer one for each statement, and its commit.
        """
        rows = sum(_rows(one) for one in self.init)
        reading = (rows * len(statements_of(one)) + len(self.writers) + 1 for one in self.readers)
        return (*(len(statements_of(one)) + 1 for one in self.writers), *reading)

    @property
    def size(self) -> int:
        """How many schedules there are."""
        return _orders(self.stops)

    def place(self, order: Sequence[int]) -> int:
        """Which of them one is, from 1: those in which an earlier transaction goes first come first."""
        place, left = 1, list(self.stops)
        for k in order:
            for other in range(k):
                if left[other]:
                    place += _orders([n - (i == other) for i, n in enumerate(left)])
            left[k] -= 1
        return place

    def steps(self, k: int, first: int, last: int) -> Iterator[Step]:
        """The steps of one of them that come one after another, by number; of a reader only the last."""
        name, ends = self.names[k], last == self.stops[k]
        if k >= len(self.writers):
            yield Step(name, "both") if ends else Step(name, "step", last)
        elif ends and first == 1:
            yield Step(name, "both")
        else:
            yield from (Step(name, "statement", n) for n in range(first, last + 1 - ends))
            yield from (Step(name, "commit"),) * ends


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A candidate: transactions, and whose step comes when, by their numbers."""

    cast: Cast
    order: tuple[int, ...]

    def litmus(self, name: str = "", title: str = "", source: str = "") -> Litmus:
        """It as a litmus test."""
        cast = self.cast
        texts = (*cast.writers, *cast.readers)
        blocks = [t if isinstance(t, Block) else Block(t.sql, (t,), single=True) for t in texts]
        readers = cast.names[len(cast.writers) :]
        clients = {reader: Client(scan=cast.scope.scan) for reader in readers if cast.scope.scan}
        return Litmus(
            name, title, source, cast.scope.tables, cast.init, dict(zip(cast.names, blocks, strict=True)),
            Schedule(tuple(self._steps())), clients=clients, format=cast.scope.format,
        )  # fmt: skip

    def _steps(self) -> Iterator[Step]:
        taken = dict.fromkeys(self.order, 0)
        for k, group in groupby(self.order):
            first = taken[k] + 1
            taken[k] += len(list(group))
            yield from self.cast.steps(k, first, taken[k])


def casts(scope: Scope, transactions: int) -> Iterator[Cast]:
    """The transactions of every candidate with so many of them, fewest writers first."""
    for writers in range(1, transactions + 1):
        if writers < transactions and not scope.readers:
            continue
        for init in scope.inits:
            for chosen in product(range(len(scope.statements)), repeat=writers):
                some = tuple(scope.statements[k][at] for at, k in enumerate(chosen))
                for readers in combinations_with_replacement(scope.readers, transactions - writers):
                    yield Cast(scope, init, some, readers)


def _orders(stops: Sequence[int]) -> int:
    """How many orders there are of so many steps of each."""
    return factorial(sum(stops)) // prod(map(factorial, stops))


def _rows(statement: Statement) -> int:
    """How many rows an init statement puts in."""
    query = getattr(statement, "query", ())
    return sum(len(getattr(branch, "rows", ())) for branch in query)
