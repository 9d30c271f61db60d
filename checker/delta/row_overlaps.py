"""Overlaps of two commits below the level of files: merged vectors, statistics, rows, positions.

Released Delta compares files, and partitions of added files. Rules that are being designed look
closer: at the positions that deletion vectors mark, at the statistics and the rows of added files,
at the rows that a commit removed (delta-io/delta, issue 7360 and its cases). This module has the
relations that texts of such rules need; all of them use only what a commit checker holds: actions,
statistics, positions, recorded predicates.

A *position* is a row as it stands in one file: Delta's files never change, so path and row identify
it. A file is *merged* for a winner and a loser if both gave it a deletion vector, and no position
is newly deleted by both: the loser then commits the union of the two vectors (case 2). It is
*moved* if the winner gave it a vector and the loser compacts it: the new file takes over the vector
(case 4). Afterwards it does not count as read by the loser.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

from isolitmus.checker.delta.data_skipping import Filters, may_match
from isolitmus.checker.delta.file_overlaps import adds_meet_reads, removes_meet_reads
from isolitmus.model.errors import LitmusError, UndeterminedError
from isolitmus.model.execution import RowRead, RowWrite
from isolitmus.model.memo import memoize_by_identity
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql.conditions import holds
from isolitmus.model.sql.data_file import File
from isolitmus.model.sql.types import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from isolitmus.model.delta.footprint import Footprint
    from isolitmus.model.execution import Effect, Event
    from isolitmus.model.sql.data_file import RawFile
    from isolitmus.model.sql.values import Row

RowPosition = tuple[str, str]
"""Path of a file, and identity of the row in it."""
RESTORE = "RESTORE"
UNCLEAR = (
    "whether an added file, or a removed row, matches what was read is up to what Spark's optimizer"
    " makes of a join, or of a condition: say apart what is said of columns of one table"
)


class Marked(NamedTuple):
    """File that a commit removes and adds again with a deletion vector: rows before and after."""

    before: frozenset[str]
    after: frozenset[str]


@memoize_by_identity
def marked_files(done: Effect) -> Mapping[str, Marked]:
    """Return the files that a commit gives a deletion vector, by path.

    A file without a row left is removed, and not added again (``add_deletion_vectors``); one whose
    positions are not known, because it is only declared, is left out.
    """
    files = () if done.footprint is None else done.footprint.removed
    removed = {file.path: file for file in files if isinstance(file, File)}
    return {
        file.path: Marked(_ids(removed[file.path]), _ids(file))
        for file in done.adds
        if file.dead and file.path in removed
    }


def _ids(file: File) -> frozenset[str]:
    return frozenset(row.id for row in file.rows)


def add_unseen_deletions(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events, each with the deletions of rows that it has never seen.

    Whoever commits a vector commits again what it found in it, and a compaction removes whole
    files: a row that was deleted when the file was read, and that a RESTORE brought back since, is
    deleted again. The commit has read that the row was gone, and it writes that it is.
    """
    if not any(event.effect.operation == RESTORE for event in events):
        return events
    whole: list[Event] = []
    for event in events:
        whole.append(_deleting_again(event, whole))
    return whole


def _deleting_again(event: Event, earlier: Sequence[Event]) -> Event:
    """Return an event that also reads and deletes the rows that unseen RESTOREs brought back."""
    rows_found = {} if event.version is None else _rows_found(event.effect)
    restored = {
        row.id: row
        for other in earlier
        if rows_found and other.effect.operation == RESTORE and event.missed(other)
        for file in other.effect.adds
        if file.path in rows_found
        for row in file.rows
        if row.id not in rows_found[file.path]
    }
    deleter, is_live = dict.fromkeys(restored, ""), dict.fromkeys(restored, True)
    for other in earlier if restored else ():
        for write in other.effect.writes if other.version is not None else ():
            if write.id in restored:
                is_live[write.id] = write.after is not None
                if (other.version or 0) <= event.read_version:
                    deleter[write.id] = other.name
    written = {write.id for write in event.effect.writes}
    deleted = tuple(
        replace(row, writer=deleter[id_])
        for id_, row in restored.items()
        if is_live[id_] and id_ not in written
    )
    if not deleted or event.effect.footprint is None:
        return event
    done, table = event.effect, event.effect.footprint.table
    read = RowRead(table, f"the deletion vectors of {table}", lambda _: False, deleted)
    writes = (RowWrite(table, row.id, row.values, None) for row in deleted)
    merged = replace(done, reads=(*done.reads, read), writes=(*done.writes, *writes))
    return replace(event, effect=merged)


def _rows_found(done: Effect) -> Mapping[str, frozenset[str]]:
    """Return the rows that a commit found in each file whose rest it decides, by path."""
    footprint = done.footprint
    if footprint is None or footprint.changes_data:
        return {path: file.before for path, file in marked_files(done).items()}
    return {file.path: _ids(file) for file in footprint.removed if isinstance(file, File)}


class Reconciled(NamedTuple):
    """Files that a loser reconciles with one winner, and those that it has reconciled before."""

    now: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()


class Rebase:
    """Files of a loser while it is rebased on one winner after another, in the order of the log.

    Merged: both marked the file, and no row that was there when the loser read it, or after the
    last merge, is deleted by both; after that the loser replaces the winner's file, with the union
    of the vectors (pull 7359, reconcileFileDeletionVectors). Moved: the winner marked the file, and
    the loser is a compaction that keeps the order of rows; the new file takes over the vector
    (sezruby/delta, pull 9, resolveOptimizeConflicts). No file is moved if the winner deleted no row
    of those that are compacted, or one that the loser did not copy.
    """

    def __init__(self, loser: Effect) -> None:
        footprint = loser.footprint
        self.marked: dict[str, Marked] = {}
        self.compacted: dict[str, frozenset[str]] = {}
        if footprint is not None and footprint.schema.vectors:
            self.marked = dict(marked_files(loser))
            if not footprint.changes_data and not footprint.orders:
                self.compacted = dict(_rows_found(loser))
        self._copied = dict(self.compacted)
        self._merged: frozenset[str] = frozenset()
        self._moved: frozenset[str] = frozenset()

    def reconcile(self, winner: Effect) -> tuple[Reconciled, Reconciled]:
        """Return the merged and the moved files of the loser and its next winner."""
        if not self.marked and not self.compacted:
            return NONE, NONE
        theirs = marked_files(winner)
        moved = Reconciled(self._move(theirs), self._moved)
        paths = frozenset(
            path
            for path, own in self.marked.items()
            if path in theirs and not (own.before - own.after) & (own.before - theirs[path].after)
        )
        for path in paths:
            live = theirs[path].after
            self.marked[path] = Marked(live, live & self.marked[path].after)
        merged = Reconciled(paths, self._merged)
        self._merged |= paths
        self._moved |= moved.now
        return merged, moved

    def _move(self, theirs: Mapping[str, Marked]) -> frozenset[str]:
        """Return the files whose vectors the new files take over."""
        shared = self.compacted.keys() & theirs.keys()
        deleted = {path: self.compacted[path] - theirs[path].after for path in shared}
        if not all(rows <= self._copied[path] for path, rows in deleted.items()):
            return frozenset()
        if not any(deleted.values()):
            return frozenset()
        self.compacted |= {path: theirs[path].after for path in shared}
        return frozenset(shared)


NONE = Reconciled()


def files_that_could_match(files: Sequence[File], loser: Footprint) -> tuple[File, ...]:
    """Return the files whose statistics let them match a recorded read of the loser.

    All files are returned for a loser that is marked as reading the whole table, that has recorded
    no predicate, or one of whose reads has no condition on data (ConflictDataSkippingReader.scala
    of pull 7358, filterFilesMatchingAnyReadPredicate). Partitions are another check.

    Raises
    ------
    UndeterminedError
        If the answer depends on what Spark's optimizer makes of a condition.
    """
    reads = [read for read in loser.data_conditions if read is not None]
    if loser.whole_table or not loser.predicates or not all(reads):
        return tuple(files)
    kept = tuple(f for f in files if any(may_match(read, f, loser.schema) for read in reads))
    doubted = [
        file for file in kept if any(Filters((), r).doubted(loser.schema, file) for r in reads)
    ]
    if doubted or (_is_unclear(loser) and len(kept) < len(files)):
        raise UndeterminedError(UNCLEAR)
    return kept


def _is_unclear(loser: Footprint) -> bool:
    """Return whether some read is recorded with conditions that are not known."""
    return bool(loser.wide) or None in loser.data_conditions


def files_that_match(files: Sequence[File], loser: Footprint) -> tuple[File, ...]:
    """Return these files if a row of one of them matches a recorded read; else none of them.

    One scan asks whether any row of any file matches (pull 7466, filterFilesByValueExactScan). A
    condition that is not evaluated on rows is left out, so a read without another one matches
    everything, as does a file without known rows.
    """
    reads = [_eligible(read) for read in loser.data_conditions if read is not None]
    declared = any(not file.rows and not file.dead for file in files)
    if loser.whole_table or declared or not loser.predicates or not all(reads):
        return tuple(files)
    found = any(_matches(reads, row.values) for file in files for row in file.rows)
    if not found and files and _is_unclear(loser):
        raise UndeterminedError(UNCLEAR)
    return tuple(files) if found else ()


def _eligible(read: Iterable[ex.Expr]) -> tuple[ex.Expr, ...]:
    """Return the conditions of a read that are evaluated on rows: no subquery, no opaque part."""
    return tuple(
        part
        for part in read
        if not any(isinstance(inner, ex.Subquery | ex.Opaque) for inner in ex.walk(part))
    )


def _matches(reads: Iterable[Iterable[ex.Expr]], row: Row) -> bool:
    """Return whether a row satisfies all conditions of one of some reads."""
    return any(all(holds(part, (row,)) for part in read) for read in reads)


def rows_match_reads(rows: Iterable[Row], loser: Footprint) -> bool:
    """Return whether one of some rows matches a recorded read: its partition and its conditions.

    Conditions that are not evaluated on rows count as true.
    """
    candidates = list(rows)
    if not candidates or loser.blind:
        return False
    reads = [
        _eligible((*partition, *data))
        for partition, data in zip(loser.predicates, loser.data_conditions, strict=True)
        if data is not None
    ]
    if loser.whole_table or any(_matches(reads, row) for row in candidates):
        return True
    if _is_unclear(loser):
        raise UndeterminedError(UNCLEAR)
    return False


def old_rows(done: Effect) -> list[Row]:
    """Return the rows that a commit deleted or changed, as they were before."""
    return [w.before for w in done.writes if w.before is not None and w.id != w.table]


def new_rows(done: Effect) -> list[Row]:
    """Return the rows that a commit inserted or changed, as they are afterwards."""
    return [w.after for w in done.writes if w.after is not None and w.id != w.table]


class Positions(NamedTuple):
    """Positions that a commit emptied, each with the values of its row."""

    removed: Mapping[RowPosition, Row]
    """Rows that it deleted or changed, where they stood."""
    moved: Mapping[RowPosition, Row]
    """Rows that it copied, unchanged, into another file, where they stood."""


@memoize_by_identity
def emptied_positions(done: Effect) -> Positions:
    """Return the positions that a commit emptied."""
    files = [] if done.footprint is None else done.footprint.removed
    marked = marked_files(done)
    changed = {write.id for write in done.writes}
    emptied = {
        (file.path, row.id): row.values
        for file in files
        if isinstance(file, File)
        for row in file.rows
        if file.path not in marked or row.id not in marked[file.path].after
    }
    return Positions(
        {place: row for place, row in emptied.items() if place[1] in changed},
        {place: row for place, row in emptied.items() if place[1] not in changed},
    )


def empties_what_was_read(places: Mapping[RowPosition, Row], loser: Footprint) -> bool:
    """Return whether one of some positions is in a file that was read, and matches a read."""
    rows = [row for (path, _), row in places.items() if path in loser.files | loser.doubted]
    return rows_match_reads(rows, loser)


def share_merge_key(winner: Footprint, loser: Footprint) -> bool:
    """Return whether two MERGEs equate the same columns with their sources, which share a key."""
    pairs = ((columns, rows) for columns, rows in winner.merge_keys.items())
    return any(not rows.isdisjoint(loser.merge_keys.get(columns, ())) for columns, rows in pairs)


class Overlap(NamedTuple):
    """Winner and loser on one table, with the files that the loser reconciles."""

    winner: Effect
    loser: Effect
    merged: Reconciled = NONE
    """Merged files: both marked them."""
    moved: Reconciled = NONE
    """Moved files: the winner marked and the loser compacted them."""

    @property
    def wrote(self) -> Footprint:
        """Footprint of the winner."""
        assert self.winner.footprint is not None
        return self.winner.footprint

    @property
    def reads(self) -> Footprint:
        """Footprint of the loser."""
        assert self.loser.footprint is not None
        return self.loser.footprint

    def adds(self, kind: Literal["all", "statistics", "values"], *, unmerged: bool) -> bool:
        """Return whether an added file meets a recorded read.

        Parameters
        ----------
        kind : {"all", "statistics", "values"}
            Files that count: all; those that match by statistics; those, if one has a row that
            matches.
        unmerged : bool
            Whether merged files do not count.
        """
        files: Sequence[File] = self.winner.adds
        if unmerged:
            files = [file for file in files if file.path not in self.merged.now]
        if self.reads.blind:
            return False
        if kind != "all":
            files = files_that_could_match(files, self.reads)
        if kind == "values":
            files = files_that_match(files, self.reads)
        return self._meets(files)

    def _meets(self, files: Sequence[File | RawFile]) -> bool:
        """Return whether the partition of one of some files meets a recorded read."""
        partitions = tuple(dict.fromkeys(file.partition for file in files))
        return adds_meet_reads(replace(self.wrote, adds=partitions), self.reads)

    def removes_file_read(self, files: Reconciled) -> bool:
        """Return whether the winner removed a file that the loser read, apart from reconciled
        ones.
        """
        wrote = replace(self.wrote, removes=self.wrote.removes - files.now)
        left = self.reads.files - files.now - files.before
        return removes_meet_reads(wrote, replace(self.reads, files=left))

    def removes_file_removed(self, files: Reconciled) -> bool:
        """Return whether both removed a file, apart from reconciled ones."""
        return not (self.wrote.removes - files.now).isdisjoint(self.reads.removes)

    def removes_matching_file(self) -> bool:
        """Return whether statistics and partition let a removed file match a recorded read."""
        files = [file for file in self.wrote.removed if isinstance(file, File)]
        return not self.reads.blind and self._meets(files_that_could_match(files, self.reads))


def _empties(which: Literal["removed", "moved"], overlap: Overlap) -> bool:
    return empties_what_was_read(getattr(emptied_positions(overlap.winner), which), overlap.reads)


def _both(
    of_winner: Literal["removed", "moved"], of_loser: Literal["removed", "moved"], overlap: Overlap
) -> bool:
    first = getattr(emptied_positions(overlap.winner), of_winner)
    second = getattr(emptied_positions(overlap.loser), of_loser)
    return not first.keys().isdisjoint(second)


def _change_one_row(overlap: Overlap) -> bool:
    first, second = (
        {write.id for write in done.writes if write.before is not None}
        for done in (overlap.winner, overlap.loser)
    )
    return not first.isdisjoint(second)


OVERLAPS: Mapping[str, Callable[[Overlap], bool]] = {
    "merges-vectors": lambda o: bool(o.merged.now),
    "adds-meets-reads-unmerged": lambda o: o.adds("all", unmerged=True),
    "removes-meets-reads-unmerged": lambda o: o.removes_file_read(o.merged),
    "removes-meets-removes-unmerged": lambda o: o.removes_file_removed(o.merged),
    "removes-meets-reads-unmoved": lambda o: o.removes_file_read(o.moved),
    "removes-meets-removes-unmoved": lambda o: o.removes_file_removed(o.moved),
    "adds-could-match-reads": lambda o: o.adds("statistics", unmerged=False),
    "adds-could-match-reads-unmerged": lambda o: o.adds("statistics", unmerged=True),
    "adds-match-reads": lambda o: o.adds("values", unmerged=False),
    "adds-match-reads-unmerged": lambda o: o.adds("values", unmerged=True),
    "removes-could-match-reads": Overlap.removes_matching_file,
    "added-rows-match-reads": lambda o: rows_match_reads(new_rows(o.winner), o.reads),
    "removed-rows-match-reads": lambda o: rows_match_reads(old_rows(o.winner), o.reads),
    "removes-removed-row": partial(_both, "removed", "removed"),
    "removes-read-row": partial(_empties, "removed"),
    "moves-removed-row": partial(_both, "moved", "removed"),
    "removes-moved-row": partial(_both, "removed", "moved"),
    "moves-read-row": partial(_empties, "moved"),
    "changes-changed-row": _change_one_row,
    "same-merge-key": lambda o: share_merge_key(o.wrote, o.reads),
}
"""Relations of two commits, each with its test."""


class OverlapRelations(dict[str, bool | None]):
    """Whether each relation of ``OVERLAPS`` has a pair, found when asked; None if undetermined."""

    def __init__(self, overlap: Overlap) -> None:
        super().__init__()
        self._overlap = overlap

    def __missing__(self, name: str) -> bool | None:
        try:
            found = OVERLAPS[name](self._overlap)
        except (UndeterminedError, EvaluationError, LitmusError):
            found = None
        self[name] = found
        return found


def overlap_relations(overlap: Overlap) -> OverlapRelations:
    """Return the relations of ``OVERLAPS`` that have the pair."""
    if any((*overlap.merged, *overlap.moved)):
        return OverlapRelations(overlap)
    return _plain_relations(overlap.winner, overlap.loser)


@memoize_by_identity
def _plain_relations(winner: Effect, loser: Effect) -> OverlapRelations:
    """Return the relations of a pair that reconciles no file."""
    return OverlapRelations(Overlap(winner, loser))
