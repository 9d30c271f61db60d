"""Frames of executions: row versions, Adya's dependencies, reads as nodes, and real time.

Any engine whose commits are versions has these relations; a format may add relations and sets of
its own. Dependencies are those of Adya (ICDE 2000) with the version set of a snapshot: a read sees,
of every row, the last version at or before its read version. A row is an object over all time; it
is unborn before its insert and dead after its delete. Its versions follow the order of the log,
which is Adya's version order.

**Reads as nodes.** After the transactions, whose positions stay, come ``init``, the transaction
that made the tables, and one node for each transaction, read of it, and row. The rows are those of
the table that some transaction wrote or that the read matched. (Every other row has one version,
which every read sees, so no dependency rests on it.) A read never sees a version of its own
transaction, whose commit comes later. ``init`` is in the set ``Initial``, the reads are in none.
Relations are those of ``checker.judge.read_nodes``:

- ``rf``: from the writer of the version seen; ``init`` if that is the initial one, or not born yet;
- ``po``: empty, since a transaction is one statement and its reads have no order among them;
- ``in``: from the read to its transaction;
- ``rival``: from every other writer of the row, or ``init``, whose version changes whether the row
  matches, or is another version of a row that matched, and so was used;
- ``so`` also leads from ``init`` to every transaction, ``wr`` to those that read from it.

**Real time** (``rt``): one transaction had ended before the other began. A transaction lasts from
its first step in the schedule to its last one, including the reads of its client before it: these
count as reads of the transaction. A step is a moment, so a transaction with one step begins and
ends there. If transactions wait for each other, they do not end where the schedule says, and a log
does not say when a transaction began. There the relation is missing, and a spec that uses it needs
``rt``.
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


class RowVersion(NamedTuple):
    """One version of a row."""

    writer: int
    """Position of the transaction that installed it."""
    table: str
    """Table of the row."""
    row: str
    """Identity of the row."""
    before: Row | None
    """Values before this version; None if the row was unborn or dead."""
    after: Row | None
    """Values of this version; None if the row is dead."""


def version_chains(events: Sequence[Event]) -> dict[tuple[str, str], list[RowVersion]]:
    """Return the versions of each row that some transaction wrote, without the initial one.

    The keys are table and row; versions are in the order of ``events``.

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
"""Name of the node of the transaction that made the initial tables."""


def add_row_reads(events: Sequence[Event], builder: FrameBuilder) -> None:
    """Add ``init`` and the reads of an execution's events to the frame of its transactions.

    >>> from isolitmus.checker.execution.commit_loop import execute
    >>> from isolitmus.checker.execution.frame import build_frame
    >>> from isolitmus.specs import litmus
    >>> seen = build_frame(execute(litmus("reorder")).events, reads=True)
    >>> seen.nodes[2:]
    ('init', 'delete r(t WHERE part = 0: (100, 0))', 'delete r(t WHERE part = 0: (1, 0))')
    >>> ((i, j),) = seen.relations["rival"].pairs()
    >>> seen.nodes[i], str(seen.reasons["rival", i, j])
    ('insert', 'insert added row (100, 0)')
    """
    _RowReadPairs(events, builder).add()


class _Observation(NamedTuple):
    """Read of one row: position of the reader, versions (the initial one first), index seen."""

    reader: int
    read: RowRead
    versions: tuple[RowVersion, ...]
    seen: int

    @property
    def row(self) -> Row | None:
        """Values of the row as seen; if it was not there, its first values."""
        shown = [self.versions[self.seen], *self.versions]
        return next((version.after for version in shown if version.after is not None), None)


def _observations(events: Sequence[Event]) -> Iterator[_Observation]:
    """Yield, per read and row of its table, the row's versions and the number seen."""
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
        """Add the reads as nodes, the initial transaction, and their relations."""
        self.builder.have(*READ_RELATIONS, sets=NODE_SETS)
        self.builder.beside(INIT, *self.names())
        self.builder.put("Initial", len(self.events))
        for k, observed in enumerate(self.observations, len(self.events) + 1):
            self.connect(k, observed)
        for i, event in enumerate(self.events):
            self.builder.add("so", len(self.events), i, "initial", init=INIT, node=event.name)

    def names(self) -> Iterator[str]:
        """Yield a distinct name for each read, numbered from the second of one name."""
        count: Counter[str] = Counter()
        for observed in self.observations:
            shown = "that is gone" if observed.row is None else show_row(observed.row)
            name = f"{self.events[observed.reader].name} r({observed.read.words}: {shown})"
            count[name] += 1
            yield name if count[name] == 1 else f"{name} ({count[name]})"

    def connect(self, k: int, observed: _Observation) -> None:
        """Add rf, wr, in and rival of read k, which is the node of an observation."""
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
        """Return the kind of reason for what the reader saw, and the last values of the row."""
        seen = observed.versions[observed.seen]
        if seen.row == seen.table:  # an item that is no row; the words name what was read
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
"""Relations that all histories and logs have."""
RELATIONS = (*BASIC, *READ_RELATIONS)
BASIC_SETS = sets_of("histories", "logs")
SETS = (*BASIC_SETS, *NODE_SETS)


def build_frame(events: Sequence[Event], *, reasons: bool = True, reads: bool = False) -> Frame:
    """Return the frame of the transactions that took effect, in the order in which they ended.

    A transaction is a session of its own, unless it names a shared one. Of a footprint, only its
    presence and its table are used.

    Parameters
    ----------
    events : sequence of Event
        The transactions.
    reasons : bool
        Whether each edge has a reason; False saves time where edges are only counted.
    reads : bool
        Whether reads are nodes, with the relations in `READ_RELATIONS` and the sets in `NODE_SETS`.
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
    """Return a builder with the dependencies between transactions.

    ``relations`` and ``sets`` are given by name or, if they are a format's own, by their terms.
    """
    names = [event.name for event in events]
    builder = FrameBuilder(names, (*BASIC, *relations), (*BASIC_SETS, *sets), reasons=reasons)
    for i, event in enumerate(events):
        builder.put("Reader" if event.version is None else "Writer", i)
    _orders(events, builder)
    _Dependencies(events, builder).add()
    return builder


def _orders(events: Sequence[Event], builder: FrameBuilder) -> None:
    """Add session order, log order, visibility, and unseen concurrent commits."""
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
        """Add ww of consecutive versions of each row, and wr and rw by item and by predicate."""
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
        """Add a ww edge; ``row`` has the values when the row last existed."""
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
        """Add wr edges from writers of the versions read, rw edges to writers of the next ones."""
        reader = self.events[j].name
        for row in read.matched:
            writer = position.get(row.writer)
            item = Item(read.table, row.id, row.values) if self.builder.reasons else None
            chain = written.get((read.table, row.id), ())
            start = next((k + 1 for k, v in enumerate(chain) if v.writer == writer), 0)
            saw = chain[start - 1].after if start else chain[0].before if chain else row.values
            gone = saw is None and row.id != read.table
            if writer is not None and writer != j:
                self.builder.add(
                    "wr", writer, j, "read gone" if gone else "read item",
                    reader=reader, item=item, writer=row.writer,
                )  # fmt: skip
            if start < len(chain) and chain[start].writer != j:
                after = chain[start]
                self.builder.add(
                    "rw", j, after.writer, "brought back" if gone else "overwritten",
                    reader=reader, item=item, writer=self.name(after), after=after.after,
                )  # fmt: skip

    def predicate(self, j: int, read: RowRead, chain: Sequence[RowVersion]) -> None:
        """Add wr edges from seen versions that change the matching rows, rw edges to unseen
        ones.
        """
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
        """Return the kind of reason, the row and the nouns for a change that a read did not see.

        ``missed`` are the versions after the one that the read saw, up to one that changes whether
        the row matches.
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
        """Return the name of the transaction that installed a version of a row."""
        return self.events[version.writer].name


(REAL_TIME,) = relations_of("times")


def needs_times(spec: Spec) -> bool:
    """Return whether a spec depends on real time.

    >>> from isolitmus.specs import level
    >>> needs_times(level("strict-serializable")), needs_times(level("serializable"))
    (True, False)
    """
    return REAL_TIME in spec.needs


def add_real_time(frame: Frame, schedule: Schedule) -> Frame:
    """Return the frame with the relation ``rt`` of a schedule.

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
        relations=frame.relations | {REAL_TIME: relation},
        reasons={**frame.reasons, **why},
    )
