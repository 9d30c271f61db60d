"""Schedules from times, so that examples drawn by Hypothesis shrink.

Without one transaction, the order of the others stays the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hypothesis import strategies as st

from isolitmus.model.schedule import Schedule, Step

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


class Times(NamedTuple):
    """Start of a transaction, its duration, and how long before it its client reads.

    ``early`` 0: it reads just before.
    """

    start: int
    long: int
    early: int = 0

    @property
    def end(self) -> int:
        """Commit time."""
        return self.start + self.long


TIMES = st.builds(Times, st.integers(0, 5), st.integers(0, 5), st.just(0))


def session_queues(
    names: Sequence[str], sessions: Mapping[str, str], asking: Collection[str] = ()
) -> dict[str, list[Step]]:
    """Return the steps of each session, or of each transaction without a session.

    Transactions in ``asking`` have a "before" step.
    """
    found: dict[str, list[Step]] = {}
    for name in names:
        queue = found.setdefault(sessions.get(name, f"of {name}"), [])
        queue += [Step(name, "before")] * (name in asking)
        queue += [Step(name, "start"), Step(name, "commit")]
    return found


def schedule_at(times: Mapping[str, Times], sessions: Mapping[str, str]) -> Schedule:
    """Return the schedule of transactions with these times; a session executes one after another.

    Examples
    --------
    >>> print(schedule_at({"a": Times(0, 2), "b": Times(1, 0), "c": Times(1, 0)}, {}))
    a.start b.start b.commit c.start c.commit a.commit
    >>> print(schedule_at({"a": Times(1, 2, early=1), "b": Times(0, 0)}, {}))
    a.before b.start b.commit a.start a.commit
    """
    steps = session_queues(list(times), sessions, [name for name, t in times.items() if t.early])
    moments = [
        (when, k, sessions.get(name, f"of {name}"))
        for k, (name, t) in enumerate(times.items())
        for when in (*[t.start - t.early] * bool(t.early), t.start, t.end)
    ]
    return Schedule(tuple(steps[key].pop(0) for _, _, key in sorted(moments)))
