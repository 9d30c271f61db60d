"""From an execution to its frame: the order of the log and Adya's dependencies at row level.

That is what any engine whose commits are versions has; a format may add relations and sets of its own.
Dependencies are those of Adya (ICDE 2000) with the version set of a snapshot: a read sees of every
row the last version at or before its read version. A row is an object over all time; it is unborn
before its insert and dead after its delete.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from isolitmus.checker.execution.chains import chains
from isolitmus.checker.execution.row_reads import add_row_reads
from isolitmus.checker.judge.read_nodes import NODE_SETS, READ_RELATIONS
from isolitmus.model.frame import FrameBuilder
from isolitmus.model.reason import Item
from isolitmus.model.vocabulary import relations_of, sets_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from isolitmus.checker.execution.chains import RowVersion
    from isolitmus.model.execution import Event, RowRead
    from isolitmus.model.frame import Frame
    from isolitmus.model.sql.values import Row
    from isolitmus.model.term import Term

__all__ = ["BASIC", "BASIC_SETS", "RELATIONS", "SETS", "dependencies", "frame"]

BASIC = relations_of("histories", "logs")
RELATIONS = (*BASIC, *READ_RELATIONS)
BASIC_SETS = sets_of("histories", "logs")
SETS = (*BASIC_SETS, *NODE_SETS)


def frame(events: Sequence[Event], *, reasons: bool = True, reads: bool = False) -> Frame:
    """The frame of the transactions that took effect, in the order in which they ended.

    A transaction is a session of its own unless it names one that it shares. ``reasons`` False
    leaves out why, for counting; ``reads`` True gives it the reads as nodes, see
    ``checker.execution.row_reads``. Relations: see RELATIONS, of which those of the reads are there only
    with them; sets: SETS, likewise. Of a footprint it asks only whether there is one, and for its table.
    """
    builder = dependencies(events, reasons=reasons)
    if reads:
        add_row_reads(events, builder)
    return builder.build()


def dependencies(
    events: Sequence[Event],
    relations: Iterable[str | Term] = (),
    sets: Iterable[str | Term] = (),
    *,
    reasons: bool = True,
) -> FrameBuilder:
    """The frame of transactions so far, with room for more relations and sets, by name or, if they are a
    format's own, by their terms.
    """
    names = [event.name for event in events]
    builder = FrameBuilder(names, (*BASIC, *relations), (*BASIC_SETS, *sets), reasons=reasons)
    for i, event in enumerate(events):
        builder.put("Reader" if event.version is None else "Writer", i)
    _orders(events, builder)
    _Dependencies(events, builder).add()
    return builder


def _orders(events: Sequence[Event], builder: FrameBuilder) -> None:
    """The order of the log, and what each commit had seen."""
    for j, later in enumerate(events):
        for i, earlier in enumerate(events):
            if i < j and later.session is not None and earlier.session == later.session:
                session, first, second = later.session, earlier.name, later.name
                builder.add("so", i, j, "one session", session=session, first=first, second=second)
            if i == j or earlier.version is None:
                continue
            if earlier.version <= later.read_version:
                builder.add("vis", i, j, "saw", reader=later.name, version=later.read_version)
            if later.version is None or earlier.version >= later.version:
                continue
            builder.add(
                "log", i, j, "log order",
                first=earlier.name, version=earlier.version, second=later.name, later=later.version,
            )  # fmt: skip
            if later.missed(earlier):
                builder.add(
                    "unseen", i, j, "missed",
                    reader=later.name, version=later.read_version,
                    writer=earlier.name, became=earlier.version,
                )  # fmt: skip


class _Dependencies:
    def __init__(self, events: Sequence[Event], builder: FrameBuilder) -> None:
        self.events = events
        self.builder = builder

    def add(self) -> None:
        written = chains(self.events)
        for chain in written.values():
            row = chain[0].before
            for first, second in itertools.pairwise(chain):
                row = row if first.after is None else first.after
                self.overwrote(first, second, row or ())
        position = {event.name: i for i, event in enumerate(self.events)}
        for j, event in enumerate(self.events):
            for read in event.effect.reads:
                self.items(j, read, written, position)
                for (table, _), chain in written.items():
                    if table == read.table:
                        self.predicate(j, read, chain)

    def overwrote(self, first: RowVersion, second: RowVersion, row: Row) -> None:
        """ww; ``row`` is as it was when it was last there."""
        if first.writer == second.writer:
            return
        self.builder.add(
            "ww", first.writer, second.writer, "overwrote",
            writer=self.name(second), item=Item(first.table, first.row, row),
            before=self.name(first), deleted=second.after is None, was_deleted=first.after is None,
        )  # fmt: skip

    def items(
        self,
        j: int,
        read: RowRead,
        written: dict[tuple[str, str], list[RowVersion]],
        position: dict[str, int],
    ) -> None:
        """wr from the writer of each row version read; rw to the writer of the version after it."""
        reader = self.events[j].name
        for row in read.matched:
            writer = position.get(row.writer)
            item = Item(read.table, row.id, row.values) if self.builder.reasons else None
            if writer is not None and writer != j:
                self.builder.add(
                    "wr", writer, j, "read item", reader=reader, item=item, writer=row.writer
                )
            chain = written.get((read.table, row.id), ())
            start = next((k + 1 for k, v in enumerate(chain) if v.writer == writer), 0)
            if start < len(chain) and chain[start].writer != j:
                after = chain[start]
                self.builder.add(
                    "rw", j, after.writer, "overwritten",
                    reader=reader, item=item, writer=self.name(after), after=after.after,
                )  # fmt: skip

    def predicate(self, j: int, read: RowRead, chain: Sequence[RowVersion]) -> None:
        """wr from a seen version that changes the matches of the predicate, rw to one not seen."""
        event = self.events[j]
        at = event.seen_by(read)
        seen = sum((self.events[version.writer].version or 0) <= at for version in chain)
        for k, version in enumerate(chain):
            matches = read.sees(version.after)
            if version.writer == j or read.sees(version.before) == matches:
                continue
            if k < seen:
                row = version.after if matches else version.before
                self.builder.add(
                    "wr", version.writer, j, "read after",
                    reader=event.name, predicate=read.words, writer=self.name(version),
                    came=matches, item=Item(version.table, version.row, row or ()),
                )  # fmt: skip
            elif self.builder.reasons:
                kind, row, nouns = self.became(read, chain[seen : k + 1])
                self.builder.add(
                    "rw", j, version.writer, kind,
                    reader=event.name, predicate=read.words, version=at,
                    item=Item(version.table, version.row, row), **nouns,
                )  # fmt: skip
            else:
                self.builder.add("rw", j, version.writer, "")

    def became(
        self, read: RowRead, missed: Sequence[RowVersion]
    ) -> tuple[str, Row, dict[str, Any]]:
        """What became of a row that a read saw, or did not see, with the row: ``missed`` are the versions
        after the one that it saw, up to one that changes whether the row matches.
        """
        saw, last = missed[0].before, missed[-1]
        then, now, by = last.before or (), last.after or (), self.name(last)
        match read.sees(saw), read.sees(last.after):
            case False, True:
                return "came", now, {"writer": by}
            case False, False:
                came, writer = not read.sees(missed[-2].before), self.name(missed[-2])
                return "came and went", then, {"came": came, "writer": writer, "last": by}
            case True, False if saw == last.before:
                return "went", then, {"writer": by}
            case True, False:
                was_gone, writer = missed[-2].before is None, self.name(missed[-2])
                nouns = {"was_gone": was_gone, "then": then, "writer": writer, "last": by}
                return "changed and went", saw or (), nouns
        took = next(v for v in reversed(missed) if read.sees(v.before) and not read.sees(v.after))
        return "went and came", saw or (), {"writer": self.name(took), "now": now, "last": by}

    def name(self, version: RowVersion) -> str:
        """Who installed a version of a row."""
        return self.events[version.writer].name
