"""The overview of a log, made while it is audited, in bounded memory.

A *near miss*: L committed after W, which it had not seen, so the two were under way together. Had L been quicker, W would
have been the one that had not seen the other: Delta's check would have refused W, or, where its level lets it pass and L
changes rows that W had read, W would have passed L by. Counted is what is certain, and apart from it what the log does
not exclude.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from isolitmus.checker.auditing.dependencies import (
    AuditedCommit,
    added_to,
    changes,
    passes,
    removed_from,
)
from isolitmus.model.overview import REORDERED, CommitSpan, NearMiss, Overview

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolitmus.model.delta.log import LogCommit, LogMetadata

__all__ = ["Overlaps"]

KEPT = 100
"""So many near misses are kept."""
COUNTED = ("operations", "levels", "writers", "pairs", "near_counts")
"""The counts by name."""
DRAWN = 60
"""So many of the newest commits are drawn."""
NAMES = 50
"""So many operations, levels, writers and pairs are told apart."""


class Overlaps:
    """What is told of commits as an audit goes through them."""

    def __init__(self) -> None:
        self.operations: Counter[str] = Counter()
        self.levels: Counter[str] = Counter()
        self.writers: Counter[str] = Counter()
        self.pairs: Counter[str] = Counter()
        self.near_counts: Counter[str] = Counter()
        self.near: list[NearMiss] = []
        self.spans: deque[CommitSpan] = deque(maxlen=DRAWN)
        self.overlapping = 0
        self.first = self.last = 0

    def hear(self, commit: LogCommit) -> None:
        """A commit, in the order of the log."""
        operation = _operation(commit)
        _count(self.operations, operation)
        _count(self.levels, commit.level or "not said")
        _count(self.writers, commit.engine or "a writer without a name")
        self.first = self.first or commit.timestamp
        self.last = commit.timestamp or self.last
        blind = commit.blind is True
        self.spans.append(CommitSpan(commit.version, commit.read_version, operation, blind))

    def overlap(
        self, later: AuditedCommit, window: Iterable[tuple[LogCommit, LogMetadata]]
    ) -> None:
        """A commit with those that it had not seen, the newest of them."""
        self.overlapping += 1
        for commit, metadata in window:
            _count(self.pairs, f"{_operation(later.commit)} beside {_operation(commit)}")
            earlier = AuditedCommit.of(commit, metadata)
            missed = _near(earlier, later)
            if missed is not None:
                self.near_counts[f"{missed.end}, {missed.certainty}"] += 1
                if len(self.near) < KEPT:
                    self.near.append(missed)

    def to_json(self) -> dict[str, Any]:
        """What is known so far, for ``restore``; counts as they came, which ends ties."""
        found: dict[str, Any] = {name: getattr(self, name) for name in COUNTED}
        found |= {"near": [asdict(one) for one in self.near]}
        found |= {"spans": [asdict(one) for one in self.spans]}
        return found | {"overlapping": self.overlapping, "first": self.first, "last": self.last}

    def restore(self, said: dict[str, Any]) -> None:
        """Take up what was known."""
        for name in COUNTED:
            setattr(self, name, Counter(said[name]))
        self.near = [NearMiss(**one) for one in said["near"]]
        self.spans.extend(CommitSpan(**one) for one in said["spans"])
        self.overlapping, self.first, self.last = (
            said[name] for name in ("overlapping", "first", "last")
        )

    def overview(self) -> Overview:
        """What there is to say so far; the most frequent first."""
        return Overview(
            dict(self.operations.most_common()),
            dict(self.levels.most_common()),
            dict(self.writers.most_common()),
            self.first,
            self.last,
            self.overlapping,
            dict(self.pairs.most_common()),
            tuple(self.near),
            dict(self.near_counts.most_common()),
            tuple(self.spans),
        )


def _near(earlier: AuditedCommit, later: AuditedCommit) -> NearMiss | None:
    """What would have become of the earlier of two commits, had the later one been quicker."""
    first, second = earlier.commit, later.commit
    may = passes(first, second)
    if may is None or earlier.reads.kind == "nothing":
        return None
    end, certainty = REORDERED, changes(earlier, second)
    if not may:
        end, certainty = "ConcurrentAppendException", added_to(earlier, second.adds)
        if certainty is None:
            end, certainty = "ConcurrentDeleteReadException", removed_from(earlier, second.removes)
            if (first.read_version or 0) < (second.read_version or 0):
                certainty = certainty and "possible"  # it may not have had the file
    return certainty and NearMiss(first.version, second.version, end, certainty)


def _operation(commit: LogCommit) -> str:
    return commit.operation or "an operation without a name"


def _count(counts: Counter[str], name: str) -> None:
    counts[name if name in counts or len(counts) < NAMES else "others"] += 1
