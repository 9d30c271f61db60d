"""Keys and conditions of queries: DuckDB finds no row that contradicts one."""

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.optimizer.qualify import qualify

from isolitmus.checker.execution.postconditions import violated_queries
from isolitmus.jobs.sql.query_keys import query_conditions, query_keys
from isolitmus.model.sql.schema import Column, Schema

A = Schema("a", (Column("id", "INT"), Column("k", "STRING"), Column("v", "INT")))
B = Schema("b", (Column("id", "INT"), Column("w", "INT")))
NUMBERED = "SELECT *, row_number() OVER (PARTITION BY id ORDER BY v) AS n FROM a WHERE k = 'x'"
QUERIES = {
    f"SELECT id, k FROM ({NUMBERED}) AS q WHERE n = 1": ("id", "k = 'x'"),
    f"SELECT id, k FROM ({NUMBERED}) AS q WHERE 1 >= n": ("id", "k = 'x'"),
    f"SELECT id, k, n FROM ({NUMBERED}) AS q WHERE n < 3": ("id, n", "n < 3; n >= 1; k = 'x'"),
    "SELECT id, v FROM a WHERE v > 1 QUALIFY row_number() OVER (PARTITION BY id ORDER BY k) <= 1": (
        "id", "v > 1",
    ),
    "SELECT id FROM a QUALIFY rank() OVER (PARTITION BY id ORDER BY v) <= 1": ("", ""),
    "SELECT id, max(v) AS v FROM a WHERE k <> 'y' AND id > 0 GROUP BY id HAVING id < 3": (
        "id", "id > 0; id < 3",
    ),
    "SELECT id, k FROM a WHERE id > 0 GROUP BY ROLLUP (id, k)": ("", ""),
    "SELECT id, k FROM a WHERE id > 0 GROUP BY id, k WITH CUBE": ("", ""),
    "SELECT id, count(*) AS c, coalesce(max(v), 0) AS m FROM a GROUP BY id": (
        "id", "c >= 0; NOT m IS NULL",
    ),
    "SELECT DISTINCT k, v FROM a WHERE v IN (1, 2) OR k = 'y'": ("k, v", "v IN (1, 2) OR k = 'y'"),
    "SELECT a.id AS id, b.w AS w FROM a JOIN b ON a.id = b.id AND b.w > 0 WHERE a.v = b.w": (
        "", "NOT w IS NULL; NOT id IS NULL; w > 0",
    ),
    "SELECT a.id AS id, b.w AS w FROM a LEFT JOIN b ON a.id = b.id AND b.w > 0 WHERE a.v = 1": ("", ""),
    "SELECT a.k AS k, q.w AS w FROM (SELECT * FROM a WHERE k = 'x') a LEFT JOIN"
    " (SELECT * FROM b WHERE w = 1) q ON a.id = q.id": ("", "k = 'x'"),
    "SELECT a.k AS k, q.w AS w FROM (SELECT * FROM a WHERE k = 'x') a RIGHT JOIN"
    " (SELECT * FROM b WHERE w = 1) q ON a.id = q.id": ("", ""),
    "SELECT a.k AS k, q.w AS w FROM (SELECT * FROM a WHERE k = 'x') a FULL JOIN"
    " (SELECT * FROM b WHERE w = 1) q ON a.id = q.id WHERE w > 0": ("", "w > 0"),
    "SELECT k, v FROM a WHERE v > 1 UNION ALL SELECT 'x', w FROM b WHERE w > 1": ("", "v > 1"),
    "SELECT id, 'x' AS k FROM a UNION SELECT id, 'x' FROM b": ("", "k = 'x'"),
    "SELECT id, 'x' AS k FROM a UNION SELECT id, 'y' FROM b": ("", ""),
    "SELECT id FROM a WHERE id > 1 EXCEPT SELECT id FROM b WHERE w = 1": ("", "id > 1"),
    "WITH q AS (SELECT id, v FROM a WHERE v = 1) SELECT v AS u FROM q WHERE id IS NOT NULL": (
        "", "u = 1",
    ),
    "SELECT k FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.id = a.id) AND upper(k) = 'X'": ("", ""),
    "SELECT -v AS v FROM a WHERE v > 0": ("", ""),
}  # fmt: skip
"""Queries, each with its key and its conditions."""
SCHEMAS = {one.name: {c.name: c.type for c in one.columns} for one in (A, B)}


def qualified(text):
    tree = sqlglot.parse_one(text, dialect="databricks")
    return qualify(tree, schema=SCHEMAS, dialect="databricks", quote_identifiers=False)


@pytest.mark.parametrize("text", QUERIES)
def test_keys_and_conditions(text):
    key, conditions = QUERIES[text]
    assert {*query_keys(qualified(text))} == ({tuple(key.split(", "))} if key else set())
    found = {one.sql() for one in query_conditions(qualified(text))}
    assert found == {*filter(None, conditions.split("; "))}


small = st.one_of(st.none(), st.integers(0, 3))
rows = st.lists(st.tuples(small, st.sampled_from([None, "x", "y"]), small), max_size=5)


@pytest.mark.slow
@pytest.mark.parametrize("text", QUERIES)
@given(of_a=rows, of_b=st.lists(st.tuples(small, small), max_size=4))
def test_no_row_contradicts_them(text, of_a, of_b):
    tree = qualified(text)
    queries = [
        f"SELECT * FROM ({text}) AS q WHERE ({one.sql()}) IS NOT TRUE"
        for one in query_conditions(tree)
    ]
    queries += [
        f"SELECT {', '.join(key)} FROM ({text}) AS q GROUP BY {', '.join(key)} HAVING count(*) > 1"
        for key in query_keys(tree)
    ]
    duck = lambda one: sqlglot.transpile(one, read="databricks", write="duckdb")[0]  # noqa: E731
    assert violated_queries([(A, tuple(of_a)), (B, tuple(of_b))], queries, duck) == ()
