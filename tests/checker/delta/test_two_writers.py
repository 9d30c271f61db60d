"""Two writers on one log: each transaction has the commit check of its own writer."""

from dataclasses import replace

import pytest

from isolitmus.checker import run
from isolitmus.checker.execution.commit_loop import abort_violations, execute, execution_frame
from isolitmus.model.errors import LitmusError, SpecError, UndeterminedError
from isolitmus.specs import litmus, protocol
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.registries import FORMATS, format_named

SPARK, WEAK = protocol("delta-serializable"), protocol("delta-write-serializable")
TEST = """
title    = "Two writers"
source   = "this test"
schedule = "a.start b a.commit"
[table]
columns = "id INT, part INT"
partitioned_by = ["part"]
init = ["INSERT INTO t VALUES (1, 0), (2, 1)", "INSERT INTO t VALUES (3, 0)"]
[transactions]
a = {{ sql = "{a}"{of_a} }}
b = {{ sql = "{b}"{of_b} }}
"""
RS = ', protocol = "delta-rs-serializable"'


def of(a, b, *, rs):
    """The test in which delta-rs writes the transactions of these names."""
    of_a, of_b = (RS if name in rs else "" for name in "ab")
    return read_litmus(TEST.format(a=a, b=b, of_a=of_a, of_b=of_b), "two")


def outcome(test, under=SPARK):
    return run(test, under).run.transactions["a"].outcome


DELETE, APPEND = "DELETE FROM t WHERE part = 0", "INSERT INTO t VALUES (4, 0)"


def test_an_append_of_delta_rs_is_blind_to_nobody_but_itself():
    assert outcome(of(DELETE, APPEND, rs=""), WEAK) == "committed"
    assert outcome(of(DELETE, APPEND, rs="b"), WEAK) == "ConcurrentAppendException"


def test_what_it_reads_is_what_its_own_writer_records():
    """Without a condition delta-rs has read no file that somebody adds, and passes over
    compactions.
    """
    assert outcome(of("DELETE FROM t", "OPTIMIZE t", rs="")) == "ConcurrentAppendException"
    assert outcome(of("DELETE FROM t", "OPTIMIZE t", rs="b")) == "ConcurrentAppendException"
    assert outcome(of("DELETE FROM t", "OPTIMIZE t", rs="a")) == "committed"


def test_a_commit_leaves_what_its_own_writer_leaves():
    """The files that the compaction made of two stay, with their rows."""
    done = run(of("DELETE FROM t", "OPTIMIZE t", rs="a"), SPARK).run
    assert done.tables["t"] == ((1, 0), (3, 0))


def test_all_by_one_writer_is_as_under_its_protocol():
    under = protocol("delta-rs-serializable")
    for a, b in ((DELETE, APPEND), ("DELETE FROM t", "OPTIMIZE t"), ("OPTIMIZE t", DELETE)):
        ours = run(of(a, b, rs="ab"), SPARK).run
        theirs = run(of(a, b, rs=""), under).run
        assert (ours.transactions, ours.versions) == (theirs.transactions, theirs.versions)


def test_why_is_said_in_the_words_of_its_own_writer():
    test = of(DELETE, APPEND, rs="a")
    (violation,) = abort_violations(execute(test, SPARK), SPARK).values()
    assert violation.axiom == "ConcurrentAppendException"
    assert violation.cycle[0].source == "b"
    frame = execution_frame(execute(of("DELETE FROM t", "OPTIMIZE t", rs="a"), SPARK))
    assert "removes-could-match" in frame.relations


MARKED = """
title    = "Two writers of a table with deletion vectors"
source   = "this test"
schedule = "a"
[table]
columns    = "id INT"
properties = { "delta.enableDeletionVectors" = "true" }
init       = ["INSERT INTO t VALUES (1), (2), (3)", "DELETE FROM t WHERE id = 1"]
[transactions]
a = { sql = "UPDATE t SET id = 5 WHERE id = 2", protocol = "delta-rs-serializable" }
"""


def test_it_writes_no_deletion_vectors():
    """Neither beside Spark, on a file with a vector of Spark's, nor in a run of its own, from the
    start on.
    """
    test = read_litmus(MARKED, "marked")

    def dead(under, clients):
        done = execute(replace(test, clients=clients), protocol(under))
        return [[file.dead for file in state["t"].files] for state in done.states]

    assert dead("delta-serializable", {}) == [[1], [2, 0]]
    assert dead("delta-serializable", test.clients) == [[1], [0]]
    assert dead("delta-rs-serializable", {}) == [[0], [0]]


def test_a_table_of_both_declares_a_level_that_both_can_have():
    """Whoever it is whose protocol the run is under; and a level that a statement sets is Spark's
    only.
    """
    level = 'properties = {{ "delta.isolationLevel" = "writeSerializable" }}\ninit'
    declared = TEST.replace("init", level).format
    under = protocol("delta-rs-serializable")
    assert execute(read_litmus(declared(a=DELETE, b=APPEND, of_a="", of_b=RS), "two"), under).events
    spark = ', protocol = "delta-serializable"'
    for test, spec in (("", SPARK), (spark, under)):
        with pytest.raises(UndeterminedError, match="Delta takes only 'Serializable'"):
            execute(read_litmus(declared(a=DELETE, b=APPEND, of_a=RS, of_b=test), "two"), spec)
    set_ = "ALTER TABLE t SET TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')"
    assert execute(of(set_, APPEND, rs=""), SPARK).events[1].version == 2
    with pytest.raises(
        UndeterminedError, match=r"delta-rs sets delta\.isolationLevel by a call of its own"
    ):
        execute(of(set_, APPEND, rs="a"), SPARK)


def test_its_file_is_written_as_it_was_read():
    test = litmus("deleted-during-spark-optimize")
    again = read_litmus(str(test), test.name)
    assert again.clients == test.clients
    assert again.clients["remove"].protocol == "delta-rs-serializable"


@pytest.mark.parametrize(
    ("of_a", "message"),
    [
        (
            ', protocol = "delta-rs-serialisable"',
            (
                "transactions.a.protocol: unknown protocol 'delta-rs-serialisable'; did you mean"
                " 'delta-rs-serializable'?"
            ),
        ),
        (', protocol = 1, session = "s"', "transactions.a.protocol is 1"),
        (f'{RS}, session = "s"', "transactions.a has a protocol of its own and 'session'"),
    ],
)
def test_what_is_no_other_writer_is_refused(of_a, message):
    with pytest.raises(LitmusError) as error:
        read_litmus(TEST.format(a=DELETE, b=APPEND, of_a=of_a, of_b=""), "two")
    assert message in str(error.value)


def test_a_writer_of_another_log_is_refused():
    paper = replace(format_named("delta"), name="paper", log="paper")
    test = replace(of(DELETE, APPEND, rs="a"), format="paper")
    refused = pytest.raises(SpecError, match="delta-rs-serializable is of format delta-rs")
    with FORMATS.offered(paper), refused:
        execute(test, None)
