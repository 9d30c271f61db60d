"""What the log says of a table besides its files: metadata, protocol, domains, application ids.

Two commits that missed each other may both stand although one of them changed the metadata: Delta
takes a change over that no commit prepared without it can contradict (ConflictChecker.scala,
attemptToResolveMetadataConflicts and checkProtocolCompatibility). What it does not take over has a
reason here, in words.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from isolitmus.model.delta.log import LEVEL_KEY
from isolitmus.model.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from isolitmus.model.schema import Column, Schema

__all__ = [
    "ASKING",
    "CLUSTERED",
    "CLUSTERING",
    "CONSTRAINT",
    "EASY_FEATURES",
    "FEATURES",
    "MAPPING_MODE",
    "ROW_TRACKING",
    "SUPPORTED",
    "Header",
    "Metadata",
    "are_numbered",
    "features_named",
    "metadata_clash",
    "needed_features",
    "protocol_clash",
    "with_required_features",
]

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
"""Table features that the model knows by name, and whether readers, too, must know them."""
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
"""Those that need not fail concurrent transactions when they come (TableFeature.scala,
failConcurrentTransactionsAtUpgrade)."""

MAPPING_MODE = "delta.columnMapping.mode"
ROW_TRACKING = "delta.enableRowTracking"
ENABLED = {
    ROW_TRACKING: ("rowTracking", "true"),
    "delta.enableDeletionVectors": ("deletionVectors", "true"),
    "delta.checkpointPolicy": ("v2Checkpoint", "v2"),
    "delta.enableInCommitTimestamps": ("inCommitTimestamp", "true"),
}
"""Properties that may come, each with the feature that it needs and the one value it may get."""
ALSO = {
    MAPPING_MODE: ("columnMapping", "name"),
    "delta.enableChangeDataFeed": ("changeDataFeed", "true"),
}
"""Further properties that need a feature."""
ASKING = ENABLED | ALSO
"""All of them."""
ONCE = (
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
)
"""Properties that may come, not change."""
WITH_ROW_TRACKING = (
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
)
WITH_MAPPING = (MAPPING_MODE, "delta.columnMapping.maxColumnId")


SUPPORTED = "delta.feature."
"""The beginning of a property that only asks for a feature."""
CONSTRAINT = "delta.constraints."
"""The beginning of a property that holds a CHECK constraint."""
LEGACY = ("appendOnly", "invariants")
"""The features of a table's first protocol."""
NUMBERED = (
    ("checkConstraints",),
    ("changeDataFeed", "generatedColumns"),
    ("columnMapping",),
    ("identityColumns",),
)
"""The features that each later number of a protocol adds to those of the one before."""
REQUIRED = {"rowTracking": "domainMetadata", "clustering": "domainMetadata"}
"""Features that do not come without another one."""
CLUSTERED = frozenset(("clustering", REQUIRED["clustering"]))
"""The features of a table that is clustered."""
CLUSTERING = "delta.clustering"
"""The domain of clustering columns."""


def are_numbered(features: frozenset[str]) -> bool:
    """Whether a protocol says these features by its number alone (TableFeatureSupport.scala,
    normalized).

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
    """The features that properties ask for by name, with those that they require.

    >>> sorted(features_named({"delta.feature.rowTracking": "supported", "team": "us"}))
    ['domainMetadata', 'rowTracking']
    """
    return with_required_features(
        key.removeprefix(SUPPORTED) for key in properties if key.startswith(SUPPORTED)
    )


def with_required_features(features: Iterable[str]) -> frozenset[str]:
    """Some features, with those that they require (TableFeature.scala, requiredFeatures).

    >>> sorted(with_required_features(["clustering", "appendOnly"]))
    ['appendOnly', 'clustering', 'domainMetadata']
    """
    named = frozenset(features)
    return named | {REQUIRED[name] for name in named if name in REQUIRED}


def needed_features(configuration: Mapping[str, str]) -> frozenset[str]:
    """The features without which a table cannot have these properties.

    >>> sorted(needed_features({"delta.columnMapping.mode": "name", "delta.enableRowTracking": "false"}))
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
    """The metadata of a table (actions.scala, Metadata)."""

    columns: tuple[Column, ...] = ()
    """With their comments, what Delta calls the schema string."""
    partitioned_by: tuple[str, ...] = ()
    """The names of the partition columns."""
    configuration: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The table's properties."""
    id: str = ""
    """Who made the table: one that is replaced gets another."""
    name: str | None = None
    """Of the table, if it says one."""
    description: str | None = None
    """Of the table, if it says one."""
    comments: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Of columns, by name."""
    levelled: bool = True
    """False: it has not the isolation level that the protocol says, and is Serializable."""
    created: str = ""
    """It stands for when the table was made, of a clone for when its source was."""
    reached: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Of an identity column, by name, the last value that was generated (its high-water mark, also
    in the schema string)."""

    @property
    def mapped(self) -> bool:
        """Whether columns are mapped by name."""
        return self.configuration.get(MAPPING_MODE, "none").lower() == "name"


@dataclass(frozen=True, slots=True)
class Header:
    """What the log says of a table at a version: its metadata, the features of its protocol, the
    domains that are set, and the version that each application id has reached.
    """

    metadata: Metadata = field(default_factory=Metadata)
    features: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    apps: Mapping[str, int] = field(default_factory=dict, hash=False)

    @classmethod
    def of(cls, schema: Schema) -> Header:
        """The header of a table that is as it was declared.

        Where row tracking is supported, Delta names the columns for row ids as soon as metadata are
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
        """The header after a commit that wrote these; None is not written."""
        return replace(
            self,
            metadata=self.metadata if metadata is None else metadata,
            features=self.features if features is None else features,
            domains=self.domains | domains,
            apps={**self.apps, **apps},
        )


def protocol_clash(
    read: frozenset[str], winner: frozenset[str], *, strict: bool = False
) -> Reason | None:
    """Why a transaction that read a protocol with some features cannot commit after one that wrote
    these; None if it can. ``strict``: conflictChecker.enforceConcurrentFeatureEnablement.enabled.

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
    """Why a transaction that read some metadata cannot take over that of a winner; None if it can.

    ``features`` are those of the protocol as the transaction knows it by then, the winner's own
    included. Delta takes over the coming of some properties, and of column mapping by name.

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
    """Whether Delta takes over that this property was added or changed
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
