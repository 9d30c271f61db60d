"""Results of an audit: findings, and an overview of the log.

What an audit of a table's log finds.

What a log is like: who committed what, who overlapped whom, and which conflicts were avoided by a hair.

How sure is what a log shows.
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
    "reorder": "commits that passed by rows which their level lets them pass by",
    "bridge": "blind appends that one commit passed by and another, itself passed by, may have read",
    "missed-conflict": "commits that Delta's check at the level they log would have refused",
    "removed-twice": "commits that remove what was not there any more",
    "two-live-entries": "files that are in the table twice",
    "comes-back": "removed files that came back other than by RESTORE",
    "blind-flag": "claims to be a blind append that the actions contradict",
    "no-data-change": "claims to change no data that the numbers of rows contradict",
    "level-used": "commits checked at a level that the table's does not allow",
    "level-change": "changes of the table's isolation level",
    "read-version": "read versions that cannot be",
    "records-nothing": "commits that do not say what they read",
}
"""The kinds of findings in the order in which people see them, each in words."""


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
    """What the log of one table shows."""

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
        head = f"{self.table}: {count_of(self.commits, 'commit')}, versions {self.first} to {self.last}"
        return first_lines([head, *(found or ["  nothing found"]), *ended])

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
    """Two commits that were under way together, and what the other order would have done to the first of them."""

    first: int
    """The version of the one that was committed first."""
    second: int
    """That of the other one, which had not seen it."""
    end: str
    """The exception that would have refused the first, or ``reorder``: it would have passed by the other one."""
    certainty: Certainty
    """Whether what the first had read shows that, or does not exclude it."""

    def words(self, operations: Mapping[int, str]) -> str:
        """The near miss for a person; ``operations`` are those of the versions.

        >>> NearMiss(3, 4, "ConcurrentAppendException", "certain").words({3: "DELETE", 4: "WRITE"})
        'had version 4 (WRITE) been quicker, version 3 (DELETE) would have been refused: ConcurrentAppendException'
        >>> NearMiss(3, 4, "reorder", "possible").words({})
        'had version 4 been quicker, version 3 may have passed it by, and would stand before it, against the log'
        """
        one, other = (
            f"version {v}" + (f" ({operations[v]})" if v in operations else "")
            for v in (self.first, self.second)
        )
        sure = self.certainty == "certain"
        if self.end == REORDERED:
            would = (
                "would have passed it by, and stood"
                if sure
                else "may have passed it by, and would stand"
            )
            return f"had {other} been quicker, {one} {would} before it, against the log"
        would = "would have been refused" if sure else "might have been refused"
        return f"had {other} been quicker, {one} {would}: {self.end}"


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
    """How many there are, by what would have come of them and how sure that is: ``reorder, certain``."""
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
"""The log shows it, provided that commits say the truth of themselves; or it does not exclude it."""
