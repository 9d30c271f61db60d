"""What the transactions of a history did: reads of items, reads by predicate, writes.

A version is called by its object and the number of the transaction that wrote it: ``x2`` is what T2
left of x, ``x0`` what was there before the history. The notation is Adya's;
what T2 made of x before is ``x2:1``, ``x2:2``, …, and a name with digits is told from the number: ``k7_2``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = [
    "INITIAL",
    "ItemRead",
    "Match",
    "Operation",
    "PredicateRead",
    "Status",
    "Transaction",
    "Version",
    "Write",
    "read_versions",
]

INITIAL = 0
"""The number of the transaction that wrote what was there before the history."""

Status = Literal["committed", "aborted", "unknown"]


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """What a transaction left of an object, or had made of it before: ``part`` 1 is its first version, 2 the next, and
    0 the last.

    >>> print(Version("x", 2), Version("x", 2, 1), Version("k7", 2))
    x2 x2:1 k7_2
    """

    object: str
    writer: int
    part: int = 0

    def __str__(self) -> str:
        apart = "_" if any(map(str.isdigit, self.object)) else ""
        return f"{self.object}{apart}{self.writer}{f':{self.part}' if self.part else ''}"

    @property
    def last(self) -> Version:
        """What its writer left."""
        return Version(self.object, self.writer)


@dataclass(frozen=True, slots=True)
class Match:
    """Whether a version matches a predicate; one that does has a star."""

    version: Version
    matches: bool

    def __str__(self) -> str:
        return f"{self.version}{'*' if self.matches else ''}"


@dataclass(frozen=True, slots=True)
class ItemRead:
    """``r(x0)``: this version was read."""

    version: Version

    def __str__(self) -> str:
        return f"r({self.version})"


@dataclass(frozen=True, slots=True)
class PredicateRead:
    """``r(P: x0*, y0 | z3*)``: x0 and y0 were there, of which x0 matched P.

    ``seen`` is the version set. ``others``, after the bar, are versions that were not there and of
    which it is stated whether they match. An object that is named in some read of P but not in the
    version set of this one was seen in its initial version. An initial version that no read of P
    names was not born yet and matches nothing (Adya lists visible versions only).
    """

    predicate: str
    seen: tuple[Match, ...]
    others: tuple[Match, ...] = ()

    def __str__(self) -> str:
        seen = ", ".join(map(str, self.seen))
        others = f" | {', '.join(map(str, self.others))}" if self.others else ""
        return f"r({self.predicate}: {seen}{others})"


@dataclass(frozen=True, slots=True)
class Write:
    """``w(x2)``: this version was written."""

    version: Version

    def __str__(self) -> str:
        return f"w({self.version})"


Operation = ItemRead | PredicateRead | Write


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction: its number, what it did in order, and how it ended as far as anyone knows."""

    number: int
    operations: tuple[Operation, ...]
    status: Status = "committed"

    @property
    def name(self) -> str:
        return f"T{self.number}"

    @property
    def writes(self) -> tuple[Version, ...]:
        """The versions that it left, in order."""
        return tuple(version for version in self.written if not version.part)

    @property
    def written(self) -> tuple[Version, ...]:
        """The versions that it wrote, in order, those before the last ones, too."""
        return tuple(op.version for op in self.operations if isinstance(op, Write))

    def __str__(self) -> str:
        return " ".join(map(str, self.operations))


def read_versions(operation: Operation) -> tuple[Version, ...]:
    """The versions that an operation read.

    >>> from isolitmus.model.notation import read_operations
    >>> [list(map(str, read_versions(one))) for one in read_operations("r(x0) r(P: x0, y0 | z0) w(y1)", "T1")]
    [['x0'], ['x0', 'y0'], []]
    """
    match operation:
        case ItemRead(version):
            return (version,)
        case PredicateRead(_, seen):
            return tuple(match.version for match in seen)
        case Write():
            return ()
