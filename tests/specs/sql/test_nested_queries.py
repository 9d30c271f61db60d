"""Nested queries beside which a subquery stands are merged with the query around them."""

import pytest

from isolitmus.checker.workloads.prediction import predict_workload
from isolitmus.model.errors import SqlError
from isolitmus.model.schema import Column, Schema
from isolitmus.specs.files.workload_file import read_workload
from isolitmus.specs.sql.nested_queries import merge_nested_queries

TABLES = {
    name: Schema(name, (Column("id", "INT"), Column("ts", "TIMESTAMP"))) for name in ("dim", "raw")
}
LAST = "(SELECT max(ts) FROM dim)"
MAXIMUM = "(SELECT MAX(ts) FROM dim)"
INNER = "SELECT id, ts FROM raw WHERE id = 1"


@pytest.mark.parametrize(
    ("query", "merged"),
    [
        (
            f"SELECT id FROM ({INNER}) WHERE ts > {LAST}",
            "SELECT id FROM raw AS raw WHERE raw.id = 1 AND (ts > (SELECT MAX(ts) FROM dim))",
        ),
        (
            f"SELECT * FROM (SELECT ts, id FROM raw) q WHERE q.ts > {LAST}",
            "SELECT q.ts, q.id FROM raw AS q WHERE q.ts > (SELECT MAX(ts) FROM dim)",
        ),
        (
            f"SELECT n.* FROM ({INNER}) n WHERE ts > {LAST} OR id = 2",
            f"SELECT n.id, n.ts FROM raw AS n WHERE n.id = 1 AND (ts > {MAXIMUM} OR id = 2)",
        ),
    ],
)
def test_a_query_of_one_table_is_merged(query, merged):
    insert = "INSERT INTO dim "
    assert merge_nested_queries(insert + query, TABLES) == insert + merged


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT id FROM ({INNER}) WHERE ts > TIMESTAMP '2026-01-01 00:00:00'",
        f"SELECT id FROM (SELECT id + 1 AS id, ts FROM raw) WHERE ts > {LAST}",
        f"SELECT id FROM (SELECT id, ts FROM raw LIMIT 3) WHERE ts > {LAST}",
        f"SELECT id FROM (SELECT DISTINCT id, ts FROM raw) WHERE ts > {LAST}",
        f"SELECT id FROM (SELECT id, max(ts) AS ts FROM raw GROUP BY id) WHERE ts > {LAST}",
        f"SELECT id FROM (SELECT id, ts FROM raw WHERE ts > {LAST}) WHERE ts > {LAST}",
        f"SELECT * EXCEPT (ts) FROM ({INNER}) WHERE ts > {LAST}",
        # Spark makes joins of these
        f"SELECT id FROM ({INNER}) q WHERE NOT EXISTS (SELECT 1 FROM dim WHERE dim.id = q.id)",
        f"SELECT id FROM ({INNER}) q WHERE id IN (SELECT id FROM dim)",
        f"SELECT id FROM ({INNER}) q WHERE ts > (SELECT max(ts) FROM dim WHERE dim.id = q.id)",
        f"SELECT id FROM ({INNER}) AS q(a, b) WHERE ts > {LAST}",
    ],
)
def test_another_query_stays(query):
    insert = f"INSERT INTO dim {query}"
    assert merge_nested_queries(insert, TABLES) == insert


DDL = """
ddl = [
    "CREATE TABLE dim (id INT, ts TIMESTAMP) USING delta",
    "CREATE TABLE raw (id INT, ts TIMESTAMP) USING delta",
]
"""
NEWEST = "row_number() OVER (PARTITION BY id ORDER BY ts DESC) AS rn"
MERGE = "MERGE INTO dim USING ({}) s ON dim.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"  # fmt: skip


@pytest.mark.parametrize(
    "source",
    [
        f"SELECT id, ts FROM (SELECT *, {NEWEST} FROM raw) WHERE rn = 1 AND ts > {LAST}",
        f"SELECT * FROM (SELECT id, ts FROM (SELECT *, {NEWEST} FROM raw) WHERE rn = 1) WHERE ts > {LAST}",
        f"WITH new AS (SELECT id, ts FROM (SELECT *, {NEWEST} FROM raw) WHERE rn = 1) SELECT * FROM new WHERE ts > {LAST}",
    ],
)  # fmt: skip
def test_an_incremental_load_is_predicted(source):
    """As one whose source is a table."""

    def words(query):
        work = read_workload(f'{DDL}[jobs.load]\nsql = """{MERGE.format(query)}"""', "jobs")
        assert work.unread == ()
        return [
            (one.word, one.exceptions)
            for one in predict_workload(work, "delta-serializable").meetings
        ]

    assert words(source) == words(f"SELECT id, ts FROM raw WHERE ts > {LAST}")


def test_what_stays_is_named():
    query = f"SELECT id, ts FROM (SELECT id + 1 AS id, ts FROM dim) WHERE ts > {LAST}"
    with pytest.raises(SqlError, match="together with a nested query in FROM"):
        read_workload(f'{DDL}[jobs.load]\nsql = "INSERT INTO dim {query}"', "jobs")
