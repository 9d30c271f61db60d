"""Records of functions as jobs: results of reads, paths, places, tables; beside other jobs."""

import json
from pathlib import Path

import pytest

from isolitmus.jobs.invariants.invariants import decide_invariants
from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.readers.declared_tables import read_declared_table
from isolitmus.jobs.readers.function_records import FunctionRecord
from isolitmus.jobs.readers.function_targets import FunctionTarget, program_words
from isolitmus.jobs.readers.sql_jobs import split_statements
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.jobs.robust.robustness import decide_all
from isolitmus.jobs.sql.invariant_text import read_invariant
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs import protocol
from isolitmus.specs.files.table_ddl import read_ddl

DDL = """
CREATE TABLE t (id BIGINT, n BIGINT, day DATE) USING delta PARTITIONED BY (day);
CREATE TABLE s (id BIGINT, day DATE) USING delta;
"""
FILE = "def load(spark):\n    n = count()\n    write(n)\n    more()\n"


@pytest.fixture
def made(tmp_path):
    ddl = tmp_path / "ddl.sql"
    ddl.write_text(DDL)

    def build(*steps, files=()):
        target = FunctionTarget(tmp_path / "job.py", "load", 1, FILE)
        record = FunctionRecord.of(target, steps)
        return record, workload(*files, ddl=ddl, run=lambda _: [record])

    return build


@pytest.fixture
def record(tmp_path):
    """record(step, …): a function's record."""
    target = FunctionTarget(tmp_path / "job.py", "load", 1, FILE)
    return lambda *steps: FunctionRecord.of(target, steps)


def statement(line, sql):
    return {"kind": "statement", "line": line, "sql": sql}


def read(line, sql, name="count_1", **more):
    found = {"kind": "read", "line": line, "sql": sql, "name": name, "call": "count()"}
    return {**found, "tables": ["s"], **more}


COUNT = read(2, "SELECT count(*) AS n FROM s WHERE day = DATE '2026-01-01'")
WRITE = statement(3, "INSERT INTO t VALUES (1, :count_1, DATE '2026-01-01')")


def test_a_result_that_a_statement_contains_is_a_let(made):
    record, work = made(COUNT, WRITE)
    (one,) = work.statements
    assert [*one.let] == ["count_1"]
    assert str(one.location) == "job.py:3:5"
    assert work.unread == ()
    assert [*record.lines()][1:] == [
        "  job.py:2  :count_1 = SELECT count(*) AS n FROM s WHERE day = DATE '2026-01-01'",
        "  job.py:3  INSERT INTO t VALUES (1, :count_1, DATE '2026-01-01')",
    ]
    assert work.left_out[-1] == (
        "Each run of a function executes the statements that it executed on empty tables, with the"
        " values that its Python computed then: load (job.py:1)."
    )


def test_a_read_that_decides_the_path_leaves_the_rest_unknown(made):
    record, work = made(COUNT, {"kind": "used", "line": 3, "name": "count_1"}, WRITE)
    (unread,) = work.unread
    assert str(unread) == (
        "load_line2 (job.py:2): the path from here on may depend on the result of count(), which"
        " load uses in line 3; its statements with other results are not known"
    )
    found = predict_workload(work, protocol("delta-serializable"))
    words = {(one.loser, one.winner): one.word for one in found.meetings}
    assert words["load", "load_line2"] == "unknown"
    assert words["load", "load"] == "never"
    assert record.to_json()["let"] == {"count_1": {"place": "job.py:2", "sql": COUNT["sql"]}}


@pytest.fixture
def paths(tmp_path):
    """paths(steps, …): the records and the workload of a function with several paths."""
    (tmp_path / "ddl.sql").write_text(DDL)
    target = FunctionTarget(tmp_path / "job.py", "load", 1, FILE)

    def build(*told, more=False, files=()):
        records = FunctionRecord.of_paths(target, told, more=more)
        return records, workload(*files, ddl=tmp_path / "ddl.sql", run=lambda _: records)

    return build


def decided(line, known, name="count_1"):
    return {"kind": "decided", "line": line, "name": name, "sql": f":{name} {known}"}


ADD = statement(3, "INSERT INTO t VALUES (1, 7, DATE '2026-01-01')")
OF_T = read(2, "SELECT count(*) AS n FROM t WHERE id = 1", tables=["t"])


def test_an_insert_after_a_comparison_has_its_condition(paths):
    records, work = paths([OF_T, decided(2, "<= 0"), ADD], [OF_T, decided(2, "> 0")])
    (one,) = work.statements
    assert (one.name, [*one.let]) == ("load", ["count_1"])
    assert one.sql.endswith("SELECT 1, 7, CAST('2026-01-01' AS DATE) WHERE :count_1 <= 0")
    assert (work.unread, work.uncertain) == ((), {})
    assert [*records[1].lines()] == [
        "load (job.py:1) with count() > 0 in line 2: 0 statements on this path",
        "  job.py:2  count() of SELECT count(*) AS n FROM t WHERE id = 1",
    ]
    assert [one.to_json()["path"] for one in records] == [
        "count() <= 0 in line 2",
        "count() > 0 in line 2",
    ]
    assert "the statements of one of the paths that it took" in work.left_out[-1]


def words(work, invariant="unique(id)"):
    asked = read_invariant(invariant, work.tables, ["t"])
    (found,) = decide_invariants(work, ["delta-serializable"], [asked])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("add", [ADD, statement(3, "INSERT INTO t VALUES (1, 7, current_date())")])
def test_a_row_that_is_looked_up_first_is_added_twice_by_an_overlap_only(paths, add):
    """Also one with the time at which it is made, which is any value."""
    _, work = paths([OF_T, decided(2, "<= 0"), add], [OF_T, decided(2, "> 0")])
    found = words(work)
    assert found.word == "broken"
    assert not any(one.alone for one in found.violations)
    assert found.keeps_alone


def test_whether_a_run_executes_several_statements_is_uncertain(paths, tmp_path):
    """Without the condition, one run would violate it alone; it never does."""
    remove = statement(4, "DELETE FROM t WHERE id = 3")
    _, work = paths([OF_T, decided(2, "<= 0"), ADD, remove], [OF_T, decided(2, "> 0"), remove])
    assert [*work.jobs] == ["load", "load_path2"]
    assert work.unread == ()
    assert [*work.uncertain] == ["load", "load_path2"]
    found = words(work)
    assert found.word == "unknown"
    assert found.why[0] == (
        "whether a run of load executes all of its statements depends on count() (job.py:2)"
    )
    (tmp_path / "add.sql").write_text(ADD["sql"])
    more = statement(4, "DELETE FROM t WHERE id = 1")
    told = [OF_T, decided(2, "<= 0")], [OF_T, decided(2, "> 0"), more]
    _, work = paths(*told, files=[str(tmp_path / "add.sql")])
    (found,) = decide_all(work, ["delta-write-serializable"], ["log-serializable"])
    assert found.word == "unknown"
    assert any("depends on count() (job.py:2)" in why for why in found.why)


def test_a_result_that_is_read_before_another_statement_is_uncertain(paths):
    """Its job would read it again after that statement."""
    remove = statement(4, "DELETE FROM t WHERE id = 1")
    for steps in (
        [OF_T, remove, decided(2, "<= 0"), ADD],
        [OF_T, remove, statement(3, "INSERT INTO t VALUES (1, :count_1, DATE '2026-01-01')")],
    ):
        _, work = paths(steps)
        assert [*work.uncertain] == ["load"]
    _, work = paths([remove, OF_T, decided(2, "<= 0"), ADD])
    assert work.uncertain == {}


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT OVERWRITE t VALUES (1, 7, DATE '2026-01-01')",
        "DELETE FROM t WHERE id = 3",
        "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE",
        "OPTIMIZE t",
    ],
)
def test_other_statements_have_no_condition(paths, sql):
    _, work = paths([OF_T, decided(2, "<= 0")], [OF_T, decided(2, "> 0"), statement(3, sql)])
    assert work.statements[-1].sql == sql
    assert [*work.jobs] == [*work.uncertain] == ["load"]


def test_a_path_on_which_the_function_raises(paths):
    raised = {"kind": "raised", "line": 3, "problem": "it raised IndexError: no row."}
    rows = read(2, "SELECT count(*) AS n FROM s", call="take()")
    records, work = paths([rows, decided(2, "<= 0"), ADD], [rows, decided(2, "> 0"), raised])
    (unread,) = work.unread
    assert str(unread) == (
        "load_line3 (job.py:3): with rows from take() in line 2, load raised IndexError: no row on"
        " empty tables; what it executes then is not known"
    )
    assert [*records[1].lines()][-1] == "  job.py:3  here it raised IndexError: no row."


def test_more_paths_than_are_taken(paths):
    _, work = paths([OF_T, decided(2, "<= 0"), ADD], [OF_T, decided(2, "> 0")], more=True)
    (unread,) = work.unread
    assert str(unread) == (
        "load_line1 (job.py:1): load has more than 2 paths; its statements on the others are not"
        " known"
    )


def test_a_read_that_no_statement_contains_is_a_statement(made):
    _, work = made(read(2, "SELECT id FROM s"), statement(3, "DELETE FROM t WHERE id = 3"))
    assert [one.sql for one in work.statements] == [
        "SELECT id FROM s",
        "DELETE FROM t WHERE id = 3",
    ]


def test_a_query_that_is_not_modelled_is_a_read_of_its_whole_table(made):
    _, work = made(read(2, "SELECT id AS n FROM other"), WRITE)
    assert [one.sql for one in work.statements] == ["SELECT * FROM s", WRITE["sql"]]
    assert work.statements[1].let == {}
    assert [one.name for one in work.unread] == ["load_line2"]


def test_the_type_of_an_argument_is_needed_where_no_column_tells_it(made):
    given = {"kind": "argument", "line": 3, "name": "x", "sql": "BIGINT"}
    _, work = made(given, statement(3, "DELETE FROM t WHERE :x > 3"))
    assert work.statements[0].types == {"x": "BIGINT"}


def test_what_has_no_sql_is_not_understood(made):
    gap = {"kind": "gap", "line": 4, "problem": "a streaming write is not understood"}
    left = {"kind": "left out", "line": 4, "problem": "write.parquet writes to '/x'"}
    record, work = made(gap, left, WRITE | {"sql": "DELETE FROM t"})
    assert [str(one) for one in work.unread] == [
        "load_line4 (job.py:4): a streaming write is not understood"
    ]
    assert "job.py:4: write.parquet writes to '/x'; it is left out." in (work.left_out)
    assert [*record.lines()][1] == (
        "  job.py:4  not executed or not understood: a streaming write is not understood"
    )


def test_a_statement_that_is_not_understood_has_its_line(made):
    _, work = made(statement(3, "DELETE FROM other"), statement(4, "DELETE FROM t"))
    (unread,) = work.unread
    assert unread.place == "job.py:3"
    assert "unknown table 'other'" in unread.problem


def test_functions_beside_sql_files(made, tmp_path):
    (tmp_path / "clean.sql").write_text("DELETE FROM t WHERE day = :day")
    _, work = made(statement(3, "DELETE FROM t"), files=[str(tmp_path / "clean.sql")])
    assert [*work.jobs] == ["clean", "load"]
    (tmp_path / "load.sql").write_text("DELETE FROM t")
    with pytest.raises(IsolitmusError, match="another job has the name load as well"):
        made(statement(3, "DELETE FROM t"), files=[str(tmp_path / "load.sql")])


def test_a_function_without_statements_has_no_job(made):
    record, work = made()
    assert work.jobs == {}
    assert [*record.lines()] == [
        "load (job.py:1) was executed on empty tables: 0 statements on this path"
    ]


def test_what_differs_from_a_run_of_the_program_is_an_assumption(made):
    note = {"kind": "note", "line": 2, "problem": "spark.sql(text, args=…) raises an error"}
    record, work = made(note, statement(3, "DELETE FROM t"))
    assert work.left_out[-2] == "job.py:2: spark.sql(text, args=…) raises an error."
    assert [*record.lines()][1] == "  job.py:2  note: spark.sql(text, args=…) raises an error"


def batch(line, sql, sink=""):
    return {**statement(line, sql), "stream": line, "sink": sink}


def test_a_batch_of_a_stream_never_meets_another_of_the_same_query(made):
    record, work = made(batch(3, "INSERT INTO t SELECT id, 1, day FROM s", "t"))
    assert [*work.jobs] == ["load"]
    assert not work.overlap("load", "load")
    assert work.left_out[-2] == (
        "job.py:3: no two runs of the streaming query load overlap: both would set the version of"
        " one application id, and Delta aborts the later commit with ConcurrentTransactionException."
    )
    assert [*record.lines()][1] == (
        "  job.py:3  each batch of a stream: INSERT INTO t SELECT id, 1, day FROM s"
    )


def test_two_calls_of_a_function_may_start_one_streaming_query(made, tmp_path):
    one, _ = made(batch(3, "INSERT INTO t SELECT id, 1, day FROM s", "t"))
    two = FunctionRecord(one.target._replace(title="early"), one.steps)
    work = workload(ddl=tmp_path / "ddl.sql", run=lambda _: [one, two])
    assert not work.overlap("load", "early")
    assert "the streaming query load or early overlap" in work.left_out[-2]


def test_the_batches_of_a_stream_run_beside_the_rest_of_a_function(made):
    _, work = made(
        statement(2, "DELETE FROM t"),
        batch(3, "INSERT INTO t SELECT id, 1, day FROM s", "t"),
        batch(4, "INSERT INTO t VALUES (1, 1, NULL)"),
        {**read(4, "SELECT id FROM s"), "stream": 4},
        {"kind": "gap", "line": 4, "problem": "what has no SQL", "stream": 4},
    )
    assert [*work.jobs] == ["load", "load_line3", "load_line4"]
    found = {job: [one.sql[:6] for one in of.statements] for job, of in work.jobs.items()}
    assert found == {
        "load": ["DELETE"],
        "load_line3": ["INSERT"],
        "load_line4": ["INSERT", "SELECT"],
    }
    alone = [job for job in work.jobs if not work.overlap(job, job)]
    assert alone == ["load_line3"]
    assert work.overlap("load", "load_line3")
    (unread,) = work.unread
    assert (unread.job, unread.place) == ("load_line4", "job.py:4")


BESIDE = """
ddl = "CREATE TABLE t (id BIGINT, n BIGINT, day DATE) USING delta PARTITIONED BY (day)"
apart = [["load", "clean"]]
[jobs]
clean = "DELETE FROM t WHERE day = :day"
"""


def test_functions_beside_a_workload_file(record, tmp_path):
    path = tmp_path / "w.toml"
    path.write_text(BESIDE)
    one = record(statement(3, "DELETE FROM t"), statement(4, "DELETE FROM nowhere"))
    created = []

    def run(ddl):
        created.append(ddl)
        return [one]

    work = workload(str(path), run=run)
    assert [*work.jobs] == ["clean", "load"]
    assert created == [
        "CREATE TABLE t (id BIGINT, n BIGINT, day DATE) USING delta PARTITIONED BY (day)"
    ]
    assert not work.overlap("load", "clean")
    assert str(work.statements[1].location) == "job.py:3:5"
    assert [(one.name, one.place) for one in work.unread] == [("load_2", "job.py:4")]
    path.write_text(BESIDE.replace("clean", "load"))
    with pytest.raises(IsolitmusError, match="another job has the name load as well"):
        workload(str(path), run=lambda _: [one])
    path.write_text(f"{BESIDE}late = {{ sqll = 'DELETE FROM t' }}")
    with pytest.raises(IsolitmusError, match=r"w.toml:6: .*sqll"):
        workload(str(path), run=lambda _: [one])


def test_a_workload_file_may_have_only_tables(record, tmp_path):
    path = tmp_path / "w.toml"
    path.write_text("table = { columns = 'id BIGINT' }\napart = [['load', 'load']]\n")
    work = workload(str(path), run=lambda _: [record(statement(3, "DELETE FROM t"))])
    assert [*work.jobs] == ["load"]
    assert not work.overlap("load", "load")
    path.write_text("title = 'no table'\n")
    with pytest.raises(IsolitmusError, match=r"w.toml: no table is declared"):
        workload(str(path), run=lambda _: [record()])


def test_functions_beside_a_folder_that_creates_tables(record, tmp_path):
    folder = tmp_path / "jobs"
    folder.mkdir()
    (folder / "a.sql").write_text("CREATE TABLE t (id BIGINT); DELETE FROM t -- all")
    created = []

    def run(ddl):
        created.append(ddl)
        return [record(statement(3, "DELETE FROM t"))]

    assert [*workload(str(folder), run=run).jobs] == ["a", "load"]
    assert [*workload(str(folder / "a.sql"), run=run).jobs] == ["a", "load"]
    assert created == ["CREATE TABLE t (id BIGINT)"] * 2
    (folder / "a.sql").write_text("DELETE FROM t")
    with pytest.raises(IsolitmusError, match=r"no file in .*jobs creates a table"):
        workload(str(folder), run=run)


def test_a_table_with_a_log_is_created_with_its_folder(record, tmp_path):
    made = read_declared_table(f"events={made_table(tmp_path / 'it')}")
    created = []

    def run(ddl):
        created.append(ddl)
        return [record(statement(3, "DELETE FROM events WHERE id = 3"))]

    work = workload(tables=[f"events={made.folder}"], run=run)
    assert [*work.jobs] == ["load"]
    (text,) = created
    assert text.startswith("CREATE TABLE events (id BIGINT) USING delta")
    assert text.endswith(f" LOCATION '{made.folder}'")
    assert [read_ddl(one, "").name for one in split_statements(text)] == ["events"]


def made_table(folder):
    (folder / "_delta_log").mkdir(parents=True)
    columns = [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]
    schema = json.dumps({"type": "struct", "fields": columns})
    actions = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {"id": "x", "schemaString": schema, "partitionColumns": [],
                      "configuration": {}, "format": {"provider": "parquet", "options": {}}}},
    ]  # fmt: skip
    log = "\n".join(map(json.dumps, actions)) + "\n"
    (folder / "_delta_log" / f"{0:020}.json").write_text(log)
    return folder


@pytest.mark.parametrize(
    ("file", "said"), [("dbt_project.yml", "a dbt"), ("databricks.yml", "a Databricks")]
)
def test_functions_beside_a_project(record, tmp_path, file, said):
    (tmp_path / file).write_text("resources: {}\n")
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "manifest.json").write_text("{}")
    with pytest.raises(IsolitmusError, match=rf"is {said}.*--run is for"):
        workload(str(tmp_path), run=lambda _: [record()])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--run", "job.py:load"], "no table is declared; --run creates the tables empty, from"),
        (["--run", "nowhere.py:load", "--ddl", "ddl.sql"], "cannot read nowhere.py"),
        (["--run", "job.py:load", "--ddl", "none.sql"], "cannot read none.sql"),
        (["shop", "--run", "job.py:load", "--ddl", "ddl.sql"], "--ddl is for SQL files only"),
        (["shp", "--run", "job.py:load"], "unknown workload 'shp'"),
        (["shop", "ddl.sql", "--run", "job.py:load"], "'shop' is not an SQL file, but the others"),
        ([], "no jobs are given; name a workload"),
    ],
)
def test_what_is_wrong_with_a_command(tmp_path, monkeypatch, call, words, said):
    monkeypatch.chdir(tmp_path)
    Path("ddl.sql").write_text(DDL)
    Path("job.py").write_text(FILE)
    for verb in ("predict", "robust"):
        status, out, error = call(verb, *words)
        assert (status, out) == (2, "")
        assert error.startswith(f"isolitmus: {said}")


@pytest.mark.slow
def test_without_spark_one_sentence(tmp_path, monkeypatch, call):
    (tmp_path / "ddl.sql").write_text(DDL)
    (tmp_path / "job.py").write_text(FILE)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    status, out, error = call(
        "predict", "--run", tmp_path / "job.py:load", "--ddl", tmp_path / "ddl.sql"
    )
    assert (status, out) == (4, "")
    assert error.startswith("isolitmus: --run executes load: ")
    assert "the network" in error.partition("\n")[0]
    assert error.count("\n") == 2
    assert "Java" in error or "pip install" in error


ABORTED = {"kind": "aborted", "line": 2, "problem": "ConcurrentAppendException"}
STOPPED = {"kind": "stopped", "line": 3, "problem": "it raised ConcurrentAppendException: x"}
UPDATE = statement(2, "UPDATE t SET n = 1 WHERE id = 1")
NULL = statement(3, "UPDATE t SET n = NULL WHERE id = 1")


def test_a_path_with_a_conflict_is_a_job_if_something_else_happens_on_it(tmp_path):
    target = FunctionTarget(tmp_path / "job.py", "load", 1, FILE)
    told = [
        [UPDATE],
        [ABORTED, UPDATE],
        [ABORTED, STOPPED],
        [ABORTED, NULL],
        [ABORTED, ABORTED, NULL],
    ]
    first, second = FunctionRecord.of_paths(target, told)
    assert [one.sql for one in second.statements] == [NULL["sql"]]
    assert [one.name for one in (first, second)] == ["load", "load_path2"]
    assert [*second.lines()] == [
        "load (job.py:1) with ConcurrentAppendException in line 2: 1 statement on this path",
        "  job.py:2  a statement aborts with ConcurrentAppendException",
        "  job.py:3  UPDATE t SET n = NULL WHERE id = 1",
    ]


def test_an_invariant_that_only_a_handler_breaks_is_unknown(tmp_path):
    (tmp_path / "ddl.sql").write_text(DDL)
    target = FunctionTarget(tmp_path / "job.py", "load", 1, FILE)
    words = {}
    for name, told in {"kept": [[UPDATE]], "unknown": [[UPDATE], [ABORTED, NULL]]}.items():
        records = FunctionRecord.of_paths(target, told)
        work = workload(ddl=tmp_path / "ddl.sql", run=lambda _, made=records: made)
        asked = [read_invariant("not null(n)", work.tables, ("t",), "here")]
        (answer,) = decide_invariants(work, ["delta-serializable"], asked)
        words[name] = answer.word
        limit = "On a path of a function, a statement aborts at most once, or each time"
        assert any(one.startswith(limit) for one in work.left_out) == (name == "unknown")
    assert words == {"kept": "kept", "unknown": "unknown"}


OPEN = (COUNT, {"kind": "used", "line": 3, "name": "count_1"})


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("def load(spark):\n    spark.sql('DELETE FROM s')\n", {"s"}),
        ("NAME = 't'\ndef load(spark):\n    spark.table('s')\n    spark.table(NAME)\n", {"s", "t"}),
        ("def load(spark, name):\n    spark.sql(f'DELETE FROM {name}')  # s\n", None),
        ("import own\ndef load(spark):\n    own.write('s')\n", None),
        ("import beside\ndef load(spark):\n    beside.write('s')\n", {"s", "t"}),
        ("def load(spark):\n    pass\n", None),
    ],
)
def test_what_is_not_known_of_a_function_concerns_the_tables_that_it_names(tmp_path, text, tables):
    (tmp_path / "beside.py").write_text("def write(x):\n    spark.sql('OPTIMIZE t')\n")
    (tmp_path / "ddl.sql").write_text(DDL)
    (tmp_path / "other.sql").write_text("UPDATE t SET n = 2 WHERE id = 2")
    target = FunctionTarget(tmp_path / "job.py", "load", 1, text)
    record = FunctionRecord.of(target, OPEN)
    work = workload(str(tmp_path / "other.sql"), ddl=tmp_path / "ddl.sql", run=lambda _: [record])
    (unread,) = work.unread
    assert unread.tables == tables
    asked = [read_invariant("not null(n)", work.tables, ("t",), "here")]
    (answer,) = decide_invariants(work, ["delta-serializable"], asked)
    assert answer.word == ("kept" if tables == {"s"} else "unknown")
    said = any(
        "changes no table that job.py and the modules beside" in one for one in work.left_out
    )
    assert said == (tables is not None)


@pytest.mark.parametrize(
    ("body", "computes"),
    [
        ("spark.sql('DELETE FROM ' + name)", True),
        ("spark.sql('DELETE FROM %s' % name)", True),
        ("spark.sql('DELETE FROM {}'.format(name))", True),
        ("spark.sql(f'DELETE FROM s_{name}')", True),
        ("spark.sql(f'DELETE FROM {name}.s')", True),
        ("spark.sql(row['text'])", True),
        ("spark.sql(**given)", True),
        ("write = spark.sql", True),
        ("frame.write.saveAsTable(name)", True),
        ("[spark.table(one.name) for one in spark.catalog.listTables()]", True),
        ("spark.sql(f'DELETE FROM s WHERE id = {n} AND x = {name!r}')", False),
        ("spark.sql(f'INSERT INTO s VALUES ({n}, {name})')", False),
        ("print(f'{n} rows', n + 1)", False),
        ("text = 'DELETE FROM s'; spark.sql(text)", False),
        ("for one in ('s', 't'): spark.table(one)", False),
    ],
)
def test_a_program_that_may_compute_the_name_of_a_table(tmp_path, body, computes):
    text = f"def load(spark, name, n):\n    {body}\n"
    assert (program_words(tmp_path / "job.py", text) is None) == computes


def test_a_function_that_fails_leaves_the_others_their_answers(tmp_path):
    (tmp_path / "ddl.sql").write_text(DDL)
    failure = IsolitmusError("job.py:3: load did not return on empty tables: it raised X")
    target = FunctionTarget(tmp_path / "job.py", "load", 1, FILE.replace("count", "s"))
    raised = {"kind": "raised", "line": 3, "problem": "it raised X", "name": "X"}
    failed = FunctionRecord.of_paths(target, [[COUNT, raised]], failure=failure)
    with pytest.raises(IsolitmusError, match="it raised X"):
        workload(ddl=tmp_path / "ddl.sql", run=lambda _: failed)
    other = FunctionTarget(tmp_path / "job.py", "other", 1, FILE)
    records = [*failed, FunctionRecord.of(other, [UPDATE])]
    work = workload(ddl=tmp_path / "ddl.sql", run=lambda _: records)
    assert [str(one) for one in work.unread] == [
        "load_line3 (job.py:3): load did not return on empty tables: it raised X"
    ]
    assert [*work.jobs] == ["load", "other"]
    assert "load" in work.uncertain


@pytest.mark.slow
@pytest.mark.parametrize("source", ["rows_from_python", "VALUES (1) AS rows_from_python(id)"])
def test_rows_of_a_program_that_are_not_known_break_no_invariant(made, source):
    decided = {"kind": "decided", "line": 2, "name": "count_1", "sql": ":count_1 = 0"}
    count = read(2, "SELECT count(*) AS n FROM s WHERE id = 1")
    insert = statement(3, f"INSERT INTO s SELECT id, current_date() AS day FROM {source}")
    _, work = made(count, decided, insert)
    asked = [read_invariant("unique(id)", work.tables, ("s",), "here")]
    (answer,) = decide_invariants(work, ["delta-serializable"], asked)
    if "VALUES" in source:
        assert (answer.word, answer.violations[0].jobs) == ("broken", ("load", "load"))
    else:
        assert answer.word == "unknown"
        assert "the rows that Python makes for job.py:3 are not known" in answer.why
