"""PostgreSQL's SERIALIZABLE: which structures end somebody, whom, and when; what is remembered of
what was read.
"""

from contextlib import ExitStack
from dataclasses import replace

import pytest
from hypothesis import given

from isolitmus.checker import run
from isolitmus.checker.execution.run_diff import compare_runs
from isolitmus.conformance.engines import open_engine
from isolitmus.databases.locking.protocol_rules import read_rules
from isolitmus.databases.locking.random_tests import session_tests
from isolitmus.databases.postgres import engine as replaying
from isolitmus.databases.postgres.server import open_postgres
from isolitmus.databases.sessions.schedule_runner import run_on_database
from isolitmus.model.errors import ClauseError, EngineUnavailable, UndeterminedError
from isolitmus.model.spec import Clause
from isolitmus.model.verdict import Allowed
from isolitmus.specs import level, protocol
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.spec_reader import read_spec

SSI = protocol("postgresql-serializable")
FILE = """
title = "T"
format = "locking"
schedule = "{}"
[table]
columns = "id INT, k INT, v INT"
index = {{ by_id = "unique id", by_k = "k" }}
init = ["INSERT INTO t VALUES (1, 10, 1), (2, 20, 2), (3, 30, 3), (4, 40, 4)"]
[transactions]
{}
"""
REFUSED = "SerializationFailure"


def client(name, *sql):
    """A transaction that goes by by_id where its statements say id, by by_k where they say k, else
    by no index.
    """
    scans = [one for one in sql if not one.startswith("INSERT")]
    by = ["by_id" if "id " in one.partition("WHERE")[2] else "by_k" if "k " in one.partition("WHERE")[2] else "heap" for one in scans]  # fmt: skip
    return f"{name} = {{ sql = {list(sql)}, scan = {by} }}".replace("'", '"')


def carried(schedule, *clients, under=SSI):
    return run(read_litmus(FILE.format(schedule, "\n".join(clients)), "t"), under)


def outcomes(done):
    return {name: one.outcome for name, one in done.run.transactions.items()}


def row(k):
    return f"SELECT v FROM t WHERE id = {k}"


def put(k):
    return f"UPDATE t SET v = 0 WHERE id = {k}"


SKEW = client("a", row(1), put(2)), client("b", row(2), put(1))
REPORT = client("look", row(2)), client("pivot", row(1), put(2)), client("out", put(1))
THREE = (
    client("first", row(4), row(2), put(3)),
    client("pivot", row(1), put(2)),
    client("out", put(1)),
)
"""first -> pivot -> out, if they overlap."""


def coarse(sql):
    """b comes before a; a comes before b only if it remembers more than what it reads by this."""
    return client("a", sql, put(4)), client("b", row(4), put(3))


CASES = [
    (SKEW, "a[1] b[1] a[2] a.commit b[2] b.commit", "b"),  # at its write: it is the pivot
    (SKEW, "a[1] b[1] a[2] b[2] a.commit b.commit", "b"),  # at its write, too
    (SKEW, "a[1] a[2] b[1] a.commit b[2] b.commit", "b"),
    (SKEW, "a[1] a[2] b[1] b[2] a.commit b.commit", "b"),  # at its commit: who commits first dooms it
    (SKEW, "a[1] a[2] b[1] b[2] b.commit a.commit", "a"),
    (SKEW, "a[1] a[2] b[1] b[2] b.rollback a.commit", ""),
    (SKEW, "a[1] a[2] a.commit b[1] b[2] b.commit", ""),
    # look only reads, and has committed: if its snapshot is older than the commit of out, it can
    # come before all
    (REPORT, "look[1] pivot[1] out look.commit pivot[2] pivot.commit", ""),
    (REPORT, "pivot[1] out look[1] look.commit pivot[2] pivot.commit", "pivot"),
    (REPORT, "pivot[1] out pivot[2] look[1] look.commit pivot.commit", "pivot"),  # doomed
    (REPORT, "pivot[1] out pivot[2] pivot.commit look[1] look.commit", ""),
    # out and pivot have committed, and first is the only one that can still end: where it reads
    (THREE, "first[1] pivot[1] out pivot[2] pivot.commit first[2] first[3] first.commit", "first"),
    # the pivot commits before out
    (THREE, "first[1] pivot[1] pivot[2] pivot.commit out first[2] first[3] first.commit", ""),
    # what was changed and committed since the snapshot is refused at once, whoever changes it anew
    ((client("a", put(1)), client("b", row(2), put(1)), client("c", put(1))), "b[1] a c[1] b[2] b.commit c.commit", "b"),
    (coarse(row(1)), "a[1] b[1] a[2] b[2] a.commit b.commit", ""),
    (coarse("SELECT v FROM t WHERE v = 1"), "a[1] b[1] a[2] b[2] a.commit b.commit", "b"),  # the table
    # two rows and the one that it is about to write are three: their page
    (coarse("SELECT v FROM t WHERE id < 3"), "a[1] b[1] a[2] b[2] a.commit b.commit", "b"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("clients", "schedule", "ended"), CASES)
def test_who_ends(clients, schedule, ended):
    done = carried(schedule, *clients)
    assert [n for n, outcome in outcomes(done).items() if outcome == REFUSED] == ended.split()
    assert isinstance(done.verdict(level("serializable")), Allowed)
    assert done.serial.unexplained == ()


@pytest.fixture(scope="module")
def carry():
    """PostgreSQL, if it is there."""
    with ExitStack() as stack:
        try:
            yield stack.enter_context(open_engine("postgres"))
        except EngineUnavailable as error:
            pytest.skip(str(error))


@pytest.mark.postgres
def test_postgresql_ends_the_same(carry):
    for clients, schedule, _ in [*CASES, (PHANTOM, STEPS, "b")]:
        done = carried(schedule, *clients)
        assert compare_runs(done.run, carry(done.litmus, SSI)).differences == ()


@pytest.mark.postgres
def test_a_scan_that_goes_by_another_index_than_is_said_is_refused(carry):
    """An index that is not named as those of which the planner knows nothing is not gone by."""
    test = carried("a", 'a = { sql = "DELETE FROM t", scan = "by_k" }').litmus
    assert carry(test, SSI).versions[-1]["t"] == ()
    plain = replace(replaying.SQL, dialect=replace(replaying.SQL.dialect, through=None))
    with (
        open_postgres() as server,
        pytest.raises(UndeterminedError, match=r"t by no index .* the test expects t by t_by_k"),
    ):
        run_on_database(server, plain, test, SSI.name)


PHANTOM = (
    client("a", "SELECT count(*) FROM t WHERE k > 35", "INSERT INTO t VALUES (5, 50, 0)"),
    client("b", "SELECT count(*) FROM t WHERE k > 45", "INSERT INTO t VALUES (6, 60, 0)"),
)


STEPS = "a[1] b[1] a[2] b[2] a.commit b.commit"


def test_indexes_are_remembered_for_the_sake_of_what_comes_into_them():
    assert outcomes(carried(STEPS, *PHANTOM)) == {"a": "committed", "b": REFUSED}
    text = str(SSI).replace("siread indexes\n", "")
    assert "siread indexes" in str(SSI)
    done = carried(STEPS, *PHANTOM, under=read_spec(text, "without"))
    assert outcomes(done) == {"a": "committed", "b": "committed"}
    assert not isinstance(done.verdict(level("serializable")), Allowed)


def test_a_new_version_of_a_row_stands_behind_all_others():
    both = (
        client("a", "UPDATE t SET v = 9 WHERE id = 1"),
        client("b", "SELECT id FROM t WHERE v > 0"),
    )
    rows = {
        name: carried("a b", *both, under=protocol(name)).run.transactions["b"].rows
        for name in ("postgresql-serializable", "locking-snapshot")
    }
    assert rows["locking-snapshot"] == ((1,), (2,), (3,), (4,))
    assert rows["postgresql-serializable"] == ((2,), (3,), (4,), (1,))


@pytest.mark.slow
@given(session_tests())
def test_what_is_admitted_is_serializable(test):
    done = run(test, SSI)
    assert isinstance(done.verdict(level("serializable")), Allowed)
    assert done.serial.unexplained == ()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("siread row", "no 'row' here; did you mean 'rows'"),
        ("siread page at 1", "'1' is not a whole number from 2"),
        ("siread rows", "say see transaction"),
        ("updates apend", "did you mean 'append'"),
    ],
)
def test_clauses_that_say_nothing(words, problem):
    with pytest.raises(ClauseError, match=problem):
        read_rules([Clause(tuple(words.split()))])
