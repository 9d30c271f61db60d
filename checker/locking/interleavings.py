"""All interleavings of the steps of a litmus test: what can come out of them, counted exactly.

A step is one of the schedule's ``x.step[n]``: a scan comes to an entry or to its end, a statement ends; a transaction
of one statement commits with its last one. The schedule of the test is not looked at. Interleavings that lead to one
state go on alike and are followed once: a state is the rows with their versions, who holds which locks and waits for
which, and what each transaction was shown so far, on which alone depends what it does next. To give one lock back and
to ask for the next is one step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import permutations
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.locking.carrying import LitmusUnderWay, by_itself
from isolitmus.checker.locking.duck import DuckTexts
from isolitmus.checker.locking.events import DEADLOCK, Scanned
from isolitmus.checker.locking.rules import rules_of
from isolitmus.checker.locking.scans import Hit
from isolitmus.checker.running.execute import stages
from isolitmus.checker.running.postconditions import Postconditions, rows_left
from isolitmus.checker.running.serial import Disagreement, ModelExecutor
from isolitmus.checker.worded import Worded
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.records import Records, Tabular
from isolitmus.model.run import ROLLED_BACK
from isolitmus.model.schedule import Schedule, Step
from isolitmus.model.statement import Read, statements_of
from isolitmus.model.values import sort_rows
from isolitmus.specs.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from isolitmus.checker.locking.carrying import SessionUnderWay
    from isolitmus.checker.running.postconditions import Written
    from isolitmus.model.execution import Database, Event
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import Spec
    from isolitmus.model.values import Rows

__all__ = ["MOST", "CountedEnd", "End", "Interleavings", "Search", "Told", "interleavings"]

MOST = 6
"""The most transactions that are interleaved: 720 serial orders."""
DATED = ("statement", "transaction")
"""What is seen as of a time."""
STATES = 200_000
"""The most states that are followed."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the client of a transaction is told."""

    name: str
    """The transaction."""
    outcome: str
    """How it ended."""
    rows: Rows | None
    """What its queries have given; None: it has none."""
    changed: int
    """How many rows it changed."""
    timely: bool | None = None
    """Of a query alone: whether the tables had its result at some time while it ran. None: it is none."""


@dataclass(frozen=True, slots=True)
class End:
    """What there is to see when all is over."""

    tables: tuple[tuple[str, Rows], ...]
    """The tables."""
    told: tuple[Told, ...]
    """What each client was told."""
    written: Written
    """What each transaction that committed left of the rows that it wrote."""


@dataclass(frozen=True, slots=True)
class CountedEnd:
    """An end, and the interleavings that lead to it."""

    end: End
    """What there is to see."""
    number: int
    """How many interleavings lead there."""
    schedule: Schedule
    """One of them that changes seldom from one transaction to another."""
    serial: tuple[str, ...]
    """The serial orders of the transactions that committed after which nobody sees a difference."""
    breaks: tuple[str, ...]
    """The postconditions that it breaks."""
    plausible: bool | None
    """Of a result of no point in time: whether some serial order has a version with it. None: there is none."""

    @property
    def timeless(self) -> bool:
        """Whether a query gave what the tables had at no time while it ran."""
        return any(told.timely is False for told in self.end.told)

    @property
    def deadlocked(self) -> bool:
        """Whether some waited for each other, and one had to end."""
        return any(told.outcome == DEADLOCK for told in self.end.told)


@dataclass(frozen=True, slots=True, repr=False)
class Interleavings(Worded, Tabular):
    """What comes out of all interleavings of a litmus test's steps under a protocol."""

    litmus: Litmus
    """The test."""
    protocol: str
    """The name of the protocol."""
    outcomes: tuple[CountedEnd, ...]
    """What comes out, the most frequent first."""
    states: int
    """How many states were followed."""
    alone: Mapping[str, tuple[str, ...]]
    """The postconditions that each serial order of all transactions breaks."""
    seconds: float
    """What it took."""

    @property
    def number(self) -> int:
        """How many interleavings there are."""
        return sum(outcome.number for outcome in self.outcomes)

    @property
    def wrong(self) -> tuple[CountedEnd, ...]:
        """The outcomes that no serial order has."""
        return tuple(outcome for outcome in self.outcomes if not outcome.serial)

    def breaking(self, name: str) -> tuple[CountedEnd, ...]:
        """The outcomes that break a postcondition."""
        return tuple(outcome for outcome in self.outcomes if name in outcome.breaks)

    def test(self, outcome: CountedEnd) -> Litmus:
        """The litmus test whose schedule leads to an outcome."""
        return replace(self.litmus, schedule=outcome.schedule, expect={})

    @property
    def figures(self) -> dict[str, int]:
        """How many there are, how many are like no serial order, and how many of each break a postcondition; ``serial``:
        how many serial orders do.
        """

        def count(which: Iterable[CountedEnd]) -> int:
            return sum(each.number for each in which)

        found = {
            "interleavings": self.number,
            "wrong": count(self.wrong),
            "timeless": count(o for o in self.outcomes if o.timeless),
            "plausible": count(o for o in self.outcomes if o.plausible),
            "deadlocks": count(o for o in self.outcomes if o.deadlocked),
        }
        for name in self.litmus.postconditions:
            found[f"wrong.{name}"] = count(o for o in self.wrong if name in o.breaks)
            found[f"breaks.{name}"] = count(self.breaking(name))
            found[f"serial.{name}"] = sum(name in broken for broken in self.alone.values())
        return found

    @property
    def records(self) -> Records:
        """What comes out, a row each."""
        return Records(
            ("litmus", "protocol", "interleavings", "serial", "breaks", "schedule"),
            tuple(
                (self.litmus.name, self.protocol, o.number, "; ".join(o.serial), " ".join(o.breaks), str(o.schedule))
                for o in self.outcomes
            ),
        )  # fmt: skip

    def to_json(self) -> dict[str, object]:
        """The counts as docs/interface.md, 6, has them."""
        return {
            "litmus": self.litmus.name,
            "protocol": self.protocol,
            "interleavings": self.number,
            "states": self.states,
            "wrong": sum(outcome.number for outcome in self.wrong),
            "breaks": {
                name: sum(outcome.number for outcome in self.breaking(name))
                for name in self.litmus.postconditions
            },
            "serial": {order: list(broken) for order, broken in self.alone.items()},
            "timeless": sum(o.number for o in self.outcomes if o.timeless),
            "plausible": sum(o.number for o in self.outcomes if o.plausible),
            "outcomes": [
                {
                    "interleavings": outcome.number,
                    "serial": list(outcome.serial),
                    "breaks": list(outcome.breaks),
                    "schedule": str(outcome.schedule),
                }
                for outcome in self.outcomes
            ],
            "seconds": round(self.seconds, 3),
        }


def interleavings(litmus: Litmus, protocol: Spec) -> Interleavings:
    """Follow all interleavings of the steps of a litmus test, and say what comes out of them.

    Each outcome is compared with every serial order of the transactions that committed, by the tables, the rows that
    were read and the numbers of rows that were changed; these orders are carried out by DuckDB as well. Its schedule is
    carried out once more, as any other is. IsolitmusError for a test of a format without steps, or of more than MOST
    transactions; Disagreement if two that must agree do not.

    >>> from isolitmus.specs import litmus, protocol
    >>> done = interleavings(litmus("quiz-two-workers"), protocol("locking-read-committed-table"))
    >>> [outcome.breaks for outcome in done.wrong]
    []
    """
    start = monotonic()
    if not format_named(litmus.format).steps:
        raise IsolitmusError(
            f"{litmus.name} is of format {litmus.format}, whose transactions have no steps that could be interleaved"
        )
    if len(litmus.transactions) > MOST:
        raise IsolitmusError(
            f"{litmus.name} has {len(litmus.transactions)} transactions; at most {MOST} are interleaved"
        )
    search = Search(litmus, protocol)
    found = search.ends()
    judge = _Judge(litmus)
    outcomes = []
    for end, paths in found.items():
        schedule = _schedule(search.walk(paths.path))
        again = search.walk(())
        again.litmus = replace(litmus, schedule=schedule)
        again.execution()
        if search.end(again) != end:
            raise Disagreement(
                f"{litmus.name} under {protocol.name}: '{schedule}' does not lead where its interleaving did"
            )
        outcomes.append(
            CountedEnd(end, paths.number, schedule, judge.serial(end), judge.breaks(end), judge.plausible(end))
        )  # fmt: skip
    outcomes.sort(key=lambda outcome: -outcome.number)
    return Interleavings(
        litmus, protocol.name, tuple(outcomes), len(search.known), judge.alone(), monotonic() - start
    )  # fmt: skip


# Following them


class _Paths(NamedTuple):
    """Ways from a state to an end: how many there are, and one of few switches, as the names of who goes."""

    number: int
    switches: int
    path: tuple[str, ...]


class _Walk(LitmusUnderWay):
    """A litmus test under way by steps that are chosen one by one."""

    chosen: list[Step | str]
    """Who went, each with the step that it came to once it has come there."""

    def go(self, name: str) -> None:
        """A transaction's next step."""
        session = self.sessions[name]
        over = session.ran == len(session.statements)
        session.steps.append(
            Step(name, "commit") if over else Step(name, "step", len(session.came) + 1)
        )
        self.chosen.append(name)
        self.advance(session)
        self.wake()
        while single := next(filter(_through, self.sessions.values()), None):
            single.steps.append(Step(single.transaction.name, "commit"))
            self.advance(single)
            self.wake()
        for at, step in enumerate(self.chosen):
            if isinstance(step, str) and not self.sessions[step].steps:
                of = self.sessions[step]
                self.chosen[at] = (
                    Step(step, "both") if of.ended else Step(step, "step", len(of.came))
                )

    @property
    def dated(self) -> bool:
        """Whether snapshots are seen, so that it matters when what was committed."""
        return not {self.work.rules.see, self.work.rules.searched}.isdisjoint(DATED)

    def able(self) -> list[str]:
        """Those that can go on."""
        return [n for n, s in self.sessions.items() if not s.ended and s.wants is None]

    def state(self, end: Mapping[str, Told], *, versions: bool) -> object:
        """All that what comes next depends on."""
        store, locks = self.work.store, self.work.locks
        going = [s for s in self.sessions.values() if not s.ended]
        stored = [row for rows in store.rows.values() for row in rows]
        seen = {m for s in going for m in s.transaction.moments} if self.dated else set()
        moments = {v.committed for row in stored for v in row.versions if v.committed is not None}
        rank = {m: k for k, m in enumerate(sorted(moments | seen)) if self.dated}
        rows = tuple(
            (row.table, row.id, *((v.values, v.writer, v.committed is None, rank.get(v.committed or 0), v.undone is None) for v in row.versions))
            for row in stored
        )  # fmt: skip
        sessions = tuple(
            end[name]
            if session.ended
            else (
                session.wants,
                session.versions if versions else None,
                tuple(map(rank.get, session.transaction.moments)),
                tuple(map(_shown, session.came)),
            )
            for name, session in self.sessions.items()
        )
        past = tuple(map(_tables, self.states)) if versions else ()
        return rows, sessions, frozenset(locks.held.items()), tuple(locks.waiting), past


def _through(session: SessionUnderWay) -> bool:
    """Whether the one statement of a transaction is over, and it can commit."""
    over = session.ran == len(session.statements) == 1
    return over and not session.ended and session.wants is None and not session.steps


def _shown(step: object) -> object:
    """What a step has shown its transaction."""
    if isinstance(step, Hit):
        return step.row.id, next(k for k, v in enumerate(step.row.versions) if v is step.version)
    return step


class Search:
    """The states that interleavings lead to."""

    def __init__(self, litmus: Litmus, protocol: Spec) -> None:
        self.litmus, self.rules = litmus, rules_of(protocol)
        self.first = stages(format_named(litmus.format), litmus.tables, litmus.init)[-1]
        self.known: dict[object, dict[End, _Paths]] = {}
        self.queries = {
            name
            for name, one in litmus.transactions.items()
            if [type(part) for part in statements_of(one)] == [Read]
        }
        self._gives: dict[tuple[str, object], Rows | None] = {}

    def walk(self, path: tuple[str, ...]) -> _Walk:
        """The test after some steps."""
        walk = _Walk(self.litmus, self.first, self.rules)
        walk.chosen = []
        for name in path:
            walk.go(name)
        return walk

    def ends(self) -> dict[End, _Paths]:
        """All ends."""
        return self._from((), self.walk(()))

    def _from(self, path: tuple[str, ...], walk: _Walk) -> dict[End, _Paths]:
        state = walk.state(self.told(walk), versions=bool(self.queries))
        if state in self.known:
            return self.known[state]
        if len(self.known) >= STATES:
            raise IsolitmusError(
                f"{self.litmus.name}: its interleavings lead to more than {STATES:,} states; take fewer rows or transactions"
            )
        able = walk.able()
        found: dict[End, _Paths] = {}
        if not able:
            found[self.end(walk)] = _Paths(1, 0, ())
        for name in able:
            on = walk if name == able[-1] else self.walk(path)
            on.go(name)
            for end, rest in self._from((*path, name), on).items():
                there = found.get(end)
                switches = rest.switches + (rest.path[:1] not in ((), (name,)))
                number = rest.number + (there.number if there else 0)
                if there is None or switches < there.switches:
                    there = _Paths(number, switches, (name, *rest.path))
                found[end] = there._replace(number=number)
        self.known[state] = found
        return found

    def end(self, walk: LitmusUnderWay) -> End:
        """What there is to see at the end."""
        told = self.told(walk)
        return End(
            _tables(walk.states[-1]),
            tuple(told[name] for name in self.litmus.transactions),
            rows_left(event for event in walk.events if not event.aborted),
        )

    def told(self, walk: LitmusUnderWay) -> dict[str, Told]:
        """What clients were told by those that have ended."""
        return {event.name: self._told(event, walk) for event in walk.events}

    def _told(self, event: Event, walk: LitmusUnderWay) -> Told:
        done = event.effect
        assert isinstance(done, Scanned)
        if event.aborted:
            return Told(event.name, _outcome(event), None, 0)
        timely = None
        if event.name in self.queries and done.rows is not None:
            rows = tuple(sort_rows(done.rows))
            first, last = walk.sessions[event.name].versions or (0, 0)
            while_it_ran = walk.states[first : last + 1]
            timely = any(self.gives(event.name, state) == rows for state in while_it_ran)
        return _told(event.name, done, timely)

    def gives(self, name: str, state: Database) -> Rows | None:
        """What a query gives on tables."""
        key = name, _tables(state)
        if key not in self._gives:
            rows = by_itself(self.litmus, name, state, ()).rows
            self._gives[key] = None if rows is None else tuple(sort_rows(rows))
        return self._gives[key]


def _outcome(event: Event) -> str:
    """How a transaction ended that did not commit."""
    error = event.effect.error
    if error is not None and not event.conflict:
        return f"error:{error.exception}"
    return event.conflict or ROLLED_BACK


def _told(name: str, done: Scanned, timely: bool | None = None) -> Told:
    rows = None if done.rows is None else tuple(sort_rows(done.rows))
    return Told(name, "committed", rows, len(done.writes), timely)


def _tables(state: Database) -> tuple[tuple[str, Rows], ...]:
    return tuple((name, tuple(sort_rows(table.rows()))) for name, table in sorted(state.items()))


def _schedule(walk: _Walk) -> Schedule:
    """The schedule of the steps that were chosen, without those that another of the same transaction follows."""
    steps = [step for step in walk.chosen if isinstance(step, Step)]
    kept = [
        step
        for step, after in zip(steps, [*steps[1:], None], strict=True)
        if after is None or after.transaction != step.transaction
    ]
    return Schedule(tuple(kept))


# What serial orders give


class _Judge:
    """Ends beside serial orders and postconditions."""

    def __init__(self, litmus: Litmus) -> None:
        self.litmus = litmus
        self.model, self.duck = ModelExecutor(litmus), DuckTexts(litmus)
        self.postconditions = Postconditions(litmus)
        self._orders: dict[tuple[str, ...], End | None] = {}

    def serial(self, end: End) -> tuple[str, ...]:
        """The serial orders after which all is the same."""
        names = [told.name for told in end.told if told.outcome == "committed"]
        seen = end.tables, {_plain(told) for told in end.told if told.outcome == "committed"}
        return tuple(
            " ".join(order)
            for order in permutations(names)
            if (one := self.order(order)) is not None
            and (one.tables, set(map(_plain, one.told))) == seen
        )

    def order(self, names: tuple[str, ...]) -> End | None:
        """What there is to see after a serial order; None if one of it fails."""
        if names not in self._orders:
            self._orders[names] = self._order(names)
        return self._orders[names]

    def _order(self, names: tuple[str, ...]) -> End | None:
        state = self.model.state(names)
        end = None
        if state is not None:
            told, left = [], []
            for k, name in enumerate(names):
                done = self.model.effect(names[: k + 1])
                assert isinstance(done, Scanned)
                told.append(_told(name, done))
                left += [(w.table, name, w.after) for w in done.writes if w.after is not None]
            end = End(_tables(state), tuple(told), tuple(sorted(left, key=repr)))
        theirs = self.duck.told(names)
        ours = None if end is None else (end.tables, tuple((t.rows, t.changed) for t in end.told))
        if ours != theirs:
            raise Disagreement(
                f"{self.litmus.name}: the serial order '{' '.join(names)}' gives {ours} by the model and {theirs} by DuckDB"
            )
        return end

    def breaks(self, end: End) -> tuple[str, ...]:
        """The postconditions that an end breaks."""
        return tuple(self.postconditions.broken(dict(end.tables), end.written))

    def alone(self) -> dict[str, tuple[str, ...]]:
        """The postconditions that serial orders break."""
        orders = {order: self.order(order) for order in permutations(self.litmus.transactions)}
        return {" ".join(o): self.breaks(end) for o, end in orders.items() if end is not None}

    def plausible(self, end: End) -> bool | None:
        """Whether each result of no version of its run is that of a version of some serial order."""
        late = [told for told in end.told if told.timely is False]
        return None if not late else all(told.rows in self._results(told.name) for told in late)

    def _results(self, name: str) -> Iterator[Rows | None]:
        """What a query gives somewhere in the serial orders."""
        others = [other for other in self.litmus.transactions if other != name]
        for size in range(len(others) + 1):
            for before in permutations(others, size):
                end = self.order((*before, name))
                if end is not None:
                    yield end.told[-1].rows


def _plain(told: Told) -> tuple[str, Rows | None, int]:
    return told.name, told.rows, told.changed
