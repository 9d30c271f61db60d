"""WITH in every place, beside every form of INSERT: the model and DuckDB give the same rows."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker.execution.duckdb_executor import DuckExecutor
from isolitmus.checker.execution.serial_orders import ModelExecutor
from isolitmus.model.errors import SqlError, UndeterminedError
from isolitmus.model.litmus import Litmus
from isolitmus.model.run import same_bag
from isolitmus.model.schedule import Schedule
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.specs.sql.statements import read_statement

COLUMNS = (Column("id", "INT"), Column("x", "INT"), Column("day", "DATE"))
TABLES = {
    "src": Schema("src", COLUMNS),
    "mid": Schema("mid", COLUMNS, ("day",)),
    "ref": Schema("ref", COLUMNS, ("day",)),
}
DAYS = ["DATE '2026-01-06'", "DATE '2026-01-07'", "'2026-01-06'"]
HEADS = [
    "INSERT INTO mid",
    "INSERT INTO mid (id, x, day)",
    "INSERT OVERWRITE mid",
    "INSERT OVERWRITE mid BY NAME",
    "INSERT OVERWRITE TABLE mid PARTITION (day)",
    "INSERT INTO mid REPLACE WHERE day = DATE '2026-01-06'",
]
FIXED = "INSERT OVERWRITE mid PARTITION (day = DATE '2026-01-06')"


def execute_both(sql, inits, *, dynamic=False):
    """The tables after a statement by each executor; None if it fails."""
    statement = read_statement(sql, TABLES)
    if dynamic:
        statement = replace(statement, options=replace(statement.options, dynamic=True))
    before = tuple(read_statement(text, TABLES) for text in inits)
    named = {"w": statement}
    test = Litmus("both", "", "", TABLES, before, named, Schedule.parse("w", named), format="delta")
    return [executor(test).after(("w",)) for executor in (ModelExecutor, DuckExecutor)]


def assert_same(sql, inits, *, dynamic=False):
    own, independent = execute_both(sql, inits, dynamic=dynamic)
    assert (own is None) == (independent is None), (own, independent)
    for table in TABLES if own is not None else ():
        assert same_bag(own[table], independent[table]), (own[table], independent[table])


class Drawing:
    """Queries with WITH wherever the grammar allows it."""

    def __init__(self, random):
        self.random = random
        self.count = 0

    def new_name(self):
        self.count += 1
        return f"q{self.count}"

    def condition(self, alias, names, depth):
        choice = self.random.choice
        plain = [
            f"{alias}.day = {choice(DAYS)}",
            f"{alias}.id = 1 + {choice('01')}",
            f"{alias}.x + 1 > {choice('12')}",
            f"{alias}.id * {alias}.x < 5",
            f"{alias}.x IS NULL",
        ]
        if not depth or self.random.random() < 0.6:
            return choice(plain)
        given, visible = self.with_clause(names, 0)
        inner = choice(visible)
        return choice([
            f"{alias}.id IN ({given}SELECT q.id FROM {inner} q WHERE q.x + 1 > 2)",
            f"{alias}.x > ({given}SELECT max(q.x + 1) FROM {inner} q)",
            f"EXISTS ({given}SELECT 1 FROM {inner} q WHERE q.id = {alias}.id)",
        ])  # fmt: skip

    def select(self, names, depth, *, day=True):
        choice, alias = self.random.choice, self.random.choice("abc")
        source = choice(names)
        if depth and self.random.random() < 0.3:
            given, visible = self.with_clause(names, 0)
            source = f"({given}{self.select(visible, depth - 1)})"
        value = choice([f"{alias}.x", f"{alias}.x + 1", f"{alias}.id * 2", "CAST('7' AS INT)"])
        last = f", {choice([f'{alias}.day', DAYS[0]])} AS day" if day else ""
        where = f" WHERE {self.condition(alias, names, depth)}" if choice([True, False]) else ""
        return f"SELECT {alias}.id, {value} AS x{last} FROM {source} {alias}{where}"

    def with_clause(self, names, depth):
        """A WITH, or nothing, and the names that stand for rows after it."""
        if self.random.random() < 0.4:
            return "", names
        queries, visible = [], [*names]
        for _ in range(self.random.choice([1, 2, 3])):
            name = self.new_name()
            queries.append(f"{name} AS ({self.select(visible, depth)})")
            visible.append(name)
        return f"WITH {', '.join(queries)} ", [name for name in visible if name not in names]

    def statement(self):
        names = [*TABLES]
        before, visible = self.with_clause(names, 1)
        after = ""
        if not before:
            after, visible = self.with_clause(names, 1)
        head = self.random.choice([*HEADS, FIXED, "MERGE"])
        if head == "MERGE":
            source = f"{after}{self.select(visible, 1)}"
            return (
                f"{before}MERGE INTO mid USING ({source}) s ON mid.id = s.id WHEN MATCHED THEN"
                " UPDATE SET x = s.x WHEN NOT MATCHED THEN INSERT *"
            )
        query = self.select(visible, 1, day=head != FIXED)
        if self.random.random() < 0.2:
            query += f" UNION ALL {self.select(visible, 1, day=head != FIXED)}"
        return f"{before}{head} {after}{query}"


@st.composite
def drawn_statements(draw):
    return Drawing(draw(st.randoms())).statement()


NUMBERS = st.sampled_from(["NULL", "1", "2", "5"])
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, st.sampled_from(DAYS)), min_size=1, max_size=3)


@given(drawn_statements(), st.booleans(), st.tuples(ROWS, ROWS, ROWS))
def test_both_executors_give_the_same_rows(sql, dynamic, rows):
    inits = [
        f"INSERT INTO {table} VALUES {', '.join(f'({i}, {x}, {d})' for i, x, d in some)}"
        for table, some in zip(TABLES, rows, strict=True)
    ]
    try:
        assert_same(sql, inits, dynamic=dynamic and "OVERWRITE" in sql)
    except (SqlError, UndeterminedError):
        return  # outside what is modelled, or up to a plan


ROW = "INSERT INTO src VALUES (1, 2, DATE '2026-01-06'), (2, 3, DATE '2026-01-07')"


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    "sql",
    [
        (
            "WITH v AS (SELECT id, x, day FROM src), w AS (SELECT a.id, a.x, a.day FROM v AS a"
            " WHERE a.day = DATE '2026-01-06') INSERT OVERWRITE TABLE mid PARTITION (day)"
            " SELECT id, x, day FROM w"
        ),
        # Spark executes no subquery of a query that nothing names: it would overflow
        (
            "WITH v AS (SELECT id FROM src WHERE x > (SELECT max(q.x * 2147483647) FROM src q))"
            " INSERT OVERWRITE mid SELECT id, x, day FROM src"
        ),
        (
            "WITH v AS (SELECT id, x, day FROM src WHERE id IN (SELECT q.id + 1 FROM src q))"
            " INSERT OVERWRITE mid SELECT id, x, day FROM v"
        ),
    ],
)
def test_subqueries_find_the_queries_of_with(sql, dynamic):
    assert execute_both(sql, [ROW])[0] is not None
    assert_same(sql, [ROW], dynamic=dynamic)


def test_a_column_that_the_outer_query_does_not_need_decides_nothing():
    """Spark prunes it; the model computes all columns of a nested query."""
    sql = "INSERT INTO mid SELECT s.id, 1, s.day FROM (SELECT id, x * 2147483647 AS y, day FROM src) s"
    with pytest.raises(UndeterminedError, match="depends on the columns and rows"):
        execute_both(sql, [ROW])
