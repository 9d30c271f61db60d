"""Exceptions of real Delta, explained: two statements race, the message of the one that is refused
is the text.
"""

from pathlib import Path
from typing import NamedTuple

import pytest

from isolitmus.checker.auditing.diagnosis import explain, run_example
from isolitmus.conformance import race, replay
from isolitmus.specs.files.exceptions_file import exception_table
from isolitmus.specs.logs.delta_log import open_log

pytestmark = pytest.mark.spark


class OfTwo(NamedTuple):
    """A race of two statements, and what is to be found of it."""

    loser: str
    winner: str
    name: str
    partition: str | None
    mine: str
    operation: str


RACES = [
    OfTwo("DELETE FROM t WHERE part = 0", "INSERT INTO t VALUES (100, 0)",
     "ConcurrentAppendException", "part=0", "DELETE", "WRITE"),
    OfTwo("UPDATE t SET id = 9 WHERE part = 0", "UPDATE t SET id = 8 WHERE part = 0",
     "ConcurrentAppendException", "part=0", "UPDATE", "UPDATE"),
    OfTwo("MERGE INTO t USING (SELECT 1 AS k) s ON t.id = s.k WHEN MATCHED THEN DELETE", "DELETE FROM t WHERE part = 1",
     "ConcurrentDeleteReadException", "part=1", "MERGE", "DELETE"),
    OfTwo("INSERT OVERWRITE t PARTITION (part = 0) SELECT 10", "DELETE FROM t WHERE part = 0",
     "ConcurrentDeleteReadException", "part=0", "WRITE", "DELETE"),
    OfTwo("INSERT INTO t VALUES (3, 0)", "ALTER TABLE t SET TBLPROPERTIES ('team' = 'us')",
     "MetadataChangedException", None, "WRITE", "SET TBLPROPERTIES"),
    OfTwo("RESTORE TABLE t TO VERSION AS OF 0", "INSERT INTO t VALUES (3, 0)",
     "ConcurrentWriteException", None, "RESTORE", "WRITE"),
]  # fmt: skip


@pytest.fixture
def spark(session):
    fresh = session.fresh()
    fresh.sql("CREATE DATABASE explained")
    fresh.sql("USE explained")
    fresh.sql("CREATE TABLE t (id INT, part INT) USING delta PARTITIONED BY (part)")
    fresh.sql("INSERT INTO t VALUES (1, 0), (2, 1)")
    yield fresh
    fresh.sql("DROP DATABASE explained CASCADE")


def explained(spark, ending):
    """What is found of a refused statement, by its text and by its table's log."""
    java = ending.error.java_exception
    writer = java.getClass().getName() + ": " + java.getMessage()
    trace = "".join(f"\n\tat {frame.toString()}" for frame in java.getStackTrace())
    table = spark.sql("DESCRIBE DETAIL t").first()["location"].removeprefix("file:")
    for text in (str(ending.error), f"Caused by: {writer}{trace}"):
        found = explain(text)
        assert found.pasted.name == ending.outcome
        assert found.pasted.error_class in (None, ending.error_class)
    beside = explain(writer + trace, table=Path(table))
    assert beside.stopped.commit == ending.concurrent_commits[0]
    assert beside.stopped.commit.version == open_log(Path(table)).last
    return beside


@pytest.mark.drawn
@pytest.mark.parametrize("two", RACES, ids=lambda two: f"{two.mine}-{two.operation}")
def test_a_real_exception_is_explained_by_its_text_and_its_log(spark, two):
    with race(spark, "t") as run:
        held = run.park(two.loser, "loser")
        run.sql(two.winner, "winner")
        ending = held.release()
    assert ending.outcome == two.name
    found = explained(spark, ending)
    assert (found.pasted.partition, found.pasted.operation) == (two.partition, two.operation)
    assert found.pasted.mine == two.mine
    assert (found.facts.winner, found.facts.blind) == (
        two.operation,
        ending.concurrent_commits[0].blind,
    )
    if two.partition is not None:
        assert {f"part={file.partition['part']}" for file in found.met} == {two.partition}


def test_a_removal_of_what_was_not_read(spark):
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    with race(spark, "t") as run:
        held = run.park("INSERT OVERWRITE t SELECT 10, 0", "loser")
        run.sql("DELETE FROM t WHERE part = 0", "winner")
        ending = held.release()
    assert ending.outcome == "ConcurrentDeleteDeleteException"
    assert explained(spark, ending).pasted.partition == "part=0"


def test_two_writes_of_one_application(spark):
    key = "spark.databricks.delta.write.txn"
    spark.conf.set(f"{key}AppId", "loader")
    spark.conf.set(f"{key}Version", "1")
    with race(spark, "t") as run:
        held = run.park(lambda: spark.sql("INSERT INTO t VALUES (3, 0)"), "loser")
        spark.conf.set(f"{key}Version", "2")
        spark.sql("INSERT INTO t VALUES (4, 1)")
        ending = held.release()
    assert ending.outcome == "ConcurrentTransactionException"
    assert explained(spark, ending).stopped.stops[ending.outcome] == "another run of loader"


def test_a_feature_that_goes(spark):
    spark.sql("ALTER TABLE t ADD CONSTRAINT small CHECK (id < 100)")
    spark.sql("ALTER TABLE t DROP CONSTRAINT small")
    with race(spark, "t") as run:
        held = run.park("INSERT INTO t VALUES (3, 0)", "loser")
        run.sql("ALTER TABLE t DROP FEATURE checkConstraints", "winner")
        ending = held.release()
    assert ending.outcome == "ProtocolChangedException"
    assert explained(spark, ending).facts.winner == "DROP FEATURE"


EXAMPLES = {
    one.test: (name, one)
    for name, known in exception_table().exceptions.items()
    for one in known.examples[:1]
}
"""The first of each exception; the catalogue's evidence has all (test_catalogue.py)."""


@pytest.mark.drawn
@pytest.mark.parametrize("test", EXAMPLES)
def test_the_example_of_an_exception_ends_in_it_on_delta(session, test):
    """What is said there of the job after the others, too; and what Delta says of the first is
    explained by that name.
    """
    name, example = EXAMPLES[test]
    under = example.under[0]
    shown = run_example(example, under, name)
    seen = replay(shown.judged.litmus, under, session).transactions[example.loser]
    assert seen.outcome == name
    assert explain(seen.message).pasted.name == name
    later = replay(shown.later.litmus, under, session).transactions[example.loser]
    assert later.outcome == shown.again


def test_two_settings_of_one_metadata_domain(session):
    """Its message is the one that is explained as that, and not as a query that was started
    twice.
    """
    (example,) = exception_table().conditions["METADATA_DOMAIN"].instead["examples"]
    shown = run_example(example, example.under[0], "ConcurrentTransactionException")
    seen = replay(shown.judged.litmus, example.under[0], session).transactions[example.loser]
    found = explain(seen.message).pasted
    assert (found.name, found.condition) == ("ConcurrentTransactionException", "METADATA_DOMAIN")
    assert found.domain == "delta.clustering"
