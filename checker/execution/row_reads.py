"""Reads as nodes, on tables: the initial transaction and every row that a predicate read looked at.

After the transactions, whose positions stay, come ``init``, the transaction that made the tables, and
one node for each transaction, read of it, and row: the rows of the table that anyone wrote or that
the read matched. (The others have one version, which everyone sees: nothing rests on them.) A read
sees the last version of a row at or before its read version, never one of its own transaction, whose
commit comes later. ``init`` is in the set ``Initial``, the reads are in none. Relations are those of ``checker.judge.read_nodes``:

- ``rf``: from the writer of the version seen; ``init`` if that is the initial one, or not born yet;
- ``po``: nothing, since a transaction is one statement and its reads have no order among them;
- ``in``: from the read to its transaction;
- ``rival``: from every other writer of the row, or ``init``, whose version changes whether the row
  matches, or is another version of a row that matched, and so was used;
- ``so`` also leads from ``init`` to everyone, ``wr`` to those that read from it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.checker.execution.chains import RowVersion, chains
from isolitmus.checker.judge.read_nodes import NODE_SETS, READ_RELATIONS
from isolitmus.model.reason import Item
from isolitmus.model.sql.values import show_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.model.execution import Event, RowRead
    from isolitmus.model.frame import FrameBuilder
    from isolitmus.model.sql.values import Row

__all__ = ["INIT", "add_row_reads"]

INIT = "init"
"""The name of the node that stands for what was there at the start."""


def add_row_reads(events: Sequence[Event], builder: FrameBuilder) -> None:
    """Add ``init`` and the reads of an execution's events to the frame of its transactions.

    >>> from isolitmus.checker.execution.commit_loop import execute
    >>> from isolitmus.checker.execution.frame import frame
    >>> from isolitmus.specs import litmus
    >>> seen = frame(execute(litmus("reorder")).events, reads=True)
    >>> seen.nodes[2:]
    ('init', 'delete r(t WHERE part = 0: (100, 0))', 'delete r(t WHERE part = 0: (1, 0))')
    >>> [(seen.nodes[i], str(seen.reasons["rival", i, j])) for i, j in seen.relations["rival"].pairs()]
    [('insert', 'insert put in row (100, 0)')]
    """
    _RowReadPairs(events, builder).add()


class _Observation(NamedTuple):
    """One read of one row: the reader's position, the versions of the row (the initial one first),
    and which of them was seen.
    """

    reader: int
    read: RowRead
    versions: tuple[RowVersion, ...]
    seen: int

    @property
    def row(self) -> Row | None:
        """The row as it was seen, or else as it first was."""
        shown = [self.versions[self.seen], *self.versions]
        return next((version.after for version in shown if version.after is not None), None)


def _observations(events: Sequence[Event]) -> Iterator[_Observation]:
    first = len(events)
    written = chains(events)
    for j, event in enumerate(events):
        for read in event.effect.reads:
            rows = {key: chain for key, chain in written.items() if key[0] == read.table}
            rows |= {
                (read.table, row.id): []
                for row in read.matched
                if (read.table, row.id) not in written
            }
            values = {row.id: row.values for row in read.matched}
            for (table, row_id), chain in rows.items():
                start = chain[0].before if chain else values[row_id]
                versions = (RowVersion(first, table, row_id, None, start), *chain)
                ends = [events[v.writer].version or 0 for v in chain]
                seen = sum(end <= event.seen_by(read) for end in ends)
                yield _Observation(j, read, versions, seen)


class _RowReadPairs:
    def __init__(self, events: Sequence[Event], builder: FrameBuilder) -> None:
        self.events, self.builder = events, builder
        self.observations = list(_observations(events))

    def add(self) -> None:
        self.builder.have(*READ_RELATIONS, sets=NODE_SETS)
        self.builder.beside(INIT, *self.names())
        self.builder.put("Initial", len(self.events))
        for k, observed in enumerate(self.observations, len(self.events) + 1):
            self.connect(k, observed)
        for i, event in enumerate(self.events):
            self.builder.add("so", len(self.events), i, "initial", init=INIT, node=event.name)

    def names(self) -> Iterator[str]:
        count: Counter[str] = Counter()
        for observed in self.observations:
            shown = "that is gone" if observed.row is None else show_row(observed.row)
            name = f"{self.events[observed.reader].name} r({observed.read.words}: {shown})"
            count[name] += 1
            yield name if count[name] == 1 else f"{name} ({count[name]})"

    def connect(self, k: int, observed: _Observation) -> None:
        reader = self.events[observed.reader]
        seen = observed.versions[observed.seen]
        kind, row = self.saw(observed)
        nouns: dict[str, Any] = {
            "reader": reader.name,
            "predicate": observed.read.words,
            "version": reader.seen_by(observed.read),
            "writer": self.name(seen),
            "item": Item(seen.table, seen.row, row or ()),
        }
        self.builder.add("rf", seen.writer, k, kind, **nouns)
        if seen.writer == len(self.events):
            self.builder.add("wr", seen.writer, observed.reader, kind, **nouns)
        self.builder.add(
            "in", k, observed.reader, "in", reader=reader.name, predicate=observed.read.words
        )
        matched = observed.read.sees(seen.after)
        row = observed.row
        for version in observed.versions:
            row = version.after or version.before or row
            if version.writer in (observed.reader, seen.writer):
                continue
            if matched or observed.read.sees(version.after):
                self.builder.add(
                    "rival", version.writer, k, "rival",
                    writer=self.name(version), item=Item(version.table, version.row, ()),
                    before=version.before, after=version.after, last=row,
                    first=version.writer == len(self.events),
                )  # fmt: skip

    def saw(self, observed: _Observation) -> tuple[str, Row | None]:
        """How the reader saw the row: the kind of reason, and the row as it was when it was there."""
        seen = observed.versions[observed.seen]
        if seen.row == seen.table:  # no row: the words name what was read
            return "had item", seen.after
        if seen.after is not None:
            return "had row", seen.after
        before = observed.versions[: observed.seen]
        gone = next((v.after for v in reversed(before) if v.after is not None), None)
        return ("row never came", observed.row) if gone is None else ("row was gone", gone)

    def name(self, version: RowVersion) -> str:
        at_start = version.writer == len(self.events)
        return INIT if at_start else self.events[version.writer].name
