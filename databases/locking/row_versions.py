"""Row storage of a database with in-place updates: versions of rows, and their index positions."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import total_ordering
from typing import TYPE_CHECKING, Any

from isolitmus.model.delta.table import TableState
from isolitmus.model.sql.data_file import File, TableRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from isolitmus.model.execution import Database
    from isolitmus.model.sql.schema import Index, Schema
    from isolitmus.model.sql.values import Row


@total_ordering
@dataclass(frozen=True, slots=True)
class _Key:
    """Value in a sort order: NULL is first, and last in a descending order."""

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
"""Position of an index entry: its key, then the order of insertion of its row."""


def key_of(index: Index | None, values: Row) -> tuple[_Key, ...]:
    """Return the key of a row in an index; empty for the heap, which has only row numbers."""
    if index is None:
        return ()
    return tuple(
        _Key(values[k], down) for k, down in zip(index.columns, index.descending, strict=True)
    )


@dataclass(slots=True)
class RowImage:
    """One version of a row."""

    values: Row | None
    """Values of the row; None if it is deleted."""
    writer: str
    """Transaction that wrote it; empty for an initial row."""
    written: int
    """Time of the write."""
    committed: int | None = None
    """Time of the commit; None if not committed."""
    undone: int | None = None
    """Time of the rollback; None if not rolled back."""
    place: int = 0
    """Index of the version among all versions of all rows of its table, in the order of writing."""
    root: int = 0
    """`place` of the version since which no index key has changed; index entries point to that one.
    """
    put: dict[str, int | None] = field(default_factory=dict)
    """Time at which each index over a heap got the entry of an inserted row; None if not yet."""

    def since(self, index: Index | None) -> int | None:
        """Return the time since which it is in an index; None if it is not."""
        return self.written if index is None else self.put.get(index.name, self.written)

    def there(self, at: int) -> bool:
        """Return whether it was committed at time `at`."""
        return self.committed is not None and self.committed <= at


@dataclass(slots=True)
class StoredRow:
    """Row with its versions."""

    table: str
    """Name of its table."""
    id: str
    number: int
    """Index of the row in its table, from 0, in the order of insertion."""
    versions: list[RowImage] = field(default_factory=list)
    """Versions of the row, the newest last."""
    taken: dict[str, str] = field(default_factory=dict)
    """Transaction that removed its entry from an index, by index, before the row is written."""

    @property
    def current(self) -> RowImage:
        """Newest version, committed or not, that is not rolled back."""
        return next(v for v in reversed(self.versions) if v.undone is None)

    @property
    def last(self) -> RowImage | None:
        """Version that was committed last; None if none was."""
        return next((v for v in reversed(self.versions) if v.committed is not None), None)

    def seen(self, sight: str, at: int, who: str) -> RowImage | None:
        """Return the version that a transaction sees, or None.

        Parameters
        ----------
        sight : str
            Visibility rule: "current", "committed", or one that sees what was committed at `at`.
        at : int
            Time of the snapshot.
        who : str
            The transaction, which sees its own version in any case.
        """
        current = self.current if any(v.undone is None for v in self.versions) else None
        if current is None or current.writer == who or sight == "current":
            return current
        if sight == "committed":
            return self.last
        return next((v for v in reversed(self.versions) if v.there(at)), None)


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """Entry of a row in an index.

    A ``ghost`` is a former entry: a transaction that has not committed moved or removed it.
    """

    position: Position
    row: StoredRow
    ghost: bool = False
    values: Row = ()
    """Values of the row when the entry was put, for an entry of an index over a heap."""


class RowStore:
    """Tables during the execution of a schedule; ``now`` counts writes, commits and rollbacks."""

    def __init__(
        self, database: Database, tables: Mapping[str, Schema], *, appends: bool = False
    ) -> None:
        self.appends = appends
        """True if a new version of a row stands behind all others, and the row is where that is."""
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
        """Return the entries that a transaction sees in an index, sorted by position.

        Parameters
        ----------
        table : str
            Name of the table.
        index : Index or None
            The index; None for the heap.
        sight, at, who
            As in ``StoredRow.seen``.
        ghosts : bool
            Whether to include former positions of rows that an uncommitted transaction moved or
            removed.
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
        """Return the position of a row among those with the same key."""
        if not self.appends:
            return row.number
        return version.place if index is None else version.root

    def keys(self, table: str, values: Row) -> tuple[tuple[_Key, ...], ...]:
        """Return the keys of a row in the indexes of its table."""
        return tuple(key_of(index, values) for index in self.schemas[table].indexes)

    def versions(self, table: str) -> list[tuple[StoredRow, RowImage]]:
        """Return all versions of the rows of a table, in the order of writing.

        These include versions that were rolled back, but not those that delete a row.
        """
        found = [
            (row, version)
            for row in self.rows[table]
            for version in row.versions
            if version.values is not None
        ]
        return sorted(found, key=lambda each: each[1].place)

    def standing(self, table: str, index: Index | None) -> list[IndexEntry]:
        """Return all entries of a heap or of an index over it, in order, removed ones as ghosts."""
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
                if known is None or known.ghost:  # a new entry replaces a ghost
                    found[key if unique else entry.position] = entry
        return sorted(found.values(), key=lambda entry: entry.position)

    def insert(self, table: str, values: Row, writer: str) -> StoredRow:
        """Insert a new row."""
        number = len(self.rows[table])
        own = sum(row.id.rpartition(".")[0] == writer for row in self.rows[table])
        row = StoredRow(table, f"{writer}.{own}", number)
        self.rows[table].append(row)
        self.write(row, values, writer)
        return row

    def put(self, image: RowImage, index: Index) -> None:
        """Put the entry of a new row into an index over its heap."""
        self.now += 1
        image.put[index.name] = self.now

    def write(self, row: StoredRow, values: Row | None, writer: str) -> None:
        """Write another version of a row, which the writer has locked."""
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
        """Return the rows that a transaction wrote, even if nothing remains of that."""
        return [
            row
            for rows in self.rows.values()
            for row in rows
            if any(v.writer == writer and v.undone is None for v in row.versions)
        ]

    def commit(self, writer: str) -> None:
        """Commit the writes of a transaction."""
        self.now += 1
        for version in self._open(writer):
            version.committed = self.now

    def undo(self, writer: str) -> None:
        """Roll back the writes of a transaction."""
        self.now += 1
        for version in self._open(writer):
            version.undone = self.now
        for rows in self.rows.values():
            for row in rows:
                row.taken = {index: who for index, who in row.taken.items() if who != writer}

    def _open(self, writer: str) -> Iterator[RowImage]:
        """Yield the versions of a writer that are neither committed nor undone."""
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
        """Return the committed state of the tables."""
        return {name: TableState(tuple(_files(rows))) for name, rows in self.rows.items()}


def _files(rows: Iterable[StoredRow]) -> Iterator[File]:
    """Yield each committed row as a file of its own, in the order of insertion."""
    for row in rows:
        last = row.last
        if last is not None and last.values is not None:
            yield File.of(row.id, (), (TableRow(row.id, last.writer, last.values),))
