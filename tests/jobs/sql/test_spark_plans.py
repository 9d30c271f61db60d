"""Plans of Spark as SQL, from recorded plans; with Spark in tests/jobs/recording/test_recorder.py."""

from isolitmus.jobs.sql.spark_plans import (
    PlanColumn,
    PlanExpression,
    PlanNode,
    PlanWriter,
    plan_tables,
    read_spark_plan,
)
from isolitmus.jobs.sql.uninterpreted_sources import find_uninterpreted_sources
from isolitmus.model.sql.schema import Column, Schema

T = {"kind": "LogicalRelation", "name": "t", "columns": [[1, "id", "BIGINT"], [2, "day", "DATE"]]}
U = {"kind": "LogicalRelation", "name": "u", "columns": [[3, "id", "BIGINT"], [4, "k", "STRING"]]}


def node(kind, *children, **more):
    columns = [column for child in children for column in child["columns"]]
    return {"kind": kind, "children": [*children], "columns": columns, **more}


def sql(plan, order=None):
    return PlanWriter().query(read_spark_plan(plan), order)


def test_a_filter_and_the_order_of_columns():
    condition = ["(t.day = CAST('2026-01-01' AS DATE))", [[2, "t.day"]], -1, True]
    plan = node("Filter", T, keys=[condition])
    assert sql(plan) == "SELECT id, day FROM t WHERE day = DATE '2026-01-01'"
    assert sql(plan, [2, 1]) == "SELECT day, id FROM t WHERE day = DATE '2026-01-01'"


def test_a_column_in_a_string_is_text():
    condition = ["(u.k = 'u.k')", [[4, "u.k"]], -1, True]
    item = ["upper(u.k)", [[4, "u.k"]], 9, True]
    plan = node(
        "Filter", node("Project", U, items=[item]), keys=[["(k = 'k')", [[9, "k"]], -1, True]]
    )
    plan["children"][0]["columns"] = plan["columns"] = [[9, "k", "STRING"]]
    assert sql(node("Filter", U, keys=[condition])) == "SELECT id, k FROM u WHERE k = 'u.k'"
    assert sql(plan) == "SELECT upper(k) AS k FROM u WHERE upper(k) = 'k'"


def test_a_group_below_a_filter_is_a_query_of_its_own():
    group = node(
        "Aggregate", T,
        keys=[["t.day", [[2, "t.day"]], 2, True]],
        items=[["t.day", [[2, "t.day"]], 2, True], ["count(1)", [], 7, True]],
    )  # fmt: skip
    group["columns"] = [[2, "day", "DATE"], [7, "n", "BIGINT"]]
    plan = node("Filter", group, keys=[["(n > 1)", [[7, "n"]], -1, True]])
    inner = "SELECT day, count(1) AS n FROM t GROUP BY day"
    assert sql(group) == inner
    assert sql(plan) == f"SELECT day, n FROM ({inner}) AS q WHERE n > 1"


def test_an_outer_join_keeps_a_constant_inside():
    one = node("Project", U, items=[["u.id", [[3, "u.id"]], 3, True], ["1", [], 8, True]])
    one["columns"] = [[3, "id", "BIGINT"], [8, "one", "INT"]]
    on = ["(t.id = u.id)", [[1, "t.id"], [3, "u.id"]], -1, True]
    inner, outer = (
        sql(node("Join", T, one, name=kind, keys=[on])) for kind in ("Inner", "LeftOuter")
    )
    assert inner == "SELECT t.id, t.day, u.id AS id_3, 1 AS one FROM t JOIN u ON t.id = u.id"
    assert outer.endswith("FROM t LEFT JOIN (SELECT id, 1 AS one FROM u) AS q ON t.id = q.id")


def test_an_uncertain_operator_is_any_rows_of_its_tables():
    uncertain = ["f(u.id)", [[3, "u.id"]], 5, False]
    plan = node("Project", node("Join", T, U, name="LeftSemi", keys=[]), items=[uncertain])
    plan["columns"] = [[5, "x", "BIGINT"]]
    text = sql(plan)
    assert text == (
        "SELECT x FROM (SELECT CAST(spark_project(t.id) AS BIGINT) AS x FROM t CROSS JOIN u) AS q"
    )
    assert [*plan_tables(read_spark_plan(plan))] == ["t", "u"]
    tables = {
        "t": Schema("t", (Column("id", "BIGINT"), Column("day", "DATE"))),
        "u": Schema("u", (Column("id", "BIGINT"), Column("k", "STRING"))),
        "w": Schema("w", (Column("x", "BIGINT"),)),
    }
    first = next(find_uninterpreted_sources(f"INSERT INTO w {text}", tables))
    assert first.reads == ("t", "u")


def test_rows_of_python_are_those_of_a_table_without_ddl():
    local = {"kind": "LocalRelation", "columns": [[6, "id", "BIGINT"], [7, "day", "DATE"]]}
    both = node("Union", local, {**local, "kind": "LogicalRDD"})
    both["columns"] = local["columns"]
    assert sql(local) == (
        "SELECT CAST(id AS BIGINT) AS id, CAST(day AS DATE) AS day FROM rows_from_python"
    )
    assert "rows_from_python_2" in sql(both)
    known = {**local, "rows": ["(7, DATE '2026-01-01')", "(8, NULL)"]}
    assert sql(known) == (
        "SELECT id, day FROM VALUES (7, DATE '2026-01-01'), (8, NULL) AS rows_from_python(id, day)"
    )


def test_columns_that_the_text_does_not_tell_apart_are_uncertain():
    other = {**T, "columns": [[5, "id", "BIGINT"], [6, "day", "DATE"]]}
    on = ["(t.id = t.id)", [[1, "t.id"], [5, "t.id"]], -1, True]
    assert "spark_join" in sql(node("Join", T, other, name="Inner", keys=[on]))


def test_names_that_need_quotes():
    table = {"kind": "LogicalRelation", "name": "t", "columns": [[1, "a b", "INT"]]}
    condition = ["(t.`a b` > 1)", [[1, "t.`a b`"]], -1, True]
    assert sql(node("Filter", table, keys=[condition])) == "SELECT `a b` FROM t WHERE `a b` > 1"


def test_a_condition_on_named_columns():
    expression = PlanExpression("(a.x = b.y)", ((1, "a.x"), (2, "b.y")))
    writer = PlanWriter()
    assert writer.condition(expression, {1: "t.x", 2: "s.y"}) == "t.x = s.y"
    assert writer.condition(expression._replace(certain=False), {1: "t.x", 2: "s.y"}) is None
    assert writer.condition(expression, {1: "t.x"}) is None


def test_a_subquery_alias_names_its_table():
    plan = PlanNode(
        "SubqueryAlias", (PlanColumn(1, "id", "BIGINT"),), (read_spark_plan(T),), name="x"
    )
    assert PlanWriter().query(plan) == "SELECT id FROM t AS x"
