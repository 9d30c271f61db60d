"""A batch that is given to the streaming sink leaves what a query of Structured Streaming
leaves.
"""

import json
from collections import Counter

import pytest

from isolitmus.conformance.delta.tables import make_tables
from isolitmus.model.litmus import DataFrameWrite
from isolitmus.specs.files.litmus_file import read_litmus

pytestmark = pytest.mark.spark

TABLES = read_litmus(
    """
    title    = "A source, and two targets that are alike"
    schedule = "r"

    [tables]
    source.columns  = "id INT, part INT"
    queried.columns = "id INT, part INT"
    given.columns   = "id INT, part INT"

    [transactions]
    r = "SELECT id FROM source"
    """,
    "tables",
)
ROWS = "VALUES (1, 0), (2, 1), (3, 1)"
# (output mode, the table that streams, the query of what streams in: {target} is read, too)
QUERIES = [
    ("append", "source", "SELECT id + 10 AS id, part FROM batch"),
    ("append", "source", "SELECT * FROM batch LEFT ANTI JOIN {target} t ON t.id = batch.id + 2"),
    ("append", "source", "SELECT id + CAST((SELECT count(*) FROM {target}) AS INT) AS id, part FROM batch"),
    ("append", "{target}", "SELECT id + 10 AS id, part FROM batch"),
    ("complete", "source", "SELECT CAST(count(*) AS INT) AS id, part FROM batch GROUP BY part"),
    ("complete", "source", "SELECT CAST(count(*) AS INT) AS id, t.part FROM batch JOIN {target} t ON t.id = batch.id GROUP BY t.part"),
]  # fmt: skip


def test_a_batch_is_recorded_as_a_querys(session, tmp_path):
    with make_tables(TABLES, "Serializable", session) as tables:
        spark = tables.client()
        for table in TABLES.tables:
            spark.sql(f"INSERT INTO {table} {ROWS}").collect()
        for number, (mode, source, sql) in enumerate(QUERIES):
            streams = spark.readStream.table(source.format(target="queried"))
            streams.createOrReplaceTempView("batch")
            query = (
                spark.sql(sql.format(target="queried"))
                .writeStream.format("delta")
                .outputMode(mode)
                .option("checkpointLocation", str(tmp_path / str(number)))
                .trigger(availableNow=True)
                .start(str(tables.paths["queried"]))
            )
            query.awaitTermination()
            spark.table(source.format(target="given")).createOrReplaceTempView("batch")
            rows = spark.sql(sql.format(target="given"))
            write = DataFrameWrite("given", mode, sql, stream=True)
            tables.add_batch(rows, write, (query.id, 0), spark)
            assert recorded(tables.paths["given"]) == recorded(tables.paths["queried"]), sql
            assert contents(spark, "given") == contents(spark, "queried"), sql
        assert not spark.streams.active


def recorded(table):
    """The newest commit: what it says of itself, its application ids, how many actions of each
    kind.
    """
    path = max((table / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    (info,) = [a["commitInfo"] for a in actions if "commitInfo" in a]
    said = [
        info[k] for k in ("operation", "operationParameters", "isolationLevel", "isBlindAppend")
    ]
    apps = [(a["txn"]["appId"], a["txn"]["version"]) for a in actions if "txn" in a]
    return path.name, *said, apps, Counter(kind for action in actions for kind in action)


def contents(spark, table):
    return sorted(map(tuple, spark.table(table).collect()))
