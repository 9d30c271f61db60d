"""The confs of Spark and Delta that a transaction's client may set, with the values that are modelled.

A conf is passed to the engine as it is written; one that is not here is refused, for the model would
not know what it does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ATTEMPTS",
    "AUTO_MERGE",
    "CONFS",
    "EMPTY_COMMITS",
    "OVERWRITE_MODE",
    "RESOLUTION",
    "SKIPPING",
    "STRICT_FEATURES",
    "VACUUM_LOGGING",
    "vectors",
]

OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"

DELTA = "spark.databricks.delta."
RESOLUTION = f"{DELTA}featureEnablement.conflictResolution.enabled"
STRICT_FEATURES = f"{DELTA}conflictChecker.enforceConcurrentFeatureEnablement.enabled"
EMPTY_COMMITS = f"{DELTA}skipRecordingEmptyCommits"
SKIPPING = f"{DELTA}stats.skipping"
ATTEMPTS = f"{DELTA}maxCommitAttempts"
VACUUM_LOGGING = f"{DELTA}vacuum.logging.enabled"
AUTO_MERGE = f"{DELTA}schema.autoMerge.enabled"
SWITCH = ("true", "false")


def vectors(verb: str) -> str:
    """The conf that lets DELETE, UPDATE or MERGE write deletion vectors.

    >>> vectors("delete")
    'spark.databricks.delta.delete.deletionVectors.persistent'
    """
    return f"{DELTA}{verb}.deletionVectors.persistent"


CONFS: Mapping[str, tuple[str, ...]] = {
    OVERWRITE_MODE: ("static", "dynamic"),
    RESOLUTION: SWITCH,
    STRICT_FEATURES: SWITCH,
    EMPTY_COMMITS: SWITCH,
    SKIPPING: SWITCH,
    VACUUM_LOGGING: SWITCH,
    # no statement that is read names a column that its table lacks; of MERGE see ``with_confs``
    AUTO_MERGE: SWITCH,
    **{vectors(verb): SWITCH for verb in ("delete", "update", "merge")},
    # a second attempt has every winner to check: one more or less of them makes no difference
    ATTEMPTS: ("0", "10000000"),
    # no two transactions of a test commit at one moment
    f"{DELTA}commitLock.enabled": SWITCH,
    # both ways the whole table is read
    f"{DELTA}optimizeMetadataQuery.enabled": SWITCH,
    # a commit finds only itself by it: no transaction of a test is another one's second attempt
    f"{DELTA}commit.idempotencyCheck.enabled": SWITCH,
}
