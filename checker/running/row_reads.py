"""Reads as nodes, on tables: the initial transaction and every row that a predicate read looked at.

After the transactions, whose positions stay, come ``init``, the transaction that made the tables, and
one node for each transaction, read of it, and row: the rows of the table that anyone wrote or that
the read matched. (The others have one version, which everyone sees: nothing rests on them.) A read
sees the last version of a row at or before its read version, never one of its own transaction, whose
commit comes later. ``init`` and the reads are in no set. Relations are those of ``model.reads``:

- ``rf``: from the writer of the version seen; ``init`` if that is the initial one, or not born yet;
- ``po``: nothing, since a transaction is one statement and its reads have no order among them;
- ``in``: from the read to its transaction;
- ``rival``: from every other writer of the row, or ``init``, whose version changes whether the row
  matches, or is another version of a row that matched, and so was used;
- ``so`` also leads from ``init`` to everyone, ``wr`` to those that read from it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.running.chains import RowVersion, chains
from isolitmus.model.frame import Frame
from isolitmus.model.reads import READ_RELATIONS
from isolitmus.model.relation import Relation
from isolitmus.model.values import show_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.model.execution import Event, RowRead
    from isolitmus.model.values import Row

__all__ = ["INIT", "with_row_reads"]

INIT = "init"
"""The name of the node that stands for what was there at the start."""


def with_row_reads(events: Sequence[Event], frame: Frame, *, reasons: bool = True) -> Frame:
    """The frame of an execution's events, its transactions followed by ``init`` and the reads.

    >>> from isolitmus.checker.running.execute import execute
    >>> from isolitmus.checker.running.frames import frame
    >>> from isolitmus.specs import litmus
    >>> seen = frame(execute(litmus("reorder")).events, reads=True)
    >>> seen.nodes[2:]
    ('init', 'delete r(t WHERE part = 0: (100, 0))', 'delete r(t WHERE part = 0: (1, 0))')
    >>> [(seen.nodes[i], seen.why["rival", i, j]) for i, j in seen.relations["rival"].pairs()]
    [('insert', 'insert put in row (100, 0)')]
    """
    builder = _Builder(events, frame, reasons)
    for k, look in enumerate(builder.looks, len(events) + 1):
        builder.connect(k, look)
    for i, event in enumerate(events):
        builder.add("so", len(events), i, f"{INIT} is what was there before {event.name}")
    return builder.frame()


class _Look(NamedTuple):
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


def _looks(events: Sequence[Event]) -> Iterator[_Look]:
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
                yield _Look(j, read, versions, seen)


class _Builder:
    def __init__(self, events: Sequence[Event], frame: Frame, reasons: bool) -> None:
        self.events, self.base, self.reasons = events, frame, reasons
        self.looks = list(_looks(events))
        beside = [0] * (1 + len(self.looks))
        self.rows = {name: [*r.rows, *beside] for name, r in frame.relations.items()}
        self.rows |= {name: [0] * (len(events) + len(beside)) for name in READ_RELATIONS}
        self.why = dict(frame.why)

    def frame(self) -> Frame:
        return Frame(
            (*self.base.nodes, INIT, *self.names()),
            {name: Relation(tuple(rows)) for name, rows in self.rows.items()},
            self.base.sets,
            self.why,
            beside=1 + len(self.looks),
        )

    def names(self) -> Iterator[str]:
        count: Counter[str] = Counter()
        for look in self.looks:
            name = f"{self.events[look.reader].name} r({look.read.words}: {_show(look.row)})"
            count[name] += 1
            yield name if count[name] == 1 else f"{name} ({count[name]})"

    def add(self, kind: str, i: int, j: int, why: str) -> None:
        self.rows[kind][i] |= 1 << j
        if self.reasons:
            self.why.setdefault((kind, i, j), why)

    def connect(self, k: int, look: _Look) -> None:
        reader = self.events[look.reader]
        seen = look.versions[look.seen]
        why = self.saw(look)
        self.add("rf", seen.writer, k, why)
        if seen.writer == len(self.events):
            self.add("wr", seen.writer, look.reader, why)
        self.add("in", k, look.reader, f"{reader.name} read {look.read.words}")
        matched = look.read.sees(seen.after)
        for version in look.versions:
            if version.writer in (look.reader, seen.writer):
                continue
            if matched or look.read.sees(version.after):
                self.add("rival", version.writer, k, f"{self.name(version)} {_did(version)}")

    def saw(self, look: _Look) -> str:
        """What the reader saw of the row, a clause."""
        event, seen = self.events[look.reader], look.versions[look.seen]
        read = f"{event.name} read {look.read.words} at version {event.seen_by(look.read)}"
        if seen.after is not None:
            return f"{read}, with row {_show(seen.after)} of {self.name(seen)}"
        born = any(version.after is not None for version in look.versions[: look.seen])
        end = f"which {self.name(seen)} had taken out" if born else f"as {INIT} left the table"
        return f"{read}, without row {_show(look.row)}, {end}"

    def name(self, version: RowVersion) -> str:
        at_start = version.writer == len(self.events)
        return INIT if at_start else self.events[version.writer].name


def _did(version: RowVersion) -> str:
    if version.after is None:
        return f"took out row {_show(version.before)}"
    if version.before is None:
        return f"put in row {_show(version.after)}"
    return f"changed row {_show(version.before)} to {_show(version.after)}"


def _show(row: Row | None) -> str:
    return "that is gone" if row is None else show_row(row)
