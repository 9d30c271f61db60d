"""Spark and Delta settings of a session, and table properties: modelled ones with their values.

A setting is passed to the engine as written. A setting that does not affect what a commit reads,
writes or conflicts with (ASIDE) may have any value; one that does (CONFS) has the values that are
modelled. Anything else is refused, with the reason if it is known (UNMODELLED_CONFS), because the
model does not know its effect.

Table properties have one list for litmus files and for SQL. Those in it do not affect conflicts, or
the model knows how they do. Other properties of Delta (DeltaConfig.scala) are refused with the
reason (UNMODELLED_PROPERTIES); a property that Delta does not have is refused as by Delta's own
error. Properties without the prefix ``delta.`` have no effect.
"""

from __future__ import annotations

import re
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.model.delta.header import MAPPING_MODE, ROW_TRACKING
from isolitmus.model.delta.log import DEFAULT_LEVEL, LEVEL_KEY
from isolitmus.model.errors import near
from isolitmus.model.sql.statement import Insert

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from isolitmus.model.sql.statement import Statement

SET = re.compile(r"(?i)\s*SET\s+(?P<key>[\w.]+)\s*=\s*(?P<value>[^\s;]+)\s*")
"""Pattern of the statement that sets a session setting."""
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
"""Internal setting, not one of Spark: ``kept`` for a writer that stores an empty string in a
partition column instead of NULL.
"""
BACKFILLED = (f"{DELTA}backfill.maxNumFiles", f"{DELTA}rowTracking.backfill.maxNumFiles")
"""Settings with the maximum number of files in a batch that assigns row ids; the first counts."""
BACKFILLED_AT_MOST = 22_000
"""Their default (DeltaSQLConf.scala)."""
SWITCH = ("true", "false")


def deletion_vectors_conf(verb: str) -> str:
    """Return the setting that lets DELETE, UPDATE or MERGE write deletion vectors.

    Examples
    --------
    >>> deletion_vectors_conf("delete")
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
    # No supported statement names a column that its table lacks; for MERGE see
    # ``apply_session_confs``.
    AUTO_MERGE: SWITCH,
    **{deletion_vectors_conf(verb): SWITCH for verb in ("delete", "update", "merge")},
    # A second attempt checks every winner: the number of attempts makes no difference.
    ATTEMPTS: ("0", "10000000"),
    # No two transactions of a test commit at the same time.
    f"{DELTA}commitLock.enabled": SWITCH,
    # With either value, the whole table is read.
    f"{DELTA}optimizeMetadataQuery.enabled": SWITCH,
    # A commit can only find itself: no transaction of a test is another one's second attempt.
    f"{DELTA}commit.idempotencyCheck.enabled": SWITCH,
}
JOB_CONFS = (
    OVERWRITE_MODE,
    SKIPPING,
    *(deletion_vectors_conf(verb) for verb in ("delete", "update", "merge")),
)
"""Settings that jobs may use; proofs about a workload hold with them."""


SHUFFLES = "spark.sql.shuffle.partitions"
ASIDE = (
    # Plans: with one shuffle partition, as here, all plans write the same files.
    "spark.sql.adaptive.*", "spark.sql.autoBroadcastJoinThreshold", "spark.sql.broadcastTimeout",
    "spark.sql.cbo.*", "spark.sql.codegen.wholeStage", "spark.sql.join.preferSortMergeJoin",
    # Encoding of files, and display of results.
    "spark.sql.parquet.compression.codec", "spark.sql.parquet.enableVectorizedReader",
    "spark.sql.inMemoryColumnarStorage.*", "spark.sql.repl.eagerEval.*",
    "spark.sql.execution.arrow.*", "spark.sql.debug.maxToStringFields",
    # Commit information, metrics, memory, and files beside the log.
    *(
        f"{DELTA}{key}"
        for key in (
            "commitInfo.userMetadata", "history.metricsEnabled",
            "metrics.alwaysReportSomeZeroMetrics", "snapshotPartitions", "checkpoint.partSize",
            "writeChecksumFile.enabled", "catalog.update.enabled",
            "fileSizeHistogramMetrics.enabled", "vacuum.parallelDelete.*", "optimize.maxThreads",
            "merge.materializeSource.rddStorageLevel*", "deltaLog.minorCompaction.useForReads",
            "collectStats.useMultiThreadedStatsCollection", "collectStats.numFilesPerPartition",
            "collectStats.fallbackToInterpretedProjection", "import.batchSize.*",
            "commitStats.force", "commitMetrics.*", "dmlMetricsFromMetadata.enabled",
            "replaceWhere.dataColumns.metrics.enabled", "insertOverwrite.removeMetrics.enabled",
            "snapshot.logging.*", "snapshotLoading.maxRetries", "snapshotCache.storageLevel",
            "maxSnapshotLineageLength", "commit.inconsistentList.maxRetries",
            "history.maxKeysPerList", "*.threadPoolSize", "checkpointV2.threadpool.size",
            "checkpointSchema.*", "lastCheckpoint.*", "writeChecksumFile.histogramFollowsProtocol",
            "versionChecksum.*", "incremental.commit.*", "setTransactionsInCrc.*",
            "domainMetadatasInCrc.*", "allFilesInCrc.*", "checksumDVMetrics.enabled",
            "checksumDeletedRecordCountsHistogramMetrics.enabled",
            "readProtocolAndMetadataFromChecksum.enabled",
            "catalog.update.longFieldTruncationThreshold", "deltaLog.getChangeLogFiles.logGaps",
            "internalUdfOptimization.enabled", "deletionVectors.useMetadataRowIndex", "uniform.*",
            "iceberg.maxPending*", "hudi.maxPending*", "streaming.logSizeInMemoryThreshold",
        )
    ),
)  # fmt: skip
"""Patterns of session settings without effect on conflicts: of Spark SQL, and of Delta
(DeltaSQLConf.scala).
"""
UNMODELLED_CONFS: Mapping[str, str] = {
    SHUFFLES: "known: a whole number from 1",
    **dict.fromkeys(BACKFILLED, "known: a whole number from 1 to 999999999"),
    "spark.sql.ansi.enabled": "expressions follow ANSI mode; known: true",
    "spark.sql.storeAssignmentPolicy": "written values are cast by ANSI rules; known: ANSI",
    "spark.sql.session.timeZone": "timestamps are in UTC; known: UTC",
    "spark.sql.caseSensitive": "column names are case-insensitive; known: false",
    f"{DELTA}autoCompact.*": (
        "an automatic compaction is a commit of its own; model it as a transaction that runs"
        " OPTIMIZE"
    ),
    f"{DELTA}optimizeWrite.*": "it decides how many files a write has, which affects conflicts",
    f"{DELTA}optimize.*": "it decides which files are compacted together",
    f"{DELTA}stats.*": "statistics decide which files a statement reads",
    f"{DELTA}skipping.*": "it decides which files a statement reads",
    "spark.databricks.io.skipping.*": "statistics decide which files a statement reads",
    f"{DELTA}properties.defaults.*": (
        "it is a property of tables that are created later; set it in TBLPROPERTIES"
    ),
    f"{DELTA}stalenessLimit": "with it a snapshot may be stale",
    f"{DELTA}merge.*": "it decides what a MERGE reads or writes",
    f"{DELTA}rowLevelConcurrencyPreview": (
        "releases 14.0 and 14.1 of Databricks have it; name one, as"
        " databricks-serializable-newest-rows@14.1-preview"
    ),
    f"{DELTA}conflictDetection.*": "it decides what a statement conflicts with",
    **{
        f"{DELTA}{key}": why
        for why, keys in {
            "a transaction of a litmus test sets it by app = { id = …, version = … }": "write.txn*",
            "it is static, so no session can set it": "delta.log.*",
            "it decides how CONVERT TO DELTA reads what it converts": "convert.*",
            "it decides what RESTORE, CLONE or REPLACE may write": "clone.* restore.* replace.*",
            "it decides which features a table may have, or how one is dropped": (
                "tableFeatures.* adaptiveMetadataTree.* amt.* inCommitTimestamp.* geo.* variant*"
                " *RedirectFeature checkpointV2.exposeTableFeatureForTesting typeWidening.*"
            ),
            "it decides how, and in how many commits, row tracking is enabled": (
                "rowTracking.* backfill.*"
            ),
            "it decides what a change of column mapping writes": "columnMapping.*",
            "it decides what a stream reads, or when it fails": "streaming.*",
            "it decides what a change data feed returns": "changeDataFeed.* changelogV2.*",
            (
                "it derives partition predicates from conditions, which decide the files that a"
                " statement reads"
            ): "generatedColumn.partitionFilterOptimization.*",
            "it decides which writes fail": (
                "generatedColumn.* checkConstraints.* constraints.* commitValidation.*"
                " *.throwEnabled schema.* numRecordsValidation.* commandInvariant*"
                " duplicateActionCheck.* partitionColumn* tablePropertyConstraintsCheck.*"
                " allowArbitraryProperties.* command.*"
            ),
            "it decides what an INSERT that replaces rows reads or writes": (
                "replaceOn.* replaceUsing.* replaceWhere.* insert* dynamicPartitionOverwrite.*"
            ),
            "it decides how values are cast, or which columns a write has": (
                "dml.* updateAndMergeCasting* resolveMerge* schemaEvolution.*"
                " checkLatestSchemaOnRead createDataFrame.*"
            ),
            "it decides how a partition column stores a value": (
                "convertEmptyToNull* normalizePartitionValues* failOnPartitionValue*"
                " write.utcTimestampPartitionValues"
            ),
            "it decides which values an identity column has": "identityColumn.*",
            "it decides how rows are marked as deleted": "deletionVectors.*",
            "it decides which DELETEs are accepted": "delete.*",
            "it decides which files VACUUM removes": "vacuum.* retentionDurationCheck.*",
            "it decides which changes of a table are accepted": (
                "alter* changeColumn.* liquid.* clusteredTable.* hms.* legacy.*"
                " createEmptySchemaTable.*"
            ),
            "commits by a coordinator are not modelled": "coordinatedCommits.*",
            "it decides which code of Delta executes a statement": "v2.* catalog.*",
            "it decides which version is read": "timeTravel.*",
            "it is for tests of Delta itself": "testOnly.* dummyFileManager.*",
        }.items()
        for key in keys.split()
    },
}
"""Reason why a setting is not modelled, by pattern; the first match counts."""
USUAL = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.storeAssignmentPolicy": "ansi",
    "spark.sql.session.timeZone": "utc",
    "spark.sql.caseSensitive": "false",
}
"""Assumed value of a Spark setting, in lower case."""


TAILS = {key.removeprefix(DELTA): key for key in (*CONFS, *ASIDE, *USUAL)}
"""Accepted settings, by their names without Delta's common prefix."""


def conf_problem(key: str, value: str, known: Iterable[str] = CONFS) -> str:
    """Return why a setting with this value is not modelled, or an empty string.

    Parameters
    ----------
    key, value : str
        Name and value of the setting.
    known : iterable of str
        Keys of CONFS that are accepted.

    Examples
    --------
    >>> conf_problem("spark.sql.adaptive.enabled", "true"), conf_problem("team", "eu")
    ('', '')
    >>> print(conf_problem("spark.databricks.delta.stats.skiping", "false"))
    'spark.databricks.delta.stats.skiping' is not modelled; did you mean \
'spark.databricks.delta.stats.skipping'?
    >>> print(conf_problem("spark.sql.caseSensitive", "true"))
    'spark.sql.caseSensitive' is not modelled: column names are case-insensitive; known: false
    >>> key = "spark.databricks.delta.rowLevelConcurrencyPreview"
    >>> conf_problem(key, "true").partition("; ")[2]
    'name one, as databricks-serializable-newest-rows@14.1-preview'
    >>> print(conf_problem("spark.executor.memory", "1g"))
    'spark.executor.memory' is said when an application starts, and no session can set it; \
leave it out
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
    if key in BACKFILLED and re.fullmatch(r"[1-9]\d{0,8}", value):
        return ""
    if key in CONFS:
        return f"'{key}' is not modelled here; modelled are {', '.join(known)}"
    why = UNMODELLED_CONFS.get(key)
    meant = get_close_matches(key.removeprefix(DELTA), TAILS, 1, 0.9)
    if why is None and meant:
        return f"'{key}' is not modelled; did you mean '{TAILS[meant[0]]}'?"
    if why := why or next(
        (w for pattern, w in UNMODELLED_CONFS.items() if fnmatchcase(key, pattern)), ""
    ):
        return f"'{key}' is not modelled: {why}"
    if key.startswith(("spark.sql.", "spark.databricks.")):
        return f"'{key}' is not modelled: whether it affects conflicts is unknown; leave it out"
    return f"'{key}' is said when an application starts, and no session can set it; leave it out"


def is_dynamic_overwrite(confs: Mapping[str, str]) -> bool:
    """Return whether an overwrite replaces only the partitions that it writes to."""
    return confs.get(OVERWRITE_MODE, "static").lower() == "dynamic"


def with_overwrite_mode(statement: Statement, confs: Mapping[str, str]) -> Statement:
    """Return the statement with the overwrite mode of its session; it affects only INSERT
    OVERWRITE.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> t = Schema("t", (Column("id", "INT"), Column("day", "INT")), ("day",))
    >>> overwrite = read_statement("INSERT OVERWRITE t VALUES (1, 7)", {"t": t})
    >>> with_overwrite_mode(overwrite, {OVERWRITE_MODE: "dynamic"}).options.dynamic
    True
    """
    if not isinstance(statement, Insert) or not statement.overwrite or statement.options.stream:
        return statement
    options = replace(statement.options, dynamic=is_dynamic_overwrite(confs))
    return replace(statement, options=options)


class AllowedValues(NamedTuple):
    """Values of a property: pattern (case-insensitive), description, and default."""

    pattern: str
    words: str
    usual: str


def _one(*values: str, usual: str) -> AllowedValues:
    words = " or ".join(f"'{value}'" for value in values)
    return AllowedValues("|".join(map(re.escape, values)), words, usual)


SWITCH_VALUES = _one("true", "false", usual="false")
ON = SWITCH_VALUES._replace(usual="true")
SPAN = re.compile(
    r"(?:interval\s+)?(?P<number>[1-9]\d{0,4})\s+(?P<unit>hour|day|week)s?", re.IGNORECASE
)
"""Interval of at least an hour: a run takes seconds, so nothing in it expires."""
HOURS = {"hour": 1, "day": 24, "week": 168}
KEPT, LOGS_KEPT = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"


def _span(usual: str) -> AllowedValues:
    words = f"an interval of hours, days or weeks, '{usual}'"
    return AllowedValues(SPAN.pattern, words, usual)


LEVELS = ("Serializable", "WriteSerializable", "SnapshotIsolation")
"""Isolation levels that Delta parses (isolationLevels.scala, fromString); it accepts the first one
from users.
"""
MADE = {
    "delta.appendOnly": SWITCH_VALUES,
    "delta.autoOptimize.autoCompact": _one("false", usual="false"),
    "delta.autoOptimize.optimizeWrite": _one("false", usual="false"),
    "delta.checkpoint.writeStatsAsJson": _one("true", usual="true"),
    "delta.checkpoint.writeStatsAsStruct": ON,
    "delta.checkpointInterval": AllowedValues(r"[1-9]\d{0,8}", "a whole number from 1", "10"),
    "delta.checkpointPolicy": _one("classic", usual="classic"),
    "delta.checkpointRetentionDuration": _span("interval 2 days"),
    MAPPING_MODE: _one("name", "none", usual="none"),
    "delta.dataSkippingNumIndexedCols": _one("32", usual="32"),
    KEPT: _span("interval 1 week"),
    "delta.dropFeatureTruncateHistory.retentionDuration": _span("interval 24 hours"),
    "delta.enableChangeDataFeed": SWITCH_VALUES,
    "delta.enableDeletionVectors": SWITCH_VALUES,
    "delta.enableExpiredLogCleanup": ON,
    "delta.enableFullRetentionRollback": ON,
    "delta.enableInCommitTimestamps": _one("false", usual="false"),
    ROW_TRACKING: SWITCH_VALUES,
    LEVEL_KEY: AllowedValues(".*", "any", DEFAULT_LEVEL),
    LOGS_KEPT: _span("interval 30 days"),
    "delta.randomizeFilePrefixes": SWITCH_VALUES,
    "delta.randomPrefixLength": AllowedValues(r"[1-9]\d?", "a whole number from 1 to 99", "2"),
    "delta.sampleRetentionDuration": _span("interval 7 days"),
    "delta.setTransactionRetentionDuration": _span("interval 30 days"),
}
"""Properties of a table at its creation. An isolation level that Delta does not accept is refused
elsewhere.
"""
SETTABLE = MADE | {
    "delta.checkpointPolicy": _one("classic", "v2", usual="classic"),
    "delta.enableInCommitTimestamps": SWITCH_VALUES,
}
"""Properties that a statement sets on an existing table."""

UNMODELLED_PROPERTIES: Mapping[str, str] = {
    "delta.autoOptimize": "an automatic compaction is a commit of its own",
    "delta.castIcebergTimeType": "it is for tables of Iceberg that are converted",
    "delta.columnMapping.maxColumnId": "Delta counts it itself",
    "delta.compatibility.symlinkFormatManifest.enabled": (
        "each commit then writes manifests beside the log"
    ),
    "delta.coordinatedCommits.*": "another service then decides who commits",
    "delta.dataSkipping*": "statistics decide which files a statement reads",
    "delta.enableChangeDataCapture": "Delta calls it delta.enableChangeDataFeed",
    "delta.enableIceberg*": "each commit then checks what Iceberg can read",
    "delta.enableMaterializePartitionColumnsFeature": "files then hold their partition's values",
    "delta.enableTypeWidening": "the type of a column is not changed in what is modelled",
    "delta.enableVariantShredding": "there are no columns of type VARIANT",
    "delta.ignoreIcebergBucketPartition": "it is for tables of Iceberg that are converted",
    "delta.ignoreProtocolDefaults": "it decides which features a new table has",
    "delta.inCommitTimestampEnablement*": "Delta writes it itself",
    "delta.min*erVersion": "it changes the protocol; name features, delta.feature.NAME",
    "delta.parquet.format.version": "it decides how files are encoded",
    "delta.requireCheckpointProtectionBeforeVersion": "Delta writes it itself",
    "delta.rowTrackingSuspended": "row ids are not modelled file by file",
    "delta.universalFormat.*": "each commit is then converted for another format",
    "delta.writePartitionColumnsToParquet": "files then hold their partition's values",
}
"""Reason why another property of Delta is not modelled, by pattern."""

LAYOUT: dict[str, str] = {
    "delta.autoOptimize.autoCompact": (
        "commits of automatic compactions are left out; add a job with OPTIMIZE to include them"
    ),
    "delta.autoOptimize.optimizeWrite": "",
    "delta.checkpointPolicy": "",
    "delta.deletedFileRetentionDuration": "",
    "delta.enableInCommitTimestamps": "",
    "delta.enableRowLevelConcurrency": "",
    "delta.minReaderVersion": "",
    "delta.minWriterVersion": "",
    "delta.randomizeFilePrefixes": "",
    "delta.targetFileSize": "",
    "delta.tuneFileSizesForRewrites": "",
}
"""Properties of file layout, retention and reader versions, with the assumption about each where
only statements and conditions are considered.
"""


SEVERAL: Mapping[str, str] = {
    "rowTracking": "row ids go file by file",
    "inCommitTimestamp": "it is switched off first",
    "domainMetadata": "domains that are set go first",
} | dict.fromkeys(
    ("deletionVectors", "columnMapping", "v2Checkpoint", "typeWidening", "vacuumProtocolCheck"),
    "the history is closed by three empty commits with checkpoints",
)
"""Features whose removal takes, or may take, several commits in Delta, with the reason."""
UPGRADED = "columns are mapped, files rewritten and a property set"
"""Reason why REORG … APPLY (UPGRADE UNIFORM …) takes several commits."""


def misspelled_property(key: str) -> str:
    """Return a message if a Delta property is written in another case than Delta's, or an empty
    string.

    Delta corrects the case, but not everywhere.

    Examples
    --------
    >>> misspelled_property("delta.appendonly"), misspelled_property("delta.appendOnly")
    ("'delta.appendonly' is written delta.appendOnly", '')
    """
    name = next((name for name in MADE if name.lower() == key.lower()), key)
    return "" if name == key else f"'{key}' is written {name}"


def retention_problem(given: Mapping[str, str]) -> str:
    """Return why Delta refuses the retention intervals among these properties, or an empty string.

    Examples
    --------
    >>> print(retention_problem({"delta.deletedFileRetentionDuration": "interval 60 days"}))
    delta.logRetentionDuration (interval 30 days) is shorter than \
delta.deletedFileRetentionDuration (interval 60 days)
    >>> retention_problem({"delta.logRetentionDuration": "7 days"})
    ''
    """
    if KEPT not in given and LOGS_KEPT not in given:
        return ""
    said = [given.get(key, MADE[key].usual) for key in (LOGS_KEPT, KEPT)]
    found = [SPAN.fullmatch(value) for value in said]
    logs, files = (
        0 if one is None else int(one["number"]) * HOURS[one["unit"].lower()] for one in found
    )
    if logs >= files:
        return ""
    return f"{LOGS_KEPT} ({said[0]}) is shorter than {KEPT} ({said[1]})"


def unmodelled_property(key: str, value: str, *, made: bool) -> str:
    """Return why a property with this value is not modelled, or an empty string.

    `made` says that the property is set at the creation of its table.

    Examples
    --------
    >>> unmodelled_property("delta.appendOnly", "yes", made=True)
    "delta.appendOnly is 'yes'; known: 'true' or 'false'"
    >>> print(unmodelled_property("delta.apendOnly", "true", made=True))
    Delta has no property 'delta.apendOnly' (DELTA_UNKNOWN_CONFIGURATION); did you mean \
'delta.appendOnly'?
    >>> print(unmodelled_property("delta.dataSkippingStatsColumns", "id", made=True))
    the property 'delta.dataSkippingStatsColumns' is not modelled: statistics decide which files \
a statement reads
    >>> unmodelled_property("team", "us", made=False)
    ''
    """
    if not key.lower().startswith("delta."):
        return ""
    known = {name.lower(): (name, values) for name, values in (MADE if made else SETTABLE).items()}
    if key.lower() not in known:
        for pattern, why in UNMODELLED_PROPERTIES.items():
            if fnmatchcase(key.lower(), pattern.lower()):
                return f"the property '{key}' is not modelled: {why}"
        return f"Delta has no property '{key}' (DELTA_UNKNOWN_CONFIGURATION){near(key, MADE)}"
    name, values = known[key.lower()]
    if key != name:
        return misspelled_property(key)
    if re.fullmatch(values.pattern, value, re.IGNORECASE):
        return ""
    return f"{name} is '{value}'; known: {values.words}"
