"""Jobs in every interleaving of their commits, on real Delta: a table that no order gives is found,
a retry that is right has none, and what cannot be interleaved is refused.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from isolitmus.conformance import interleave
from isolitmus.conformance.racing.interleavings import InterleavingResult, InterleavingsResult
from isolitmus.conformance.racing.races import RaceOutcome
from isolitmus.model.errors import IsolitmusError


def one(order, *, failed=(), serial=(), rows=()):
    ends = {
        name: RaceOutcome(
            name, "committed", None, None, (), (), ValueError() if name in failed else None
        )
        for name in dict.fromkeys(order)
    }
    kinds = [
        min(order[:k].count(name), 1) * (2 - order[:k].count(name) % 2)
        for k, name in enumerate(order)
    ]
    actions = tuple(("begin", "start", "commit")[kind] for kind in kinds)
    return InterleavingResult(tuple(order), actions, ends, rows, serial)


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("aaabbb", "a b"),
        ("aabbab", "a.start b.start a.commit b.commit"),
        ("aabbba", "a.start b a.commit"),
        ("abbbaa", "a.begin b a.start a.commit"),
        ("abbaab", "a.begin b.start a.start a.commit b.commit"),
        ("aabbabbb", "a.start b.start a.commit b.commit b.start b.commit"),
        ("ab", "a b"),
        ("aaba", "a.start b a.commit"),
        ("bbbaaaaa", "b a"),
    ],
)
def test_steps_are_said_as_a_schedule(order, said):
    assert one(order).schedule == said


def test_a_result_is_a_line_and_as_a_text_it_has_what_nothing_explains():
    bad = one("aabbba", rows=("(1,)",))
    found = InterleavingsResult(
        "t", (one("aaabbb", serial=("a b",)), bad), {"a b": ("(2,)",), "b a": None}
    )
    assert not found.explained
    assert repr(found) == (
        "a and b on t: 2 interleavings, 1 of them ends with a table that no serial order produces"
    )
    assert repr(bad) == "a.start b a.commit"
    assert str(found).splitlines()[1:] == [
        "",
        "a.start b a.commit",
        "  a began no transaction on the table",
        "  b began no transaction on the table",
        "  final table: (1,)",
        "  serial order a → b: (2,)",
        "  serial order b → a: a job fails",
    ]
    fine = InterleavingsResult("t", (one("aaabbb", serial=("a b",), failed="b"),), {})
    assert fine.explained
    assert [each.failed for each in fine.failed] == [("b",)]


@pytest.mark.parametrize("count", [0, 1, 4])
def test_two_or_three_jobs_are_interleaved(count):
    with pytest.raises(
        IsolitmusError, match=f"^cannot interleave {count} jobs?; pass two or three"
    ):
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


@pytest.fixture
def delta_spark(spark):
    """The fixtures of isolitmus level on this one."""
    return spark


def value(spark):
    return spark.table("totals").collect()[0].n


def conflicts():
    """The classes of Delta's conflicts, but for the one that is called their base."""
    from delta import exceptions

    base = "DeltaConcurrentModificationException"
    return tuple(getattr(exceptions, name) for name in exceptions.__all__ if name != base)


def with_retry(job, caught=None, times=3):
    """The job, tried again after a conflict."""

    wanted = conflicts() if caught is None else caught

    def again():
        for left in reversed(range(times)):
            try:
                return job()
            except wanted:
                if not left:
                    raise

    return again


@pytest.mark.spark
@pytest.mark.drawn
def test_a_retry_of_a_statement_is_right(spark):
    """What it reads, its own snapshot has; also where one of them commits in a thread of a pool."""

    def add():
        spark.sql("UPDATE totals SET n = n + 1")

    def double():
        with ThreadPoolExecutor() as pool:
            pool.submit(spark.sql, "UPDATE totals SET n = n * 2").result()

    found = interleave(spark, "totals", with_retry(add), with_retry(double))
    assert found.explained, found
    assert not found.failed
    assert len(found.interleavings) == 6
    assert sum(len(one.order) > 6 for one in found.interleavings) == 2
    assert value(spark) == 1


@pytest.mark.spark
@pytest.mark.drawn
def test_what_is_read_before_the_snapshot_may_be_old(spark):
    """A retry of all of it does not help: where the other one commits in between, nothing is
    refused.
    """

    def add():
        spark.sql(f"UPDATE totals SET n = {value(spark) + 1}")

    found = interleave(spark, "totals", with_retry(add), "UPDATE totals SET n = n * 2")
    assert [one.schedule for one in found.unexplained] == [
        "again.begin update again.start again.commit"
    ]


@pytest.mark.spark
@pytest.mark.drawn
def test_a_retry_of_the_write_alone_loses_an_update(spark):
    def add():
        n = value(spark)
        with_retry(lambda: spark.sql(f"UPDATE totals SET n = {n + 1}"))()

    double = with_retry(lambda: spark.sql("UPDATE totals SET n = n * 2"))
    found = interleave(spark, "totals", add, double)
    assert [one.schedule for one in found.unexplained] == [
        "add.begin again add.start add.commit",
        "add.start again add.commit add.start add.commit",
    ]
    assert {one.rows for one in found.unexplained} == {("(2,)",)}
    assert found.alone == {"add again": ("(4,)",), "again add": ("(3,)",)}
    assert not found.failed
    assert str(found).splitlines()[-2:] == [
        "  serial order add → again: (4,)",
        "  serial order again → add: (3,)",
    ]


@pytest.mark.spark
@pytest.mark.drawn
def test_a_retry_that_catches_the_base_class_never_retries(spark):
    """None of Delta's conflicts is a subclass of it (delta-spark 4.4.0). Who is refused is left out
    of the order.
    """
    from delta.exceptions import DeltaConcurrentModificationException as wrong  # noqa: N813

    assert len(conflicts()) == 7
    assert not any(issubclass(conflict, wrong) for conflict in conflicts())
    jobs = ("UPDATE totals SET n = n + 1", "DELETE FROM totals")
    add, delete = (with_retry(lambda sql=sql: spark.sql(sql), wrong) for sql in jobs)
    found = interleave(spark, "totals", add, delete)
    assert found.explained, found
    assert {one.serial for one in found.failed} == {("again",), ("again2",)}
    assert repr(found).endswith("; in 2 of them a job fails")
    assert "ended with ConcurrentAppendException" in str(found)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.wide
def test_three_jobs_leave_a_table_that_no_order_gives(spark, delta_level):
    """The picture of the README: at WriteSerializable all three commit; statements as texts have a
    step less than callables.
    """
    spark.sql(
        "CREATE TABLE orders (id INT, amount INT, day STRING) USING delta PARTITIONED BY (day)"
    )
    spark.sql("INSERT INTO orders VALUES (1, 40, 'mon'), (2, 30, 'tue')")
    delta_level("orders", "WriteSerializable")

    def cleanup():
        spark.sql("DELETE FROM orders WHERE day = 'mon'")

    late_order = "INSERT INTO orders VALUES (100, 25, 'mon')"
    report = "INSERT INTO orders SELECT 0, sum(amount), 'total' FROM orders WHERE day = 'mon'"
    found = interleave(spark, "orders", cleanup, late_order, report)
    assert len(found.interleavings) == 54
    hole = next(
        one
        for one in found.interleavings
        if one.schedule == "cleanup.start insert insert3 cleanup.commit"
    )
    assert hole in found.unexplained
    assert all(not one.failed for one in found.unexplained)
    assert hole.rows == ("(0, 65, 'total')", "(100, 25, 'mon')", "(2, 30, 'tue')")


@pytest.mark.spark
@pytest.mark.drawn
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


@pytest.mark.spark
def test_a_job_that_never_commits_is_refused(spark):
    def body():
        never(spark)

    with pytest.raises(IsolitmusError, match=r"^body commits nothing to totals in any of "):
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

    said = r"^version \d+ \(OTHER: no file\) was committed by none of the held jobs beside and "
    with pytest.raises(IsolitmusError, match=said):
        interleave(spark, "totals", beside, "UPDATE totals SET n = n + 1")


@pytest.mark.spark
@pytest.mark.drawn
def test_columns_and_what_comes_before(spark):
    spark.sql("CREATE TABLE log (said STRING) USING delta")
    spark.sql("CREATE TABLE stamped (k INT, at BIGINT) USING delta")

    def stamp():
        spark.sql("INSERT INTO log VALUES ('stamped')")
        spark.sql(f"INSERT INTO stamped VALUES (1, {time.monotonic_ns()})")

    other = "INSERT INTO stamped SELECT 2, 0"
    said = "gave another table when they ran serially again: .* columns"
    with pytest.raises(IsolitmusError, match=said):
        interleave(spark, "stamped", stamp, other)
    found = interleave(
        spark,
        "stamped",
        stamp,
        other,
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
