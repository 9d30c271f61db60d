"""Statements of jobs in other forms, without effect, or with a reason why they are not modelled."""

from __future__ import annotations

import pytest

from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.readers.sql_jobs import read_job_text, split_statements
from isolitmus.jobs.readers.workload_file import build_workload
from isolitmus.jobs.sql.job_statements import (
    altered_tables,
    commits_nothing,
    concerns_no_table,
    find_transactions,
    split_inserts,
    transaction_statements,
    unsupported_reason,
)
from isolitmus.model.errors import SqlError
from isolitmus.specs import protocol
from isolitmus.specs.files.toml_reader import Node, Source

DDL = [
    "CREATE TABLE t (id INT, kind STRING, day DATE) USING delta PARTITIONED BY (day)",
    "CREATE TABLE u (id INT, kind STRING, day DATE) USING delta",
    "CREATE TABLE s (id INT, kind STRING, day DATE)",
]


def work_of(**texts):
    """The workload of SQL files with these texts."""
    sources = {name: Source(f"{name}.sql", text) for name, text in texts.items()}
    jobs = {
        name: {"sql": list(found)}
        for name, source in sources.items()
        if (found := read_job_text(source).statements)
    }
    node = Node({"ddl": DDL, "jobs": jobs}, "", Source("w"))
    return build_workload(node, "w", sources=sources, each=True, partial=True)


def words_of(work):
    found = predict_workload(work, protocol("delta-serializable"), examples=False)
    return {(one.loser, one.winner): one.word for one in found.meetings}


PASSED = [
    "CREATE SCHEMA IF NOT EXISTS old",
    "DROP SCHEMA old",
    "COMMENT ON DATABASE old IS 'x'",
    "CREATE OR REPLACE TEMPORARY FUNCTION f(x INT) RETURNS INT RETURN x + 1",
    "DROP VIEW IF EXISTS v",
    "UNCACHE TABLE t",
    "CLEAR CACHE",
    "GENERATE symlink_format_manifest FOR TABLE t",
    "INSERT OVERWRITE DIRECTORY '/x' USING parquet SELECT * FROM t",
    "CREATE TEMPORARY VIEW v (id INT) USING csv OPTIONS (path '/x')",
    "DROP TABLE IF EXISTS t_old",
    "CACHE TABLE s",
    "CACHE LAZY TABLE x AS SELECT * FROM s",
    "CREATE OR REPLACE TABLE t_old SHALLOW CLONE t",
    "CREATE TABLE t_old USING delta AS SELECT * FROM t",
    "CREATE TABLE t_old LIKE t",
    "CREATE VIEW v AS SELECT * FROM t",
    "CONVERT TO DELTA parquet.`/x`",
]


@pytest.mark.parametrize("sql", PASSED)
def test_what_changes_no_table_with_ddl_is_passed_over(sql):
    work = work_of(a=sql, b="DELETE FROM t")
    assert ([*work.jobs], work.unread) == (["b"], ())
    assert any("has no effect on conflicts" in one for one in work.left_out) or commits_nothing(sql)


REFUSED = {
    "DROP SCHEMA old CASCADE": "it drops tables",
    "DROP TABLE t": "no statement can follow on its table",
    "CACHE TABLE t": "read an older state of the table",
    "CREATE TABLE t_old USING delta LOCATION '/lake/t' AS SELECT 1 AS id": "unknown table 't_old'",
    "CREATE OR REPLACE TABLE u SHALLOW CLONE t": "try it in a litmus test",
    "BEGIN WHILE 1 = 1 DO DELETE FROM t; END WHILE; END": "an SQL script",
    "CACHE TABLE x AS SELECT * FROM t": "read an older state of the table",
    "EXECUTE IMMEDIATE 'DELETE FROM t WHERE id = ?' USING 1": "write the statement that it runs",
    "ALTER TABLE t ADD COLUMN x INT FIRST": "omit FIRST and AFTER",
    "ALTER TABLE t ADD COLUMN kind.x INT": "a new field of a column",
    "ALTER TABLE t CHANGE COLUMN id id BIGINT COMMENT 'x'": "a change of the type of id",
    "ALTER TABLE t DROP COLUMNS (id, ID)": "DROP COLUMNS names ID twice",
    "COPY INTO t FROM '/x' FILEFORMAT = CSV": "open-source Delta does not have it",
    "INSERT INTO t REPLACE USING (day) SELECT * FROM s": "REPLACE USING",
    "CREATE TEMPORARY VIEW v USING delta OPTIONS (path '/lake/t')": "this form of a temporary view",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_not_modelled_has_a_reason_and_leaves_the_others_their_answers(sql):
    work = work_of(a=sql, b="DELETE FROM t")
    assert "b" in work.jobs
    assert REFUSED[sql] in work.unread[0].problem


def test_a_view_that_another_job_names_is_not_passed_over():
    work = work_of(a="CREATE VIEW v AS SELECT * FROM t", b="INSERT INTO u SELECT * FROM v")
    assert [one.name for one in work.unread] == ["a"]


def test_what_alters_a_table_concerns_no_other_table():
    assert altered_tables("alter table `a`.`T` drop partition (x = 1)") == {"t"}
    assert altered_tables("DROP TABLE delta.`/lake/t`") is None
    assert altered_tables("DELETE FROM t") is None
    work = work_of(a="DROP TABLE u", b="DELETE FROM t")
    said = words_of(work)
    assert (said["a", "b"], said["b", "a"], said["a", "a"]) == ("never", "never", "unknown")


def test_drop_of_a_table_with_ddl_is_not_passed_over():
    assert not concerns_no_table("DROP TABLE a.T", {"t"}, set(), [])
    assert concerns_no_table("DROP TABLE a.old PURGE", {"t"}, set(), [])


def test_each_insert_of_several_is_a_transaction():
    sql = (
        "FROM s INSERT INTO t SELECT * WHERE id > 1"
        " INSERT OVERWRITE TABLE u SELECT id, kind, DATE '2026-01-01' AS day"
    )
    work = work_of(a=sql)
    assert [one.statement.target for one in work.statements] == ["t", "u"]
    assert [one.name for one in work.statements] == ["a_1", "a_2"]
    assert split_inserts("INSERT INTO t FROM s SELECT *") == ("INSERT INTO t FROM s SELECT *",)
    assert split_inserts("SELECT * FROM s") == ("SELECT * FROM s",)


def test_a_plain_script_is_its_statements():
    work = work_of(a="BEGIN\n  DELETE FROM t WHERE id = 1;\n  OPTIMIZE t;\nEND;")
    assert [one.sql for one in work.statements] == ["DELETE FROM t WHERE id = 1", "OPTIMIZE t"]
    assert work.statements[0].location.line == 2


def test_a_script_may_stand_among_other_statements():
    text = (
        "OPTIMIZE t; BEGIN DELETE FROM t; END; BEGIN LOOP DELETE FROM t; END LOOP; END; OPTIMIZE u"
    )
    work = work_of(a=text)
    assert [one.sql for one in work.statements] == ["OPTIMIZE t", "DELETE FROM t", "OPTIMIZE u"]
    assert "an SQL script" in work.unread[0].problem


def test_a_branch_of_a_script_may_run():
    """A condition can only prevent a statement; "if both write" covers that."""
    text = "BEGIN IF EXISTS (SELECT * FROM s) THEN DELETE FROM t; ELSEIF 1 = 2 THEN OPTIMIZE t;"
    text += " ELSE TRUNCATE TABLE t; END IF; END"
    work = work_of(a=text)
    assert [one.sql.strip() for one in work.statements] == [
        "DELETE FROM t", "OPTIMIZE t", "TRUNCATE TABLE t",
    ]  # fmt: skip
    conditions = [one for one in read_job_text(Source("a.sql", text)).statements if "IF" in one]
    assert conditions == ["IF EXISTS (SELECT * FROM s) THEN", "IF 1 = 2 THEN"]
    assert conditions[1] in work.uncertain["a"]


INSERTS = "INSERT INTO t VALUES (1, 'x', NULL); INSERT INTO u SELECT * FROM u WHERE id = 2"
TRANSACTIONS = [
    f"BEGIN TRANSACTION; {INSERTS}; COMMIT",
    f"begin tran; {INSERTS}; rollback transaction",
    f"/* nightly; */ BEGIN -- both or none;\n WORK; {INSERTS}; COMMIT WORK",
    f"START TRANSACTION READ WRITE; {INSERTS}; END TRANSACTION",
    f"BEGIN; {INSERTS}; END",
    f"BEGIN ATOMIC {INSERTS}; END",
    f"nightly: BEGIN ATOMIC\n{INSERTS};\nEND nightly",
    f"BEGIN ATOMIC DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN DELETE FROM t; END; {INSERTS}; END",
    f"BEGIN ATOMIC {INSERTS}; IF EXISTS (SELECT * FROM t) THEN DELETE FROM t; END IF; END",
    f"BEGIN ATOMIC BEGIN ATOMIC DELETE FROM u; END; {INSERTS}; END",
    f"BEGIN TRANSACTION; IF 1 = 1 THEN ROLLBACK; ELSE COMMIT; END IF; {INSERTS}; COMMIT",
    f"BEGIN TRANSACTION; ROLLBACK TO SAVEPOINT a; {INSERTS}; COMMIT AND CHAIN; OPTIMIZE t; COMMIT",
    f"SET AUTOCOMMIT = 0; {INSERTS}; COMMIT; DELETE FROM t; SET AUTOCOMMIT = TRUE",
    f"EXECUTE IMMEDIATE 'BEGIN TRANSACTION'; {INSERTS}; COMMIT",
    f"{INSERTS}; COMMIT",
]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["file", "list"])
@pytest.mark.parametrize("sql", TRANSACTIONS)
def test_a_transaction_of_several_statements_is_not_understood_as_a_whole(sql, form):
    if form == "file":
        work = work_of(a=f"{sql}; DELETE FROM s", b="DELETE FROM t", c="INSERT INTO s TABLE s")
    else:
        pieces = [*split_statements(sql), "DELETE FROM s"]
        node = Node({"ddl": DDL, "jobs": {"a": pieces, "b": "DELETE FROM t"}}, "", Source("w"))
        work = build_workload(node, "w", each=True)
    (one,) = work.unread
    assert one.problem.startswith("a transaction block is outside the SQL that isolitmus models")
    assert (one.name, one.mistake, one.target) == ("a_1", None, None)
    assert one.tables in (None, {"t", "u"})
    assert [each.sql for each in work.jobs["a"].statements] == ["DELETE FROM s"]
    assert words_of(work)["b", "a_1"] == "unknown"


def test_the_tables_of_a_transaction():
    view = "CREATE TEMP VIEW v AS SELECT * FROM u; "
    read = "BEGIN TRANSACTION; INSERT INTO t SELECT * FROM v; COMMIT"
    assert [one.tables for one in work_of(a=view + read).unread] == [{"t", "u"}]
    assert [one.tables for one in work_of(a=read).unread] == [None]
    inside = (
        "BEGIN ATOMIC CREATE TEMP VIEW v AS SELECT * FROM u; OPTIMIZE t; END; INSERT INTO t TABLE v"
    )
    work = work_of(a=inside)
    assert [one.sql for one in work.statements] == [
        "WITH v AS (SELECT * FROM u) INSERT INTO t TABLE v"
    ]


def test_a_transaction_that_is_not_ended_reaches_to_the_end_of_the_file():
    text = "DELETE FROM u;\nBEGIN TRANSACTION;\nDELETE FROM t;\nUSE x;\nDELETE FROM u"
    work = work_of(a=text, b="DELETE FROM u")
    (one,) = work.unread
    assert "a transaction block without COMMIT or ROLLBACK" in one.problem
    assert (one.location.line, one.location.end_line, one.tables) == (2, 5, {"t", "u"})
    assert [each.name for each in work.statements] == ["a_1", "b"]
    assert words_of(work)["b", "a_2"] == "unknown"


def test_a_setting_in_a_transaction_holds_after_it():
    mode = "spark.sql.sources.partitionOverwriteMode"
    text = f"BEGIN TRANSACTION; SET {mode} = dynamic; DELETE FROM t; COMMIT; OPTIMIZE t"
    work = work_of(a=text)
    assert [dict(one.conf) for one in work.statements] == [{mode: "dynamic"}]


def test_what_is_no_transaction_of_several_statements():
    for text in ("BEGIN DELETE FROM t", "SET AUTOCOMMIT = ON", "SELECT 'BEGIN TRANSACTION'"):
        assert find_transactions([text]) == []
    assert transaction_statements("START TRANSACTION; DELETE FROM t; USE x; COMMIT") == (
        "DELETE FROM t",
    )
    assert find_transactions(["BEGIN ATOMIC END; BEGIN ATOMIC END"]) == [(0, 0, True)]


def test_a_literal_statement_and_a_literal_name():
    plain = work_of(a="DELETE FROM t WHERE id = 1", b="OPTIMIZE t")
    other = work_of(
        a="EXECUTE IMMEDIATE 'DELETE FROM t WHERE id = 1'", b="OPTIMIZE IDENTIFIER('shop.t')"
    )
    assert [one.statement for one in other.statements] == [
        one.statement for one in plain.statements
    ]


UNPARSED = [
    "INSERT INTO t TABLE s |> WHERE id > 1 |> EXTEND id AS n |> SELECT n, kind, day",
    "INSERT INTO t SELECT id, kind, day FROM s WITH ('split-size' = 5)",
    "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) INSERT INTO t SELECT i, 'x', NULL FROM r",
    "INSERT INTO t SELECT a.id, b.kind, a.day FROM s a JOIN s b APPROX NEAREST 1 BY DISTANCE a.id - b.id",
]  # fmt: skip


@pytest.mark.parametrize("sql", UNPARSED)
def test_a_query_that_does_not_parse_may_return_any_rows(sql):
    work = work_of(a=sql, b="DELETE FROM t WHERE id = 1")
    assert not work.unread
    (said,) = (one for one in work.left_out if "any rows" in one)
    assert said.startswith("The query (")
    assert "stands for any rows, others in each run, with the columns id INT, kind STRING" in said
    words = words_of(work)
    assert words["a", "b"] == words["a", "a"] == "never"
    assert words["b", "a"] == "always"


def test_rows_of_other_tables_may_matter_to_it():
    """``robust`` assumes so; the written table is not among them."""
    sql = "INSERT INTO t TABLE u |> EXTEND 1 AS n |> SELECT n, kind, day"
    work = work_of(a=sql, b="INSERT INTO u VALUES (1, 'x', NULL)")
    assert [one.reads for one in work.statements] == [("u",), ()]


def test_so_may_the_source_of_a_merge():
    source = "(TABLE s |> WHERE id > 1 |> SELECT id, kind)"
    merge = f"MERGE INTO t USING {source} AS q ON t.id = q.id WHEN MATCHED THEN UPDATE SET kind = q.kind"
    work = work_of(a=merge, b="INSERT INTO t VALUES (1, 'x', :day)")
    assert not work.unread
    assert words_of(work)["a", "b"] == "always"


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t TABLE t |> EXTEND 1 AS n |> SELECT n, kind, day",
        "INSERT INTO t SELEC id, kind, day FROM s",
        "INSERT INTO t SELECT id, kind, day FROM s WHERE kind = '|>' AND",
    ],
)
def test_not_if_it_names_its_own_table_nor_if_it_is_a_mistake(sql):
    work = work_of(a=sql, b="DELETE FROM t")
    assert [one.name for one in work.unread] == ["a"]


def test_a_comment_of_a_new_column_may_have_commas():
    sql = "ALTER TABLE t ADD COLUMNS (x INT COMMENT 'a, b (c)', y DECIMAL(3, 1))"
    work = work_of(a=sql)
    assert [c.ddl() for c in work.statements[0].statement.change.columns] == [
        "x INT", "y DECIMAL(3,1)",
    ]  # fmt: skip


def test_the_form_of_hive_comments_a_column():
    (one,) = work_of(a="ALTER TABLE t CHANGE COLUMN id id INT COMMENT 'key'").statements
    (other,) = work_of(a="ALTER TABLE t ALTER COLUMN id COMMENT 'key'").statements
    assert one.statement.change == other.statement.change


def test_a_default_collation_is_a_property():
    (one,) = work_of(a="ALTER TABLE t DEFAULT COLLATION UTF8_LCASE").statements
    (other,) = work_of(a="ALTER TABLE t SET TBLPROPERTIES (collation = 'UTF8_LCASE')").statements
    assert one.statement.change == other.statement.change


def test_a_colon_after_a_value_is_no_parameter():
    """``value:field`` reads a field of a VARIANT."""
    work = work_of(a="INSERT INTO t SELECT try_parse_json(kind):a, kind, day FROM s")
    assert not work.unread
    assert "a" not in work.jobs["a"].parameters


def test_a_reason_is_one_sentence():
    for sql in ("DROP TABLE t", "CALL f()", "LOAD DATA INPATH '/x' INTO TABLE t"):
        reason = unsupported_reason(sql)
        assert reason
        assert "\n" not in reason
    with pytest.raises(SqlError, match="outside"):
        build_workload(Node({"ddl": DDL, "jobs": {"a": {"sql": "CALL f()"}}}, "", Source("w")), "w")
