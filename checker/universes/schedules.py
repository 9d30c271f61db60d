"""The universe of schedules, where transactions wait: all orders of steps, counted exactly.

Where transactions wait for each other, what is searched is schedules: all of some transactions,
step by step.

A candidate is an initial table, writers, readers, and an order of their steps. A reader stops at
each entry that its scans come to, and after the last commits; a writer stops after each statement,
then commits. Those in which somebody waits are steps of others at other moments, and are looked at
as they come. Fewest transactions first, then the order of the scope; the same scope gives the same
order.

All orders in which several go on, step by step: what comes of them, counted exactly.

Orders that lead to one state go on alike and are followed once. Nothing is copied: a state is
reached by going there again from the start, but for the last way on, which goes on from where it
is.

All orders of the steps of some transactions under some protocols, and what each comes to, counted
exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement, groupby, product
from math import factorial, prod
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from isolitmus.model.litmus import ClientSettings, Litmus
from isolitmus.model.schedule import Schedule, Step
from isolitmus.model.sql.statement import Block, statements_of
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from isolitmus.model.execution import Execution
    from isolitmus.model.format import Stepwise
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.statement import Statement

__all__ = [
    "Cast",
    "CountedOrders",
    "Orders",
    "ScheduledCandidate",
    "Walk",
    "casts",
    "earlier_way",
    "judged_orders",
]


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
        """How many steps each takes: a reader one for each row, one for each writer, which may put
        a row before it once more, and one to the end; a writer one for each statement, and its
        commit.
        """
        rows = sum(_rows(one) for one in self.init)
        reading = (rows * len(statements_of(one)) + len(self.writers) + 1 for one in self.readers)
        return (*(len(statements_of(one)) + 1 for one in self.writers), *reading)

    @property
    def size(self) -> int:
        """How many schedules there are."""
        return _orders(self.stops)

    def place(self, order: Sequence[int]) -> int:
        """Which of them one is, from 1: those in which an earlier transaction goes first come
        first.
        """
        place, left = 1, list(self.stops)
        for k in order:
            for other in range(k):
                if left[other]:
                    place += _orders([n - (i == other) for i, n in enumerate(left)])
            left[k] -= 1
        return place

    def steps(self, k: int, first: int, last: int) -> Iterator[Step]:
        """The steps of one of them that come one after another, by number; of a reader only the
        last.
        """
        name, ends = self.names[k], last == self.stops[k]
        if k >= len(self.writers):
            yield Step(name, "both") if ends else Step(name, "step", last)
        elif ends and first == 1:
            yield Step(name, "both")
        else:
            yield from (Step(name, "statement", n) for n in range(first, last + 1 - ends))
            yield from (Step(name, "commit"),) * ends


@dataclass(frozen=True, slots=True)
class ScheduledCandidate:
    """A candidate: transactions, and whose step comes when, by their numbers."""

    cast: Cast
    order: tuple[int, ...]

    def litmus(self, name: str = "", title: str = "", source: str = "") -> Litmus:
        """It as a litmus test."""
        cast = self.cast
        texts = (*cast.writers, *cast.readers)
        blocks = [t if isinstance(t, Block) else Block(t.sql, (t,), single=True) for t in texts]
        readers = cast.names[len(cast.writers) :]
        clients = {
            reader: ClientSettings(scan=cast.scope.scan) for reader in readers if cast.scope.scan
        }
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


Turn = TypeVar("Turn")
"""Whose step it is."""


class Walk(Protocol[Turn]):
    """Several that are under way."""

    def able(self) -> Sequence[Turn]:
        """Those that can go on, in the order in which they are tried."""

    def go(self, turn: Turn, /) -> None:
        """One of them takes its next step."""

    def state(self) -> Hashable:
        """All that what comes of it depends on from here on."""


AnyWalk = TypeVar("AnyWalk", bound=Walk)  # type: ignore[type-arg]
End = TypeVar("End")


class CountedOrders(NamedTuple, Generic[Turn]):
    """Orders that come to one end: how many there are, and one of them."""

    number: int
    path: tuple[Turn, ...]


def earlier_way(_one: tuple[Turn, ...], _other: tuple[Turn, ...]) -> bool:
    """Of two ways to one end the one is kept that was gone first."""
    return False


class Orders(Generic[AnyWalk, Turn, End]):
    """All orders of the steps of a walk; ``better``: which of two ways to one end is kept (by
    default the first); ``check`` is called at each state, and may end it.

    >>> class Queue:
    ...     def __init__(self): self.said = ""
    ...     def able(self): return [one for one in "ab" if self.said.count(one) < "aab".count(one)]
    ...     def go(self, one): self.said += one
    ...     def state(self): return "".join(sorted(self.said)), self.said[-1:]
    >>> Orders(Queue, lambda walk: walk.said[-1]).ends()
    {'b': CountedOrders(number=1, path=('a', 'a', 'b')), 'a': CountedOrders(number=2, path=('a', 'b', 'a'))}
    """

    def __init__(
        self,
        start: Callable[[], AnyWalk],
        end: Callable[[AnyWalk], End],
        *,
        better: Callable[[tuple[Turn, ...], tuple[Turn, ...]], bool] = earlier_way,
        check: Callable[[int], None] = lambda _states: None,
    ) -> None:
        self.start, self.end, self.better, self.check = start, end, better, check
        self.known: dict[Hashable, dict[End, CountedOrders[Turn]]] = {}

    def ends(self) -> dict[End, CountedOrders[Turn]]:
        """What comes of them, in the order in which it was found."""
        return self._from((), self.start())

    def walk(self, path: Sequence[Turn]) -> AnyWalk:
        """A walk after some steps."""
        walk = self.start()
        for turn in path:
            walk.go(turn)
        return walk

    def _from(self, path: tuple[Turn, ...], walk: AnyWalk) -> dict[End, CountedOrders[Turn]]:
        state = walk.state()
        if state in self.known:
            return self.known[state]
        self.check(len(self.known))
        able: Sequence[Turn] = walk.able()
        found: dict[End, CountedOrders[Turn]] = {}
        if not able:
            found[self.end(walk)] = CountedOrders(1, ())
        for k, turn in enumerate(able, 1):
            on = walk if k == len(able) else self.walk(path)
            on.go(turn)
            for end, rest in self._from((*path, turn), on).items():
                longer = (turn, *rest.path)
                there = found.get(end)
                if there is None:
                    found[end] = CountedOrders(rest.number, longer)
                else:
                    kept = longer if self.better(longer, there.path) else there.path
                    found[end] = CountedOrders(there.number + rest.number, kept)
        self.known[state] = found
        return found


Judgement = TypeVar("Judgement")


def judged_orders(
    cast: Cast,
    protocols: Sequence[Spec | None],
    judge: Callable[[Litmus, Sequence[Execution]], Judgement],
    check: Callable[[], None],
) -> dict[Judgement | None, CountedOrders[int]]:
    """What all orders come to: what ``judge`` says of their executions, one under each protocol
    (None: nobody locks what is read), with how many orders there are of it, and the first of them.
    Of None are those in which a reader would stop once more after its end, under one of these and
    if nobody locks as well: without that stop it is another order.
    """
    litmus = ScheduledCandidate(
        cast, tuple(k for k, n in enumerate(cast.stops) for _ in range(n))
    ).litmus()
    form = format_named(litmus.format)
    assert form.stepwise is not None
    begins = [form.stepwise(litmus, protocol) for protocol in (*protocols, None)]

    def end(walk: _CastWalk) -> Judgement | None:
        return None if walk.beyond else judge(litmus, [one.done() for one in walk.under])

    orders: Orders[_CastWalk, int, Judgement | None] = Orders(
        lambda: _CastWalk(cast, [begin() for begin in begins]), end, check=lambda _states: check()
    )
    return orders.ends()


class _CastWalk:
    """Transactions under way under some protocols, and under none (``orders.Walk``)."""

    def __init__(self, cast: Cast, walks: Sequence[Stepwise]) -> None:
        self.cast, self.walks = cast, walks
        self.taken = [0] * len(cast.stops)
        self.turn, self.first = 0, 1
        """Whose turn it is, and the first of his steps that are not carried out before it is
        another's.
        """

    @property
    def under(self) -> Sequence[Stepwise]:
        """Those under the protocols."""
        return self.walks[:-1]

    @property
    def beyond(self) -> bool:
        """Whether a reader has stopped after its end."""
        return bool(self.walks[-1].beyond) and any(walk.beyond for walk in self.under)

    def able(self) -> list[int]:
        """Those who have steps left."""
        return [k for k, stops in enumerate(self.cast.stops) if self.taken[k] < stops]

    def go(self, k: int) -> None:
        """The next step of one of them."""
        if k != self.turn:
            self._carry_out()
            self.turn, self.first = k, self.taken[k] + 1
        self.taken[k] += 1
        if not self.able():
            self._carry_out()

    def coming(self) -> list[Step]:
        """The steps that are not carried out before it is another's turn."""
        last = self.taken[self.turn]
        return list(self.cast.steps(self.turn, self.first, last)) if last >= self.first else []

    def _carry_out(self) -> None:
        for step in () if self.beyond else self.coming():  # beyond, it is no candidate any more
            for walk in self.walks:
                walk.take(step)

    def state(self) -> Hashable:
        """All that what comes of it depends on from here on."""
        if self.beyond:
            return tuple(self.taken)
        *under, free = self.walks
        return (
            tuple(self.taken),
            tuple(self.coming()),
            *((bool(walk.beyond), walk.state(judged=True)) for walk in under),
            (bool(free.beyond), free.state(judged=False)),
        )
