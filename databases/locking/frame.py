"""Dependency graph of a run with scans, and whether each statement read a single moment.

The nodes are the transactions, the initial one, and one read per row that a scan emitted. Aborted
transactions are nodes, since others may have read their writes; their own reads are ignored.

A scan reads positions in an index, one after another. A row has one position at a time. Its move
ends one entry and begins another, and each position is read when the scan passes it. So ``wr`` and
``rw`` are Adya's dependencies with index entries as objects. A row that moves ahead of a scan and
is counted twice is read before the move and after it. A row that moves behind the scan is read by
it as gone from its old position, and as not yet at its new one. A scan of a snapshot reads every
position at the moment of the snapshot.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from isolitmus.checker.execution.frame import INIT
from isolitmus.checker.judge.read_nodes import NODE_SETS
from isolitmus.databases.locking.events import ScanRecord
from isolitmus.databases.locking.row_versions import key_of
from isolitmus.model.frame import FrameBuilder
from isolitmus.model.reason import Item
from isolitmus.model.sql.values import show_row
from isolitmus.model.vocabulary import Term

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.databases.locking.row_versions import Position, RowImage, RowStore, StoredRow
    from isolitmus.databases.locking.scans import EmittedRow, ScanTrace
    from isolitmus.model.execution import Event
    from isolitmus.model.frame import Frame


def is_torn(event: Event) -> bool:
    """Return whether some statement of a transaction read rows that no single moment explains.

    Moments from the initial state to the end of the statement count.
    """
    done = event.effect
    if not isinstance(done, ScanRecord) or done.store is None:
        return False
    by_statement = groupby(done.traces, key=lambda trace: trace.statement)
    return any(not moments(event.name, list(traces), done.store) for _, traces in by_statement)


def moments(who: str, traces: Sequence[ScanTrace], store: RowStore) -> list[int]:
    """Return the times at which the committed rows equal what the scans of one statement read.

    Beside the committed rows the transaction sees what it wrote itself before.

    Parameters
    ----------
    who : str
        The transaction.
    traces : sequence of ScanTrace
        Scans of one statement.
    store : RowStore
        Row versions of the run.

    Returns
    -------
    list of int
        Times in ascending order; empty if the statement is torn.
    """
    began = min(
        trace.began if not trace.passed else min(trace.began, trace.passed[0][1])
        for trace in traces
    )
    ends = [trace.passed[-1][1] for trace in traces if trace.passed]
    times = {0} | {
        image.committed
        for rows in store.rows.values()
        for row in rows
        for image in row.versions
        if image.committed is not None and image.committed <= max(ends, default=0)
    }
    return sorted(
        at for at in times if all(_gives(who, trace, store, at, began) for trace in traces)
    )


def _gives(who: str, trace: ScanTrace, store: RowStore, at: int, began: int) -> bool:
    """Return whether a scan emitted the matching rows of the state at time `at`.

    A scan that was stopped before its end emitted the first of them.
    """
    there: list[tuple[object, StoredRow, RowImage]] = []
    for row in store.rows[trace.table]:
        image = _image(who, row, at, began)
        if image is not None and image.values is not None and trace.asks(image.values):
            there.append(((key_of(trace.index, image.values), row.number), row, image))
    gave = [
        (visit.row.id, visit.version.values)
        for visit in trace.visits
        if visit.version.writer != who or visit.version.written <= began
    ]
    wanted = [
        (row.id, image.values)
        for _, row, image in sorted(there, key=lambda one: one[0])  # type: ignore[arg-type,return-value]
    ]
    if not trace.passed or trace.passed[-1][0] is not None:
        wanted = wanted[: len(gave)]
    return Counter(gave) == Counter(wanted)


def _image(who: str, row: StoredRow, at: int, began: int) -> RowImage | None:
    """Return the version of a row for a scan: the transaction's own last one, else at ``at``."""
    own = [v for v in row.versions if v.writer == who and v.written <= began and v.undone is None]
    if own:
        return own[-1]
    return next((v for v in reversed(row.versions) if v.there(at) and v.writer != who), None)


AGAIN, BEFORE, MISSES, SAME, SCAN, TORN, UNDER = (
    "again", "before", "misses", "same", "scan", "Torn", "under",
)  # fmt: skip
FORM = "locking"
OWN = (
    Term(
        BEFORE, FORM, "from a transaction that had committed to a read that was made then",
        verb="had committed before",
    ),
    Term(
        SCAN, FORM, "from a read to the later reads of the same scan",
        verb="is read by the scan of",
    ),
    Term(
        SAME, FORM, "from a read to the later reads of the same row in one statement",
        verb="is read once more by",
    ),
    Term(
        AGAIN, FORM, "from a read to the later reads of the same row in one transaction",
        verb="is read again by",
    ),
    Term(
        UNDER, FORM,
        "from a read to a transaction that wrote its row, and committed, before the reader ended",
        verb="is changed under its reader by",
    ),
    Term(
        MISSES, FORM,
        "the first moved a row that was there all the time so that a scan of the second did not"
        " come to it",
        verb="hides a row from",
    ),
    Term(
        TORN, FORM,
        "transactions with a statement whose scans give what was there at no one moment",
        inside="what a statement of {} read was there at no one moment",
        outside="what each statement of {} read was there at one moment",
    ),
)  # fmt: skip


RELATIONS = ("so", "wr", "ww", "rw", "intermediate", "log", "rf", "po", "in", "rival")
SETS = ("Writer", "Reader", "Aborted", *NODE_SETS)
NOBODY = ""


# `reads` is ignored: read nodes are always there
def scan_frame(
    events: Sequence[Event],
    *,
    reasons: bool = True,
    reads: bool = True,  # noqa: ARG001
) -> Frame:
    """Return the dependency graph, with read nodes, of transactions in the order of their ends."""
    relations: tuple[str | Term, ...] = (
        *RELATIONS,
        *(term for term in OWN if term.kind == "relation"),
    )
    sets: tuple[str | Term, ...] = (*SETS, *(term for term in OWN if term.kind == "set"))
    builder = FrameBuilder([event.name for event in events], relations, sets, reasons=reasons)
    return _ScanFrame(events, builder).build()


@dataclass(frozen=True, slots=True)
class _ReadNode:
    """Read: its index in the graph, the transaction, the scan, its trace and the emitted row."""

    at: int
    reader: int
    scan: int
    trace: ScanTrace
    visit: EmittedRow


class _ScanFrame:
    def __init__(self, events: Sequence[Event], builder: FrameBuilder) -> None:
        self.events, self.builder = events, builder
        self.position = {event.name: i for i, event in enumerate(events)}
        self.init = len(events)
        self.position[NOBODY] = self.init
        self.nodes: list[_ReadNode] = []
        self.rows: list[StoredRow] = []
        for event in events:
            if isinstance(event.effect, ScanRecord) and event.effect.store is not None:
                self.rows = [row for rows in event.effect.store.rows.values() for row in rows]

    def build(self) -> Frame:
        """Return the dependency graph, with one node per row that a scan emitted."""
        names: list[str] = []
        for i, event in enumerate(self.events):
            self.sets(i, event)
            for k, trace in enumerate(_traces(event)):
                for visit in trace.visits:
                    if visit.version.writer != event.name:
                        at = self.init + 1 + len(self.nodes)
                        number = sum(node.reader == i for node in self.nodes) + 1
                        self.nodes.append(_ReadNode(at, i, k, trace, visit))
                        names.append(
                            f"{event.name} r{number} {show_row(visit.version.values or ())}"
                        )
        self.builder.beside(INIT, *names)
        self.builder.put("Initial", self.init)
        self.orders()
        self.overwrites()
        for node in self.nodes:
            self.read(node)
        for one, other in itertools.combinations(self.nodes, 2):
            if one.reader == other.reader:
                self.pair(one, other)
        for i, event in enumerate(self.events):
            if not event.aborted:
                for trace in _traces(event):
                    self.scanned(i, trace)
        return self.builder.build()

    def add(self, relation: str, i: int, j: int, kind: str, /, **nouns: Any) -> None:
        self.builder.add(relation, i, j, kind, **nouns)

    def name(self, i: int) -> str:
        return INIT if i == self.init else self.events[i].name

    def sets(self, i: int, event: Event) -> None:
        """Add an event to Reader or Writer, and to Aborted or TORN."""
        self.builder.put("Reader" if event.version is None else "Writer", i)
        if event.aborted:
            self.builder.put("Aborted", i)
        elif is_torn(event):
            self.builder.put(TORN, i)

    def orders(self) -> None:
        """Add session order and commit order."""
        for (i, a), (j, b) in itertools.combinations(enumerate(self.events), 2):
            if a.session is not None and a.session == b.session:
                self.add("so", i, j, "one session", session=a.session, first=a.name, second=b.name)
            if a.version is not None and b.version is not None:
                self.add(
                    "log", i, j, "{first} committed before {second}", first=a.name, second=b.name
                )
        for i, event in enumerate(self.events):
            if not event.aborted:
                self.add("so", self.init, i, "initial", init=INIT, node=event.name)

    def overwrites(self) -> None:
        """Add ww: the writers of consecutive versions of a row."""
        for row in self.rows:
            chain = [v for v in row.versions if v.committed is not None]
            for first, second in itertools.pairwise(chain):
                if first.writer in (second.writer, NOBODY):
                    continue
                self.add(
                    "ww", self.position[first.writer], self.position[second.writer], "overwrote",
                    writer=second.writer, item=Item(row.table, row.id, first.values or ()),
                    before=first.writer, deleted=second.values is None,
                    was_deleted=first.values is None,
                )  # fmt: skip

    def read(self, node: _ReadNode) -> None:
        """Add the edges of one read."""
        visit, reader = node.visit, self.name(node.reader)
        writer = visit.version.writer
        row = show_row(visit.version.values or ())
        nouns = {"reader": reader, "row": row, "writer": writer or INIT}
        self.add(
            "rf",
            self.position[writer],
            node.at,
            "{reader} read {row}, which {writer} wrote",
            **nouns,
        )
        self.add("in", node.at, node.reader, "{row} is a read of {reader}", **nouns)
        self.add(BEFORE, self.init, node.at, "{init} was before all", init=INIT)
        for i, event in enumerate(self.events):
            if i == node.reader:
                continue
            mine = [v for v in visit.row.versions if v.writer == event.name]
            if any(v.committed is not None for v in mine) and event.name != writer:
                self.add(
                    "rival", i, node.at, "{writer} wrote {row}, too", writer=event.name, row=row
                )
            ended = _ended(self.rows, event.name)
            if ended is not None and ended <= visit.at:
                self.add(
                    BEFORE,
                    i,
                    node.at,
                    "{writer} had ended when {reader} read {row}",
                    **{**nouns, "writer": event.name},
                )
            end = _ended(self.rows, reader)
            late = [v for v in mine if v.written > visit.at and (end is None or v.written < end)]
            if late and _while(self.events, node.reader, i):
                self.add(
                    UNDER,
                    node.at,
                    i,
                    "{writer} wrote {row}, which {reader} had read and still needed",
                    **{**nouns, "writer": event.name},
                )
        if writer:
            own = [v for v in visit.row.versions if v.writer == writer and v.committed is not None]
            if own and visit.version is not own[-1] and writer != reader:
                why = "{reader} read {row}, which {writer} overwrote itself"
                self.add("intermediate", self.position[writer], node.reader, why, **nouns)
            return
        self.add("wr", self.init, node.reader, "{reader} read {row}, which {writer} wrote", **nouns)

    def pair(self, one: _ReadNode, other: _ReadNode) -> None:
        """Add the edges between two reads of one transaction."""
        reader = self.name(one.reader)
        rows = [show_row(node.visit.version.values or ()) for node in (one, other)]
        nouns = {"reader": reader, "first": rows[0], "second": rows[1]}
        self.add("po", one.at, other.at, "{reader} read {first}, then {second}", **nouns)
        if one.scan == other.scan:
            self.add(
                SCAN, one.at, other.at, "one scan of {reader} read {first} and {second}", **nouns
            )
        if one.visit.row is not other.visit.row:
            return
        words = self.twice(one, other)
        self.add(AGAIN, one.at, other.at, words)
        if one.trace.statement == other.trace.statement:
            self.add(SAME, one.at, other.at, words)

    def twice(self, one: _ReadNode, other: _ReadNode) -> str:
        """Return the reason why a row was read a second time."""
        a, b = one.visit, other.visit
        said = f"row {show_row(a.version.values or ())} was read"
        where = _where(one.trace, a)
        by = b.version.writer
        if a.version is b.version:
            return f"{said} twice as it is"
        if one.scan == other.scan and a.position != b.position:
            return f"{said} at {where}, moved to {_where(other.trace, b)} by {by}, and read again"
        return f"{said}, changed to {show_row(b.version.values or ())} by {by}, and read again"

    # Dependencies of scans

    def scanned(self, i: int, trace: ScanTrace) -> None:
        """Add wr and rw of a scan, position by position, and the rows that it missed."""
        for row in self.rows:
            if row.table != trace.table:
                continue
            for position in dict.fromkeys(_places(trace, row)):
                at = trace.again.get(row.id, _passed(trace, position))
                if at is not None:
                    self.entry(i, trace, row, (position, at))
            self.missed(i, trace, row)

    def entry(self, i: int, trace: ScanTrace, row: StoredRow, place: tuple[Position, int]) -> None:
        """Add the edges of one index position that was read at a time."""
        position, at = place
        chain, reader = _chain(row), self.name(i)
        seen = _seen(trace, chain, at)
        asked = [_at(trace, row, image, position) for image in chain]
        if seen is not None and chain[seen].writer == reader:
            return
        was = seen is not None and asked[seen]
        last = seen if was else _changed(asked, seen)
        if last is not None and chain[last].writer not in (NOBODY, reader):
            item = Item(row.table, row.id, chain[last].values or ())
            kind = (
                "read item"
                if asked[last]
                else "{reader} came to where a row had been until {writer} moved it or took it out"
            )
            self.add(
                "wr",
                self.position[chain[last].writer],
                i,
                kind,
                reader=reader,
                item=item,
                writer=chain[last].writer,
            )
        later = range(0 if seen is None else seen + 1, len(chain))
        for k in later:
            image = chain[k]
            if image.committed is None or image.writer in (NOBODY, reader):
                continue
            before = k > 0 and asked[k - 1]
            first = k == later.start
            if (first and was) or asked[k] != before:
                item = Item(
                    row.table,
                    row.id,
                    (chain[seen].values if was and seen is not None else image.values) or (),
                )
                kind = (
                    "overwritten" if was else "{writer} put {item} where {reader} had been already"
                )
                self.add(
                    "rw",
                    i,
                    self.position[image.writer],
                    kind,
                    reader=reader,
                    item=item,
                    writer=image.writer,
                    after=image.values,
                )

    def missed(self, i: int, trace: ScanTrace, row: StoredRow) -> None:
        """Add edges for a committed row that matched the scan all the time and was not emitted."""
        if not trace.passed or trace.passed[-1][0] is not None:
            return
        if any(visit.row is row for visit in trace.visits):
            return
        began, ended = trace.began, trace.passed[-1][1]
        reader = self.name(i)
        committed = [v for v in row.versions if v.committed is not None]
        during = [v for v in committed if began < (v.committed or 0) <= ended]
        first = next((v for v in reversed(committed) if (v.committed or 0) <= began), None)
        if first is None or any(v.writer == reader for v in row.versions):
            return
        if all(trace.asks(v.values) for v in (first, *during)):
            for image in during or [first]:
                if image.writer != NOBODY:
                    self.add(
                        MISSES, self.position[image.writer], i,
                        "row {row} was there all the time, and {writer} moved it behind the scan"
                        " of {reader}, which did not come to it",
                        row=show_row(first.values or ()), writer=image.writer, reader=reader,
                    )  # fmt: skip


def _traces(event: Event) -> tuple[ScanTrace, ...]:
    return event.effect.traces if isinstance(event.effect, ScanRecord) else ()


def _chain(row: StoredRow) -> list[RowImage]:
    """Return the versions of a row by transactions that have ended."""
    return [v for v in row.versions if v.committed is not None or v.undone is not None]


def _places(trace: ScanTrace, row: StoredRow) -> Iterator[Position]:
    for image in _chain(row):
        if image.values is not None:
            yield key_of(trace.index, image.values), row.number


def _passed(trace: ScanTrace, position: Position) -> int | None:
    """Return the time at which a scan read a position; None if it did not get there."""
    if trace.sight in ("statement", "transaction", "first"):
        return trace.began
    return next((at for upto, at in trace.passed if upto is None or position <= upto), None)


def _seen(trace: ScanTrace, chain: Sequence[RowImage], at: int) -> int | None:
    """Return the index of the version that a scan sees at a time; None if it sees none."""
    found = None
    for k, image in enumerate(chain):
        if trace.sight == "current":
            since = image.since(trace.index)
            there = since is not None and since <= at
            there &= image.undone is None or image.undone > at
        else:
            there = image.there(at)
        found = k if there else found
    return found


def _at(trace: ScanTrace, row: StoredRow, image: RowImage, position: Position) -> bool:
    """Return whether a version is at a position, and matches the scan."""
    if image.values is None or (key_of(trace.index, image.values), row.number) != position:
        return False
    return trace.asks(image.values)


def _changed(asked: Sequence[bool], seen: int | None) -> int | None:
    """Return the index of the last version up to `seen` that starts or ends a match, or None."""
    for k in range(-1 if seen is None else seen, -1, -1):
        if asked[k] != (k > 0 and asked[k - 1]):
            return k
    return None


def _where(trace: ScanTrace, visit: EmittedRow) -> str:
    """Return an index position as text: ``k = 10``."""
    values = visit.version.values or ()
    if trace.index is None:
        return "its place"
    return ", ".join(f"{trace.columns[k].name} = {values[k]}" for k in trace.index.columns)


def _ended(rows: Sequence[StoredRow], name: str) -> int | None:
    """Return the time at which a transaction committed its writes; None if it did not."""
    return next(
        (
            v.committed
            for row in rows
            for v in row.versions
            if v.writer == name and v.committed is not None
        ),
        None,
    )


def _while(events: Sequence[Event], reader: int, writer: int) -> bool:
    """Return whether a writer committed before the reader ended."""
    return writer < reader and not events[writer].aborted
