"""Real time in an execution: who had ended when somebody else began.

Choices. A transaction is under way from its first step in the schedule to its last one, what its client does before it
included: what was read there counts as read by the transaction. A step is a moment, so who does all at one step begins and ends
there. Where transactions wait for each other they do not end when the schedule says, and a log does not say when anybody
began: of these nothing is known, and a spec that asks needs ``rt``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.model.reason import Reason
from isolitmus.model.relation import Relation
from isolitmus.model.vocabulary import relations_of

if TYPE_CHECKING:
    from isolitmus.model.frame import Frame
    from isolitmus.model.schedule import Schedule
    from isolitmus.model.spec import Spec

__all__ = ["in_real_time", "needs_times"]

(REAL_TIME,) = relations_of("times")


def needs_times(spec: Spec) -> bool:
    """Whether a spec asks who had ended when somebody else began.

    >>> from isolitmus.specs import level
    >>> needs_times(level("strict-serializable")), needs_times(level("serializable"))
    (True, False)
    """
    return REAL_TIME in spec.needs


def in_real_time(frame: Frame, schedule: Schedule) -> Frame:
    """The frame with ``rt``, as the schedule has it.

    >>> from isolitmus.model.frame import Frame
    >>> from isolitmus.model.schedule import Schedule
    >>> in_real_time(Frame(("a", "b"), {}, {}), Schedule.parse("a b", {"a", "b"}))
    a
    b
    <BLANKLINE>
    rt  a → b  a had ended when b started
    """
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for moment, step in enumerate(schedule.steps):
        first.setdefault(step.transaction, moment)
        last[step.transaction] = moment
    names = frame.nodes[: frame.transactions]
    pairs = [
        (i, j)
        for i, ended in enumerate(names)
        for j, began in enumerate(names)
        if last[ended] < first[began]
    ]
    why = {
        (REAL_TIME, i, j): Reason.of("ended before", first=names[i], second=names[j])
        for i, j in pairs
    }
    relation = Relation.of(len(frame.nodes), pairs)
    return replace(
        frame,
        relations={**frame.relations, REAL_TIME: relation},
        reasons={**frame.reasons, **why},
    )
