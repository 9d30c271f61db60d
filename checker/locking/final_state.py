"""What there is to see when a litmus test is over: the tables, and what each client was told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.checker.execution.postconditions import rows_left
from isolitmus.checker.locking.effects import by_itself
from isolitmus.checker.locking.events import Scanned
from isolitmus.model.run import ROLLED_BACK
from isolitmus.model.sql.statement import Read, statements_of
from isolitmus.model.sql.values import sort_rows

if TYPE_CHECKING:
    from isolitmus.checker.execution.postconditions import Written
    from isolitmus.checker.locking.simulation import LitmusUnderWay
    from isolitmus.model.execution import Database, Event
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.sql.values import Rows

__all__ = ["End", "Ends", "Told", "table_rows", "told_of"]


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


class Ends:
    """The ends of one litmus test."""

    def __init__(self, litmus: Litmus) -> None:
        self.litmus = litmus
        self.queries = {
            name
            for name, one in litmus.transactions.items()
            if [type(part) for part in statements_of(one)] == [Read]
        }
        self._gives: dict[tuple[str, object], Rows | None] = {}

    def of(self, walk: LitmusUnderWay) -> End:
        """What there is to see at the end; WaitsForEver if some do not come to theirs."""
        walk.none_waits_for_ever()
        told = self.told(walk)
        return End(
            table_rows(walk.states[-1]),
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
        return told_of(event.name, done, timely)

    def gives(self, name: str, state: Database) -> Rows | None:
        """What a query gives on tables."""
        key = name, table_rows(state)
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


def told_of(name: str, done: Scanned, timely: bool | None = None) -> Told:
    """What the client of a transaction that committed is told."""
    rows = None if done.rows is None else tuple(sort_rows(done.rows))
    return Told(name, "committed", rows, len(done.writes), timely)


def table_rows(state: Database) -> tuple[tuple[str, Rows], ...]:
    """The rows of the tables, in an order in which they can be compared."""
    return tuple((name, tuple(sort_rows(table.rows()))) for name, table in sorted(state.items()))
