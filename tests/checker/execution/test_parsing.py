"""SQL is parsed once, and resolved on the tables that a statement finds."""

from collections import Counter

import pytest
import sqlglot
from sqlglot.parser import Parser

from isolitmus.checker.delta.metadata_changes import analyse_again
from isolitmus.checker.execution.run_result import run
from isolitmus.model.errors import SqlError
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.model.sql.types import EvaluationError
from isolitmus.specs.files.catalogue import litmus
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.spec_catalogue import protocol
from isolitmus.specs.sql.statements import read_statement
from isolitmus.specs.sql.syntax import PARSED

SERIALIZABLE = protocol("delta-serializable")
T = {"t": Schema("t", (Column("id", "INT"), Column("x", "INT")))}
WIDER = {"t": Schema("t", (*T["t"].columns, Column("y", "INT")))}
TABLE = """
title = "Counted"
schedule = "{}"
[table]
columns = "id INT, x INT"
init = ["INSERT INTO t VALUES (1, 5)"]
[transactions]
{}
"""


@pytest.fixture
def parsed(monkeypatch):
    """How often each text has been parsed."""
    sqlglot.transpile("SELECT 1", write="duckdb")  # for which sqlglot parses texts of its own, once
    PARSED.clear()  # of what other tests have parsed
    found = Counter()
    parse = Parser.parse

    def counting(self, tokens, sql=None):
        found[sql] += 1
        return parse(self, tokens, sql)

    monkeypatch.setattr(Parser, "parse", counting)
    return found


def test_a_run_parses_each_statement_once(parsed):
    """The model and DuckDB, which runs the serial orders: none explains this table."""
    test = litmus("hole-partitioned")
    parsed.clear()
    PARSED.clear()
    test = read_litmus(test.text, test.name)
    done = run(test, protocol("delta-write-serializable"))
    assert done.serial.orders == ()
    assert done.levels
    assert set(parsed) == {s.sql for s in (*test.init, *test.transactions.values())}
    assert set(parsed.values()) == {1}


@pytest.mark.slow
@pytest.mark.parametrize(
    "transactions",
    [
        ["ALTER TABLE t ADD CONSTRAINT few CHECK (id < 9)", "DELETE FROM t WHERE id = 2"],
        ["ALTER TABLE t ADD COLUMNS (y INT)", "UPDATE t SET y = x", "INSERT INTO t VALUES (1, 2, 3)"],
        ["CREATE OR REPLACE TABLE t USING delta AS SELECT 1 AS id, x AS x FROM t", "OPTIMIZE t"],
        ["MERGE INTO t USING (SELECT 1 AS k) s ON t.id = s.k WHEN MATCHED THEN DELETE", "TRUNCATE TABLE t"],
    ],
)  # fmt: skip
def test_so_do_tables_that_change_and_parts_of_statements(parsed, transactions):
    names = "abc"[: len(transactions)]
    lines = [f'{name} = "{sql}"' for name, sql in zip(names, transactions, strict=True)]
    done = run(
        read_litmus(TABLE.format(" ".join(names), "\n".join(lines)), "counted"), SERIALIZABLE
    )
    assert done.serial.orders
    assert set(parsed.values()) == {1}


def test_values_of_parameters_are_not_parsed(parsed):
    let = '{ sql = "UPDATE t SET x = :n + 1 WHERE id = 1", let = { n = "SELECT x FROM t" } }'
    test = read_litmus(TABLE.format("a.before b a", f"a = {let}\nb = {let}"), "counted")
    assert parsed.total() == 3
    done = run(test, SERIALIZABLE)
    assert done.run.tables == {"t": ((1, 6),)}
    assert done.serial.orders == ()
    assert parsed.total() == 3


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("DELETE FRO t WHERE", "syntax"),
        ("DELETE FROM u", "no table"),
        ("DELETE FROM t WHERE z = 1", "no column"),
        ("INSERT INTO t (id, z) VALUES (1, 2)", "no column"),
        ("ALTER TABLE t DROP COLUMN z", "no column"),
        ("ALTER TABLE t ADD COLUMNS (X INT)", "column there"),
        ("ALTER TABLE t RENAME COLUMN x TO id", "column there"),
        ("INSERT INTO t VALUES (1)", "arity"),
        ("INSERT INTO t SELECT 1, 2 UNION ALL SELECT 1", "arity"),
        ("UPDATE t SET x = DATE '2020-01-01'", "type"),
        ("DELETE FROM t WHERE x = DATE '2020-01-01'", "type"),
        ("DELETE FROM t WHERE x = 'a'", "outside"),
        ("DELETE FROM t WHERE soundex(x) = 1", "opaque"),
    ],
)
def test_what_is_wrong_with_a_statement_is_of_a_kind(sql, kind):
    with pytest.raises(SqlError) as refused:
        read_statement(sql, T)
    assert refused.value.kind == kind


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("UPDATE t SET y = DATE '2020-01-01'", None),
        ("UPDATE t SET y = 0", "ExtendedAnalysisException"),
        ("INSERT INTO t VALUES (1, 2, 3)", "AnalysisException"),
        ("ALTER TABLE t DROP COLUMN y", "AnalysisException"),
    ],
)
def test_the_kind_says_which_exception_analysis_raises(sql, error):
    """Not its words: the author's own stand in them."""
    strings = {"t": Schema("t", (*T["t"].columns, Column("y", "STRING")))}
    statement = read_statement(sql, strings if error is None else WIDER)
    with pytest.raises(EvaluationError) as refused:
        analyse_again(statement, T if error else WIDER)
    assert refused.value.exception == (error or "AnalysisException")
