"""The confs of Spark and Delta that a transaction's client may set, with the values that are modelled.

A conf is passed to the engine as it is written; one that is not here is refused, for the model would
not know what it does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CONFS", "EMPTY_COMMITS", "OVERWRITE_MODE", "RESOLUTION", "STRICT_FEATURES"]

OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"

DELTA = "spark.databricks.delta."
RESOLUTION = f"{DELTA}featureEnablement.conflictResolution.enabled"
STRICT_FEATURES = f"{DELTA}conflictChecker.enforceConcurrentFeatureEnablement.enabled"
EMPTY_COMMITS = f"{DELTA}skipRecordingEmptyCommits"
SWITCH = ("true", "false")

CONFS: Mapping[str, tuple[str, ...]] = {
    OVERWRITE_MODE: ("static", "dynamic"),
    RESOLUTION: SWITCH,
    STRICT_FEATURES: SWITCH,
    EMPTY_COMMITS: SWITCH,
    # a commit finds only itself by it: no transaction of a test is another one's second attempt
    f"{DELTA}commit.idempotencyCheck.enabled": SWITCH,
}
