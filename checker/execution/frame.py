"""Frames of executions: versions of rows, Adya's dependencies, reads as nodes, real time.

From an execution to its frame: the order of the log and Adya's dependencies at row level.

That is what any engine whose commits are versions has; a format may add relations and sets of its
own. Dependencies are those of Adya (ICDE 2000) with the version set of a snapshot: a read sees of
every row the last version at or before its read version. A row is an object over all time; it is
unborn before its insert and dead after its delete.

Reads as nodes, on tables: the initial transaction and every row that a predicate read looked at.

After the transactions, whose positions stay, come ``init``, the transaction that made the tables,
and one node for each transaction, read of it, and row: the rows of the table that anyone wrote or
that the read matched. (The others have one version, which everyone sees: nothing rests on them.) A
read sees the last version of a row at or before its read version, never one of its own transaction,
whose commit comes later. ``init`` is in the set ``Initial``, the reads are in none. Relations are
those of ``checker.judge.read_nodes``:

- ``rf``: from the writer of the version seen; ``init`` if that is the initial one, or not born yet;
- ``po``: nothing, since a transaction is one statement and its reads have no order among them;
- ``in``: from the read to its transaction;
- ``rival``: from every other writer of the row, or ``init``, whose version changes whether the row
  matches, or is another version of a row that matched, and so was used;
- ``so`` also leads from ``init`` to everyone, ``wr`` to those that read from it.

The versions of every row in the order of the log: what Adya calls the version order.

Real time in an execution: who had ended when somebody else began.

Choices. A transaction is under way from its first step in the schedule to its last one, what its
client does before it included: what was read there counts as read by the transaction. A step is a
moment, so who does all at one step begins and ends there. Where transactions wait for each other
they do not end when the schedule says, and a log does not say when anybody began: of these nothing
is known, and a spec that asks needs ``rt``.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.checker.judge.read_nodes import NODE_SETS, READ_RELATIONS
from isolitmus.model.frame import FrameBuilder
from isolitmus.model.reason import Item, Reason
from isolitmus.model.relation import Relation
from isolitmus.model.sql.values import show_row
from isolitmus.model.vocabulary import relations_of, sets_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from isolitmus.model.execution import Event, RowRead
    from isolitmus.model.frame import Frame
    from isolitmus.model.schedule import Schedule
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.values import Row
    from isolitmus.model.vocabulary import Term

__all__ = [
    "BASIC",
    "BASIC_SETS",
    "INIT",
    "RELATIONS",
    "SETS",
    "RowVersion",
    "add_real_time",
    "add_row_reads",
    "build_frame",
    "dependencies",
    "needs_times",
    "version_chains",
]


class RowVersion(NamedTuple):
    """One version of a row."""

    writer: int
    """Who installed it, by position."""
    table: str
    """The table of the row."""
    row: str
    """The row's identity."""
    before: Row | None
    """What was there; None: it was unborn or dead."""
    after: Row | None
    """What is there from then on, likewise."""


def version_chains(events: Sequence[Event]) -> dict[tuple[str, str], list[RowVersion]]:
    """The versions of each row that somebody wrote, by table and row, without the initial one.

    >>> from isolitmus.checker.execution.commit_loop import execute
    >>> from isolitmus.specs import litmus
    >>> ((insert,), (delete,)) = version_chains(execute(litmus("reorder")).events).values()
    >>> insert.before, insert.after, delete.before, delete.after
    (None, (100, 0), (1, 0), None)
    """
    found: dict[tuple[str, str], list[RowVersion]] = defaultdict(list)
    for i, event in enumerate(events):
        if event.version is None:
            continue
        for write in event.effect.writes:
            chain = found[write.table, write.id]
            before = chain[-1].after if chain else write.before
            chain.append(RowVersion(i, write.table, write.id, before, write.after))
    return found


INIT = "init"
"""The name of the node that stands for what was there at the start."""


def add_row_reads(events: Sequence[Event], builder: FrameBuilder) -> None:
    """Add ``init`` and the reads of an execution's events to the frame of its transactions.

    >>> from isolitmus.checker.execution.commit_loop import execute
    >>> from isolitmus.checker.execution.frame import build_frame
    >>> from isolitmus.specs import litmus
    >>> seen = build_frame(execute(litmus("reorder")).events, reads=True)
    >>> seen.nodes[2:]
    ('init', 'delete r(t WHERE part = 0: (100, 0))', 'delete r(t WHERE part = 0: (1, 0))')
    >>> [(seen.nodes[i], str(seen.reasons["rival", i, j])) for i, j in seen.relations["rival"].pairs()]
    [('insert', 'insert added row (100, 0)')]
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
    written = version_chains(events)
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
        """How the reader saw the row: the kind of reason, and the row as it was when it was
        there.
        """
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


BASIC = relations_of("histories", "logs")
RELATIONS = (*BASIC, *READ_RELATIONS)
BASIC_SETS = sets_of("histories", "logs")
SETS = (*BASIC_SETS, *NODE_SETS)


def build_frame(events: Sequence[Event], *, reasons: bool = True, reads: bool = False) -> Frame:
    """The frame of the transactions that took effect, in the order in which they ended.

    A transaction is a session of its own unless it names one that it shares. ``reasons`` False
    leaves out why, for counting; ``reads`` True gives it the reads as nodes, see
    ``checker.execution.frame``. Relations: see RELATIONS, of which those of the reads are there
    only with them; sets: SETS, likewise. Of a footprint it asks only whether there is one, and for
    its table.
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
    """The frame of transactions so far, with room for more relations and sets, by name or, if they
    are a format's own, by their terms.
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
        written = version_chains(self.events)
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
        """What became of a row that a read saw, or did not see, with the row: ``missed`` are the
        versions after the one that it saw, up to one that changes whether the row matches.
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


(REAL_TIME,) = relations_of("times")


def needs_times(spec: Spec) -> bool:
    """Whether a spec asks who had ended when somebody else began.

    >>> from isolitmus.specs import level
    >>> needs_times(level("strict-serializable")), needs_times(level("serializable"))
    (True, False)
    """
    return REAL_TIME in spec.needs


def add_real_time(frame: Frame, schedule: Schedule) -> Frame:
    """The frame with ``rt``, as the schedule has it.

    >>> from isolitmus.model.frame import Frame
    >>> from isolitmus.model.schedule import Schedule
    >>> add_real_time(Frame(("a", "b"), {}, {}), Schedule.parse("a b", {"a", "b"}))
    a
    b
    <BLANKLINE>
    rt  a → b  a had ended when b started
    """
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for moment, step in enumerate(schedule.steps):
        first.setdefault(step.transaction, moment)
        last[step.transaction] = moment
    names = frame.nodes[: frame.transactions]
    pairs = [
        (i, j)
        for i, ended in enumerate(names)
        for j, began in enumerate(names)
        if last[ended] < first[began]
    ]
    why = {
        (REAL_TIME, i, j): Reason.of("ended before", first=names[i], second=names[j])
        for i, j in pairs
    }
    relation = Relation.of(len(frame.nodes), pairs)
    return replace(
        frame,
        relations={**frame.relations, REAL_TIME: relation},
        reasons={**frame.reasons, **why},
    )
