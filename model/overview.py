"""What a log is like: who committed what, who overlapped whom, and which conflicts were avoided by a hair."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.certainty import Certainty

__all__ = ["CommitSpan", "NearMiss", "Overview"]

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
