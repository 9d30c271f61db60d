"""What an audit of a table's log finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["KINDS", "Audit", "Certainty", "Finding"]

Certainty = Literal["certain", "possible"]

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
class Finding:
    """One thing that a log shows: its versions, oldest first, whether it is so or may be, and why.

    ``why`` is a sentence without its full stop.
    """

    kind: str
    versions: tuple[int, ...]
    certainty: Certainty
    why: str

    def to_json(self) -> dict[str, object]:
        """The finding as interface.md has it."""
        return {
            "kind": self.kind,
            "versions": list(self.versions),
            "certainty": self.certainty,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class Audit:
    """What the log of one table shows: versions ``first`` to ``last`` were looked at, one by one.

    ``counts`` has every finding by kind and certainty; ``findings`` the first of each, as many as are
    kept. ``notes`` says what was not looked at, a sentence each.
    """

    table: str
    first: int
    last: int
    findings: tuple[Finding, ...]
    counts: Mapping[tuple[str, Certainty], int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def commits(self) -> int:
        """The number of commits that were looked at."""
        return self.last - self.first + 1

    def to_json(self) -> dict[str, object]:
        """The audit as interface.md has it."""
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
            "seconds": round(self.seconds, 3),
        }
