"""Types of the columns of a query's result, by Spark's rules."""

import pytest

from isolitmus.jobs.sql.result_types import infer_result_columns
from isolitmus.model.sql.schema import Column, Schema

COLUMNS = {
    "i": "INT", "l": "BIGINT", "x": "DOUBLE", "f": "FLOAT", "n": "SMALLINT", "p": "DECIMAL(12,2)",
    "s": "STRING", "d": "DATE", "t": "TIMESTAMP", "b": "BOOLEAN",
}  # fmt: skip
TABLES = {"src": Schema("src", tuple(Column(name, type_) for name, type_ in COLUMNS.items()))}
EXPRESSIONS = {
    # Aggregates: Sum, Average and Count of Spark.
    "sum(x)": "DOUBLE",
    "sum(f)": "DOUBLE",
    "sum(i)": "BIGINT",
    "sum(n)": "BIGINT",
    "sum(p)": "DECIMAL(22,2)",
    "sum(distinct x)": "DOUBLE",
    "sum(x) over (partition by i)": "DOUBLE",
    "sum(case when b then 1 else 0 end)": "BIGINT",
    "sum(i * x)": "DOUBLE",
    "avg(i)": "DOUBLE",
    "avg(p)": "DECIMAL(16,6)",
    "count(distinct i)": "BIGINT",
    "count(*) filter (where b)": "BIGINT",
    "max(p)": "DECIMAL(12,2)",
    "stddev(x)": "DOUBLE",
    "row_number() over (partition by i order by x)": "INT",
    "lag(p) over (order by d)": "DECIMAL(12,2)",
    # Numbers.
    "1": "INT",
    "3000000000": "BIGINT",
    "1.5": "DECIMAL(2,1)",
    "-i": "INT",
    "i + 1": "INT",
    "i + l": "BIGINT",
    "i / 2": "DOUBLE",
    "i div 2": "BIGINT",
    "x - 1": "DOUBLE",
    "p + p": "DECIMAL(13,2)",
    "p * 2": "DECIMAL(14,2)",
    "p / 3": "DECIMAL(16,6)",
    "round(x, 2)": "DOUBLE",
    # Values of several operands.
    "coalesce(sum(p), 0)": "DECIMAL(22,2)",
    "coalesce(x, 0)": "DOUBLE",
    "coalesce(i, l)": "BIGINT",
    "if(b, i, 0)": "INT",
    "case when b then p end": "DECIMAL(12,2)",
    "case when b then null else i end": "INT",
    "nullif(i, 0)": "INT",
    # Text and time.
    "lower(trim(s))": "STRING",
    "cast(t as date)": "DATE",
    "date_trunc('day', t)": "TIMESTAMP",
    "year(d)": "INT",
    "i > 1 and b": "BOOLEAN",
    "(select max(x) from src)": "DOUBLE",
    # Not certain.
    "mine(i)": None,
    "null": None,
    "n + 1": None,
    "coalesce(s, i)": None,
    "round(p, 1)": None,
}


@pytest.mark.parametrize(("expression", "type_"), EXPRESSIONS.items())
def test_the_type_of_an_expression(expression, type_):
    found = infer_result_columns(f"select {expression} as y from src", TABLES)
    assert found == (None if type_ is None else (Column("y", type_),))


QUERIES = {
    "with a as (select sum(p) as q, 1.5 as r from src) select r, q from a": "r DECIMAL(2,1), q DECIMAL(22,2)",
    "with src as (select i, s from src) select * from src": "i INT, s STRING",
    "select a.q from (select sum(x) as q from src) a": "q DOUBLE",
    "with a(q) as (select l from src) select q from a": "q BIGINT",
    "select i as v from src union all select l from src": "v BIGINT",
    "select i, count(*) as n from src group by i having count(*) > (select max(m) from gone)": "i INT, n BIGINT",
    "select i from src where t > (select max(t) from gone)": "i INT",
    "select s.i from src s left join gone g on g.i = s.i and g.k > s.i where g.i is null": "i INT",
    "select s.i, g.k from src s left join gone g on g.i = s.i": None,
    "select i, count(*) from src group by i": None,
    "select i, cast(t as date) from src": None,
    "select i, l as I from src": None,
    "select e.v from src lateral view explode(array(i)) e as v": None,
}


@pytest.mark.parametrize(("query", "columns"), QUERIES.items())
def test_the_columns_of_a_query(query, columns):
    found = infer_result_columns(query, TABLES)
    assert (None if found is None else ", ".join(one.ddl() for one in found)) == columns
