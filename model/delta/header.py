"""Header of a Delta table: metadata, protocol, metadata domains and application ids.

Two commits that did not see each other may both succeed although one of them changed the metadata.
Delta accepts a change that no commit prepared without it can contradict (ConflictChecker.scala,
attemptToResolveMetadataConflicts and checkProtocolCompatibility). For a change that it does not
accept, ``protocol_clash`` and ``metadata_clash`` return the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from isolitmus.model.delta.log import LEVEL_KEY
from isolitmus.model.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from isolitmus.model.sql.schema import Column, Schema

FEATURES: Mapping[str, bool] = {
    "appendOnly": False,
    "invariants": False,
    "checkConstraints": False,
    "changeDataFeed": False,
    "generatedColumns": False,
    "columnMapping": True,
    "identityColumns": False,
    "timestampNtz": True,
    "deletionVectors": True,
    "rowTracking": False,
    "domainMetadata": False,
    "clustering": False,
    "allowColumnDefaults": False,
    "v2Checkpoint": True,
    "typeWidening": True,
    "inCommitTimestamp": False,
    "vacuumProtocolCheck": True,
    "materializePartitionColumns": False,
}
"""Table features that the model knows by name, and whether readers must support them as well."""
EASY_FEATURES = frozenset(
    (
        "appendOnly",
        "changeDataFeed",
        "columnMapping",
        "timestampNtz",
        "deletionVectors",
        "rowTracking",
        "domainMetadata",
        "v2Checkpoint",
        "typeWidening",
        "inCommitTimestamp",
        "vacuumProtocolCheck",
    )
)
"""Features whose addition need not fail concurrent transactions (TableFeature.scala,
failConcurrentTransactionsAtUpgrade).
"""

MAPPING_MODE = "delta.columnMapping.mode"
ROW_TRACKING = "delta.enableRowTracking"
ENABLED = {
    ROW_TRACKING: ("rowTracking", "true"),
    "delta.enableDeletionVectors": ("deletionVectors", "true"),
    "delta.checkpointPolicy": ("v2Checkpoint", "v2"),
    "delta.enableInCommitTimestamps": ("inCommitTimestamp", "true"),
}
"""Properties that may be added, each with the feature that it needs and the only accepted value."""
ALSO = {
    MAPPING_MODE: ("columnMapping", "name"),
    "delta.enableChangeDataFeed": ("changeDataFeed", "true"),
}
"""Further properties that need a feature."""
ASKING = ENABLED | ALSO
"""All properties that need a feature."""
ONCE = (
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
)
"""Properties that may be added but not changed."""
WITH_ROW_TRACKING = (
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
)
WITH_MAPPING = (MAPPING_MODE, "delta.columnMapping.maxColumnId")


SUPPORTED = "delta.feature."
"""Prefix of a property that only requests a feature."""
CONSTRAINT = "delta.constraints."
"""Prefix of a property with a CHECK constraint."""
LEGACY = ("appendOnly", "invariants")
"""Features of the first protocol version."""
NUMBERED = (
    ("checkConstraints",),
    ("changeDataFeed", "generatedColumns"),
    ("columnMapping",),
    ("identityColumns",),
)
"""Features that each later protocol version adds to the one before."""
REQUIRED = {"rowTracking": "domainMetadata", "clustering": "domainMetadata"}
"""Features that require another one."""
CLUSTERED = frozenset(("clustering", REQUIRED["clustering"]))
"""Features of a clustered table."""
CLUSTERING = "delta.clustering"
"""Metadata domain of clustering columns."""


def are_numbered(features: frozenset[str]) -> bool:
    """Return whether a protocol version alone expresses these features (TableFeatureSupport.scala,
    normalized).

    Examples
    --------
    >>> are_numbered(frozenset(LEGACY)), are_numbered(frozenset((*LEGACY, "domainMetadata")))
    (True, False)
    """
    said = frozenset(LEGACY)
    for more in ((), *NUMBERED):
        said |= frozenset(more)
        if said == features:
            return True
    return False


def features_named(properties: Mapping[str, str]) -> frozenset[str]:
    """Return the features that properties request by name, with the features that they require.

    Examples
    --------
    >>> sorted(features_named({"delta.feature.rowTracking": "supported", "team": "us"}))
    ['domainMetadata', 'rowTracking']
    """
    return with_required_features(
        key.removeprefix(SUPPORTED) for key in properties if key.startswith(SUPPORTED)
    )


def with_required_features(features: Iterable[str]) -> frozenset[str]:
    """Return features with the features that they require (TableFeature.scala, requiredFeatures).

    Examples
    --------
    >>> sorted(with_required_features(["clustering", "appendOnly"]))
    ['appendOnly', 'clustering', 'domainMetadata']
    """
    named = frozenset(features)
    return named | {REQUIRED[name] for name in named if name in REQUIRED}


def enables_row_tracking(properties: Mapping[str, str]) -> bool:
    """Return whether properties enable row tracking.

    Examples
    --------
    >>> enables_row_tracking({"delta.enableRowTracking": "TRUE"}), enables_row_tracking({})
    (True, False)
    """
    return properties.get(ROW_TRACKING, "").lower() == "true"


def needed_features(configuration: Mapping[str, str]) -> frozenset[str]:
    """Return the features that a table with these properties needs.

    Examples
    --------
    >>> named = {"delta.columnMapping.mode": "name", "delta.enableRowTracking": "false"}
    >>> sorted(needed_features(named))
    ['columnMapping']
    """
    found = {
        feature
        for key, (feature, value) in ASKING.items()
        if configuration.get(key, "").lower() == value
    }
    if any(key.startswith(CONSTRAINT) for key in configuration):
        found.add("checkConstraints")
    return with_required_features(found)


@dataclass(frozen=True, slots=True)
class Metadata:
    """Metadata of a table (actions.scala, Metadata)."""

    columns: tuple[Column, ...] = ()
    """Columns; with their comments they are Delta's schema string."""
    partitioned_by: tuple[str, ...] = ()
    """Names of the partition columns."""
    configuration: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Properties of the table."""
    id: str = ""
    """Identity of the table; a replaced table gets another one."""
    name: str | None = None
    """Name of the table, if it has one."""
    description: str | None = None
    """Description of the table, if it has one."""
    comments: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Comments of columns, by name."""
    levelled: bool = True
    """True if the table has the isolation level of the protocol; if False, it is Serializable."""
    created: str = ""
    """Symbol for the creation time of the table; for a clone, for that of its source."""
    reached: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Last generated value (high-water mark) of each identity column, by name; also in the schema
    string.
    """

    @property
    def mapped(self) -> bool:
        """True if columns are mapped by name."""
        return self.configuration.get(MAPPING_MODE, "none").lower() == "name"


@dataclass(frozen=True, slots=True)
class Header:
    """Header of a table at a version.

    It contains the metadata, the features of the protocol, the metadata domains that are set, and
    the last version of each application id.
    """

    metadata: Metadata = field(default_factory=Metadata)
    features: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    apps: Mapping[str, int] = field(default_factory=dict, hash=False)
    unnumbered: frozenset[str] = frozenset()
    """Paths of files without row ids: those that were there when row tracking became supported."""

    @classmethod
    def of(cls, schema: Schema) -> Header:
        """Return the header of a table that is as declared.

        If row tracking is supported, Delta names the columns for row ids as soon as metadata are
        written (MaterializedRowTrackingColumn.scala, updateMaterializedColumnName).
        """
        configuration = {
            key: value for key, value in schema.properties.items() if not key.startswith(SUPPORTED)
        }
        features = features_named(schema.properties) | needed_features(configuration)
        if "rowTracking" in features:
            configuration |= {key: f"_{key.rpartition('.')[2]}" for key in WITH_ROW_TRACKING}
        metadata = Metadata(
            schema.columns,
            schema.partitioned_by,
            configuration,
            levelled=LEVEL_KEY not in configuration,
        )
        domains: frozenset[str] = frozenset()
        if schema.generates:
            features |= {"identityColumns"}
        if schema.clustered_by:
            features |= CLUSTERED
            domains = frozenset({CLUSTERING})
        return cls(metadata, frozenset(LEGACY) | features, domains)

    def after(
        self,
        metadata: Metadata | None,
        features: frozenset[str] | None,
        domains: frozenset[str],
        apps: Mapping[str, int],
    ) -> Header:
        """Return the header after a commit with these actions; None is not written."""
        return replace(
            self,
            metadata=self.metadata if metadata is None else metadata,
            features=self.features if features is None else features,
            domains=self.domains | domains,
            apps={**self.apps, **apps},
        )

    def with_files(self, live: Iterable[str], added: Iterable[str], before: Header) -> Header:
        """Return the header with the files that have no row ids after a commit.

        Parameters
        ----------
        live : iterable of str
            Paths of the files of the table.
        added : iterable of str
            Paths of files that the commit adds; from the feature on, each gets row ids.
        before : Header
            Header before the commit.
        """
        if enables_row_tracking(self.metadata.configuration):
            return self if not self.unnumbered else replace(self, unnumbered=frozenset())
        if "rowTracking" not in self.features:
            return self
        lacking = self.unnumbered if "rowTracking" in before.features else frozenset(live)
        lacking = lacking.intersection(live).difference(added)
        return self if lacking == self.unnumbered else replace(self, unnumbered=lacking)


def protocol_clash(
    read: frozenset[str], winner: frozenset[str], *, strict: bool = False
) -> Reason | None:
    """Return why a transaction cannot commit after a concurrent change of the protocol, or None.

    Parameters
    ----------
    read : frozenset of str
        Features of the protocol that the transaction read.
    winner : frozenset of str
        Features of the protocol that the winning commit wrote.
    strict : bool
        Value of the conf conflictChecker.enforceConcurrentFeatureEnablement.enabled.

    Examples
    --------
    >>> str(protocol_clash(frozenset({"rowTracking"}), frozenset()))
    'removed the feature rowTracking'
    >>> protocol_clash(frozenset(), frozenset({"clustering"})) is None
    True
    """
    gone = sorted(read - winner)
    if gone:
        return Reason.of("took feature", feature=gone[0])
    hard = sorted(winner - read - EASY_FEATURES)
    return Reason.of("added feature", feature=hard[0]) if strict and hard else None


def metadata_clash(read: Metadata, winner: Metadata, features: frozenset[str]) -> Reason | None:
    """Return why a transaction cannot commit after a concurrent change of metadata, or None.

    Delta accepts the addition of some properties, and of column mapping by name.

    Parameters
    ----------
    read : Metadata
        Metadata that the transaction read.
    winner : Metadata
        Metadata that the winning commit wrote.
    features : frozenset of str
        Features of the protocol as the transaction knows it by then, including those that the
        winner added.

    Examples
    --------
    >>> on = Metadata(configuration={"delta.enableDeletionVectors": "true"})
    >>> metadata_clash(Metadata(), on, frozenset({"deletionVectors"})) is None
    True
    >>> str(metadata_clash(Metadata(), Metadata(description="mine"), frozenset()))
    'changed the description'
    """
    for what in ("id", "name", "description", "partitioned_by", "created"):
        if getattr(read, what) != getattr(winner, what):
            return Reason.of("changed metadata", what=what)
    before, after = read.configuration, winner.configuration
    gone = sorted(before.keys() - after.keys())
    if gone:
        return Reason.of("took property", key=gone[0])
    for key in sorted(after):
        if before.get(key) != after[key] and not _may_come(key, read, winner, features):
            return Reason.of("set property", key=key)
    for what in ("levelled", "columns", "reached", "comments"):
        if getattr(read, what) != getattr(winner, what):
            return Reason.of("changed metadata", what=what)
    return None


def _may_come(key: str, read: Metadata, winner: Metadata, features: frozenset[str]) -> bool:
    """Return whether Delta accepts that this property was added or changed
    (checkConfigurationChangesForConflicts).
    """
    value = winner.configuration[key]
    if key in ENABLED:
        feature, wanted = ENABLED[key]
        return feature in features and value.lower() == wanted
    if key in ONCE:
        return key not in read.configuration
    if key in WITH_ROW_TRACKING:
        return winner.configuration.get(ROW_TRACKING, "false").lower() == "true"
    if key in WITH_MAPPING:
        return not read.mapped and winner.mapped and "columnMapping" in features
    return False
