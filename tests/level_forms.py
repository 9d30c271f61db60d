"""View and state forms of the levels: the writers explained by executing them in other orders.

That conflicts agree with an order is the strictest way to say that it explains an execution. In the
*view* form every writer must observe in it what it observed: of every predicate the same row
versions. In the *state* form only tables count, as bags. The order is that of the log in the forms
of ``log-serializable``; in those of ``write-serializable`` it is any that gives the last version's
tables:

- ``…-prefix``: and at every version there is one, of the writers so far; perhaps another each time;
- ``…-coherent``: one order, of which the part that is the first k writers gives version k, for each
  k.

Only writers count. A row is known by who created it and where in what he inserted, so that row
versions can be compared between orders. That all read a snapshot and the first committer wins is
supposed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import permutations
from typing import TYPE_CHECKING

from isolitmus.model.execution import Event
from isolitmus.specs.files.toml_reader import DELTA
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from isolitmus.model.execution import Database, Effect
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement

Order = tuple[int, ...]
Seen = tuple[frozenset[object], ...]
Bag = dict[str, Counter[object]]


@dataclass(frozen=True, slots=True)
class Executed:
    """Writers in the order of the log."""

    schemas: Mapping[str, Schema]
    """What the litmus test declares."""
    names: tuple[str, ...]
    """The writers."""
    statements: tuple[Statement, ...]
    """Their statements."""
    effects: tuple[Effect, ...]
    """What each did."""
    states: tuple[Database, ...]
    """The tables at first, and after each."""
    format: str = DELTA
    """Whose effects these are."""


@dataclass(slots=True)
class StepMemory:
    """Steps that were executed before: a state, who came next with which statement, and what
    came.
    """

    steps: dict[tuple[int, str, str], tuple[int, Effect]] = field(default_factory=dict)
    numbers: dict[object, int] = field(default_factory=dict)
    states: list[Database] = field(default_factory=list)
    bags: list[Bag] = field(default_factory=list)

    def number(self, database: Database) -> int:
        """The number of a state; equal files have one number."""
        key = tuple(sorted((name, state.files) for name, state in database.items()))
        if key not in self.numbers:
            self.numbers[key] = len(self.states)
            self.states.append(database)
            self.bags.append({name: Counter(t.rows()) for name, t in database.items()})
        return self.numbers[key]

    def step(self, state: int, run: Executed, i: int) -> tuple[int, Effect]:
        """The state after writer i on a state, and its effect; a failing one changes nothing."""
        key = (state, run.names[i], run.statements[i].sql)
        if key not in self.steps:
            before, form = self.states[state], format_named(run.format)
            done = form.effect(run.statements[i], before, run.names[i], run.schemas)
            event = Event(run.names[i], done, 0)
            self.steps[key] = (
                state if done.error else self.number(form.after(before, event)),
                done,
            )
        return self.steps[key]


class Reorderings:
    """One execution: its versions, and what other orders of its writers give."""

    def __init__(self, run: Executed, memory: StepMemory) -> None:
        self.run, self.memory = run, memory
        self.versions = [memory.number(state) for state in run.states]
        self.seen = [_seen(done) for done in run.effects]
        self.writers = range(len(run.names))

    def gives(self, order: Order, version: int, *, view: bool) -> bool:
        """Whether the writers in this order give a version, and, in a view, see what they saw."""
        state = self.versions[0]
        for i in order:
            state, done = self.memory.step(state, self.run, i)
            if done.error is not None or (view and _seen(done) != self.seen[i]):
                return False
        return self.memory.bags[state] == self.memory.bags[self.versions[version]]

    def some(self, version: int, *, view: bool) -> bool:
        """Whether some order of the writers up to a version gives it."""
        orders = permutations(range(version))
        return any(self.gives(order, version, view=view) for order in orders)

    def log(self, *, view: bool) -> bool:
        """Whether every writer, on the version before its own, sees what it saw (or gives its
        own).
        """
        for i in self.writers:
            state, done = self.memory.step(self.versions[i], self.run, i)
            if view and _seen(done) != self.seen[i]:
                return False
            if not view and self.memory.bags[state] != self.memory.bags[self.versions[i + 1]]:
                return False
        return True

    def last(self, *, view: bool) -> bool:
        """Whether some order gives the last version."""
        return self.some(len(self.writers), view=view)

    def prefix(self, *, view: bool) -> bool:
        """Whether at every version some order of the writers so far gives it."""
        return all(self.some(k + 1, view=view) for k in self.writers)

    def coherent(self) -> bool:
        """Whether one order gives every version by its part up to it."""
        return any(
            all(self.gives(part(order, k), k, view=False) for k in range(1, len(order) + 1))
            for order in permutations(self.writers)
        )


def part(order: Iterable[int], writers: int) -> Order:
    """What is left of an order with the first so many writers.

    >>> part((2, 0, 1), 2)
    (0, 1)
    """
    return tuple(i for i in order if i < writers)


def _seen(done: Effect) -> Seen:
    """Of each predicate, the row versions that matched."""
    return tuple(frozenset(read.matched) for read in done.reads)


FORMS: dict[str, Callable[[Reorderings], bool]] = {
    "log-serializable-view": lambda orders: orders.log(view=True),
    "log-serializable-state": lambda orders: orders.log(view=False),
    "write-serializable-view": lambda orders: orders.last(view=True),
    "write-serializable-view-prefix": lambda orders: orders.prefix(view=True),
    "write-serializable-state": lambda orders: orders.last(view=False),
    "write-serializable-state-prefix": lambda orders: orders.prefix(view=False),
    "write-serializable-state-coherent": lambda orders: orders.coherent(),
}


def form(name: str, run: Executed, memory: StepMemory) -> bool:
    """Whether an execution has a form of a level; a KeyError names one that does not exist.

    >>> from isolitmus.checker.execution.commit_loop import execute
    >>> from isolitmus.specs import litmus
    >>> test = litmus("reorder")
    >>> done = execute(test)
    >>> events = [event for event in done.events if event.version is not None]
    >>> run = Executed(
    ...     test.tables,
    ...     tuple(e.name for e in events),
    ...     tuple(test.transactions[e.name] for e in events),
    ...     tuple(e.effect for e in events),
    ...     done.states,
    ... )
    >>> [form(name, run, StepMemory()) for name in ("log-serializable-state", "write-serializable-state")]
    [False, True]
    """
    return FORMS[name](Reorderings(run, memory))
