"""Tables, statements and files that are not understood leave the others their answers."""

import json

import pytest

from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.model.errors import IsolitmusError

OTHER = "CREATE TABLE o (id INT, day DATE) USING delta"


def read(created, **jobs):
    texts = [OTHER, *created]
    lines = [f"ddl = {json.dumps(texts)}"]
    lines += [f"[jobs.{name}]\nsql = {json.dumps(sql)}" for name, sql in jobs.items()]
    return read_workload("\n".join(lines), "w")


def words(work):
    found = predict_workload(work, "delta-serializable").meetings
    return {(one.loser, one.winner): one.word for one in found}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("create", "problem"),
    [
        ("CREATE TABLE t (id INT, s STRING COLLATE UTF8_LCASE) USING delta", "COLLATE"),
        ("CREATE TABLE t (id INT, s STRING MASK hide) USING delta", "does not parse"),
        ("CREATE TABLE x.y.t (id INT) USING delta WITH ROW FILTER f ON (id)", "DDL is CREATE TABLE"),
        ("CREATE TABLE t (id INT, g GEOGRAPHY(4326)) USING delta", "no type"),
        ("CREATE TABLE `t` (id INT) USING delta PARTITIONED BY (nope)", "names no column"),
        ("CREATE TABLE t LIKE o USING delta", "DDL is CREATE TABLE"),
        ("CREATE TABLE t (id INT) USING delta TBLPROPERTIES ('delta.new' = '1')", "no property"),
        ("CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 0)) USING delta", "IDENTITY"),
        ("CREATE OR REFRESH STREAMING TABLE t AS SELECT * FROM STREAM o", "DDL is CREATE TABLE"),
    ],
)  # fmt: skip
def test_a_table_that_is_not_understood_makes_its_statements_unknown(create, problem):
    work = read(
        [create],
        fill="INSERT INTO t VALUES (1)",
        copy="INSERT INTO o SELECT id, current_date() FROM T",
        clean="DELETE FROM o WHERE id = 1",
        log="INSERT INTO o VALUES (1, DATE '2026-01-01')",
    )
    assert [one.name for one in work.unread] == ["fill", "copy"]
    assert all(problem in one.problem and "w.toml:1" in one.problem for one in work.unread)
    found = words(work)
    assert found["clean", "log"] == "always"
    assert found["log", "clean"] == "never"
    assert found["clean", "fill"] == "never"  # it changes another table
    assert found["clean", "copy"] == found["fill", "fill"] == "unknown"
    assert any("t is declared, but not understood" in line for line in work.assumptions)


@pytest.mark.parametrize(
    "key", ["'delta.checkpointPolicy' = 'v2'", "'delta.enableInCommitTimestamps' = 'true'"]
)
def test_what_no_commit_check_uses_is_an_assumption(key):
    work = read(
        [f"CREATE TABLE t (id INT REFERENCES o (id)) USING delta TBLPROPERTIES ({key})"],
        clean="DELETE FROM t WHERE id = 1",
    )
    assert words(work) == {("clean", "clean"): "when"}
    assert any("Conflicts do not depend on" in line for line in work.assumptions)


def test_statements_that_name_a_view_are_not_understood():
    """It may stand for any table, also for one that they write to."""
    work = read(
        ["CREATE VIEW v AS SELECT id, day FROM o"],
        copy="INSERT INTO o SELECT * FROM v",
        clean="DELETE FROM o WHERE id = 1",
    )
    (unread,) = work.unread
    assert (unread.name, unread.tables, unread.target) == ("copy", {"o"}, "o")
    assert words(work)["copy", "clean"] == "unknown"


def test_other_statements_of_a_ddl_declare_nothing():
    aside = [
        "USE shop",
        "DROP TABLE IF EXISTS o",
        "CREATE SCHEMA s",
        "INSERT INTO o VALUES (1, NULL)",
    ]
    work = read(aside, clean="DELETE FROM o WHERE id = 1")
    assert len(work.assumptions) == len(aside)
    assert not work.unread
    changed = read(
        ["ALTER TABLE o ADD CONSTRAINT c CHECK (id > 0)", "CREATE TABLE p (id INT) USING delta"],
        clean="DELETE FROM o WHERE id = 1",
        other="DELETE FROM p",
    )
    assert [one.name for one in changed.unread] == ["clean"]
    assert words(changed)["other", "clean"] == "never"


def test_a_ddl_without_any_table_that_is_understood_is_an_error():
    text = f'ddl = "{OTHER.replace("id INT", "id INT COLLATE x")}"\n[jobs.a]\nsql = "DELETE FROM o"'
    with pytest.raises(IsolitmusError, match="COLLATE"):
        read_workload(text, "w")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("CREATE TABLE IF NOT EXISTS b.t (ID bigint COMMENT 'key', day DATE) USING delta", True),
        ("CREATE TABLE t (id BIGINT, day DATE)", True),
        ("CREATE TABLE b.t (id BIGINT, n INT) USING delta", False),
        ("CREATE TABLE t (id BIGINT, day DATE) USING delta PARTITIONED BY (day)", False),
        ("CREATE TABLE main.b.t (id BIGINT, day DATE NOT NULL) USING delta", False),
    ],
)
def test_files_that_declare_a_table_differently_leave_it_open(tmp_path, other, same):
    files = {
        "a": f"{OTHER}; CREATE TABLE b.t (id BIGINT, day DATE) USING delta; DELETE FROM b.t",
        "b": f"{other}; DELETE FROM o",
        "c": "CREATE TABLE b.t (id BIGINT, day DATE) USING delta; INSERT INTO o SELECT id, day FROM b.t",
    }
    for name, sql in files.items():
        (tmp_path / f"{name}.sql").write_text(sql)
    work = workload(str(tmp_path))
    assert [one.job for one in work.unread] == ([] if same else ["a", "c"])
    if not same:
        said = "is declared, but not understood (a.sql:1 and b.sql:1): they declare it differently"
        assert all(said in one.problem for one in work.unread)
    assert words(work)["b", "b"] == "always"


def test_a_table_that_is_not_declared_is_none_of_the_declared_ones(tmp_path):
    files = {
        "a": "CREATE TABLE silver.x (id BIGINT, n BIGINT) USING delta; DELETE FROM silver.x",
        "b": f"{OTHER}; INSERT INTO o SELECT id, NULL FROM other.x",
        "c": "INSERT INTO other.x SELECT id FROM r LATERAL VIEW explode(a) AS z",
        "d": "USE other; UPDATE x SET n = 1",
        "e": "UPDATE x SET k = 1",
        "f": "DELETE FROM ${s}.x WHERE id = 1",
        "g": "DELETE FROM other.z",
    }
    for name, sql in files.items():
        (tmp_path / f"{name}.sql").write_text(sql)
    work = workload(str(tmp_path))
    found = words(work)
    assert {one.job for one in work.unread} == {"c", "d", "e", "f", "g"}
    open_ = {pair for pair, word in found.items() if word == "unknown" and pair[0] <= pair[1]}
    assert open_ == {
        ("c", "c"), ("c", "d"), ("d", "d"), ("g", "g"),
        ("a", "e"), ("e", "e"), ("e", "f"),
        ("a", "f"), ("c", "f"), ("d", "f"), ("f", "f"),
    }  # fmt: skip
    assert "c writes to no declared table under another name." in work.assumptions
    ((source,),) = work.stand_ins.values()
    assert (work.named_tables(["o"]), work.named_tables(["o", source.table])) == (["o"], [None])


def test_one_literal_leaves_the_others_their_answers():
    """The dates of dbt have an offset, which no value of the model has."""
    work = read(
        ["CREATE TABLE users (id BIGINT, made TIMESTAMP) USING delta"],
        old="DELETE FROM users WHERE made < '2016-01-01T03:38:55.000+0000'",
        add="INSERT INTO o VALUES (1, NULL)",
        clean="DELETE FROM o WHERE id = 1",
    )
    found = words(work)
    assert found["clean", "add"] == "always"
    assert found["clean", "old"] == found["add", "old"] == "never"
    assert found["old", "old"] == "unknown"


def test_an_error_in_a_job_leaves_the_others_their_answers():
    work = read(
        [],
        untyped="DELETE FROM o WHERE mine(:p)",
        broken="DELETE FRM o",
        clean="DELETE FROM o WHERE id = 1",
    )
    assert [one.job for one in work.unread] == ["untyped", "broken"]
    assert "write parameters" in work.unread[0].problem
    assert words(work)["clean", "clean"] == "when"


@pytest.mark.parametrize(
    "wrong",
    [
        'conf = { "spark.databricks.delta.write.txnAppId" = "loader" }',
        'conf = { "spark.sql.caseSensitive" = true }',
        'options = { txnVersion = "1" }',
        'options = { partitionOverwriteMode = "some" }',
    ],
)
def test_a_setting_that_is_not_modelled_leaves_the_others_their_answers(wrong):
    text = f"ddl = '{OTHER}'\n[jobs.load]\nsql = 'DELETE FROM o'\n{wrong}\n[jobs.clean]\n"
    work = read_workload(text + "sql = 'DELETE FROM o WHERE id = 1'", "w")
    assert [one.job for one in work.unread] == ["load"]
    assert "jobs.load." in work.unread[0].problem
    assert words(work)["clean", "clean"] == "when"
    with pytest.raises(IsolitmusError, match=r"jobs\.load\."):
        read_workload(text.partition("[jobs.clean]")[0], "w")


def test_files_of_one_name_are_two_jobs(tmp_path):
    (tmp_path / "tables.sql").write_text(
        f"{OTHER}; CREATE TABLE t (s STRING COLLATE x) USING delta"
    )
    (tmp_path / "a-b.sql").write_text("DELETE FROM o WHERE id = 1")
    (tmp_path / "a_b.sql").write_text("DELETE FROM o WHERE id = 2")
    (tmp_path / "a b.sql").write_text("INSERT INTO o SELECT 1, s FROM t")
    work = workload(str(tmp_path))
    assert {name: str(job.place) for name, job in work.jobs.items()} == {
        "a_b_3": "a-b.sql",
        "a_b": "a_b.sql",
    }
    (unread,) = work.unread
    assert (unread.name, unread.place) == ("a_b_2", "a b.sql:1:32")
    assert "t is declared, but not understood (tables.sql:1)" in unread.problem
