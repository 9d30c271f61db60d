"""The model against DuckDB, against itself, and against the theorems (docs/semantics.md, 3.4)."""

from collections import Counter
from itertools import pairwise

import duckdb
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from isolitmus.checker.delta.format import DELTA
from isolitmus.checker.delta.frame import adds_meet_reads
from isolitmus.checker.delta.statement_effects import statement_effect
from isolitmus.checker.execution.commit_loop import (
    execute,
    execution_frame,
    initial_database,
    observed_run,
)
from isolitmus.checker.execution.duckdb_executor import DuckExecutor
from isolitmus.checker.execution.run_diff import run_differences
from isolitmus.checker.execution.run_result import RunResult
from isolitmus.checker.execution.serial_orders import ModelExecutor, explain_serially
from isolitmus.checker.judge.graph_semantics import admits, judge
from isolitmus.checker.strategies import is_readable, litmus_tests, predicates, tables
from isolitmus.model.errors import SqlError
from isolitmus.model.run import same_bag
from isolitmus.model.sql.conditions import normalize
from isolitmus.model.sql.evaluation import evaluate
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.model.verdict import Allowed
from isolitmus.specs import level, protocol
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.spec_catalogue import protocols
from isolitmus.specs.sql.statements import read_statement

ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 1), st.sampled_from([0, 1, 2, None])),
    min_size=1,
    max_size=6,
)


def committed(test, spec=None):
    return [e for e in execute(test, spec).events if not e.aborted]


@pytest.fixture(scope="module")
def duck():
    with duckdb.connect() as connection:
        yield connection


@pytest.mark.slow
@given(tables(), predicates(depth=3), ROWS)
def test_a_predicate_means_what_it_means_in_duckdb(duck, schema, predicate, rows):
    where = is_readable(f"DELETE FROM t WHERE {predicate}", {"t": schema})
    fill = read_statement(f"INSERT INTO t VALUES {_values(rows)}", {"t": schema})
    database = initial_database(DELTA, {"t": schema}, [fill])
    left = Counter(
        row.values
        for f in statement_effect(where, database, "a", {"t": schema}).reads
        for row in f.matched
    )
    duck.execute("CREATE OR REPLACE TABLE t (id INT, part INT, x INT)")
    duck.execute(f"INSERT INTO t VALUES {_values(rows)}")
    assert left == Counter(duck.execute(f"SELECT * FROM t WHERE {predicate}").fetchall())


@given(tables(), predicates(depth=4), ROWS)
def test_the_normal_form_of_a_condition_means_the_same(schema, predicate, rows):
    where = is_readable(f"DELETE FROM t WHERE {predicate}", {"t": schema}).where
    form = normalize(where)
    assert normalize(form) == form
    for row in rows:
        assert evaluate(form, (row,)) == evaluate(where, (row,))


def _values(rows):
    return ", ".join(f"({i}, {p}, {'NULL' if x is None else x})" for i, p, x in rows)


@pytest.mark.slow
@given(litmus_tests(most=4), st.data())
def test_every_order_gives_the_tables_that_duckdb_gives(test, data):
    order = tuple(data.draw(st.permutations(list(test.transactions))))
    own = ModelExecutor(test).after(order)
    theirs = DuckExecutor(test).after(order)
    assert (own is None) == (theirs is None)
    if own is not None:
        assert same_bag(own["t"], theirs["t"])


@pytest.mark.slow
@given(
    tables(),
    st.sampled_from(
        [
            "DELETE FROM t WHERE {}",
            "UPDATE t SET x = 7 WHERE {}",
            "INSERT INTO t SELECT * FROM t WHERE {}",
            "INSERT INTO t SELECT 9, 0, 1 WHERE (SELECT count(*) FROM t WHERE {}) > 0",
            "INSERT INTO t SELECT * FROM t WHERE id IN (SELECT x FROM t WHERE {})",
        ]
    ),
    predicates(depth=3),
    ROWS,
)
def test_footprints_are_sound(schema, template, predicate, rows):
    """The premise of Theorem 5: what a statement matched is in a file that it read, and satisfies a
    partition predicate that it recorded."""
    fill = read_statement(f"INSERT INTO t VALUES {_values(rows)}", {"t": schema})
    database = initial_database(DELTA, {"t": schema}, [fill])
    done = statement_effect(
        is_readable(template.format(predicate), {"t": schema}), database, "a", {"t": schema}
    )
    home = {row.id: f for f in database["t"].files for row in f.rows}
    other = read_statement("INSERT INTO t VALUES (9, 9, 9)", {"t": schema})
    for read in done.reads:
        for row in read.matched:
            assert home[row.id].path in done.footprint.files
            values = ", ".join("NULL" if v is None else str(v) for v in row.values)
            same = read_statement(f"INSERT INTO t VALUES ({values})", {"t": schema})
            winner = statement_effect(same, database, "w", {"t": schema}).footprint
            assert adds_meet_reads(winner, done.footprint)
    assert statement_effect(other, database, "w", {"t": schema}).footprint.blind


RECORDED = [name for name in protocols() if not name.startswith("delta-rs-")]
"""The protocols that judge what is in every frame; delta-rs' judge what a statement asks for, which
is there only under them, and two commits of it may remove one file."""


@pytest.mark.slow
@given(litmus_tests(most=4), st.sampled_from(RECORDED))
def test_what_a_protocol_lets_in_its_text_admits_and_the_other_way_round(test, name):
    """Checking at each commit, winner by winner, is judging the whole frame."""
    spec = protocol(name)
    unchecked = execute(test)
    assume(not any(e.effect.error for e in unchecked.events))
    assume(not any(e.effect.footprint and e.effect.footprint.empty for e in unchecked.events))
    all_in = not any(e.aborted for e in execute(test, spec).events)
    assert all_in == admits(execution_frame(unchecked), spec)
    assert admits(execution_frame(execute(test, spec)), spec)


@pytest.mark.slow
@given(litmus_tests(most=4), st.sampled_from(RECORDED))
def test_only_anti_dependencies_point_backwards(test, name):
    """Lemma 1: with first committer wins, every ww and wr edge comes from what was seen."""
    frame = execution_frame(execute(test, protocol(name)))
    vis = frame.relations["vis"]
    for kind in ("ww", "wr"):
        assert not frame.relations[kind] - vis
    for j, i in (frame.relations["rw"] & frame.relations["log"].inverse()).pairs():
        assert (i, j) in frame.relations["unseen"]


@pytest.mark.slow
@given(litmus_tests(most=4, tracked=True))
def test_serializable_as_checked_has_no_backward_edge(test):
    """Theorem 5, for tracked reads: what delta-serializable lets in is log-serializable."""
    run = RunResult(
        test,
        observed_run(test, execute(test, protocol("delta-serializable")), "delta-serializable"),
    )
    assert isinstance(run.verdict(level("log-serializable")), Allowed)
    assert not run.serial.unexplained


@pytest.mark.slow
@given(litmus_tests(most=2, tracked=True))
def test_two_writers_cannot_break_write_serializable(test):
    """Theorem 7, for tracked reads."""
    frame = execution_frame(execute(test, protocol("delta-write-serializable")))
    assert admits(frame, level("write-serializable"))


@pytest.mark.slow
@given(litmus_tests(least=3, most=4))
def test_an_order_of_the_writers_explains_every_version(test):
    """Theorem 3: a topological order of the writers' conflicts gives the table at every version;
    Theorem 4: acyclic conflicts imply first committer wins."""
    execution = execute(test, protocol("delta-snapshot-isolation"))
    frame = execution_frame(execution)
    verdict = judge(frame, level("write-serializable"))
    if isinstance(verdict, Allowed):
        run = observed_run(test, execution, "delta-snapshot-isolation")
        position = {name: k for k, name in enumerate(verdict.witness)}
        writers = sorted(
            (n for n, t in run.transactions.items() if t.version is not None), key=position.get
        )
        own = ModelExecutor(test)
        for k, tables in enumerate(run.versions):
            so_far = tuple(n for n in writers if run.transactions[n].version <= k)
            assert same_bag(own.after(so_far)["t"], tables["t"])
    if admits(execution_frame(execute(test)), level("write-serializable")):
        assert admits(execution_frame(execute(test)), level("snapshot-isolation"))


@pytest.mark.slow
@given(litmus_tests(most=4), st.sampled_from(protocols()))
def test_the_levels_are_a_lattice(test, name):
    frame = execution_frame(execute(test, protocol(name)))
    for stronger, weaker in [
        ("log-serializable", "serializable"),
        ("serializable", "write-serializable"),
        ("write-serializable", "snapshot-isolation"),
    ]:
        assert not admits(frame, level(stronger)) or admits(frame, level(weaker))


@pytest.mark.slow
@given(litmus_tests(most=4), st.sampled_from(RECORDED))
def test_a_run_retraced_is_the_run(test, name):
    run = observed_run(test, execute(test, protocol(name)), name)
    judged = RunResult(test, run)
    assert judged.frame is not None
    assert run_differences(run, run) == ()
    own = explain_serially(test, run)
    assert 0 not in own.unexplained
    assert (len(run.versions) - 1 in own.unexplained) == (not own.orders)


@pytest.mark.slow
@given(litmus_tests(most=4))
def test_a_test_written_and_read_is_the_same_test(test):
    again = read_litmus(str(test), "drawn")
    assert (again.tables, again.init, again.transactions, again.schedule) == (
        test.tables,
        test.init,
        test.transactions,
        test.schedule,
    )


@pytest.mark.slow
@given(litmus_tests(most=3))
def test_files_partition_the_rows(test):
    """Every file lies in one partition, no path is live twice, and no row has two versions live."""
    execution = execute(test, protocol("delta-snapshot-isolation"))
    schema = test.tables["t"]
    for state in execution.states:
        files = state["t"].files
        assert len({f.path for f in files}) == len(files)
        rows = [row for f in files for row in f.rows]
        assert len({row.id for row in rows}) == len(rows)
        for f in files:
            assert {schema.partition_of(row.values) for row in f.rows} == {f.partition}
            assert schema.rows_per_file is None or len(f.rows) <= schema.rows_per_file
    for before, after in pairwise(execution.states):
        assert before is not after


DAYS = {"t": Schema("t", (Column("id", "INT"), Column("date", "DATE"), Column("text", "STRING")))}


@pytest.mark.parametrize(
    "condition",
    ["date > {}", "{} > date", "date <> {}", "date IN ({}, DATE '2010-01-02')", "NOT date <= {}"],
)
def test_a_text_beside_a_date_is_the_date_that_it_says(condition):
    """Spark casts it (D61)."""
    said, meant = (
        read_statement(f"DELETE FROM t WHERE {condition.format(day)}", DAYS).where
        for day in ("'2010-01-01'", "DATE '2010-01-01'")
    )
    assert said == meant


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("date > '2010-1-1'", "1:28: '2010-1-1' is not a date; write 'YYYY-MM-DD'"),
        ("date > '2010-02-30'", "'2010-02-30' is not a date; write 'YYYY-MM-DD'"),
        ("date IN ('soon')", "'soon' is not a date; write 'YYYY-MM-DD'"),
        ("date = 1", "compares DATE with INT; Spark's comparison of the two is not modelled"),
        ("date = DATE '20100101'", "'20100101' is not a date; write DATE 'YYYY-MM-DD'"),
        ("date = DATE '2010-W01-1'", "'2010-W01-1' is not a date; write DATE 'YYYY-MM-DD'"),
    ],
)  # fmt: skip
def test_a_text_that_says_no_date_is_refused(condition, message):
    with pytest.raises(SqlError) as refused:
        read_statement(f"DELETE FROM t WHERE {condition}", DAYS)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("DELETE FROM t WHERE idd = 1", "1:21: unknown column 'idd'; did you mean 'id'?"),
        ("DELETE FROM u", "1:13: unknown table 'u'; known: t"),
        (
            "DELETE FROM t WHERE mask(id) = 'a'",
            "'mask(id)' is outside the SQL that isolitmus models",
        ),
        ("DELETE FROM t WHERE id = 'a'", "'a' is not of type BIGINT"),
        ("DELETE FROM t WHERE id = NULL", "a comparison with NULL is never true; use IS NULL"),
        ("SELECT DISTINCT id + 1 FROM t", "'DISTINCT' is outside the SQL that isolitmus models"),
        ("SELECT id, count(*) FROM t", "column 'id' stands outside an aggregate"),
        ("INSERT INTO t VALUES (1, 2)", "table t has 3 columns, the query gives 2"),
        ("INSERT INTO t SELECT id, part, DATE '2020-01-01' FROM t", "is DATE and column x is INT"),
        ("UPDATE t SET id = 1, id = 2", "column 'id' is set twice"),
        ("OPTIMIZE t WHERE id = 1", "OPTIMIZE takes a condition on partition columns only"),
        ("DELETE FROM t; DELETE FROM t", "expected one statement, found 2"),
        (
            "MERGE INTO t USING t ON t.id = t.id WHEN MATCHED THEN DELETE",
            "both sides are called 't'",
        ),
    ],
)
def test_what_is_outside_the_fragment_is_refused_with_its_place(sql, message):
    from isolitmus.checker.strategies import COLUMNS

    with pytest.raises(SqlError) as refused:
        read_statement(sql, {"t": Schema("t", COLUMNS, ("part",))})
    assert message in str(refused.value)
