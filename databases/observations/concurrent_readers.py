"""Observations of readers of a table that others change: a job of several queries, and a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.databases.observations.record import Observation, make_table, outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from isolitmus.conformance.delta.session import Session
    from isolitmus.conformance.workers import Interruption
    from isolitmus.databases.observations.record import Facts


def _counted_twice(session: Session, folder: Path, _: Interruption) -> Facts:
    """Count a table before and after another INSERT, by DataFrame, view and version."""
    spark, path = session.fresh(), folder / "t"
    name = make_table(spark, path, 1, 2)
    frame = spark.read.format("delta").load(str(path))
    frame.createOrReplaceTempView("seen")
    frames = {
        "a DataFrame": frame,
        "a view": spark.table("seen"),
        "a version": spark.sql(f"SELECT * FROM {name} VERSION AS OF 1"),
    }
    found = {what: [frame.count()] for what, frame in frames.items()}
    spark.sql(f"INSERT INTO {name} VALUES (3)")
    for what, frame in frames.items():
        found[what].append(frame.count())
    return found


JOB = Observation(
    "job-of-several-queries",
    "A job counts a table twice, and another writer adds a row in between: each query has its own"
    " snapshot",
    {"a DataFrame": [2, 3], "a view": [2, 3], "a version": [2, 2]},
    _counted_twice,
)

CHANGES = {
    "SET TBLPROPERTIES ('team' = 'us')": "goes on, 3 rows",
    "ADD COLUMNS (x INT)": "DELTA_SCHEMA_CHANGED_WITH_VERSION",
}
"""Changes of a table's metadata, and how a streaming query that has read two rows then goes on.

A third row comes after the change.
"""


PRINTED = {
    "SET TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')": "goes on, 3 rows",
    "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')": "goes on, 3 rows",
    "DROP FEATURE deletionVectors": "goes on, 3 rows",
    "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')": "goes on, 3 rows",
    "APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))": "goes on, 3 rows",
}
"""The other changes that the documentation names."""


RESTARTED = "ADD COLUMNS (x INT), started again"
"""The change that ends a streaming query, which is then restarted from its checkpoint."""


def _altered(session: Session, folder: Path, _: Interruption) -> Facts:
    found = {change: _after(session, folder / str(k), change) for k, change in enumerate(CHANGES)}
    ended = list(CHANGES).index("ADD COLUMNS (x INT)")
    return found | {RESTARTED: _streamed(session, folder / str(ended))}


def _altered_as_printed(session: Session, folder: Path, _: Interruption) -> Facts:
    return {change: _after(session, folder / str(k), change) for k, change in enumerate(PRINTED)}


def _after(session: Session, folder: Path, change: str) -> str:
    """Return how a streaming query of a table goes on after a change of it and one more row."""
    spark, path = session.fresh(), folder / "t"
    has = "'delta.enableDeletionVectors' = 'true'" if change.startswith("DROP FEATURE") else ""
    name = make_table(spark, path, 1, 2, properties=has)

    def alter() -> None:
        verb = "REORG" if change.startswith("APPLY") else "ALTER"
        spark.sql(f"{verb} TABLE {name} {change}")
        spark.sql(f"INSERT INTO {name} SELECT * FROM {name} LIMIT 1")

    return _streamed(session, folder, alter)


def _streamed(session: Session, folder: Path, meanwhile: Callable[[], None] | None = None) -> str:
    """Return how a streaming query from its checkpoint goes on after ``meanwhile``."""
    rows = session.fresh().readStream.format("delta").load(str(folder / "t"))
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(folder / "seen"))
    stream = writer.start()
    try:
        if meanwhile is not None:
            stream.processAllAvailable()
            meanwhile()
        end = outcome_of(stream.processAllAvailable, session)
        rows = sum(progress.numInputRows for progress in stream.recentProgress)
        return f"goes on, {rows} rows" if end == "committed" and stream.isActive else end
    finally:
        stream.stop()


STREAM = Observation(
    "stream-meets-changes",
    "A streaming query reads a table whose metadata changes: a new schema ends it, a property"
    " does not; restarted, it continues with the rows that it has not read",
    CHANGES | {RESTARTED: "goes on, 1 rows"},
    _altered,
)

STREAM_PRINTED = Observation(
    "stream-meets-printed-changes",
    "As stream-meets-changes, for the other changes named by the documentation",
    PRINTED,
    _altered_as_printed,
    wide=True,
)
