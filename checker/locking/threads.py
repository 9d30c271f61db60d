"""A litmus test carried out, in every order in which threads may go on.

Over heaps and where versions stand behind each other (``rules``: ``keep heaps``, ``updates append``), those who need not
wait any more go on in threads of their own, beside each other. Each order of what they do, over heaps lock by lock, else
row by row, is carried out from the start; what comes after a state that another order had come to is left out. Who has
let them go on is taken to be through with what he was asked for before they are, and they to have what they waited for
before he asks for it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import observed_run, stages
from isolitmus.checker.locking.final_state import table_rows
from isolitmus.checker.locking.protocol_rules import rules_of
from isolitmus.checker.locking.simulation import LitmusUnderWay
from isolitmus.checker.locking.step_orders import shown_by
from isolitmus.model.errors import StepBeyond, UndeterminedError, WaitsForEver
from isolitmus.model.run import SeveralRuns
from isolitmus.specs.files.toml_reader import Source
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from isolitmus.checker.locking.simulation import SessionUnderWay
    from isolitmus.model.execution import Database, Execution
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import Spec

__all__ = ["stepwise"]


def stepwise(litmus: Litmus, protocol: Spec | None) -> Execution:
    """The execution of a litmus test under a protocol. A step to a row that a scan does not give under it ends
    the scan; StepBeyond if it does not give that without any locks either. SeveralRuns if it makes a difference
    whose thread is faster.
    """
    database = stages(format_named(litmus.format), litmus.tables, litmus.init)[-1]
    rules = rules_of(protocol)
    running = LitmusUnderWay(litmus, database, rules)
    done = running.execution()
    if running.beyond and protocol is not None:  # under this protocol scans may give less
        stepwise(litmus, None)
    elif running.beyond:
        file = litmus.path.name if litmus.path is not None else f"{litmus.name}.toml"
        raise StepBeyond(f"{Source(file, litmus.text).place('schedule')}: {running.beyond}")
    if protocol is not None and rules.threads:
        _refuse_raced(litmus, database, protocol, done)
    return done


class _Known(Exception):
    """A state that another order had come to."""


class _Order:
    """One order: who goes on at each moment at which several could, first as it is told, then as by default."""

    def __init__(self, begin: tuple[int, ...], known: set[Hashable]) -> None:
        self.begin, self.known = begin, known
        self.chosen: list[int] = []
        self.able: list[tuple[str, ...]] = []

    def choose(self, running: LitmusUnderWay, able: Sequence[SessionUnderWay]) -> int:
        """Who goes on; _Known if that was looked at already."""
        at = len(self.chosen)
        if at >= len(self.begin):
            state = _state(running, able)
            if state in self.known:
                raise _Known
            self.known.add(state)
        choice = self.begin[at] if at < len(self.begin) else 0
        self.chosen.append(choice)
        self.able.append(tuple(one.transaction.name for one in able))
        return choice


def _refuse_raced(litmus: Litmus, database: Database, protocol: Spec, done: Execution) -> None:
    """SeveralRuns if threads may go on in an order that has another end than this; UndeterminedError if in one of
    them some wait for each other for ever.
    """
    from isolitmus.checker.execution.run_diff import run_differences

    runs = [observed_run(litmus, done, protocol.name)]
    at_once: tuple[str, ...] = ()
    known: set[Hashable] = set()
    left: list[tuple[int, ...]] = [()]
    while left:
        order = _Order(left.pop(), known)
        running = LitmusUnderWay(litmus, database, rules_of(protocol))
        running.choose = order.choose
        try:
            other = observed_run(litmus, running.execution(), protocol.name)
            if all(run_differences(one, other) for one in runs):
                runs.append(other)
                at_once = at_once or order.able[len(order.begin) - 1]
        except _Known:
            pass
        except WaitsForEver as error:
            names = order.able[len(order.begin) - 1]
            first = names[order.begin[-1]]
            raise UndeterminedError(
                f"{error}, if {first} is the fastest of {' and '.join(names)}"
            ) from None
        left += [
            (*order.chosen[:k], choice)
            for k in range(len(order.begin), len(order.chosen))
            for choice in range(1, len(order.able[k]))
        ]
    if at_once:
        raise SeveralRuns(
            f"{litmus.name}: {' and '.join(at_once)} go on at once, and who of them is faster makes a difference:"
            f" {len(runs)} runs are possible",
            tuple(runs),
        )


def _state(running: LitmusUnderWay, able: Sequence[SessionUnderWay]) -> Hashable:
    """All that what comes next, and what there is to see at the end, depends on."""
    store, locks = running.work.store, running.work.locks
    rows = tuple(
        (row.id, tuple(sorted(row.taken.items())), *((v.values, v.writer, v.committed is None, v.undone is None, frozenset(k for k, at in v.put.items() if at is None)) for v in row.versions))
        for stored in store.rows.values()
        for row in stored
    )  # fmt: skip
    sessions = tuple(
        (
            tuple(one.steps), one.wants, one.at, one.told, one.since, one.ran, one.ended, tuple(one.waits),
            tuple(map(shown_by, one.turns)),
        )
        for one in running.sessions.values()
    )  # fmt: skip
    going = tuple(one.transaction.name for one in able)
    held = tuple(locks.held.items())
    times = (
        tuple((v.committed, v.undone) for stored in store.rows.values() for row in stored for v in row.versions),
        tuple(one.transaction.moments for one in running.sessions.values()),
    )  # fmt: skip
    return (
        rows,
        sessions,
        going,
        held,
        locks.asked,
        times if store.appends else None,
        running.remembered(),
        len(running.events),
        tuple(map(table_rows, running.states)),
    )
