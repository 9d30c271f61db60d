"""The confs of Spark and Delta that a transaction's client may set, with the values that are modelled.

A conf is passed to the engine as it is written; one that is not here is refused, for the model would
not know what it does.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.model.statement import Insert

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.statement import Statement

__all__ = [
    "ATTEMPTS",
    "AUTO_MERGE",
    "CONFS",
    "EMPTY_COMMITS",
    "EMPTY_TEXTS",
    "JOB_CONFS",
    "OVERWRITE_MODE",
    "RESOLUTION",
    "SET",
    "SKIPPING",
    "STRICT_FEATURES",
    "VACUUM_LOGGING",
    "overwrites_dynamically",
    "vectors",
    "with_overwrite_mode",
]

SET = re.compile(r"(?i)\s*SET\s+(?P<key>[\w.]+)\s*=\s*(?P<value>[^\s;]+)\s*")
"""The statement that sets a conf of a session."""
OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"

DELTA = "spark.databricks.delta."
RESOLUTION = f"{DELTA}featureEnablement.conflictResolution.enabled"
STRICT_FEATURES = f"{DELTA}conflictChecker.enforceConcurrentFeatureEnablement.enabled"
EMPTY_COMMITS = f"{DELTA}skipRecordingEmptyCommits"
SKIPPING = f"{DELTA}stats.skipping"
ATTEMPTS = f"{DELTA}maxCommitAttempts"
VACUUM_LOGGING = f"{DELTA}vacuum.logging.enabled"
AUTO_MERGE = f"{DELTA}schema.autoMerge.enabled"
EMPTY_TEXTS = "isolitmus.emptyPartitionTexts"
"""No conf of Spark's, and nobody sets it: ``kept`` for a writer to whom an empty text in a partition column is no NULL."""
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
JOB_CONFS = (OVERWRITE_MODE, SKIPPING, *(vectors(verb) for verb in ("delete", "update", "merge")))
"""The confs that jobs may set: what is proved of a workload holds with them."""


def overwrites_dynamically(confs: Mapping[str, str]) -> bool:
    """Whether an overwrite replaces only the partitions that it writes to."""
    return confs.get(OVERWRITE_MODE, "static").lower() == "dynamic"


def with_overwrite_mode(statement: Statement, confs: Mapping[str, str]) -> Statement:
    """The statement as the overwrite mode of its session has it; only an INSERT OVERWRITE depends on it.

    >>> from isolitmus.model.schema import Column, Schema
    >>> from isolitmus.specs.sql import read_statement
    >>> t = Schema("t", (Column("id", "INT"), Column("day", "INT")), ("day",))
    >>> overwrite = read_statement("INSERT OVERWRITE t VALUES (1, 7)", {"t": t})
    >>> with_overwrite_mode(overwrite, {OVERWRITE_MODE: "dynamic"}).options.dynamic
    True
    """
    if not isinstance(statement, Insert) or not statement.overwrite or statement.options.stream:
        return statement
    options = replace(statement.options, dynamic=overwrites_dynamically(confs))
    return replace(statement, options=options)
