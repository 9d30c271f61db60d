"""Expressions on Spark: what they give, and what Delta records of the conditions that are made of
them.
"""

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from time import sleep

import pytest
from formats.conditions import ADDED, GONE, concurrent
from formats.drawn_expressions import LITERALS, ROWS, TABLE, TYPES, expressions
from formats.drawn_joins import joins
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isolitmus.conformance.agreement import find_differences
from isolitmus.conformance.delta.engine import DELTA, open_delta
from isolitmus.conformance.delta.table_versions import plain_row
from isolitmus.conformance.delta.tables import make_tables
from isolitmus.conformance.workers import run_together
from isolitmus.model.errors import SqlError, UndeterminedError
from isolitmus.model.litmus import Litmus
from isolitmus.model.run import SeveralRuns
from isolitmus.model.schedule import Schedule
from isolitmus.model.sql.evaluation import evaluate
from isolitmus.model.sql.types import EvaluationError
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.sql.statements import read_statement

pytestmark = pytest.mark.spark

MIDNIGHT_NEAR = 57
"""From this minute of the last hour the day may change while a test runs."""
JOINS = 16
DRAWN, AT_ONCE, SINGLE = 300, 60, 8
VALUES = [
    ", ".join(ROWS[type_][k % len(ROWS[type_])] if k < 5 else "NULL" for type_ in TYPES.values())
    for k in range(6)
]


def drawn(strategy, count):
    """Draw examples of a strategy by the seed of the run."""
    found = []

    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example):
        found.append(example)

    collect()
    return list(dict.fromkeys(found))


def drawn_expressions():
    """Expressions of all types."""
    return drawn(st.sampled_from(sorted(LITERALS)).flatmap(expressions), DRAWN)


def computed(expression, rows):
    """The model's values on some rows; None where it knows none, an error where that is what
    comes.
    """
    try:
        item = read_statement(f"SELECT {expression} FROM t", {"t": TABLE}).query[0].items[0]
        return [evaluate(item, (row,)) for row in rows]
    except EvaluationError as error:
        return error
    except (SqlError, UndeterminedError):
        return None


def test_spark_gives_what_the_model_gives(session):
    """Many expressions in one query; those that fail, one by one."""
    names = list(TYPES)
    inits = (read_statement(f"INSERT INTO t VALUES ({'), ('.join(VALUES)})", {"t": TABLE}),)
    read = {"r": read_statement("SELECT i FROM t", {"t": TABLE})}
    test = Litmus("e", "", "", {"t": TABLE}, inits, read, Schedule.parse("r", read), format="delta")
    with make_tables(test, "Serializable", session) as tables:
        spark = tables.client("t")
        spark.sql(inits[0].sql).collect()
        rows = [plain_row(row) for row in spark.table("t").collect()]
        known = {expression: computed(expression, rows) for expression in drawn_expressions()}
        values = {e: v for e, v in known.items() if isinstance(v, list)}
        fails = [e for e, v in known.items() if isinstance(v, EvaluationError)]
        for start in range(0, len(values), AT_ONCE):
            part = list(values)[start : start + AT_ONCE]
            items = ", ".join(f"{e} AS c{k}" for k, e in enumerate(part))
            seen = spark.sql(f"SELECT {items}, {', '.join(names)} FROM t").collect()
            by_row = {row[len(part) :]: row[: len(part)] for row in map(plain_row, seen)}
            for k, expression in enumerate(part):
                found = [(v, type(v)) for v in (by_row[row][k] for row in rows)]
                assert found == [(v, type(v)) for v in values[expression]], expression
        for expression in fails[:SINGLE]:
            with pytest.raises(Exception, match=r"CAST|OVERFLOW|DIVIDE|RANGE"):
                spark.sql(f"SELECT {expression} FROM t").collect()
    assert len(values) > DRAWN / 5


CLOCKED = [
    ("d", "DELETE FROM t WHERE d < current_date()", ADDED),
    ("d", "DELETE FROM t WHERE d > current_date() - 7", ADDED),
    ("d", "INSERT INTO t SELECT * FROM t WHERE d >= date_sub(current_date(), 30)", ADDED),
    ("", "UPDATE t SET x = 9 WHERE ts < current_timestamp() AND id > 2", GONE.format(1)),
    ("", "UPDATE t SET x = 9 WHERE ts < current_timestamp() - INTERVAL 3 DAYS", GONE.format(1)),
    ("d", "DELETE FROM t WHERE d > current_date() - INTERVAL 7 DAYS", ADDED),
    (
        "",
        "INSERT INTO t SELECT id, s, current_date(), ts, m, x FROM t WHERE ts > now()",
        GONE.format(1),
    ),
    (
        "d",
        (
            "MERGE INTO t USING (SELECT 9 AS id) k ON t.id = k.id AND t.d > current_date() WHEN"
            " MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, s, d, ts, m, x) VALUES (k.id,"
            " NULL, current_date(), NULL, NULL, NULL)"
        ),
        ADDED,
    ),
]


@pytest.mark.drawn
@pytest.mark.parametrize(("part", "a", "b"), CLOCKED)
def test_delta_records_of_the_clock_what_it_does_of_a_literal(session, part, a, b):
    """Spark is given the function, the model what the clock says today."""
    while (now := datetime.now(UTC)).hour == 23 and now.minute > MIDNIGHT_NEAR:
        sleep(1)
    test = concurrent(part, a, b, f'clock = "{now:%Y-%m-%d %H:%M:%S}"')
    asked = replace(test.transactions["a"], sql=a)
    assert asked.sql != test.transactions["a"].sql
    test = replace(test, transactions={**test.transactions, "a": asked})
    assert find_differences(test, protocol("delta-serializable"), open_delta(session)) == ()


def test_delta_records_of_a_join_with_the_target_what_the_model_does(session):
    """Where the model says it: of most joins."""

    def found(text):
        test = read_litmus(text, "joined")
        try:
            return find_differences(test, protocol("delta-serializable"), open_delta(session))
        except UndeterminedError:
            return None

    texts = drawn(joins(), JOINS)
    with closing(run_together(found, texts, DELTA.at_once)) as answers:
        said = dict(zip(texts, answers, strict=True))
    assert {text: differs for text, differs in said.items() if differs} == {}
    assert [*said.values()].count(None) < len(texts) / 2


OPAQUE = """
title = "A condition that the model does not know, and Spark does"
schedule = "a.start b a.commit"
[table]
columns = "id INT, part INT, s STRING"
partitioned_by = ["part"]
init = ["INSERT INTO t VALUES (1, 0, 'axx'), (2, 1, 'b')", "INSERT INTO t VALUES (3, 0, 'c')"]
[transactions]
a = "{}"
b = "INSERT INTO t VALUES (5, 1, 'q')"
"""


@pytest.mark.drawn
@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM t WHERE part = 0 AND s RLIKE 'x{2}'",
        "DELETE FROM t WHERE nvl2(1, part, id) = 1",
        "INSERT INTO t SELECT id, 1, s FROM t WHERE shiftleft(part, 1) = 2",
        "INSERT INTO t SELECT id, 1, s FROM t WHERE shiftleft(1, 1) = 3",
        "INSERT INTO t SELECT id, 1, s FROM t WHERE nosuch(id) = 1",
    ],
)
def test_what_delta_does_is_among_what_is_possible(session, sql):
    """Also where Spark makes a constant of it, or does not know the function."""
    test = read_litmus(OPAQUE.format(sql), "opaque")
    with pytest.raises(SeveralRuns):
        find_differences(test, protocol("delta-serializable"), open_delta(session))
