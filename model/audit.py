"""Result of auditing a table's log: findings with their certainty, and an overview."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from isolitmus.model.display import ReadableRepr, count_of, first_lines
from isolitmus.model.records import Records, Tabular

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    """One finding in a log: kind, versions (oldest first), certainty and reason.

    ``why`` is a sentence without its full stop.
    """

    kind: str
    versions: tuple[int, ...]
    certainty: Certainty
    why: str

    def __repr__(self) -> str:
        return f"{self.kind}, {self.certainty}, {', '.join(map(str, self.versions))}: {self.why}"

    def to_json(self) -> dict[str, object]:
        """Return the finding as a JSON object (docs/interface.md, 6)."""
        return {
            "kind": self.kind,
            "versions": list(self.versions),
            "certainty": self.certainty,
            "why": self.why,
        }

    @classmethod
    def of_json(cls, said: Mapping[str, Any]) -> Finding:
        """Return the finding that ``to_json`` wrote.

        Examples
        --------
        >>> Finding.of_json(Finding("reorder", (2, 3), "certain", "…").to_json()).versions
        (2, 3)
        """
        return cls(said["kind"], tuple(said["versions"]), said["certainty"], said["why"])


@dataclass(frozen=True, slots=True)
class Audit(ReadableRepr, Tabular):
    """Result of the audit of one table."""

    table: str
    """Path of the table."""
    first: int
    """First version that was audited."""
    last: int
    """Last version that was audited."""
    findings: tuple[Finding, ...]
    """First findings of each kind and certainty, as many as are kept."""
    counts: Mapping[tuple[str, Certainty], int] = field(default_factory=dict)
    """Number of all findings, by kind and certainty."""
    notes: tuple[str, ...] = ()
    """Parts that were not audited, a sentence each."""
    seconds: float = 0.0
    """Duration of the audit in seconds."""
    ended: str | None = None
    """Reason why the audit ended before the newest commit; None if it did not."""
    overview: Overview | None = None
    """Overview of the commits and how they overlap; None if no commit was audited."""

    @property
    def records(self) -> Records:
        """Findings that are kept, one row each."""
        return Records(
            ("table", "kind", "versions", "certainty", "why"),
            tuple(
                (self.table, f.kind, " ".join(map(str, f.versions)), f.certainty, f.why)
                for f in self.findings
            ),
        )

    def __repr__(self) -> str:
        """Return the audited versions and the number of findings of each kind."""
        found = [f"  {kind}, {sure}: {number:,}" for (kind, sure), number in self.counts.items()]
        ended = [f"  ended: {self.ended}"] if self.ended is not None else []
        head = (
            f"{self.table}: {count_of(self.commits, 'commit')}, versions {self.first} to"
            f" {self.last}"
        )
        return first_lines([head, *(found or ["  no anomaly found"]), *ended])

    @property
    def commits(self) -> int:
        """Number of commits that were audited."""
        return self.last - self.first + 1

    def to_json(self) -> dict[str, object]:
        """Return the audit as a JSON object (docs/interface.md, 6)."""
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


@dataclass(frozen=True, slots=True)
class AuditRound(ReadableRepr):
    """State of one or more tables after a look at their logs."""

    number: int
    """Number of looks so far, this one included."""
    moment: float
    """Time at the end of the look, in seconds since 1970."""
    seconds: float
    """Duration of the look in seconds."""
    audits: Mapping[str, Audit]
    """Newest audit of each table, by its path; a log that could never be read has none."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Reason why a table is no longer audited, by its path: its log could not be read."""

    @property
    def tables(self) -> tuple[str, ...]:
        """Paths of the tables, audited ones first."""
        return tuple(dict.fromkeys([*self.audits, *self.errors]))

    def to_json(self) -> dict[str, object]:
        """Return the round as a JSON object (docs/interface.md, 6).

        Examples
        --------
        >>> AuditRound(1, 0.0, 0.5, {}, {"t": "no log"}).to_json()["tables"][0]["error"]
        'no log'
        """
        return {
            "round": self.number,
            "seconds": round(self.seconds, 3),
            "tables": [self._state(table) for table in self.tables],
        }

    def _state(self, table: str) -> dict[str, object]:
        """Return the audited versions and the counts of a table; null if it has no audit."""
        audit = self.audits.get(table)
        said = {} if audit is None else audit.to_json()
        keys = ("commits", "versions", "counts", "ended")
        near = {} if audit is None or audit.overview is None else audit.overview.near_counts
        return {
            "table": table,
            **{key: said.get(key) for key in keys},
            "near_counts": None if audit is None else dict(near or {}),
            "error": self.errors.get(table),
        }


REORDERED = "reorder"
"""Outcome of a near miss that would not be an exception."""


@dataclass(frozen=True, slots=True)
class NearMiss:
    """Two concurrent commits, and the outcome of the first one if the other had committed first."""

    first: int
    """Version of the commit that was committed first."""
    second: int
    """Version of the other commit, which had not seen the first."""
    end: str
    """Exception that the first would have aborted with, or ``reorder``: it would have committed
    without seeing the other one.
    """
    certainty: Certainty
    """``certain`` if the read set of the first shows the outcome, ``possible`` if it does not
    exclude it.
    """

    def words(self, operations: Mapping[int, str]) -> str:
        """Return a description of the near miss.

        Parameters
        ----------
        operations : Mapping of int to str
            Operation of each version; versions may be missing.

        Examples
        --------
        >>> near = NearMiss(3, 4, "ConcurrentAppendException", "certain")
        >>> print(near.words({3: "DELETE", 4: "WRITE"}))
        if version 4 (WRITE) had committed first, version 3 (DELETE) would have aborted with \
ConcurrentAppendException
        >>> print(NearMiss(3, 4, "reorder", "possible").words({}))
        if version 4 had committed first, version 3 might have committed without seeing it, and \
would precede it, against the order of the log
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
    """One commit as the diagram of the log shows it."""

    version: int
    """Version that the commit made."""
    read: int | None
    """Version that the commit read; None if not recorded."""
    operation: str
    """Operation, such as ``WRITE``."""
    blind: bool
    """True if the commit is marked as a blind append."""


@dataclass(frozen=True, slots=True)
class Overview:
    """Overview of the commits of a log and how they overlap; counts are of all audited commits."""

    operations: Mapping[str, int]
    """Number of commits of each operation."""
    levels: Mapping[str, int]
    """Number of commits checked at each isolation level."""
    writers: Mapping[str, int]
    """Number of commits of each writing program."""
    first: int = 0
    """Timestamp of the first commit, in milliseconds; 0 if not recorded."""
    last: int = 0
    """Timestamp of the last commit, in milliseconds; 0 if not recorded."""
    overlapping: int = 0
    """Number of commits that had not seen another commit."""
    pairs: Mapping[str, int] | None = None
    """Number of pairs in which a commit of one operation had not seen one of another, by
    ``DELETE beside WRITE``.
    """
    near: tuple[NearMiss, ...] = ()
    """First near misses."""
    near_counts: Mapping[str, int] | None = None
    """Number of near misses, by outcome and certainty, such as ``reorder, certain``."""
    spans: tuple[CommitSpan, ...] = ()
    """Newest commits."""

    def to_json(self) -> dict[str, Any]:
        """Return the overview as a JSON object (docs/interface.md, 6)."""
        return asdict(self)

    @classmethod
    def of_json(cls, said: Mapping[str, Any]) -> Overview:
        """Return the overview that ``to_json`` wrote.

        Examples
        --------
        >>> near = (NearMiss(1, 2, "reorder", "certain"),)
        >>> Overview.of_json(Overview({"WRITE": 1}, {}, {}, near=near).to_json()).near
        (NearMiss(first=1, second=2, end='reorder', certainty='certain'),)
        """
        near = tuple(NearMiss(**one) for one in said["near"])
        spans = tuple(CommitSpan(**one) for one in said["spans"])
        return cls(**cast("dict[str, Any]", {**said, "near": near, "spans": spans}))


Certainty = Literal["certain", "possible"]
"""Certainty of a finding: ``certain`` if the log shows it, provided that commits describe
themselves truthfully; ``possible`` if the log does not exclude it.
"""
