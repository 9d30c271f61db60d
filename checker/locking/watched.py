"""What a scan comes by where it is remembered what was read: versions of rows, also those that it does not see.

As PostgreSQL 15 does it (heapam.c, nbtsearch.c). A table is read page by page, and ours has one: by no index all versions
are met when the scan begins. An index has one entry for each chain of versions between which no key has changed; those
that are asked for are collected when the scan begins, and a chain is followed up to the version that is seen when the scan
comes to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.checker.locking.row_versions import key_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from isolitmus.checker.locking.row_versions import Image, Store, Stored
    from isolitmus.checker.locking.serializable_snapshots import SireadMarks
    from isolitmus.model.schema import Index

__all__ = ["WatchedScan"]


@dataclass(slots=True)
class WatchedScan:
    """A scan, and the entries of its index that it has not come to."""

    overlaps: SireadMarks
    """Where it is remembered."""
    who: str
    """The transaction."""
    table: str
    """What is scanned."""
    sees: Callable[[Stored], Image | None]
    """The version of a row that it sees."""
    left: list[tuple[Stored, Image]] = field(default_factory=list)
    """The entries, each with the first version of its chain."""

    def begin(self, store: Store, index: Index | None, asks: Callable[[Image], bool]) -> None:
        """The scan begins, by an index whose entries it ``asks`` for, or by none."""
        every = store.versions(self.table)
        if index is None:
            self.overlaps.scan(self.who, self.table)
            for row, image in every:
                self.meet(row, image)
            return
        self.overlaps.search(self.who, self.table, index.name)
        self.left = [(row, v) for row, v in every if v.root == v.place and asks(v)]
        self.left.sort(key=lambda entry: (key_of(index, entry[1].values or ()), entry[1].place))

    def upto(self, row: Stored | None) -> None:
        """The scan comes to a row; None: to its end."""
        if row is not None and not any(of is row for of, _ in self.left):
            return
        while self.left:
            of, first = self.left.pop(0)
            for image in of.versions:
                mine = image.root == first.root and image.values is not None
                if mine and self.meet(of, image):
                    self.overlaps.read(self.who, of, image)
                    if of is row:
                        return
                    break

    def meet(self, row: Stored, image: Image) -> bool:
        """Come to a version; whether it is seen."""
        seen = self.sees(row) is image
        later = row.versions[row.versions.index(image) + 1 :]
        writer = next((version.writer for version in later if version.undone is None), None)
        self.overlaps.version(self.who, image, writer, seen=seen)
        return seen
