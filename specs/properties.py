"""The properties of a table that are modelled, with the values: one list for litmus files and for SQL.

What is here decides no conflict, or the model knows what it decides; of what Delta has besides it takes
the default only (DeltaConfig.scala). A property of another one's than Delta's says nothing to Delta.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.model.delta_log import DEFAULT_LEVEL, LEVEL_KEY
from isolitmus.model.errors import near
from isolitmus.model.header import MAPPING_MODE, ROW_TRACKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LAYOUT", "LEVELS", "MADE", "SET", "SEVERAL", "UPGRADED", "misspelled", "unmodelled"]


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
    MAPPING_MODE: _one("name", "none", usual="none"),
    "delta.dataSkippingNumIndexedCols": _one("32", usual="32"),
    "delta.deletedFileRetentionDuration": _one("interval 1 week", usual="interval 1 week"),
    "delta.enableChangeDataFeed": SWITCH,
    "delta.enableDeletionVectors": SWITCH,
    "delta.enableExpiredLogCleanup": ON,
    "delta.enableInCommitTimestamps": _one("false", usual="false"),
    ROW_TRACKING: SWITCH,
    LEVEL_KEY: AllowedValues(".*", "any", DEFAULT_LEVEL),
    "delta.logRetentionDuration": AllowedValues(
        r"interval [1-9]\d{0,4} (?:day|week)s?",
        "an interval of days or weeks, 'interval 30 days'",
        "interval 30 days",
    ),
    "delta.randomizeFilePrefixes": _one("false", usual="false"),
}
"""The properties of a table when it is made. An isolation level that Delta does not take is its own error."""
SET = MADE | {
    "delta.checkpointPolicy": _one("classic", "v2", usual="classic"),
    "delta.enableInCommitTimestamps": SWITCH,
    ROW_TRACKING: _one("false", usual="false"),
}
"""Those that a statement sets on a table that is there. Row ids of files that are there come in several
commits."""

LAYOUT: dict[str, str] = {
    "delta.autoOptimize.autoCompact": "no commit of an automatic compaction comes between; a job that does OPTIMIZE stands for it",
    "delta.autoOptimize.optimizeWrite": "",
    "delta.deletedFileRetentionDuration": "",
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


def unmodelled(key: str, value: str, *, made: bool) -> str:
    """Why a property with this value is not modelled; empty if it is. ``made``: with its table.

    >>> unmodelled("delta.appendOnly", "yes", made=True)
    "delta.appendOnly is 'yes'; known: 'true' or 'false'"
    >>> unmodelled("delta.apendOnly", "true", made=True)
    "the property 'delta.apendOnly' is not modelled; did you mean 'delta.appendOnly'?"
    >>> unmodelled("team", "us", made=False)
    ''
    """
    if not key.lower().startswith("delta."):
        return ""
    known = {name.lower(): (name, values) for name, values in (MADE if made else SET).items()}
    if key.lower() not in known:
        return f"the property '{key}' is not modelled{near(key, MADE)}"
    name, values = known[key.lower()]
    if key != name:
        return misspelled(key)
    if re.fullmatch(values.pattern, value, re.IGNORECASE):
        return ""
    return f"{name} is '{value}'; known: {values.words}"
