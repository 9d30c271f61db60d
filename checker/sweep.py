"""The verb ``sweep``: every candidate of a scope, counted exactly under protocols and levels.

Where every statement has an outline, candidates are judged a million at a time, as bits; else each is
executed and judged by itself. Serial explanations are found by executing in either case, but only of
candidates whose conflicts have a cycle (or go against the log): in all others the order of the conflicts
(or the log) explains every version (semantics.md, Theorems 1 and 3).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.reading.admission import admission
from isolitmus.checker.running.serial import ModelExecutor, gives
from isolitmus.checker.searching.recheck import recheck_candidate
from isolitmus.checker.searching.table_bits import batches, count, uncountable
from isolitmus.checker.searching.universe import candidates
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.reads import needs_reads
from isolitmus.specs.cat import read
from isolitmus.specs.catalogue import spec as named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from isolitmus.checker.searching.table_bits import Batch
    from isolitmus.checker.searching.universe import Candidate
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec

    Progress = Callable[[int], None]

__all__ = ["EXPLAINED", "IN_LOG_ORDER", "LIMIT", "Counts", "Sweep", "log_order_gives", "sweep"]

LIMIT = 20_000_000
"""The most candidates that are swept unless more are asked for."""
SAMPLE = 10_000
"""The most candidates from which the time of a sweep is estimated."""
PROTOCOLS = ("delta-serializable", "delta-write-serializable")
LEVELS = ("log-serializable", "write-serializable")
EXPLAINED = read(
    """"Explained by the order of its conflicts"
    acyclic wr | ww | rw as some-order""",
    "sweep: explained",
)
IN_LOG_ORDER = read(
    """"Explained by the order of the log"
    acyclic wr | ww | rw | log as log-order""",
    "sweep: in log order",
)


@dataclass(slots=True)
class Counts:
    """What one protocol admits: how many candidates, of them those that each level forbids (with the
    first one), those that no serial order explains at some version, and those whose final table is
    not what the order of the log gives.
    """

    admitted: int = 0
    forbidden: dict[str, int] = field(default_factory=dict)
    smallest: dict[str, Litmus] = field(default_factory=dict)
    unexplained: int = 0
    not_log_order: int = 0


@dataclass(frozen=True, slots=True)
class Sweep:
    """The counts of a scope's candidates with so many transactions, by protocol."""

    scope: str
    transactions: int
    candidates: int
    protocols: dict[str, Counts]
    seconds: float

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
                            "smallest": counts.smallest[level].text if number else None,
                        }
                        for level, number in counts.forbidden.items()
                    },
                    "unexplained": counts.unexplained,
                    "not_log_order": counts.not_log_order,
                }
                for name, counts in self.protocols.items()
            },
            "seconds": round(self.seconds, 3),
        }


def sweep(
    scope: Scope,
    n: int,
    *,
    protocols: Sequence[Spec] | None = None,
    levels: Sequence[Spec] | None = None,
    limit: int = LIMIT,
    progress: Progress | None = None,
) -> Sweep:
    """Count every candidate of the scope with n writers, no readers.

    ``protocols`` and ``levels``: by default the scope's own, else Delta's two levels and what they
    promise. IsolitmusError if there are more than ``limit`` candidates, with how many there are.

    >>> from isolitmus.specs import scope
    >>> counted = sweep(scope("two-partitions"), 2)
    >>> counted.candidates, counted.protocols["delta-serializable"].forbidden["log-serializable"]
    (196, 0)
    """
    total = count(scope, n)
    if total > limit:
        raise IsolitmusError(
            f"scope {scope.name} has {total:,} candidates with {n} transactions, more than the limit"
            f" of {limit:,}; {_pace(scope, total)}; --limit {total} lets it run"
        )
    if scope.noops == "keep":
        raise IsolitmusError(f'scope {scope.name}: noops = "keep" cannot be swept; write "skip"')
    start = monotonic()
    asked = protocols or [named(name) for name in scope.protocols or PROTOCOLS]
    judged = levels or [named(name) for name in scope.levels or LEVELS]
    for level in (*asked, *judged):
        if needs_reads(level):
            raise IsolitmusError(f"{level.name} looks at reads one by one, which a sweep does not")
    counter = _Counter(asked, judged)
    seen = 0
    if uncountable(scope) is None:
        for batch in batches(scope, n):
            counter.bits(batch)
            seen += batch.size
            if progress is not None:
                progress(seen)
    else:
        for found in candidates(scope, n, lambda _: True):
            if found is not None and found.writers == n:
                counter.one(found)
            seen += 1
            if progress is not None and seen % 500 == 0:
                progress(seen)
    return Sweep(scope.title, n, total, counter.counts, monotonic() - start)


def _pace(scope: Scope, total: int) -> str:
    """How long a sweep would take about, from a part of it."""
    if uncountable(scope) is not None:
        return f"executed one by one, about {total // 2000 + 1:,} s"
    start = monotonic()
    counter = _Counter([named(n) for n in PROTOCOLS], [named(n) for n in LEVELS])
    for n in range(1, 9):
        if n > 1 and count(scope, n) > SAMPLE:
            break
        part = n
    for batch in batches(scope, part):
        counter.bits(batch)
    seconds = (monotonic() - start) * total / count(scope, part)
    return f"about {seconds:,.0f} s at the pace of {part} transactions"


class _Counter:
    def __init__(self, protocols: Sequence[Spec], levels: Sequence[Spec]) -> None:
        self.protocols, self.levels = protocols, levels
        self.counts = {
            p.name: Counts(forbidden={level.name: 0 for level in levels}) for p in protocols
        }
        every = (*protocols, *levels, EXPLAINED, IN_LOG_ORDER)
        self.specs = list({spec.name: spec for spec in every}.values())
        self.judges = {spec.name: admission(spec) for spec in self.specs}

    def bits(self, batch: Batch) -> None:
        """Count a batch of candidates."""
        active = batch.active()
        found = zip(self.specs, batch.admits(*self.specs), strict=True)
        admitted = {spec.name: bits & active for spec, bits in found}
        doubtful: dict[int, tuple[bool, bool]] = {}
        for protocol in self.protocols:
            counts, mine = self.counts[protocol.name], admitted[protocol.name]
            counts.admitted += mine.bit_count()
            for level in self.levels:
                broken = mine & ~admitted[level.name]
                if broken and not counts.forbidden[level.name]:
                    first = batch.candidate((broken & -broken).bit_length() - 1)
                    counts.smallest[level.name] = _litmus(first, protocol, level)
                counts.forbidden[level.name] += broken.bit_count()
            cyclic = mine & ~admitted[EXPLAINED.name]
            backward = mine & ~admitted[IN_LOG_ORDER.name]
            for k in _positions(batch, cyclic | backward):
                if k not in doubtful:
                    one = batch.candidate(k)
                    doubtful[k] = (
                        bool(cyclic >> k & 1) and one.unexplained(),
                        bool(backward >> k & 1) and not log_order_gives(one),
                    )
                counts.unexplained += doubtful[k][0]
                counts.not_log_order += doubtful[k][1]

    def one(self, candidate: Candidate) -> None:
        """Count one candidate, every statement of which changes some file."""
        verdicts = {name: admits(candidate.frame) for name, admits in self.judges.items()}
        for protocol in self.protocols:
            if not verdicts[protocol.name]:
                continue
            counts = self.counts[protocol.name]
            counts.admitted += 1
            for level in self.levels:
                if not verdicts[level.name]:
                    if not counts.forbidden[level.name]:
                        counts.smallest[level.name] = _litmus(candidate, protocol, level)
                    counts.forbidden[level.name] += 1
            counts.unexplained += not verdicts[EXPLAINED.name] and candidate.unexplained()
            counts.not_log_order += not verdicts[IN_LOG_ORDER.name] and not log_order_gives(
                candidate
            )


def _positions(batch: Batch, chosen: int) -> Iterator[int]:
    return (int(k) for k in np.flatnonzero(batch.product.bits(chosen)))


def log_order_gives(candidate: Candidate) -> bool:
    """Whether the writers one after another in the order of the log give the final tables."""
    names = tuple(event.name for event in candidate.events)
    seen = {name: table.rows() for name, table in candidate.states[-1].items()}
    return gives(ModelExecutor(candidate.plain()), names, seen)


def _litmus(candidate: Candidate, protocol: Spec, level: Spec) -> Litmus:
    return recheck_candidate(candidate, protocol, level, unexplained=False)[0]
