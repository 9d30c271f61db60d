"""The serial explanation: which serial orders of the writers give the table that was seen.

Every permutation of the writers up to a version is executed one by one from the initial tables and
compared as bags, by two executors that share nothing: the model's own, and that of the format, for SQL
DuckDB. A disagreement between them is a defect of one, and is raised, never passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import stages
from isolitmus.model.errors import Disagreement, IsolitmusError
from isolitmus.model.execution import Event
from isolitmus.model.run import same_bag
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.model.execution import Database, Effect
    from isolitmus.model.format import Executor
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import Run
    from isolitmus.model.sql.values import Rows

__all__ = [
    "MOST_WRITERS",
    "ModelExecutor",
    "Serial",
    "explain_serially",
    "gives",
    "unexplained",
]


MOST_WRITERS = 8
"""So many writers have 40,320 serial orders; with one more a search of all of them takes minutes."""


class ModelExecutor:
    """The model's own executor; prefixes are shared between orders."""

    def __init__(self, litmus: Litmus) -> None:
        self._litmus, self._form = litmus, format_named(litmus.format)
        self._inits = stages(self._form, litmus.tables, litmus.init)
        self._states: dict[tuple[str, ...], Database | None] = {(): self._inits[-1]}
        self._effects: dict[tuple[str, ...], Effect] = {}

    def after(self, order: tuple[str, ...]) -> Mapping[str, Rows] | None:
        """The tables after these transactions in this order; None if one of them fails."""
        state = self.state(order)
        return None if state is None else {name: table.rows() for name, table in state.items()}

    def state(self, order: tuple[str, ...]) -> Database | None:
        """As ``after``, with all that the model knows of the tables."""
        if order not in self._states:
            before = self.state(order[:-1])
            self._states[order] = None if before is None else self._step(order, before)
        return self._states[order]

    def _step(self, order: tuple[str, ...], before: Database) -> Database | None:
        done = self._effects[order] = self._form.alone(self._litmus, order[-1], before, self._inits)
        return (
            None if done.error is not None else self._form.after(before, Event(order[-1], done, 0))
        )

    def effect(self, order: tuple[str, ...]) -> Effect | None:
        """What the last of these does after the others in this order; None if one of those fails."""
        self.state(order)
        return self._effects.get(order)


@dataclass(frozen=True, slots=True)
class Serial:
    """The serial orders of the writers that explain the final tables, and the versions at which no
    order of the writers so far explains the tables.
    """

    orders: tuple[str, ...]
    unexplained: tuple[int, ...]


def writers(run: Run, last: int | None = None) -> tuple[str, ...]:
    """The transactions that recorded a version, the ``last`` one or an earlier (None: any), in the order
    of the log.
    """
    recorded = [(min(t.commits), name) for name, t in run.transactions.items() if t.commits]
    return tuple(name for first, name in sorted(recorded) if last is None or first <= last)


def explain_serially(litmus: Litmus, run: Run, executor: ModelExecutor | None = None) -> Serial:
    """The serial explanation of a run, by both executors; Disagreement if they differ, IsolitmusError
    if it has more than MOST_WRITERS writers. ``executor``: the model's, with the orders that it knows already.
    """
    if len(writers(run)) > MOST_WRITERS:
        raise IsolitmusError(
            f"{litmus.name}: {len(writers(run))} transactions write; the serial orders of at most"
            f" {MOST_WRITERS} are tried"
        )
    own = _explain(executor or ModelExecutor(litmus), run)
    theirs = _explain(format_named(litmus.format).independent(litmus), run)
    if own != theirs:
        raise Disagreement(
            f"{litmus.name}: the model's executor finds the serial orders {list(own.orders)}"
            f" (unexplained versions {list(own.unexplained)}), the independent one {list(theirs.orders)}"
            f" (unexplained {list(theirs.unexplained)})"
        )
    return own


def _explain(executor: Executor, run: Run) -> Serial:
    names = writers(run)
    versions = run.versions
    orders = _orders(executor, names, versions[-1])
    so_far = [writers(run, k) for k in range(len(versions))]
    return Serial(
        tuple(" ".join(order) for order in orders), unexplained(executor, so_far, versions)
    )


def _orders(
    executor: Executor, names: Sequence[str], seen: Mapping[str, Rows]
) -> list[tuple[str, ...]]:
    return [order for order in permutations(names) if gives(executor, order, seen)]


def gives(executor: Executor, order: tuple[str, ...], seen: Mapping[str, Rows]) -> bool:
    """Whether the transactions in this order give the tables that were seen."""
    tables = executor.after(order)
    return (
        tables is not None
        and tables.keys() >= seen.keys()
        and all(same_bag(tables[name], seen[name]) for name in seen)
    )


def unexplained(
    executor: Executor, so_far: Sequence[tuple[str, ...]], versions: Sequence[Mapping[str, Rows]]
) -> tuple[int, ...]:
    """The versions whose tables no serial order of the writers so far, a tuple for each, gives."""
    return tuple(
        k
        for k, (names, seen) in enumerate(zip(so_far, versions, strict=True))
        if not any(gives(executor, order, seen) for order in permutations(names))
    )
