"""Beside a verdict: what a serial order explains of a history that a level forbids for its conflicts.

Levels judge conflicts (Adya): a row that came and went unseen leads to who missed it, although what that
one read would have been the same without. So a history that a level forbids may have a serial order all
the same, in one of the weaker forms of docs/semantics.md, 3.2, which are no levels here:

- *view*, ``write-serializable-view``: one after another, in some order, all read what they did read, and
  the last table is the one that was seen;
- *state*, ``write-serializable-state``: some order gives the last table, whatever would have been read;
  ``…-coherent``: by its parts it gives every version.

These are the witnesses, orders with names, readers among them; ``tests/level_forms.py`` asks the same of
writers alone, for theorems.

Who counts and which orders do is the level's: all transactions with what readers read, each after those
before it in its session (``serializable``); the order of the log alone (``log-serializable``); the
writers (``write-serializable``); the writers and one reader at a time (``update-serializable``). What is
read are versions of rows, by who wrote them and their values, and the columns and constraints of the
tables; tables are compared as bags.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import observed_run
from isolitmus.checker.execution.serial_orders import (
    MOST_WRITERS,
    ModelExecutor,
    explain_serially,
    gives,
)
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from isolitmus.checker.execution.serial_orders import Serial
    from isolitmus.model.execution import Database, Effect, Event, Execution
    from isolitmus.model.litmus import Litmus

__all__ = ["CONFLICT", "Explaining", "Explanation", "explanations"]

CONFLICT = ("serializable", "log-serializable", "write-serializable", "update-serializable")
"""The levels that are about a serial order, and judge it by conflicts."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What serial orders explain of what a level forbids: the table (no order does, if there are no
    ``orders``), all that was read (``reads``), and every ``version`` of the table.

    Of ``update-serializable`` there may be several orders, for different readers.
    """

    level: str
    orders: tuple[tuple[str, ...], ...]
    reads: bool = False
    versions: bool = False

    @property
    def name(self) -> str | None:
        """The form of the level that the history has, by the names of docs/semantics.md, 3.2.

        >>> Explanation("serializable", (("a", "b"),), reads=True).name
        'serializable-view'
        """
        if self.reads:
            return f"{self.level}-view"
        if self.level == "log-serializable":
            return f"{self.level}-state" if self.versions else None
        coherent = "-coherent" if self.versions else ""
        return f"{self.level}-state{coherent}" if self.orders else None

    def to_json(self) -> dict[str, object]:
        """The sense, the orders, and whether they give every version."""
        orders = [" ".join(order) for order in self.orders]
        return {"sense": self.name, "orders": orders, "every_version": self.versions}


def explanations(
    litmus: Litmus,
    execution: Execution,
    levels: Iterable[str],
    serial: Serial | None = None,
    executor: ModelExecutor | None = None,
) -> dict[str, Explanation]:
    """The strongest explanation of an execution beside what each of these levels says of it.

    None beside a level that is not about a serial order, of what has no rows, or of more writers than all
    orders are tried of. ``serial``: the serial orders that give the table, both executors agreeing; they
    are looked for if they are not given, by ``executor``, with the orders that it knows already.

    >>> from isolitmus.checker.execution.commit_loop import execute
    >>> from isolitmus.specs import litmus
    >>> reorder = litmus("reorder")
    >>> found = explanations(reorder, execute(reorder), ["log-serializable", "write-serializable"])
    >>> [(one.level, one.name) for one in found.values()]
    [('log-serializable', None), ('write-serializable', 'write-serializable-view')]
    """
    asked = [level for level in levels if level in CONFLICT]
    executor = executor or ModelExecutor(litmus)
    found = Explaining(litmus, execution, executor)
    if not asked or litmus.raw or len(found.log) > MOST_WRITERS:
        return {}
    if serial is None:
        serial = explain_serially(litmus, observed_run(litmus, execution, ""), executor)
    orders = [tuple(order.split()) for order in serial.orders]
    return {level: found.best(level, orders) for level in asked}


class Explaining:
    """An execution, and what orders of its transactions explain of it."""

    def __init__(self, litmus: Litmus, execution: Execution, executor: ModelExecutor) -> None:
        self.executor, self.format = executor, format_named(litmus.format)
        self.tables, self.states = litmus.tables, execution.states
        self.events = [event for event in execution.events if not event.aborted]
        self.writers = [event for event in self.events if event.version is not None]
        self.readers = [event for event in self.events if event.version is None]
        self.log = tuple(event.name for event in self.writers)
        shown = litmus.tables.keys() - litmus.opaque
        self.versions = [
            {name: table.rows() for name, table in state.items() if name in shown}
            for state in execution.states
        ]

    def best(self, level: str, orders: Sequence[tuple[str, ...]]) -> Explanation:
        """The strongest of what the orders that give the table explain."""
        if level == "log-serializable":
            orders = [order for order in orders if order == self.log]
        best = Explanation(level, ())
        for one in self.explanations(level, orders):
            if not best.orders or (one.reads, one.versions) > (best.reads, best.versions):
                best = one
            if best.reads and best.versions:
                break
        return best

    def explanations(self, level: str, orders: Sequence[tuple[str, ...]]) -> Iterator[Explanation]:
        """What each order explains; with ``update-serializable`` each reader may have another one."""
        readers = [] if level == "write-serializable" else self.readers
        for order in orders:
            full = self.placed(order, readers, level)
            yield Explanation(
                level, (full or order,), reads=full is not None, versions=self.every_version(order)
            )
        if level == "update-serializable":
            each = [[self.placed(order, [reader], level) for order in orders] for reader in readers]
            found = [next(filter(None, fulls), None) for fulls in each]
            fitting = tuple(dict.fromkeys(full for full in found if full is not None))
            if fitting and None not in found:
                every = all(map(self.every_version, fitting))
                yield Explanation(level, fitting, reads=True, versions=every)

    def placed(
        self, order: tuple[str, ...], readers: Sequence[Event], level: str
    ) -> tuple[str, ...] | None:
        """The order with the readers in it, each where its version was, or else, but in the order of the
        log, as early as it may be; None if somebody reads there what it did not read.
        """
        full = self._placed(order, readers, level, early=False)
        if full is None and readers and level != "log-serializable":
            return self._placed(order, readers, level, early=True)
        return full

    def _placed(
        self, order: tuple[str, ...], readers: Sequence[Event], level: str, *, early: bool
    ) -> tuple[str, ...] | None:
        left = list(readers)
        done: list[str] = []
        by_name = {event.name: event for event in self.writers}

        def fits(event: Event, before: tuple[str, ...]) -> bool:
            in_turn = level != "serializable" or self.in_turn(event, done)
            return in_turn and self.reads_as_before(event, before)

        for k in range(len(order) + 1):
            before = order[:k]
            here = [r for r in left if early or self.so_far(r.read_version) == set(before)]
            while (reader := next((r for r in here if fits(r, before)), None)) is not None:
                here.remove(reader)
                left.remove(reader)
                done.append(reader.name)
            if k < len(order):
                if not fits(by_name[order[k]], before):
                    return None
                done.append(order[k])
        return None if left else tuple(done)

    def in_turn(self, event: Event, done: Sequence[str]) -> bool:
        """Whether those before it in its session are there already."""
        earlier = self.events[: self.events.index(event)]
        mine = [e.name for e in earlier if e.session is not None and e.session == event.session]
        return all(name in done for name in mine)

    def reads_as_before(self, event: Event, before: tuple[str, ...]) -> bool:
        """Whether a transaction reads after these writers what it did read."""
        effect, state = self.executor.effect((*before, event.name)), self.executor.state(before)
        if effect is None or state is None or effect.error is not None:
            return False
        seen = self.states[event.read_version]
        same = self.defined(event, state) == self.defined(event, seen)
        return same and _read(effect) == _read(event.effect)

    def defined(self, event: Event, database: Database) -> object:
        """The definitions of the tables that a transaction touches: everybody reads them."""
        footprint = event.effect.footprint
        touched = {read.table for read in event.effect.reads}
        touched |= set() if footprint is None else {footprint.table}
        return self.format.definitions(database, self.tables, touched)

    def every_version(self, order: tuple[str, ...]) -> bool:
        """Whether the order of those so far gives the table at every version."""
        return all(
            gives(self.executor, tuple(n for n in order if n in self.so_far(k)), seen)
            for k, seen in enumerate(self.versions)
        )

    def views_at_every_version(self) -> bool:
        """Whether at each version an order of the writers so far gives each what it read, and the table."""
        for k, seen in enumerate(self.versions):
            so_far = [name for name in self.log if name in self.so_far(k)]
            if not any(
                gives(self.executor, order, seen)
                and self.placed(order, (), "write-serializable") is not None
                for order in permutations(so_far)
            ):
                return False
        return True

    def so_far(self, version: int) -> set[str]:
        """The writers up to a version."""
        return {e.name for e in self.writers if e.version is not None and e.version <= version}


def _read(effect: Effect) -> object:
    """What a transaction read: the row versions of each of its reads, by who wrote them and their values."""
    return [
        (read.table, read.words, Counter((row.writer, row.values) for row in read.matched))
        for read in effect.reads
    ]
