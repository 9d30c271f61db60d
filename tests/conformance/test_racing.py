"""Races of people's own code: any callable is parked, overtaken and released; nothing stays behind."""

import threading

import pytest

from isolitmus.conformance import race
from isolitmus.model.errors import IsolitmusError, TimeLimit

pytest_plugins = ["isolitmus.conformance.fixtures"]
pytestmark = pytest.mark.spark


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
    assert str(ending) == (
        "delete read version 1 and ended with ConcurrentAppendException after version 1"
        " (DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT)\n"
        "  version 2 (WRITE: 1 file added in part=0, a blind append) overtook it"
    )
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
    assert (first.outcome, first.version, first.overtook) == ("committed", 2, ())
    assert (second.outcome, second.version) == ("committed", 3)
    assert [commit.operation for commit in second.overtook] == ["WRITE"]
    assert str(second).startswith(
        "update read version 1 and committed as version 3\n  version 2 (WRITE"
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


def test_phases(spark):
    with race(spark, "t") as run:
        early = run.park(lambda: spark.sql("DELETE FROM t WHERE part = 0"), "early", until="init")
        spark.sql("INSERT INTO t VALUES (100, 0)")
        early.go_on("commit")
        assert early.release().outcome == "committed"
    assert rows(spark) == [(2, 1)]


def test_at_the_end_whatever_is_parked_is_let_go(spark):
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError), race(spark, "t") as run:
        run.park(lambda: spark.sql("DELETE FROM t WHERE part = 0"))
        raise ZeroDivisionError
    assert threading.active_count() == before
    assert rows(spark) == [(2, 1)]


def test_a_time_limit_is_an_error_of_one_sentence(spark):
    said = pytest.raises(TimeLimit, match="slow did not come to its commit, nor end within 0 s")
    with said, race(spark, "t", seconds=0) as run:
        run.park(lambda: spark.sql("DELETE FROM t WHERE part = 0"), "slow")


@pytest.mark.parametrize("table", ["nobody", "a table"])
def test_a_race_needs_a_delta_table(spark, table):
    said = pytest.raises(IsolitmusError, match=f"'{table}' is no Delta table that Spark can read")
    with said, race(spark, table):
        pass
