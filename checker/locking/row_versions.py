"""The rows of a database that is written in place: of each its versions, and where it stands in
each index.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import total_ordering
from typing import TYPE_CHECKING, Any

from isolitmus.model.delta.data_file import File, TableRow
from isolitmus.model.delta.table import TableState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from isolitmus.model.execution import Database
    from isolitmus.model.schema import Index, Schema
    from isolitmus.model.sql.values import Row

__all__ = ["AHEAD", "IndexEntry", "Position", "RowImage", "RowStore", "StoredRow", "key_of"]


@total_ordering
@dataclass(frozen=True, slots=True)
class _Key:
    """A value in an order: NULL comes first, and in a descending one last."""

    value: Any
    down: bool

    def __lt__(self, other: _Key) -> bool:
        a, b = ((key.value is not None, key.value) for key in (self, other))
        if a[0] != b[0]:
            less = a[0] < b[0]
            return not less if self.down else less
        if a[1] == b[1]:
            return False
        return bool(a[1] > b[1]) if self.down else bool(a[1] < b[1])


Position = tuple[tuple[_Key, ...], int]
"""Where an entry stands: by its key, then by when its row came."""
AHEAD = float("inf")
"""After every row."""


def key_of(index: Index | None, values: Row) -> tuple[_Key, ...]:
    """The key of a row in an index; of the heap, where only the row's number counts, none."""
    if index is None:
        return ()
    return tuple(
        _Key(values[k], down) for k, down in zip(index.columns, index.descending, strict=True)
    )


@dataclass(slots=True)
class RowImage:
    """One version of a row."""

    values: Row | None
    """None: it is deleted."""
    writer: str
    """Who wrote it; empty: nobody."""
    written: int
    """When."""
    committed: int | None = None
    """When that was committed, if it was."""
    undone: int | None = None
    """When it was undone, if it was."""
    place: int = 0
    """Where it stands among all versions of all rows of its table, in the order in which they
    came.
    """
    root: int = 0
    """The place of the version from which on no key of an index has changed: there the indexes
    point.
    """
    put: dict[str, int | None] = field(default_factory=dict)
    """Of an inserted row, when its entry was put into each index over a heap; None: not yet."""

    def since(self, index: Index | None) -> int | None:
        """Since when it stands in an index; None: it does not."""
        return self.written if index is None else self.put.get(index.name, self.written)

    def there(self, at: int) -> bool:
        """Whether it was committed at a time."""
        return self.committed is not None and self.committed <= at


@dataclass(slots=True)
class StoredRow:
    """A row."""

    table: str
    """The table that it is in."""
    id: str
    """What it is called."""
    number: int
    """Its number in its table, from 0, as it came."""
    versions: list[RowImage] = field(default_factory=list)
    """Its versions, the last of which is what is there."""
    taken: dict[str, str] = field(default_factory=dict)
    """The indexes out of which its entry has been taken before the row itself is written, and by
    whom.
    """

    @property
    def current(self) -> RowImage:
        """What is there, committed or not."""
        return next(v for v in reversed(self.versions) if v.undone is None)

    @property
    def last(self) -> RowImage | None:
        """What was committed last; None if nothing was."""
        return next((v for v in reversed(self.versions) if v.committed is not None), None)

    def seen(self, sight: str, at: int, who: str) -> RowImage | None:
        """What somebody sees of it: his own version, or what a ``sight`` is at a time; None:
        nothing.
        """
        current = self.current if any(v.undone is None for v in self.versions) else None
        if current is None or current.writer == who or sight == "current":
            return current
        if sight == "committed":
            return self.last
        return next((v for v in reversed(self.versions) if v.there(at)), None)


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A place in an index at which a row stands; ``ghost``: it stood there until somebody who has
    not committed moved it, or took it out.
    """

    position: Position
    row: StoredRow
    ghost: bool = False
    values: Row = ()
    """Of an entry of an index over a heap, what the row was when it was put there."""


class RowStore:
    """The tables while a schedule is carried out; ``now`` counts what was written and committed."""

    def __init__(
        self, database: Database, tables: Mapping[str, Schema], *, appends: bool = False
    ) -> None:
        self.appends = appends
        """Whether a new version of a row stands behind all others, and the row is where that is."""
        self.schemas = tables
        self.now = 0
        self.rows: dict[str, list[StoredRow]] = {name: [] for name in tables}
        for name in tables:
            state = database.get(name)
            for file in () if state is None else state.files:
                for row in file.rows:
                    place = len(self.rows[name])
                    version = RowImage(row.values, "", 0, 0, None, place, place)
                    self.rows[name].append(StoredRow(name, row.id, place, [version]))
        self.pages = {
            (name, index): [e.position for e in self.entries(name, index, "current", 0, "")]
            for name, schema in tables.items()
            for index in (None, *schema.indexes)
        }

    def entries(
        self,
        table: str,
        index: Index | None,
        sight: str,
        at: int,
        who: str,
        *,
        ghosts: bool = False,
    ) -> list[IndexEntry]:
        """What somebody sees in an index, in its order; with ``ghosts`` also where rows stood that
        somebody has moved or taken out and not committed.
        """
        found: list[IndexEntry] = []
        for row in self.rows[table]:
            version = row.seen(sight, at, who)
            places = set()
            if version is not None and version.values is not None:
                position = key_of(index, version.values), self.behind(index, row, version)
                places.add(position)
                found.append(IndexEntry(position, row))
            if (
                ghosts
                and version is not None
                and version.committed is None
                and version.writer != who
            ):
                last = row.last
                if last is not None and last.values is not None:
                    position = key_of(index, last.values), row.number
                    if position not in places:
                        found.append(IndexEntry(position, row, ghost=True))
        return sorted(found, key=lambda entry: entry.position)

    def behind(self, index: Index | None, row: StoredRow, version: RowImage) -> int:
        """Where a row stands among those of the same key."""
        if not self.appends:
            return row.number
        return version.place if index is None else version.root

    def keys(self, table: str, values: Row) -> tuple[tuple[_Key, ...], ...]:
        """The keys of a row in the indexes of its table."""
        return tuple(key_of(index, values) for index in self.schemas[table].indexes)

    def versions(self, table: str) -> list[tuple[StoredRow, RowImage]]:
        """All versions of the rows of a table, also those that were undone, in the order in which
        they came.
        """
        found = [
            (row, version)
            for row in self.rows[table]
            for version in row.versions
            if version.values is not None
        ]
        return sorted(found, key=lambda each: each[1].place)

    def standing(self, table: str, index: Index | None) -> list[IndexEntry]:
        """All that stands in a heap or in an index over it, in its order: also, as ghosts, what was
        taken out.
        """
        name = "" if index is None else index.name
        found: dict[object, IndexEntry] = {}
        for row in self.rows[table]:
            current = next((v for v in reversed(row.versions) if v.undone is None), None)
            for version in row.versions:
                if version.values is None or version.since(index) is None:
                    continue
                key = key_of(index, version.values)
                ghost = (
                    current is None
                    or current.values is None
                    or name in row.taken
                    or key_of(index, current.values) != key
                )
                entry = IndexEntry((key, row.number), row, ghost, version.values)
                unique = index is not None and index.unique
                known = found.get(key if unique else entry.position)
                if known is None or known.ghost:  # who comes where a ghost is takes its place
                    found[key if unique else entry.position] = entry
        return sorted(found.values(), key=lambda entry: entry.position)

    def insert(self, table: str, values: Row, writer: str) -> StoredRow:
        """A new row."""
        number = len(self.rows[table])
        own = sum(row.id.rpartition(".")[0] == writer for row in self.rows[table])
        row = StoredRow(table, f"{writer}.{own}", number)
        self.rows[table].append(row)
        self.write(row, values, writer)
        return row

    def put(self, image: RowImage, index: Index) -> None:
        """Put an entry of a new row into an index over its heap."""
        self.now += 1
        image.put[index.name] = self.now

    def write(self, row: StoredRow, values: Row | None, writer: str) -> None:
        """Another version of a row, which its writer has locked."""
        self.now += 1
        place = sum(len(other.versions) for other in self.rows[row.table])
        old = next((v for v in reversed(row.versions) if v.undone is None), None)
        stays = (
            values is not None
            and old is not None
            and old.values is not None
            and self.keys(row.table, old.values) == self.keys(row.table, values)
        )
        root = old.root if stays and old is not None else place
        row.versions.append(RowImage(values, writer, self.now, None, None, place, root))
        row.taken.clear()

    def wrote(self, writer: str) -> list[StoredRow]:
        """The rows that somebody has put, changed or taken out, of which nothing need be left."""
        return [
            row
            for rows in self.rows.values()
            for row in rows
            if any(v.writer == writer and v.undone is None for v in row.versions)
        ]

    def commit(self, writer: str) -> None:
        """What somebody wrote is there for good."""
        self.now += 1
        for version in self._open(writer):
            version.committed = self.now

    def undo(self, writer: str) -> None:
        """What somebody wrote and did not commit is gone."""
        self.now += 1
        for version in self._open(writer):
            version.undone = self.now
        for rows in self.rows.values():
            for row in rows:
                row.taken = {index: who for index, who in row.taken.items() if who != writer}

    def _open(self, writer: str) -> Iterator[RowImage]:
        for rows in self.rows.values():
            for row in rows:
                for version in row.versions:
                    if (
                        version.writer == writer
                        and version.committed is None
                        and version.undone is None
                    ):
                        yield version

    def database(self) -> Database:
        """The tables as they are committed."""
        return {name: TableState(tuple(_files(rows))) for name, rows in self.rows.items()}


def _files(rows: Iterable[StoredRow]) -> Iterator[File]:
    """Each row is a file of its own, in the order in which they came."""
    for row in rows:
        last = row.last
        if last is not None and last.values is not None:
            yield File.of(row.id, (), (TableRow(row.id, last.writer, last.values),))
