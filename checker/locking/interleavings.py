"""All interleavings of the steps of a litmus test: what can come out of them, counted exactly.

A step is one of the schedule's ``x.step[n]``: a scan comes to an entry or to its end, a statement
ends; a transaction of one statement commits with its last one. The schedule of the test is not
looked at. Interleavings that lead to one state go on alike and are followed once
(``checker.universes.schedules``). To give one lock back and to ask for the next is one step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

from isolitmus.checker.locking.events import DEADLOCK
from isolitmus.checker.locking.final_state import FinalStates, SerialFinalStates
from isolitmus.checker.locking.step_orders import count_switches, free_walks
from isolitmus.checker.universes.schedules import Orders
from isolitmus.model.display import TextResult
from isolitmus.model.errors import Disagreement, IsolitmusError
from isolitmus.model.records import Records, Tabular
from isolitmus.specs.files.catalogue import protocol as named_protocol
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from isolitmus.checker.locking.final_state import FinalState
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.schedule import Schedule
    from isolitmus.specs.files.spec_catalogue import SpecLike

__all__ = ["MOST", "CountedEnd", "Interleavings", "count_interleavings"]

MOST = 6
"""The most transactions that are interleaved: 720 serial orders."""
STATES = 200_000
"""The most states that are followed."""


@dataclass(frozen=True, slots=True)
class CountedEnd:
    """An end, and the interleavings that lead to it."""

    end: FinalState
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
    """Of a result of no point in time: whether some serial order has a version with it. None: there
    is none.
    """

    @property
    def timeless(self) -> bool:
        """Whether a query gave what the tables had at no time while it ran."""
        return any(told.timely is False for told in self.end.told)

    @property
    def deadlocked(self) -> bool:
        """Whether some waited for each other, and one had to end."""
        return any(told.outcome == DEADLOCK for told in self.end.told)


@dataclass(frozen=True, slots=True, repr=False)
class Interleavings(TextResult, Tabular):
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
        """How many there are, how many are like no serial order, and how many of each break a
        postcondition; ``serial``: how many serial orders do.
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


def count_interleavings(litmus: Litmus, protocol: SpecLike) -> Interleavings:
    """Follow all interleavings of the steps of a litmus test, and say what comes out of them.

    Each outcome is compared with every serial order of the transactions that committed, by the
    tables, the rows that were read and the numbers of rows that were changed; these orders are
    carried out by DuckDB as well. Its schedule is carried out once more, as any other is.
    IsolitmusError for a test of a format without steps, or of more than MOST transactions;
    Disagreement if two that must agree do not.

    >>> from isolitmus.specs import litmus, protocol
    >>> done = count_interleavings(litmus("quiz-two-workers"), protocol("locking-read-committed-table"))
    >>> [outcome.breaks for outcome in done.wrong]
    []
    """
    start = monotonic()
    protocol = named_protocol(protocol)
    if not format_named(litmus.format).steps:
        raise IsolitmusError(
            f"{litmus.name} is of format {litmus.format}, whose transactions have no steps that"
            " could be interleaved"
        )
    if len(litmus.transactions) > MOST:
        raise IsolitmusError(
            f"{litmus.name} has {len(litmus.transactions)} transactions; at most {MOST} are"
            " interleaved"
        )
    ends, serial = FinalStates(litmus), SerialFinalStates(litmus)
    orders = Orders(
        free_walks(litmus, protocol, ends), ends.of, better=_steadier, check=_within(litmus)
    )
    outcomes = []
    for end, ways in orders.ends().items():
        schedule = orders.walk(ways.path).schedule
        again = orders.walk(())
        again.litmus = replace(litmus, schedule=schedule)
        again.execution()
        if ends.of(again) != end:
            raise Disagreement(
                f"{litmus.name} under {protocol.name}: '{schedule}' does not lead where its"
                " interleaving did"
            )
        outcomes.append(
            CountedEnd(end, ways.number, schedule, serial.orders(end), serial.breaks(end), serial.plausible(end))
        )  # fmt: skip
    outcomes.sort(key=lambda outcome: -outcome.number)
    return Interleavings(
        litmus, protocol.name, tuple(outcomes), len(orders.known), serial.alone(), monotonic() - start
    )  # fmt: skip


def _steadier(path: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether a way changes less often from one transaction to another."""
    return count_switches(path) < count_switches(other)


def _within(litmus: Litmus) -> Callable[[int], None]:
    """What ends it where there are too many states."""

    def check(states: int) -> None:
        if states >= STATES:
            raise IsolitmusError(
                f"{litmus.name}: its interleavings lead to more than {STATES:,} states; take fewer"
                " rows or transactions"
            )

    return check
