"""Frames of executions on Delta: the relations of any engine with versions, and those of Delta.

Delta's relations compare the write set of a winner with the read set and write set of a loser on
one table (ConflictChecker.scala). Its sets classify commits. An overlap is not yet a conflict: the
axioms of a protocol decide which overlaps are conflicts. `error_class` returns the error class of a
conflict (delta-error-classes.json).
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

from isolitmus.checker.delta.delta_rs_read_set import add_read_sets
from isolitmus.checker.delta.file_overlaps import (
    adds_meet_reads,
    first_added_partition,
    removes_meet_reads,
    removes_meet_removes,
)
from isolitmus.checker.delta.metadata_changes import add_definition_reads
from isolitmus.checker.delta.row_overlaps import (
    Overlap,
    OverlapRelations,
    Rebase,
    add_unseen_deletions,
    overlap_relations,
)
from isolitmus.checker.delta.statement_kinds import KINDS
from isolitmus.checker.execution import frame as frames
from isolitmus.checker.execution.frame import add_row_reads, dependencies, version_chains
from isolitmus.checker.judge.read_nodes import READ_RELATIONS
from isolitmus.model.delta.conflict import CONFLICTS
from isolitmus.model.delta.footprint import ROW_TRACKING_DOMAIN
from isolitmus.model.delta.header import (
    CONSTRAINT,
    Header,
    enables_row_tracking,
    metadata_clash,
    protocol_clash,
)
from isolitmus.model.delta.log import LEVEL_KEY
from isolitmus.model.errors import UndeterminedError
from isolitmus.model.reason import Reason
from isolitmus.model.relation import Relation
from isolitmus.model.vocabulary import relations_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from isolitmus.model.delta.footprint import Footprint
    from isolitmus.model.execution import Event
    from isolitmus.model.frame import Frame, FrameBuilder

WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


def error_class(exception: str, winner: Footprint, loser: Footprint) -> str | None:
    """Return the error class of a conflict; None for an exception that is not Delta's.

    A partition is named if the table has partitions and one file is to blame, an added or a removed
    one, but not if the loser is marked as reading the whole table (ConflictChecker.scala,
    getPrettyPartitionMessage).

    >>> from isolitmus.model.delta.footprint import Footprint
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> done = Footprint(Schema("t", (Column("id", "INT"),)), removes=frozenset({"f"}))
    >>> error_class("ConcurrentDeleteDeleteException", done, done)
    'DELTA_CONCURRENT_DELETE_DELETE.WITHOUT_HINT'
    """
    conflict = CONFLICTS.get(exception)
    if conflict is None:
        return None
    name = WORD.sub("_", exception.removesuffix("Exception")).upper()
    if not conflict.hinted:
        return f"DELTA_{name}"
    named = bool(loser.schema.partition_indexes)
    if exception == "ConcurrentDeleteReadException":
        named = named and not winner.removes.isdisjoint(loser.files | loser.doubted)
    return f"DELTA_{name}.{'WITH_PARTITION_HINT' if named else 'WITHOUT_HINT'}"


def check_fails(exception: str, loser: Footprint) -> bool:
    """Return whether the check for added files ends with an internal error.

    EXISTS on partition columns counts as a partition predicate, but names columns that only its
    query has (OptimisticTransaction.scala 1362-1379; ConflictChecker.scala 1040-1099). For a table
    read as a whole, nothing is evaluated.
    """
    evaluated = exception == "ConcurrentAppendException" and not loser.whole_table
    return evaluated and loser.unbound


def removes_needed_feature(winner: Footprint, loser: Footprint) -> bool:
    """Return whether the loser drops a feature that the winner's metadata needs.

    This is checked before the metadata, and is an error, not a conflict
    (validateFeatureRemovalAtSnapshot).
    """
    wrote, features = winner.actions.metadata, loser.actions.features
    if wrote is None or winner.actions.features is not None or features is None:
        return False
    gone = "checkConstraints" in loser.known.features - features
    return gone and any(key.startswith(CONSTRAINT) for key in wrote.configuration)


def common_domains(winner: Footprint, loser: Footprint) -> list[str]:
    """Return the metadata domains that both set, except that of row tracking.

    Source: checkIfDomainMetadataConflict.
    """
    if winner.table != loser.table:
        return []
    return sorted((winner.actions.domains & loser.actions.domains) - {ROW_TRACKING_DOMAIN})


def sets_domain_twice(
    winner: Footprint, loser: Footprint, written: Sequence[frozenset[str] | None]
) -> bool:
    """Return whether the check fails because the winner sets a metadata domain twice.

    Applies only if the table has the domainMetadata feature (checkIfDomainMetadataConflict,
    extractDomainMetadatasMap).

    Parameters
    ----------
    winner, loser : Footprint
        The two commits.
    written : sequence of frozenset of str or None
        Features of the protocols that the winners so far wrote; None if a winner wrote none. The
        last one applies to the loser, if it writes none itself.
    """
    known = next((f for f in reversed(written) if f is not None), loser.actions.features)
    features = loser.known.features if known is None else known
    return winner.actions.domain_twice and "domainMetadata" in features


def common_applications(winner: Footprint, loser: Footprint) -> list[str]:
    """Return the application ids that the winner sets and the loser looked up.

    Source: checkForUpdatedApplicationTransactionIdsThatCurrentTxnDependsOn.
    """
    if winner.table != loser.table:
        return []
    return sorted(winner.actions.apps.keys() & loser.looked_up)


def rebase_conflict(
    winner: Footprint, loser: Footprint, header: Header
) -> tuple[Reason | None, Reason | None, Header]:
    """Return why the loser cannot commit after the winner's protocol, and after its metadata.

    Parameters
    ----------
    winner, loser : Footprint
        The two commits.
    header : Header
        Header that the loser knows.

    Returns
    -------
    protocol, metadata : Reason or None
        The reasons; None if it can commit.
    header : Header
        Header that the loser knows after the winner.
    """
    protocol = metadata = None
    features, wrote = header.features, winner.actions
    if wrote.features is not None:
        protocol = protocol_clash(
            loser.known.features, wrote.features, strict=loser.settings.strict
        )
        features = wrote.features
    known = header.metadata
    if wrote.metadata is not None and not wrote.identity:
        if loser.settings.resolves:
            metadata = metadata_clash(known, wrote.metadata, features)
        else:
            metadata = Reason.of("wrote metadata")
        known = wrote.metadata
    return protocol, metadata, Header(known, features)


COMMIT_RELATIONS = relations_of("delta")
ROW_RELATIONS = relations_of("delta-rows")
"""Relations below the level of files."""
LATER = frozenset(ROW_RELATIONS)
VECTORS = "delta.enableDeletionVectors"


LEVEL_SETS = {
    "SetSerializable": "serializable",
    "SetWriteSerializable": "writeserializable",
}
"""Sets of commits on tables with a declared level, each with the level in lower case."""


def _is_set_to(level: str, footprint: Footprint) -> bool:
    return footprint.schema.properties.get(LEVEL_KEY, "").lower() == level


def _is(kind: str, footprint: Footprint) -> bool:
    return kind in footprint.kinds


FLAGS: dict[str, Callable[[Footprint], bool]] = {
    "Blind": lambda f: f.claims_blind,
    "NoData": lambda f: not f.data_change,
    "ChangesData": lambda f: f.changes_data,
    "Empty": lambda f: f.empty,
    "Meta": lambda f: f.actions.metadata is not None,
    "Protocol": lambda f: f.actions.features is not None,
    "Marked": lambda f: f.actions.some,
    "Large": lambda f: f.settings.large,
    "Backfill": lambda f: f.settings.backfill,
    "Vectors": lambda f: f.schema.vectors,
    "Partitioned": lambda f: bool(f.schema.partitioned_by),
    "Ordering": lambda f: f.orders,
    "Default": lambda f: f.settings.default_level,
    "AppendOnly": lambda f: not f.removes,
    "Tracked": lambda f: enables_row_tracking(f.schema.properties),
    "Identity": lambda f: f.schema.generates,
    "Clustered": lambda f: (
        bool(f.schema.clustered_by) and f.schema.properties.get(VECTORS) != "false"
    ),
    **{name: partial(_is_set_to, level) for name, level in LEVEL_SETS.items()},
    **{name: partial(_is, name) for name in KINDS},
}
"""Sets of commits, each with its test on a footprint."""


def add_relations(events: Sequence[Event], builder: FrameBuilder) -> None:
    """Add Delta's relations and sets to the frame of some transactions."""
    adding = _DeltaPairs(events, builder)
    adding.sets()
    adding.footprints()
    adding.clashes()


VERSIONS = ("ww-later", "wr-earlier", "rw-later")
"""Relations between all versions of a row, beside those between neighbours."""


def versions_apart(events: Sequence[Event]) -> dict[str, list[tuple[int, int]]]:
    """Return the pairs of the relations between all versions of a row.

    An item that is no row, such as a table's definition, counts as one.
    """
    pairs: dict[str, dict[tuple[int, int], None]] = {name: {} for name in VERSIONS}
    position = {event.name: i for i, event in enumerate(events)}
    chains = {key: [v.writer for v in chain] for key, chain in version_chains(events).items()}
    for writers in chains.values():
        for place, first in enumerate(writers):
            pairs["ww-later"].update(((first, w), None) for w in writers[place + 1 :] if w != first)
    for j, event in enumerate(events):
        for read in event.effect.reads:
            for row in read.matched:
                writers = chains.get((read.table, row.id), [])
                seen = position.get(row.writer)
                place = writers.index(seen) + 1 if seen in writers else 0
                pairs["wr-earlier"].update(((w, j), None) for w in writers[:place] if w != j)
                pairs["rw-later"].update(((j, w), None) for w in writers[place:] if w != j)
    return {name: list(own) for name, own in pairs.items()}


class RelationsWithRows(dict[str, Relation]):
    """Relations of a frame by name; those below the level of files are computed if asked for.

    UndeterminedError is raised for one of which Spark's optimizer decides some pair.
    """

    def __init__(self, known: Mapping[str, Relation], events: Sequence[Event], size: int) -> None:
        super().__init__(known)
        self._events, self._size = events, size
        self._below: dict[str, Relation] = {}
        self._pairs: list[tuple[int, int, OverlapRelations]] | None = None

    def __missing__(self, name: str) -> Relation:
        if name not in self._below:
            self._below |= self._computed(name)
        return self._below[name]

    def _computed(self, name: str) -> Mapping[str, Relation]:
        if name in VERSIONS:
            apart = versions_apart(self._events)
            return {version: Relation.of(self._size, pairs) for version, pairs in apart.items()}
        if name not in ROW_RELATIONS:
            raise KeyError(name)
        if self._pairs is None:
            self._pairs = [(i, j, overlap_relations(o)) for i, j, o in overlaps(self._events)]
        if any(relations[name] is None for _, _, relations in self._pairs):
            raise UndeterminedError(
                f"{name} is not determined here: what was read depends on what Spark's optimizer"
                " makes of a join or a condition; compare columns of one table with constants"
            )
        pairs = [(i, j) for i, j, relations in self._pairs if relations[name]]
        return {name: Relation.of(self._size, pairs)}

    def __or__(self, other: Mapping[str, Relation]) -> RelationsWithRows:  # type: ignore[override]
        return RelationsWithRows({**self, **other}, self._events, self._size)


def overlaps(events: Sequence[Event]) -> Iterator[tuple[int, int, Overlap]]:
    """Yield each pair of commits to one table; a loser is rebased in the order of the log."""
    order = sorted(range(len(events)), key=lambda k: events[k].version or 0)
    for j, loser in enumerate(events):
        reads = loser.effect.footprint
        if reads is None:
            continue
        rebase = Rebase(loser.effect)
        for i in order:
            winner = events[i]
            wrote = winner.effect.footprint
            if i == j or wrote is None or wrote.table != reads.table:
                continue
            before = loser.version is None or (winner.version or 0) < loser.version
            met = before and loser.missed(winner)
            files = (rebase if met else Rebase(loser.effect)).reconcile(winner.effect)
            yield i, j, Overlap(winner.effect, loser.effect, *files)


class _DeltaPairs:
    def __init__(self, events: Sequence[Event], builder: FrameBuilder) -> None:
        self.events = events
        self.builder = builder

    def sets(self) -> None:
        """Add each event to the sets that its footprint determines."""
        for i, event in enumerate(self.events):
            footprint = event.effect.footprint
            if footprint is None:
                self.builder.put("NoData", i)
                self.builder.put("Empty", i)
                continue
            for name, holds in FLAGS.items():
                if holds(footprint):
                    self.builder.put(name, i)

    def footprints(self) -> None:
        """Add the overlaps of each winner's write set with each loser's read set and write set."""
        for j, loser in enumerate(self.events):
            reads = loser.effect.footprint
            if reads is None:
                continue
            for i, winner in enumerate(self.events):
                wrote = winner.effect.footprint
                if i == j or wrote is None:
                    continue
                names = {"winner": winner.name, "loser": loser.name}
                if not wrote.plain:
                    self.actions(i, j, wrote, reads)
                if adds_meet_reads(wrote, reads):
                    self.added(i, j, wrote, reads)
                if removes_meet_reads(wrote, reads):
                    both = wrote.removes & reads.files
                    file, table = min(both or wrote.removes), wrote.table
                    self.builder.add(
                        "removes-meets-reads", i, j, "removed, read",
                        **names, file=file, table=table, whole=not both,
                    )  # fmt: skip
                if removes_meet_removes(wrote, reads):
                    file, table = min(wrote.removes & reads.removes), wrote.table
                    self.builder.add(
                        "removes-meets-removes", i, j, "removed, removed",
                        **names, file=file, table=table,
                    )  # fmt: skip

    def actions(self, i: int, j: int, wrote: Footprint, reads: Footprint) -> None:
        """Add conflicts that do not concern files."""
        a, b = self.events[i].name, self.events[j].name
        for domain in common_domains(wrote, reads):
            self.builder.add("same-domain", i, j, "same domain", winner=a, loser=b, domain=domain)
        for app in common_applications(wrote, reads):
            self.builder.add("writes-read-app", i, j, "looked up", winner=a, loser=b, app=app)

    def clashes(self) -> None:
        """Add protocol and metadata changes, which a commit missed, that it cannot adopt.

        Changes are taken in log order; those that it can adopt are known to it from then on.
        """
        written = [(e.version, i, e.name, e.effect.footprint) for i, e in enumerate(self.events)]
        writers = [
            (version, i, name, footprint)
            for version, i, name, footprint in written
            if version is not None and footprint is not None and not footprint.plain
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
                protocol, metadata, header = rebase_conflict(wrote, reads, header)
                clashes = ("protocol-clashes", protocol), ("metadata-clashes", metadata)
                for relation, clash in clashes:
                    if clash is not None:
                        self.builder.add(
                            relation, i, j, "clash", winner=name, clash=clash, loser=loser.name
                        )

    def added(self, i: int, j: int, wrote: Footprint, reads: Footprint) -> None:
        """Add the overlap of files that the winner added with the loser's read set."""
        nouns: dict[str, object] = {}
        where = None
        if self.builder.reasons:
            nouns = {
                "winner": self.events[i].name,
                "loser": self.events[j].name,
                "table": wrote.table,
            }
            where = first_added_partition(wrote, reads) if wrote.schema.partitioned_by else None
        if where is None:
            self.builder.add("adds-meets-reads", i, j, "added", **nouns)
        else:
            folder, predicate = wrote.schema.folder(where[0]), where[1]
            self.builder.add(
                "adds-meets-reads", i, j, "added where", **nouns, folder=folder, predicate=predicate
            )


BASIC = (*frames.BASIC, *COMMIT_RELATIONS)
RELATIONS = (*BASIC, *ROW_RELATIONS, *READ_RELATIONS)
BASIC_SETS = (*frames.BASIC_SETS, *FLAGS)
SETS = (*frames.SETS, *FLAGS)


def delta_frame(events: Sequence[Event], *, reasons: bool = True, reads: bool = False) -> Frame:
    """Return the frame of the transactions that took effect, in the order in which they ended.

    It extends that of ``checker.execution.frame`` by reads and writes of table definitions and of
    deletion vectors, by the relations and sets of this module, and by those of delta-rs if a
    transaction has a read set.

    Parameters
    ----------
    events : sequence of Event
        The transactions.
    reasons : bool
        Whether edges have reasons.
    reads : bool
        Whether reads are nodes.
    """
    events = add_unseen_deletions(add_definition_reads(events))
    builder = dependencies(events, COMMIT_RELATIONS, FLAGS, reasons=reasons)
    add_relations(events, builder)
    if any(event.read_set is not None for event in events):
        add_read_sets(events, builder)
    if reads:
        add_row_reads(events, builder)
    made = builder.build()
    relations = RelationsWithRows(made.relations, events, len(made.nodes))
    return replace(made, relations=relations, later=LATER)
