"""Litmus tests on real Delta tables: outcomes, versions, what commits say, the rows at each
version.
"""

from functools import partial

import pytest

from isolitmus.checker import run
from isolitmus.checker.execution.run_diff import run_differences
from isolitmus.checker.execution.run_result import RunResult
from isolitmus.conformance import replay
from isolitmus.conformance.delta.table_versions import CommitHistory, rows_by_version
from isolitmus.conformance.delta.tables import PROTOCOLS, make_tables
from isolitmus.model.errors import LitmusError, TimeLimit, UnknownName
from isolitmus.model.litmus import Litmus
from isolitmus.model.run import TransactionRun
from isolitmus.model.schedule import Schedule
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.model.sql.statement import Insert, Read
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.logs.delta_log import latest_version

pytestmark = pytest.mark.spark

SERIALIZABLE, WRITE_SERIALIZABLE, SNAPSHOT_ISOLATION = PROTOCOLS
TWO_PARTITIONS = ["INSERT INTO t VALUES (1, 0), (2, 1)"]
TWO_FILES = ["INSERT INTO t SELECT 1, 0 UNION ALL SELECT 2, 0"]


def outcomes(run):
    return {name: transaction.outcome for name, transaction in run.transactions.items()}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_delete_insert_reorder(session, make, protocol):
    """Databricks' t0 to t3: only Serializable aborts the delete."""
    litmus = make(
        "delete.start insert reader delete.commit",
        TWO_PARTITIONS,
        delete="DELETE FROM t WHERE part = 0",
        insert="INSERT INTO t VALUES (100, 0)",
        reader="SELECT id FROM t WHERE part = 0",
    )
    run = replay(litmus, protocol, session)
    level = PROTOCOLS[protocol]
    assert (run.litmus, run.engine, run.engine_version, run.protocol) == (
        "built",
        "delta",
        "delta-spark 4.4.0, Spark 4.2.0",
        protocol,
    )
    assert run.base == (1 if protocol == SERIALIZABLE else 2)
    before, between = {"t": ((1, 0), (2, 1))}, {"t": ((1, 0), (2, 1), (100, 0))}
    assert run.transactions["insert"] == TransactionRun(
        "committed", None, None, 0, 1, (1,), True, level, "WRITE"
    )
    assert run.transactions["reader"] == TransactionRun(
        "committed", read_version=1, rows=((1,), (100,))
    )
    if protocol == SERIALIZABLE:
        assert run.transactions["delete"] == TransactionRun(
            "ConcurrentAppendException",
            "ConcurrentAppendException",
            "DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT",
            0,
        )
        assert run.versions == (before, between)
    else:
        assert run.transactions["delete"] == TransactionRun(
            "committed", None, None, 0, 2, (2,), False, level, "DELETE"
        )
        assert run.versions == (before, between, {"t": ((2, 1), (100, 0))})


@pytest.mark.parametrize(
    ("protocol", "outcome"),
    [(SERIALIZABLE, "no-op"), (WRITE_SERIALIZABLE, "ConcurrentAppendException")],
)
def test_delete_of_nothing(session, make, protocol, outcome):
    """Recorded, and so checked, at WriteSerializable; nothing at all at Serializable."""
    litmus = make(
        "nothing.start other nothing.commit later",
        ["INSERT INTO t VALUES (1, 0), (5, 0)"],
        nothing="DELETE FROM t WHERE id = 3",
        other="DELETE FROM t WHERE id = 5",
        later="DELETE FROM t WHERE id = 3",
    )
    run = replay(litmus, protocol, session)
    assert outcomes(run) == {
        "nothing": outcome,
        "other": "committed",
        "later": "no-op" if protocol == SERIALIZABLE else "committed",
    }
    assert run.transactions["nothing"].read_version == 0
    assert run.transactions["later"].read_version == 1
    if protocol == WRITE_SERIALIZABLE:
        assert run.transactions["later"].isolation_level == "WriteSerializable"
        assert run.versions[2] == run.versions[1]
    assert run.tables == {"t": ((1, 0),)}


def test_optimize_beside_delete(session, make):
    """OPTIMIZE starts a second transaction after a conflict: the conflict is what comes out."""
    litmus = make(
        "optimize.start delete optimize.commit",
        TWO_FILES,
        optimize="OPTIMIZE t",
        delete="DELETE FROM t WHERE id = 1",
    )
    run = replay(litmus, SERIALIZABLE, session)
    assert outcomes(run) == {"optimize": "ConcurrentDeleteReadException", "delete": "committed"}
    error = run.transactions["optimize"].error_class
    assert error == "DELTA_CONCURRENT_DELETE_READ.WITH_PARTITION_HINT"
    assert run.tables == {"t": ((2, 0),)}


def test_delete_beside_optimize(session, make):
    litmus = make(
        "delete.start optimize delete.commit",
        TWO_FILES,
        optimize="OPTIMIZE t",
        delete="DELETE FROM t WHERE id = 1",
    )
    run = replay(litmus, WRITE_SERIALIZABLE, session)
    assert outcomes(run) == {"optimize": "committed", "delete": "ConcurrentAppendException"}
    optimize = run.transactions["optimize"]
    assert (optimize.isolation_level, optimize.operation) == ("SnapshotIsolation", "OPTIMIZE")
    assert run.versions[0] == run.versions[1] == {"t": ((1, 0), (2, 0))}


def test_optimize_beside_insert(session, make):
    litmus = make(
        "optimize.start insert optimize.commit",
        TWO_FILES,
        optimize="OPTIMIZE t",
        insert="INSERT INTO t VALUES (3, 0)",
    )
    run = replay(litmus, SERIALIZABLE, session)
    assert outcomes(run) == {"optimize": "committed", "insert": "committed"}
    assert run.transactions["optimize"].version == 2
    assert run.transactions["optimize"].read_version == 0


def test_failures_that_are_no_conflicts(session, make, capfd):
    litmus = make(
        "overflow.start typo ambiguous remainder overflow.commit",
        TWO_PARTITIONS,
        overflow="UPDATE t SET id = id + 2147483647",
        typo="DELETE FROM t WHERE nope = 1",
        ambiguous="MERGE INTO t USING (SELECT 1 AS id UNION ALL SELECT 1) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET t.part = 1",
        remainder="DELETE FROM t WHERE id % part = 0",
    )
    run = replay(litmus, SERIALIZABLE, session)
    assert outcomes(run) == {
        "overflow": "error:SparkArithmeticException",
        "remainder": "error:SparkArithmeticException",
        "typo": "error:ExtendedAnalysisException",
        "ambiguous": "error:DeltaUnsupportedOperationException",
    }
    assert run.transactions["overflow"].error_class == "ARITHMETIC_OVERFLOW"
    assert run.transactions["overflow"].exception == "SparkArithmeticException"
    assert run.transactions["remainder"].error_class == "REMAINDER_BY_ZERO"
    assert run.transactions["ambiguous"].error_class == (
        "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
    )
    assert len(run.versions) == 1
    assert capfd.readouterr() == ("", "")


def test_reads_of_the_own_table_are_seen(session, make):
    litmus = make(
        "merge.start copy merge.commit",
        TWO_PARTITIONS,
        copy="INSERT INTO t SELECT count(*), 0 FROM t",
        merge="MERGE INTO t USING (SELECT id + 10 AS id, part FROM t) s ON t.id = s.id"
        " WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, s.part)",
    )
    run = replay(litmus, WRITE_SERIALIZABLE, session)
    assert outcomes(run) == {"merge": "ConcurrentAppendException", "copy": "committed"}
    assert run.transactions["copy"].blind is False


def test_layout_of_one_row_a_file(session, make):
    """Two updates of one partition touch different files; the layout is the table's, not the
    session's.
    """
    litmus = make(
        "a.start b a.commit",
        ["INSERT INTO t VALUES (1, 0), (2, 0)"],
        rows_per_file=1,
        a="DELETE FROM t WHERE id = 1",
        b="DELETE FROM t WHERE id = 2",
    )
    run = replay(litmus, SERIALIZABLE, session)
    assert outcomes(run) == {"a": "committed", "b": "committed"}
    assert run.tables == {"t": ()}
    assert session.spark.conf.get("spark.sql.files.maxRecordsPerFile") == "0"


def test_versions_are_those_of_time_travel(session, make):
    """With deletion vectors, where the log's files alone would not do."""
    litmus = make("r", r="SELECT 1", properties={"delta.enableDeletionVectors": "true"})
    with make_tables(litmus, "WriteSerializable", session) as tables:
        chronicle = CommitHistory(tables.paths)
        client = tables.client("t")
        client.sql("INSERT INTO t VALUES (1, 0), (2, 0), (NULL, 1)").collect()
        client.sql("DELETE FROM t WHERE id = 1").collect()
        client.sql("UPDATE t SET id = 3 WHERE id = 2").collect()
        assert chronicle.update() == (1, 2, 3)
        rows = [version["t"] for version in chronicle.rows(partial(rows_by_version, session))]
        assert rows[3] == ((None, 1), (3, 0))
        for version, found in enumerate(rows):
            number = chronicle.base["t"] + version
            travelled = client.sql(f"SELECT * FROM t VERSION AS OF {number}").collect()
            assert sorted(map(str, found)) == sorted(str(tuple(row)) for row in travelled)
        assert latest_version(tables.paths["t"]) == number


def test_several_tables_share_one_history(session):
    columns = (Column("id", "INT"),)
    transactions = {
        "skew": Insert("INSERT INTO a SELECT count(*) FROM b", "a", ()),
        "other": Insert("INSERT INTO b SELECT count(*) FROM a", "b", ()),
        "reader": Read("SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b)", ()),
    }
    litmus = Litmus(
        name="two tables",
        title="",
        source="",
        tables={name: Schema(name, columns) for name in "ab"},
        init=(Insert("INSERT INTO b VALUES (7)", "b", ()),),
        transactions=transactions,
        schedule=Schedule.parse("skew.start other reader skew.commit", transactions),
        format="delta",
    )
    run = replay(litmus, SERIALIZABLE, session)
    assert outcomes(run) == dict.fromkeys(transactions, "committed")
    assert run.transactions["other"].version == 1
    assert run.transactions["skew"].version == 2
    assert run.transactions["skew"].read_version == 0
    assert run.transactions["reader"].rows == ((0, 2),)
    assert run.versions == (
        {"a": (), "b": ((7,),)},
        {"a": (), "b": ((0,), (7,))},
        {"a": ((1,),), "b": ((0,), (7,))},
    )


def test_nothing_stays_behind(session, make):
    endless = "INSERT INTO t SELECT count(*), 0 FROM range(1000000000000)"
    litmus = make("x y", x="INSERT INTO t VALUES (1, 0)", y=endless)
    logs = session.scala("org.apache.spark.sql.delta.DeltaLog").cacheSize
    before, logs_before = {p.name for p in session.directory.iterdir()}, logs()
    with pytest.raises(TimeLimit, match=r"y, 'INSERT INTO t SELECT count.* did not end within 5 s"):
        replay(litmus, SERIALIZABLE, session, seconds=5)
    assert {p.name for p in session.directory.iterdir()} == before
    assert logs() == logs_before
    names = {row[0] for row in session.spark.sql("SHOW DATABASES").collect()}
    assert names == {"default"}


def test_protocols_that_delta_does_not_have(session, make):
    litmus = make("r", r="SELECT 1")
    with pytest.raises(UnknownName, match="did you mean 'delta-serializable'"):
        replay(litmus, "delta-serialisable", session)


def test_init_that_fails(session, make):
    litmus = make("r", ["INSERT INTO t VALUES (1, 0, 0)"], r="SELECT 1")
    with pytest.raises(LitmusError, match="fails on Delta with DELTA_METADATA_MISMATCH"):
        replay(litmus, SERIALIZABLE, session)


CLIENTS = """
title = "Clients"
schedule = "tell.before other tell twice.park-init twice.commit more.start more.commit"
[table]
columns = "id INT, part INT"
partitioned_by = ["part"]
rows_per_file = 1
init = ["INSERT INTO t VALUES (1, 0), (2, 1)"]
[transactions]
other = "INSERT INTO t VALUES (3, 1)"
[transactions.tell]
let = { n = "SELECT 0 - count(*) FROM t", s = "SELECT min(id) FROM t WHERE id = 9" }
sql = "INSERT INTO t VALUES (1 - :n, 0), (:s, 0)"
session = "s"
[transactions.twice]
let = { n = "SELECT id FROM t" }
sql = "DELETE FROM t WHERE id = :n"
[transactions.more]
sql = "INSERT OVERWRITE t SELECT 7, 1"
conf = { "spark.sql.sources.partitionOverwriteMode" = "dynamic" }
session = "s"
"""


def test_clients_do_what_the_model_says(session):
    """A let is read at its step, NULL and a negative number among the values; one with several rows
    ends its transaction before it starts; a conf reaches the session.
    """
    test = read_litmus(CLIENTS, "clients")
    predicted = run(test, protocol(SERIALIZABLE))
    observed = RunResult(test, replay(test, SERIALIZABLE, session))
    assert run_differences(predicted.run, observed.run) == ()
    assert observed.serial == predicted.serial
    assert outcomes(observed.run)["twice"] == "error:TooManyRows"
    assert observed.run.tables["t"] == ((None, 0), (1, 0), (3, 0), (7, 1))
