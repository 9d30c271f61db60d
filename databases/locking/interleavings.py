"""Exact count of the outcomes of all interleavings of the steps of a litmus test.

A step is one of the schedule's ``x.step[n]``: a scan reaches an entry or its end, or a statement
ends. A transaction of one statement commits together with its last step. Releasing one lock and
requesting the next is one step. The schedule of the test is ignored. Interleavings that lead to
the same state continue alike and are followed once (``checker.universes.schedules``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

from isolitmus.checker.universes.schedules import Orders
from isolitmus.databases.locking.events import DEADLOCK
from isolitmus.databases.locking.final_state import FinalStates, SerialFinalStates
from isolitmus.databases.locking.step_orders import count_switches, free_walks
from isolitmus.model.display import TextResult, count_of
from isolitmus.model.errors import Disagreement, IsolitmusError
from isolitmus.model.records import Records, Tabular
from isolitmus.specs.files.spec_catalogue import protocol as named_protocol
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from isolitmus.databases.locking.final_state import FinalState
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.schedule import Schedule
    from isolitmus.specs.files.spec_catalogue import SpecLike

MOST = 6
"""Maximal number of transactions that are interleaved; 6 have 720 serial orders."""
STATES = 200_000
"""Maximal number of explored states."""


@dataclass(frozen=True, slots=True)
class CountedEnd:
    """Final state, with the number of interleavings that lead to it."""

    end: FinalState
    number: int
    """Number of interleavings that lead to it."""
    schedule: Schedule
    """Schedule of one of them, with few switches between transactions."""
    serial: tuple[str, ...]
    """Serial orders of the committed transactions with an equal final state."""
    breaks: tuple[str, ...]
    """Violated postconditions."""
    plausible: bool | None
    """True if serial orders explain the query results that no moment explains.

    None if there are no such results.
    """

    @property
    def timeless(self) -> bool:
        """True if some query returned a result that the tables had at no moment while it ran."""
        return any(told.timely is False for told in self.end.told)

    @property
    def deadlocked(self) -> bool:
        """True if a deadlock aborted some transaction."""
        return any(told.outcome == DEADLOCK for told in self.end.told)


@dataclass(frozen=True, slots=True, repr=False)
class Interleavings(TextResult, Tabular):
    """Outcomes of all interleavings of a litmus test's steps under a protocol."""

    litmus: Litmus
    protocol: str
    """Name of the protocol."""
    outcomes: tuple[CountedEnd, ...]
    """Final states, the most frequent first."""
    states: int
    """Number of explored states."""
    alone: Mapping[str, tuple[str, ...]]
    """Postconditions violated by each serial order of all transactions."""
    seconds: float
    """Run time in seconds."""

    @property
    def number(self) -> int:
        """Total number of interleavings."""
        return sum(outcome.number for outcome in self.outcomes)

    @property
    def wrong(self) -> tuple[CountedEnd, ...]:
        """Outcomes that equal the final state of no serial order."""
        return tuple(outcome for outcome in self.outcomes if not outcome.serial)

    def breaking(self, name: str) -> tuple[CountedEnd, ...]:
        """Return the outcomes that violate a postcondition."""
        return tuple(outcome for outcome in self.outcomes if name in outcome.breaks)

    def test(self, outcome: CountedEnd) -> Litmus:
        """Return the litmus test with a schedule that leads to an outcome."""
        return replace(self.litmus, schedule=outcome.schedule, expect={})

    @property
    def figures(self) -> dict[str, int]:
        """Numbers of interleavings: all, wrong ones, and those that violate a postcondition.

        Keys ``serial.NAME`` count the serial orders that violate postcondition NAME.
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
        """Outcomes as a table, one row each."""
        return Records(
            ("litmus", "protocol", "interleavings", "serial", "breaks", "schedule"),
            tuple(
                (
                    self.litmus.name,
                    self.protocol,
                    o.number,
                    "; ".join(o.serial),
                    " ".join(o.breaks),
                    str(o.schedule),
                )
                for o in self.outcomes
            ),
        )

    def to_json(self) -> dict[str, object]:
        """Return the counts in the form of docs/interface.md, 6."""
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
    """Return the outcomes of all interleavings of the steps of a litmus test.

    Each outcome is compared with every serial order of the committed transactions: the tables, the
    query results and the numbers of changed rows. DuckDB executes these orders as well. The
    schedule of each outcome is executed again as an ordinary schedule.

    Parameters
    ----------
    litmus : Litmus
        Test of a format with steps, with at most `MOST` transactions.
    protocol : str, path or Spec
        Commit protocol.

    Raises
    ------
    IsolitmusError
        If the format has no steps, or the test has too many transactions or states.
    Disagreement
        If the model and DuckDB, or an interleaving and its schedule, disagree.

    Examples
    --------
    >>> from isolitmus.specs import litmus, protocol
    >>> rules = protocol("locking-read-committed-table")
    >>> done = count_interleavings(litmus("quiz-two-workers"), rules)
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
            CountedEnd(
                end,
                ways.number,
                schedule,
                serial.orders(end),
                serial.breaks(end),
                serial.plausible(end),
            )
        )
    outcomes.sort(key=lambda outcome: -outcome.number)
    return Interleavings(
        litmus,
        protocol.name,
        tuple(outcomes),
        len(orders.known),
        serial.alone(),
        monotonic() - start,
    )


def _steadier(path: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether a path switches less often between transactions than another."""
    return count_switches(path) < count_switches(other)


def _within(litmus: Litmus) -> Callable[[int], None]:
    """Return a function that raises if there are too many states."""

    def check(states: int) -> None:
        if states >= STATES:
            raise IsolitmusError(
                f"{litmus.name}: its interleavings lead to more than {STATES:,} states; take fewer"
                " rows or transactions"
            )

    return check


def interleaving_lines(done: Interleavings) -> Iterator[str]:
    """Yield the numbers of interleavings and outcomes, then an example of each outcome."""
    yield (
        f"{done.litmus.name} under {done.protocol}: {count_of(done.number, 'interleaving')},"
        f" {count_of(done.states, 'state')}, {count_of(len(done.outcomes), 'outcome')}"
    )
    for outcome in done.outcomes:
        yield f"  {outcome.number:>9,}  {_like(outcome)}{_breaks(outcome)}: {outcome.schedule}"
    timeless = sum(outcome.number for outcome in done.outcomes if outcome.timeless)
    if timeless:
        plausible = sum(outcome.number for outcome in done.outcomes if outcome.plausible)
        yield (
            f"  {timeless:>9,}  a result that held at no time while they ran; for {plausible:,} of"
            " these it is the result of some serial order"
        )
    for order, broken in done.alone.items():
        if broken:
            yield f"The serial order {order.replace(' ', ' → ')} violates {', '.join(broken)}, too."


def _like(outcome: CountedEnd) -> str:
    """Return the serial orders whose final table a counted outcome equals, and its aborts."""
    ended = [told for told in outcome.end.told if told.outcome != "committed"]
    how = "".join(f", {told.name} {told.outcome}" for told in ended)
    if not outcome.serial:
        return f"equal to no serial order{how}"
    orders = (order.replace(" ", " → ") or "no transaction" for order in outcome.serial)
    return f"equal to {' or '.join(orders)}{how}"


def _breaks(outcome: CountedEnd) -> str:
    return f", violates {', '.join(outcome.breaks)}" if outcome.breaks else ""
