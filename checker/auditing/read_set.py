"""What a commit read, as far as the log says: nothing, the rows of a condition, or what nobody knows.

The premise of each rule is that ``commitInfo`` tells the truth, and that the command is one of Delta's
(docs/statements.md says of each what it reads; DeltaOperations.scala what it logs):

- a commit that says that it is a blind append read nothing;
- DELETE and UPDATE read the rows of their predicate (and UPDATE what subqueries in SET read, which no
  log shows); TRUNCATE, a static overwrite, REPLACE TABLE, a complete streaming batch, ADD CONSTRAINT and
  a MERGE with WHEN NOT MATCHED BY SOURCE without condition read every row; an overwrite with a
  predicate the rows of that, a dynamic one the partitions of the files that it adds;
- what a MERGE otherwise, an INSERT … SELECT from its own table and whatever else is not blind read,
  the log does not say;
- OPTIMIZE, REORG and the like move rows and read none; who changes metadata only reads none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from isolitmus.checker.auditing.conditions import EVERYTHING, condition
from isolitmus.specs.disk.limits import read_json

if TYPE_CHECKING:
    from isolitmus.checker.auditing.conditions import Condition
    from isolitmus.model.delta.log import LogCommit, LogMetadata

__all__ = ["Reads", "checks", "moves_only", "reads", "said"]


@dataclass(frozen=True, slots=True)
class Reads:
    """``conditions`` (all of them hold of a row that was read), the values of ``partitions``, or
    neither: ``kind`` says which.
    """

    kind: Literal["nothing", "rows", "partitions", "unknown"]
    conditions: tuple[Condition, ...] = ()
    partitions: frozenset[tuple[tuple[str, str | None], ...]] = frozenset()

    @property
    def everything(self) -> bool:
        """Whether it read every row."""
        return self.kind == "rows" and all(c.text == "true" for c in self.conditions)


NOTHING = Reads("nothing")
UNKNOWN = Reads("unknown")
ALL_ROWS = Reads("rows", (EVERYTHING,))

MOVES = ("OPTIMIZE", "REORG", "ROW TRACKING BACKFILL", "ROW TRACKING UNBACKFILL", "COMPUTE STATS")
"""Operations that may add and remove files, but no row."""
DELTA = re.compile(r"Delta-Lake/(\d+)\.(\d+)\.")
REPLACES = (
    "CREATE OR REPLACE TABLE AS SELECT",
    "REPLACE TABLE AS SELECT",
    "CREATE OR REPLACE TABLE",
    "REPLACE TABLE",
    "TRUNCATE",
    "ADD CONSTRAINT",
)
CHANGES = ("DELETE", "UPDATE", "MERGE", "WRITE", "STREAMING UPDATE", *REPLACES)
"""Operations that may read even where they add and remove nothing."""


def moves_only(commit: LogCommit) -> bool:
    """Whether a commit has file actions, and says that none of them changes data."""
    return bool(commit.adds or commit.removes) and not commit.changes_rows


def reads(commit: LogCommit, metadata: LogMetadata) -> Reads:
    """What a commit read; ``metadata`` is the table's at that commit.

    >>> from isolitmus.model.delta.log import LogCommit, LogMetadata
    >>> delete = {"operation": "DELETE", "operationParameters": {"predicate": '["(id#1 = 5)"]'}}
    >>> [c.text for c in reads(LogCommit(1, delete), LogMetadata()).conditions]
    ['(id#1 = 5)']
    """
    operation = (commit.operation or "").upper()
    if commit.blind and not commit.removes:
        return NOTHING
    if operation in MOVES and not commit.changes_rows:
        return NOTHING
    if operation not in CHANGES and not (commit.adds or commit.removes or commit.changes):
        return NOTHING
    said = commit.parameters
    match operation:
        case "DELETE" | "UPDATE":
            return _predicate(said.get("predicate"))
        case "MERGE":
            return _merge(said.get("notMatchedBySourcePredicates"))
        case "STREAMING UPDATE":
            return ALL_ROWS if said.get("outputMode") == "Complete" else UNKNOWN
        case "WRITE" if said.get("mode") == "Overwrite":
            return _overwrite(commit, metadata)
        case _ if operation in REPLACES:
            return ALL_ROWS
        case _:
            return UNKNOWN


def _predicate(said: object) -> Reads:
    """Older releases and other writers log the text, newer ones a list of texts in JSON."""
    if not isinstance(said, str) or not said.strip():
        return UNKNOWN
    texts: list[object] = [said]
    if said.startswith("["):
        try:
            texts = read_json(said)
        except ValueError:
            return UNKNOWN
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return UNKNOWN
    return Reads("rows", tuple(condition(str(text)) for text in texts) or (EVERYTHING,))


def _merge(said: object) -> Reads:
    try:
        clauses = read_json(said) if isinstance(said, str) else []
    except ValueError:
        return UNKNOWN
    if not isinstance(clauses, list):
        return UNKNOWN
    bare = any(isinstance(clause, dict) and "predicate" not in clause for clause in clauses)
    return ALL_ROWS if bare else UNKNOWN


def _overwrite(commit: LogCommit, metadata: LogMetadata) -> Reads:
    """A static overwrite logs no predicate. Releases before 4.1 did not log that one is dynamic, either:
    without partitions it does not matter, and who removes from partitions that it adds nothing to
    is static.
    """
    said = commit.parameters
    if said.get("replaceOnCond") or said.get("replaceUsingCols"):
        return UNKNOWN
    if said.get("predicate"):
        return _predicate(said["predicate"])
    partitions = [file.partition for file in commit.adds]
    keys = frozenset(tuple(sorted(p.items())) for p in partitions if p is not None)
    dynamic = str(said.get("isDynamicPartitionOverwrite", "")).lower()
    if dynamic == "true":
        return UNKNOWN if None in partitions else Reads("partitions", partitions=keys)
    removed = [file.partition for file in commit.removes]
    static = any(p is not None and tuple(sorted(p.items())) not in keys for p in removed)
    known = dynamic == "false" or not metadata.partitioned_by or (static and None not in partitions)
    return ALL_ROWS if known or _logs_dynamic(commit) else UNKNOWN


def _logs_dynamic(commit: LogCommit) -> bool:
    release = DELTA.search(commit.engine or "")
    return release is not None and (int(release[1]), int(release[2])) >= (4, 1)


def checks(commit: LogCommit) -> bool:
    """Whether a commit's writer makes Delta's check at the level that it logs: Spark and Databricks do;
    other programs log no level, or check less (Delta Kernel).
    """
    engine = commit.engine or ""
    known = not engine or engine.startswith(("Apache-Spark/", "Databricks-Runtime/"))
    return known and commit.level is not None


def said(commit: LogCommit) -> str:
    """A commit in words: ``version 3 (DELETE)``."""
    return f"version {commit.version}" + (f" ({commit.operation})" if commit.operation else "")
