"""Expressions of all types: the model computes what DuckDB computes, where Spark and DuckDB
agree.
"""

from collections import Counter

import pytest
from formats.drawn_expressions import LITERALS, TABLE, expressions, rows
from hypothesis import event, given, settings
from hypothesis import strategies as st

from isolitmus.checker.execution.duckdb_executor import DuckExecutor
from isolitmus.checker.execution.serial_orders import ModelExecutor
from isolitmus.model.errors import SqlError, UndeterminedError
from isolitmus.model.litmus import Litmus
from isolitmus.model.run import same_bag
from isolitmus.model.schedule import Schedule
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.specs.sql.statements import read_statement


def both(sql, tables, init):
    """The tables after a statement, by the model and by DuckDB; None where it fails."""
    named = {"a": read_statement(sql, tables)}
    inits = tuple(read_statement(text, tables) for text in init)
    test = Litmus("both", "", "", tables, inits, named, Schedule.parse("a", named), format="delta")
    one, other = (executor(test).after(("a",)) for executor in (ModelExecutor, DuckExecutor))
    assert (one is None) == (other is None), (sql, init, one, other)
    assert one is None or same_bag(one["r"], other["r"]), (sql, init, one["r"], other["r"])
    return one and one["r"]


@pytest.mark.slow
@given(st.data())
def test_values(data):
    type_ = data.draw(st.sampled_from(sorted(LITERALS)))
    sql = f"INSERT INTO r SELECT {data.draw(expressions(type_))} FROM t"
    tables = {"t": TABLE, "r": Schema("r", (Column("v", type_),))}
    try:
        found = both(sql, tables, [f"INSERT INTO t VALUES {data.draw(rows())}"])
    except (SqlError, UndeterminedError) as error:
        event(f"not modelled: {type(error).__name__}")
        return
    event(f"{type_}: {'fails' if found is None else 'gives rows'}")


@pytest.mark.slow
@given(st.data())
def test_conditions(data):
    condition = data.draw(expressions("BOOLEAN"))
    tables = {"t": TABLE, "r": Schema("r", (Column("v", "INT"),))}
    sql = f"INSERT INTO r SELECT i FROM t WHERE {condition}"
    try:
        both(sql, tables, [f"INSERT INTO t VALUES {data.draw(rows())}"])
    except (SqlError, UndeterminedError) as error:
        event(f"not modelled: {type(error).__name__}")


@pytest.mark.slow
def test_what_is_drawn_is_mostly_read():
    """Else the tests above would say little."""
    read = Counter()

    # Of few draws, many may be variants of one that is not read.
    @settings(max_examples=300)
    @given(st.sampled_from(sorted(LITERALS)).flatmap(expressions))
    def count(sql):
        try:
            read_statement(f"SELECT {sql} FROM t", {"t": TABLE})
        except SqlError:
            read["refused"] += 1
        else:
            read["read"] += 1

    count()
    assert read["read"] > 2 * read["refused"], read


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("5 / 2", 2.5),
        ("CAST(-2.5D AS INT)", -2),
        ("substring('abc', -5, 3)", "a"),
        ("CAST(TIMESTAMP '2026-01-01 10:00:00.50' AS STRING)", "2026-01-01 10:00:00.5"),
        ("'a' || 1", "a1"),
        ("3 IN ('3', 4)", True),
        ("COALESCE(1, CAST('x' AS INT))", 1),
        ("CASE WHEN true THEN 1 ELSE 1/0 END", 1.0),
        (
            "CAST(CAST(1.50 AS DECIMAL(10,2)) / CAST(9 AS BIGINT) AS STRING)",
            "0.16666666666666666666667",
        ),
        ("CAST(CAST(1.50 AS DECIMAL(10,2)) / 9 AS STRING)", "0.166667"),
        ("CAST(CAST(12345678.9 AS DOUBLE) AS STRING)", "1.23456789E7"),
        ("NULL / 0", None),
        ("CAST(DATE '2026-01-31' - INTERVAL 30 DAYS AS STRING)", "2026-01-01"),
        ("CAST(DATE '2026-01-31' - INTERVAL 36 HOURS AS STRING)", "2026-01-29 12:00:00"),
        ("CAST(INTERVAL 1 DAY + DATE '2026-01-31' AS STRING)", "2026-02-01"),
        (
            "CAST(TIMESTAMP '2026-03-29 10:00:00.5' - INTERVAL '90' MINUTES AS STRING)",
            "2026-03-29 08:30:00.5",
        ),
        (
            "CAST(TIMESTAMP '2026-03-30 10:00:00' - INTERVAL 30 DAYS AS STRING)",
            "2026-02-28 10:00:00",
        ),
        ("CAST(date_sub(TIMESTAMP '2026-01-08 10:00:00', 7) AS STRING)", "2026-01-01"),
        ("DATE '2026-01-01' = TIMESTAMP '2026-01-01 00:00:00'", True),
    ],
)
def test_values_that_spark_gives(sql, value):
    """As Spark 4.2.0 gave them."""
    types = {float: "DOUBLE", bool: "BOOLEAN", int: "INT", str: "STRING", type(None): "DOUBLE"}
    tables = {"r": Schema("r", (Column("v", types[type(value)]),))}
    assert both(f"INSERT INTO r SELECT {sql}", tables, []) == ((value,),)


@pytest.mark.parametrize(
    "sql",
    ["CAST('12.5' AS INT)", "1 / 0", "CAST('maybe' AS INT)", "CAST(1e20 AS INT)", "CAST('x' AS INT)", "CAST('9999999999' AS INT)"],
)  # fmt: skip
def test_values_that_fail_as_in_spark(sql):
    """A text of a number is refused where it is a constant; else a statement fails."""
    tables = {"r": Schema("r", (Column("v", "DOUBLE"),))}
    assert both(f"INSERT INTO r SELECT {sql}", tables, []) is None
