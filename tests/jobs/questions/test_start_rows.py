"""Rows at the start of a violation are rows that a job may have written."""

import json

import pytest

from isolitmus.jobs.invariants.invariants import decide_invariants
from isolitmus.jobs.questions.start_rows import unwritten_start_row
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.model.delta.table import TableState
from isolitmus.model.sql.data_file import File, TableRow

TABLES = [
    "CREATE TABLE fct (k STRING, id INT) USING delta",
    "CREATE TABLE src (id INT, name STRING) USING delta",
]


def jobs(sql, parameters=""):
    text = f"""
ddl = {json.dumps(TABLES)}
[jobs.load]
sql = {json.dumps(sql)}
alone = true
{parameters}
[invariants]
one = "unique(id)"
"""
    return read_workload(text, "jobs")


def start(*rows):
    return {"fct": TableState((File.of("f", (), tuple(TableRow("a", "", r) for r in rows)),))}


ONE = "c4ca4238a0b923820dcc509a6f75849b"
"""MD5 of '1'."""
NESTED = (
    "MERGE INTO fct t USING (SELECT md5(CAST(id AS STRING)) AS k, id FROM src) s ON s.k = t.k WHEN"
    " MATCHED THEN UPDATE SET id = s.id WHEN NOT MATCHED THEN INSERT *"
)


@pytest.mark.parametrize(
    ("sql", "row", "possible"),
    [
        ("INSERT INTO fct SELECT md5(CAST(id AS STRING)), id FROM src", (ONE, 1), True),
        ("INSERT INTO fct SELECT md5(CAST(id AS STRING)), id FROM src", (ONE, 2), False),
        ("INSERT INTO fct SELECT md5(CAST(id AS STRING)), id FROM src", (None, 2), True),
        ("INSERT INTO fct SELECT s.k, s.id FROM (SELECT lower(name) AS k, id FROM src) s", ("a", 7), True),
        ("INSERT INTO fct SELECT s.k, s.id FROM (SELECT lower(name) AS k, id FROM src) s", ("A", 7), False),
        ("INSERT INTO fct SELECT name, id FROM src", ("c", 1), True),
        (NESTED, (ONE, 1), True),
        (NESTED, ("c", 1), False),
        ("INSERT INTO fct SELECT coalesce(name, 'x'), id FROM src", ("c", 1), True),
    ],
)  # fmt: skip
def test_rows_that_statements_compute(sql, row, possible):
    problem = unwritten_start_row(jobs(sql), start(row))
    assert (problem is None) is possible
    assert possible or "no statement was found that writes this row" in problem


def test_tables_that_no_job_fills_have_any_rows():
    work = jobs("DELETE FROM src WHERE id = 1")
    assert unwritten_start_row(work, start(("c", 1))) is None


def words(work):
    return [answer.word for answer in decide_invariants(work, ["delta-serializable"])]


@pytest.mark.slow
def test_a_computed_key_is_not_broken_by_a_row_that_no_run_writes():
    """Two runs with one id have one key, so that the second one updates the row."""
    one_row = "(SELECT md5(CAST(:id AS STRING)) AS k, :id AS id)"
    merge = (
        f"MERGE INTO fct t USING {one_row} s ON s.k = t.k WHEN MATCHED THEN UPDATE SET id = s.id"
        " WHEN NOT MATCHED THEN INSERT *"
    )
    work = jobs(merge, 'parameters = { id = "INT" }')
    (answer,) = decide_invariants(work, ["delta-serializable"])
    assert answer.word == "unknown"
    assert "no statement was found that writes this row" in answer.why[0]


@pytest.mark.slow
def test_a_computed_key_is_broken_by_two_rows_of_the_source():
    assert words(jobs(NESTED)) == ["broken"]
    assert words(jobs(NESTED.replace("md5(CAST(id AS STRING))", "name"))) == ["broken"]
