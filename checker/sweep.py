"""The verb ``sweep``: every candidate of a scope, counted exactly under protocols and levels."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from isolitmus.checker.counting.tally import Tallies, Tally, count, shards
from isolitmus.checker.counting.work import Work, counted, kernel
from isolitmus.checker.running.execute import initial
from isolitmus.checker.running.frames import BASIC, SETS
from isolitmus.checker.searching.recheck import recheck_candidate
from isolitmus.checker.searching.universe import candidate
from isolitmus.model.errors import IsolitmusError, LitmusError
from isolitmus.model.reads import needs_reads
from isolitmus.specs.catalogue import spec as named

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isolitmus.checker.counting.tally import Failure, First
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec

    Progress = Callable[[int], None]

__all__ = ["LIMIT", "Sweep", "example", "finished", "planned", "sweep", "tallied"]

LIMIT = 20_000_000
"""The most candidates that are swept unless more are asked for."""
FEW = 100_000
"""So many candidates are counted before other processes would have started."""
SAMPLE = 3.0
"""Seconds for which a part of a sweep is counted, to say how long all of it would take."""
PACE = 5
"""The most transactions of that part: one shard of more may take minutes."""
PROTOCOLS = ("delta-serializable", "delta-write-serializable")
LEVELS = ("log-serializable", "write-serializable")


@dataclass(frozen=True, slots=True)
class Sweep:
    """The counts of a scope's candidates with so many transactions, by protocol, and the ``smallest``
    that a protocol admits and a level forbids, by both their names.

    ``failed`` candidates have a statement that fails at run time after commits that some protocol
    admits; none of these is admitted. ``failure`` is the first such statement.
    """

    scope: str
    transactions: int
    candidates: int
    protocols: dict[str, Tally]
    smallest: dict[tuple[str, str], Litmus]
    seconds: float
    failed: int = 0
    failure: Failure | None = None

    def to_json(self) -> dict[str, object]:
        """The counts as interface.md has them."""
        return {
            "scope": self.scope,
            "transactions": self.transactions,
            "candidates": self.candidates,
            "protocols": {
                name: {
                    "admitted": counts.admitted,
                    "levels": {
                        level: {
                            "forbidden": number,
                            "smallest": self.smallest[name, level].text if number else None,
                        }
                        for level, number in counts.forbidden.items()
                    },
                    "unexplained": counts.unexplained,
                    "not_log_order": counts.not_log_order,
                }
                for name, counts in self.protocols.items()
            },
            "failed": self.failed,
            "seconds": round(self.seconds, 3),
        }


def sweep(
    scope: Scope,
    n: int,
    *,
    protocols: Sequence[Spec] | None = None,
    levels: Sequence[Spec] | None = None,
    limit: int = LIMIT,
    cores: int = 1,
    progress: Progress | None = None,
) -> Sweep:
    """Count every candidate of the scope with n writers, no readers.

    ``protocols`` and ``levels``: by default the scope's own, else Delta's two levels and what they
    promise. With more ``cores`` in so many processes, which import the program's main module anew.
    IsolitmusError if there are more than ``limit`` candidates, with how many there are and about how
    long they would take.

    >>> from isolitmus.specs import scope
    >>> done = sweep(scope("two-partitions"), 2)
    >>> done.candidates, done.protocols["delta-serializable"].forbidden["log-serializable"]
    (196, 0)
    """
    start = monotonic()
    work = planned(scope, n, protocols=protocols, levels=levels, limit=limit, cores=cores)
    total = tallied(work, cores, progress)
    return finished(work, total, monotonic() - start)


def tallied(work: Work, cores: int = 1, progress: Progress | None = None) -> Tallies:
    """What a sweep counts, without its first examples as litmus tests."""
    cut = shards(work.scope, work.n)
    total = Tallies.none([p.name for p in work.protocols], [s.name for s in work.levels])
    processes = 1 if cut.candidates < FEW else min(cores, len(cut))
    for done, (_, tallies) in enumerate(counted(work, range(len(cut)), processes), 1):
        total.add(tallies)
        if progress is not None:
            progress(done * cut.each)
    return total


def planned(
    scope: Scope,
    n: int,
    *,
    protocols: Sequence[Spec] | None = None,
    levels: Sequence[Spec] | None = None,
    limit: int = LIMIT,
    cores: int = 1,
) -> Work:
    """What a sweep counts. IsolitmusError for what it cannot, or for more than ``limit`` candidates."""
    asked = protocols or [named(name) for name in scope.protocols or PROTOCOLS]
    judged = levels or [named(name) for name in scope.levels or LEVELS]
    for spec in (*asked, *judged):
        if needs_reads(spec):
            raise IsolitmusError(f"{spec.name} looks at reads one by one, which a sweep does not")
        lacking = sorted(spec.needs.difference(BASIC, SETS))
        if lacking:
            raise IsolitmusError(
                f"{spec.name} needs {', '.join(lacking)}, which the transactions of a sweep do not have"
            )
    for init in scope.inits:
        try:
            initial(scope.tables, init)
        except LitmusError as error:
            raise LitmusError(f"scope {scope.name}: {error}") from None
    work = Work(scope, n, tuple(asked), tuple(judged))
    total = count(scope, n)
    if total > limit:
        raise IsolitmusError(
            f"scope {scope.name} has {total:,} candidates with {n} transactions, more than the limit"
            f" of {limit:,}; on {cores} core{'s' if cores > 1 else ''} they take about"
            f" {_duration(_estimate(work) / cores)}; --limit {total} lets it run"
        )
    return work


def _estimate(work: Work) -> float:
    """How many seconds a sweep would take about on one core, from a part of it once that is warm; of
    one with many transactions, at the pace of some fewer.
    """
    few = work._replace(n=min(work.n, PACE))
    cut = shards(few.scope, few.n, LIMIT // 1000)
    own = kernel(few)
    warm, done = 0.0, 0
    start = monotonic()
    for index in range(len(cut) // 3, len(cut)):
        own.count(cut[index])
        passed = monotonic() - start
        if passed < SAMPLE / 2:
            warm = passed
            continue
        done += 1
        if passed > SAMPLE:
            break
    return (monotonic() - start - warm) / max(done, 1) / cut.each * count(work.scope, work.n)


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{max(seconds, 1):.0f} s"


def finished(work: Work, total: Tallies, seconds: float) -> Sweep:
    """A sweep with its counts, the first of what each level forbids as litmus tests, judged anew."""
    smallest = {
        (name, level): example(work, found, name, level)
        for name, tally in total.of.items()
        for level, found in tally.first.items()
    }
    return Sweep(
        work.scope.title,
        work.n,
        count(work.scope, work.n),
        total.of,
        smallest,
        seconds,
        total.failed,
        total.failure,
    )


def example(work: Work, found: First, protocol: str, level: str) -> Litmus:
    """What a sweep has found first of what the one admits and the other forbids, judged anew."""
    specs = {spec.name: spec for spec in (*work.protocols, *work.levels)}
    init, _, choices = found
    made = candidate(work.scope, work.scope.inits[init], choices, ())
    assert made is not None
    return recheck_candidate(made, specs[protocol], specs[level], unexplained=False)[0]
