"""What an audit of a table's log finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from isolitmus.model.display import Readable, few
from isolitmus.model.number import many
from isolitmus.model.records import Records, Tabular

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.certainty import Certainty
    from isolitmus.model.overview import Overview

__all__ = ["KINDS", "Audit", "Finding"]

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
class Finding(Readable):
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
class Audit(Readable, Tabular):
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
        head = f"{self.table}: {many(self.commits, 'commit')}, versions {self.first} to {self.last}"
        return few([head, *(found or ["  nothing found"]), *ended])

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
