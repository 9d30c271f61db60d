"""What a transaction read and wrote as the engine sees it (not what it touched at row level)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.model.errors import LitmusError
from isolitmus.model.expression import EvaluationError, evaluate
from isolitmus.model.header import Header, metadata_clash, protocol_clash

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.expression import Expr
    from isolitmus.model.header import Metadata
    from isolitmus.model.schema import Schema
    from isolitmus.model.values import Row

__all__ = ["PLAIN", "ROW_TRACKING_DOMAIN", "Footprint", "Marks"]

ROW_TRACKING_DOMAIN = "delta.rowTracking"
"""The domain that several commits may set without a conflict (RowTrackingMetadataDomain)."""


@dataclass(frozen=True, slots=True)
class Marks:
    """What a commit is besides its files: actions that are about no file, and how it is checked.

    ``metadata`` and ``features`` (the protocol's) as the commit writes them, None if it does not;
    ``domains`` of metadata and application ids (``apps``) that it sets; ``looked_up``: application
    ids that it read. ``claims``: the blind append that it says to be, True or False, where that is
    not what it is. ``identity``: the metadata changes in the high-water marks of identity columns
    only. ``large``: by commitLarge. ``backfill``: its operation is a row tracking backfill.
    ``always``: recorded even without any action. ``once``: it tries one version only, unchecked, the
    conf maxCommitAttempts. ``default_level``: the metadata says no isolation
    level, for the table was replaced. ``resolves``, ``strict``: the confs
    featureEnablement.conflictResolution.enabled and
    conflictChecker.enforceConcurrentFeatureEnablement.enabled. ``unbound``: what it read of partitions
    is a subquery that cannot be evaluated once more, on a file that a winner adds.
    """

    metadata: Metadata | None = None
    features: frozenset[str] | None = None
    domains: frozenset[str] = frozenset()
    apps: Mapping[str, int] = field(default_factory=dict, hash=False)
    looked_up: frozenset[str] = frozenset()
    claims: bool | None = None
    identity: bool = False
    large: bool = False
    backfill: bool = False
    always: bool = False
    once: bool = False
    default_level: bool = False
    resolves: bool = True
    strict: bool = False
    unbound: bool = False

    @property
    def marked(self) -> bool:
        """Whether it has an action that is about no file, row tracking's domain apart."""
        return (
            self.metadata is not None
            or self.features is not None
            or bool(self.domains - {ROW_TRACKING_DOMAIN})
            or bool(self.apps)
        )


PLAIN = Marks()
"""Files only."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """A transaction's part in conflict detection, on the one table that it commits to.

    ``predicates`` are the partition predicates that it read, each a conjunction; an empty one is
    TRUE. ``files`` are the paths that it read: those left after partition pruning and skipping;
    ``whole_table``: it is marked as reading everything, which is not the same. ``adds`` are the
    partitions of the files that it adds, ``removes`` paths. ``blind``: only adds, and read nothing.
    ``data_change``: some action changes data. ``changes_data``: the operation may (a flag of the
    command, not of what it did). ``orders``: it rewrites rows in another order. ``header``: what it
    read of the table besides files, None if that is what the test declares. (Delta's
    OptimisticTransaction; delta.md 4.)
    """

    schema: Schema
    predicates: tuple[tuple[Expr, ...], ...] = ()
    files: frozenset[str] = frozenset()
    adds: tuple[Row, ...] = ()
    removes: frozenset[str] = frozenset()
    data_change: bool = True
    changes_data: bool = True
    orders: bool = False
    whole_table: bool = False
    marks: Marks = PLAIN
    header: Header | None = None

    @property
    def known(self) -> Header:
        """What it read of the table besides files."""
        return Header.of(self.schema) if self.header is None else self.header

    @property
    def empty(self) -> bool:
        """Whether there is nothing to record."""
        marks = self.marks
        actions = self.adds or self.removes or marks.marked or marks.domains
        return not actions and not marks.always and not marks.large

    @property
    def blind(self) -> bool:
        """isBlindAppend (OptimisticTransaction): only adds, no predicate and no file read.

        What commitLarge writes is never one.
        """
        reads = self.predicates or self.files
        return not self.removes and not reads and not self.marks.large

    @property
    def claims_blind(self) -> bool:
        """What the commit says of itself."""
        return self.blind if self.marks.claims is None else self.marks.claims

    def adds_meet_reads_of(self, loser: Footprint) -> bool:
        """Whether a file that this one adds may hold what the loser read (ConflictChecker,
        checkForAddedFilesThatShouldHaveBeenReadByCurrentTxn, before the level is considered).

        In a table without partitions any file does, unless the loser is a blind append; so it is
        for a loser that is marked as reading everything.
        """
        if self.schema.name != loser.schema.name or not self.adds or loser.blind:
            return False
        if loser.whole_table or not loser.schema.partition_indexes:
            return True
        return self.adds_where(loser) is not None

    def adds_where(self, loser: Footprint) -> tuple[Row, tuple[Expr, ...]] | None:
        """The first partition that this one adds a file to and the predicate of the loser that it meets."""
        for predicate in loser.predicates:
            for added in self.adds:
                try:
                    met = all(
                        evaluate(part, (self.schema.spread(added),)) is True for part in predicate
                    )
                except EvaluationError as error:
                    raise LitmusError(
                        f"{error}: a condition on partitions fails on partition"
                        f" {self.schema.folder(added)}, which was added; what becomes of the check for"
                        " conflicts is not modelled"
                    ) from None
                if met:
                    return added, predicate
        return None

    def removes_meet_reads_of(self, loser: Footprint) -> bool:
        """Whether this one removes a file that the loser read, or any, where that one is marked as
        reading everything.
        """
        if self.schema.name != loser.schema.name or not self.removes:
            return False
        return loser.whole_table or not self.removes.isdisjoint(loser.files)

    def removes_meet_removes_of(self, loser: Footprint) -> bool:
        """Whether both remove one file."""
        return self.schema.name == loser.schema.name and not self.removes.isdisjoint(loser.removes)

    # Conflicts that are about no file

    def same_domains(self, loser: Footprint) -> list[str]:
        """The domains of metadata that both set, row tracking's apart (checkIfDomainMetadataConflict)."""
        if self.schema.name != loser.schema.name:
            return []
        return sorted((self.marks.domains & loser.marks.domains) - {ROW_TRACKING_DOMAIN})

    def apps_read_by(self, loser: Footprint) -> list[str]:
        """The application ids that this one sets and the loser looked up
        (checkForUpdatedApplicationTransactionIdsThatCurrentTxnDependsOn).
        """
        if self.schema.name != loser.schema.name:
            return []
        return sorted(self.marks.apps.keys() & loser.marks.looked_up)

    def rebase(self, loser: Footprint, header: Header) -> tuple[str | None, str | None, Header]:
        """Why the loser, which knows this header by now, cannot commit after this one's protocol, and
        why not after its metadata (None where it can); and the header that it then knows.
        """
        protocol = metadata = None
        features = header.features
        if self.marks.features is not None:
            read, strict = loser.known.features, loser.marks.strict
            protocol = protocol_clash(read, self.marks.features, strict=strict)
            features = self.marks.features
        known = header.metadata
        if self.marks.metadata is not None and not self.marks.identity:
            if loser.marks.resolves:
                metadata = metadata_clash(known, self.marks.metadata, features)
            else:
                metadata = "wrote the metadata"
            known = self.marks.metadata
        return protocol, metadata, Header(known, features)
