"""The verb ``check``: what levels say of a history that was recorded or written by hand.

A litmus test on a table is checked as the history that its schedule describes, every commit taken
as it stands, without any protocol; an abstract history as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from isolitmus.checker.reading.histories import check_history
from isolitmus.checker.running.execute import execute, judge_execution
from isolitmus.checker.separation import violation_json
from isolitmus.model.litmus import HistoryTest, Litmus
from isolitmus.model.verdict import Allowed, Forbidden, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.model.spec import Spec
    from isolitmus.model.verdict import Verdict

__all__ = ["Checked", "check"]


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdicts on one history, by level; ``operations`` counts reads and writes of rows,
    ``assumptions`` is what the history left open and was taken for granted.
    """

    name: str
    transactions: int
    operations: int
    levels: Mapping[str, Verdict]
    seconds: float
    assumptions: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        from isolitmus.checker.telling.notebook import checked_html

        return checked_html(self)

    def to_json(self, history: str) -> dict[str, object]:
        """The verdicts as interface.md has them; ``history`` is the file's name."""
        return {
            "history": history,
            "transactions": self.transactions,
            "operations": self.operations,
            "levels": {name: _verdict_json(verdict) for name, verdict in self.levels.items()},
            "assumptions": list(self.assumptions),
            "seconds": round(self.seconds, 3),
        }


def _verdict_json(verdict: Verdict) -> dict[str, object]:
    reason = {"reason": verdict.reason} if isinstance(verdict, Unknown) else {}
    return reason | {
        "verdict": str(verdict),
        "violation": violation_json(verdict.violations[0])
        if isinstance(verdict, Forbidden)
        else None,
        "serial": " ".join(verdict.witness)
        if isinstance(verdict, Allowed) and verdict.witness
        else None,
    }


def check(test: Litmus | HistoryTest, levels: Sequence[Spec]) -> Checked:
    """Judge a litmus test's history at each level.

    >>> from isolitmus.specs import level, litmus
    >>> checked = check(litmus("reorder"), [level("serializable"), level("log-serializable")])
    >>> {name: str(verdict) for name, verdict in checked.levels.items()}
    {'serializable': 'allowed', 'log-serializable': 'forbidden'}
    """
    start = monotonic()
    assumptions: tuple[str, ...] = ()
    if isinstance(test, HistoryTest):
        history = test.history
        verdicts = {spec.name: check_history(history, spec) for spec in levels}
        transactions, operations = len(history.transactions), history.operations
        assumptions = history.assumptions()
    else:
        execution = execute(test)
        unread = Unknown("raw transactions have no rows")
        verdicts = {
            spec.name: unread if test.raw else judge_execution(execution, spec) for spec in levels
        }
        transactions = len(execution.events)
        operations = sum(
            len(e.effect.writes) + sum(len(read.matched) for read in e.effect.reads)
            for e in execution.events
        )
    took = monotonic() - start
    return Checked(test.name, transactions, operations, verdicts, took, assumptions)
