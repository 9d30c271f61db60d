"""VACUUM: two empty commits of one statement, seen by all who count versions."""

import pytest

from isolitmus.checker.execution.commit_loop import execute
from isolitmus.checker.execution.run_result import run
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.scope_file import read_scope
from isolitmus.specs.sql.statements import read_statement

FILE = """
title = "T"
schedule = "{}"
[table]
columns = "id INT"
{}
[transactions]
v = "VACUUM t"
a = "INSERT INTO t VALUES (1)"
b = "{}"
"""


def carried_out(schedule, b="DELETE FROM t", lines=""):
    return run(
        read_litmus(FILE.format(schedule, lines, b), "t"), protocol("delta-write-serializable")
    )


def test_the_next_version_is_after_both():
    done = carried_out("a v b")
    seen = done.run.transactions
    assert [seen[name].commits for name in "avb"] == [(1,), (2, 3), (4,)]
    assert (seen["v"].version, seen["b"].read_version) == (3, 3)
    assert [len(tables["t"]) for tables in done.run.versions] == [0, 1, 1, 1, 0]
    assert done.serial.orders == ("a v b", "a b v", "v a b")
    assert done.serial.unexplained == ()


def test_it_is_checked_at_snapshot_isolation_and_claims_to_be_blind():
    done = carried_out("v.start a b v.commit")
    seen = done.run.transactions["v"]
    assert (seen.outcome, seen.blind, seen.isolation_level) == (
        "committed",
        True,
        "SnapshotIsolation",
    )
    assert str(done.levels["log-serializable"]) == "allowed"


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ("COMMENT ON TABLE t IS 'ours'", "MetadataChangedException"),
        ("CREATE OR REPLACE TABLE t (id INT) USING delta", "MetadataChangedException"),
        ("ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')", "committed"),
        ("OPTIMIZE t", "committed"),
        ("TRUNCATE TABLE t", "committed"),
    ],
)
def test_only_metadata_stops_it(change, outcome):
    assert carried_out("a v.start b v.commit", change).run.transactions["v"].outcome == outcome


@pytest.mark.parametrize(
    "statement",
    ["RESTORE TABLE t TO VERSION AS OF {init[1]}", "CREATE OR REPLACE TABLE t SHALLOW CLONE t"],
)
def test_it_stops_large_commits(statement):
    """A version number that was taken is all that they look at."""
    lines = 'init = ["INSERT INTO t VALUES (7)", "DELETE FROM t"]'
    done = carried_out("b.start v b.commit a", statement, lines)
    assert done.run.transactions["b"].outcome == "ConcurrentWriteException"


def test_as_an_init_statement_it_counts_once():
    lines = 'init = ["INSERT INTO t VALUES (7)", "VACUUM t", "DELETE FROM t"]'
    done = carried_out("a b v", "RESTORE TABLE t TO VERSION AS OF {init[2]}", lines)
    assert done.run.tables["t"] == ((7,),)


def test_a_table_that_was_altered_is_vacuumed_with_what_it_has_by_now():
    done = execute(
        read_litmus(FILE.format("b v a", "", "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')"), "t"),
        protocol("delta-serializable"),
    )
    known = done.events[1].effect.footprint.known.metadata.configuration
    assert known == {"a": "b"}


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "VACUUM t RETAIN 0 HOURS",
            "VACUUM RETAIN 0 HOURS removes files that other transactions may be about to commit",
        ),
        ("VACUUM t RETAIN 167 HOURS", "what is modelled retains 168 hours or more"),
        (
            "VACUUM t DRY RUN",
            "or VACUUM table [FULL | LITE] [RETAIN hours HOURS], for at least 168",
        ),
        ("VACUUM t USING INVENTORY u", "'VACUUM t USING INVENTORY u' does not parse; write"),
        ("VACUUM u", "unknown table 'u'; known: t"),
    ],
)
def test_what_is_refused(sql, message):
    schemas = read_litmus(FILE.format("v a b", "", "DELETE FROM t"), "t").tables
    assert read_statement("vacuum `t` lite retain 168 hours", schemas).target == "t"
    with pytest.raises(IsolitmusError) as refused:
        read_statement(sql, schemas)
    assert message in str(refused.value)


def test_a_scope_counts_statements_of_one_commit():
    text = """
title = "T"
[table]
columns = "id INT"
[scope]
transactions = 2
statements = ["DELETE FROM t", "VACUUM t"]
"""
    with pytest.raises(IsolitmusError, match="'VACUUM t', which makes two commits"):
        read_scope(text, "t")
