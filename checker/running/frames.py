"""From an execution to its frame: Adya's dependencies at row level, footprints, the order of the log.

Dependencies are those of Adya (ICDE 2000) with the version set of a snapshot: a read sees of every
row the last version at or before its read version. A row is an object over all time; it is unborn
before its insert and dead after its delete.
"""

from __future__ import annotations

import itertools
from operator import itemgetter
from typing import TYPE_CHECKING

from isolitmus.checker.running.asking import with_asked
from isolitmus.checker.running.chains import chains
from isolitmus.checker.running.definitions import with_definitions
from isolitmus.checker.running.row_reads import with_row_reads
from isolitmus.model.footprint import PLAIN, Footprint
from isolitmus.model.frame import Frame
from isolitmus.model.reads import READ_RELATIONS
from isolitmus.model.relation import Relation
from isolitmus.model.values import show_row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isolitmus.checker.running.chains import RowVersion
    from isolitmus.model.execution import Event, RowRead
    from isolitmus.model.values import Row

__all__ = ["BASIC", "RELATIONS", "SETS", "frame"]

BASIC = (
    "so",
    "wr",
    "ww",
    "rw",
    "log",
    "vis",
    "unseen",
    "protocol-clashes",
    "metadata-clashes",
    "same-domain",
    "writes-read-app",
    "adds-meets-reads",
    "removes-meets-reads",
    "removes-meets-removes",
)
RELATIONS = (*BASIC, *READ_RELATIONS)
FLAGS: dict[str, Callable[[Footprint], bool]] = {
    "Blind": lambda f: f.claims_blind,
    "NoData": lambda f: not f.data_change,
    "ChangesData": lambda f: f.changes_data,
    "Empty": lambda f: f.empty,
    "Meta": lambda f: f.marks.metadata is not None,
    "Protocol": lambda f: f.marks.features is not None,
    "Marked": lambda f: f.marks.marked,
    "Large": lambda f: f.marks.large,
    "Backfill": lambda f: f.marks.backfill,
    "Vectors": lambda f: f.schema.vectors,
    "Partitioned": lambda f: bool(f.schema.partitioned_by),
    "Ordering": lambda f: f.orders,
    "Default": lambda f: f.marks.default_level,
}
"""Sets of commits, each by what puts a footprint in it."""
SETS = ("Writer", "Reader", "Aborted", *FLAGS)


def frame(events: Sequence[Event], *, reasons: bool = True, reads: bool = False) -> Frame:
    """The frame of the transactions that took effect, in the order in which they ended.

    A transaction is a session of its own unless it names one that it shares. ``reasons`` False
    leaves ``why`` empty, for counting; ``reads`` True gives it the reads as nodes, see
    ``checker.running.row_reads``. Relations: see RELATIONS, of which those of the reads are there only
    with them; sets: SETS.
    """
    events = with_definitions(events)
    builder = _Builder(events, reasons)
    builder.orders()
    builder.footprints()
    builder.clashes()
    builder.dependencies()
    seen = builder.frame()
    if any(event.asked is not None for event in events):
        seen = with_asked(events, seen)
    return with_row_reads(events, seen, reasons=reasons) if reads else seen


class _Builder:
    def __init__(self, events: Sequence[Event], reasons: bool) -> None:
        self.events = events
        self.reasons = reasons
        self.rows = {name: [0] * len(events) for name in BASIC}
        self.why: dict[tuple[str, int, int], str] = {}

    def frame(self) -> Frame:
        relations = {name: Relation(tuple(rows)) for name, rows in self.rows.items()}
        return Frame(tuple(e.name for e in self.events), relations, self.sets(), self.why)

    def sets(self) -> dict[str, int]:
        sets = dict.fromkeys(SETS, 0)
        for i, event in enumerate(self.events):
            bit = 1 << i
            footprint = event.effect.footprint
            sets["Reader" if event.version is None else "Writer"] |= bit
            if footprint is None:
                sets["NoData"] |= bit
                sets["Empty"] |= bit
                continue
            for name, holds in FLAGS.items():
                if holds(footprint):
                    sets[name] |= bit
        return sets

    def add(self, kind: str, i: int, j: int, why: str) -> None:
        self.rows[kind][i] |= 1 << j
        if self.reasons:
            self.why.setdefault((kind, i, j), why)

    # The order of the log, and what each commit had seen

    def orders(self) -> None:
        for j, later in enumerate(self.events):
            for i, earlier in enumerate(self.events):
                if i < j and later.session is not None and earlier.session == later.session:
                    self.add(
                        "so",
                        i,
                        j,
                        f"in session '{later.session}' {earlier.name} came before {later.name}",
                    )
                if i == j or earlier.version is None:
                    continue
                if earlier.version <= later.read_version:
                    self.add("vis", i, j, f"{later.name} read version {later.read_version}")
                if later.version is None or earlier.version >= later.version:
                    continue
                versions = f"version {earlier.version}, {later.name} version {later.version}"
                self.add("log", i, j, f"in the log {earlier.name} is {versions}")
                if later.missed(earlier):
                    self.add(
                        "unseen",
                        i,
                        j,
                        f"{later.name} read version {later.read_version},"
                        f" before {earlier.name} became version {earlier.version}",
                    )

    # Footprints

    def footprints(self) -> None:
        for j, loser in enumerate(self.events):
            reads = loser.effect.footprint
            if reads is None:
                continue
            for i, winner in enumerate(self.events):
                wrote = winner.effect.footprint
                if i == j or wrote is None:
                    continue
                a, b = winner.name, loser.name
                if wrote.marks is not PLAIN:
                    self.marks(i, j, wrote, reads)
                if wrote.adds_meet_reads_of(reads):
                    self.add("adds-meets-reads", i, j, self.added(a, wrote, b, reads))
                if wrote.removes_meet_reads_of(reads):
                    both = wrote.removes & reads.files
                    file = self.file(both or wrote.removes, wrote)
                    read = "it" if both else f"the whole of {reads.schema.name}"
                    self.add(
                        "removes-meets-reads", i, j, f"{a} removed {file}, and {b} read {read}"
                    )
                if wrote.removes_meet_removes_of(reads):
                    file = self.file(wrote.removes & reads.removes, wrote)
                    why = f"{a} removed {file}, and {b} removed it, too"
                    self.add("removes-meets-removes", i, j, why)

    def marks(self, i: int, j: int, wrote: Footprint, reads: Footprint) -> None:
        """Conflicts that are about no file."""
        a, b = self.events[i].name, self.events[j].name
        for domain in wrote.same_domains(reads):
            self.add("same-domain", i, j, f"{a} and {b} both set the domain {domain}")
        for app in wrote.apps_read_by(reads):
            why = f"{a} set the version of the application {app}, which {b} had looked up"
            self.add("writes-read-app", i, j, why)

    def clashes(self) -> None:
        """What each commit cannot take over of the commits that it missed, in the order of the log:
        what it can, it knows from then on.
        """
        written = [(e.version, i, e.name, e.effect.footprint) for i, e in enumerate(self.events)]
        writers = [
            (version, i, name, footprint)
            for version, i, name, footprint in written
            if version is not None and footprint is not None and footprint.marks is not PLAIN
        ]
        for j, loser in enumerate(self.events):
            reads = loser.effect.footprint
            if not writers or reads is None:
                continue
            header = reads.known
            for version, i, name, wrote in sorted(writers, key=itemgetter(0)):
                unseen = loser.read_version < version < (loser.version or version)
                if i == j or not unseen or wrote.schema.name != reads.schema.name:
                    continue
                protocol, metadata, header = wrote.rebase(reads, header)
                missed = f"{loser.name}, which had not seen it"
                if protocol is not None:
                    self.add("protocol-clashes", i, j, f"{name} {protocol}, before {missed}")
                if metadata is not None:
                    self.add("metadata-clashes", i, j, f"{name} {metadata}, before {missed}")

    def added(self, winner: str, wrote: Footprint, loser: str, reads: Footprint) -> str:
        """Where a file that the winner added meets what the loser read, in words."""
        if not self.reasons:
            return ""
        table = wrote.schema.name
        where = wrote.adds_where(reads) if wrote.schema.partitioned_by else None
        if where is None:
            return (
                f"{winner} added a file to {table}, which has no partitions and which {loser} read"
            )
        partition, predicate = where
        read = (
            f"{table} WHERE {' AND '.join(map(str, predicate))}" if predicate else f"all of {table}"
        )
        folder = wrote.schema.folder(partition)
        return f"{winner} added a file to partition {folder} of {table}, where {loser} read {read}"

    def file(self, paths: frozenset[str], footprint: Footprint) -> str:
        """The first of some files, in words."""
        if not self.reasons:
            return ""
        folder, _, name = min(paths).rpartition("/")
        writer = name.rpartition("-")[0]
        if not writer:  # a raw transaction's, called as its author likes
            return f"the file {name} of {footprint.schema.name}"
        whose = "that was there before" if writer.startswith("+") else f"that {writer} wrote"
        place = f"partition {folder} of " if folder else ""
        return f"a file in {place}{footprint.schema.name} {whose}"

    # Adya's dependencies

    def dependencies(self) -> None:
        written = chains(self.events)
        for chain in written.values():
            for first, second in itertools.pairwise(chain):
                self.overwrote(first, second)
        position = {event.name: i for i, event in enumerate(self.events)}
        versions = [version for chain in written.values() for version in chain]
        for j, event in enumerate(self.events):
            for read in event.effect.reads:
                self.items(j, read, written, position)
                self.predicate(j, read, versions)

    def overwrote(self, first: RowVersion, second: RowVersion) -> None:
        if first.writer == second.writer:
            return
        a, b = self.events[first.writer].name, self.events[second.writer].name
        did = "deleted" if second.after is None else "rewrote"
        row, had = (first.before, "deleted") if first.after is None else (first.after, "written")
        why = f"{b} {did} row {_show(row)}, which {a} had {had}"
        self.add("ww", first.writer, second.writer, why)

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
            if writer is not None and writer != j:
                self.add(
                    "wr",
                    writer,
                    j,
                    f"{reader} read row {show_row(row.values)}, which {row.writer} wrote",
                )
            chain = written.get((read.table, row.id), ())
            start = next((k + 1 for k, v in enumerate(chain) if v.writer == writer), 0)
            if start < len(chain) and chain[start].writer != j:
                after = chain[start]
                did = "deleted" if after.after is None else f"changed to {show_row(after.after)}"
                other = self.events[after.writer].name
                self.add(
                    "rw",
                    j,
                    after.writer,
                    f"{reader} read row {show_row(row.values)}, which {other} then {did}",
                )

    def predicate(self, j: int, read: RowRead, versions: list[RowVersion]) -> None:
        """wr from a seen version that changes the matches of the predicate, rw to one not seen."""
        event = self.events[j]
        at = event.seen_by(read)
        for version in versions:
            if version.writer == j or version.table != read.table:
                continue
            matched, matches = read.sees(version.before), read.sees(version.after)
            if matched == matches:
                continue
            writer = self.events[version.writer]
            assert writer.version is not None
            row = version.after if matches else version.before
            did = "put in" if matches else "took out"
            if writer.version <= at:
                why = f"{event.name} read {read.words} after {writer.name} {did} row {_show(row)}"
                self.add("wr", version.writer, j, why)
            else:
                saw = "without" if matches else "with"
                why = (
                    f"{event.name} read {read.words} at version {at},"
                    f" {saw} row {_show(row)}, which {writer.name} {did}"
                )
                self.add("rw", j, version.writer, why)


def _show(row: Row | None) -> str:
    return "that is gone" if row is None else show_row(row)
