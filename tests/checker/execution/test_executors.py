"""The model's executor and DuckDB do the same, where DuckDB alone would not do what Spark does."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker.delta import format as delta
from isolitmus.checker.delta.statement_effects import statement_effect
from isolitmus.checker.execution.commit_loop import initial_database
from isolitmus.checker.execution.duckdb_executor import DuckExecutor
from isolitmus.checker.execution.serial_orders import ModelExecutor
from isolitmus.model.errors import SqlError, UndeterminedError
from isolitmus.model.litmus import Litmus
from isolitmus.model.run import same_bag
from isolitmus.model.schedule import Schedule
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.specs.sql.statements import read_statement

T = {"t": Schema("t", tuple(Column(name, "INT") for name in ("id", "part", "x")), ("part",))}
BIG = {
    "t": Schema("t", (Column("id", "INT"), Column("part", "INT"), Column("b", "BIGINT")), ("part",))
}
TWO = "INSERT INTO t VALUES (1, 0, 2), (2, 1, 3)"
MERGE = "MERGE INTO t USING (SELECT 9 AS k) s ON t.id = s.k WHEN"
ONE = "MERGE INTO t USING (SELECT 1 AS k) s ON t.id = s.k WHEN"
SPARK, DELTA = "SparkArithmeticException", "DeltaArithmeticException"


def after(sql, tables=T, init=TWO):
    """The table after a statement, by both executors."""
    named = {"a": read_statement(sql, tables)}
    test = Litmus(
        "both",
        "",
        "",
        tables,
        (read_statement(init, tables),),
        named,
        Schedule.parse("a", named),
        format="delta",
    )
    one, other = (executor(test).after(("a",)) for executor in (ModelExecutor, DuckExecutor))
    assert (one is None) == (other is None)
    assert one is None or same_bag(one["t"], other["t"])
    return one and one["t"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("INSERT INTO t SELECT * FROM t UNION ALL SELECT * FROM t", 6),
        ("INSERT INTO t SELECT * FROM t ORDER BY id DESC NULLS LAST, part > 1", 4),
        ("INSERT INTO t SELECT id, part AS z, x FROM t WHERE x > 2 ORDER BY z, t.part, 1", 3),
        ("INSERT INTO t SELECT id, part, max(x) FROM t GROUP BY id, part ORDER BY id, 2 DESC", 4),
        ("INSERT OVERWRITE t SELECT 7, 8, 9 ORDER BY 1 NULLS FIRST", 1),
        ("INSERT OVERWRITE t SELECT id, part, x FROM (SELECT * FROM t ORDER BY x) s ORDER BY s.x IS NULL", 2),
        ("INSERT INTO t SELECT a.id, b.part, a.x FROM t a JOIN t b ON a.id = b.id ORDER BY b.x, id", 4),
        ("UPDATE t SET t.id = 1", 2),
        ("INSERT INTO t VALUES (9 AS n, 0, 1), (8, 1, 2)", 4),
        ("INSERT OVERWRITE t PARTITION (part) SELECT 9, 1, 2", 1),
        ("MERGE INTO t USING (SELECT 1 AS id UNION ALL SELECT 1 AS id) s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET x = 5", None),
        ("MERGE INTO t USING (SELECT 1 AS id, 3037000500 AS x) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET part = 4 WHEN NOT MATCHED THEN INSERT (id, part, x) VALUES (1, 1, s.x)", 2),
        ("MERGE INTO t USING (SELECT 1 AS id, 7 AS x) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = s.x, part = 4", 2),
        ("INSERT OVERWRITE t PARTITION (part = 0) SELECT id, x FROM t WHERE (id IN (5, 6) AND part + 2147483647 > 2)", None),
        ("INSERT INTO t SELECT * FROM t WHERE NOT EXISTS (SELECT 1 FROM t u WHERE u.id = t.id + 9223372036854775807) AND part IN (3, 7)", 2),
        ("INSERT INTO t SELECT * FROM t WHERE NOT EXISTS (SELECT 1 FROM t u WHERE u.id = t.id + 9223372036854775807) AND x = 99", 2),
        ("INSERT INTO t SELECT * FROM t WHERE NOT EXISTS (SELECT 1 FROM t u WHERE u.id = t.id + 9223372036854775807) AND part IN (3, 1)", None),
        ("INSERT INTO t SELECT * FROM t WHERE part = 9 AND id IN (SELECT x FROM t WHERE id + 2147483647 > 2147483647)", None),
        ("INSERT INTO t SELECT * FROM t WHERE part = 9 AND id IN (SELECT id + 2147483647 FROM t)", None),
        ("INSERT INTO t SELECT * FROM t WHERE part = 9 AND x > (SELECT max(id + 2147483647) FROM t)", None),
        ("UPDATE t SET x = 0 WHERE (id + 2147483646) + x < 5", None),
        ("UPDATE t SET x = - -2147483648 WHERE id = 9", None),
        ("UPDATE t SET x = (id - 4) % part WHERE part = 1", 2),
        ("UPDATE t SET x = 7 % part", None),
        ("UPDATE t SET x = 7 % (2 - 2) WHERE id = 9", None),
        ("INSERT INTO t SELECT (0 - 2147483647 - 1) % (part - 1), 5, -x % 2 FROM t WHERE part = 0", 3),
        ("INSERT INTO t SELECT (id + 2147483647) % NULL, 5, NULL % part FROM t", 4),
        ("DELETE FROM t WHERE x % 2 = 0 AND part = 0", 1),
        ("DELETE FROM t WHERE x % part = 0 AND part = 1", 1),
        ("DELETE FROM t WHERE x % part = 0", None),
    ],
)  # fmt: skip
def test_both_executors_do_the_same(sql, rows):
    found = after(sql)
    assert (found and len(found)) == rows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "exception"),
    [
        ("INSERT INTO t SELECT 3037000500, 0, 0 FROM t WHERE id = 9", SPARK),
        ("INSERT INTO t SELECT 3037000500, 0, 0 FROM t WHERE part = 9", SPARK),
        ("INSERT INTO t SELECT 3037000500, 0, 0 WHERE (SELECT count(*) FROM t) = 0", SPARK),
        ("INSERT INTO t SELECT 0, 0, 9223372036854775807 + 1 FROM t WHERE id = 9", SPARK),
        ("INSERT INTO t SELECT id + (2147483647 + 1), 0, 0 FROM t WHERE id = 9", SPARK),
        ("INSERT INTO t SELECT 1, 0, 0 UNION ALL SELECT 3037000500, 0, 0 FROM t WHERE id = 9", SPARK),
        ("INSERT INTO t SELECT 3037000500, part, count(*) FROM t WHERE id = 9 GROUP BY part", SPARK),
        ("INSERT INTO t SELECT sum(2147483647 + 1), 0, 0 FROM t WHERE id = 9", SPARK),
        ("INSERT INTO t SELECT 0, 0, (SELECT max(2147483647 + 1) FROM t WHERE id = 9) FROM t", SPARK),
        ("INSERT OVERWRITE t SELECT 3037000500, 0, 0 FROM t WHERE id = 9", SPARK),
        ("INSERT INTO t REPLACE WHERE part = 0 SELECT 3037000500, 0, 0 FROM t WHERE id = 9", SPARK),
        ("INSERT OVERWRITE t PARTITION (part = 0) SELECT 3037000500, 0 FROM t WHERE id = 9", SPARK),
        ("UPDATE t SET id = 2147483648 WHERE x = 9", DELTA),
        ("UPDATE t SET id = 2147483648 WHERE part = 9", DELTA),
        ("UPDATE t SET id = 2147483647 + 1 WHERE x = 9", SPARK),
        ("UPDATE t SET id = id + (2147483647 + 1) WHERE x = 9", SPARK),
        (f"{MERGE} MATCHED THEN UPDATE SET id = 2147483648", DELTA),
        (f"{MERGE} MATCHED THEN UPDATE SET id = s.k + (2147483647 + 1)", SPARK),
        (f"{ONE} MATCHED AND t.x = 7 THEN UPDATE SET id = 2147483648", DELTA),
        (f"{ONE} NOT MATCHED THEN INSERT (id, part, x) VALUES (2147483648, 0, 0)", DELTA),
        (f"{ONE} NOT MATCHED THEN INSERT (id, part, x) VALUES (2147483647 + 1, 0, 0)", SPARK),
        (f"{ONE} NOT MATCHED BY SOURCE AND t.x = 7 THEN UPDATE SET id = 2147483648", DELTA),
        ("MERGE INTO t USING (SELECT 1 AS k, 3037000500 AS y) s ON t.id = s.k WHEN NOT MATCHED THEN INSERT (id, part, x) VALUES (s.y, 0, 0)", DELTA),
        ("MERGE INTO t USING (SELECT 9 AS k, 3037000500 AS y FROM t WHERE id = 9) s ON t.id = s.k WHEN NOT MATCHED THEN INSERT (id, part, x) VALUES (s.y, 0, 0)", DELTA),
        ("MERGE INTO t USING (SELECT 1 AS k, 2147483647 AS y) s ON t.id = s.k WHEN NOT MATCHED THEN INSERT (id, part, x) VALUES (s.y + 1, 0, 0)", SPARK),
        ("MERGE INTO t USING (SELECT 1 AS k, 3037000500 AS y UNION ALL SELECT 2, 5) s ON t.id = s.k WHEN NOT MATCHED THEN INSERT (id, part, x) VALUES (s.y, 0, 0)", None),
        ("MERGE INTO t USING (SELECT 9 AS k, 3037000500 AS y) s ON t.id = s.k WHEN MATCHED THEN UPDATE SET id = s.y", None),
        ("INSERT INTO t SELECT id + 3037000500, 0, 0 FROM t WHERE id = 9", None),
        ("INSERT INTO t SELECT max(3037000500), 0, 0 FROM t WHERE id = 9", None),
        ("UPDATE t SET id = id + 2147483648 WHERE x = 9", None),
    ],
)  # fmt: skip
def test_constants_are_computed_whatever_rows_there_are(sql, exception):
    """As Spark 4.2 and Delta 4.4 do it, each statement on these rows."""
    before = initial_database(delta.DELTA, T, [read_statement(TWO, T)])
    error = statement_effect(read_statement(sql, T), before, "a", T).error
    assert (error and error.exception) == exception
    assert (after(sql) is None) == (exception is not None)


@pytest.mark.slow
@given(*[st.sampled_from([None, 0, 1, -1, 3, -4, 2**31 - 1, -(2**31)])] * 2)
def test_a_remainder_has_the_sign_of_what_is_divided(m, n):
    """Java's, which Spark has: NULL where one side is, an error by zero, no overflow by -1."""
    values = ", ".join("NULL" if v is None else str(v) for v in (m, n))
    found = after("UPDATE t SET x = id % part", init=f"INSERT INTO t VALUES ({values}, 0)")
    if m is None or n is None:
        assert found == ((m, n, None),)
    elif n == 0:
        assert found is None
    else:
        assert found == ((m, n, int(math.fmod(m, n))),)


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ([2**63 - 1, 1, -5], "open"),
        ([2**63 - 1, -5], "sum"),
        ([-(2**63), -1, 5], "open"),
        ([2**63 - 1, 1], "fails"),
    ],
)
def test_a_sum_that_overflows_in_some_order_of_the_rows_is_refused(values, outcome):
    rows = ", ".join(f"({k}, 0, {v})" for k, v in enumerate(values))
    init = f"INSERT INTO t VALUES {rows}"
    sql = "INSERT INTO t SELECT 9, 9, sum(b) FROM t"
    if outcome == "open":
        with pytest.raises(UndeterminedError, match="in some order of the rows"):
            after(sql, BIG, init)
    else:
        assert (after(sql, BIG, init) is None) == (outcome == "fails")


def test_what_is_only_counted_may_be_computed_or_not():
    with pytest.raises(UndeterminedError, match="computes what it only counts"):
        after("INSERT INTO t SELECT count(id + 2147483647), 0, 0 FROM t")


NUMBERS = st.sampled_from(
    [0, 1, 2, -1, 2**31 - 2, 2**31 - 1, 2**31, 3037000500, -(2**31), -(2**31) - 1, 2**63 - 1, -(2**63)]
)  # fmt: skip
INTS = st.sampled_from(["NULL", 0, 1, 2, 2**31 - 2, 2**31 - 1, -(2**31)])


@st.composite
def values(draw, prefix="", depth=2):
    """A column, a literal or arithmetic."""
    if depth and draw(st.integers(0, 2)) == 0:
        left, right = (draw(values(prefix, depth - 1)) for _ in range(2))
        return f"({left} {draw(st.sampled_from('+-*'))} {right})"
    return draw(st.one_of(st.sampled_from([f"{prefix}id", f"{prefix}part", f"{prefix}b"]), NUMBERS))


@st.composite
def conditions(draw, prefix="", depth=1):
    """What stands after WHERE."""
    if depth and draw(st.booleans()):
        joint = draw(st.sampled_from(["AND", "AND", "OR"]))
        return f"({draw(conditions(prefix, 0))}) {joint} ({draw(conditions(prefix, 0))})"
    op = draw(st.sampled_from(["=", "<>", "<", ">="]))
    return f"{draw(values(prefix))} {op} {draw(values(prefix, 1))}"


@st.composite
def selects(draw):
    """A SELECT of three columns."""
    items = [draw(st.one_of(NUMBERS, values(depth=1))) for _ in range(3)]
    if draw(st.integers(0, 4)) == 0:
        items = [f"{draw(st.sampled_from(['sum', 'max', 'count']))}({item})" for item in items]
    where = draw(conditions())
    match draw(st.integers(0, 6)):
        case 0:
            inner = f"SELECT {draw(values('u.'))} FROM t u WHERE {draw(conditions('u.'))}"
            where += f" AND id IN ({inner})"
        case 1:
            same = f"u.id = {draw(values('t.'))}"
            where += f" AND NOT EXISTS (SELECT 1 FROM t u WHERE {same})"
        case 2:
            where += f" AND b > (SELECT max({draw(values('u.'))}) FROM t u)"
        case _:
            pass
    return f"SELECT {', '.join(map(str, items))} FROM t WHERE {where}"


@st.composite
def statements(draw):
    """A statement on t with numbers where INT and BIGINT end."""
    match draw(st.sampled_from(["insert", "union", "overwrite", "delete", "update", "merge"])):
        case "insert":
            return f"INSERT INTO t {draw(selects())}"
        case "union":
            return f"INSERT INTO t {draw(selects())} UNION ALL {draw(selects())}"
        case "overwrite":
            return f"INSERT OVERWRITE t {draw(selects())}"
        case "delete":
            return f"DELETE FROM t WHERE {draw(conditions())}"
        case "update":
            column = draw(st.sampled_from(["id", "part", "b"]))
            return f"UPDATE t SET {column} = {draw(values())} WHERE {draw(conditions())}"
        case "merge":
            source = f"SELECT {draw(NUMBERS)} AS k, {draw(NUMBERS)} AS y"
            clauses = draw(
                st.sampled_from(
                    [
                        "MATCHED THEN UPDATE SET id = {}",
                        "NOT MATCHED THEN INSERT (id, part, b) VALUES ({}, 0, s.y)",
                        "NOT MATCHED BY SOURCE THEN UPDATE SET b = {}",
                    ]
                )
            )
            prefix = "s." if clauses.startswith("NOT MATCHED THEN") else "t."
            value = draw(st.sampled_from(["s.k", "s.k + 1"]) if prefix == "s." else values("t."))
            return f"MERGE INTO t USING ({source}) s ON t.id = s.k WHEN {clauses.format(value)}"


ROWS = st.lists(st.tuples(INTS, st.sampled_from([0, 1]), NUMBERS), min_size=1, max_size=3)


@pytest.mark.slow
@given(statements(), ROWS)
def test_they_agree_where_integers_end(sql, rows):
    shown = ", ".join(f"({', '.join(map(str, row))})" for row in rows)
    try:
        after(sql, BIG, f"INSERT INTO t VALUES {shown}")
    except (SqlError, UndeterminedError):
        return  # said to be outside what is modelled, or up to a plan


@pytest.mark.slow
def test_duckdb_misses_no_row_of_its_own_transaction():
    """Without the setting, an UPDATE of a MERGE missed one in every fourth run."""
    insert = "INSERT INTO t SELECT max(id), 0, 1 FROM t UNION ALL SELECT 0, 0, 0"
    merge = (
        "MERGE INTO t USING (SELECT 1 AS id, 0 AS part, 0 AS x) AS s ON t.id = s.id AND t.part = 0"
        " WHEN MATCHED AND t.x > 0 THEN DELETE WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY"
        " SOURCE THEN UPDATE SET x = t.x + 1"
    )
    named = {"a": read_statement(insert, T), "b": read_statement(merge, T)}
    init = tuple(
        read_statement(f"INSERT INTO t VALUES ({row})", T) for row in ("0, 0, 0", "1, 1, 0")
    )
    test = Litmus("own", "", "", T, init, named, Schedule.parse("a b", named), format="delta")
    own = ModelExecutor(test).after(("a", "b"))
    for _ in range(30):  # all of them miss it by chance once in five thousand times
        theirs = DuckExecutor(test).after(("a", "b"))
        assert own is not None and theirs is not None
        assert same_bag(own["t"], theirs["t"])
