"""Litmus tests on a table and statements of one's own: what fails shrinks to the smallest that a
person can read.
"""

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from isolitmus.checker import run
from isolitmus.checker.strategies import litmus_tests
from isolitmus.checker.strategies.table_strategies import constants_in, table_rows_for
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus

ORDERS = (
    "CREATE TABLE shop.orders (id INT, amount INT, day STRING) USING delta PARTITIONED BY (day)"
)
JOBS = [
    "INSERT INTO orders VALUES (100, 25, 'mon')",
    "DELETE FROM orders WHERE day = 'mon'",
    "INSERT INTO orders SELECT 0, sum(amount), 'total' FROM orders WHERE day = 'mon'",
]
WEAK = protocol("delta-write-serializable")


@pytest.mark.slow
@given(litmus_tests(table=ORDERS, statements=JOBS, sessions=True))
def test_what_is_drawn_is_of_the_table_and_reads_back(test):
    assert [*test.tables] == ["orders"]
    assert {t.sql for t in test.transactions.values()} <= set(JOBS)
    assert str(read_litmus(str(test), "drawn")) == str(test)
    run(test, WEAK)


def reordered(test):
    """Whether the table's history is no order in which its jobs could have run."""
    return str(run(test, WEAK).levels["log-serializable"]) == "forbidden"


@pytest.mark.slow
def test_what_fails_among_ones_own_jobs_shrinks_to_the_smallest():
    """Two transactions, each of which sees what the other one has changed, on one row."""
    found = find(
        litmus_tests(table=ORDERS, statements=JOBS),
        reordered,
        settings=settings(max_examples=1000, phases=[Phase.generate, Phase.shrink]),
    )
    first, second = (t.sql for t in found.transactions.values())
    assert {first, second} == set(JOBS[:2])
    assert len(found.init) == 1
    assert repr(found).startswith("# drawn.toml\n")
    assert reordered(read_litmus(str(found), "again"))


@given(
    litmus_tests(
        table="CREATE TABLE t (k BIGINT, on_ DATE, ok BOOLEAN) USING delta",
        statements=[st.integers(1, 2).map("DELETE FROM t WHERE k = {}".format)],
        rows=st.just("(1, DATE '2026-01-01', true)"),
        least=1,
        most=1,
    )
)
def test_statements_and_rows_may_be_drawn(test):
    (transaction,) = test.transactions.values()
    assert transaction.sql in {"DELETE FROM t WHERE k = 1", "DELETE FROM t WHERE k = 2"}
    assert {init.sql for init in test.init} == {"INSERT INTO t VALUES (1, DATE '2026-01-01', true)"}


@pytest.mark.slow
@given(
    litmus_tests(
        table=(
            "CREATE TABLE t (d DATE, s TIMESTAMP, p DECIMAL(10,2), x DOUBLE, ok BOOLEAN) USING"
            " delta"
        ),
        statements=["DELETE FROM t WHERE d = '2026-03-01' AND p > 1.5"],
    )
)
def test_every_type_has_values(test):
    done = run(test, WEAK).run
    assert {t.outcome for t in done.transactions.values()} <= {
        "committed",
        "no-op",
        "ConcurrentDeleteReadException",
    }
    assert all(len(row) == 5 for row in done.tables["t"])


def test_rows_have_what_the_statements_name():
    schema = Schema("t", (Column("day", "STRING"), Column("id", "INT")))
    seen = set()

    @settings(max_examples=200)
    @given(table_rows_for(schema, constants_in(["DELETE FROM t WHERE day = 'mon' AND id = 7"])))
    def draw(row):
        seen.add(row)

    draw()
    assert "('mon', 7)" in seen
    assert "('a', 0)" in seen
    assert any("NULL" in row for row in seen)


@pytest.mark.parametrize(
    ("table", "statements", "said"),
    [
        (ORDERS, [], "needs statements="),
        (
            ORDERS,
            ["DELETE FROM orders WHERE dya = 'mon'"],
            "unknown column 'dya'; did you mean 'day'",
        ),
        (ORDERS, ["DELETE FROM order WHERE"], "order"),
        ("CREATE VIEW v AS SELECT 1", ["DELETE FROM v"], "CREATE TABLE"),
        ("CREATE TABLE t (id INTEGR) USING delta", ["DELETE FROM t"], "INTEGR"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(table, statements, said):
    with pytest.raises(IsolitmusError, match=said):
        find(litmus_tests(table=table, statements=statements), lambda _: True)
