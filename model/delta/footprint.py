"""Footprint of a transaction: read and write set as the engine tracks them (not at row level)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.model.delta.header import Header

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.delta.header import Metadata
    from isolitmus.model.sql.data_file import File, RawFile
    from isolitmus.model.sql.expression import Expr
    from isolitmus.model.sql.nondeterminism import TriedAnswers
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.values import Row

ROW_TRACKING_DOMAIN = "delta.rowTracking"
"""Domain that several commits may set without a conflict (RowTrackingMetadataDomain)."""


@dataclass(frozen=True, slots=True)
class Actions:
    """Actions of a commit other than those on files."""

    metadata: Metadata | None = None
    """Metadata of the table."""
    features: frozenset[str] | None = None
    """Features of the protocol."""
    domains: frozenset[str] = frozenset()
    """Metadata domains that it sets."""
    domain_twice: bool = False
    """True if it sets a domain twice, which only commitLarge accepts."""
    apps: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Versions of applications that it sets."""
    identity: bool = False
    """True if its metadata differs in the high-water marks of identity columns only."""

    @property
    def some(self) -> bool:
        """True if there is an action, apart from row tracking's domain."""
        return (
            self.metadata is not None
            or self.features is not None
            or bool(self.domains - {ROW_TRACKING_DOMAIN})
            or bool(self.apps)
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """Mode in which a commit is made and checked."""

    large: bool = False
    """True if it is made by commitLarge."""
    backfill: bool = False
    """True if its operation is a backfill of row tracking."""
    always: bool = False
    """True if it is recorded even without any action."""
    once: bool = False
    """True if it tries one version only, unchecked (the conf maxCommitAttempts)."""
    claims: bool | None = None
    """Value of its blind-append mark, if it differs from the truth."""
    default_level: bool = False
    """True if the metadata has no isolation level because the table was replaced."""
    resolves: bool = True
    """Value of the conf featureEnablement.conflictResolution.enabled."""
    strict: bool = False
    """Value of the conf conflictChecker.enforceConcurrentFeatureEnablement.enabled."""


FILES_ONLY = Actions()
"""Actions of a commit that writes only files."""
USUAL = Settings()
"""Settings of an ordinary commit."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """Input of a transaction to conflict detection, on the one table that it commits to.

    The fields are its read set, then its write set, then the mode of its commit. (Delta's
    OptimisticTransaction; docs/delta.md, 4; the conflicts: ``checker.delta.frame``.)
    """

    schema: Schema
    """Schema of the table, as the transaction read it."""
    predicates: tuple[tuple[Expr, ...], ...] = ()
    """Partition predicates that it read, each a conjunction; an empty one is TRUE."""
    files: frozenset[str] = frozenset()
    """Paths of the files that it read: those left after partition pruning and data skipping."""
    doubted: frozenset[str] = frozenset()
    """Paths of files that it perhaps read as well, depending on Spark's optimizer."""
    wide: tuple[tuple[Expr, ...], ...] = ()
    """Partition predicates for which Spark's optimizer may have found narrower ones."""
    conditions: tuple[tuple[Expr, ...] | None, ...] = field(default=(), compare=False)
    """Conditions on data that it recorded with each of the predicates, each a conjunction; None if
    Spark's optimizer may have found others.

    Released Delta records them and uses none. They determine nothing else, so two footprints that
    differ in them alone are equal.
    """
    adds: tuple[Row, ...] = ()
    """Partitions of the files that it adds."""
    removes: frozenset[str] = frozenset()
    """Paths of the files that it removes."""
    removed: tuple[File | RawFile, ...] = field(default=(), compare=False, repr=False)
    """These files as it read them, with their live rows; empty if the rows do not matter."""
    merge_keys: Mapping[tuple[int, ...], frozenset[Row]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """Keys of a MERGE: target columns that ON equates with the source, and the source's values."""
    data_change: bool = True
    """True if some action changes data."""
    changes_data: bool = True
    """True if the operation may change data (a flag of the command, not of its effect)."""
    orders: bool = False
    """True if it rewrites rows in another order."""
    kinds: tuple[str, ...] = ()
    """Kinds of its statement, as names of sets of a frame (``checker.delta.statement_kinds``)."""
    whole_table: bool = False
    """True if it is marked as reading the whole table, which is not the same as reading all files.
    """
    header: Header | None = None
    """Header of the table that it read; None for the declared one."""
    looked_up: frozenset[str] = frozenset()
    """Application ids whose version it read."""
    unbound: bool = False
    """True if its partition predicate contains a subquery that cannot be evaluated again on an
    added file.
    """
    actions: Actions = FILES_ONLY
    """Actions other than those on files."""
    settings: Settings = USUAL
    """Mode of the commit."""
    choices: TriedAnswers | None = field(default=None, compare=False, repr=False)
    """Answers that are tried where the read set depends on Spark's optimizer."""

    @property
    def data_conditions(self) -> tuple[tuple[Expr, ...] | None, ...]:
        """Conditions on data of each recorded predicate; none for a predicate without."""
        lacking = len(self.predicates) - len(self.conditions)
        return (*self.conditions, *[()] * lacking)

    @property
    def table(self) -> str:
        """Table that it commits to."""
        return self.schema.name

    @property
    def known(self) -> Header:
        """Header of the table that it read."""
        return Header.of(self.schema) if self.header is None else self.header

    @property
    def empty(self) -> bool:
        """True if there is nothing to record."""
        actions = self.adds or self.removes or self.actions.some or self.actions.domains
        return not actions and not self.settings.always and not self.settings.large

    @property
    def plain(self) -> bool:
        """True if it writes only files and is an ordinary commit."""
        return self.actions is FILES_ONLY and self.settings is USUAL

    @property
    def blind(self) -> bool:
        """isBlindAppend (OptimisticTransaction): it only adds, and read no predicate and no file.

        A commit by commitLarge never is one.
        """
        reads = self.predicates or self.wide or self.files
        return not self.removes and not reads and not self.settings.large

    @property
    def claims_blind(self) -> bool:
        """Value of the commit's blind-append mark."""
        return self.blind if self.settings.claims is None else self.settings.claims
