"""Expressions without columns have one value in a run: they are parameters with any value."""

from datetime import date

import pytest

from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.sql.job_binding import bind_job_statement
from isolitmus.model.sql.expression import Opaque, Parameter
from isolitmus.model.sql.query import unknown_parts
from isolitmus.specs.sql.parameters import bound_literals, count_in_text
from isolitmus.specs.sql.statements import read_statement

DDL = (
    'ddl = "CREATE TABLE t (id BIGINT, n INT, day DATE, at TIMESTAMP, s STRING) USING delta'
    ' PARTITIONED BY (day)"\n'
)


def read(sql, more=""):
    return read_workload(f'{DDL}[jobs.a]\nsql = """{sql}"""\n{more}', "jobs")


PARAMETERS = {
    "DELETE FROM t WHERE day < add_months(current_date(), -24)": {
        "add_months(current_date(), -24)": "DATE"
    },
    "DELETE FROM t WHERE day < current_date() - INTERVAL 24 MONTHS": {
        "current_date() - INTERVAL 24 MONTHS": "DATE"
    },
    "DELETE FROM t WHERE at < date_trunc('month',\n  current_date()) AND day = trunc(:d, 'MM')": {
        "d": "DATE",
        "date_trunc('month', current_date())": "TIMESTAMP",
        "trunc(:d, 'MM')": "DATE",
    },
    "UPDATE t SET s = current_user() WHERE day IN (last_day(:d), current_date())": {
        "d": "DATE",
        "current_user()": "STRING",
        "last_day(:d)": "DATE",
        "current_date()": "DATE",
    },
    # nothing is known of its type, but it is stored
    "INSERT INTO t VALUES (1, floor(:x) % 7, NULL, NULL, lpad(:y, 3, '0'))": {
        "x": "INT",
        "y": "STRING",
        "floor(:x) % 7": "INT",
        "lpad(:y, 3, '0')": "STRING",
    },
    # two equal texts are one parameter
    "DELETE FROM t WHERE day < last_day(:d) OR day > last_day(:d)": {
        "d": "DATE",
        "last_day(:d)": "DATE",
    },
    # inside a modelled function, only the part that is not modelled
    "DELETE FROM t WHERE day < date_sub(last_day(:d), 7)": {"d": "DATE", "last_day(:d)": "DATE"},
}


@pytest.mark.parametrize("sql", PARAMETERS)
def test_an_expression_without_columns_is_a_parameter(sql):
    work = read(sql, 'parameters = { x = "INT", y = "STRING" }' if ":x" in sql else "")
    (one,) = work.statements
    assert one.types == PARAMETERS[sql]
    assert not any(isinstance(part, Opaque) for part in unknown_parts(one.statement))
    assert one.sql == sql
    for name, type_ in one.types.items():
        said = f"a: '{name}' may be any {type_} or NULL, one value in each run."
        assert (said in work.left_out) == ("(" in name and name != "current_date()")


@pytest.mark.parametrize(
    "condition",
    [
        "n = mine(3)",
        "day < last_day(day)",
        "day < add_months(at, 1)",
        "n < abs(round(2.5))",  # of no certain type
        "at < current_date() - INTERVAL 2 HOURS - INTERVAL 1 MONTH",  # a timestamp, not a date
        # the words are also a part of another expression
        "day < current_date() - INTERVAL 2 MONTHS OR day < :d - current_date() - INTERVAL 2 MONTHS",
    ],
)
def test_another_expression_stays_opaque(condition):
    (one,) = read(
        f"DELETE FROM t WHERE {condition}",
        'parameters = { d = "DATE" }' if ":d" in condition else "",
    ).statements
    parts = unknown_parts(one.statement)
    assert any(isinstance(part, Opaque) for part in parts)
    assert not any(isinstance(part, Parameter) and " " in part.name for part in parts)


def test_what_a_client_reads_is_not_any_value():
    """The value of the expression depends on the rows, as the UPDATE that stores it does."""
    let = 'let = { seen = "SELECT max(day) FROM t" }'
    (one,) = read("UPDATE t SET day = add_months(:seen, 1) WHERE id = 1", let).statements
    assert any(isinstance(part, Opaque) for part in unknown_parts(one.statement))


CUT = "add_months(current_date(), -1)"


@pytest.mark.parametrize(
    ("value", "literal"),
    [(date(2026, 1, 2), "DATE '2026-01-02'"), (None, "CAST(NULL AS DATE)")],
)
def test_a_value_takes_the_place_of_the_text(value, literal):
    work = read(f"DELETE FROM t WHERE day < {CUT} AND s <> '{CUT}' AND day <> :d")
    (one,) = work.statements
    values = {CUT: value, "d": date(2026, 1, 3)}
    bound, _ = bind_job_statement(
        one, values, work.tables, lambda sql: read_statement(sql, work.tables)
    )
    text = f"DELETE FROM t WHERE day < {literal} AND s <> '{CUT}' AND day <> DATE '2026-01-03'"
    assert bound.sql == text
    assert bound_literals(one.sql, text, one.types) == {CUT: literal, "d": "DATE '2026-01-03'"}


def test_words_in_strings_comments_and_other_functions_do_not_count():
    text = "SELECT f(1), 'f(1)', g.f(1), af(1), F(1) /* f(1) */, f(1)"
    assert count_in_text(text, "f(1)") == 2


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM t WHERE day < {}",
        "DELETE FROM t WHERE n = 1 AND day = {}",
        "INSERT INTO t VALUES (1, 1, {}, NULL, 'x')",
        (
            "MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id AND t.day >= {} WHEN MATCHED"
            " THEN UPDATE SET day = {}"
        ),
    ],
)
def test_predictions_are_those_of_a_parameter(sql):
    def words(cut):
        other = "[jobs.b]\nsql = \"INSERT INTO t VALUES (2, 1, :day, NULL, 'y')\""
        found = predict_workload(
            read(sql.replace("{}", cut), other), "delta-serializable", examples=True
        )
        return [
            (one.loser, one.winner, one.word, [part.replace(cut, ":cut") for part in one.condition])
            for one in found.meetings
        ]

    assert words(CUT) == words(":cut")
    assert "unknown" not in {word for _, _, word, _ in words(CUT)}


def test_a_null_is_found():
    """A parameter of a client is never NULL, an expression may be."""
    work = read(
        "INSERT INTO t VALUES (1, 1, add_months(:d, 1), NULL, 'x')",
        "[jobs.b]\nsql = 'DELETE FROM t WHERE day IS NULL'",
    )
    found = predict_workload(work, "delta-serializable")
    assert ("b", "a", "always") not in {(one.loser, one.winner, one.word) for one in found.meetings}
    (one,) = (one for one in found.meetings if (one.loser, one.winner) == ("b", "a"))
    assert one.word == "when"
