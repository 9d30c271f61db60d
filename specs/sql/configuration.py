"""The confs of Spark and Delta that a transaction's client may set, with the values that are modelled.

A conf is passed to the engine as it is written. What takes no part in what a commit reads, writes or conflicts with
(ASIDE) may have any value; what does (CONFS) has those that are modelled; anything else is refused, with the reason
where one is known (REASONS), for the model would not know what it does.
"""

from __future__ import annotations

import re
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from isolitmus.model.sql.statement import Insert

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from isolitmus.model.sql.statement import Statement

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
    "SHUFFLES",
    "SKIPPING",
    "STRICT_FEATURES",
    "VACUUM_LOGGING",
    "conf_problem",
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


SHUFFLES = "spark.sql.shuffle.partitions"
ASIDE = (
    # plans: with one shuffle partition, as here, each gives the same files
    "spark.sql.adaptive.*", "spark.sql.autoBroadcastJoinThreshold", "spark.sql.broadcastTimeout",
    "spark.sql.cbo.*", "spark.sql.codegen.wholeStage", "spark.sql.join.preferSortMergeJoin",
    # how files are encoded and results shown
    "spark.sql.parquet.compression.codec", "spark.sql.parquet.enableVectorizedReader",
    "spark.sql.inMemoryColumnarStorage.*", "spark.sql.repl.eagerEval.*", "spark.sql.execution.arrow.*",
    "spark.sql.debug.maxToStringFields",
    # what a commit says of itself, measures, keeps in memory or writes beside the log
    *(
        f"{DELTA}{key}"
        for key in (
            "commitInfo.userMetadata", "history.metricsEnabled", "metrics.alwaysReportSomeZeroMetrics",
            "snapshotPartitions", "checkpoint.partSize", "writeChecksumFile.enabled", "catalog.update.enabled",
            "fileSizeHistogramMetrics.enabled", "vacuum.parallelDelete.*", "optimize.maxThreads",
            "merge.materializeSource.rddStorageLevel*", "deltaLog.minorCompaction.useForReads",
            "collectStats.useMultiThreadedStatsCollection", "collectStats.numFilesPerPartition",
            "collectStats.fallbackToInterpretedProjection", "import.batchSize.*", "commitStats.force",
            "commitMetrics.*", "dmlMetricsFromMetadata.enabled", "replaceWhere.dataColumns.metrics.enabled",
            "insertOverwrite.removeMetrics.enabled", "snapshot.logging.*", "snapshotLoading.maxRetries",
            "snapshotCache.storageLevel", "maxSnapshotLineageLength", "commit.inconsistentList.maxRetries",
            "history.maxKeysPerList", "*.threadPoolSize", "checkpointV2.threadpool.size", "checkpointSchema.*",
            "lastCheckpoint.*", "writeChecksumFile.histogramFollowsProtocol", "versionChecksum.*", "incremental.commit.*",
            "setTransactionsInCrc.*", "domainMetadatasInCrc.*", "allFilesInCrc.*", "checksumDVMetrics.enabled",
            "checksumDeletedRecordCountsHistogramMetrics.enabled", "readProtocolAndMetadataFromChecksum.enabled",
            "catalog.update.longFieldTruncationThreshold", "deltaLog.getChangeLogFiles.logGaps",
            "internalUdfOptimization.enabled", "deletionVectors.useMetadataRowIndex", "uniform.*",
            "iceberg.maxPending*", "hudi.maxPending*", "streaming.logSizeInMemoryThreshold",
        )
    ),
)  # fmt: skip
"""Confs of a session, as patterns, that take no part: of Spark's SQL, and of Delta's own (DeltaSQLConf.scala)."""
REASONS: Mapping[str, str] = {
    SHUFFLES: "known: a whole number from 1",
    "spark.sql.ansi.enabled": "expressions are those of ANSI mode; known: true",
    "spark.sql.storeAssignmentPolicy": "what is written is cast as ANSI has it; known: ANSI",
    "spark.sql.session.timeZone": "timestamps are those of UTC; known: UTC",
    "spark.sql.caseSensitive": "names of columns ignore case; known: false",
    f"{DELTA}autoCompact.*": "an automatic compaction is a commit of its own; a transaction that does OPTIMIZE stands for it",
    f"{DELTA}optimizeWrite.*": "it decides how many files a write has, and files decide conflicts",
    f"{DELTA}optimize.*": "it decides which files are compacted together",
    f"{DELTA}stats.*": "statistics decide which files a statement reads",
    f"{DELTA}skipping.*": "it decides which files a statement reads",
    "spark.databricks.io.skipping.*": "statistics decide which files a statement reads",
    f"{DELTA}properties.defaults.*": "it is a property of tables that are made later; say it in TBLPROPERTIES",
    f"{DELTA}stalenessLimit": "with it a snapshot may be an older one",
    f"{DELTA}merge.*": "it decides what a MERGE reads or writes",
    f"{DELTA}rowLevelConcurrencyPreview": "releases 14.0 and 14.1 of Databricks have it; name one, as databricks-serializable-newest-rows@14.1-preview",
    f"{DELTA}conflictDetection.*": "it decides what a statement conflicts with",
    **{
        f"{DELTA}{key}": why
        for why, keys in {
            "it is said of a transaction by app = { id = …, version = … }": "write.txn*",
            "no session can set it: it is static": "delta.log.*",
            "it decides how CONVERT TO DELTA reads what it converts": "convert.*",
            "it decides what RESTORE, CLONE or REPLACE may write": "clone.* restore.* replace.*",
            "it decides which features a table may have, or how one is dropped": (
                "tableFeatures.* adaptiveMetadataTree.* amt.* inCommitTimestamp.* geo.* variant* *RedirectFeature"
                " checkpointV2.exposeTableFeatureForTesting typeWidening.*"
            ),
            "it decides how, and in how many commits, row tracking is switched on": "rowTracking.* backfill.*",
            "it decides what a change of column mapping writes": "columnMapping.*",
            "it decides what a stream reads, or when it is refused": "streaming.*",
            "it decides what is read of a change data feed": "changeDataFeed.* changelogV2.*",
            "partitions are derived from conditions by it, and they decide which files a statement reads": (
                "generatedColumn.partitionFilterOptimization.*"
            ),
            "it decides which writes are refused": (
                "generatedColumn.* checkConstraints.* constraints.* commitValidation.* *.throwEnabled schema.*"
                " numRecordsValidation.* commandInvariant* duplicateActionCheck.* partitionColumn*"
                " tablePropertyConstraintsCheck.* allowArbitraryProperties.* command.*"
            ),
            "it decides what an INSERT that replaces rows reads or writes": (
                "replaceOn.* replaceUsing.* replaceWhere.* insert* dynamicPartitionOverwrite.*"
            ),
            "it decides how values are cast, or which columns a write has": (
                "dml.* updateAndMergeCasting* resolveMerge* schemaEvolution.* checkLatestSchemaOnRead createDataFrame.*"
            ),
            "it decides what a partition column keeps of a value": (
                "convertEmptyToNull* normalizePartitionValues* failOnPartitionValue* write.utcTimestampPartitionValues"
            ),
            "it decides which values an identity column has": "identityColumn.*",
            "it decides how rows are marked as deleted": "deletionVectors.*",
            "it decides which DELETE is taken": "delete.*",
            "it decides which files VACUUM removes": "vacuum.* retentionDurationCheck.*",
            "it decides which changes of a table are taken": (
                "alter* changeColumn.* liquid.* clusteredTable.* hms.* legacy.* createEmptySchemaTable.*"
            ),
            "commits by a coordinator are not modelled": "coordinatedCommits.*",
            "it decides which code of Delta executes a statement": "v2.* catalog.*",
            "it decides which version is read": "timeTravel.*",
            "it is for tests of Delta itself": "testOnly.* dummyFileManager.*",
        }.items()
        for key in keys.split()
    },
}
"""Why a conf is not modelled, by pattern; the first that fits."""
USUAL = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.storeAssignmentPolicy": "ansi",
    "spark.sql.session.timeZone": "utc",
    "spark.sql.caseSensitive": "false",
}
"""The value that is taken for granted of a conf of Spark's, in lower case."""


TAILS = {key.removeprefix(DELTA): key for key in (*CONFS, *ASIDE, *USUAL)}
"""The confs that may be said, by their names without what all of Delta's begin with."""


def conf_problem(key: str, value: str, known: Iterable[str] = CONFS) -> str:
    """Return why a conf with this value is not modelled; empty if it is, or takes no part. ``known``: those
    of CONFS that may be said.

    >>> conf_problem("spark.sql.adaptive.enabled", "true"), conf_problem("team", "eu")
    ('', '')
    >>> conf_problem("spark.databricks.delta.stats.skiping", "false")
    "'spark.databricks.delta.stats.skiping' is not modelled; did you mean 'spark.databricks.delta.stats.skipping'?"
    >>> conf_problem("spark.sql.caseSensitive", "true")
    "'spark.sql.caseSensitive' is not modelled: names of columns ignore case; known: false"
    >>> conf_problem("spark.databricks.delta.rowLevelConcurrencyPreview", "true").partition("; ")[2]
    'name one, as databricks-serializable-newest-rows@14.1-preview'
    >>> conf_problem("spark.executor.memory", "1g")
    "'spark.executor.memory' is said when an application starts, and no session can set it; leave it out"
    """
    if key in known:
        return (
            ""
            if value.lower() in CONFS[key]
            else f"{key} is '{value}'; known: {', '.join(CONFS[key])}"
        )
    if not key.startswith("spark.") or any(fnmatchcase(key, pattern) for pattern in ASIDE):
        return ""
    if USUAL.get(key) == value.lower() or (key == SHUFFLES and re.fullmatch(r"[1-9]\d*", value)):
        return ""
    if key in CONFS:
        return f"'{key}' is not modelled here; modelled are {', '.join(known)}"
    why = REASONS.get(key)
    meant = get_close_matches(key.removeprefix(DELTA), TAILS, 1, 0.9)
    if why is None and meant:
        return f"'{key}' is not modelled; did you mean '{TAILS[meant[0]]}'?"
    if why := why or next((w for pattern, w in REASONS.items() if fnmatchcase(key, pattern)), ""):
        return f"'{key}' is not modelled: {why}"
    if key.startswith(("spark.sql.", "spark.databricks.")):
        return f"'{key}' is not modelled: whether it takes part in conflicts is not known; leave it out"
    return f"'{key}' is said when an application starts, and no session can set it; leave it out"


def overwrites_dynamically(confs: Mapping[str, str]) -> bool:
    """Whether an overwrite replaces only the partitions that it writes to."""
    return confs.get(OVERWRITE_MODE, "static").lower() == "dynamic"


def with_overwrite_mode(statement: Statement, confs: Mapping[str, str]) -> Statement:
    """The statement as the overwrite mode of its session has it; only an INSERT OVERWRITE depends on it.

    >>> from isolitmus.model.schema import Column, Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> t = Schema("t", (Column("id", "INT"), Column("day", "INT")), ("day",))
    >>> overwrite = read_statement("INSERT OVERWRITE t VALUES (1, 7)", {"t": t})
    >>> with_overwrite_mode(overwrite, {OVERWRITE_MODE: "dynamic"}).options.dynamic
    True
    """
    if not isinstance(statement, Insert) or not statement.overwrite or statement.options.stream:
        return statement
    options = replace(statement.options, dynamic=overwrites_dynamically(confs))
    return replace(statement, options=options)
