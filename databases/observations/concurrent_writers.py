"""Observations of concurrent writers that are more than a statement.

They are streaming queries and changes of several commits.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from isolitmus.conformance.delta.parking import Parking
from isolitmus.conformance.delta.session import java_session
from isolitmus.databases.observations.record import Observation, make_table, outcome_of
from isolitmus.specs.logs.delta_log import commits_since, latest_version

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from isolitmus.conformance.delta.session import Session
    from isolitmus.conformance.workers import Interruption
    from isolitmus.databases.observations.record import Facts

SECONDS = 180.0
"""Time limit of each step, in seconds."""


def _one_checkpoint(session: Session, folder: Path, interruption: Interruption) -> Facts:
    """Run a streaming query while another with the same checkpoint is held before its commit."""
    spark, target = session.fresh(), folder / "target"
    make_table(spark, folder / "source", 1, 2)
    name = make_table(spark, target)
    with Parking(session, interruption, SECONDS, target) as parking:
        first = parking.start("the first query", _query(spark, folder), "commit")
        second = outcome_of(_query(_another_application(session), folder), session)
        parking.finish(first)
    rows = spark.sql(f"SELECT id FROM {name} ORDER BY id").collect()
    return {
        "the first": outcome_of(first.result, session),
        "the second, meanwhile": second,
        "rows": [row[0] for row in rows],
    }


def _query(spark: Any, folder: Path) -> Callable[[], object]:
    """Return a callable that runs a streaming query from one table to another to its end."""

    def run() -> None:
        rows = spark.readStream.format("delta").load(str(folder / "source"))
        writer = rows.writeStream.format("delta").trigger(availableNow=True)
        stream = writer.option("checkpointLocation", str(folder / "seen")).start(
            str(folder / "target")
        )
        try:
            stream.awaitTermination()
        finally:
            stream.stop()

    return run


def _another_application(session: Session) -> Any:
    """Return a SparkSession that does not know the streaming queries of the other one.

    Spark ends one of its own queries if its checkpoint is started again
    (StreamingQueryManager.scala), and cannot see the queries of other applications.
    """
    from pyspark.sql import SparkSession

    options = session.java("java.util.HashMap")()
    context = java_session(session.spark).sparkContext()
    made = session.java("org.apache.spark.sql.classic.SparkSession")(context, options)
    return SparkSession(session.spark.sparkContext, made)


CHECKPOINT = Observation(
    "one-checkpoint-two-queries",
    "Another application restarts a streaming query with the same checkpoint while its batch is"
    " about to commit: the batch is written once",
    {
        "the first": "ConcurrentTransactionException",
        "the second, meanwhile": "committed",
        "rows": [1, 2],
    },
    _one_checkpoint,
)

VECTORS = "'delta.enableDeletionVectors' = 'true'"
UPGRADE = "REORG TABLE {} APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))"
STATEMENTS = {
    "DROP FEATURE deletionVectors": "ALTER TABLE {} DROP FEATURE deletionVectors",
    "UPGRADE UNIFORM": UPGRADE,
    "UPGRADE UNIFORM, catalog": UPGRADE,
}
"""Table changes that consist of several commits; the table of the last one is in the catalog."""


LOSERS = {
    "a DELETE": "DELETE FROM {} WHERE id = 1",
    "an UPDATE": "UPDATE {} SET id = 3 WHERE id = 1",
    "a MERGE": (
        "MERGE INTO {} AS t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN DELETE"
    ),
}
"""Statements besides INSERT that run concurrently with an upgrade."""


def _overtaken(session: Session, folder: Path, interruption: Interruption) -> Facts:
    """Hold DML before its commit while an upgrade runs, and INSERTs while tables change."""
    found: dict[str, object] = {}
    for loser, statement in LOSERS.items():
        path = folder / loser.replace(" ", "")
        name = make_table(session.spark, path, 1, 2, properties=VECTORS)
        with Parking(session, interruption, SECONDS, path) as parking:
            parked = parking.start(
                loser, partial(session.spark.sql, statement.format(name)), "commit"
            )
            outcome_of(partial(session.spark.sql, UPGRADE.format(name)), session)
            parking.finish(parked)
        found[f"{loser} beside UPGRADE UNIFORM"] = outcome_of(parked.result, session)
    for change, statement in STATEMENTS.items():
        path = folder / change.replace(" ", "")
        by_path = make_table(session.spark, path, 1, properties=VECTORS)
        name = by_path if "catalog" not in change else f"upgraded_{folder.name}"
        if name != by_path:
            session.spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{path}'")
        before = latest_version(path)
        insert = partial(session.spark.sql, f"INSERT INTO {by_path} VALUES (2)")
        alter = partial(session.spark.sql, statement.format(name))
        try:
            with Parking(session, interruption, SECONDS, path) as parking:
                parked = parking.start("the INSERT", insert, "commit")
                end = outcome_of(alter, session)
                parking.finish(parked)
        finally:
            session.spark.sql(f"DROP TABLE IF EXISTS upgraded_{folder.name}")
        commits = [commit.operation for commit in commits_since(path, before)]
        found[change] = [*commits, end]
        found[f"an INSERT beside {change}"] = outcome_of(parked.result, session)
    return found


SEVERAL = Observation(
    "changes-of-several-commits",
    "Table changes of several commits, each concurrent with an INSERT, which aborts at the first of"
    " them; UNIFORM needs Iceberg's jar, which is not installed, for a table in the catalog",
    {
        "DROP FEATURE deletionVectors": [
            "UNSET TBLPROPERTIES",
            "Deletion Vector Tombstones",
            *["Empty Commit"] * 3,
            "DROP FEATURE",
            "committed",
        ],
        "an INSERT beside DROP FEATURE deletionVectors": "MetadataChangedException",
        "UPGRADE UNIFORM": [
            "REORG TABLE UPGRADE UNIFORM",
            "REORG",
            "SET TBLPROPERTIES",
            "committed",
        ],
        "an INSERT beside UPGRADE UNIFORM": "MetadataChangedException",
        "UPGRADE UNIFORM, catalog": [
            "REORG TABLE UPGRADE UNIFORM",
            "REORG",
            "DELTA_MISSING_ICEBERG_CLASS",
        ],
        "an INSERT beside UPGRADE UNIFORM, catalog": "MetadataChangedException",
        **{f"{loser} beside UPGRADE UNIFORM": "MetadataChangedException" for loser in LOSERS},
    },
    _overtaken,
    wide=True,
)


def _unmapped(session: Session, folder: Path, _: Interruption) -> Facts:
    """Turn off column mapping; count the files before it and the files that it removes."""
    mapped = "'delta.columnMapping.mode' = 'name'"
    name = make_table(session.spark, folder / "t", 1, properties=mapped)
    session.spark.sql(f"INSERT INTO {name} VALUES (2)")
    before = latest_version(folder / "t")
    session.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')")
    commits = list(commits_since(folder / "t", before))
    return {
        "files": len(
            session.spark.sql(f"SELECT * FROM {name} VERSION AS OF {before}").inputFiles()
        ),
        "files that go": sum(len(commit.removes) for commit in commits),
        "changes data": any(commit.changes_rows for commit in commits),
    }


UNMAPPED = Observation(
    "column-mapping-removed",
    "Turning off column mapping rewrites every file of a table",
    {"files": 2, "files that go": 2, "changes data": False},
    _unmapped,
)

FEATURES = {"that it knows": "changeDataFeed", "that it does not know": "ofLaterYears"}
"""Table features that writers need and readers do not, by whether the writer knows them."""


def _upgraded(session: Session, folder: Path, interruption: Interruption) -> Facts:
    """Hold INSERTs before their commit while the table gets a feature; then retry and query."""
    found: dict[str, object] = {}
    for known, feature in FEATURES.items():
        path = folder / feature
        name = make_table(session.spark, path, 1)
        insert = partial(session.spark.sql, f"INSERT INTO {name} VALUES (2)")
        with Parking(session, interruption, SECONDS, path) as parking:
            parked = parking.start("the INSERT", insert, "commit")
            _give(path, feature)
            parking.finish(parked)
        found[f"an INSERT beside a feature {known}"] = outcome_of(parked.result, session)
        found[f"tried again, a feature {known}"] = [outcome_of(insert, session) for _ in range(2)]
        query = partial(_read, session, name)
        found[f"a query, a feature {known}"] = outcome_of(query, session)
    return found


def _give(path: Path, feature: str) -> None:
    """Upgrade a table's protocol, as a client of a release with this feature does."""
    features = ["appendOnly", "invariants", feature]
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}
    commit = path / "_delta_log" / f"{latest_version(path) + 1:020}.json"
    commit.write_text(json.dumps({"protocol": protocol}), "utf-8")


def _read(session: Session, name: str) -> None:
    session.spark.sql(f"SELECT id FROM {name}").collect()


UPGRADED = Observation(
    "protocol-of-a-later-release",
    "A table's protocol is upgraded during an INSERT, which is retried twice: a client that knows"
    " the feature continues; one that does not can read, but never write",
    {
        "an INSERT beside a feature that it knows": "committed",
        "tried again, a feature that it knows": ["committed", "committed"],
        "a query, a feature that it knows": "committed",
        "an INSERT beside a feature that it does not know": "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
        "tried again, a feature that it does not know": [
            "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
            "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
        ],
        "a query, a feature that it does not know": "committed",
    },
    _upgraded,
)

COMPLEX = {
    "a structure": "s.a = 1",
    "an array": "a[0] = 1",
    "a map": "m['k'] = 1",
    "a lambda": "exists(a, e -> e = 1)",
}
"""Conditions that one of two rows matches, by the type of column."""
NOT_TAKEN = {
    "not deterministic": "rand() < 2",
    "a subquery": "id IN (SELECT 1)",
    "a correlated subquery": "EXISTS (SELECT 1 FROM {0} AS o WHERE o.id = id + 1)",
}
COMMANDS = {
    "DELETE": "DELETE FROM {0} WHERE {1}",
    "UPDATE": "UPDATE {0} SET id = 9 WHERE {1}",
    "MERGE": (
        "MERGE INTO {0} AS t USING (SELECT 1 AS k) AS q ON t.id = q.k AND {1} WHEN MATCHED THEN"
        " DELETE"
    ),
}


def _conditions(session: Session, folder: Path, interruption: Interruption) -> Facts:
    """Run commands with rejected conditions, and DELETEs held while an UPDATE commits."""
    spark, name = session.spark, f"delta.`{folder / 't'}`"
    columns = "id INT, s STRUCT<a: INT>, a ARRAY<INT>, m MAP<STRING, INT>"
    spark.sql(f"CREATE TABLE {name} ({columns}) USING delta TBLPROPERTIES ({VECTORS})")
    rows = (f"({i}, named_struct('a', {i}), array({i}), map('k', {i}))" for i in (1, 2))
    spark.sql(f"INSERT INTO {name} VALUES {', '.join(rows)}")
    found: dict[str, object] = {
        f"{command}, {kind}": outcome_of(
            partial(spark.sql, text.format(name, condition.format(name))), session
        )
        for kind, condition in NOT_TAKEN.items()
        for command, text in COMMANDS.items()
    }
    found["UPDATE, a value that is not deterministic"] = outcome_of(
        partial(spark.sql, f"UPDATE {name} SET id = CAST(rand() AS INT)"), session
    )
    with Parking(session, interruption, SECONDS, folder / "t") as parking:
        parked = {
            kind: parking.start(
                kind, partial(spark.sql, COMMANDS["DELETE"].format(name, condition)), "commit"
            )
            for kind, condition in COMPLEX.items()
        }
        spark.sql(f"UPDATE {name} SET s = named_struct('a', 3) WHERE id = 2")
        for one in parked.values():
            parking.finish(one)
    found |= {f"DELETE, {kind}": outcome_of(one.result, session) for kind, one in parked.items()}
    return found


RANDOM_PLACE = "INVALID_NON_DETERMINISTIC_EXPRESSIONS"
CONDITIONS = Observation(
    "complex-conditions",
    "Commands with conditions that Databricks checks by file, in a table with deletion vectors;"
    " the accepted ones are DELETEs of one row, while another row of its file is updated",
    {
        "DELETE, not deterministic": RANDOM_PLACE,
        "UPDATE, not deterministic": RANDOM_PLACE,
        "MERGE, not deterministic": "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
        **{f"{one}, a subquery": "DELTA_UNSUPPORTED_SUBQUERY" for one in COMMANDS},
        **{f"{one}, a correlated subquery": "DELTA_UNSUPPORTED_SUBQUERY" for one in COMMANDS},
        "UPDATE, a value that is not deterministic": RANDOM_PLACE,
        **{f"DELETE, {kind}": "ConcurrentAppendException" for kind in COMPLEX},
    },
    _conditions,
    wide=True,
)
