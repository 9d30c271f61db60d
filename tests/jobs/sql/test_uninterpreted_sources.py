"""Tables that stand in for queries: what is said with one holds for whatever the query gives."""

from __future__ import annotations

import re

import pytest

from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.sql.undeclared_sources import replace_undeclared_sources
from isolitmus.jobs.sql.uninterpreted_sources import find_uninterpreted_sources
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.specs import protocol

DDL = """
ddl = [
  "CREATE TABLE t (id INT, day DATE) USING delta PARTITIONED BY (day)",
  "CREATE TABLE s (id INT, day DATE, at TIMESTAMP)",
]
[jobs.ingest]
sql = "INSERT INTO t VALUES (:id, :day)"
[jobs.erase]
sql = "DELETE FROM t WHERE day = :day"
[jobs.load]
sql = '''{sql}'''
{more}
"""
WINDOW = "(SELECT id, day, row_number() OVER (PARTITION BY id ORDER BY at DESC) AS n FROM s)"
DEDUPLICATED = f"(SELECT id, day FROM {WINDOW} WHERE n = 1)"
MERGE = (
    "MERGE INTO t USING {} q ON t.id = q.id{} WHEN MATCHED THEN UPDATE SET day = q.day WHEN NOT"
    " MATCHED THEN INSERT (id, day) VALUES (q.id, q.day)"
)


def _workload(sql: str, more: str = ""):
    return read_workload(DDL.format(sql=sql, more=more), "w")


def _said(sql: str, level: str = "delta-serializable", more: str = ""):
    found = predict_workload(_workload(sql, more), protocol(level))
    return {(m.loser, m.winner): m for m in found.meetings}


@pytest.mark.slow
def test_what_a_window_gives_is_not_needed_to_know_what_stops_a_merge():
    found = _said(MERGE.format(DEDUPLICATED, ""))
    assert {m.word for m in found.values()} <= {"never", "always", "when"}
    assert (found["load", "ingest"].word, found["ingest", "load"].word) == ("always", "never")
    within = _said(MERGE.format(DEDUPLICATED, " AND t.day = DATE '2026-01-01'"))
    assert within["load", "ingest"].word == "when"  # the other day is another partition


def test_the_assumption_is_said():
    (said,) = _workload(MERGE.format(DEDUPLICATED, "")).assumptions
    assert "row_number() over" in said.lower()
    assert said.startswith("An uninterpreted source, the table s_rows, stands for the query (")
    assert not _workload(MERGE.format("(SELECT id, day FROM s WHERE id > 1)", "")).assumptions


SOURCES = [
    "(SELECT id, day FROM s WHERE id > 1)",
    "(SELECT id, max(day) AS day FROM s GROUP BY id)",
    "(SELECT id, day FROM s WHERE day = :day)",
    "(SELECT id, DATE '2026-01-01' AS day FROM s)",
]


@pytest.mark.slow
@pytest.mark.parametrize("level", ["delta-serializable", "delta-write-serializable"])
@pytest.mark.parametrize("source", SOURCES)
def test_what_is_certain_with_a_stand_in_is_so_for_the_query(source, level):
    """The law: "never" and "always" of any rows hold of those that the query gives."""
    sql = MERGE.format(source, "")
    exact = _said(sql, level)
    read = _workload(sql)
    for one in find_uninterpreted_sources(sql, read.tables, {"t"}):
        declared = ", ".join(column.ddl() for column in one.schema.columns)
        made = f'  "CREATE TABLE s_rows ({declared})",\n]\n[jobs.ingest'
        text = DDL.replace("]\n[jobs.ingest", made)
        work = read_workload(text.format(sql=one.sql, more=""), "w")
        certain = 0
        for meeting in predict_workload(work, protocol(level)).meetings:
            known = exact[meeting.loser, meeting.winner]
            if meeting.word == "never":
                certain += 1
                assert known.word == "never", meeting
            if meeting.word == "always":
                certain += 1
                assert known.word in ("always", "never"), meeting
        assert certain >= 4


def test_each_run_has_rows_of_its_own():
    """With one table of rows for all runs, no two could differ in what they see."""
    found = _workload(MERGE.format(WINDOW.replace("FROM s", "FROM s WHERE day = :day"), ""))
    assert [column.name for column in found.tables["s_rows"].columns] == ["id", "day", "n", "run"]
    (load,) = found.jobs["load"].statements
    assert "FROM s_rows WHERE run = :run AND n >= 1 AND day = :day" in load.sql
    assert load.types == {"day": "DATE", "run": "BIGINT"}
    (said,) = found.assumptions
    assert "it may return any rows with n >= 1 AND day = :day, and other rows in each run" in said


def test_names_that_are_taken():
    source = WINDOW.replace("id, day, row", "id, day, 1 + id AS run, row").replace(
        "FROM s", "FROM s WHERE id > :run_2"
    )
    found = _workload(MERGE.format(source, ""))
    assert "WHERE run_3 = :run_3" in found.jobs["load"].statements[0].sql


@pytest.mark.slow
def test_a_with_before_the_statement_is_stood_in_for():
    sql = f"WITH q AS {DEDUPLICATED} " + MERGE.format("q", "").replace("USING q q", "USING q")
    found = _said(sql)
    assert (found["load", "ingest"].word, found["ingest", "load"].word) == ("always", "never")


def test_a_path_that_may_be_the_jobs_own_table_is_kept():
    source = WINDOW.replace("FROM s", "FROM delta.`/somewhere/t`")
    schemas = _workload(MERGE.format(DEDUPLICATED, "")).tables
    assert not list(find_uninterpreted_sources(MERGE.format(source, ""), schemas, {"t"}))


@pytest.mark.slow
def test_what_an_insert_gives_without_its_query_is_kept():
    sql = "INSERT INTO t SELECT DISTINCT id * hash(id), DATE '2026-01-01' FROM s"
    read = _workload(sql)
    assert (
        read.jobs["load"].statements[0].sql
        == "INSERT INTO t SELECT id, CAST('2026-01-01' AS DATE) FROM s_rows WHERE run = :run"
    )
    found = _said(sql)
    (test,) = found["erase", "load"].examples.values()
    assert "DELETE FROM t WHERE day = DATE '2026-01-01'" in str(test)


@pytest.mark.parametrize(
    "source",
    [
        WINDOW.replace("FROM s", "FROM t"),  # its own table: what is read there is compared
        WINDOW.replace("row_number()", "mine(at)"),  # of no known type
    ],
)
def test_where_more_than_rows_counts_nothing_stands_in(source):
    tables = {
        "t": Schema("t", (Column("id", "INT"), Column("day", "DATE"), Column("at", "TIMESTAMP"))),
        "s": Schema("s", (Column("id", "INT"), Column("day", "DATE"), Column("at", "TIMESTAMP"))),
    }
    assert not list(find_uninterpreted_sources(MERGE.format(source, ""), tables))
    found, _ = find_uninterpreted_sources(MERGE.format(WINDOW, ""), tables)
    assert found.reads == ("s",)


@pytest.mark.slow
def test_a_query_of_with_is_replaced_with_what_it_names():
    """Not if a query that it names reads the written table."""
    union = "WITH a AS (SELECT id, day FROM s UNION SELECT id, day FROM {}), b AS (SELECT * FROM a)"
    sql = f"{union} INSERT INTO t SELECT id, day FROM b WHERE id > 3"
    said = _said(sql.format("s"))
    assert {m.word for (loser, _), m in said.items() if loser == "load"} == {"never"}
    assert _workload(sql.format("s")).statements[2].reads == ()
    (one,) = _workload(sql.format("t")).unread
    assert one.name == "load"
    merge = (
        f"{union.format('s')} MERGE INTO t USING (SELECT * FROM b WHERE id > 3) AS q ON t.id = q.id"
    )
    said = _said(f"{merge} WHEN MATCHED THEN DELETE")
    assert said["load", "ingest"].word == "always"


def test_a_query_may_have_columns_of_types_that_are_not_modelled():
    columns = (Column("id", "INT"), Column("tags", "ARRAY<STRING>"), Column("s", "STRUCT<a: INT>"))
    tables = {name: Schema(name, columns) for name in ("t", "s")}
    query = "SELECT * FROM s QUALIFY row_number() OVER (PARTITION BY id ORDER BY id) = 1"
    (found,) = find_uninterpreted_sources(f"INSERT INTO t {query}", tables)
    assert [column.type for column in found.schema.columns[:-1]] == [c.type for c in columns]
    merge = f"MERGE INTO t USING ({query}) AS q ON t.id = q.id WHEN NOT MATCHED THEN INSERT *"
    (found,) = find_uninterpreted_sources(merge, tables)
    assert [column.type for column in found.schema.columns[:-1]] == [c.type for c in columns]


# Tables without DDL

TARGET = {"t": Schema("t", (Column("id", "BIGINT"), Column("v", "STRING"), Column("day", "DATE")))}
UNDECLARED = {
    "INSERT INTO t SELECT * FROM s": ["id BIGINT", "v STRING", "day DATE"],
    "INSERT INTO t SELECT s.*, current_date() FROM db.s": ["id BIGINT", "v STRING"],
    "INSERT INTO t SELECT 1, s.* FROM s WHERE k = 'x'": ["v STRING", "day DATE", "k STRING"],
    "INSERT INTO t SELECT * EXCEPT (id), day FROM s TABLESAMPLE (3 ROWS)": [
        "id BIGINT", "v STRING", "day DATE",
    ],
    "INSERT INTO t SELECT * FROM t VERSION AS OF 3": ["id BIGINT", "v STRING", "day DATE"],
    "INSERT INTO t SELECT t.* FROM t JOIN t TIMESTAMP AS OF '2026-01-01' AS o ON t.id = o.id": [
        "id BIGINT", "v STRING", "day DATE",
    ],
    "MERGE INTO t USING (SELECT * FROM s QUALIFY row_number() OVER (PARTITION BY id ORDER BY ts) = 1)"
    " AS u ON t.id = u.id WHEN MATCHED AND u.op = 'D' THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v)"
    " VALUES (u.id, u.name)": [
        "id BIGINT", "v STRING", "day DATE", "op STRING", "name STRING", "ts STRING",
    ],
    "MERGE INTO t USING (SELECT * FROM (SELECT *, row_number() OVER (ORDER BY ts) AS n FROM s)"
    " WHERE n = 1 AND kind = 3) AS u ON t.id = u.id AND u.x > 1.5 WHEN MATCHED THEN DELETE": [
        "id BIGINT", "v STRING", "day DATE", "kind BIGINT", "x DOUBLE", "ts STRING",
    ],
    "WITH c AS (SELECT * FROM s) MERGE INTO t USING c AS d ON t.id = d.key WHEN MATCHED THEN DELETE": [
        "id BIGINT", "v STRING", "day DATE", "key BIGINT",
    ],
    "MERGE WITH SCHEMA EVOLUTION INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *": [
        "id BIGINT", "v STRING", "day DATE",
    ],
    "INSERT INTO t SELECT id, upper(name), CAST(ts AS DATE) FROM s WHERE kind = 'x' AND id > 3": [
        "id BIGINT", "name STRING", "ts DATE", "kind STRING",
    ],
    "INSERT INTO t SELECT n, NULL, NULL FROM s JOIN t USING (id) WHERE n < id": [
        "n BIGINT", "id BIGINT",
    ],
    "INSERT INTO t (day) SELECT a FROM s": ["a DATE"],
    "INSERT INTO t SELECT count(*), 'x', NULL FROM s": [],
    "WITH c AS (SELECT * FROM s WHERE d = :d) INSERT INTO t SELECT id, v, d FROM c": [
        "id BIGINT", "v STRING", "day DATE", "d DATE",
    ],
    "INSERT INTO t SELECT id, v, day FROM read_files('/x')": ["id BIGINT", "v STRING", "day DATE"],
    "INSERT INTO t SELECT * FROM csv.`/p/q.csv`": ["id BIGINT", "v STRING", "day DATE"],
    "MERGE INTO t USING s ON t.id = s.k WHEN MATCHED THEN UPDATE SET v = s.name"
    " WHEN NOT MATCHED THEN INSERT (id, day) VALUES (s.k, s.d)": [
        "k BIGINT", "name STRING", "d DATE",
    ],
    "INSERT INTO shop.t SELECT * FROM raw.t": ["id BIGINT", "v STRING", "day DATE"],
    "WITH RECURSIVE c AS (SELECT * FROM s UNION ALL SELECT * FROM c WHERE c.z > 1) INSERT INTO t (id)"
    " SELECT c.z FROM c": ["id BIGINT", "v STRING", "day DATE", "z BIGINT"],
    "UPDATE t SET v = (SELECT max(name) FROM s WHERE s.id = t.id)": ["name STRING", "id BIGINT"],
}  # fmt: skip


@pytest.mark.parametrize("sql", UNDECLARED)
def test_a_table_without_ddl_has_the_columns_that_are_used(sql):
    made, (source,) = replace_undeclared_sources(sql, TARGET)
    assert [str(column.ddl()) for column in source.schema.columns[:-1]] == UNDECLARED[sql]
    assert {source.schema.name, ":run"} <= {*re.findall(r":?\w+", made)}
    assert replace_undeclared_sources(made, TARGET | {source.schema.name: source.schema}) == (
        made,
        (),
    )


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO u SELECT * FROM s",
        "DELETE FROM t WHERE id IN (SELECT id FROM s)",
        "INSERT INTO t SELECT * FROM t",
        "INSERT INTO shop.t SELECT * FROM shop.t",
        "INSERT INTO t SELECT * FROM s PIVOT (max(v) FOR id IN (1))",
        "WITH s AS (SELECT 1 AS id) INSERT INTO t (id) SELECT id FROM s",
        "INSERT INTO t SELECT",
    ],
)
def test_what_is_no_table_without_ddl_is_left_as_it_is(sql):
    assert replace_undeclared_sources(sql, TARGET) == (sql, ())


def test_two_tables_without_ddl_have_rows_and_runs_of_their_own():
    sql = "INSERT INTO t SELECT a.id, b.x, :run FROM a JOIN b ON a.k = b.k"
    made, sources = replace_undeclared_sources(sql, TARGET | {"a_rows": TARGET["t"]})
    assert [(one.schema.name, one.run) for one in sources] == [
        ("a_rows_2", "run_2"),
        ("b_rows", "run_3"),
    ]
    assert "run_2 = :run_2) AS a JOIN" in made


def test_a_star_is_expanded_beside_a_join():
    sql = "INSERT INTO t SELECT a.*, b.day FROM a JOIN b ON a.k = b.k"
    made, (first, second) = replace_undeclared_sources(sql, TARGET)
    assert made.startswith(
        "INSERT INTO t SELECT a.id, a.v, b.day FROM (SELECT id, v, k FROM a_rows"
    )
    assert (first.name, second.name) == ("a", "b")


@pytest.mark.slow
def test_jobs_of_tables_without_ddl():
    """A parameter may be compared with such a table alone."""
    text = '''
    ddl = "CREATE TABLE t (id BIGINT, v STRING, day DATE) USING delta PARTITIONED BY (day)"
    [jobs.upsert]
    sql = """MERGE INTO t USING (SELECT *, row_number() OVER (PARTITION BY id ORDER BY at) AS n
    FROM updates) AS u ON t.id = u.id AND u.n = 1 WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED
    THEN INSERT *"""
    [jobs.load]
    sql = "INSERT OVERWRITE t PARTITION (day = :day) SELECT id, v FROM landing WHERE day = :day"
    [jobs.append]
    sql = "INSERT INTO t SELECT id, v, day FROM landing AS l WHERE l.day > :day"
    '''
    work = read_workload(text, "w")
    assert not work.unread
    assert sum("and stands for any rows" in one for one in work.assumptions) == 2  # landing once
    found = predict_workload(work, protocol("delta-serializable"))
    said = {(m.loser, m.winner): m.word for m in found.meetings}
    assert said["upsert", "append"] == said["upsert", "load"] == "always"
    assert said["load", "load"] == "when"
    assert {said["append", one] for one in ("upsert", "load", "append")} == {"never"}
