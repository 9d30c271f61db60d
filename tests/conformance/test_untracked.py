"""Appends of what was read of the table itself, which Delta takes for blind ones, in two ways that
no litmus test can say: the table's files read as Parquet, and the function that a streaming query
calls.
"""

from itertools import permutations

import pytest

from isolitmus.checker.execution.duckdb_executor import DuckExecutor
from isolitmus.conformance import race
from isolitmus.conformance.delta.tables import make_tables
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.logs.delta_log import commits_since

pytestmark = pytest.mark.spark

COPY, OTHER = (f"INSERT INTO t SELECT {base} + count(*) FROM {{t}}" for base in (100, 10))
SERIAL = read_litmus(
    f"""
    title    = "What the two would be if Delta saw their reads"
    schedule = "copy.start other copy.commit"

    [table]
    columns = "id BIGINT"
    init    = ["INSERT INTO t VALUES (1)"]

    [transactions]
    copy  = "{COPY.format(t="t")}"
    other = "{OTHER.format(t="t")}"
    """,
    "serial",
)


@pytest.fixture(params=["Serializable", "WriteSerializable"])
def table(request, session):
    """A session and the path of table t with one row, at either level."""
    with make_tables(SERIAL, request.param, session) as tables:
        spark = tables.client()
        spark.sql(SERIAL.init[0].sql)
        yield spark, tables.paths["t"]


def explained(spark):
    """The rows, and the serial orders that give them, by DuckDB."""
    rows = sorted(tuple(row) for row in spark.table("t").collect())
    after = DuckExecutor(SERIAL).after
    orders = permutations(SERIAL.transactions)
    return rows, [order for order in orders if sorted(after(order)["t"]) == rows]


def test_rows_read_from_the_files_of_the_table_are_a_blind_append(table):
    spark, path = table
    with race(spark, path) as run:
        copy = run.park(lambda: spark.sql(COPY.format(t=f"parquet.`{path}`")), "copy")
        spark.sql(OTHER.format(t="t"))
        ending = copy.release()
    assert ending.outcome == "committed", str(ending)
    *_, last = commits_since(path)
    assert last.blind
    assert explained(spark) == ([(1,), (11,), (101,)], [])


def test_what_a_function_appends_for_each_batch_is_a_blind_append(table, tmp_path):
    spark, path = table

    def append(batch, _):
        rows = batch.selectExpr("100 + count(*) AS id")
        spark.sql(OTHER.format(t="t"))
        rows.write.format("delta").mode("append").save(str(path))

    query = (
        spark.readStream.table("t")
        .writeStream.foreachBatch(append)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(once=True)
        .start()
    )
    query.awaitTermination()
    *_, last = commits_since(path)
    assert last.blind
    assert explained(spark) == ([(1,), (11,), (101,)], [])


def test_the_same_by_name_is_refused(table):
    """The control: a read that Delta sees."""
    spark, path = table
    with race(spark, path) as run:
        copy = run.park(lambda: spark.sql(COPY.format(t="t")), "copy")
        spark.sql(OTHER.format(t="t"))
        assert copy.release().outcome == "ConcurrentAppendException"
    assert explained(spark)[0] == [(1,), (11,)]
