"""Jobs in every interleaving of their commits, on real Delta: a table that no order gives is found, a retry that is
right has none, and what cannot be interleaved is refused.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from isolitmus.conformance import interleave
from isolitmus.conformance.ending import Ending
from isolitmus.conformance.interleaved import Interleaved, OneInterleaving
from isolitmus.model.errors import IsolitmusError


def one(order, *, failed=(), serial=(), rows=()):
    ends = {
        name: Ending(
            name, "committed", None, None, (), (), ValueError() if name in failed else None
        )
        for name in dict.fromkeys(order)
    }
    return OneInterleaving(tuple(order), ends, rows, serial)


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("aabb", "a b"),
        ("abab", "a.start b.start a.commit b.commit"),
        ("abba", "a.start b a.commit"),
        ("ababb", "a.start b.start a.commit b.commit b.commit"),
        ("ab", "a b"),
        ("aba", "a.start b a.commit"),
        ("bbaaa", "b a"),
    ],
)
def test_steps_are_said_as_a_schedule(order, said):
    assert one(order).schedule == said


def test_a_result_is_a_line_and_as_a_text_it_has_what_nothing_explains():
    bad = one("abba", rows=("(1,)",))
    found = Interleaved("t", (one("aabb", serial=("a b",)), bad), {"a b": ("(2,)",), "b a": None})
    assert not found.explained
    assert repr(found) == (
        "a and b on t: 2 interleavings, 1 of them leaves a table that no serial order gives"
    )
    assert str(found).splitlines()[1:] == [
        "",
        "a.start b a.commit",
        "  a began no transaction on the table",
        "  b began no transaction on the table",
        "  leaves (1,)",
        "  a b gives (2,)",
        "  b a has a job that fails",
    ]
    fine = Interleaved("t", (one("aabb", serial=("a b",), failed="b"),), {})
    assert fine.explained
    assert [each.failed for each in fine.failed] == [("b",)]


@pytest.mark.parametrize("count", [0, 1, 4])
def test_two_or_three_jobs_are_interleaved(count):
    with pytest.raises(IsolitmusError, match=f"^{count} jobs? to interleave; two or three"):
        interleave(None, "t", *["DELETE FROM t"] * count)


@pytest.fixture
def spark(session):
    fresh = session.fresh()
    fresh.sql("CREATE DATABASE woven")
    fresh.sql("USE woven")
    fresh.sql("CREATE TABLE totals (n INT) USING delta")
    fresh.sql("INSERT INTO totals VALUES (1)")
    yield fresh
    fresh.sql("DROP DATABASE woven CASCADE")


def value(spark):
    return spark.table("totals").collect()[0].n


def with_retry(job, times=3):
    """The job, tried again after a conflict."""
    from delta.exceptions import DeltaConcurrentModificationException

    def again():
        for left in reversed(range(times)):
            try:
                return job()
            except DeltaConcurrentModificationException:
                if not left:
                    raise

    return again


@pytest.mark.spark
def test_a_retry_of_the_whole_job_is_right(spark):
    def add():
        spark.sql("UPDATE totals SET n = n + 1")

    def double():
        spark.sql("UPDATE totals SET n = n * 2")

    found = interleave(spark, "totals", with_retry(add), with_retry(double))
    assert found.explained, found
    assert not found.failed
    assert len(found.interleavings) == 4
    retried = [one for one in found.interleavings if "start" in one.schedule]
    assert len(retried) == 2
    assert all(len(one.order) == 5 for one in retried)
    assert value(spark) == 1


@pytest.mark.spark
def test_a_retry_of_the_write_alone_loses_an_update(spark):
    def add():
        n = value(spark)
        with_retry(lambda: spark.sql(f"UPDATE totals SET n = {n + 1}"))()

    found = interleave(
        spark, "totals", add, with_retry(lambda: spark.sql("UPDATE totals SET n = n * 2"))
    )
    (wrong,) = found.unexplained
    assert wrong.schedule == "add.start job2 add.commit add.commit"
    assert wrong.rows == ("(2,)",)
    assert found.alone == {"add job2": ("(4,)",), "job2 add": ("(3,)",)}
    assert not found.failed
    assert str(found).splitlines()[-2:] == ["  add job2 gives (4,)", "  job2 add gives (3,)"]


@pytest.mark.spark
def test_who_is_refused_is_left_out_of_the_order(spark):
    found = interleave(spark, "totals", "UPDATE totals SET n = n + 1", "DELETE FROM totals")
    assert found.explained, found
    assert {one.serial for one in found.failed} == {("update",), ("delete",)}


@pytest.mark.spark
def test_a_job_of_two_commits_is_held_at_both(spark):
    def twice():
        spark.sql("INSERT INTO totals VALUES (2)")
        spark.sql("INSERT INTO totals VALUES (3)")

    def count():
        spark.sql("INSERT INTO totals SELECT 10 * count(*) FROM totals")

    found = interleave(spark, "totals", twice, count)
    assert any("twice.commit count" in one.schedule for one in found.interleavings)
    assert found.unexplained
    assert all(not one.failed for one in found.unexplained)


def never(spark):
    spark.table("totals").collect()


def random_key(spark):
    spark.sql(f"INSERT INTO totals VALUES ({time.monotonic_ns() % 2**31})")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("job", "said"),
    [
        (never, "^never commits nothing to totals, in none of "),
        (random_key, "gave another table when they ran again, .* columns"),
    ],
)
def test_what_cannot_be_interleaved_is_refused(spark, job, said):
    def body():
        job(spark)

    body.__name__ = job.__name__
    with pytest.raises(IsolitmusError, match=said):
        interleave(spark, "totals", body, "UPDATE totals SET n = n + 1")
    assert value(spark) == 1


@pytest.mark.spark
def test_a_commit_that_nothing_can_hold_is_refused(spark):
    """Of another engine: a file in the log."""
    location = spark.sql("DESCRIBE DETAIL totals").collect()[0]["location"]
    log = Path(location.removeprefix("file:")) / "_delta_log"

    def beside():
        spark.sql("INSERT INTO totals VALUES (8)")
        number = len(list(log.glob("*.json")))
        (log / f"{number:020}.json").write_text('{"commitInfo": {"operation": "OTHER"}}\n')

    said = r"^version \d+ \(OTHER: no file\) is of none of beside and update as they were held: "
    with pytest.raises(IsolitmusError, match=said):
        interleave(spark, "totals", beside, "UPDATE totals SET n = n + 1")


@pytest.mark.spark
def test_what_commits_in_a_pool_is_held_there(spark):
    def pooled():
        with ThreadPoolExecutor() as pool:
            pool.submit(spark.sql, "UPDATE totals SET n = n + 1").result()

    found = interleave(spark, "totals", pooled, "UPDATE totals SET n = n * 2")
    assert found.explained, found
    assert len(found.interleavings) == 4


@pytest.mark.spark
def test_columns_and_what_comes_before(spark):
    spark.sql("CREATE TABLE log (said STRING) USING delta")
    spark.sql("CREATE TABLE stamped (k INT, at BIGINT) USING delta")

    def stamp():
        spark.sql("INSERT INTO log VALUES ('stamped')")
        spark.sql(f"INSERT INTO stamped VALUES (1, {time.monotonic_ns()})")

    found = interleave(
        spark,
        "stamped",
        stamp,
        "INSERT INTO stamped SELECT 2, 0",
        columns=["k"],
        before=lambda: spark.sql("TRUNCATE TABLE log"),
    )
    assert found.explained, found
    assert spark.table("log").count() == 1


@pytest.mark.spark
def test_too_many_are_refused(spark):
    said = "^update and update2 have more than 2 interleavings; interleave fewer jobs"
    with pytest.raises(IsolitmusError, match=said):
        interleave(spark, "totals", *["UPDATE totals SET n = n + 1"] * 2, most=2)
