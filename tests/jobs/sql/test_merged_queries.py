"""Queries without WITH, and merged queries: DuckDB gives the same rows for them."""

import duckdb
import pytest
from sqlglot import expressions as exp

from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.sql.common_tables import inline_with
from isolitmus.jobs.sql.selected_rows import selected_rows
from isolitmus.jobs.sql.uninterpreted_sources import statement_tree
from isolitmus.model.errors import SqlError
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.specs.sql.merged_queries import merge_source

TABLES = {
    "s": Schema("s", (Column("id", "INT"), Column("day", "INT"), Column("kind", "STRING"))),
    "t": Schema("t", (Column("id", "INT"), Column("day", "INT"))),
}


@pytest.fixture(scope="module")
def rows():
    """Function from a query to its rows, sorted."""
    with duckdb.connect() as made:
        made.execute("create table s (id int, day int, kind varchar)")
        made.execute(
            "insert into s values (1, 5, 'a'), (2, 6, 'b'), (3, 7, 'a'), (3, 9, null), (null, 8, 'a')"
        )
        made.execute("create table t (id int, day int)")
        made.execute("insert into t values (1, 5), (2, 4), (9, 6)")
        yield lambda query: sorted(made.execute(query).fetchall(), key=repr)


WITH = {
    "a name for a query on the table of the name": "with s as (select * from s where day > 5), f as (select id from s) select * from f",
    "the same name in a nested WITH": "with a as (with b as (select id from s) select * from b), b as (select day as id from t) select a.id from a join b on a.id <> b.id",
    "used twice": "with a as (select id, day from s) select x.id, y.day from a x join a y on x.id = y.id",
    "columns of its own": "with a(n) as (select id from s) select n from a where n > 1",
    "in a subquery": "with a as (select id from t) select day from s where id in (select id from a)",
    "a value": "with m as (select max(day) as seen, min(day) as d from t) select id from s where day > (select seen from m)",
    "a value of a group": "with m as (select id, max(day) as seen from t group by id) select id from s where day in (select m.seen from m)",
    "a union": "with a as (select id from t union all select id from s) select count(*) as n from a",
}


@pytest.mark.parametrize("case", WITH)
def test_a_query_without_with_has_the_same_rows(case, rows):
    found = inline_with(WITH[case])
    assert "with" not in found.lower()
    assert rows(found) == rows(WITH[case])


def test_a_value_of_a_query_of_with_is_one_query():
    found = inline_with(
        "with m as (select max(day) as at from t) select id from s where day > (select at from m)"
    )
    assert found == "SELECT id FROM s WHERE day > (SELECT MAX(day) AS at FROM t)"


@pytest.mark.parametrize(
    "query",
    [
        "select id from s",
        "with recursive a as (select 1 as n union all select n + 1 from a where n < 3) select n from a",
        "with a as (select id from",
    ],
)
def test_a_query_that_is_kept(query):
    assert inline_with(query) == query


@pytest.mark.slow
def test_a_query_that_would_be_too_large_is_kept():
    named = [
        f"a{k} as (select x.id from a{k - 1} x join a{k - 1} y on x.id = y.id)"
        for k in range(1, 20)
    ]
    query = f"with a0 as (select id from s), {', '.join(named)} select id from a19"
    assert inline_with(query) == query


INNER = {
    "plain": "select id, day from s where kind = 'a'",
    "all": "select * from s where id is not null",
    "renamed": "select x.id as day, x.day as id from s x",
    "computed": "select id + 1 as id, day * 2 as day, kind from s where day > 5 or id = 1",
}
OUTER = {
    "a value": "select id, day from v where day > (select max(day) from t)",
    "all columns": "select * from v where day >= (select min(day) from t where id > 1)",
    "a correlated subquery": "select v.id from v where exists (select 1 from t where t.id = v.id)",
    "a list": "select day - 1 as d from v where v.id in (select id from t) and day > 1",
    "groups": "select id, max(day) as m from v where id not in (select 2) group by id",
}


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("outer", OUTER)
def test_a_merged_query_has_the_same_rows(inner, outer, rows):
    trees = [statement_tree(OUTER[outer]), statement_tree(INNER[inner])]
    found = merge_source(*trees, "v", TABLES)
    assert found is not None
    assert [table.name for table in found.find_all(exp.Table)] != ["v"]
    whole = f"with v as ({INNER[inner]}) {OUTER[outer]}"
    assert rows(found.sql("duckdb")) == rows(whole)


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        ("select id from v where id > (select 1)", "select id, count(*) as n from s group by id"),
        ("select id from v where id > (select 1)", "select distinct id from s"),
        ("select id from v where id > (select 1)", "select id from s limit 1"),
        ("select id from v where id > (select 1)", "select rand() as id from s"),
        ("select id from v where id > (select 1)", "select s.id from s join t on s.id = t.id"),
        ("select gone from v where id > (select 1)", "select id from s"),
        ("select id from v where id > (select max(n) from other)", "select id, day as n from s"),
    ],
)
def test_queries_that_are_not_merged(outer, inner):
    assert merge_source(statement_tree(outer), statement_tree(inner), "v", TABLES) is None


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("select id, day from s", ("s", "", "")),
        ("select * from S where S.id is not null", ("s", "", "NOT id IS NULL")),
        ("select * from (select id from s where id > 1) as v", ("s", "", "id > 1")),
        ("select id from (select id, day from s) as v where day > 1", None),
        ("select id from s where kind = :kind", ("s", "kind", "")),
        (
            "select id from s where kind = :kind and (id > 1 or day > 2)",
            ("s", "kind", "(id > 1 OR day > 2)"),
        ),
        ("select id from s where id = :id", None),
        ("select id as day from s", None),
        ("select id from s group by id", None),
        ("select id from s qualify row_number() over (partition by id order by day) = 1", None),
        ("select id from s where id > (select max(id) from t)", None),
        ("select id from other", None),
    ],
)
def test_the_rows_of_a_table_that_a_query_selects(query, rows):
    assert selected_rows(statement_tree(query), TABLES) == rows


LAST = "(SELECT max(ts) FROM dim)"
DDL = """
ddl = [
    "CREATE TABLE dim (id INT, ts TIMESTAMP) USING delta",
    "CREATE TABLE raw (id INT, ts TIMESTAMP) USING delta",
]
"""
NEWEST = "row_number() OVER (PARTITION BY id ORDER BY ts DESC) AS rn"
MERGE = "MERGE INTO dim USING ({}) s ON dim.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        f"SELECT id, ts FROM (SELECT *, {NEWEST} FROM raw) WHERE rn = 1 AND ts > {LAST}",
        f"SELECT * FROM (SELECT id, ts FROM (SELECT *, {NEWEST} FROM raw) WHERE rn = 1) WHERE ts > {LAST}",
        f"WITH new AS (SELECT id, ts FROM (SELECT *, {NEWEST} FROM raw) WHERE rn = 1) SELECT * FROM new WHERE ts > {LAST}",
    ],
)  # fmt: skip
def test_an_incremental_load_is_predicted(source):
    """As one whose source is a table."""

    def words(query):
        work = read_workload(f'{DDL}[jobs.load]\nsql = """{MERGE.format(query)}"""', "jobs")
        assert work.unread == ()
        return [
            (one.word, one.exceptions)
            for one in predict_workload(work, "delta-serializable").meetings
        ]

    assert words(source) == words(f"SELECT id, ts FROM raw WHERE ts > {LAST}")


def test_what_stays_is_named():
    query = f"SELECT id, ts FROM (SELECT id, ts FROM dim LIMIT 3) WHERE ts > {LAST}"
    with pytest.raises(SqlError, match="together with a nested query in FROM"):
        read_workload(f'{DDL}[jobs.load]\nsql = "INSERT INTO dim {query}"', "jobs")
