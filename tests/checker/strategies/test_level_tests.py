"""Litmus tests that one level admits and another forbids, drawn with a solver's help: of statements
and of jobs.
"""

import pytest
from hypothesis import Phase, example, find, given, settings
from hypothesis import strategies as st

from isolitmus.checker import run
from isolitmus.checker.strategies import histories, litmus_tests, note_coverage
from isolitmus.checker.strategies import level_tests as drawn_tests
from isolitmus.databases.strategies import locking_tests
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.strategies import jobs
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.run import SeveralRuns
from isolitmus.specs.files.litmus_file import read_litmus

WEAK, STRONG = "delta-write-serializable", "delta-serializable"
ORDERS = "CREATE TABLE orders (id INT, amount INT, day STRING) USING delta PARTITIONED BY (day)"
README = [
    "INSERT INTO orders VALUES (100, 25, 'mon')",
    "DELETE FROM orders WHERE day = 'mon'",
    "INSERT INTO orders SELECT 0, sum(amount), 'total' FROM orders WHERE day = 'mon'",
]
DDL = 'ddl = "CREATE TABLE orders (id INT, day DATE) USING delta PARTITIONED BY (day)"\n'
SHOP = read_workload(
    DDL
    + """
[shared]
today = "DATE"
[jobs.ingest]
sql = "INSERT INTO orders VALUES (:id, :day)"
parameters = { id = "INT", day = "DATE" }
where = "day = today AND id > 10"
[jobs.clean]
sql = ["DELETE FROM orders WHERE day < :today", "OPTIMIZE orders WHERE day < :today"]
alone = true
[jobs.count]
sql = "INSERT INTO orders SELECT count(*), :day FROM orders WHERE day = :day"
parameters = { day = "DATE" }
""",
    "shop",
)
FEW = settings(max_examples=8, deadline=None)


def outcomes(done):
    """How the transactions of a run end."""
    return {t.outcome for t in done.run.transactions.values()}


def test_the_hole_of_the_readme_is_found_and_shrunk_within_a_hundred_examples():
    tests = litmus_tests(
        table=ORDERS, statements=README, level=WEAK, forbidden_by="write-serializable"
    )
    failed = []

    @settings(max_examples=80, database=None, phases=[Phase.generate, Phase.shrink])
    @given(tests)
    def every_table_is_explained(test):
        if run(test, WEAK).serial.unexplained:
            failed.append(test)
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        every_table_is_explained()
    assert sorted(t.sql for t in failed[-1].transactions.values()) == sorted(README)
    assert len(failed[-1].init) == 1
    assert run(read_litmus(str(failed[-1]), "again"), WEAK).serial.unexplained == (3,)


def test_each_test_is_admitted_and_forbidden_and_of_the_size_that_is_asked_for():
    between = {"level": WEAK, "forbidden_by": "log-serializable"}

    @FEW
    @given(litmus_tests(table=ORDERS, statements=README, **between, least=3, most=4))
    def draw(test):
        done = run(test, WEAK)
        assert outcomes(done) <= {"committed", "no-op"}
        assert str(done.levels["log-serializable"]) == "forbidden"
        assert 3 <= len(test.transactions) <= 4
        assert {t.sql for t in test.transactions.values()} <= set(README)

    draw()


def test_rows_and_statements_are_those_of_the_strategies():
    seats = [
        st.integers(1, 2).map("INSERT INTO seats VALUES ({}, 'b')".format),
        "INSERT INTO seats SELECT count(*), 'c' FROM seats WHERE n = 2",
    ]

    @FEW
    @given(
        litmus_tests(
            table="CREATE TABLE seats (n INT, who STRING) USING delta",
            statements=seats,
            rows=st.integers(1, 2).map("({}, 'a')".format),
            level=WEAK,
            forbidden_by="log-serializable",
        )
    )
    def draw(test):
        assert str(run(test, WEAK).levels["log-serializable"]) == "forbidden"
        assert {init.sql for init in test.init} <= {
            f"INSERT INTO seats VALUES ({n}, 'a')" for n in (1, 2)
        }

    draw()


@FEW
@given(litmus_tests(level=STRONG, tracked=True, sessions=True))
def test_with_a_level_alone_all_commit(test):
    assert outcomes(run(test, STRONG)) <= {"committed", "no-op"}


def test_runs_of_jobs_have_the_values_that_are_asked_for():
    @FEW
    @given(
        jobs(SHOP, values={"id": [11, 12]}, level=WEAK, forbidden_by="log-serializable", least=3)
    )
    def draw(test):
        assert str(run(test, WEAK).levels["log-serializable"]) == "forbidden"
        put_in = [t.sql for t in test.transactions.values() if "VALUES" in t.sql]
        assert {sql.split("VALUES (")[1].split(",")[0] for sql in put_in} <= {"11", "12"}

    draw()


def test_rows_of_a_strategy_stand_where_those_of_a_counterexample_would():
    rows = {"orders": st.just("(5, DATE '2026-01-01')")}

    @FEW
    @given(jobs(SHOP, rows=rows, level=WEAK, forbidden_by="log-serializable"))
    def draw(test):
        assert {init.sql for init in test.init} <= {
            "INSERT INTO orders VALUES (5, DATE '2026-01-01')"
        }

    draw()


def test_a_level_that_robust_knows_nothing_of_is_searched():
    """Snapshot isolation admits what is no order of the log; its own tests are of single
    statements.
    """

    @FEW
    @given(jobs(SHOP, level="snapshot-isolation", forbidden_by="log-serializable"))
    def draw(test):
        assert len(test.transactions) >= 2

    draw()


def test_the_confs_of_a_job_stand_in_its_tests():
    skipping = "spark.databricks.delta.stats.skipping"
    work = read_workload(
        DDL + f'[jobs.clean]\nsql = ["SET {skipping} = false", "DELETE FROM orders WHERE day ='
        ' current_date()"]\n',
        "work",
    )
    (test,) = drawn_tests.samples(jobs(work, least=1, most=1), 1)
    assert test.client("clean").conf == {skipping: "false"}


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (
            lambda: jobs(SHOP, level=WEAK, forbidden_by="write-serializable"),
            "forbids no runs of shop that delta-write-serializable admits: proved",
        ),
        (
            lambda: litmus_tests(
                table=ORDERS, statements=README[:1], level=WEAK, forbidden_by="serializable"
            ),
            "no test of these statements is known .* up to 3 transactions",
        ),
        (lambda: litmus_tests(forbidden_by="serializable"), "without a level that admits"),
        (lambda: jobs(SHOP, forbidden_by="causal"), "'causal' without a level that admits"),
        (lambda: litmus_tests(level="serialisable"), "did you mean 'serializable'"),
        (
            lambda: litmus_tests(
                table=ORDERS, statements=["SELECT * FROM orders"], level=WEAK, forbidden_by="causal"
            ),
            "none of them changes rows",
        ),
    ],
)
def test_where_there_is_no_such_test_that_is_said(ask, said):
    with pytest.raises(IsolitmusError, match=said):
        find(ask(), lambda _: True)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: litmus_tests(level=WEAK, forbidden_by="serialisable"),
        lambda: jobs(SHOP, level=WEAK, forbidden_by="serialisable"),
        lambda: locking_tests(level="locking-read-committed", forbidden_by="serialisable"),
        lambda: histories(level="causal", forbidden_by="serialisable"),
    ],
    ids=["litmus_tests", "jobs", "locking_tests", "histories"],
)
def test_a_wrong_argument_fails_the_test_that_draws_and_not_its_file(ask):
    @given(ask().map(str))  # executed when a file is collected
    def drawn(_):
        raise AssertionError("nothing can be drawn")

    with pytest.raises(IsolitmusError, match="did you mean 'serializable'"):
        drawn()


def test_a_run_says_what_it_covered(monkeypatch):
    seen = []
    monkeypatch.setattr(drawn_tests, "event", lambda *words: seen.append(words))

    @settings(max_examples=1, phases=[Phase.explicit, Phase.generate])
    @given(
        litmus_tests(table=ORDERS, statements=README, level=WEAK, forbidden_by="write-serializable")
    )
    def draw(test):
        note_coverage(run(test, WEAK))
        note_coverage(run("reorder", STRONG))
        note_coverage(run("reorder", WEAK), "log-serializable")

    draw()
    assert seen == [
        ("transactions under way at a time", 2),
        ("conflicts and errors", "none"),
        ("anomalies", "write-serializable forbids it, no serial order gives the tables"),
        ("conflicts and errors", "ConcurrentAppendException"),
        ("anomalies", "none"),
        ("conflicts and errors", "none"),
        ("anomalies", "log-serializable forbids it"),
    ]


CASES = {
    "table": "CREATE TABLE cases (id INT, day INT)",
    "index": {"by_day": "day"},
    "statements": [
        "UPDATE cases SET day = 30 WHERE id = 1",
        "SELECT count(*) FROM cases WHERE day > 0",
    ],
}


def test_sessions_between_two_levels_are_drawn_too():
    under = "locking-read-committed"

    @FEW
    @given(locking_tests(**CASES, level=under, forbidden_by="row-once", least=3))
    def draw(test):
        done = run(test, under)
        assert outcomes(done) <= {"committed", "no-op"}
        assert str(done.levels["row-once"]) == "forbidden"
        assert str(read_litmus(str(test), "drawn")) == str(test)
        assert {t.sql for t in test.transactions.values()} <= set(CASES["statements"])
        assert len(test.transactions) == 3

    draw()


THREE_AT_ONCE = read_litmus(
    """
title    = "Two sessions wait for one, and go on at once"
format   = "locking"
schedule = "t1[1] t2[1] t3[1] t1.commit t2.commit t3.commit"

[tables.cases]
columns = "id INT, day INT"
index   = { by_day = "day" }
init    = ["INSERT INTO cases VALUES (30, 30)"]

[transactions]
t1 = { sql = "UPDATE cases SET day = 30 WHERE id = 1", scan = ["by_day"] }
t2 = { sql = "UPDATE cases SET day = 30 WHERE id = 1", scan = ["by_day"] }
t3 = { sql = "UPDATE cases SET day = 30 WHERE id = 1", scan = ["by_day"] }
""",
    "three",
)
"""Who of two is faster makes a difference: all runs that are possible are told."""


@settings(max_examples=5, deadline=None)
@given(locking_tests(least=2, most=2), locking_tests(**CASES))
@example(THREE_AT_ONCE, THREE_AT_ONCE)
def test_sessions_without_a_level_can_be_carried_out(first, second):
    for test in (first, second):
        try:
            runs = [run(test, "derby-serializable").run]
        except SeveralRuns as several:
            runs = several.runs
            assert len(runs) > 1
        assert all(one.transactions.keys() == test.transactions.keys() for one in runs)


@settings(max_examples=5, deadline=None)
@given(locking_tests(least=2, most=2))
def test_as_many_sessions_are_drawn_as_one_asks_for(test):
    assert len(test.transactions) == 2
