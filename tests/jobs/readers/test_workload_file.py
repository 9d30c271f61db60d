"""Workloads are read, whole, and what is wrong with one is refused in a sentence, with its
place.
"""

import re
from pathlib import Path

import pytest
from case_checks import check_cases, sample, sampled

from isolitmus.cli.main import VERBS
from isolitmus.jobs.predict.prediction import predict_pair, predict_workload
from isolitmus.jobs.questions.instances import Instances
from isolitmus.jobs.readers.sql_jobs import split_statements
from isolitmus.jobs.readers.workload_file import read_invariants, read_workload
from isolitmus.jobs.readers.workload_sources import workload, workloads
from isolitmus.jobs.render.prediction import prediction_lines
from isolitmus.jobs.sql.parameter_types import infer_types
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.specs import litmus, protocol
from isolitmus.specs.files.toml_reader import Node, Source
from isolitmus.specs.sql.syntax import Syntax

DDL = 'ddl = "CREATE TABLE t (id INT, day DATE) USING delta PARTITIONED BY (day)"'


def read(jobs, head=DDL):
    return read_workload(f"{head}\n{jobs}", "jobs", Path("jobs.toml"))


REFUSED = {
    "SQL that does not parse": (
        '[jobs.a]\nsql = "INSERT INTO t VALUES (1"',
        'jobs.toml:3:30: this does not parse: Expecting )\n    sql = "INSERT INTO t VALUES (1"\n                                 ^',
    ),
    "a table that is not there": (
        '[jobs.a]\nsql = "DELETE FROM orders"',
        "jobs.toml:3:20: unknown table 'orders'; known: t; add its CREATE TABLE to the DDL\n    sql = \"DELETE FROM orders\"\n                       ^",
    ),
    "a column that is not there": (
        '[jobs.a]\nsql = "DELETE FROM t WHERE dya = 3"',
        'jobs.toml:3:28: unknown column \'dya\'; did you mean \'day\'?\n    sql = "DELETE FROM t WHERE dya = 3"\n                               ^',
    ),
    "a parameter without a type": (
        '[jobs.a]\nsql = "DELETE FROM t WHERE id % :k = 0"',
        'jobs.toml:2: jobs.a: no single column determines the type of \':k\'; write parameters = { k = "DATE" }, or one of INT, BIGINT, STRING, DATE, BOOLEAN, DOUBLE, TIMESTAMP, DECIMAL(10,2)',
    ),
    "a parameter that meets a column that is not there": (
        '[jobs.a]\nsql = "DELETE FROM t WHERE dya = :day"',
        'jobs.toml:3:28: unknown column \'dya\'; did you mean \'day\'?\n    sql = "DELETE FROM t WHERE dya = :day"\n                               ^',
    ),
    "a parameter that meets columns of two types": (
        '[jobs.a]\nsql = "DELETE FROM t WHERE day = :x OR id = :x"',
        'jobs.toml:2: jobs.a: no single column determines the type of \':x\'; write parameters = { x = "DATE" }, or one of INT, BIGINT, STRING, DATE, BOOLEAN, DOUBLE, TIMESTAMP, DECIMAL(10,2)',
    ),
    "a type that is none": (
        '[jobs.a]\nsql = "DELETE FROM t WHERE day = :day"\nparameters = { day = "DAET" }',
        "jobs.toml:4: jobs.a.parameters.day: unknown type 'DAET'; did you mean 'DATE'?",
    ),
    "a parameter that nobody has": (
        '[jobs.a]\nsql = "DELETE FROM t"\nparameters = { day = "DATE" }',
        "jobs.toml:4: jobs.a.parameters: no statement of the job uses ':day'; remove it",
    ),
    "a truth value": (
        '[jobs.a]\nsql = "DELETE FROM t"\nparameters = { all = "BOOLEAN" }',
        "jobs.toml:4: jobs.a.parameters.all: BOOLEAN parameters are unsupported; write one job for TRUE and one for FALSE",
    ),
    "a job after itself": (
        '[jobs.a]\nsql = "DELETE FROM t"\nafter = "a"',
        "jobs.toml:4: jobs.a.after: a job does not run after itself; write alone = true, so that no two of its runs overlap",
    ),
    "orders that contradict each other": (
        '[jobs.a]\nsql = "DELETE FROM t"\nafter = "b"\n[jobs.b]\nsql = "TRUNCATE TABLE t"\nafter = "a"',
        "jobs.toml:4: jobs.a.after: a and b run after each other in a cycle; remove one 'after'",
    ),
    "a job that is after nobody": (
        '[jobs.a]\nsql = "DELETE FROM t"\nafter = "c"',
        "jobs.toml:4: jobs.a.after: unknown job 'c'; known: a",
    ),
    "a condition on what is no parameter": (
        '[jobs.a]\nsql = "DELETE FROM t WHERE day = :day"\nparameters = { day = "DATE" }\nwhere = "day < today"',
        'jobs.toml:5:16: unknown column \'today\'; did you mean \'day\'?\n    where = "day < today"\n                   ^',
    ),
    "a statement that clones a table": (
        '[jobs.a]\nsql = "CREATE OR REPLACE TABLE t SHALLOW CLONE t"',
        'jobs.toml:3:8: a clone or a conversion in a job is outside the SQL that isolitmus models; try it in a litmus test\n    sql = "CREATE OR REPLACE TABLE t SHALLOW CLONE t"\n           ^',
    ),
    "a job without statements": ("[jobs.a]\nsql = []", "jobs.toml:2: jobs.a needs the key 'sql', a string or a list of strings"),
    "no job": ("title = 'x'\njobs = {}", 'jobs.toml:3: jobs is empty; write [jobs.NAME] with sql = "…"'),
    "nothing about jobs": ("title = 'x'", "jobs.toml: not a workload: it has no [jobs.NAME]"),
    "a name twice": (
        '[jobs.a]\nsql = ["DELETE FROM t", "TRUNCATE TABLE t"]\n[jobs.a_1]\nsql = "DELETE FROM t"',
        "jobs.toml:4: jobs.a_1: the statement a_1 of job a has the same name; rename the job",
    ),
    "a level that is none": ('level = "Strict"\n[jobs.a]\nsql = "DELETE FROM t"', "jobs.toml:2: unknown level 'Strict'; known: Serializable, WriteSerializable, SnapshotIsolation"),
    "a let without a column": (
        '[jobs.a]\nsql = "DELETE FROM t WHERE id = :n"\nlet = { n = "SELECT id, day FROM t" }',
        "jobs.toml:4: jobs.a.let.n is 'SELECT id, day FROM t'; write a query with one column",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_said_with_its_place(case):
    jobs, message = REFUSED[case]
    with pytest.raises(IsolitmusError) as refused:
        read(jobs)
    assert str(refused.value) == message


def test_what_is_not_understood_is_left_out():
    """The other statements are read, and its tables are known if it parses and they are
    declared.
    """
    other = "[jobs.b]\nsql = 'DELETE FROM t WHERE id = :id'\n"
    for sql, tables in {
        "ALTER TABLE t ALTER COLUMN id TYPE BIGINT": {"t"},
        "DELETE FROM orders": {"*.orders"},
        "DELETE FRO t": None,
        "DELETE FROM t WHERE dya = 3": {"t"},
        "INSERT INTO t SELECT id FROM t TABLESAMPLE (3 ROWS)": {"t"},
        "CALL mine()": None,
    }.items():
        found = read(f"{other}[jobs.a]\nsql = '{sql}'")
        assert ([*found.jobs], found.job_names) == (["b"], ("b", "a"))
        (one,) = found.unread
        assert (one.name, one.place.rpartition(":")[0]) == ("a", "jobs.toml:5")
        assert one.tables == tables


def test_a_job_keeps_the_statements_that_are_understood():
    """A parameter may be used only where the job is not understood."""
    found = read(
        "[jobs.a]\nsql = ['DELETE FROM t WHERE id = :id', 'CALL mine(:n)']\n"
        "parameters = { n = 'INT' }\n"
    )
    assert [one.name for one in found.statements] == ["a_1"]
    assert [(one.name, one.tables) for one in found.unread] == [("a_2", None)]


@pytest.mark.slow
def test_an_omitted_column_with_a_default_may_have_any_value():
    ddl = 'ddl = "CREATE TABLE t (id INT, day DATE DEFAULT current_date()) USING delta PARTITIONED BY (day)"'
    jobs = """[jobs.a]
    sql = "DELETE FROM t WHERE day = :day"
    [jobs.b]
    sql = "{}"
    """
    for sql in ("INSERT INTO t (id) VALUES (1)", "INSERT INTO t VALUES (1, DEFAULT)"):
        found = predict_workload(read(jobs.format(sql), ddl), protocol("delta-serializable"))
        said = {(m.loser, m.winner): m.word for m in found.meetings}
        assert said["a", "b"] != "never"  # without DEFAULT the day is NULL
    found = predict_workload(
        read(jobs.format("INSERT INTO t (id) VALUES (1)")), protocol("delta-serializable")
    )
    assert {(m.loser, m.winner): m.word for m in found.meetings}["a", "b"] == "never"


def test_a_field_of_a_struct_may_be_set():
    ddl = 'ddl = "CREATE TABLE t (id INT, s STRUCT<a: INT, b: INT>) USING delta"'
    found = read('[jobs.a]\nsql = "UPDATE t SET s.a = 1, s.b = id + 1 WHERE id = 2"', ddl)
    ((place, value),) = found.statements[0].statement.sets
    assert (place, value.type) == (1, found.tables["t"].columns[1].type)


def test_what_commits_nothing_is_passed_over():
    found = read(
        "[jobs.a]\nsql = ['ANALYZE TABLE t COMPUTE STATISTICS', 'DELETE FROM t']\n[jobs.b]\nsql = 'SHOW TABLES'"
    )
    assert ([*found.jobs], [one.name for one in found.statements]) == (["a"], ["a"])
    assert found.assumptions == (
        "a: 'ANALYZE TABLE t COMPUTE STATISTICS' has no effect on conflicts.",
        "b: 'SHOW TABLES' has no effect on conflicts.",
    )


PLACED = {
    "in several lines": (
        '[jobs.a]\nsql = """\n  DELETE FROM t\n  WHERE id =\n    AND day = 3\n"""',
        "jobs.toml:6:7: this does not parse: an operand is missing\n    AND day = 3\n      ^",
    ),
    "a column in several lines": (
        '[jobs.a]\nsql = """\nDELETE FROM t\n  WHERE dya = :day"""',
        (
            "jobs.toml:5:9: unknown column 'dya'; did you mean 'day'?\n    WHERE dya = :day\"\"\"\n"
            "          ^"
        ),
    ),
    "the second statement of a list": (
        "[jobs.a]\nsql = [\n  'DELETE FROM t',\n  'DELETE FROM t WHERE dya = 3',\n]",
        (
            "jobs.toml:5:24: unknown column 'dya'; did you mean 'day'?\n    'DELETE FROM t WHERE"
            " dya = 3',\n                         ^"
        ),
    ),
    "a query of the client": (
        '[jobs.a]\nsql = "DELETE FROM t WHERE id = :n"\n[jobs.a.let]\nn = "SELECT count(*) FROM s"',
        (
            "jobs.toml:5:27: unknown table 's'; known: t; add its CREATE TABLE to the DDL"
            '\n    n = "SELECT count(*) FROM s"\n                     '
            "         ^"
        ),
    ),
    "with an escape, which is not there as it is read": (
        '[jobs.a]\nsql = "DELETE FROM t\\nWHERE dya = 3"',
        (
            "jobs.toml:3, job a:2:7: unknown column 'dya'; did you mean 'day'?\n    WHERE dya = 3\n"
            "          ^"
        ),
    ),
    "a text that stands in an earlier job, too": (
        (
            '[jobs.a]\nsql = "TRUNCATE TABLE t"\n[jobs.b]\nsql = "DELETE FROM s"\n[jobs.c]\nsql ='
            ' "DELETE FROM s"'
        ),
        (
            "jobs.toml:5:20: unknown table 's'; known: t; add its CREATE TABLE to the DDL"
            '\n    sql = "DELETE FROM s"\n                       ^'
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", PLACED)
def test_an_error_in_sql_points_into_the_file(case):
    """Also if other statements are read: then the place is that of what is not understood."""
    jobs, message = PLACED[case]
    try:
        one, *_ = read(jobs).unread
    except IsolitmusError as refused:
        assert str(refused) == message
    else:
        assert f"{one.place}: {one.problem}" == message.partition("\n")[0]


def test_an_error_in_ddl_points_into_the_file():
    ddl = 'ddl = """\nCREATE TABLE t (\n  id INT,\n  day\n) USING delta"""'
    with pytest.raises(IsolitmusError) as refused:
        read('[jobs.a]\nsql = "DELETE FROM t"', ddl)
    assert (
        str(refused.value)
        == "jobs.toml:4:3: 'day' is not a column; write NAME TYPE\n    day\n    ^"
    )


OTHER_DDL = {
    "no CREATE TABLE": ("DELETE FROM t", "a table's DDL is CREATE TABLE"),
    "another format": ("CREATE TABLE t (id INT) USING parquet", "ddl creates no Delta table, only parquet"),
    "a type that is not there": ("CREATE TABLE t (id INT, m INTERVAL DAY) USING delta", "no type"),
    "a partition that is none": ("CREATE TABLE t (id INT, d INT) USING delta PARTITIONED BY (x)", "names no column: 'x'"),
    "what does not parse": ("CREATE TABLE t (id INT", "this does not parse"),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHER_DDL)
def test_ddl_that_is_none(case):
    ddl, message = OTHER_DDL[case]
    with pytest.raises(IsolitmusError, match=r"jobs\.toml:1") as refused:
        read('[jobs.a]\nsql = "DELETE FROM t"', f'ddl = "{ddl}"')
    assert message in str(refused.value)


SOURCES = """ddl = [
  "CREATE TABLE t (id INT, day DATE) USING delta PARTITIONED BY (day)",
  "CREATE TABLE raw (id INT, day DATE) USING parquet PARTITIONED BY (day) TBLPROPERTIES ('parquet.compression' = 'ZSTD')",
  "CREATE TABLE codes (id INT) USING csv OPTIONS (header = 'true') LOCATION 's3://b/codes'",
]"""
INGEST = (
    '[jobs.a]\nsql = "INSERT INTO t SELECT r.id, r.day FROM raw r JOIN codes ON r.id = codes.id"'
)


def test_what_is_only_read_may_be_of_any_format():
    found = read(INGEST, SOURCES)
    assert found.formats == {"raw": "parquet", "codes": "csv"}
    assert found.tables["raw"].properties == {}
    said = "No program writes to codes while jobs run: it has the format csv, without a commit protocol."
    assert found.assumptions[1] == said
    prediction = predict_workload(found, protocol("delta-serializable"))
    assert [meeting.word for meeting in prediction.meetings] == ["never"]
    assert list(prediction_lines(prediction))[-1] == f"- {said}"


@pytest.mark.parametrize(
    "sql", ["INSERT INTO raw VALUES (1, NULL)", "DELETE FROM raw", "OPTIMIZE raw"]
)
def test_who_writes_to_another_format_is_not_understood(sql):
    found = read(f'{INGEST}\n[jobs.b]\nsql = "{sql}"', SOURCES)
    (unread,) = found.unread
    assert unread.place == "jobs.toml:9"
    said = f"'{sql.split()[0]}' writes to raw, which has the format parquet and no commit protocol"
    assert said in unread.problem
    assert "a" in found.jobs


def test_ddl_as_its_owner_has_it():
    found = read(
        '[jobs.a]\nsql = "DELETE FROM orders"',
        'ddl = """CREATE TABLE IF NOT EXISTS shop.orders (id BIGINT NOT NULL COMMENT \'key\', day'
        " DATE DEFAULT NULL, n BIGINT GENERATED ALWAYS AS IDENTITY) USING delta PARTITIONED BY"
        " (day) COMMENT 'all' LOCATION 's3://b/o' TBLPROPERTIES ('delta.isolationLevel' ="
        " 'WriteSerializable', 'delta.appendOnly' = 'false')\"\"\"",
    )
    (schema,) = found.tables.values()
    assert found.level == "WriteSerializable"
    assert (schema.name, schema.partitioned_by) == ("orders", ("day",))
    assert schema.ddl().startswith("id BIGINT, day DATE, n BIGINT GENERATED ALWAYS AS IDENTITY")


MEETING = {
    "INSERT INTO t VALUES (:id, :day), (3, :day)": {"id": "INT", "day": "DATE"},
    "INSERT INTO t (day, id) SELECT :day, id + :k FROM t WHERE id IN (1, :key)": {
        "day": "DATE",
        "key": "INT",
        "k": "INT",
    },
    "DELETE FROM t WHERE day < date_sub(:day, :days) OR last_day(:until) < day": {
        "day": "DATE",
        "days": "INT",
        "until": "DATE",
    },
    "UPDATE t SET id = CASE WHEN id = 1 THEN id - :n ELSE -:m END WHERE day + :d > '2026-01-01'": {
        "n": "INT",
        "d": "INT",
    },
    "DELETE FROM t WHERE id = :k + 1 AND day BETWEEN :day - INTERVAL 2 MONTHS AND :day": {
        "k": "INT",
        "day": "DATE",
    },
    "UPDATE t SET id = id * :rate WHERE add_months(day, :n) > to_date(:text, 'yyyyMMdd')": {
        "n": "INT",
        "text": "STRING",
    },
    "DELETE FROM t WHERE id = :k AND day = date_sub(:k, 1)": {"k": "INT"},
    "INSERT INTO t SELECT *, :day FROM s": {},
    "INSERT INTO t BY NAME SELECT :day AS day, 1 AS id": {"day": "DATE"},
    "UPDATE t SET day = :day WHERE id BETWEEN :low AND :high": {
        "day": "DATE",
        "low": "INT",
        "high": "INT",
    },
    "MERGE INTO t USING s ON t.id = s.id AND t.day = :day WHEN NOT MATCHED THEN INSERT (id, day) VALUES (:key, day)": {
        "day": "DATE",
        "key": "INT",
    },
    "DELETE FROM t WHERE EXISTS (SELECT 1 FROM s AS x WHERE x.key > :key)": {"key": "BIGINT"},
    "MERGE INTO t USING (SELECT :k AS id, :day AS d, :n AS n) x ON t.id = x.id WHEN MATCHED THEN UPDATE SET t.day = coalesce(x.d, t.day)": {
        "k": "INT",
        "day": "DATE",
    },
    "MERGE INTO t USING (SELECT * FROM VALUES (:k, :day), (:l, :day) AS v(id, day)) x ON t.id = x.id WHEN NOT MATCHED THEN INSERT *": {
        "k": "INT",
        "l": "INT",
        "day": "DATE",
    },
    "INSERT INTO t SELECT x.id, day FROM VALUES (:k, :day) AS x(id, day)": {
        "k": "INT",
        "day": "DATE",
    },
}


@pytest.mark.parametrize("sql", MEETING)
def test_a_parameter_has_the_type_of_the_column_that_it_meets(sql):
    tables = {
        "t": Schema("t", (Column("id", "INT"), Column("day", "DATE"))),
        "s": Schema("s", (Column("id", "INT"), Column("key", "BIGINT"))),
    }
    assert infer_types([Syntax(sql)], tables) == MEETING[sql]


def test_what_is_declared_and_what_is_inferred_is_the_same_job():
    sql = (
        '[jobs.a]\nsql = "INSERT INTO t SELECT id + 1, :day FROM t WHERE id = :id"\nlet = { id ='
        ' "SELECT max(id) FROM t WHERE day < :day" }'
    )
    (inferred_,) = read(sql).statements
    (declared,) = read(f'{sql}\nparameters = {{ day = "DATE" }}').statements
    assert (inferred_, inferred_.types) == (declared, {"day": "DATE", "id": "INT"})


@pytest.mark.parametrize(
    "verb",
    [
        "OPTIMIZE {} WHERE day = '2026-01-01' ZORDER BY (id)",
        "VACUUM {}",
        "REORG TABLE {} APPLY (PURGE)",
    ],
)
@pytest.mark.parametrize("table", ["shop.t", "main.`shop` . t", "`t`"])
def test_a_qualified_table_is_carried_out_by_its_last_name(verb, table):
    (one,) = read(f'[jobs.a]\nsql = "{verb.format(table)}"').statements
    assert one.statement.sql in (verb.format("t"), verb.format("`t`"))


def test_a_domain_that_is_empty():
    jobs = read(
        '[jobs.a]\nsql = "DELETE FROM t WHERE id = :k"\nparameters = { k = "INT" }\nwhere = "k < 3'
        ' AND k > 5"'
    )
    with pytest.raises(IsolitmusError) as refused:
        Instances(jobs).check_domains()
    assert (
        str(refused.value)
        == "jobs.toml:2: jobs.a.where: no parameter values satisfy 'k < 3 AND k > 5', so the job"
        " never runs; remove the job or correct the condition"
    )


def test_who_never_overlaps():
    jobs = "".join(f'[jobs.{name}]\nsql = "DELETE FROM t"\n{more}\n' for name, more in {
        "a": "alone = true", "b": "", "c": 'after = "b"', "d": 'after = ["c"]',
    }.items())  # fmt: skip
    found = read(jobs)
    assert not found.overlap("a", "a")
    assert found.overlap("a", "b")
    assert found.overlap("a", "d")
    assert not any(found.overlap(x, y) for x in "bcd" for y in "bcd")


SQL = {
    "ingest.sql": "-- :day DATE\n-- where day >= '2026-01-01'\nINSERT INTO t VALUES (1, :day);",
    "clean-up.sql": (
        "-- two statements\n-- :day DATE\nDELETE FROM t WHERE day < :day;\nOPTIMIZE t;\n"
    ),
}


@pytest.fixture
def files(tmp_path):
    for name, text in SQL.items():
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "t.ddl").write_text(
        "CREATE TABLE t (id INT, day DATE) USING delta PARTITIONED BY (day);", "utf-8"
    )
    return tmp_path


def test_files_of_sql(files):
    found = workload(*(str(files / name) for name in SQL), ddl=files / "t.ddl")
    assert list(found.jobs) == ["ingest", "clean_up"]
    assert [one.name for one in found.statements] == ["ingest", "clean_up_1", "clean_up_2"]
    assert str(found.jobs["ingest"].where) == "day >= DATE '2026-01-01'"


def test_files_of_sql_that_are_wrong(files):
    with pytest.raises(IsolitmusError, match="add --ddl FILE"):
        workload(str(files / "ingest.sql"))
    (files / "typo.sql").write_text("-- :day DATE\nDELETE FROM t WHERE dya = :day", "utf-8")
    with pytest.raises(IsolitmusError, match=r"typo.sql:2:21: unknown column 'dya'"):
        workload(str(files / "typo.sql"), ddl=files / "t.ddl")
    (files / "domain.sql").write_text("-- where dya > 3\nDELETE FROM t WHERE day = :day", "utf-8")
    with pytest.raises(IsolitmusError, match=r"domain.sql:1:10: unknown column 'dya'"):
        workload(str(files / "domain.sql"), ddl=files / "t.ddl")
    (files / "empty.sql").write_text("-- nothing\n;", "utf-8")
    with pytest.raises(IsolitmusError, match=r"empty\.sql contains no statement"):
        workload(str(files / "empty.sql"), ddl=files / "t.ddl")
    with pytest.raises(IsolitmusError, match="no file"):
        workload(str(files / "gone.sql"), ddl=files / "t.ddl")


def test_statements_end_with_semicolons():
    assert list(split_statements("A; B ';' -- ;\n; /* ; */")) == ["A", "B ';' -- ;"]


@pytest.mark.parametrize("name", workloads())
def test_what_ships_reads(name):
    found = workload(name)
    assert found.title
    assert len(found.jobs) > 2
    Instances(found).check_domains()


def test_what_is_no_workload_is_said():
    with pytest.raises(IsolitmusError, match=r"unknown workload 'shpo'; did you mean 'shop'\?"):
        workload("shpo")
    assert "predict" in VERBS


def test_in_a_file_of_sql_a_comment_may_say_the_type(tmp_path):
    ddl, job = tmp_path / "ddl.sql", tmp_path / "clean.sql"
    ddl.write_text("CREATE TABLE t (id INT, day DATE) USING delta")
    job.write_text("DELETE FROM t WHERE id % :k = 0")
    with pytest.raises(
        IsolitmusError,
        match=(
            r"no single column determines the type of ':k'; write a line -- :k DATE, or one of INT"
        ),
    ):
        workload(str(job), ddl=ddl)


def test_a_file_that_is_called_by_a_number_is_a_job(files):
    for name in ("01-clean up.sql", "daily.report.sql"):
        (files / name).write_text("DELETE FROM t WHERE day = :day", "utf-8")
    found = workload(
        str(files / "01-clean up.sql"), str(files / "daily.report.sql"), ddl=files / "t.ddl"
    )
    assert list(found.jobs) == ["job_01_clean_up", "daily_report"]


def test_a_condition_that_is_not_deterministic_is_refused_at_its_place():
    with pytest.raises(
        IsolitmusError, match=r":\d+:\d+: .rand.* is rejected here, since it is not"
    ):
        read('[jobs.a]\nsql = "DELETE FROM t WHERE rand() < 0.1"')


def test_a_subquery_that_delta_refuses_is_no_column_that_is_not_there():
    with pytest.raises(IsolitmusError, match=r"DELTA_UNSUPPORTED_SUBQUERY.*source of a MERGE"):
        read('[jobs.a]\nsql = "DELETE FROM t WHERE id IN (SELECT x.id FROM t AS x)"')


def test_how_files_are_laid_out_is_left_out_and_said_where_commits_hang_on_it():
    ddl = """CREATE TABLE t (id INT) USING delta TBLPROPERTIES ('delta.minReaderVersion' = '1',
    'delta.autoOptimize.optimizeWrite' = 'true', 'delta.autoOptimize.autoCompact' = '{}', 'delta.appendOnly' = 'true')"""
    jobs = '[jobs]\na = "INSERT INTO t VALUES (1)"'
    found = read_workload(f'ddl = """{ddl.format("true")}"""\n{jobs}', "jobs")
    assert dict(found.tables["t"].properties) == {"delta.appendOnly": "true"}
    automatic, silent = found.assumptions
    assert automatic.startswith("t has delta.autoOptimize.autoCompact = true: commits of auto")
    assert (
        silent == "Conflicts do not depend on delta.minReaderVersion = 1 and"
        " delta.autoOptimize.optimizeWrite = true of t: every layout of its files is considered."
    )
    without = read_workload(f'ddl = """{ddl.format("false")}"""\n{jobs}', "jobs")
    assert without.assumptions == (silent,)
    document = predict_workload(without, protocol("delta-serializable")).to_json()
    assert document["assumptions"] == [silent]


OPAQUE = """ddl = [
  "CREATE TABLE t (id BIGINT, p STRUCT<a: INT, b: ARRAY<STRING>>, m MAP<STRING, INT>, raw BINARY, n SMALLINT, f FLOAT, day DATE) USING delta PARTITIONED BY (day)",
  "CREATE TABLE s (id BIGINT, p STRUCT<a: INT, b: ARRAY<STRING>>, m MAP<STRING, INT>, raw BINARY, n SMALLINT, f FLOAT, day DATE) USING delta",
]"""
TOUCHING = {
    "a field": "DELETE FROM t WHERE t.p.a > 3 AND day = :day",
    "a field without the table": "DELETE FROM t WHERE p.a = 1",
    "an element": "DELETE FROM t WHERE m['x'] = 1",
    "a comparison": "DELETE FROM t WHERE n = 3",
    "a small number beside a small number": "DELETE FROM t WHERE n < n + 1",
    "NULL": "DELETE FROM t WHERE p IS NULL",
    "a value that is made": "UPDATE t SET p = named_struct('a', 1, 'b', array()) WHERE id = 1",
    "a number that is rounded": "UPDATE t SET f = 0.1",
    "a number in a list": "DELETE FROM t WHERE n IN (1, 2)",
    "a sum": "INSERT INTO t (id, f) SELECT 1, sum(f) FROM t",
}


@pytest.mark.slow
@pytest.mark.parametrize("case", TOUCHING)
def test_what_hangs_on_a_type_that_is_not_modelled_is_possible(case):
    found = read(f'[jobs.a]\nsql = "{TOUCHING[case]}"\n[jobs.b]\nsql = "DELETE FROM t"', OPAQUE)
    by = {
        (m.loser, m.winner): m
        for m in predict_workload(found, protocol("delta-serializable")).meetings
    }
    assert by["b", "a"].word == "unknown"
    assert "is not modelled" in by["b", "a"].why


@pytest.mark.slow
def test_what_only_passes_such_values_through_is_precise(tmp_path):
    jobs = """[jobs.copy]
sql = "INSERT INTO t SELECT * FROM s WHERE day = :day"
[jobs.upsert]
sql = "MERGE INTO t USING s ON t.id = s.id AND t.day = :day WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
[jobs.clean]
sql = "DELETE FROM t WHERE day = :day"
[jobs.put]
sql = "INSERT INTO t (id, n, day) VALUES (1, :n, :day)"
"""
    found = read(jobs, OPAQUE)
    assert found.jobs["put"].parameters == {"n": "SMALLINT", "day": "DATE"}
    predicted = predict_workload(found, protocol("delta-serializable"))
    assert {m.word for m in predicted.meetings} == {"never", "when"}
    clean = next(m for m in predicted.meetings if (m.loser, m.winner) == ("clean", "copy"))
    assert (clean.condition, clean.certain) == (("both have the same :day",), True)
    example = predicted.examples[0]
    assert "p STRUCT<a: INT, b: ARRAY<STRING>>, m MAP<STRING, INT>" in str(example)
    (tmp_path / "e.toml").write_text(str(example), "utf-8")
    assert litmus(str(tmp_path / "e.toml")).tables == example.tables


QUERIES = {
    "QUALIFY": "SELECT * FROM s QUALIFY row_number() OVER (PARTITION BY id ORDER BY n) = 1",
    "a window": (
        "SELECT id, p, m, raw, n, f, day FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER"
        " BY n) AS rn FROM s) WHERE rn = 1"
    ),
    "DISTINCT": "SELECT DISTINCT * FROM s",
    "LIMIT": "SELECT * FROM s ORDER BY id LIMIT 3",
    "UNION": "SELECT * FROM s UNION SELECT * FROM s WHERE id > 1",
    "HAVING": (
        "SELECT id, NULL AS p, NULL AS m, NULL AS raw, n, NULL AS f, day FROM s GROUP BY id, n, day"
        " HAVING count(*) > 1"
    ),
    "groups that are no columns": (
        "SELECT max(id) AS id, NULL AS p, NULL AS m, NULL AS raw, NULL AS n, NULL AS f,"
        " to_date('2026-01-0' || id % 3) AS day FROM s GROUP BY id % 3"
    ),
    "groups by place": (
        "SELECT id, NULL AS p, NULL AS m, NULL AS raw, NULL AS n, sum(f) AS f, day FROM s GROUP BY"
        " 1, 7"
    ),
}


MEETINGS = [
    ("put", "clean", True),
    ("put", "ingest", True),
    ("clean", "put", False),
    ("clean", "upsert", False),
    ("upsert", "clean", False),
    ("copy", "ingest", False),
    ("copy", "clean", False),
    ("with", "put", False),
]
"""Loser and winner, and whether the one never stops the other."""


@pytest.mark.slow
@sampled
def test_queries_that_nobody_computes_leave_their_file_readable(seed, whole):
    """Every file is read; how its jobs meet is asked of a sample."""
    merge = "ON t.id = x.id WHEN MATCHED THEN UPDATE SET day = x.day WHEN NOT MATCHED THEN INSERT *"
    casts = {}
    for case, query in QUERIES.items():
        jobs = {
            "put": f"INSERT INTO t {query}",
            "upsert": f"MERGE INTO t USING ({query}) AS x {merge}",
            "with": f"WITH x AS ({query}) MERGE INTO t USING x {merge}",
            "copy": f"INSERT INTO t {query.replace('FROM s', 'FROM t')}",
            "clean": "DELETE FROM t WHERE day = '2026-01-01'",
            "ingest": "INSERT INTO t (id, day) VALUES (1, :day)",
        }
        text = "\n".join(f'[jobs.{name}]\nsql = """{sql}"""' for name, sql in jobs.items())
        casts[case] = Instances(read(text, OPAQUE))

    def check(case, loser, winner, never):
        of = {one.name: one for one in casts[case].workload.statements}
        found = predict_pair(casts[case], of[loser], of[winner], protocol("delta-serializable"))
        assert (found.word == "never") is never

    meetings = [(case, *meeting) for case in QUERIES for meeting in MEETINGS]
    check_cases(check, sample(meetings, seed, whole))


@pytest.mark.slow
def test_windows_are_not_looked_through():
    """Of `day`, which the window does not part by, Spark does not filter the scan."""
    jobs = """[jobs.dedup]
sql = "INSERT INTO t (id, day) SELECT id, day FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY n) AS rn FROM t) WHERE rn = 1 AND day = '2026-01-01'"
[jobs.ingest]
sql = "INSERT INTO t (id, day) VALUES (1, '2026-01-02')"
"""
    found = predict_workload(read(jobs, OPAQUE), protocol("delta-serializable"))
    assert {m.word for m in found.meetings if m.loser == "dedup"} == {"unknown"}


COMPANY = """-- nightly
SET spark.sql.shuffle.partitions = 200;
USE CATALOG main;
CREATE OR REPLACE TEMPORARY VIEW fresh AS
SELECT id, day FROM main.raw.s WHERE day = '{{ ds }}';
CREATE TEMP VIEW few AS SELECT * FROM fresh WHERE id < ${most};
MERGE INTO `main`.`shop`.`t` AS x USING few ON x.id = few.id WHEN MATCHED THEN UPDATE SET x.day = few.day;
WITH more AS (SELECT id FROM fresh) INSERT INTO main.shop.t (id) SELECT id FROM more;
"""


@pytest.mark.slow
def test_a_file_as_a_company_has_it(tmp_path):
    (tmp_path / "t.sql").write_text("; ".join(re.findall('"(CREATE.*)"', OPAQUE)), "utf-8")
    (tmp_path / "night.sql").write_text(COMPANY, "utf-8")
    found = workload(str(tmp_path / "night.sql"), ddl=tmp_path / "t.sql")
    assert [type(one.statement).__name__ for one in found.statements] == ["Merge", "Insert"]
    assert found.jobs["night"].parameters == {"ds": "DATE", "most": "BIGINT"}
    lacks = "What a name of a table lacks is the same as in its declaration: "
    assert found.assumptions[-2].startswith(lacks)
    effect = "night.sql: 'SET spark.sql.shuffle.partitions = 200' has no effect on conflicts."
    assert found.assumptions[-1] == effect
    predicted = predict_workload(found, protocol("delta-serializable"))
    assert {m.word for m in predicted.meetings} == {"never", "always"}


def _parts(folder, first, second):
    (folder / "t.sql").write_text(
        "CREATE TABLE t (id INT, part STRING) USING delta PARTITIONED BY (part)", "utf-8"
    )
    (folder / "a.sql").write_text(first, "utf-8")
    (folder / "b.sql").write_text(second, "utf-8")
    work = workload(str(folder / "a.sql"), str(folder / "b.sql"), ddl=folder / "t.sql")
    return work, predict_pair(Instances(work), *work.statements, protocol("delta-serializable"))


@pytest.mark.parametrize("text", ["p={{ ds }}", "p=${ds}", "${a}-{{ b }}", "it''s {{ ds }}"])
def test_a_string_with_a_template_in_it_is_a_parameter(text, tmp_path):
    """Its value was the text of the template, so no value of it was that of another job."""
    work, found = _parts(
        tmp_path, f"DELETE FROM t WHERE part = '{text}'", "INSERT INTO t VALUES (1, 'p=2026-01-01')"
    )
    assert set(work.jobs["a"].parameters.values()) == {"STRING"}
    assert found.word == "when"
    assert list(found.examples) == ["ConcurrentAppendException"]


def test_different_templates_have_different_parameters(tmp_path):
    sql = "DELETE FROM t WHERE part = '{{ params.p }}' OR part = '{{ params_p }}' OR id = ${id}"
    work, _ = _parts(tmp_path, sql, "INSERT INTO t VALUES (1, 'a')")
    assert work.jobs["a"].parameters == {
        "params_p": "STRING",
        "params_p_2": "STRING",
        "id": "INT",
    }


FILES = {
    "two on a line": ("DELETE FROM t WHERE id = {{ f(x) }} AND day = {{ ds }}", "a.sql:1:26: unsupported template '{{ f(x) }}'; write"),
    "a function in a string": ("DELETE FROM t WHERE day = '{{ f(ds) }} {{ ds }}'", "a.sql:1:28: unsupported template '{{ f(ds) }}'; write"),
    "a template": ("{{ config(x = 1) }}\nDELETE FROM t", "a.sql:1:1: unsupported template '{{ config(x = 1) }}'; write"),
    "a loop": ("DELETE FROM t;\n{% for x in y %}", "a.sql:2:1: unsupported template '{% for x in y %}'"),
    "a setting": ("SET spark.databricks.delta.x = 1;\nDELETE FROM t", "a.sql:1:1: unsupported: 'SET spark.databricks.delta.x = 1' may affect"),
    "no arguments": ("DELETE FROM t WHERE date_trunc() = 1", "this does not parse: the arguments of some function"),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_files_of_sql_that_are_refused(case, tmp_path):
    text, message = FILES[case]
    (tmp_path / "t.sql").write_text("; ".join(re.findall('"(CREATE.*)"', OPAQUE)), "utf-8")
    (tmp_path / "a.sql").write_text(text, "utf-8")
    with pytest.raises(IsolitmusError) as refused:
        workload(str(tmp_path / "a.sql"), ddl=tmp_path / "t.sql")
    assert message in str(refused.value)


STORED = {
    "a text in a DATE": ("id INT, day DATE", "(1, '2026-01-02')"),
    "a number in a STRING": ("id INT, day STRING", "(1, 2)"),
    "a date in a TIMESTAMP": ("id INT, day TIMESTAMP", "(1, DATE '2026-01-02')"),
    "a text in an INT": ("id INT, day INT", "(1, '2')"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", STORED)
def test_what_is_stored_is_a_value_of_its_column(case):
    """It was no value at all, so that nobody who put it in ever stopped anybody."""
    columns, row = STORED[case]
    ddl = f'ddl = "CREATE TABLE t ({columns}) USING delta PARTITIONED BY (day)"'
    put = f"INSERT INTO t (id, day) VALUES {row}"
    merge = (
        "MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id,"
        f" day) VALUES {row}"
    )
    jobs = f"""[jobs]
put = "{put}"
upsert = "{merge}"
move = "UPDATE t SET day = {row[4:-1]}"
clean = "DELETE FROM t WHERE day IS NOT NULL AND id > 0"
"""
    found = predict_workload(read(jobs, ddl), protocol("delta-serializable"))
    words = {(m.loser, m.winner): m.word for m in found.meetings}
    assert "never" not in {words["clean", winner] for winner in ("put", "upsert", "move")}


def test_what_rows_have_to_meet_is_passed_over_and_said():
    columns = (
        "id INT NOT NULL CHECK (id > 0), x INT DEFAULT 3 COMMENT 'x', CONSTRAINT few CHECK (x < 9),"
        " PRIMARY KEY (id)"
    )
    found = read(
        '[jobs]\na = "DELETE FROM t WHERE x = 1"',
        f'ddl = "CREATE TABLE t ({columns}) USING delta"',
    )
    assert found.tables["t"].ddl() == "id INT, x INT"
    assert found.assumptions == ("No statement violates id NOT NULL or CHECK (x < 9) or CHECK (id > 0) of t.",)  # fmt: skip


def test_a_length_is_a_constraint_of_a_string():
    found = read(
        '[jobs]\na = "DELETE FROM t WHERE code IS NULL"',
        'ddl = "CREATE TABLE t (id INT, code VARCHAR(5), pad CHAR(3)) USING delta"',
    )
    assert found.tables["t"].ddl() == "id INT, code STRING, pad CHAR(3)"
    assert found.assumptions == ("No statement violates code VARCHAR(5) of t.",)
    stated = Node({"one": "unique(code)"}, "invariants", Source("isolitmus.toml"))
    (one,) = read_invariants(stated, found.tables, found.statements, found.stand_ins, {})
    assert one.name == "one"
    stated = Node({"one": "unique(pad)"}, "invariants", Source("isolitmus.toml"))
    with pytest.raises(IsolitmusError, match="IS NULL of 'pad', a value of type CHAR"):
        read_invariants(stated, found.tables, found.statements, found.stand_ins, {})


@pytest.mark.slow
def test_a_table_may_be_called_like_a_column():
    sql = (
        "MERGE INTO t USING s AS n ON t.id = n.id AND t.day = :day WHEN MATCHED THEN UPDATE SET p"
        " = n.p"
    )
    found = predict_workload(read(f'[jobs]\na = "{sql}"', OPAQUE), protocol("delta-serializable"))
    assert [m.word for m in found.meetings] == ["when"]


DYNAMIC = """
ddl = ["CREATE TABLE t (id INT, day INT) USING delta PARTITIONED BY (day)", "CREATE TABLE s (id INT, day INT) USING delta"]
[jobs.fill]
{}
"""
MODE = "spark.sql.sources.partitionOverwriteMode"
OVERWRITE = "INSERT OVERWRITE t{} SELECT id, day FROM s"


@pytest.mark.parametrize("form", ["", " PARTITION (day)"])
@pytest.mark.parametrize(
    "job",
    [
        f'conf = {{ "{MODE}" = "dynamic" }}\nsql = "SQL"',
        'options = { partitionOverwriteMode = "dynamic" }\nsql = "SQL"',
        f'sql = ["SET {MODE} = dynamic", "SQL"]',
        f'conf = {{ "{MODE}" = "static" }}\nsql = ["SET {MODE}=DYNAMIC", "SQL"]',
    ],
)
def test_an_overwrite_is_dynamic_as_its_session_says(job, form):
    """In a key of the job, as an option of the writer, or by SET; with the partition column named
    or not.
    """
    work = read_workload(DYNAMIC.format(job.replace("SQL", OVERWRITE.format(form))), "w")
    (one,) = work.statements
    assert (one.name, one.statement.options.dynamic) == ("fill", True)
    assert one.conf[MODE].lower() == "dynamic"
    static = read_workload(DYNAMIC.format(f'sql = "{OVERWRITE.format(form)}"'), "w")
    assert not static.statements[0].statement.options.dynamic


@pytest.mark.parametrize(
    ("job", "problem"),
    [
        (f'sql = ["SET {MODE} = sometimes", "DELETE FROM t"]', "known: static, dynamic"),
        ('sql = ["SET spark.databricks.delta.maxCommitAttempts = 0", "DELETE FROM t"]', "is not modelled here; modelled are"),
        ('conf = { "spark.sql.shuffle.partitions" = "all" }\nsql = "DELETE FROM t"', "known: a whole number from 1"),
        ('options = { mergeSchema = "true" }\nsql = "DELETE FROM t"', "mergeSchema"),
        (f'sql = "SET {MODE} = dynamic"', "no job commits anything"),
        (
            f'conf = {{ "{MODE}" = "dynamic" }}\nsql = "INSERT INTO t REPLACE WHERE day = 1 SELECT 1, 1"',
            "a dynamic partition overwrite with PARTITION or REPLACE WHERE",
        ),
        ('sql = "INSERT OVERWRITE t PARTITION (id) SELECT id, day FROM s"', "not partitioned by 'id'"),
    ],
)  # fmt: skip
def test_confs_of_jobs_that_are_not_modelled_are_refused(job, problem):
    with pytest.raises(IsolitmusError, match=re.escape(problem)):
        read_workload(DYNAMIC.format(job), "w")


def test_what_another_job_writes_may_be_any_rows_and_is_read():
    """A window over a table that a job writes to: the stand-in's rows may be any, and any row of
    that table counts.
    """
    window = (
        "SELECT id, day FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY day) AS n FROM"
        " {}) WHERE n = 1"
    )
    merge = (
        f"MERGE INTO t USING ({window.format('s')}) AS c ON t.id = c.id WHEN MATCHED THEN UPDATE"
        " SET day = c.day"
    )
    jobs = f'sql = "{merge}"\n[jobs.land]\nsql = "INSERT INTO s VALUES (1, 1)"\n'
    whole = f'[jobs.all]\nsql = "INSERT OVERWRITE t {window.format("t")}"'
    work = read_workload(DYNAMIC.format(jobs + whole), "w")
    fill, land, every = work.statements
    assert (fill.reads, land.reads, every.reads) == (("s",), (), ("t",))
    assert len(work.left_out) == 2


def apart(pairs):
    return (
        f"apart = {pairs}\n"
        'ddl = "CREATE TABLE t (id INT) USING delta"\n'
        '[jobs.a]\nsql = "DELETE FROM t WHERE id = 1"\n[jobs.b]\nsql = """\nDELETE FROM t\n"""\n'
    )


def test_pairs_of_jobs_that_never_overlap_may_be_named():
    found = read_workload(apart('[["a", "b"], ["b", "b"]]'), "w")
    pairs = [(x, y) for x in "ab" for y in "ab" if not found.overlap(x, y)]
    assert pairs == [("a", "b"), ("b", "a"), ("b", "b")]
    assert [str(one.location) for one in found.statements] == ["w.toml:4:8", "w.toml:7:1"]


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ('[["a"]]', "w.toml:1: apart has ['a']; write pairs of jobs"),
        ('["a", "b"]', "w.toml:1: apart has 'a'; write pairs of jobs"),
        ('[["a", "bb"]]', "w.toml:1: apart: unknown job 'bb'; did you mean 'b'?"),
        ("1", "w.toml:1: apart is 1; expected a list"),
    ],
)
def test_other_values_of_apart_are_refused(pairs, said):
    with pytest.raises(IsolitmusError) as refused:
        read_workload(apart(pairs), "w")
    assert str(refused.value).startswith(said)


def test_a_folder_comes_before_a_shipped_workload_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "a.sql").write_text(
        "CREATE TABLE t (id INT) USING delta; DELETE FROM t WHERE id = 1"
    )
    assert list(workload("shop").jobs) == ["a"]


def test_a_parameter_of_a_view_alone_is_used():
    work = read_workload(
        """
        ddl = "CREATE TABLE t (id INT) USING delta"
        [jobs.a]
        sql = ["CREATE TEMP VIEW v AS SELECT * FROM t WHERE id = :p", "INSERT INTO t VALUES (1)"]
        parameters = { p = "INT" }
        """,
        "w",
    )
    assert [one.name for one in work.statements] == ["a"]
