"""Full names of tables: what they are one table with, and what is unknown."""

from __future__ import annotations

import pytest

from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.readers.workload_sources import workload

TWO = ("CREATE TABLE bronze.e (id BIGINT, day DATE) USING delta PARTITIONED BY (day)",)
TWO += ("CREATE TABLE silver.e (id BIGINT, n BIGINT) USING delta",)


def folder_of(tmp_path, **files):
    for name, text in files.items():
        (tmp_path / f"{name}.sql").write_text(text, "utf-8")
    return workload(str(tmp_path))


def cells(work):
    found = predict_workload(work, "delta-serializable", examples=False)
    return {(one.loser, one.winner): one.word for one in found.meetings}


def test_tables_of_two_schemas_are_two_tables(tmp_path):
    work = folder_of(
        tmp_path,
        tables=";\n".join(TWO),
        a="UPDATE bronze.e SET id = 2 WHERE day = DATE '2026-01-01'",
        b="DELETE FROM silver.e WHERE n = 1",
        c="INSERT INTO silver.e SELECT bronze.e.id, 1 FROM bronze.e WHERE e.id > 1",
    )
    assert not work.unread
    assert {one.name: one.statement.target for one in work.statements} == {
        "a": "bronze_e", "b": "silver_e", "c": "silver_e"
    }  # fmt: skip
    words = cells(work)
    assert words["a", "b"] == words["b", "a"] == words["c", "a"] == words["c", "b"] == "never"
    assert {words["b", "c"], words["b", "b"]} <= {"always", "when"}
    assert work.assumptions == (
        "bronze.e and silver.e are different tables; here they are bronze_e and silver_e.",
    )


@pytest.mark.parametrize(
    ("sql", "understood"),
    [
        (
            "CREATE TEMP VIEW e AS SELECT e.id FROM bronze.e WHERE e.id > 1; INSERT INTO s SELECT * FROM e",
            "WITH e AS (SELECT bronze_e.id FROM bronze_e WHERE bronze_e.id > 1) INSERT INTO s SELECT * FROM e",
        ),
        (
            "CREATE TEMP VIEW e AS SELECT id FROM s; INSERT INTO s SELECT e.id FROM bronze.e AS e",
            "WITH e AS (SELECT id FROM s) INSERT INTO s SELECT e.id FROM bronze_e AS e",
        ),
        (
            "CREATE TEMP VIEW e AS SELECT 1 AS id; INSERT INTO bronze.e SELECT e.id FROM e",
            "WITH e AS (SELECT 1 AS id) INSERT INTO bronze_e SELECT e.id FROM e",
        ),
        (
            "WITH e AS (SELECT e.id FROM bronze.e) INSERT INTO s SELECT e.id FROM e",
            "WITH e AS (SELECT bronze_e.id FROM bronze_e) INSERT INTO s SELECT e.id FROM e",
        ),
        (
            "WITH e AS (SELECT id FROM e) INSERT INTO e SELECT id FROM e",
            "WITH e AS (SELECT id FROM bronze_e) INSERT INTO bronze_e SELECT id FROM e",
        ),
    ],
)
def test_a_view_has_the_last_part_of_the_name_of_a_table(tmp_path, sql, understood):
    tables = "CREATE TABLE bronze.e (id BIGINT) USING delta; CREATE TABLE s (id BIGINT) USING delta"
    work = folder_of(tmp_path, ddl=tables, x=sql)
    assert [one.sql for one in work.statements] == [understood]
    assert not work.unread
    assert work.assumptions[0] == "bronze.e is a table; here it is bronze_e."


@pytest.mark.parametrize(
    "query",
    [
        "WITH e AS (SELECT e.id FROM bronze.e)",
        "WITH a AS (SELECT e.id FROM bronze.e), e AS (SELECT a.id FROM a)",
    ],
)
def test_a_query_of_with_has_the_last_part_of_an_undeclared_name(tmp_path, query):
    work = folder_of(
        tmp_path,
        ddl="CREATE TABLE s (id BIGINT) USING delta",
        x=f"{query} INSERT INTO s SELECT e.id FROM e",
    )
    assert not work.unread
    assert work.assumptions[0].startswith("bronze.e has no DDL.")


def test_views_that_read_each_other_may_read_any_table(tmp_path):
    work = folder_of(
        tmp_path,
        ddl="CREATE TABLE s (id BIGINT) USING delta",
        views="CREATE VIEW v AS SELECT * FROM w; CREATE VIEW w AS SELECT * FROM v",
        x="INSERT INTO s SELECT id FROM v",
        y="DELETE FROM s",
    )
    assert work.unread[-1].problem == "v reads itself"
    assert cells(work)["x", "y"] == "unknown"


VIEW = "CREATE OR REPLACE TEMP VIEW v"


@pytest.mark.parametrize(
    ("sql", "last"),
    [
        ("CREATE TEMP VIEW s AS SELECT * FROM s WHERE id = 1; INSERT INTO default.s SELECT * FROM s", ""),
        (f"{VIEW} AS SELECT id FROM t; {VIEW} (id) AS SELECT n FROM t; INSERT INTO s SELECT * FROM v", ""),
        (f"{VIEW} AS SELECT id FROM t; {VIEW} AS SELECT * FROM v; INSERT INTO s SELECT * FROM v", ""),
        (
            f"{VIEW} AS SELECT id FROM t; {VIEW} AS SELECT * FROM v; {VIEW} AS SELECT 1 AS id; INSERT INTO s SELECT * FROM v",
            "WITH v AS (SELECT 1 AS id) INSERT INTO s SELECT * FROM v",
        ),
        (
            "CREATE TEMP VIEW t AS SELECT 1 AS id; DROP VIEW IF EXISTS t; INSERT INTO s SELECT id FROM t",
            "INSERT INTO s SELECT id FROM t",
        ),
        (
            "CREATE TEMP VIEW s AS SELECT * FROM s; DROP VIEW s; INSERT INTO s SELECT id FROM t",
            "INSERT INTO s SELECT id FROM t",
        ),
    ],
)  # fmt: skip
def test_a_view_that_is_not_understood_is_neither_the_one_before_it_nor_a_table(
    tmp_path, sql, last
):
    """Such as a view that reads itself."""
    tables = (
        "CREATE TABLE s (id BIGINT) USING delta; CREATE TABLE t (id BIGINT, n BIGINT) USING delta"
    )
    work = folder_of(tmp_path, ddl=tables, x=sql, y="DELETE FROM s")
    assert [one.sql for one in work.statements if one.job == "x"] == [last] * bool(last)
    if not last:
        assert "is a temporary view that is not understood" in work.unread[-1].problem


@pytest.mark.parametrize(
    "query",
    ["WITH e AS (SELECT id FROM e)", "WITH e AS (SELECT id FROM f), f AS (SELECT id FROM e)"],
)
def test_a_query_of_with_that_reads_a_table_of_its_name_is_not_understood(tmp_path, query):
    work = folder_of(
        tmp_path,
        ddl="CREATE TABLE s (id BIGINT) USING delta",
        x=f"{query} INSERT INTO s SELECT id FROM e",
        y="DELETE FROM s",
    )
    assert [one.problem for one in work.unread] == ["'e' names two things; give one another name"]


@pytest.mark.parametrize("door", ["ddl", "toml"])
def test_each_door_takes_the_layout(tmp_path, door):
    sql = "INSERT INTO bronze.e SELECT id, current_date() FROM silver.e"
    if door == "toml":
        ddl = ", ".join(f'"{text}"' for text in TWO)
        work = read_workload(f'ddl = [{ddl}]\n[jobs.x]\nsql = "{sql}"', "w")
    else:
        (tmp_path / "ddl.sql").write_text(";\n".join(TWO), "utf-8")
        (tmp_path / "x.sql").write_text(sql, "utf-8")
        work = workload(str(tmp_path / "x.sql"), ddl=tmp_path / "ddl.sql")
    assert [one.statement.target for one in work.statements] == ["bronze_e"]
    assert [one.statement.query[0].table for one in work.statements] == ["silver_e"]


@pytest.mark.parametrize(
    ("ddl", "sql", "targets"),
    [
        ("CREATE TABLE t", "DELETE FROM spark_catalog.default.t", {"t"}),
        ("CREATE TABLE main.default.t", "DELETE FROM t", {"t"}),
        ("CREATE TABLE t", "DELETE FROM a.b.c.d.t", set()),
        ("CREATE TABLE `a``b`.`t`", "DELETE FROM `A``B`.`T`", {"t"}),
        ("CREATE TABLE main.t", "DELETE FROM other.t", set()),
        ("CREATE TABLE t", "USE main.a; DELETE FROM t; USE SCHEMA b; DELETE FROM t", set()),
        ("CREATE TABLE a.t", "USE a; DELETE FROM t; DELETE FROM main.a.t", {"t"}),
        ("CREATE TABLE a.t", "USE b; DELETE FROM t", set()),
        ("CREATE TABLE a.t", "USE CATALOG c; DELETE FROM t", set()),
        ("CREATE TABLE ${s}.t", "DELETE FROM ${s}.t; DELETE FROM {{ s }}.t", {"t"}),
        ("CREATE TABLE ${s}.t", "DELETE FROM a.t", set()),
        ("CREATE TABLE t", "DELETE FROM ${a}.t; DELETE FROM ${b}.t", set()),
        ("CREATE TABLE ${c}.raw_${env}.t", "OPTIMIZE `${c}`.raw_${env}.t; VACUUM t", {"t"}),
        ("CREATE TABLE t", "DELETE FROM ${t}", set()),
        ("CREATE TABLE t", "DELETE FROM $s.t; DELETE FROM {s}.t; DELETE FROM %(s)s.t", set()),
        ("CREATE TABLE t", "DELETE FROM IDENTIFIER(:s || '.t')", set()),
    ],
)
def test_a_name_is_that_of_the_one_table_that_it_fits(tmp_path, ddl, sql, targets):
    other = "CREATE TABLE other_table (id BIGINT) USING delta"
    work = folder_of(
        tmp_path,
        ddl=f"{ddl} (id BIGINT, n BIGINT) USING delta; {other}",
        x=sql,
        y="DELETE FROM other_table",
    )
    assert {one.statement.target for one in work.statements if one.job == "x"} == targets
    assert bool(work.unread) == (not targets)


@pytest.mark.parametrize("name", ["a..t", "`a`.", ".t", "`t", "t.", "``", "a.`b`c.t", "`a`b`.t"])
def test_a_name_that_is_none_is_not_understood(tmp_path, name):
    work = folder_of(
        tmp_path,
        ddl="CREATE TABLE t (id BIGINT) USING delta",
        x=f"DELETE FROM {name} WHERE id = 1",
        y="INSERT INTO t VALUES (1)",
    )
    assert all(word in ("unknown", "never") for word in cells(work).values())
    assert cells(work)["x", "y"] == "unknown"


def test_a_table_that_is_not_understood_is_none_of_the_others(tmp_path):
    more = "CREATE TABLE gold.e (id BIGINT MASK f, n BIGINT) USING delta"
    work = folder_of(
        tmp_path,
        tables=";\n".join((*TWO, more)),
        a="INSERT INTO silver.e SELECT id, n FROM gold.e",
        b="DELETE FROM e",
        c="DELETE FROM silver.e",
    )
    assert [one.name for one in work.statements] == ["c"]
    assert {one.name: one.problem.partition(" (")[0] for one in work.unread} == {
        "a": "gold_e is declared, but not understood",
        "b": "'e' may be bronze.e or silver.e or gold.e; write its schema, or the name as it is"
        " declared",
    }


def test_invariants_have_full_names_too():
    ddl = ", ".join(f'"{text}"' for text in TWO)
    work = read_workload(
        f"ddl = [{ddl}]\n[jobs.x]\nsql = 'DELETE FROM silver.e'\n"
        "[invariants]\nkey = 'silver . e: unique(id)'\nparent = 'bronze.e: id references silver.e(id)'",
        "w",
    )
    assert [one.table for one in work.invariants] == ["silver_e", "bronze_e"]


def test_the_log_of_a_table_is_that_of_its_full_name(tmp_path):
    """A folder names no schema."""
    log = tmp_path / "e" / "_delta_log"
    log.mkdir(parents=True)
    schema = '{\\"type\\":\\"struct\\",\\"fields\\":[{\\"name\\":\\"id\\",\\"type\\":\\"long\\",'
    schema += '\\"nullable\\":true,\\"metadata\\":{}}]}'
    (log / "00000000000000000000.json").write_text(
        '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}\n'
        f'{{"metaData":{{"id":"x","format":{{"provider":"parquet","options":{{}}}},"schemaString":"{schema}",'
        '"partitionColumns":[],"configuration":{},"createdTime":1}}\n',
        "utf-8",
    )
    (tmp_path / "x.sql").write_text(
        f"INSERT INTO shop.e SELECT id FROM delta.`{tmp_path / 'e'}`", "utf-8"
    )
    (tmp_path / "y.sql").write_text("DELETE FROM e", "utf-8")
    work = workload(str(tmp_path / "x.sql"), str(tmp_path / "y.sql"), tables=[str(tmp_path / "e")])
    assert [(one.name, one.statement.target) for one in work.statements] == [("y", "e")]
    assert "by the path of its LOCATION" in work.unread[0].problem


def test_a_name_that_lacks_parts_is_said(tmp_path):
    work = folder_of(
        tmp_path,
        ddl="CREATE TABLE main.shop.t (id BIGINT) USING delta",
        x="DELETE FROM t",
        y="DELETE FROM shop.t; DELETE FROM main.shop.t",
    )
    said = "What a name of a table lacks is the same as in its declaration"
    names = "shop.t is the declared main.shop.t, t is the declared main.shop.t"
    assert work.assumptions == (f"{said}: {names}.",)


@pytest.mark.parametrize(
    ("ddl", "create"),
    [
        ("events", "CREATE TABLE main.iot.events"),
        ("iot.events", "CREATE TABLE IF NOT EXISTS main.iot.events"),
        ("events", "USE iot; CREATE TABLE events"),
        ("main.iot.events", "CREATE TABLE iot.events"),
    ],
)
def test_a_ddl_and_a_folder_create_one_table(tmp_path, ddl, create):
    columns = "(id BIGINT, n BIGINT) USING delta"
    (tmp_path / "ddl.sql").write_text(f"CREATE TABLE {ddl} {columns}", "utf-8")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "a.sql").write_text(
        f"{create} {columns}; DELETE FROM main.iot.events", "utf-8"
    )
    work = workload(str(tmp_path / "jobs"), ddl=tmp_path / "ddl.sql")
    assert not work.unread
    assert [one.statement.target for one in work.statements] == ["events"]


def test_use_in_a_ddl_gives_tables_their_schema(tmp_path):
    texts = [f"USE {name}; CREATE TABLE e (id BIGINT) USING delta" for name in ("a", "b")]
    (tmp_path / "ddl.sql").write_text(";".join(texts), "utf-8")
    (tmp_path / "x.sql").write_text("INSERT INTO a.e SELECT id FROM b.e", "utf-8")
    work = workload(str(tmp_path / "x.sql"), ddl=tmp_path / "ddl.sql")
    assert [one.statement.target for one in work.statements] == ["a_e"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "DROP SCHEMA m.s CASCADE",
        "USE CATALOG m; DROP SCHEMA s CASCADE",
        "DROP DATABASE s CASCADE",
        "DROP TABLE IDENTIFIER(:name)",
        "ALTER TABLE IDENTIFIER(:name) ADD CONSTRAINT c CHECK (id > 0)",
        "CREATE OR REPLACE TABLE IDENTIFIER(:name) (id INT) USING delta",
        "CREATE OR REPLACE TABLE IDENTIFIER(:name) USING delta AS SELECT 1 AS id",
        "TRUNCATE TABLE IDENTIFIER(:name)",
    ],
)
def test_what_may_be_any_table_concerns_each(tmp_path, sql):
    work = folder_of(
        tmp_path,
        ddl="CREATE TABLE m.s.t (id BIGINT, n BIGINT) USING delta",
        x=sql,
        y="UPDATE m.s.t SET n = 1 WHERE id = 1",
    )
    assert [one.name for one in work.unread] == ["x"]
    assert cells(work)["x", "y"] == cells(work)["y", "x"] == "unknown"


def test_a_timestamp_that_is_spelled_otherwise_is_any_value(tmp_path):
    work = folder_of(
        tmp_path,
        ddl="CREATE TABLE t (id INT, at TIMESTAMP) USING delta",
        x="INSERT INTO t VALUES (1, '2019-11-01T00:00:00.000Z')",
        y="DELETE FROM t WHERE id = 5",
    )
    assert not work.unread
    assert cells(work)["x", "y"] == cells(work)["x", "x"] == "never"


def test_a_table_that_is_not_declared_is_named_as_it_is_written(tmp_path):
    sql = "CREATE TABLE bronze.e (id INT) USING delta;\nUSE silver;\nDELETE FROM e WHERE id = 1"
    (tmp_path / "a.sql").write_text(sql, "utf-8")
    (tmp_path / "b.sql").write_text("DELETE FROM bronze.e", "utf-8")
    (unread,) = workload(str(tmp_path)).unread
    assert unread.place == "a.sql:3:1"
    assert unread.problem.startswith("unknown table 'silver.e'; known: e;")
