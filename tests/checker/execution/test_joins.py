"""Queries of several tables: the model and DuckDB give the same rows, and Delta records nothing of
them.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker.delta import format as delta
from isolitmus.checker.delta.statement_effects import statement_effect
from isolitmus.checker.execution.commit_loop import initial_database
from isolitmus.checker.execution.duckdb_executor import DuckExecutor
from isolitmus.checker.execution.serial_orders import ModelExecutor
from isolitmus.model.errors import SqlError
from isolitmus.model.litmus import Litmus
from isolitmus.model.run import same_bag
from isolitmus.model.schedule import Schedule
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.specs.sql.statements import read_statement


def table(name, columns):
    return Schema(name, tuple(Column(c, "INT") for c in columns.split()))


TABLES = {
    "t": table("t", "id x"),
    "a": table("a", "id x"),
    "b": table("b", "id y"),
    "c": table("c", "id z"),
}
INITS = [
    "INSERT INTO t VALUES (1, 10), (5, 50)",
    "INSERT INTO a VALUES (1, 1), (2, 2), (2, 3), (NULL, 4)",
    "INSERT INTO b VALUES (1, 7), (2, NULL), (3, 9), (NULL, 8)",
    "INSERT INTO c VALUES (2, 5), (2, 6)",
]


def after(sql, inits=INITS):
    """The table after a statement, by both executors."""
    named = {"w": read_statement(sql, TABLES)}
    before = tuple(read_statement(text, TABLES) for text in inits)
    test = Litmus("both", "", "", TABLES, before, named, Schedule.parse("w", named), format="delta")
    one, other = (executor(test).after(("w",)) for executor in (ModelExecutor, DuckExecutor))
    assert one is not None
    assert other is not None
    assert same_bag(one["t"], other["t"]), (one["t"], other["t"])
    return one["t"]


MERGED = (
    "ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = s.x WHEN NOT MATCHED THEN INSERT (id, x)"
    " VALUES (s.id, s.x)"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("INSERT INTO t SELECT a.id, b.y FROM a JOIN b ON a.id = b.id", 5),
        ("INSERT INTO t SELECT a.id, y FROM a LEFT JOIN b ON a.id = b.id AND b.y > 7", 6),
        ("INSERT INTO t SELECT id, x FROM a LEFT SEMI JOIN b USING (id)", 5),
        ("INSERT INTO t SELECT id, x FROM a LEFT ANTI JOIN b ON a.id = b.id", 3),
        ("INSERT INTO t SELECT a.id, y FROM a RIGHT JOIN b ON a.id = b.id AND b.y > 7", 6),
        ("INSERT INTO t SELECT a.x, y FROM a FULL OUTER JOIN b ON a.id = b.id", 8),
        ("INSERT INTO t SELECT a.x, y FROM a JOIN c ON a.id = c.id FULL JOIN b ON a.id = b.id WHERE a.x IS NULL", 5),
        ("INSERT INTO t SELECT t.id, b.y FROM t JOIN b ON t.id = b.id", 3),
        ("INSERT INTO t SELECT * FROM (SELECT * FROM t) s", 4),
        (f"MERGE INTO t USING (SELECT a.id, a.x FROM a JOIN t u ON a.id = u.id) s {MERGED}", 2),
        ("INSERT INTO t SELECT a.id, c.z FROM a, c WHERE a.id = c.id AND a.x > 2", 4),
        ("INSERT INTO t SELECT a.id, c.z FROM a CROSS JOIN c", 10),
        ("INSERT INTO t SELECT /*+ BROADCAST(b) */ a.id, y FROM a JOIN b ON a.id = b.id -- as it is", 5),
        ("INSERT INTO t SELECT a.id, count(*) FROM a JOIN c ON a.id = c.id GROUP BY a.id", 3),
        ("INSERT INTO t SELECT s.id, s.n FROM (SELECT id, sum(x) AS n FROM a GROUP BY id) s WHERE s.n > 3", 4),
        ("INSERT INTO t SELECT * FROM VALUES (1, 2), (3, NULL) AS v(p, q)", 4),
        ("INSERT INTO t SELECT col1, col2 + 1 FROM VALUES (1, 2), (3, 4)", 4),
        ("WITH s AS (SELECT id, x FROM a WHERE x > 1) INSERT INTO t SELECT * FROM s", 5),
        ("INSERT INTO t WITH s AS (SELECT id, x FROM a), u AS (SELECT id FROM s WHERE x = 1) SELECT s.id, s.x FROM s JOIN u ON s.id = u.id", 3),
        (f"MERGE INTO t USING (SELECT a.id, b.y AS x FROM a JOIN b ON a.id = b.id WHERE a.x < 3) s {MERGED}", 3),
        (f"MERGE INTO t USING (SELECT * FROM VALUES (1, 2), (7, 8) AS v(id, x)) s {MERGED}", 3),
        (f"MERGE INTO t USING (WITH u AS (SELECT id, x FROM a WHERE x = 1) SELECT * FROM u) s {MERGED}", 2),
    ],
)  # fmt: skip
def test_both_executors_give_the_same_rows(sql, rows):
    assert len(after(sql)) == rows


NUMBERS = st.sampled_from(["NULL", "1", "2", "3"])
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=4).map(
    lambda rows: ", ".join(f"({a}, {b})" for a, b in rows)
)


@pytest.mark.slow
@given(
    st.sampled_from(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]),
    st.lists(st.sampled_from(["a.id = b.id", "a.x < b.y", "a.x > 1", "b.y = 2", "a.id <> b.y"]), min_size=1, max_size=3, unique=True),
    st.sampled_from(["", "WHERE a.x > 1", "WHERE a.id = 2 OR a.x = 1", "WHERE NOT a.x = 3", "WHERE a.x IS NULL"]),
    ROWS,
    ROWS,
)  # fmt: skip
def test_joins(how, on, where, left, right):
    sql = f"INSERT INTO t SELECT a.id, a.x FROM a {how} b ON {' AND '.join(on)} {where}"
    after(sql, [f"INSERT INTO a VALUES {left}", f"INSERT INTO b VALUES {right}"])


def test_delta_takes_note_of_the_target_alone():
    before = initial_database(delta.DELTA, TABLES, [read_statement(sql, TABLES) for sql in INITS])
    sql = "INSERT INTO t SELECT a.id, b.y FROM a JOIN b ON a.id = b.id WHERE a.x > 1"
    done = statement_effect(read_statement(sql, TABLES), before, "w", TABLES)
    assert done.footprint.blind
    assert [(read.table, len(read.matched)) for read in done.reads] == [("a", 3), ("b", 4)]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("MERGE INTO t USING a ON t.id = a.id WHEN NOT MATCHED THEN INSERT VALUES (a.id, 1)", "Spark wants the columns here"),
        (f"MERGE INTO t USING (VALUES (1, 2)) AS s(id, x) {MERGED}", "Spark takes no names of columns here"),
        ("INSERT INTO t SELECT a.id, y FROM a NATURAL JOIN b", "a join NATURAL"),
        ("INSERT INTO t SELECT id, y FROM a JOIN b ON a.id = b.id", "column 'id' is ambiguous"),
        ("INSERT INTO t SELECT * FROM a JOIN b USING (id)", "'*' beside USING"),
        ("INSERT INTO t SELECT s.id, 1 FROM (SELECT id FROM a UNION ALL SELECT id FROM b) s", "UNION ALL in a source"),
        ("WITH RECURSIVE s AS (SELECT 1 AS id) INSERT INTO t SELECT id, id FROM s", "WITH RECURSIVE is outside"),
        ("WITH a AS (SELECT 1 AS id) INSERT INTO t SELECT id, id FROM a", "'a' names two things"),
        ("INSERT INTO t SELECT a.id, b.y FROM a LEFT SEMI JOIN b ON a.id = b.id", "unknown column 'b.y'"),
    ],
)  # fmt: skip
def test_what_is_outside_is_refused_by_name(sql, message):
    with pytest.raises(SqlError) as refused:
        read_statement(sql, TABLES)
    assert message in str(refused.value)
