"""Parking: a statement stops before its commit, and everything is let go whatever happens."""

import threading
import time

import pytest

from isolitmus.conformance.delta.parking import Parking
from isolitmus.conformance.delta.tables import make_tables
from isolitmus.conformance.delta.transaction_outcome import read_failure
from isolitmus.conformance.workers import Interruption, run_interruptibly
from isolitmus.model.errors import TimeLimit
from isolitmus.specs.logs.delta_log import commits_since, latest_version

pytestmark = pytest.mark.spark


@pytest.fixture
def table(session, make):
    """Two files in one partition, at Serializable."""
    litmus = make("r", r="SELECT 1")
    with make_tables(litmus, "Serializable", session) as tables:
        client = tables.client("t")
        client.sql("INSERT INTO t SELECT 1, 0 UNION ALL SELECT 2, 0").collect()
        yield tables


def parking(session, seconds=120):
    return Parking(session, Interruption(), seconds)


def run(table, sql):
    client = table.client("t")
    return lambda: client.sql(sql).collect()


def threads():
    return [t for t in threading.enumerate() if t.name.startswith("isolitmus")]


def held_in_the_jvm(session):
    """JVM threads that wait at a gate."""
    stacks = session.jvm.java.lang.Thread.getAllStackTraces().values()
    return sum("isolitmus.Watch$Gate.pass" in str(frame) for stack in stacks for frame in stack)


def test_parked_before_the_commit(session, table):
    path = table.paths["t"]
    with parking(session) as lot:
        delete = lot.start("delete", run(table, "DELETE FROM t WHERE id = 1"), "commit")
        assert delete.held
        assert not delete.ended
        assert latest_version(path) == 1
        assert len(list(path.glob("part=0/*.parquet"))) == 2
        lot.finish(delete)
        assert delete.result()
    (commit,) = commits_since(path, 1)
    assert (commit.operation, commit.read_version) == ("DELETE", 1)


def test_parked_at_one_phase_after_another(session, table):
    """Planned, then the snapshot and the reads, then the commit: each sees what came before it."""
    path = table.paths["t"]
    with parking(session) as lot:
        copy = lot.start("copy", run(table, "INSERT INTO t SELECT count(*), 1 FROM t"), "init")
        assert (copy.held, copy.attempts[0].phase, copy.attempts[0].read_version) == (
            True,
            "init",
            None,
        )
        run(table, "INSERT INTO t VALUES (3, 0)")()
        assert list(path.glob("part=1/*.parquet")) == []
        lot.move(copy, "prepare")
        assert (copy.held, copy.attempts[0].phase, copy.attempts[0].read_version) == (
            True,
            "prepare",
            2,
        )
        assert len(list(path.glob("part=1/*.parquet"))) == 1
        lot.move(copy, "commit")
        assert copy.held
        assert not copy.ended
        lot.finish(copy)
        assert copy.error is None
    assert commits_since(path)[-1].read_version == 2


def test_what_has_nothing_to_commit_ends_at_once(session, table):
    with parking(session) as lot:
        delete = lot.start("delete", run(table, "DELETE FROM t WHERE id = 9"), "commit")
        assert delete.ended
        assert not delete.held
        lot.finish(delete)
    assert latest_version(table.paths["t"]) == 1


def test_what_fails_early_ends_at_once(session, table):
    with parking(session) as lot:
        failed = lot.start("typo", run(table, "DELETE FROM t WHERE nope = 1"), "commit")
        assert failed.ended
    failure = read_failure(failed.error, session.jvm)
    assert failure.outcome == "error:ExtendedAnalysisException"
    assert failure.error_class == "UNRESOLVED_COLUMN.WITH_SUGGESTION"


def test_a_query_belongs_to_the_statement_that_started_it(session, table, tmp_path):
    """Spark hands the property of a thread on to the one of the query."""
    spark, path = table.client("t"), table.paths["t"]

    def batch(frame, _):
        frame.sparkSession.sql(f"DELETE FROM delta.`{path}` WHERE id = 1")

    def stream():
        stream = spark.readStream.format("delta").load(str(path)).writeStream
        once = stream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        once.foreachBatch(batch).start().awaitTermination()

    with parking(session) as lot:
        query = lot.start("query", stream, "commit")
        assert (query.held, latest_version(path)) == (True, 1)
        lot.finish(query)
    assert commits_since(path)[-1].operation == "DELETE"
    assert [attempt.version for attempt in query.attempts] == [2]


def test_optimize_tries_again_on_the_same_thread(session, table):
    """A metadata change aborts the first transaction; the second, unobserved, commits."""
    path = table.paths["t"]
    with parking(session) as lot:
        optimize = lot.start("optimize", run(table, "OPTIMIZE t"), "commit")
        assert optimize.held
        run(table, "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')")()
        lot.finish(optimize)
        assert optimize.result()
    change, compaction = commits_since(path, 1)
    assert (change.operation, compaction.operation) == ("SET TBLPROPERTIES", "OPTIMIZE")
    assert compaction.read_version == change.version


def test_time_limit_releases_everything(session, table):
    endless = "INSERT INTO t SELECT count(*), 0 FROM range(1000000000000)"
    started = time.monotonic()
    with parking(session) as patient:
        patient.start("delete", run(table, "DELETE FROM t WHERE id = 1"), "commit")
        with pytest.raises(TimeLimit) as caught, parking(session, seconds=6) as lot:
            lot.start("the endless insert", run(table, endless), "commit")
    assert str(caught.value) == ("the endless insert did not reach its commit or end within 6 s")
    assert time.monotonic() - started < 60
    assert threads() == []
    assert held_in_the_jvm(session) == 0
    assert session.spark.sparkContext.statusTracker().getActiveJobsIds() == []
    assert commits_since(table.paths["t"])[-1].operation == "DELETE"


@pytest.mark.parametrize("phase", ["init", "prepare", "commit"])
def test_error_in_the_block_releases_everything(session, table, phase):
    with pytest.raises(ZeroDivisionError), parking(session) as lot:
        lot.start("delete", run(table, "DELETE FROM t WHERE id = 1"), phase)
        assert held_in_the_jvm(session) > 0
        raise ZeroDivisionError
    assert threads() == []
    assert held_in_the_jvm(session) == 0


def test_interrupt_releases_everything(session, table):
    """A Ctrl-C in the waiting thread reaches the work, which cleans up before the caller goes
    on.
    """

    def work(interruption):
        with Parking(session, interruption, 120) as lot:
            lot.start("delete", run(table, "DELETE FROM t WHERE id = 1"), "commit")
            interruption.announce()
            lot.start("endless", lambda: time.sleep(3))

    with pytest.raises(KeyboardInterrupt):
        run_interruptibly(work)
    assert threads() == []
    assert held_in_the_jvm(session) == 0
