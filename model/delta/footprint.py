"""What a transaction read and wrote as the engine sees it (not what it touched at row level)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.model.delta.header import Header

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.delta.header import Metadata
    from isolitmus.model.nondeterminism import TriedAnswers
    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.expression import Expr
    from isolitmus.model.sql.values import Row

__all__ = ["FILES_ONLY", "ROW_TRACKING_DOMAIN", "USUAL", "Actions", "Footprint", "Settings"]

ROW_TRACKING_DOMAIN = "delta.rowTracking"
"""The domain that several commits may set without a conflict (RowTrackingMetadataDomain)."""


@dataclass(frozen=True, slots=True)
class Actions:
    """What a commit writes besides files."""

    metadata: Metadata | None = None
    """The table's metadata."""
    features: frozenset[str] | None = None
    """Those of the protocol."""
    domains: frozenset[str] = frozenset()
    """Domains of metadata that it sets."""
    domain_twice: bool = False
    """It sets one of them twice, which only commitLarge lets through."""
    apps: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Versions of applications that it sets."""
    identity: bool = False
    """Its metadata differs in the high-water marks of identity columns only."""

    @property
    def some(self) -> bool:
        """Whether there is one, row tracking's domain apart."""
        return (
            self.metadata is not None
            or self.features is not None
            or bool(self.domains - {ROW_TRACKING_DOMAIN})
            or bool(self.apps)
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """How a commit is made and checked."""

    large: bool = False
    """By commitLarge."""
    backfill: bool = False
    """Its operation is a backfill of row tracking."""
    always: bool = False
    """It is recorded even without any action."""
    once: bool = False
    """It tries one version only, unchecked (the conf maxCommitAttempts)."""
    claims: bool | None = None
    """The blind append that it says to be, where that is not what it is."""
    default_level: bool = False
    """The metadata says no isolation level, for the table was replaced."""
    resolves: bool = True
    """The conf featureEnablement.conflictResolution.enabled."""
    strict: bool = False
    """The conf conflictChecker.enforceConcurrentFeatureEnablement.enabled."""


FILES_ONLY = Actions()
"""It writes nothing besides files."""
USUAL = Settings()
"""It is made and checked as any other."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """A transaction's part in conflict detection, on the one table that it commits to.

    The fields say first what it read, then what it writes, then how that is committed. (Delta's
    OptimisticTransaction; docs/delta.md, 4; the conflicts: ``checker.delta.frame``.)
    """

    schema: Schema
    """The table's, as the transaction read it."""
    predicates: tuple[tuple[Expr, ...], ...] = ()
    """The predicates on partitions that it read, each a conjunction; an empty one is TRUE."""
    files: frozenset[str] = frozenset()
    """The paths of the files that it read: those left after partition pruning and skipping."""
    doubted: frozenset[str] = frozenset()
    """The paths of files that it may have read as well: that is up to Spark's optimizer."""
    wide: tuple[tuple[Expr, ...], ...] = ()
    """Predicates on partitions in the place of which Spark's optimizer may have found narrower
    ones.
    """
    adds: tuple[Row, ...] = ()
    """The partitions of the files that it adds."""
    removes: frozenset[str] = frozenset()
    """The paths of the files that it removes."""
    data_change: bool = True
    """Some action changes data."""
    changes_data: bool = True
    """The operation may (a flag of the command, not of what it did)."""
    orders: bool = False
    """It rewrites rows in another order."""
    kinds: tuple[str, ...] = ()
    """Of what kinds its statement is, as the sets of a frame are called
    (``checker.delta.statement_kinds``).
    """
    whole_table: bool = False
    """It is marked as reading everything, which is not to read all files."""
    header: Header | None = None
    """What it read of the table besides files, None if that is what the test declares."""
    looked_up: frozenset[str] = frozenset()
    """The ids of applications of which it read the version."""
    unbound: bool = False
    """What it read of partitions is a subquery that cannot be evaluated once more, on an added
    file.
    """
    actions: Actions = FILES_ONLY
    """What it writes besides files."""
    settings: Settings = USUAL
    """How it is committed."""
    choices: TriedAnswers | None = field(default=None, compare=False, repr=False)
    """What is tried where it is up to Spark's optimizer what it read."""

    @property
    def table(self) -> str:
        """The table that it commits to."""
        return self.schema.name

    @property
    def known(self) -> Header:
        """What it read of the table besides files."""
        return Header.of(self.schema) if self.header is None else self.header

    @property
    def empty(self) -> bool:
        """Whether there is nothing to record."""
        actions = self.adds or self.removes or self.actions.some or self.actions.domains
        return not actions and not self.settings.always and not self.settings.large

    @property
    def plain(self) -> bool:
        """Whether it writes files only, and is committed as any other."""
        return self.actions is FILES_ONLY and self.settings is USUAL

    @property
    def blind(self) -> bool:
        """isBlindAppend (OptimisticTransaction): only adds, no predicate and no file read.

        What commitLarge writes is never one.
        """
        reads = self.predicates or self.wide or self.files
        return not self.removes and not reads and not self.settings.large

    @property
    def claims_blind(self) -> bool:
        """What the commit says of itself."""
        return self.blind if self.settings.claims is None else self.settings.claims
