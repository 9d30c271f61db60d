"""A litmus test under way by steps that are chosen one by one, whatever its schedule says.

What states have to tell apart is what their ends show: the rows with their versions, who holds which locks and waits
for which, and what each transaction was shown so far, on which alone depends what it does next.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import stages
from isolitmus.checker.locking.final_state import Ends, table_rows
from isolitmus.checker.locking.protocol_rules import rules_of
from isolitmus.checker.locking.scans import Hit
from isolitmus.checker.locking.simulation import LitmusUnderWay
from isolitmus.model.schedule import Schedule, Step
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from isolitmus.checker.locking.protocol_rules import Rules
    from isolitmus.checker.locking.simulation import SessionUnderWay
    from isolitmus.model.execution import Database
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import Spec

__all__ = ["FreeWalk", "shown_by", "switches", "walks"]

DATED = ("statement", "transaction")
"""What is seen as of a time."""


def walks(litmus: Litmus, protocol: Spec, ends: Ends) -> Callable[[], FreeWalk]:
    """What begins a walk through a litmus test, as often as it is called."""
    database = stages(format_named(litmus.format), litmus.tables, litmus.init)[-1]
    rules = rules_of(protocol)
    return lambda: FreeWalk(litmus, database, rules, ends)


class FreeWalk(LitmusUnderWay):
    """A litmus test under way by steps that are chosen one by one (``searching.orders.Walk``)."""

    def __init__(self, litmus: Litmus, database: Database, rules: Rules, ends: Ends) -> None:
        super().__init__(litmus, database, rules)
        self.ends = ends
        self.chosen: list[Step | str] = []
        """Who went, each with the step that it came to once it has come there."""

    def go(self, name: str) -> None:
        """A transaction's next step."""
        session = self.sessions[name]
        over = session.ran == len(session.statements)
        session.steps.append(
            Step(name, "commit") if over else Step(name, "step", len(session.came) + 1)
        )
        self.chosen.append(name)
        self.wake()
        while single := next(filter(_through, self.sessions.values()), None):
            single.steps.append(Step(single.transaction.name, "commit"))
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

    def state(self) -> Hashable:
        """All that what comes next, and what there is to see at the end, depends on."""
        end, versions = self.ends.told(self), bool(self.ends.queries)
        store, locks = self.work.store, self.work.locks
        going = [s for s in self.sessions.values() if not s.ended]
        stored = [row for rows in store.rows.values() for row in rows]
        seen = {m for s in going for m in s.transaction.moments} if self.dated else set()
        moments = {v.committed for row in stored for v in row.versions if v.committed is not None}
        rank = {m: k for k, m in enumerate(sorted(moments | seen)) if self.dated}
        rows = tuple(
            (row.table, row.id, frozenset(row.taken), *((frozenset(k for k, at in v.put.items() if at is None), v.values, v.writer, v.committed is None, rank.get(v.committed or 0), v.undone is None) for v in row.versions))
            for row in stored
        )  # fmt: skip
        sessions = tuple(
            end[name]
            if session.ended
            else (
                session.wants,
                session.versions if versions else None,
                tuple(map(rank.get, session.transaction.moments)),
                tuple(map(shown_by, session.came)),
            )
            for name, session in self.sessions.items()
        )
        past = tuple(map(table_rows, self.states)) if versions else ()
        held = frozenset(locks.held.items())
        return rows, sessions, held, locks.asked, past, self.remembered()

    @property
    def schedule(self) -> Schedule:
        """The steps that were chosen, without those that another of the same transaction follows."""
        steps = [step for step in self.chosen if isinstance(step, Step)]
        kept = [
            step
            for step, after in zip(steps, [*steps[1:], None], strict=True)
            if after is None or after.transaction != step.transaction
        ]
        return Schedule(tuple(kept))


def _through(session: SessionUnderWay) -> bool:
    """Whether the one statement of a transaction is over, and it can commit."""
    over = session.ran == len(session.statements) == 1
    return over and not session.ended and session.wants is None and not session.steps


def shown_by(step: object) -> object:
    """What a step has shown its transaction."""
    if isinstance(step, Hit):
        return step.row.id, next(k for k, v in enumerate(step.row.versions) if v is step.version)
    return step


def switches(path: tuple[str, ...]) -> int:
    """How often it is another's turn."""
    return sum(one != other for one, other in pairwise(path))
