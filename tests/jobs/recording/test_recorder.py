"""Functions of PySpark on empty tables: their statements, reads and paths, in one session."""

import json
import subprocess
from pathlib import Path

import pytest

from isolitmus.jobs.readers.function_targets import read_function_target
from isolitmus.jobs.recording.child import record_function
from isolitmus.jobs.recording.file_wall import wall_version
from isolitmus.jobs.recording.path_choices import PathChoices
from isolitmus.jobs.recording.plan_export import PlanExport
from isolitmus.jobs.recording.sql_texts import SUBSTITUTION
from isolitmus.jobs.sql.spark_plans import PlanWriter
from isolitmus.model.errors import LitmusError

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DDL = """
CREATE TABLE sales (id BIGINT, customer BIGINT, amount INT, day DATE) USING delta PARTITIONED BY (day);
CREATE TABLE arrivals (id BIGINT, customer BIGINT, amount INT, day DATE, seen TIMESTAMP);
CREATE TABLE totals (day DATE, n BIGINT) USING delta LOCATION '/lake/totals'
"""
JOBS = """
import datetime as dt
from delta.tables import DeltaTable
from pyspark.sql import SparkSession, Window, functions as F

def by_text():
    mode = "spark.sql.sources.partitionOverwriteMode"
    spark = SparkSession.builder.appName("other").config(mode, "dynamic").getOrCreate()
    spark.sql("SET spark.sql.shuffle.partitions = 2")
    spark.sql("ALTER TABLE sales SET TBLPROPERTIES ('reviewed' = 'yes')")
    spark.sql(f"SET {mode} = static")
    spark.sql("DELETE FROM sales WHERE day = :day", args={"day": dt.date(2026, 1, 1)})
    spark.sql("INSERT INTO sales VALUES (?, 1, 2, '2026-01-01')", args=[7])
    spark.sql("CREATE OR REPLACE TEMP VIEW late AS SELECT * FROM arrivals WHERE id > 3")
    spark.sql("INSERT INTO sales SELECT id, customer, amount, day FROM late")
    new = spark.table("arrivals").drop("seen")
    spark.sql("INSERT INTO sales SELECT * FROM {new}", new=new)
    spark.sql("DELETE FROM delta.`/lake/totals` WHERE n = 0")
    spark.sql("OPTIMIZE sales")
    spark.stop()

def by_frame(spark):
    s, a = spark.table("sales").alias("s"), spark.table("arrivals").alias("a")
    missing = s.join(a, F.col("s.id") == F.col("a.id"), "left").where(F.col("a.day").isNull())
    missing.select("s.day", "s.id", "s.customer", "s.amount").write.mode("overwrite").option(
        "replaceWhere", "day = '2026-01-01'").saveAsTable("sales")
    rows = a.select("id", "customer", "amount", "day").cache()
    rows.write.mode("overwrite").option("partitionOverwriteMode", "dynamic").insertInto("sales")
    rows.writeTo("sales").overwrite(F.col("day") == "2026-01-03")
    rows.groupBy("day").agg(F.count("*").alias("n")).write.format("delta").mode("append").save("/lake/totals")
    made = spark.createDataFrame([(1, dt.date(2026, 1, 1))], "id BIGINT, day DATE")
    made.write.mode("append").saveAsTable("sales")

def by_builder(spark):
    t = DeltaTable.forName(spark, "sales")
    t.delete(F.col("day") < "2026-01-01")
    t.update("customer = 3", {"amount": F.col("amount") + 1})
    (t.alias("t").merge(spark.table("arrivals").dropDuplicates(["id"]).alias("a"), "t.id = a.id")
        .whenMatchedDelete(F.col("a.amount") > F.col("t.amount"))
        .whenMatchedUpdate(set={"amount": "a.amount"})
        .whenNotMatchedInsert("a.id > 3", {"id": F.col("a.id"), "day": "a.day"}).execute())
    t.optimize().where("day = '2026-01-01'").executeZOrderBy("id")
    t.vacuum(200)
    t.restoreToVersion(1)
    DeltaTable.forPath(spark, "/lake/totals").delete()

def by_python(spark):
    double = F.udf(lambda x: x, "BIGINT")
    spark.table("arrivals").select(double("id").alias("id"), "day").write.mode("append").saveAsTable("sales")

def incremental(spark):
    last = spark.sql("SELECT max(day) AS last FROM sales").first()["last"]
    n = spark.table("arrivals").where(F.col("id") > 3).count() + 1
    print(f"after {last}: {n:,} rows")
    spark.sql(f"INSERT INTO totals SELECT day, {n} FROM arrivals WHERE day > '{last}'")

def deciding(spark):
    if spark.table("sales").count() > 0:
        spark.sql("DELETE FROM sales")
    for row in spark.table("arrivals").select("id").collect():
        spark.sql(f"DELETE FROM sales WHERE id = {row.id}")

def either(spark):
    new = spark.table("arrivals").where("amount > 0")
    if new.isEmpty() or not spark.table("sales").take(1):
        return
    last = spark.sql("SELECT max(id) AS m FROM sales").collect()[0]["m"]
    new.select("id", "customer", "amount", "day").write.mode("append").saveAsTable("sales")
    spark.sql(f"INSERT INTO totals VALUES (DATE '2026-01-01', {last + 1})")

def hidden(spark):
    text = str(spark.table("sales").count())
    if text == "0":
        spark.sql("DELETE FROM sales")

def elsewhere(spark):
    spark.table("sales").write.parquet("/lake/x")
    spark.table("sales").write.format("delta").mode("append").save("/lake/y")
    spark.sql("INSERT INTO delta.`/lake/z` SELECT 1")
    spark.sql("CREATE TABLE q USING delta LOCATION '/lake/q' AS SELECT 1 AS x")
    spark.sql("INSERT OVERWRITE DIRECTORY '/lake/d' USING parquet SELECT 1 AS x")
    spark.table("sales").writeTo("r").using("delta").option("path", "/lake/r").create()
    spark.sql("CREATE DATABASE d LOCATION '/lake/db'")
    spark.table("sales").write.option("mergeSchema", "true").mode("append").saveAsTable("totals")

def streams(spark):
    source = spark.readStream.table("arrivals").where("id > 3").withWatermark("seen", "1 day")
    rows = source.select("id", "customer", "amount", "day")
    started = rows.writeStream.option("checkpointLocation", "/lake/c").trigger(availableNow=True)
    query = started.toTable("sales")
    query.awaitTermination()
    new = spark.readStream.format("kafka").option("subscribe", "x").load()
    new.groupBy("timestamp").count().select(F.col("timestamp").cast("DATE").alias("day"), F.col("count").alias("n")
        ).writeStream.format("delta").outputMode("complete").trigger(once=True).start("/lake/totals").stop()
    spark.readStream.schema("id BIGINT").json("/lake/in").writeStream.toTable("sales")
    spark.readStream.format("delta").load("/lake/totals").writeStream.toTable("totals")
    spark.readStream.format("delta").load("/lake/totals").writeStream.toTable("other")
    new.writeStream.format("console").start()
    spark.streams.awaitAnyTermination()
    spark.sql("OPTIMIZE sales")

def by_batch(spark):
    def upsert(batch, number):
        if batch.isEmpty():
            return
        t = DeltaTable.forName(spark, "sales").alias("t")
        t.merge(batch.alias("b"), "t.id = b.id").whenMatchedDelete().execute()
        batch.write.mode("append").option("txnAppId", "x").option("txnVersion", number).saveAsTable("sales")

    q = spark.readStream.table("arrivals").drop("seen").writeStream.foreachBatch(upsert).start()
    while q.isActive:
        q.processAllAvailable()

def arguments(spark, day, batch=3):
    spark.sql(f"DELETE FROM sales WHERE day = DATE '{day}' AND id = {batch}")

def writes_a_file(spark):
    spark.sql("DELETE FROM sales")
    open("kept.txt", "w")

def raises(spark):
    spark.sql("DELETE FROM sales")
    raise ValueError("no more")

def unknown_path(spark):
    DeltaTable.forPath(spark, "/lake/unknown").delete()
"""


@pytest.fixture(scope="module")
def record(session, tmp_path_factory):
    file = tmp_path_factory.mktemp("jobs") / "jobs.py"
    lake = tmp_path_factory.mktemp("lake")
    file.write_text(JOBS.replace("/lake", str(lake)))

    def run(function, ddl=DDL, choices=None):
        found = []
        ddl = ddl.replace("/lake", str(lake))
        target = read_function_target(f"{file}:{function}")
        record_function(session, target, ddl, found.append, choices)
        assert not [*lake.iterdir()]
        return json.loads(json.dumps(found).replace(str(lake), "/lake"))

    return run


TOTALS = ";CREATE TABLE totals (day DATE, n BIGINT) USING delta"


def statements(records):
    return [one["sql"] for one in records if one["kind"] == "statement"]


def test_statements_as_text(record):
    mode = "SET spark.sql.sources.partitionOverwriteMode"
    records = record("by_text")
    (note,) = [one for one in records if one["kind"] == "note"]
    assert "raises UNBOUND_SQL_PARAMETER" in note["problem"]
    assert statements(records) == [
        f"{mode} = dynamic",
        "ALTER TABLE sales SET TBLPROPERTIES ('reviewed' = 'yes')",
        f"{mode} = static",
        "DELETE FROM sales WHERE day = :day",
        "INSERT INTO sales VALUES (:p1, 1, 2, '2026-01-01')",
        (
            "WITH late AS (SELECT * FROM arrivals WHERE id > 3) INSERT INTO sales SELECT id, customer,"
            " amount, day FROM late"
        ),
        (
            "WITH new AS (SELECT id, customer, amount, day FROM arrivals) INSERT INTO sales SELECT *"
            " FROM new"
        ),
        "DELETE FROM totals WHERE n = 0",
        "OPTIMIZE sales",
    ]


def test_writes_of_frames(record):
    mode = "SET spark.sql.sources.partitionOverwriteMode"
    assert statements(record("by_frame")) == [
        (
            "INSERT INTO sales REPLACE WHERE day = '2026-01-01' SELECT s.id, s.customer, s.amount,"
            " s.day FROM sales AS s LEFT JOIN arrivals AS a ON s.id = a.id WHERE a.day IS NULL"
        ),
        f"{mode} = dynamic",
        "INSERT OVERWRITE sales SELECT id, customer, amount, day FROM arrivals AS a",
        f"{mode} = static",
        (
            "INSERT INTO sales REPLACE WHERE day = DATE '2026-01-03' SELECT id, customer, amount, day"
            " FROM arrivals AS a"
        ),
        "INSERT INTO totals SELECT day, count(1) AS n FROM arrivals AS a GROUP BY day",
        (
            "INSERT INTO sales (id, day) SELECT id, day FROM VALUES (1, DATE '2026-01-01') AS"
            " rows_from_python(id, day)"
        ),
    ]


def test_calls_of_delta(record):
    assert statements(record("by_builder")) == [
        "DELETE FROM sales WHERE day < DATE '2026-01-01'",
        "UPDATE sales SET amount = amount + 1 WHERE customer = 3",
        (
            "MERGE INTO sales AS t USING (SELECT id, customer, amount, day, seen FROM (SELECT id,"
            " customer, amount, day, seen, row_number() OVER (PARTITION BY id ORDER BY id) AS"
            " row_of_key FROM arrivals) AS q WHERE row_of_key = 1) AS a ON t.id = a.id"
            " WHEN MATCHED AND a.amount > t.amount THEN DELETE"
            " WHEN MATCHED THEN UPDATE SET amount = a.amount"
            " WHEN NOT MATCHED AND a.id > 3 THEN INSERT (id, day) VALUES (a.id, a.day)"
        ),
        "OPTIMIZE sales WHERE day = '2026-01-01' ZORDER BY (id)",
        "VACUUM sales RETAIN 200 HOURS",
        "RESTORE TABLE sales TO VERSION AS OF 1",
        "DELETE FROM totals",
    ]


def test_a_function_of_python_is_any_rows_of_the_tables_that_it_reads(record):
    (text,) = statements(record("by_python"))
    assert text == (
        "INSERT INTO sales (id, day) SELECT id, day FROM (SELECT CAST(spark_project(arrivals.id) AS"
        " BIGINT) AS id, CAST(spark_project(arrivals.id) AS DATE) AS day FROM arrivals) AS q"
    )


def test_values_that_flow_into_a_statement(record):
    records = record("incremental")
    assert statements(records) == [
        "INSERT INTO totals SELECT day, (:count_1 + 1) FROM arrivals WHERE day > :last_1"
    ]
    reads = {one["name"]: one["sql"] for one in records if one["kind"] == "read"}
    assert reads["last_1"] == "SELECT max(day) AS last FROM sales"
    assert reads["count_1"] == "SELECT count(*) AS n FROM arrivals WHERE id > 3"
    assert not [one for one in records if one["kind"] == "used"]


def test_results_that_decide_the_path(record):
    line = JOBS[: JOBS.index("    if spark.table")].count("\n") + 1
    records = record("deciding")
    used = [(one["name"], one["line"]) for one in records if one["kind"] == "used"]
    assert used == [("collect_1", line + 2)]
    assert [one["sql"] for one in records if one["kind"] == "decided"] == [":count_1 <= 0"]
    assert [one["name"] for one in record("hidden") if one["kind"] == "used"] == ["count_1"]


def test_both_outcomes_of_comparisons(record):
    choices, told = PathChoices(), []
    while not told or choices.advance():
        told.append(record("either", choices=choices))
    known = [[one["sql"] for one in some if one["kind"] == "decided"] for some in told]
    first, second = ":count_1 = 0", ":count_1 <> 0"
    assert known == [[first], [second, ":count_2 <= 0"], [second, ":count_2 > 0"]]
    assert [statements(some) for some in told] == [
        [],
        [],
        [
            ("INSERT INTO sales SELECT id, customer, amount, day FROM arrivals WHERE amount > 0"),
            "INSERT INTO totals VALUES (DATE '2026-01-01', (:m_1 + 1))",
        ],
    ]
    (note,) = [one["problem"] for one in told[2] if one["kind"] == "note"]
    assert note.startswith(":m_1 is NULL on empty tables")


def test_nothing_is_written_elsewhere(record):
    records = record("elsewhere")[1:]
    assert statements(records) == []
    found = [(one["kind"], one["problem"].partition(",")[0]) for one in records]
    assert found == [
        ("left out", "write.parquet writes to '/lake/x'"),
        ("gap", "save writes to '/lake/y'"),
        ("gap", "the statement writes to '/lake/z'"),
        ("gap", "the statement writes to '/lake/q'"),
        ("gap", "the statement writes to '/lake/d'"),
        ("gap", "writeTo.create writes to '/lake/r'"),
        ("gap", "the statement writes to '/lake/db'"),
        ("gap", "a write to totals that adds id"),
    ]


def test_batches_of_streams(record):
    records = record("streams")[1:]
    line = JOBS[: JOBS.index("def streams")].count("\n") + 1
    rows = "FROM (SELECT CAST(spark_globallimit(arrivals.id) AS BIGINT) AS id"
    told = [(one.get("stream", 0) and one["stream"] - line, one.get("sink", ""), one["kind"],
             one.get("sql") or one["problem"]) for one in records]  # fmt: skip
    assert [one[:3] for one in told] == [
        (4, "sales", "statement"),
        (8, "totals", "statement"),
        (9, "sales", "statement"),
        (0, "", "gap"),
        (0, "", "gap"),
        (0, "", "left out"),
        (0, "", "statement"),
    ]
    texts = [one[3] for one in told]
    assert texts[0].startswith("INSERT INTO sales SELECT id, customer, amount, day ")
    assert rows in texts[0]
    assert texts[1].startswith(
        "INSERT OVERWRITE totals SELECT CAST(day AS DATE) AS day, CAST(n AS "
    )
    assert texts[1].endswith("FROM rows_from_python")
    assert texts[2].startswith("INSERT INTO sales (id) SELECT CAST(id AS BIGINT) AS id FROM rows_")
    assert texts[3:] == [
        "a stream that writes to totals, which it reads, is not understood",
        "a stream writes to the table other, which no DDL declares; add its CREATE TABLE",
        "a stream is written to console",
        "OPTIMIZE sales",
    ]


def test_the_function_of_a_batch_is_called_once(record):
    records = record("by_batch")[1:]
    first, second = records
    assert first["stream"] == second["stream"] > 0
    assert (first["sink"], first["kind"], second["kind"]) == ("", "statement", "gap")
    assert "FROM arrivals) AS q) AS b ON t.id = b.id WHEN MATCHED THEN DELETE" in first["sql"]
    assert second["problem"] == (
        "a write to sales with an idempotent write (txnAppId) is not understood"
    )


def test_the_arguments_of_a_call(record):
    assert statements(record("arguments(day='2026-01-01')")) == [
        "DELETE FROM sales WHERE day = DATE '2026-01-01' AND id = 3"
    ]


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("writes_a_file", "it writes to the file 'kept.txt'"),
        ("raises", "it raised ValueError: no more"),
        ("unknown_path", "DeltaTable.forPath names '/lake/unknown', which no DDL declares"),
    ],
)
def test_a_function_that_does_not_return(record, function, said):
    _, *before, last = record(function)
    assert last["kind"] == "raised"
    assert last["line"] > 0
    assert said in last["problem"]
    assert len(statements(before)) == (function != "unknown_path")
    assert not Path("kept.txt").exists()


def test_delta_does_not_bind_the_arguments_of_a_text(session):
    spark = session.fresh()
    with pytest.raises(Exception, match="UNBOUND_SQL_PARAMETER"):
        spark.sql("SELECT :x AS x", args={"x": 3})
    spark.conf.set(SUBSTITUTION, "true")
    assert spark.sql("SELECT :x AS x", args={"x": 3}).first().x == 3


def test_ddl_that_spark_does_not_take(record):
    with pytest.raises(LitmusError, match="Spark does not create the table t: "):
        record("raises", "CREATE TABLE t (id NUMBER(3)) USING delta")


WRITES = """
from delta.tables import DeltaTable
from pyspark.sql import functions as F

def new(spark):
    return spark.table("arrivals").drop("seen")

def append(spark):
    new(spark).select("day", "id", "customer", "amount").write.mode("append").saveAsTable("sales")

def fewer(spark):
    new(spark).select("day", "id").writeTo("sales").append()

def overwrite(spark):
    new(spark).where("id > 2").write.mode("overwrite").saveAsTable("sales")

def partitions(spark):
    new(spark).where("id > 2").writeTo("sales").overwritePartitions()

def condition(spark):
    new(spark).where("day = '2026-01-02'").writeTo("sales").overwrite(F.col("day") == "2026-01-02")

def merge(spark):
    (DeltaTable.forName(spark, "sales").alias("s")
        .merge(new(spark).alias("n"), (F.col("s.id") == F.col("n.id")) & (F.col("n.amount") < 9))
        .whenMatchedDelete("n.amount > s.amount")
        .whenMatchedUpdate(set={"amount": F.col("s.amount") + F.col("n.amount")})
        .whenNotMatchedInsertAll().whenNotMatchedBySourceDelete(F.col("s.amount").isNull()).execute())

def change(spark):
    t = DeltaTable.forName(spark, "sales")
    t.update(F.col("day") > "2026-01-01", {"amount": F.col("amount") * 2})
    t.delete((F.col("amount") > 8) | F.col("customer").isin(1, 2))
"""


@pytest.mark.wide
def test_the_recorded_statements_change_a_table_as_the_function_does(session, tmp_path):
    file = tmp_path / "writes.py"
    file.write_text(WRITES)
    module = {}
    exec(compile(WRITES, "writes.py", "exec"), module)
    spark = session.fresh({"spark.sql.sources.default": "delta"})
    ddl = DDL.rpartition(";")[0]

    def result(change):
        for text in ddl.split(";"):
            spark.sql(text)
        spark.sql(
            "INSERT INTO sales VALUES (1, 5, 3, '2026-01-01'), (2, 2, 7, '2026-01-02'),"
            " (3, 6, NULL, '2026-01-02'), (4, 7, 1, '2026-01-03')"
        )
        spark.sql(
            "INSERT INTO arrivals VALUES (1, 5, 4, '2026-01-01', NULL), (4, 9, 1, '2026-01-02',"
            " NULL), (8, 9, 1, '2026-01-02', NULL)"
        )
        try:
            change()
            return sorted(map(str, spark.table("sales").collect()))
        finally:
            for name in ("sales", "arrivals"):
                spark.sql(f"DROP TABLE {name}")

    for name in ("append", "fewer", "overwrite", "partitions", "condition", "merge", "change"):
        found = []
        record_function(session, read_function_target(f"{file}:{name}"), ddl, found.append)
        texts = statements(found)
        assert texts, found
        done = result(lambda name=name: module[name](spark))
        assert done == result(lambda texts=texts: [spark.sql(text) for text in texts]), texts


def frames(spark):
    """DataFrames on the tables a and b."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it

    a, b = spark.table("plan_a"), spark.table("plan_b")
    yield a.filter("id > 1").withColumn("twice", F.col("v") * 2).filter("twice > 4")
    yield a.groupBy("k").agg(F.sum("v").alias("s"), F.max("id").alias("m")).filter("s > 3")
    yield a.alias("x").join(b.alias("y"), "id", "left").select("x.id", "y.k", "x.v")
    yield a.join(b.withColumn("one", F.lit(1)), "id", "left").select("id", "one")
    yield a.join(b.filter("id > 1"), "id", "full").select("id")
    yield a.join(b.select("id", F.col("v").alias("w")), "id").crossJoin(b.drop("v", "k"))
    yield a.select("k").distinct().union(b.select("k").distinct()).groupBy("k").count()
    yield a.withColumn("n", F.row_number().over(Window.partitionBy("k").orderBy("id"))).where(
        "n = 1"
    )
    yield a.where(F.col("k").isin("p", "it's") & F.col("v").between(1, 5)).drop("v")
    yield a.select(
        F.when(F.col("v") > 2, "big").otherwise("small").alias("size"), "id"
    ).dropDuplicates()
    yield spark.sql("SELECT k, count(*) AS n FROM plan_a GROUP BY k").where("n > 1")


def test_the_query_of_a_plan_returns_the_rows_of_the_frame(session):
    spark = session.fresh()
    for name in ("plan_a", "plan_b"):
        spark.sql(f"CREATE TABLE {name} (id BIGINT, k STRING, v INT) USING parquet")
    spark.sql(
        "INSERT INTO plan_a VALUES (1, 'p', 1), (2, 'p', 5), (3, 'it\\'s', 3), (4, NULL, NULL)"
    )
    spark.sql("INSERT INTO plan_b VALUES (1, 'q', 1), (3, 'p', 2), (3, 'q', 4), (9, 'p', 1)")
    export = PlanExport(session, {f"default.{n}": n for n in ("plan_a", "plan_b")})
    try:
        for frame in frames(spark):
            text = PlanWriter().query(export.plan(frame))
            assert "spark_" not in text, text
            rows, others = frame.collect(), spark.sql(text).collect()
            assert sorted(map(str, map(tuple, rows))) == sorted(map(str, map(tuple, others))), text
        limited = PlanWriter().query(export.plan(spark.table("plan_a").limit(2)))
        assert "CAST(spark_globallimit(plan_a.id) AS BIGINT) AS id" in limited
    finally:
        for name in ("plan_a", "plan_b"):
            spark.sql(f"DROP TABLE {name}")


@pytest.fixture
def predict(tmp_path, call):
    """predict(text, function, *words): what one sees; no process is left."""

    def run(text, function, *words):
        (tmp_path / "ddl.sql").write_text(DDL)
        (tmp_path / "jobs.py").write_text(text)
        file, ddl = tmp_path / "jobs.py", tmp_path / "ddl.sql"
        seen = call("predict", "--run", f"{file}:{function}", "--ddl", ddl, *words)
        left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
        assert str(tmp_path) not in left.stdout
        status, out, error = seen
        line, _, rest = error.partition("\n")
        assert line.startswith(f"isolitmus: --run executes {function.partition('(')[0]}")
        return status, out, rest

    return run


def test_a_function_that_never_returns(predict):
    text = "def forever(spark):\n    spark.sql('OPTIMIZE sales')\n    while True:\n        pass\n"
    assert predict(text, "forever", "--time", "3") == (
        3,
        "",
        "isolitmus: the time limit of 5 s ended it\n",
    )


def test_all_paths_of_a_function(predict):
    text = "def f(spark):\n    if spark.table('sales').count() > 0:\n        spark.sql('DELETE FROM sales')\n"
    status, out, error = predict(text, "f")
    assert (status, error) == (1, "")
    assert out.startswith(
        "f (jobs.py:1) was executed on empty tables: 0 statements on this path\n"
        "  jobs.py:2  count() of SELECT count(*) AS n FROM sales\n"
        "\n"
        "f (jobs.py:1) with count() > 0 in line 2: 1 statement on this path\n"
        "  jobs.py:2  count() of SELECT count(*) AS n FROM sales\n"
        "  jobs.py:3  DELETE FROM sales\n"
    )
    assert "Not understood" not in out


WAYS_OUT = """
def f(spark):
    import ctypes, sqlite3, subprocess
    for effect in (
        lambda: ctypes.CDLL(None).rename(b"OUT/kept", b"OUT/renamed"),
        lambda: spark._jvm.java.nio.file.Files.createFile(spark._jvm.java.nio.file.Path.of("OUT/java", [])),
        lambda: spark._jvm.java.lang.Runtime.getRuntime().exec("touch OUT/process").waitFor(),
    ):
        try:
            effect()
        except Exception:
            pass
    spark.sql("DELETE FROM sales")
    spark.sql("INSERT INTO totals VALUES (DATE '2026-01-01', 3)")
"""


@pytest.mark.skipif(not wall_version(), reason="this machine has no Landlock")
def test_neither_a_library_nor_java_writes_elsewhere(predict, tmp_path):
    out = tmp_path / "outside"
    out.mkdir()
    (out / "kept").write_text("kept")
    status, text, _ = predict(WAYS_OUT.replace("OUT", str(out)), "f")
    assert status == 1
    assert "2 statements on this path" in text
    assert [*out.iterdir()] == [out / "kept"]


FALLBACKS = """
import time
from delta.exceptions import ConcurrentAppendException

def fallback(spark):
    try:
        spark.sql("UPDATE sales SET amount = 1 WHERE id = 1")
    except ConcurrentAppendException:
        spark.sql("UPDATE sales SET amount = NULL WHERE id = 1")

def retry(spark):
    for attempt in range(3):
        try:
            return spark.table("arrivals").drop("seen").write.mode("append").saveAsTable("sales")
        except Exception as error:
            if "concurrent" not in str(error).lower():
                raise
            time.sleep(3600)
    spark.sql("DELETE FROM totals")

def plain(spark):
    try:
        n = 3
    finally:
        spark.sql("DELETE FROM totals")
"""


def test_a_handler_of_a_conflict_is_a_path(session, tmp_path):
    file = tmp_path / "jobs.py"
    told = {}
    for function in ("fallback", "retry", "plain"):
        file.write_text(FALLBACKS)
        choices, told[function] = PathChoices(), []
        while not told[function] or choices.advance():
            found = []
            target = read_function_target(f"{file}:{function}")
            record_function(session, target, DDL.rpartition(";")[0] + TOTALS, found.append, choices)
            shown = [one.get("sql") or one["problem"].partition(":")[0] for one in found[1:]]
            told[function].append(shown)
    update = "UPDATE sales SET amount = {} WHERE id = 1"
    append, read = "ConcurrentAppendException", "ConcurrentDeleteReadException"
    assert told["fallback"] == [
        [update.format(1)], [read, f"it raised {read}"], [append, update.format("NULL")],
    ]  # fmt: skip
    insert = "INSERT INTO sales SELECT id, customer, amount, day FROM arrivals"
    lost = {tuple(one) for one in told["retry"]}
    assert {(insert,), (append, insert), (append,) * 3 + ("DELETE FROM totals",)} <= lost
    assert told["plain"] == [["DELETE FROM totals"]]


@pytest.mark.wide
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("import os; os._exit(3)", "jobs.py:1: the process of f ended with status 3; it had"),
        ("spark.table('sale')", "jobs.py:2: f did not return on empty tables: it raised Analysis"),
        ("exit()", "jobs.py:2: f did not return on empty tables: it raised SystemExit"),
    ],
)
def test_a_function_that_ends_otherwise(predict, body, said):
    status, out, error = predict(f"def f(spark):\n    {body}\n", "f")
    assert (status, out) == (2, "")
    assert error.startswith(f"isolitmus: {said}")
    assert error.count("\n") == 1
