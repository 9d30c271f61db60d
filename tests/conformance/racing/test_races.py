"""Races of people's own code: any callable is parked, overtaken and released; nothing stays behind.

Of statements that are given as texts the model says how they end, and that is how they do.
"""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from isolitmus.conformance import race
from isolitmus.conformance.delta.tables import make_tables
from isolitmus.model.errors import IsolitmusError, TimeLimit

pytestmark = pytest.mark.spark


@pytest.fixture
def delta_spark(spark):
    """The fixtures of isolitmus race on this one."""
    return spark


@pytest.fixture
def spark(session):
    fresh = session.fresh()
    fresh.sql("CREATE DATABASE race")
    fresh.sql("USE race")
    fresh.sql("CREATE TABLE t (id INT, part INT) USING delta PARTITIONED BY (part)")
    fresh.sql("INSERT INTO t VALUES (1, 0), (2, 1)")
    yield fresh
    fresh.sql("DROP DATABASE race CASCADE")


def rows(spark):
    return sorted(tuple(row) for row in spark.table("t").collect())


def test_who_is_overtaken_fails_and_says_by_whom(spark):
    from delta.exceptions import ConcurrentAppendException

    with race(spark, "t") as run:
        delete = run.park(lambda: spark.sql("DELETE FROM t WHERE part = 0"), "delete")
        assert not delete.ended
        spark.sql("INSERT INTO t VALUES (100, 0)")
        ending = delete.release()
    assert (ending.outcome, ending.read_version, ending.version) == (
        "ConcurrentAppendException",
        1,
        None,
    )
    first, overtaker, message = str(ending).splitlines()
    assert first == repr(ending)
    assert (
        first == "delete read version 1 and ended with ConcurrentAppendException"
        " (DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT)"
    )
    assert (
        overtaker
        == "  concurrent commit: version 2 (WRITE: 1 file added in part=0, a blind append)"
    )
    assert message == f"  {ending.message}"
    assert (
        "a concurrent WRITE added data to table spark_catalog.race.t committed at version 2"
        in message
    )
    assert (ending.committed, ending.conflict, ending.unpredicted) == (False, True, "")
    with pytest.raises(ConcurrentAppendException):
        ending.raise_if_conflict()
    assert rows(spark) == [(1, 0), (2, 1), (100, 0)]


def test_a_dataframe_and_delta_table_race_as_well(spark, delta_race):
    from delta.tables import DeltaTable

    run = delta_race("t")
    append = run.park(
        lambda: (
            spark.sql("SELECT 5 AS id, 0 AS part")
            .write.format("delta")
            .mode("append")
            .saveAsTable("t")
        ),
        "append",
    )
    update = run.park(
        lambda: DeltaTable.forName(spark, "t").update("part = 1", {"id": "id + 1"}), "update"
    )
    first, second = append.release(), update.release()
    assert (first.outcome, first.version, first.concurrent_commits) == ("committed", 2, ())
    assert (second.outcome, second.version) == ("committed", 3)
    assert [commit.operation for commit in second.concurrent_commits] == ["WRITE"]
    assert str(second).startswith(
        "update read version 1 and committed as version 3\n  concurrent commit: version 2 (WRITE"
    )
    assert rows(spark) == [(1, 0), (3, 1), (5, 0)]


def test_what_never_commits_is_not_parked(spark):
    with race(spark, "t") as run:
        nothing = run.park(lambda: spark.sql("DELETE FROM t WHERE part = 7"), "nothing")
        reader = run.park(lambda: spark.table("t").collect(), "reader")
        broken = run.park(lambda: spark.sql("DELETE FROM t WHERE nobody = 7"), "broken")
        assert (reader.ended, broken.ended) == (True, True)
        assert [r.release().outcome for r in (nothing, reader, broken)] == [
            "no-op",
            "no-op",
            "error:ExtendedAnalysisException",
        ]


def test_a_race_has_a_timeline(spark):
    def cleanup():
        spark.sql(DELETE)

    with race(spark, "t") as run:
        waits = run.park(cleanup)
        spark.sql(INSERT)
        run.sql("INSERT INTO t VALUES (9, 1)", "other")
        assert (
            repr(run.timeline) == "cleanup            ●           reads version 1, parked\n"
            "version 2 (WRITE)      ●       commits version 2\n"
            "other                      ●   reads version 2, commits version 3"
        )
        waits.release()
        assert (
            repr(run.timeline).splitlines()[0]
            == "cleanup            ├───────────┤   reads version 1, aborts with"
            " ConcurrentAppendException"
        )
    assert run.story.splitlines()[3].startswith("cleanup read version 1 and ended with")


def test_phases(spark):
    with race(spark, "t") as run:
        early = run.park(lambda: spark.sql("DELETE FROM t WHERE part = 0"), "early", until="init")
        spark.sql("INSERT INTO t VALUES (100, 0)")
        early.go_on("commit")
        ending = early.release()
    assert (ending.outcome, ending.read_version, ending.concurrent_commits) == ("committed", 2, ())
    assert rows(spark) == [(2, 1)]


def test_at_the_end_whatever_is_parked_is_let_go(spark):
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError), race(spark, "t") as run:
        run.park(lambda: spark.sql("DELETE FROM t WHERE part = 0"))
        raise ZeroDivisionError
    assert threading.active_count() == before
    assert rows(spark) == [(2, 1)]


def test_a_time_limit_is_an_error_of_one_sentence(spark):
    said = pytest.raises(TimeLimit, match="slow did not reach its commit or end within 0 s")
    with said, race(spark, "t", seconds=0) as run:
        run.park(lambda: spark.sql("DELETE FROM t WHERE part = 0"), "slow")


@pytest.mark.parametrize("table", ["nobody", "a table"])
def test_a_race_needs_a_delta_table(spark, table):
    said = pytest.raises(
        IsolitmusError, match=f"'{table}' is not a Delta table that Spark can read"
    )
    with said, race(spark, table):
        pass


DELETE = "DELETE FROM t WHERE part = 0"
INSERT = "INSERT INTO t VALUES (100, 0)"
VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture
def opened(session, make):
    """opened(level, …): a table t of (1, 0), (2, 0), (3, 1) in a session."""
    rooms = []

    def opened(level, *, partitioned=True, properties=()):
        litmus = make("r", partitioned=partitioned, properties=properties, r="SELECT 1")
        rooms.append(make_tables(litmus, level, session))
        client = rooms[-1].__enter__().client("t")
        client.sql("INSERT INTO t VALUES (1, 0), (2, 0), (3, 1)")
        return client

    yield opened
    for room in rooms:
        room.__exit__(None, None, None)


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("level", "partitioned", "properties"),
    [
        ("Serializable", True, {}),
        ("Serializable", False, VECTORS),
        ("WriteSerializable", True, VECTORS),
        ("WriteSerializable", False, {}),
    ],
)
def test_what_is_predicted_happens(opened, level, partitioned, properties):
    """After a DELETE of one row of two, which with deletion vectors leaves the file as it is."""
    spark = opened(level, partitioned=partitioned, properties=properties)
    spark.sql("DELETE FROM t WHERE id = 2")
    with race(spark, "t") as run:
        delete = run.park(DELETE)
        run.sql(INSERT)
        overtaken = delete.release()
        update = run.park("UPDATE t SET id = id + 1 WHERE id = 100")
        other = run.park("DELETE FROM t WHERE id = 3", "other")
        first, second = update.release(), other.release()
    for ending in (overtaken, first, second):
        assert ending.prediction.agrees, str(ending)
        assert ending.prediction.outcome == ending.outcome
    committed = level == "WriteSerializable"
    assert overtaken.outcome == ("committed" if committed else "ConcurrentAppendException")
    assert overtaken.prediction.serial == (
        "The final table equals that of the serial order delete → insert." if committed else ""
    )
    assert (first.outcome, second.outcome) == ("committed", "ConcurrentAppendException")
    assert second.prediction.why[-1] == "other aborts with ConcurrentAppendException"


def test_a_hole_has_no_serial_order(opened):
    spark = opened("WriteSerializable")
    with race(spark, "t") as run:
        delete = run.park(DELETE)
        run.sql(INSERT)
        run.sql("INSERT INTO t SELECT sum(id), 1 FROM t WHERE part = 0")
        said = str(delete.release())
    assert (
        said == "delete read version 2 and committed as version 5\n"
        "  concurrent commit: version 3 (WRITE: 1 file added in part=0, a blind append)\n"
        "  concurrent commit: version 4 (WRITE: 1 file added in part=1)\n"
        "  as predicted:\n"
        "    No serial order of the writers produces the table at version 5."
    )


def test_a_statement_that_was_held_before_its_snapshot(spark):
    """What its subquery reads is planned before: the model knows that, too."""
    with race(spark, "t") as run:
        update = run.park("UPDATE t SET id = (SELECT max(id) FROM t) WHERE part = 1", until="init")
        run.sql("INSERT INTO t VALUES (100, 1)")
        update.go_on("commit")
        ending = update.release()
    assert (ending.outcome, ending.read_version) == ("committed", 2)
    assert ending.prediction.agrees, str(ending)
    assert rows(spark) == [(1, 0), (2, 1), (2, 1)]


@pytest.mark.parametrize(
    ("parked", "said"),
    [
        (
            DELETE,
            r"version 2 \(WRITE: 1 file .*\) was not committed by a statement that the race got as SQL text",
        ),
        ("SELECT * FROM t", "select only reads, so it has no commit to park at"),
        ("RESTORE TABLE t TO VERSION AS OF 1", "RESTORE"),
        ("INSERT INTO t SELECT 1, 0 FROM race.other", "transaction insert:1:"),
    ],
)
def test_without_a_prediction_there_is_a_reason(spark, parked, said):
    spark.sql("CREATE TABLE other (id INT) USING delta")
    with race(spark, "t") as run:
        waits = run.park(parked)
        (spark if parked == DELETE else run).sql(INSERT)
        ending = waits.release()
    assert ending.prediction is None
    assert re.search(said, ending.unpredicted), ending.unpredicted
    assert str(ending).endswith(f"\n  no prediction: {ending.unpredicted}")


def test_a_table_by_its_whole_name_or_by_path(spark):
    path = Path(spark.sql("DESCRIBE DETAIL t").collect()[0]["location"].removeprefix("file:"))
    for given, spelled in (("race.t", "race.t"), (path, f"delta.`{path}`")):
        with race(spark, given) as run:
            optimize = run.park(f"OPTIMIZE {spelled} WHERE part = 0")
            run.sql(f"INSERT INTO {spelled} VALUES (100, 0)")
            assert optimize.release().prediction.agrees


def test_a_path_may_have_what_means_something_in_a_url(spark, tmp_path):
    path = tmp_path / "a b%20#c?d"
    spark.sql(f"CREATE TABLE delta.`{path}` (id INT) USING delta")
    for given in (path, f"delta.`{path}`"):
        with race(spark, given) as run:
            assert run.park(f"INSERT INTO delta.`{path}` VALUES (1)").release().committed


def test_a_second_transaction_is_held_too(spark):
    """OPTIMIZE tries again after a conflict, and may be overtaken again."""
    spark.sql("INSERT INTO t VALUES (3, 0)")
    with race(spark, "t") as run:
        once, twice = run.park("OPTIMIZE t", "once"), run.park("OPTIMIZE t", "twice")
        run.sql("ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')")
        twice.next()
        assert not twice.ended
        first = once.release()
        second = twice.release()
    assert (first.outcome, first.read_version, first.again) == ("committed", 2, 3)
    assert first.prediction.agrees, str(first)
    assert second.outcome == "ConcurrentDeleteReadException"
    assert "twice was held at its second transaction" in second.unpredicted


def test_every_commit_of_a_statement_is_its_own(spark):
    with race(spark, "t") as run:
        vacuum = run.park(lambda: spark.sql("VACUUM t").collect(), "vacuum")
        vacuum.next()
        assert not vacuum.ended
        spark.sql(INSERT)
        ending = vacuum.release()
    assert (ending.commits, [c.version for c in ending.concurrent_commits]) == ((2, 4), [3])
    assert str(ending).startswith(
        "vacuum read version 1 and committed as version 2, then read version 2 and committed as"
        " version 4\n"
    )


def test_a_transaction_that_is_dropped_is_not_the_one_that_is_held(spark):
    """A DELETE without rows ends its transaction without a word; two others commit, one after the
    other.
    """

    def body():
        for statement in ("DELETE FROM t WHERE part = 7", INSERT, "INSERT INTO t VALUES (101, 0)"):
            spark.sql(statement)

    with race(spark, "t") as run:
        twice = run.park(body, "twice")
        assert (twice.ended, twice.read_version, rows(spark)) == (False, 1, [(1, 0), (2, 1)])
        spark.sql("INSERT INTO t VALUES (102, 0)")
        ending = twice.release()
        with pytest.raises(IsolitmusError, match="twice was released and cannot be held again"):
            twice.next()
    assert twice.release() is ending
    assert str(ending).splitlines()[:2] == [
        (
            "twice read version 1 and committed as version 3, then read version 3 and committed as"
            " version 4"
        ),
        "  concurrent commit: version 2 (WRITE: 1 file added in part=0, a blind append)",
    ]


def test_transactions_on_other_tables_pass(spark):
    """A log is written first, a staging table is made; then the raced table, by its path."""
    path = Path(spark.sql("DESCRIBE DETAIL t").collect()[0]["location"].removeprefix("file:"))
    spark.sql("CREATE TABLE log (said STRING) USING delta")

    def body():
        spark.sql("INSERT INTO log VALUES ('begun')")
        spark.sql("CREATE TABLE staging USING delta AS SELECT 0 AS part")
        spark.sql(f"DELETE FROM delta.`{path}` WHERE part IN (0)")
        spark.sql("INSERT INTO log VALUES ('done')")

    def elsewhere():
        spark.sql("INSERT INTO log VALUES ('elsewhere')")
        raise ValueError

    with race(spark, "t") as run:
        job, other = run.park(body, "job"), run.park(elsewhere, "other")
        assert (job.ended, other.ended) == (False, True)
        assert {row.said for row in spark.table("log").collect()} == {"begun", "elsewhere"}
        assert spark.table("staging").count() == 1
        spark.sql(INSERT)
        ending, nothing = job.release(), other.release()
    assert str(ending).splitlines()[:2] == [
        (
            "job read version 1 and ended with ConcurrentAppendException"
            " (DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT)"
        ),
        "  concurrent commit: version 2 (WRITE: 1 file added in part=0, a blind append)",
    ]
    assert (nothing.outcome, nothing.read_version, nothing.concurrent_commits) == (
        "error:ValueError",
        None,
        (),
    )
    assert str(nothing) == "other ended with error:ValueError and began no transaction on the table"
    nothing.raise_if_conflict()  # it is none


def in_a_pool(spark):
    with ThreadPoolExecutor() as pool:
        pool.submit(spark.sql, "DELETE FROM t WHERE part = 0").result()


def in_a_query(spark):
    def batch(frame, _):
        frame.sparkSession.sql("DELETE FROM race.t WHERE part = 0")

    query = spark.readStream.table("t").writeStream.foreachBatch(batch).trigger(availableNow=True)
    query.start().awaitTermination()


@pytest.mark.parametrize("body", [in_a_pool, in_a_query])
def test_what_commits_in_another_thread_is_held_there(spark, tmp_path, body):
    spark.conf.set("spark.sql.streaming.checkpointLocation", str(tmp_path))
    with race(spark, "t") as run:
        job = run.park(lambda: body(spark), "job")
        assert (job.ended, rows(spark)) == (False, [(1, 0), (2, 1)])
        spark.sql(INSERT)
        ending = job.release()
    assert (ending.read_version, ending.version) == (1, None)
    assert "DELTA_CONCURRENT_APPEND" in str(ending.error)
    assert [commit.version for commit in ending.concurrent_commits] == [2]


def test_what_cannot_be_held_is_refused(spark):
    """A commit of another engine: a file in the log."""
    path = Path(spark.sql("DESCRIBE DETAIL t").collect()[0]["location"].removeprefix("file:"))
    commit = path / "_delta_log" / f"{2:020}.json"
    with race(spark, "t") as run:
        said = pytest.raises(
            IsolitmusError,
            match=(
                r"other ended without being held, but version 2 \(OTHER: no file\)"
                r" was committed meanwhile:"
                " commits of other processes or engines cannot be parked"
            ),
        )
        with said:
            run.park(lambda: commit.write_text('{"commitInfo": {"operation": "OTHER"}}\n'), "other")


def test_a_job_that_tries_again_says_so(spark):
    from delta.exceptions import ConcurrentAppendException

    def body():
        for _ in range(2):
            with suppress(ConcurrentAppendException):
                return spark.sql("DELETE FROM t WHERE part = 0")

    with race(spark, "t") as run:
        job = run.park(body, "job")
        spark.sql(INSERT)
        ending = job.release()
    assert str(ending).splitlines()[:2] == [
        "job read version 1, retried on version 2 and committed as version 3",
        "  concurrent commit: version 2 (WRITE: 1 file added in part=0, a blind append)",
    ]
    assert rows(spark) == [(2, 1)]


def test_the_page_shows_what_a_race_prints(spark):
    testing = (Path(__file__).parents[3] / "docs" / "testing.md").read_text("utf-8")
    page = testing.partition("## A race outside pytest")[2]
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    printed = re.search(r"```text\n(.*?)\n```", page, re.DOTALL)[1]
    spark.sql("CREATE TABLE events (id INT, day INT) USING delta PARTITIONED BY (day)")
    spark.sql("INSERT INTO events VALUES (1, 2), (2, 3)")
    names = {}
    exec(compile(code, "testing.md", "exec"), names)
    with pytest.raises(AssertionError) as failed:
        names["test_cleanup_commits"](spark)
    assert str(failed.value).splitlines()[: len(printed.splitlines())] == printed.splitlines()
