"""Search space of schedules, for engines whose transactions wait: all orders of steps, counted.

A candidate is an initial table, writers, readers, and an order of their steps. A reader stops at
each entry that its scans come to, and after the last commits; a writer stops after each statement,
then commits. A schedule in which a transaction waits equals one with these steps at other times; it
is examined where it occurs. Fewest transactions come first, then the order of the scope; the same
scope gives the same order.

`Orders` follows orders that lead to one state only once and counts them exactly. States are not
copied: a state is reached by replaying from the start, except that the last branch continues in
place.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement, groupby, product
from math import factorial, prod
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from hypothesis import strategies as st

from isolitmus.model.litmus import ClientSettings, Litmus
from isolitmus.model.schedule import Schedule, Step
from isolitmus.model.sql.statement import Block, statements_of
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence

    from isolitmus.model.execution import Execution
    from isolitmus.model.format import Stepwise
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.statement import Statement


@dataclass(frozen=True, slots=True)
class Cast:
    """Initial table and the transactions on it: writers, then readers."""

    scope: Scope
    init: tuple[Statement, ...]
    writers: tuple[Statement, ...]
    readers: tuple[Statement, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the transactions."""
        of = (("write", self.writers), ("read", self.readers))
        return tuple(
            name if len(some) == 1 else f"{name}{k}"
            for name, some in of
            for k in range(1, len(some) + 1)
        )

    @property
    def stops(self) -> tuple[int, ...]:
        """Number of steps of each transaction.

        A writer takes one per statement, and one for its commit. A reader takes one per row and
        statement, one per writer, which may put a row before it again, and one for its end.
        """
        rows = sum(_rows(one) for one in self.init)
        reading = (rows * len(statements_of(one)) + len(self.writers) + 1 for one in self.readers)
        return (*(len(statements_of(one)) + 1 for one in self.writers), *reading)

    @property
    def size(self) -> int:
        """Number of schedules."""
        return _orders(self.stops)

    def place(self, order: Sequence[int]) -> int:
        """Return the position of an order among all, from 1.

        Orders in which an earlier transaction goes first come first.
        """
        place, left = 1, list(self.stops)
        for k in order:
            for other in range(k):
                if left[other]:
                    place += _orders([n - (i == other) for i, n in enumerate(left)])
            left[k] -= 1
        return place

    def steps(self, k: int, first: int, last: int) -> Iterator[Step]:
        """Yield the steps of transaction k from number ``first`` to ``last``, without a break.

        Of a reader, only the last one is yielded.
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
    """Candidate: a cast, and the transaction of each step, by number."""

    cast: Cast
    order: tuple[int, ...]

    def litmus(self, name: str = "", title: str = "", source: str = "") -> Litmus:
        """Return the candidate as a litmus test."""
        cast = self.cast
        texts = (*cast.writers, *cast.readers)
        blocks = [t if isinstance(t, Block) else Block(t.sql, (t,), single=True) for t in texts]
        readers = cast.names[len(cast.writers) :]
        clients = {
            reader: ClientSettings(scan=cast.scope.scan) for reader in readers if cast.scope.scan
        }
        return Litmus(
            name, title, source, cast.scope.tables, cast.init,
            dict(zip(cast.names, blocks, strict=True)),
            Schedule(tuple(self._steps())), clients=clients, format=cast.scope.format,
        )  # fmt: skip

    def _steps(self) -> Iterator[Step]:
        """Yield the steps, with adjacent ones of one transaction together."""
        taken = dict.fromkeys(self.order, 0)
        for k, group in groupby(self.order):
            first = taken[k] + 1
            taken[k] += len(list(group))
            yield from self.cast.steps(k, first, taken[k])


def casts(scope: Scope, transactions: int) -> Iterator[Cast]:
    """Yield the casts with this number of transactions, fewest writers first."""
    for writers in range(1, transactions + 1):
        if writers < transactions and not scope.readers:
            continue
        for init in scope.inits:
            for chosen in product(range(len(scope.statements)), repeat=writers):
                some = tuple(scope.statements[k][at] for at, k in enumerate(chosen))
                for readers in combinations_with_replacement(scope.readers, transactions - writers):
                    yield Cast(scope, init, some, readers)


def _orders(stops: Sequence[int]) -> int:
    """Return the number of interleavings of sequences of these lengths."""
    return factorial(sum(stops)) // prod(map(factorial, stops))


def _rows(statement: Statement) -> int:
    """Return the number of rows that an init statement inserts."""
    query = getattr(statement, "query", ())
    return sum(len(getattr(branch, "rows", ())) for branch in query)


Turn = TypeVar("Turn")
"""Transaction, or other process, whose step it is."""


class Walk(Protocol[Turn]):
    """State machine of several processes."""

    def able(self) -> Sequence[Turn]:
        """Return the processes that can go on, in the order in which they are tried."""

    def go(self, turn: Turn, /) -> None:
        """Execute the next step of a process."""

    def state(self) -> Hashable:
        """Return a key of the state: all that the future depends on."""


AnyWalk = TypeVar("AnyWalk", bound=Walk)  # type: ignore[type-arg]
End = TypeVar("End")


class CountedOrders(NamedTuple, Generic[Turn]):
    """Number of orders with one result, and one of them."""

    number: int
    path: tuple[Turn, ...]


def earlier_way(_one: tuple[Turn, ...], _other: tuple[Turn, ...]) -> bool:
    """Return False: of two orders with one result, keep the first one."""
    return False


class Orders(Generic[AnyWalk, Turn, End]):
    """Exhaustive exploration of the orders of the steps of a walk.

    Parameters
    ----------
    start : callable
        Returns a new walk.
    end : callable
        Returns the result of a finished walk; it must be hashable.
    better : callable
        Whether the first of two orders with one result is kept instead of the second, which was
        found earlier (default: never).
    check : callable
        Called at each new state with the number of known states; it may raise to end the
        exploration.

    Examples
    --------
    >>> class Queue:
    ...     def __init__(self): self.said = ""
    ...     def able(self): return [one for one in "ab" if self.said.count(one) < "aab".count(one)]
    ...     def go(self, one): self.said += one
    ...     def state(self): return "".join(sorted(self.said)), self.said[-1:]
    >>> ends = Orders(Queue, lambda walk: walk.said[-1]).ends()
    >>> ends["b"]
    CountedOrders(number=1, path=('a', 'a', 'b'))
    >>> ends["a"]
    CountedOrders(number=2, path=('a', 'b', 'a'))
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
        """Return the number of orders by result, in the order in which results were found."""
        return self._from((), self.start())

    def walk(self, path: Sequence[Turn]) -> AnyWalk:
        """Return a walk after some steps."""
        walk = self.start()
        for turn in path:
            walk.go(turn)
        return walk

    def _from(self, path: tuple[Turn, ...], walk: AnyWalk) -> dict[End, CountedOrders[Turn]]:
        """Return the results after a path, each with its number of orders and the kept order."""
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
    """Return the judgements of all schedules of a cast, with the number of schedules of each.

    Key None are the schedules in which a reader would stop again after its end, under one of the
    protocols and also without locks: without that stop it is another schedule.

    Parameters
    ----------
    cast : Cast
        Transactions.
    protocols : sequence of Spec or None
        Protocols to execute under; None: no reads are locked.
    judge : callable
        Maps a litmus test and its executions, one per protocol, to a hashable judgement.
    check : callable
        Called at each new state; it may raise to end the exploration.
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
    """Transactions under way under some protocols, and without locks (a `Walk`)."""

    def __init__(self, cast: Cast, walks: Sequence[Stepwise]) -> None:
        self.cast, self.walks = cast, walks
        self.taken = [0] * len(cast.stops)
        self.turn, self.first = 0, 1
        """Transaction whose turn it is, and its first step that is not yet executed."""

    @property
    def under(self) -> Sequence[Stepwise]:
        """Walks under the protocols."""
        return self.walks[:-1]

    @property
    def beyond(self) -> bool:
        """True if a reader has stopped after its end."""
        return bool(self.walks[-1].beyond) and any(walk.beyond for walk in self.under)

    def able(self) -> list[int]:
        """Return the transactions that have steps left."""
        return [k for k, stops in enumerate(self.cast.stops) if self.taken[k] < stops]

    def go(self, k: int) -> None:
        """Take the next step of a transaction."""
        if k != self.turn:
            self._carry_out()
            self.turn, self.first = k, self.taken[k] + 1
        self.taken[k] += 1
        if not self.able():
            self._carry_out()

    def coming(self) -> list[Step]:
        """Return the steps of the current turn that are not yet executed."""
        last = self.taken[self.turn]
        return list(self.cast.steps(self.turn, self.first, last)) if last >= self.first else []

    def _carry_out(self) -> None:
        # Steps beyond the end of a reader are not executed: the schedule is no candidate.
        for step in () if self.beyond else self.coming():
            for walk in self.walks:
                walk.take(step)

    def state(self) -> Hashable:
        """Return a key of the state: all that the future depends on."""
        if self.beyond:
            return tuple(self.taken)
        *under, free = self.walks
        return (
            tuple(self.taken),
            tuple(self.coming()),
            *((bool(walk.beyond), walk.state(judged=True)) for walk in under),
            (bool(free.beyond), free.state(judged=False)),
        )


class Times(NamedTuple):
    """Start of a transaction, its duration, and how long before it its client reads.

    ``early`` 0: it reads just before.
    """

    start: int
    long: int
    early: int = 0

    @property
    def end(self) -> int:
        """Commit time."""
        return self.start + self.long


TIMES = st.builds(Times, st.integers(0, 5), st.integers(0, 5), st.just(0))


def session_queues(
    names: Sequence[str], sessions: Mapping[str, str], asking: Collection[str] = ()
) -> dict[str, list[Step]]:
    """Return the steps of each session, or of each transaction without a session.

    Transactions in ``asking`` have a "before" step.
    """
    found: dict[str, list[Step]] = {}
    for name in names:
        queue = found.setdefault(sessions.get(name, f"of {name}"), [])
        queue += [Step(name, "before")] * (name in asking)
        queue += [Step(name, "start"), Step(name, "commit")]
    return found


def schedule_at(times: Mapping[str, Times], sessions: Mapping[str, str]) -> Schedule:
    """Return the schedule of transactions with these times; a session executes one after another.

    Examples
    --------
    >>> print(schedule_at({"a": Times(0, 2), "b": Times(1, 0), "c": Times(1, 0)}, {}))
    a.start b.start b.commit c.start c.commit a.commit
    >>> print(schedule_at({"a": Times(1, 2, early=1), "b": Times(0, 0)}, {}))
    a.before b.start b.commit a.start a.commit
    """
    steps = session_queues(list(times), sessions, [name for name, t in times.items() if t.early])
    moments = [
        (when, k, sessions.get(name, f"of {name}"))
        for k, (name, t) in enumerate(times.items())
        for when in (*[t.start - t.early] * bool(t.early), t.start, t.end)
    ]
    return Schedule(tuple(steps[key].pop(0) for _, _, key in sorted(moments)))
