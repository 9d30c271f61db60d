"""Results of an audit of a table's log: findings with their certainty, and an overview of the
log.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from isolitmus.model.display import ReadableRepr, count_of, first_lines
from isolitmus.model.records import Records, Tabular

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["KINDS", "Audit", "Certainty", "CommitSpan", "Finding", "NearMiss", "Overview"]


KINDS = {
    "reorder": (
        "commits that did not see a concurrent change to their read set, as their level permits"
    ),
    "bridge": (
        "blind appends that one commit did not see, and that another commit, which it did not see"
        " either, may have read"
    ),
    "missed-conflict": (
        "commits that Delta's conflict check, at the level that they record, would have aborted"
    ),
    "removed-twice": "commits that remove a file that was no longer in the table",
    "two-live-entries": "files that are in the table twice",
    "comes-back": "removed files that a commit other than RESTORE or CLONE added again",
    "blind-flag": "commits marked as blind appends, in contradiction to their actions",
    "no-data-change": "commits marked dataChange: false, in contradiction to their row counts",
    "level-used": "commits checked at a level that the table does not allow",
    "level-change": "changes of the isolation level of the table",
    "read-version": "impossible read versions",
    "records-nothing": "commits that do not record what they read",
}
"""Description of each kind of finding, in display order."""


@dataclass(frozen=True, slots=True)
class Finding(ReadableRepr):
    """One thing that a log shows: its versions, oldest first, whether it is so or may be, and why.

    ``why`` is a sentence without its full stop.
    """

    kind: str
    versions: tuple[int, ...]
    certainty: Certainty
    why: str

    def __repr__(self) -> str:
        return f"{self.kind}, {self.certainty}, {', '.join(map(str, self.versions))}: {self.why}"

    def to_json(self) -> dict[str, object]:
        """The finding as docs/interface.md, 6, has it."""
        return {
            "kind": self.kind,
            "versions": list(self.versions),
            "certainty": self.certainty,
            "why": self.why,
        }

    @classmethod
    def of_json(cls, said: Mapping[str, Any]) -> Finding:
        """The finding that ``to_json`` has written.

        >>> Finding.of_json(Finding("reorder", (2, 3), "certain", "…").to_json()).versions
        (2, 3)
        """
        return cls(said["kind"], tuple(said["versions"]), said["certainty"], said["why"])


@dataclass(frozen=True, slots=True)
class Audit(ReadableRepr, Tabular):
    """Result of the audit of one table."""

    table: str
    """The path of the table."""
    first: int
    """The first version that was looked at."""
    last: int
    """The last one."""
    findings: tuple[Finding, ...]
    """The first of each kind and certainty, as many as are kept."""
    counts: Mapping[tuple[str, Certainty], int] = field(default_factory=dict)
    """All of them, by kind and certainty."""
    notes: tuple[str, ...] = ()
    """What was not looked at, a sentence each."""
    seconds: float = 0.0
    """How long it took."""
    ended: str | None = None
    """What ended it before the newest commit."""
    overview: Overview | None = None
    """What the commits are, and how they overlap; None: nothing was looked at."""

    @property
    def records(self) -> Records:
        """The findings that are kept, a row each."""
        return Records(
            ("table", "kind", "versions", "certainty", "why"),
            tuple(
                (self.table, f.kind, " ".join(map(str, f.versions)), f.certainty, f.why)
                for f in self.findings
            ),
        )

    def __repr__(self) -> str:
        """What was looked at, and how much was found."""
        found = [f"  {kind}, {sure}: {number:,}" for (kind, sure), number in self.counts.items()]
        ended = [f"  ended: {self.ended}"] if self.ended is not None else []
        head = (
            f"{self.table}: {count_of(self.commits, 'commit')}, versions {self.first} to"
            f" {self.last}"
        )
        return first_lines([head, *(found or ["  no anomaly found"]), *ended])

    @property
    def commits(self) -> int:
        """The number of commits that were looked at."""
        return self.last - self.first + 1

    def to_json(self) -> dict[str, object]:
        """The audit as docs/interface.md, 6, has it."""
        return {
            "table": self.table,
            "commits": self.commits,
            "versions": [self.first, self.last],
            "findings": [finding.to_json() for finding in self.findings],
            "counts": [
                {"kind": kind, "certainty": certainty, "number": number}
                for (kind, certainty), number in self.counts.items()
            ],
            "notes": list(self.notes),
            "overview": None if self.overview is None else self.overview.to_json(),
            "ended": self.ended,
            "seconds": round(self.seconds, 3),
        }


REORDERED = "reorder"
"""What would have come of a near miss if it is no exception."""


@dataclass(frozen=True, slots=True)
class NearMiss:
    """Two concurrent commits, and the outcome of the first one if the other had committed first."""

    first: int
    """The version of the one that was committed first."""
    second: int
    """That of the other one, which had not seen it."""
    end: str
    """The exception that would have refused the first, or ``reorder``: it would have passed by the
    other one.
    """
    certainty: Certainty
    """Whether what the first had read shows that, or does not exclude it."""

    def words(self, operations: Mapping[int, str]) -> str:
        """Describe the near miss; ``operations`` maps versions to operations.

        >>> NearMiss(3, 4, "ConcurrentAppendException", "certain").words({3: "DELETE", 4: "WRITE"})
        'if version 4 (WRITE) had committed first, version 3 (DELETE) would have aborted with ConcurrentAppendException'
        >>> NearMiss(3, 4, "reorder", "possible").words({})
        'if version 4 had committed first, version 3 might have committed without seeing it, and would precede it, \
against the order of the log'
        """
        one, other = (
            f"version {v}" + (f" ({operations[v]})" if v in operations else "")
            for v in (self.first, self.second)
        )
        sure = self.certainty == "certain"
        if self.end == REORDERED:
            would = "would" if sure else "might"
            return (
                f"if {other} had committed first, {one} {would} have committed without seeing it,"
                " and would precede it, against the order of the log"
            )
        would = "would" if sure else "might"
        return f"if {other} had committed first, {one} {would} have aborted with {self.end}"


@dataclass(frozen=True, slots=True)
class CommitSpan:
    """A commit as a picture of the log has it."""

    version: int
    """The one that it made."""
    read: int | None
    """The one that it had read."""
    operation: str
    """The command."""
    blind: bool
    """Whether it calls itself a blind append."""


@dataclass(frozen=True, slots=True)
class Overview:
    """What the commits of a log are, and how they overlap; counts are of all that were audited."""

    operations: Mapping[str, int]
    """How many commits there are of each operation."""
    levels: Mapping[str, int]
    """How many were checked at each level."""
    writers: Mapping[str, int]
    """How many each program wrote."""
    first: int = 0
    """When the first was committed, in milliseconds; 0: it does not say."""
    last: int = 0
    """When the last was."""
    overlapping: int = 0
    """How many had not seen another one."""
    pairs: Mapping[str, int] | None = None
    """How often a commit of one operation had not seen one of another: ``DELETE beside WRITE``."""
    near: tuple[NearMiss, ...] = ()
    """The first of the near misses."""
    near_counts: Mapping[str, int] | None = None
    """How many there are, by what would have come of them and how sure that is: ``reorder,
    certain``.
    """
    spans: tuple[CommitSpan, ...] = ()
    """The newest commits."""

    def to_json(self) -> dict[str, Any]:
        """The overview as docs/interface.md, 6, has it."""
        return asdict(self)

    @classmethod
    def of_json(cls, said: Mapping[str, Any]) -> Overview:
        """The overview that a document has.

        >>> Overview.of_json(Overview({"WRITE": 1}, {}, {}, near=(NearMiss(1, 2, "reorder", "certain"),)).to_json()).near
        (NearMiss(first=1, second=2, end='reorder', certainty='certain'),)
        """
        near = tuple(NearMiss(**one) for one in said["near"])
        spans = tuple(CommitSpan(**one) for one in said["spans"])
        return cls(**cast("dict[str, Any]", {**said, "near": near, "spans": spans}))


Certainty = Literal["certain", "possible"]
"""The log shows it, provided that commits say the truth of themselves; or it does not exclude
it.
"""
