"""The properties of a table that are modelled, with the values: one list for litmus files and for SQL.

What is here decides no conflict, or the model knows what it decides; what else Delta has (DeltaConfig.scala) is refused
with the reason (REASONS), and what Delta has not as its own error says it. A property of another one's than Delta's says
nothing to Delta.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.model.delta.header import MAPPING_MODE, ROW_TRACKING
from isolitmus.model.delta.log import DEFAULT_LEVEL, LEVEL_KEY
from isolitmus.model.errors import near

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "LAYOUT",
    "LEVELS",
    "MADE",
    "SET",
    "SEVERAL",
    "UPGRADED",
    "misspelled",
    "retention_problem",
    "unmodelled",
]


class AllowedValues(NamedTuple):
    """What a property may be: as a pattern, which ignores case, and in words; and what it is where nobody says it."""

    pattern: str
    words: str
    usual: str


def _one(*values: str, usual: str) -> AllowedValues:
    words = " or ".join(f"'{value}'" for value in values)
    return AllowedValues("|".join(map(re.escape, values)), words, usual)


SWITCH = _one("true", "false", usual="false")
ON = SWITCH._replace(usual="true")
SPAN = re.compile(
    r"(?:interval\s+)?(?P<number>[1-9]\d{0,4})\s+(?P<unit>hour|day|week)s?", re.IGNORECASE
)
"""An interval of at least an hour: in a run, which takes seconds, nothing gets as old."""
HOURS = {"hour": 1, "day": 24, "week": 168}
KEPT, LOGS_KEPT = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"


def _span(usual: str) -> AllowedValues:
    words = f"an interval of hours, days or weeks, '{usual}'"
    return AllowedValues(SPAN.pattern, words, usual)


LEVELS = ("Serializable", "WriteSerializable", "SnapshotIsolation")
"""What Delta reads as an isolation level (isolationLevels.scala, fromString); it takes the first from a user."""
MADE = {
    "delta.appendOnly": SWITCH,
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
    "delta.enableChangeDataFeed": SWITCH,
    "delta.enableDeletionVectors": SWITCH,
    "delta.enableExpiredLogCleanup": ON,
    "delta.enableFullRetentionRollback": ON,
    "delta.enableInCommitTimestamps": _one("false", usual="false"),
    ROW_TRACKING: SWITCH,
    LEVEL_KEY: AllowedValues(".*", "any", DEFAULT_LEVEL),
    LOGS_KEPT: _span("interval 30 days"),
    "delta.randomizeFilePrefixes": SWITCH,
    "delta.randomPrefixLength": AllowedValues(r"[1-9]\d?", "a whole number from 1 to 99", "2"),
    "delta.sampleRetentionDuration": _span("interval 7 days"),
    "delta.setTransactionRetentionDuration": _span("interval 30 days"),
}
"""The properties of a table when it is made. An isolation level that Delta does not take is its own error."""
SET = MADE | {
    "delta.checkpointPolicy": _one("classic", "v2", usual="classic"),
    "delta.enableInCommitTimestamps": SWITCH,
}
"""Those that a statement sets on a table that is there."""

REASONS: Mapping[str, str] = {
    "delta.autoOptimize": "an automatic compaction is a commit of its own",
    "delta.castIcebergTimeType": "it is for tables of Iceberg that are converted",
    "delta.columnMapping.maxColumnId": "Delta counts it itself",
    "delta.compatibility.symlinkFormatManifest.enabled": "each commit then writes manifests beside the log",
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
"""Why other properties of Delta's are not modelled, by pattern."""

LAYOUT: dict[str, str] = {
    "delta.autoOptimize.autoCompact": "no commit of an automatic compaction comes between; a job that does OPTIMIZE stands for it",
    "delta.autoOptimize.optimizeWrite": "",
    "delta.deletedFileRetentionDuration": "",
    "delta.enableRowLevelConcurrency": "",
    "delta.minReaderVersion": "",
    "delta.minWriterVersion": "",
    "delta.randomizeFilePrefixes": "",
    "delta.targetFileSize": "",
    "delta.tuneFileSizesForRewrites": "",
}
"""Properties that say how files are laid out and kept and which releases read them, and what is taken for granted of
them where only statements and conditions are looked at."""


SEVERAL: Mapping[str, str] = {
    "rowTracking": "row ids go file by file",
    "inCommitTimestamp": "it is switched off first",
    "domainMetadata": "domains that are set go first",
} | dict.fromkeys(
    ("deletionVectors", "columnMapping", "v2Checkpoint", "typeWidening", "vacuumProtocolCheck"),
    "the history is closed by three empty commits with checkpoints",
)
"""The features whose removal is, or may be, several commits of Delta's, each with the reason."""
UPGRADED = "columns are mapped, files rewritten and a property set"
"""Why REORG … APPLY (UPGRADE UNIFORM …) is several."""


def misspelled(key: str) -> str:
    """What is wrong with a property of Delta's in other letters than Delta's, which puts it right, but not
    everywhere; empty if nothing is.

    >>> misspelled("delta.appendonly"), misspelled("delta.appendOnly")
    ("'delta.appendonly' is written delta.appendOnly", '')
    """
    name = next((name for name in MADE if name.lower() == key.lower()), key)
    return "" if name == key else f"'{key}' is written {name}"


def retention_problem(given: Mapping[str, str]) -> str:
    """Return why Delta refuses the retentions among properties that are said together; empty if it does not.

    >>> retention_problem({"delta.deletedFileRetentionDuration": "interval 60 days"})
    'delta.logRetentionDuration (interval 30 days) is shorter than delta.deletedFileRetentionDuration (interval 60 days)'
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


def unmodelled(key: str, value: str, *, made: bool) -> str:
    """Why a property with this value is not modelled; empty if it is. ``made``: with its table.

    >>> unmodelled("delta.appendOnly", "yes", made=True)
    "delta.appendOnly is 'yes'; known: 'true' or 'false'"
    >>> unmodelled("delta.apendOnly", "true", made=True)
    "Delta has no property 'delta.apendOnly' (DELTA_UNKNOWN_CONFIGURATION); did you mean 'delta.appendOnly'?"
    >>> unmodelled("delta.dataSkippingStatsColumns", "id", made=True)
    "the property 'delta.dataSkippingStatsColumns' is not modelled: statistics decide which files a statement reads"
    >>> unmodelled("team", "us", made=False)
    ''
    """
    if not key.lower().startswith("delta."):
        return ""
    known = {name.lower(): (name, values) for name, values in (MADE if made else SET).items()}
    if key.lower() not in known:
        for pattern, why in REASONS.items():
            if fnmatchcase(key.lower(), pattern.lower()):
                return f"the property '{key}' is not modelled: {why}"
        return f"Delta has no property '{key}' (DELTA_UNKNOWN_CONFIGURATION){near(key, MADE)}"
    name, values = known[key.lower()]
    if key != name:
        return misspelled(key)
    if re.fullmatch(values.pattern, value, re.IGNORECASE):
        return ""
    return f"{name} is '{value}'; known: {values.words}"
