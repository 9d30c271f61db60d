"""Rows that are written in their place, and where they come to stand: what is locked and waited for.

Whoever writes locks the row, its page or its table, waits for whoever holds the gap into which an entry goes, and has a
key of a unique index only once nobody else may have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.checker.locking.heaps import DUPLICATE
from isolitmus.checker.locking.lock_table import Lock, Resource
from isolitmus.checker.locking.row_versions import key_of
from isolitmus.checker.locking.scans import page
from isolitmus.model.sql.failing import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from isolitmus.checker.locking.row_versions import Image, Stored
    from isolitmus.checker.locking.scans import Shared
    from isolitmus.model.schema import Index
    from isolitmus.model.sql.values import Row

__all__ = ["InPlace"]


@dataclass(slots=True)
class InPlace:
    """What a statement does to write rows of a table."""

    who: str
    """The transaction."""
    work: Shared
    """What the transactions share."""
    table: str
    """The table that is written."""

    def get(self, place: Resource, mode: str, *, loose: bool = False) -> Iterator[Lock]:
        """Wait for a lock, in a queue or ``loose``, and have it."""
        wanted = Lock(self.who, place, mode)
        if self.work.locks.covered(wanted):
            if wanted in self.work.locks.held:  # the scan that took it gives back only its own
                self.work.locks.grant(wanted)
            return
        if loose:
            self.work.locks.loose.add(wanted)
        while self.work.locks.behind(wanted):
            yield wanted
        self.work.locks.grant(wanted)

    def exclusive(self, row: Stored, seen: Image) -> Iterator[Lock]:
        """Lock a row that is to be written, of which a version was seen: where versions stand behind each other, whoever
        has to go on from that to what others have not committed waits for these, and not in the row's queue.
        """
        granule = self.work.rules.writes.granule
        if granule == "table":
            yield from self.get(Resource("table", self.table), "X")
            return
        follows = row.last is not seen and row.current.committed is None
        yield from self.get(_row(row), "X", loose=self.work.locks.versions and follows)
        version = row.seen("current", 0, self.who)
        if version is None or version.values is None:  # of what is gone nothing stays locked
            self.work.locks.release(Lock(self.who, _row(row), "X"))
        elif granule == "page":
            yield from self.pages(row, version.values)

    def pages(self, row: Stored, values: Row) -> Iterator[Lock]:
        """Lock the pages on which a row stands with these values."""
        for index in (None, *self.indexes):
            at = key_of(index, values), row.number
            yield from self.get(page(self.work, self.table, index, at), "X")

    def insert(self, values: Row) -> Generator[Lock, None, Stored]:
        """Insert a row."""
        store, overlaps = self.work.store, self.work.overlaps
        if overlaps is not None:
            overlaps.numbered(self.who)
            overlaps.puts(self.who, self.table)
        if self.work.rules.writes.granule == "table":
            yield from self.get(Resource("table", self.table), "X")
        somewhere = Lock(self.who, Resource("point", self.table, "anywhere"), "X")
        if self.work.locks.behind(somewhere):  # who has the whole table
            yield somewhere
        number = len(store.rows[self.table])
        yield from self.free(values, number, None)
        while number != len(store.rows[self.table]):  # others came while it waited
            number = len(store.rows[self.table])
            yield from self.free(values, number, None)
        self.enters(*self.indexes)
        row = store.insert(self.table, values, self.who)
        self.work.locks.grant(Lock(self.who, _row(row), "X"))
        if self.work.rules.writes.granule == "page":
            yield from self.pages(row, values)
        return row

    def delete(self, row: Stored, _old: Row) -> Iterator[Lock]:
        """Delete a row that is locked."""
        self.work.store.write(row, None, self.who)
        return iter(())

    def update(self, row: Stored, old: Row, new: Row) -> Iterator[Lock]:
        """Change a row that is locked, once it may stand where it comes to stand."""
        yield from self.free(new, row.number, old)
        if self.work.rules.writes.granule == "page":
            yield from self.pages(row, new)
        keys = self.work.store.keys
        if keys(self.table, old) != keys(self.table, new):
            self.enters(*self.indexes)
        self.work.store.write(row, new, self.who)

    @property
    def indexes(self) -> tuple[Index, ...]:
        """Those of the table."""
        return self.work.store.schemas[self.table].indexes

    def enters(self, *indexes: Index) -> None:
        """Entries come into some indexes."""
        if self.work.overlaps is not None:
            for index in indexes:
                self.work.overlaps.enters(self.who, self.table, index.name)

    def free(self, values: Row, number: int, old: Row | None) -> Iterator[Lock]:
        """Wait until nobody holds the gaps that an entry goes into, and no other row has its key where keys
        are unique. After a wait all is asked anew: whoever waited before may have taken the place.
        """
        while wanted := self.taken(values, number, old):
            while self.work.locks.behind(wanted):
                yield wanted

    def taken(self, values: Row, number: int, old: Row | None) -> Lock | None:
        """What has to be waited for before a row stands there; None: nothing. An error if another has its key."""
        for index in (None, *self.indexes):
            key = key_of(index, values)
            if old is not None and key == key_of(index, old):
                continue
            name = "" if index is None else index.name
            point = Lock(self.who, Resource("point", self.table, name, (key, number)), "X")
            if self.work.locks.behind(point):
                return point
            if index is not None and index.unique:
                owner = self.owner(index, values, number)
                if owner is not None:
                    return owner
        return None

    def owner(self, index: Index, values: Row, number: int) -> Lock | None:
        """The lock of a row that has a key, or may have it again; an error if it has it for good."""
        if any(values[k] is None for k in index.columns):
            return None
        key = key_of(index, values)
        for row in self.work.store.rows[self.table]:
            if row.number == number:
                continue
            has = [
                v
                for v in (row.seen("current", 0, self.who), row.last)
                if v is not None and v.values is not None
            ]
            if not any(key_of(index, v.values) == key for v in has if v.values is not None):
                continue
            wanted = Lock(self.who, _row(row), "S")
            if self.work.locks.versions:
                self.work.locks.loose.add(wanted)
            if self.work.locks.behind(wanted) and not self.work.locks.covered(wanted):
                return wanted
            now = row.seen("current", 0, self.who)
            if now is not None and now.values is not None and key_of(index, now.values) == key:
                self.enters(index)
                raise EvaluationError(
                    DUPLICATE, f"a row of {self.table} has this key in {index.name} already"
                )
        return None


def _row(row: Stored) -> Resource:
    return Resource("row", row.table, row.id)
