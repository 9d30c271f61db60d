"""Records of functions as jobs: results of reads, paths, places; what is wrong with ``--run``."""

from pathlib import Path

import pytest

from isolitmus.checker.workloads.prediction import predict_workload
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs import protocol
from isolitmus.specs.files.recorded_functions import (
    FunctionRecord,
    FunctionTarget,
    check_function_names,
    read_function_target,
)
from isolitmus.specs.files.workload_sources import workload

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
        return record, workload(*files, ddl=ddl, functions=[record])

    return build


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
    with pytest.raises(IsolitmusError, match="a file has the name load as well"):
        made(statement(3, "DELETE FROM t"), files=[str(tmp_path / "load.sql")])


def test_a_function_without_statements_has_no_job(made):
    record, work = made()
    assert work.jobs == {}
    assert [*record.lines()] == [
        "load (job.py:1) was executed on empty tables: 0 statements on this path"
    ]


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        ("", "job.py", "--run is 'job.py'; write FILE.py:FUNCTION"),
        ("", "job.sql:f", "--run is 'job.sql:f'; write FILE.py:FUNCTION"),
        ("", "job.py:f", "job.py has no function 'f'; it defines no function at its top"),
        ("def load(): pass", "job.py:lod", "job.py has no function 'lod'; did you mean 'load'?"),
        ("def f(:\n", "job.py:f", "job.py:1:7: not Python: "),
        ("x = 1\nasync def f(): pass", "job.py:f", "job.py:2: f is asynchronous"),
        ("def f(spark, day, *, n): pass", "job.py:f", "job.py:1: f also needs day and n; give"),
        ("def f(): pass\0", "job.py:f", "job.py"),
    ],
)
def test_what_is_wrong_with_run(tmp_path, monkeypatch, text, given, said):
    monkeypatch.chdir(tmp_path)
    Path("job.py").write_text(text)
    with pytest.raises(IsolitmusError) as caught:
        read_function_target(given)
    assert str(caught.value).startswith(said)


def test_two_functions_of_one_name(tmp_path):
    one = FunctionTarget(tmp_path / "a.py", "f", 1, "")
    with pytest.raises(IsolitmusError, match="two functions have the name f"):
        check_function_names([one, one._replace(path=tmp_path / "b.py")])
    with pytest.raises(IsolitmusError, match="is not a name of a job"):
        check_function_names([one._replace(function="é")])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--run", "job.py:load"], "--run needs --ddl FILE"),
        (["--run", "nowhere.py:load", "--ddl", "ddl.sql"], "cannot read nowhere.py"),
        (["--run", "job.py:load", "--ddl", "none.sql"], "cannot read none.sql"),
        (["shop", "--run", "job.py:load", "--ddl", "ddl.sql"], "'shop' has its own jobs; --run"),
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


def test_without_spark_one_sentence(tmp_path, monkeypatch, call):
    (tmp_path / "ddl.sql").write_text(DDL)
    (tmp_path / "job.py").write_text(FILE)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    status, out, error = call(
        "predict", "--run", tmp_path / "job.py:load", "--ddl", tmp_path / "ddl.sql"
    )
    assert (status, out) == (4, "")
    assert error.count("\n") == 1
    assert "Java" in error or "pip install" in error
