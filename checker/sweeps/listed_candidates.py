"""Candidates behind the counts of a sweep: the first few of each count, as litmus tests.

A sweep of tables is enumerated again, in the order of the scope, until each count has its
candidates. A candidate that a protocol refuses is not extended where no extension can be admitted.
A sweep of schedules executes them again; schedules with the same result under every protocol are
one candidate of the list.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.execution.commit_loop import recording_spec
from isolitmus.checker.execution.serial_orders import ModelExecutor, is_serial_order
from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.sweeps.table_sweep import ScheduleCount
from isolitmus.checker.universes.schedules import ScheduledCandidate, casts
from isolitmus.checker.universes.tables import search
from isolitmus.model.errors import Limit
from isolitmus.model.spec_algebra import without_silences
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from isolitmus.checker.sweeps.shard_runner import Work
    from isolitmus.checker.sweeps.table_sweep import JudgedRun, Sweep
    from isolitmus.checker.sweeps.tally import Tally
    from isolitmus.checker.universes.tables import Candidate
    from isolitmus.model.budget import Budget
    from isolitmus.model.frame import Frame
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import Spec

NOT_LOG_ORDER = "final table differs from that of the log order"
UNEXPLAINED = "a table state that no serial order of the writers produces"


@dataclass(frozen=True, slots=True)
class ListedCandidates:
    """First candidates of one count."""

    protocol: str
    """Name of the protocol that admits them."""
    what: str
    """What was counted."""
    number: int
    """Number of candidates in the count."""
    tests: tuple[Litmus, ...]
    """The first of them."""
    ended: str | None = None
    """Limit that ended the search for more; None if none did."""

    def to_json(self) -> dict[str, object]:
        """Return the list in the format of docs/interface.md, 6."""
        return {
            "protocol": self.protocol,
            "what": self.what,
            "number": self.number,
            "litmus": [str(test) for test in self.tests],
        }


class _Count(NamedTuple):
    """Count of a protocol, with its number and the candidates that were found."""

    protocol: str
    what: str
    number: int
    tests: list[Litmus]


def list_candidates(
    work: Work, done: Sweep, most: int, budget: Budget
) -> tuple[ListedCandidates, ...]:
    """Return the first candidates of each count of a sweep that is not 0.

    Parameters
    ----------
    work : Work
        Scope, number of transactions, protocols and levels of the sweep.
    done : Sweep
        The sweep.
    most : int
        Maximum number of candidates of each count.
    budget : Budget
        Limits; once spent, the lists have what was found until then.
    """
    counts = {
        protocol.name: [
            _Count(protocol.name, what, number, [])
            for what, number in _numbers(done.protocols[protocol.name]).items()
            if number
        ]
        for protocol in work.protocols
    }
    ended = None
    try:
        if format_named(work.scope.format).carry_out is not None:
            _list_schedules(work, counts, most, budget)
        else:
            for protocol in work.protocols:
                _list_tables(work, protocol, counts[protocol.name], most, budget)
    except Limit as limit:
        ended = str(limit)
    return tuple(
        ListedCandidates(*count[:3], tuple(count.tests), ended)
        for some in counts.values()
        for count in some
    )


def _numbers(tally: Tally) -> Mapping[str, int]:
    """Return the counts of a protocol, by what was counted."""
    levels = {f"forbidden by {level}": number for level, number in tally.forbidden.items()}
    return {**levels, NOT_LOG_ORDER: tally.not_log_order, UNEXPLAINED: tally.unexplained}


def _open(counts: list[_Count], most: int) -> Iterator[_Count]:
    return (count for count in counts if len(count.tests) < min(most, count.number))


def _list_tables(
    work: Work, protocol: Spec, counts: list[_Count], most: int, budget: Budget
) -> None:
    """Add the first candidates over tables to the counts of a protocol."""
    admits = compile_spec(protocol)
    tests: dict[str, Callable[[Candidate], bool]] = {
        NOT_LOG_ORDER: _differs_from_log_order,
        UNEXPLAINED: lambda candidate: candidate.unexplained(),
    }
    for level in work.levels:
        permits = compile_spec(without_silences(level))
        tests[f"forbidden by {level.name}"] = partial(_is_forbidden, permits)

    def accept(candidate: Candidate) -> bool:
        """Add a candidate of writers alone; return whether each count has enough."""
        if len(candidate.statements) == candidate.writers == work.n and admits(candidate.frame):
            for count in _open(counts, most):
                if tests[count.what](candidate):
                    count.tests.append(candidate.litmus("", work.scope.title, ""))
        return not any(_open(counts, most))

    if any(_open(counts, most)):
        kept = work.scope.noops == "keep"
        recorder = recording_spec(protocol, work.levels[0]) if kept else None
        search(protocol, work.scope, work.n, accept, recorder=recorder, budget=budget)


def _is_forbidden(permits: Callable[[Frame], bool], candidate: Candidate) -> bool:
    return not permits(candidate.frame)


def _differs_from_log_order(candidate: Candidate) -> bool:
    """Return whether the order of the log does not produce the final table."""
    names = tuple(event.name for event in candidate.events if event.version is not None)
    last = {name: table.rows() for name, table in candidate.states[-1].items()}
    return not is_serial_order(ModelExecutor(candidate.plain()), names, last)


def _list_schedules(
    work: Work, counts: Mapping[str, list[_Count]], most: int, budget: Budget
) -> None:
    """Add the first schedules to the counts."""

    def keep(protocol: Spec, run: JudgedRun, candidate: ScheduledCandidate) -> None:
        whats = {f"forbidden by {level}" for level in run.forbidden}
        whats |= {NOT_LOG_ORDER} if run.not_log_order else set()
        whats |= {UNEXPLAINED} if run.unexplained else set()
        for count in _open(counts[protocol.name], most):
            if count.what in whats:
                count.tests.append(candidate.litmus(title=work.scope.title))

    again = ScheduleCount(work.protocols, work.levels, keep)
    for cast in casts(work.scope, work.n):
        if not any(count for some in counts.values() for count in _open(some, most)):
            return
        again.all_of(cast, budget.check)
