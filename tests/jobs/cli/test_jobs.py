"""``isolitmus predict`` as a person calls it: words, JSON, files, exit status."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from isolitmus.jobs.predict import prediction
from isolitmus.jobs.robust import repairs
from isolitmus.model.errors import TimeLimit
from isolitmus.model.litmus import Litmus
from isolitmus.specs import litmus

DDL = "CREATE TABLE events (id BIGINT, day DATE) USING delta PARTITIONED BY (day)"
JOBS = f"""
title = "Two jobs"
ddl = "{DDL}"
[jobs.cleanup]
sql = "DELETE FROM events WHERE day = :day"
parameters = {{ day = "DATE" }}
[jobs.ingest]
sql = "INSERT INTO events VALUES (:id, :day)"
parameters = {{ id = "BIGINT", day = "DATE" }}
"""


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.toml").write_text(JOBS, "utf-8")
    return tmp_path


@pytest.mark.slow
def test_what_is_predicted_is_written(jobs, call):
    status, out, err = call("predict", "jobs.toml", "--save", "found", "--html", "page.html")
    assert (status, err) == (1, "")
    assert (
        "cleanup always aborts with ConcurrentAppendException if ingest with the same :day commits"
        in out
    )
    assert "1 of 2 statements can abort; ingest never aborts." in out.splitlines()
    tests = [litmus(str(path)) for path in sorted((jobs / "found").glob("*.toml"))]
    assert [test.name for test in tests] == ["cleanup-by-cleanup", "cleanup-by-ingest"]
    assert all(isinstance(test, Litmus) and test.expect for test in tests)
    page = (jobs / "page.html").read_text("utf-8")
    assert page.count("<details>") == len(tests)
    assert "always if both have the same :day" in page
    assert call("run", "found")[0] == 0


@pytest.mark.parametrize(
    ("end", "status", "last"),
    [
        (KeyboardInterrupt(), 130, "ingest   .       .       .      .       ."),
        (
            TimeLimit("the time limit of 1 s ended it"),
            3,
            "compact  ?       ?       ?      ?       ?",
        ),
    ],
)
def test_rows_are_printed_when_they_are_known(call, monkeypatch, end, status, last):
    asked = prediction.PairPredictor.of

    def of(rows, loser):
        if loser == "upsert":
            raise end
        return asked(rows, loser)

    monkeypatch.setattr(prediction.PairPredictor, "of", of)
    found, out, err = call("predict", "shop", "--cores", "1")
    lines = out.splitlines()
    assert (found, lines[4]) == (status, "ingest   .       .       .      .       .")
    assert last in lines[4:9]
    assert "are unknown" in err or not err
    assert "never aborts." not in out or status != 130


@pytest.mark.slow
def test_the_answer_of_robust_is_printed_before_repairs_are_searched(call, monkeypatch):
    def stopped(found, _):
        raise TimeLimit("the time limit of 1 s ended it")
        yield found

    monkeypatch.setattr(repairs, "find_repairs", stopped)
    status, out, err = call("robust", "shop", "--repairs", "--promise", "update-serializable")
    assert status == 1
    assert "update-serializable  safe               unsafe" in out
    assert "No repair" not in out
    assert err.endswith("the other repairs are unknown\n")
    status, out, err = call("robust", "shop", "--time", "0")
    assert (status, err) == (3, "")
    assert "log-serializable     unknown            unknown" in out
    assert ": safe" not in out


@pytest.mark.slow
@pytest.mark.usefixtures("jobs")
def test_json_has_the_keys_of_the_page(call):
    status, out, _ = call(
        "predict", "jobs.toml", "--level", "WriteSerializable", "--remedies", "--json"
    )
    found = json.loads(out)
    assert status == 1
    keys = {"workload", "protocol", "engine", "assumptions", "meetings", "ended", "seconds"}
    assert set(found) == keys | {"remedies", "not_understood"}
    said = {(m["loser"], m["winner"]): m["word"] for m in found["meetings"]}
    assert said == {
        ("cleanup", "cleanup"): "when",
        ("cleanup", "ingest"): "never",
        ("ingest", "cleanup"): "never",
        ("ingest", "ingest"): "never",
    }
    keys = {"title", "ends", "brings", "narrows", "costs"}
    assert [set(way) for way in found["remedies"]] == [keys, keys]


@pytest.mark.slow
@pytest.mark.usefixtures("jobs")
def test_a_remedy_in_json(call):
    _, out, _ = call("predict", "jobs.toml", "--remedies", "--json")
    differ, level, retry = json.loads(out)["remedies"]
    assert differ["ends"] == retry["ends"] == [["cleanup", "cleanup"], ["cleanup", "ingest"]]
    assert level == {
        "title": "set the isolation level to WriteSerializable",
        "ends": [["cleanup", "ingest"]],
        "brings": [],
        "narrows": [],
        "costs": [
            "update-serializable is no longer kept",
            "log-serializable is no longer kept",
        ],
    }


def test_nothing_is_stopped(jobs, call):
    (jobs / "one.sql").write_text("INSERT INTO events VALUES (1, DATE '2026-01-01')", "utf-8")
    (jobs / "t.sql").write_text(DDL, "utf-8")
    status, out, _ = call("predict", "--ddl", "t.sql", "one.sql")
    assert status == 0
    assert "one never aborts." in out.splitlines()
    assert out.splitlines()[-1].startswith("Valid for open-source Delta Lake 4.4.0")


WRONG = {
    "no such file": (("gone.toml",), "cannot read gone.toml"),
    "no such SQL file": (("gone.sql",), "no file 'gone.sql'"),
    "no such level": (("jobs.toml", "--level", "Strict"), "unknown --level 'Strict'"),
    "a text as level": (
        ("jobs.toml", "--level", "mine.cat"),
        "unknown --level 'mine.cat': jobs are asked about rules that ship, and this is a text",
    ),
    "a proposal as level": (
        ("jobs.toml", "--level", "case-2-serializable"),
        "and this is a rule that is being designed; ask isolitmus separate, run or repair about it",
    ),
    "no such table": (("jobs.toml", "--table", "nowhere"), "nowhere: there is no such folder"),
    "DDL that a file has": (("jobs.toml", "--ddl", "x.sql"), "--ddl is for SQL files only"),
    "two files": (("jobs.toml", "jobs.toml"), "give one workload file"),
    "no processes": (
        ("jobs.toml", "--cores", "0"),
        "--cores is 0; expected an integer of at least 1",
    ),
}


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_one_sentence(call, case):
    words, message = WRONG[case]
    status, out, err = call("predict", *words)
    assert (status, out) == (2, "")
    assert message in err


def test_jobs_that_write_to_no_table(jobs, call):
    text = f'ddl = "{DDL}"\n[jobs.look]\nsql = "SELECT * FROM events"\n'
    (jobs / "reads.toml").write_text(text, "utf-8")
    status, _, err = call("predict", "reads.toml")
    assert status == 2
    assert err == (
        "isolitmus: reads: no job writes to a table, so no job can abort; add a job that writes\n"
    )


LOG = (
    '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}\n'
    '{"metaData":{"id":"x","format":{"provider":"parquet","options":{}},"schemaString":"'
    r"{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}},"
    r"{\"name\":\"day\",\"type\":\"date\",\"nullable\":true,\"metadata\":{}}]}"
    '","partitionColumns":["day"],"configuration":{"delta.isolationLevel":"WriteSerializable"},"createdTime":0}}\n'
)


@pytest.mark.slow
def test_a_table_says_its_level(jobs, call):
    log = jobs / "events" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text(LOG, "utf-8")
    status, out, _ = call("predict", "jobs.toml", "--table", "events")
    assert status == 1
    assert "under delta-write-serializable" in out
    (log / f"{0:020}.json").write_text(
        re.sub(r'"partitionColumns":\["day"\]', '"partitionColumns":[]', LOG), "utf-8"
    )
    status, _, err = call("predict", "jobs.toml", "--table", "events")
    assert status == 2
    assert "events is declared with partitioned_by day, and the log of events has none" in err


@pytest.mark.slow
@pytest.mark.usefixtures("jobs")
def test_which_level_jobs_need(call, tmp_path):
    status, out, err = call("robust", "jobs.toml", "--certificate", "proof", "--save", "broken")
    assert (status, err) == (1, "")
    table = [line.split() for line in out.splitlines()[3:7]]
    assert table == [
        ["Serializable", "WriteSerializable"],
        ["write-serializable", "safe", "safe"],
        ["update-serializable", "safe", "unsafe"],
        ["log-serializable", "safe", "unsafe"],
    ]
    assert out.startswith(
        "Two jobs: safe at Serializable; at WriteSerializable, update-serializable"
    )
    assert "\nlog-serializable (all readers see states of one serial order" in out
    assert all("(check-sat)" in file.read_text("utf-8") for file in tmp_path.glob("proof/*/*.smt2"))
    assert len(list(tmp_path.glob("proof/*/*.smt2"))) > 10
    assert call("run", "broken")[0] == 0


@pytest.mark.slow
@pytest.mark.usefixtures("jobs")
def test_robust_in_json(call):
    words = "--level", "Serializable", "--promise", "log-serializable", "--repairs", "--json"
    status, out, _ = call("robust", "jobs.toml", *words)
    (found,) = json.loads(out)
    assert status == 0
    assert (found["word"], found["repairs"], found["counterexamples"]) == ("safe", [], [])
    assert set(found) >= {
        "workload",
        "protocol",
        "promise",
        "refuted",
        "why",
        "not_understood",
        "assumptions",
        "seconds",
    }


NOT_UNDERSTOOD = """
[jobs.odd]
sql = ["FROBNICATE events", "DELETE FROM events WHER id = 1", "ALTER TABLE other ALTER COLUMN id TYPE BIGINT"]
"""


@pytest.mark.slow
def test_a_statement_that_is_not_understood_leaves_the_others_their_answers(jobs, call):
    other = f'["{DDL}", "CREATE TABLE other (id INT) USING delta"]'
    two = JOBS.replace(f'"{DDL}"', other) + NOT_UNDERSTOOD
    (jobs / "jobs.toml").write_text(two, "utf-8")
    status, out, _ = call("predict", "jobs.toml", "--json", "--remedies", "--html", "page.html")
    found = json.loads(out)
    assert status == 1
    assert [(one["name"], one["place"]) for one in found["not_understood"]] == [
        ("odd_1", "jobs.toml:12:9"),
        ("odd_2", "jobs.toml:12:55"),
        ("odd_3", "jobs.toml:12:64"),
    ]
    said = {(m["loser"], m["winner"]): m["word"] for m in found["meetings"]}
    assert len(said) == 25
    assert said["cleanup", "cleanup"] == "when"
    assert {said["ingest", "cleanup"], said["cleanup", "odd_3"]} == {"never"}  # another table
    assert {said["ingest", "odd_1"], said["odd_2", "cleanup"], said["odd_3", "odd_1"]} == {
        "unknown"
    }
    assert "odd_2 (jobs.toml:12:55)" in (jobs / "page.html").read_text("utf-8")
    status, out, _ = call("predict", "jobs.toml")
    assert "3 of 5 statements" in out
    assert "- odd_3 (jobs.toml:12:64): ALTER TABLE … ALTER is outside" in out


@pytest.mark.slow
def test_robust_is_not_safe_with_a_statement_that_is_not_understood(jobs, call):
    words = "--level", "Serializable", "--promise", "log-serializable"
    assert call("robust", "jobs.toml", *words)[0] == 0
    (jobs / "jobs.toml").write_text(JOBS + NOT_UNDERSTOOD, "utf-8")
    status, out, _ = call("robust", "jobs.toml", *words)
    assert (status, "these are not understood: odd_1, odd_2, odd_3" in " ".join(out.split())) == (
        3,
        True,
    )


@pytest.mark.slow
def test_several_tables_are_an_assumption(jobs, call):
    """Each counts the other's rows: no table's check sees both, and that they are read at one
    moment is said.
    """
    text = "".join(
        f'[tables.{name}]\ncolumns = "id INT"\n[jobs.to_{name}]\n'
        f'sql = "INSERT INTO {name} SELECT count(*) FROM {other}"\n'
        for name, other in (("x", "y"), ("y", "x"))
    )
    (jobs / "two.toml").write_text(text, "utf-8")
    status, out, _ = call("robust", "two.toml", "--promise", "write-serializable")
    assert status == 1
    assert re.search(r"write-serializable  unsafe +unsafe", out)
    assert "- A statement reads all its tables at one moment" in out.splitlines()[-1]


@pytest.mark.usefixtures("jobs")
def test_a_promise_that_is_none(call):
    status, _, err = call("robust", "jobs.toml", "--promise", "serialisable")
    assert status == 2
    assert "unknown --promise 'serialisable'" in err


@pytest.mark.slow
def test_a_page_of_which_level_jobs_need(jobs, call):
    """Each promise and level, the smallest schedule as a picture, proofs and repairs, all of it
    escaped.
    """
    text = JOBS.replace("Two jobs", "<Two> jobs")
    (jobs / "jobs.toml").write_text(text, "utf-8")
    promise = "log-serializable"
    status, _, _ = call(
        "robust", "jobs.toml", "--promise", promise, "--repairs", "--html", "page.html"
    )
    page = (jobs / "page.html").read_text("utf-8")
    assert status == 1
    assert "&lt;Two&gt; jobs" in page
    assert "<Two>" not in page
    assert f'href="#{promise}-delta-write-serializable">unsafe</a>' in page
    assert page.count("<svg") == page.count("<details>") == 1
    assert "a statement commits without seeing a concurrent change to its read set" in page
    assert "in the order of the log, they do not produce these tables" in page
    assert "Never run at the same time: cleanup and ingest" in page
    assert "No other job writes to the tables" in page
    assert "<script" not in page


@pytest.mark.slow
def test_a_page_of_predictions_has_the_remedies(jobs, call):
    call("predict", "jobs.toml", "--remedies", "--html", "page.html")
    page = (jobs / "page.html").read_text("utf-8")
    assert "<h2>Remedies</h2>" in page
    assert "<li>cost: log-serializable is no longer kept</li>" in page


@pytest.mark.slow
def test_a_page_of_predictions_says_what_is_assumed(jobs, call):
    (jobs / "t.sql").write_text(
        DDL + " TBLPROPERTIES ('delta.autoOptimize.optimizeWrite' = 'true')", "utf-8"
    )
    (jobs / "a.sql").write_text("DELETE FROM events WHERE id = 1", "utf-8")
    call("predict", "--ddl", "t.sql", "a.sql", "--html", "page.html")
    said = "<li>Conflicts do not depend on delta.autoOptimize.optimizeWrite = true of events"
    assert said in (jobs / "page.html").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("seconds", ["0.2", "0.4", "0.6"])
def test_a_limit_at_the_start_of_the_processes_leaves_no_traceback(tmp_path, seconds):
    """A process whose start is cut off would print one. The jobs are more than a pipe holds."""
    sql = f"DELETE FROM t WHERE id = :id AND name <> '{'x' * 2000}'"
    jobs = [f'[jobs.j{k}]\nsql = "{sql}"\nparameters = {{ id = "INT" }}\n' for k in range(40)]
    path = tmp_path / "jobs.toml"
    path.write_text('ddl = "CREATE TABLE t (id INT, name STRING) USING delta"\n' + "".join(jobs))
    words = ("predict", str(path), "--cores", "2", "--time", seconds)
    done = subprocess.run(
        [str(Path(sys.executable).parent / "isolitmus"), *words],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode in (0, 3)
    assert "Traceback" not in done.stderr, done.stderr


FOLDER = {
    "ddl/tables.sql": (
        "CREATE TABLE IF NOT EXISTS shop.orders (id BIGINT, amount INT, day DATE) USING delta"
        " PARTITIONED BY (day);\n"
        "CREATE TABLE shop.odd (id BIGINT, half GEOMETRY) USING delta"
    ),
    "jobs/upsert.sql": (
        "USE CATALOG main;\n"
        "CREATE OR REPLACE TEMP VIEW n AS SELECT * FROM raw.orders QUALIFY row_number() OVER"
        " (PARTITION BY id ORDER BY seen DESC) = 1;\n"
        "MERGE INTO shop.orders o USING n ON o.id = n.id WHEN MATCHED AND n.op = 'D' THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;\n"
        "OPTIMIZE shop.orders"
    ),
    "jobs/purge.sql": "DELETE FROM shop.orders WHERE day < '{{ ds }}'",
    "jobs/odd.sql": "INSERT INTO shop.odd SELECT * FROM x",
    "jobs/open.sql": "DELETE FROM shop.orders WHERE id + :n = 3 + :m",
    "tmpl/model.sql": "INSERT INTO shop.orders SELECT {{ cols | join(',') }} FROM x",
    ".git/hidden.sql": "DELETE FROM nothing",
    "notes.txt": "DELETE FROM nothing",
}


def _write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


@pytest.mark.slow
def test_a_folder_of_sql_files(tmp_path, call, monkeypatch):
    """What is wrong with one file or table leaves the others their answers."""
    monkeypatch.chdir(tmp_path)
    _write(tmp_path / "all", FOLDER)
    status, out, err = call("predict", "all", "--json")
    found = json.loads(out)
    assert (status, err) == (1, "")
    said = {(m["loser"], m["winner"]): m["word"] for m in found["meetings"]}
    assert len(said) == 36
    assert said["jobs_upsert_1", "jobs_purge"] in {"when", "always"}
    assert said["jobs_upsert_2", "jobs_purge"] == "when"
    assert {one["name"]: one["place"] for one in found["not_understood"]} == {
        "jobs_odd": "jobs/odd.sql:1:18",
        "jobs_open": "jobs/open.sql",
        "tmpl_model": "tmpl/model.sql:1:32",
    }
    told = " ".join(found["assumptions"])
    assert "odd is declared, but not understood (ddl/tables.sql:2): " in told
    assert "main.raw.orders has no DDL" in told
    assert "main.shop.orders is the declared shop.orders" in told


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"a.txt": ""}, "all has no file NAME.sql"),
        ({"a.sql": "DELETE FROM t"}, "no file in all creates a table that is understood"),
        ({"a.sql": "CREATE TABLE t (id INT) USING delta"}, "nothing"),
    ],
)
def test_a_folder_without_jobs_is_one_sentence(tmp_path, call, monkeypatch, files, said):
    monkeypatch.chdir(tmp_path)
    _write(tmp_path / "all", files)
    status, out, err = call("predict", "all")
    assert (status, out) == (2, "")
    assert said in err or "jobs is empty" in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_folder_with_the_ddl_in_one_of_its_files(tmp_path, call, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ddl = "CREATE TABLE t (id INT) USING delta"
    _write(
        tmp_path / "all",
        {"t.sql": ddl, "a.sql": f"{ddl.replace('TABLE', 'TABLE IF NOT EXISTS')}; DELETE FROM t"},
    )
    for more in ((), ("--ddl", "all/t.sql")):
        status, out, _ = call("predict", "all", *more, "--json")
        found = json.loads(out)
        assert (status, [m["loser"] for m in found["meetings"]]) == (1, ["a"])
