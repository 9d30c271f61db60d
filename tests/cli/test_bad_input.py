"""Everything that a user can get wrong: one message with the place and a remedy, and the exit
status.

Each case goes through the entry point, with the files that it needs in the current folder.
"""

import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from time import sleep

import pytest

from isolitmus.checker.render.expectation_report import PredictedRuns
from isolitmus.model.budget import Budget
from isolitmus.model.errors import TimeLimit
from isolitmus.specs import litmus

LITMUS = """\
title = "T"
source = "S"
tags = ["x"]
schedule = "a.start b a.commit r"

[table]
columns = "id INT, part INT"
partitioned_by = ["part"]
properties = {}
rows_per_file = 1
init = ["INSERT INTO t VALUES (1, 0)"]

[transactions]
a = "DELETE FROM t WHERE part = 0"
b = "INSERT INTO t VALUES (2, 0)"
r = "SELECT id FROM t"

[expect.delta-serializable]
outcome = { a = "ConcurrentAppendException", b = ["committed"] }
error_class = { a = "DELTA_CONCURRENT_APPEND" }
log = { b = { blind = true, level = "Serializable", operation = "WRITE" } }
reads = { r = [[1], [2]] }
tables = { t = [[1, 0], [2, 0]] }
versions = { 1 = { t = [[1, 0], [2, 0]] } }
serial = ["b"]
holds = ["serializable"]
fails = []
"""
SCOPE = """\
title = "S"
[table]
columns = "id INT"
init = [["INSERT INTO t VALUES (1)"], []]
[scope]
transactions = 1
statements = ["INSERT INTO t VALUES ({fresh})", "DELETE FROM t WHERE id = 1"]
readers = ["SELECT id FROM t"]
protocols = ["delta-serializable"]
levels = ["serializable"]
noops = "skip"
"""
HISTORY = """\
title = "H"
[history]
T1 = "r(x0) w(x1)"
T2 = "r(P: x0*) w(x2)"
sessions = ["T1 T2"]
order = ["x1 < x2"]
aborted = []
[expect]
holds = []
fails = ["serializable"]
"""
SPEC = """\
"Mine"
let missed = rw & log^-1
empty missed as missed-write
"""
RUN, CHECK = ("run", "bad.toml"), ("check", "bad.toml", "--level", "serializable")
SEPARATE = ("separate", "serializable", "log-serializable")


@pytest.fixture
def call(call, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return call


@pytest.fixture
def refusal(call):
    """refusal(words): what one message on standard error says, at status 2."""

    def refusal(*words, status=2):
        ended, out, err = call(*words)
        assert (ended, out) == (status, "")
        first, *shown = err.removesuffix("\n").split("\n")
        assert first.startswith("isolitmus: ")
        assert len(shown) in (0, 2), "the message, or with the line and its caret"
        if shown:
            line, caret = shown
            assert caret.strip() == "^"
            assert len(caret) <= len(line) + 1
        return err.removeprefix("isolitmus: ").removesuffix("\n")

    return refusal


def changed(text, old, new):
    assert text.count(old) == 1, old
    return text.replace(old, new)


def number(text, part):
    """The line (from 1) that a part begins in."""
    return text[: text.index(part)].count("\n") + 1


@pytest.mark.slow
def test_what_the_cases_are_made_of_is_right(call):
    Path("bad.toml").write_text(LITMUS)
    assert call(*RUN)[0] == 0
    Path("bad.toml").write_text(HISTORY)
    assert call(*CHECK)[0] == 1
    Path("bad.toml").write_text(SCOPE)
    Path("mine.cat").write_text(SPEC)
    status, _, err = call("separate", "mine.cat", "log-serializable", "--universe", "bad.toml")
    assert (status, err) == (0, "")


# What nobody foresaw


def test_an_internal_error_is_no_finding(call, monkeypatch):
    def broken(_):
        raise KeyError("no such thing\n\x1b[31m")

    monkeypatch.setattr("isolitmus.cli.run.read_protocol", broken)
    monkeypatch.delenv("ISOLITMUS_TRACEBACK", raising=False)
    status, out, err = call("run", "reorder", "--protocol", "delta-serializable")
    assert (status, out) == (70, "")
    assert re.fullmatch(
        r"isolitmus: internal error: KeyError in isolitmus\.cli\.run:\d+ \(.*\); please report it,"
        r" .* ISOLITMUS_TRACEBACK=1"
        r" prints\n",
        err,
    )
    monkeypatch.setenv("ISOLITMUS_TRACEBACK", "1")
    assert "Traceback (most recent call last)" in call("run", "reorder", "--protocol", "p")[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status"),
    [("show | true", 141), ("show >&-", 3), ("show 2>&-", 0), ("show <&-", 0)],
)
def test_a_stream_that_is_closed(words, status):
    ended = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m isolitmus {words}; exit ${{PIPESTATUS[0]}}"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert ended.returncode == status
    assert "Traceback" not in ended.stderr + ended.stdout
    assert ("standard output is closed" in ended.stderr) == (status == 3)


# SQL that sqlglot parses and that is none


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("DELETE t WHERE id = 1", "write DELETE FROM table"),
        ("DELETE FROM a.b.c.d", "of a form that is not supported"),
        ("DELETE FROM t WHERE id IN ()", "IN () has no value; write IN (1, 2)"),
        ("INSERT INTO t", "this INSERT inserts nothing; write VALUES (1, 2) or SELECT …"),
        ("INSERT INTO t (:id, :part)", "this INSERT inserts nothing"),
        ("UPDATE t SET", "this UPDATE sets nothing; write SET column = value"),
        ("UPDATE..t SET id = 1", "of a form that is not supported"),
        ("SELECT", "this SELECT has no column"),
        ("MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET", "this UPDATE sets nothing"),
        ("CREATE TABLE t (id BIGINT) USING", "write CREATE [OR REPLACE] TABLE"),
        ("SELECT map('a', id)['b'] FROM t", "what 'map('a', id)['b']' gives is not modelled"),
    ],
)  # fmt: skip
def test_statements_that_are_cut_short(call, sql, message):
    Path("bad.toml").write_text(changed(LITMUS, '"DELETE FROM t WHERE part = 0"', f'"{sql}"'))
    status, out, err = call("run", "bad.toml", "--protocol", "delta-serializable")
    assert status in (2, 3)
    assert message in out + err


@pytest.mark.parametrize(
    "ddl",
    ["CREATE TABLE t (id BIGINT) USING", "CREATE TABLE t (id BIGINT DEFAULT USING delta)", "CREATE TABLE", "CREATE TABLE t"],
)  # fmt: skip
def test_a_ddl_that_is_cut_short(call, ddl):
    Path("t.ddl").write_text(ddl)
    Path("job.sql").write_text("DELETE FROM t WHERE id = 1")
    status, out, err = call("predict", "job.sql", "--ddl", "t.ddl")
    assert (status, out) == (2, "")
    assert err.startswith("isolitmus: t.ddl:1")


def test_a_query_of_a_file_reads_no_other_file(call):
    Path("secret.txt").write_text("secret")
    Path("bad.toml").write_text(
        changed(str(litmus("scan-twice")), "[transactions]", "[postconditions]\np = \"SELECT * FROM read_text('secret.txt')\"\n[transactions]")
    )  # fmt: skip
    status, out, err = call("run", "bad.toml", "--protocol", "locking-read-committed")
    assert status == 2
    assert "Permission Error" in err and "secret" not in out


# Limits


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["run", "reorder", "--time", "0"], ["run", "scan-twice", "--interleavings", "--time", "0"], ["matrix", "--time", "0"],
        ["export", "reorder", "--pytest", "x.py", "--time", "0"], ["claims", "verify", "D46", "--time", "0"],
        ["run", "reorder", "--memory", "1MB"], ["matrix", "--memory", "1MB"],
    ],
)  # fmt: skip
def test_a_limit_leaves_the_rest_unknown(call, words):
    status, _, err = call(*words)
    assert status == 3
    assert f"the {'time' if '--time' in words else 'memory'} limit of " in err
    assert not Path("x.py").exists()


def test_a_limit_ends_a_comparison_of_any_number_of_transactions(call):
    words = "compare", "causal", "serializable", "--transactions", "9" * 20, "--time", "0.1"
    status, out, _ = call(*words)
    assert status == 3
    assert "the time limit of 0.1 s ended it" in out


@pytest.mark.slow
def test_what_was_carried_out_before_a_limit_is_told(call, monkeypatch):
    begun, beside = [], PredictedRuns.beside

    def slow(self, answer):
        begun.append(self)
        if len(begun) > 1:
            sleep(30)
        return beside(self, answer)

    limit = TimeLimit("the time limit of 9 s ended it")
    monkeypatch.setattr(Budget, "spent", lambda _: limit if len(begun) > 1 else None)
    monkeypatch.setattr(PredictedRuns, "beside", slow)
    words = ("run", "reorder", "insert-last", "--protocol", "delta-serializable", "--json")
    status, out, err = call(*words)
    document = json.loads(out)
    assert (status, len(begun)) == (3, 2)
    assert [test["litmus"] for test in document["tests"] if test["runs"]] == ["reorder"]
    assert document["ended"] == "the time limit of 9 s ended it"
    assert "the remaining runs are unknown" in err


# Names and options


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["separate", "serialisable", "log-serializable"], "unknown level or protocol 'serialisable'; did you mean 'serializable'?"),
        (["separate", "serializable", "log-serialisable"], "unknown level or protocol 'log-serialisable'; did you mean 'log-serializable'?"),
        ([*SEPARATE, "--universe", "tabel"], "unknown scope 'tabel'; did you mean 'table'?"),
        ([*SEPARATE, "--universe", "../scopes/table"], "unknown scope '../scopes/table'; known: "),
        (["sweep", "two-partitions", "--cores", "0"], "--cores is 0; expected an integer of at least 1"),
        (["sweep", "two-partitions", "--cores", "9" * 400], "99; expected an integer up to 1,024"),
        (["predict", "shop", "--cores", "1025"], "--cores is 1025; expected an integer up to 1,024"),
        (["compare", "causal", "serializable", "--cores", "1025"], "--cores is 1025; expected an"),
        (["sweep", "two-partitions", "--cores", "2", "--spark"], "--cores excludes --spark"),
        (["sweep", "two-partitions", "--out", "x"], "--out needs --spark"),
        (["sweep", "two-partitions", "--master", "local[2]"], "--master needs --spark"),
        (["sweep", "two-partitions", "--spark", "--master", "mesos"], "--master is 'mesos'; expected local[N], local-cluster[EXECUTORS,CORES,MEGABYTES], spark://HOST:PORT, yarn, k8s://… or sc://HOST:PORT"),
        ([*SEPARATE, "--universe", "gone.toml"], "cannot read gone.toml: No such file or directory"),
        ([*SEPARATE, "--transactions", "0"], "--transactions is '0'; "),
        ([*SEPARATE, "--transactions", "3..2"], "--transactions is '3..2'; "),
        ([*SEPARATE, "--transactions", "x"], "--transactions is 'x'; write N or N..M, for example 2..3"),
        (["check", "reordr", "--level", "serializable"], "unknown litmus test 'reordr'; did you mean 'reorder'?"),
        (["check", "reorder", "--level", "serializible"], "unknown level or protocol 'serializible'; did you mean 'serializable'?"),
        (["check", "reorder", "--level", " , "], "--level is empty; name at least one level"),
        (["check", "reorder", "--level", "gone.cat"], "cannot read gone.cat: No such file or directory"),
        (["check", "history-write-skew", "--level", "log-serializable"], "log-serializable needs log, which this history does not have"),
        (["run", "reordr"], "unknown litmus test 'reordr'; did you mean 'reorder'?"),
        (["run", "reordr", "--json"], "unknown litmus test 'reordr'; did you mean 'reorder'?"),
        (["run", "gone.toml"], "cannot read gone.toml: No such file or directory"),
        (["run", "x" * 1000], "unknown litmus test 'xxx"),
        (["run", "x" * 1000 + ".toml"], "File name too long"),
        (["predict", "x" * 1000], "unknown workload 'xxx"),
        (["robust", "x" * 1000], "unknown workload 'xxx"),
        (["lint", "--config", "x" * 1000], "File name too long"),
        (["run", "history-write-skew"], "an abstract history, which no engine can run; use isolitmus check"),
        (["run", "reorder", "--engine", "modle"], "unknown engine 'modle'; did you mean 'model'?"),
        (["run", "reorder", "--engine", "delta,modle"], "unknown engine 'modle'; did you mean 'model'?"),
        (["run", "reorder", "--engine", ""], "--engine is empty; name at least one engine"),
        (["run", "reorder", "--protocol", ""], "--protocol is empty; name at least one protocol"),
        (["run", "reorder", "--protocol", "serializable"], "'serializable' is a level, and a protocol is expected; did you mean 'delta-serializable'?"),
        (["show", "levles"], "unknown name 'levles'; did you mean 'levels'?"),
        (["show", "gone.cat"], "cannot read gone.cat: No such file or directory"),
        (["predict", "shop", "--level", "WriteSerialisable"], "did you mean 'WriteSerializable'?"),
        (["claims", "verify", "--word", "xyzzy"], "so there is nothing to verify"),
    ],
)  # fmt: skip
def test_names_and_options(refusal, words, message):
    assert message in refusal(*words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run"], "missing argument 'LITMUS'; see isolitmus run --help"),
        (["run", "reorder", "--engin", "model"], "no option '--engin'; did you mean '--engine'?; see isolitmus run --help"),
        (["run", "-x"], "no option '-x'; known: --"),
        (["check"], "missing argument 'FILE'; see isolitmus check --help"),
        (["check", "reorder", "--level"], "option '--level' requires an argument"),
        (["show", "--json=3"], "option '--json' does not take a value; see isolitmus --help"),
        (["chek", "reorder"], "no command 'chek'; did you mean 'check'?; see isolitmus --help"),
        ([*SEPARATE, "--time", "soon"], "invalid value for '--time'"),
        (["matrix", "--sample", "9" * 5000], "invalid value for '--sample'"),
        (["demo", "--no-spark", "extra" * 1000], "got unexpected extra argument"),
    ],
)  # fmt: skip
def test_usage_errors_have_the_form_of_all_others(refusal, words, message):
    said = refusal(*words)
    assert said.startswith(message)
    assert len(said) < 400


def test_without_a_command_there_is_help(call):
    status, out, err = call()
    assert (status, out) == (2, "")
    assert err.startswith("Usage: isolitmus")


@pytest.mark.parametrize(
    ("axiom", "message"),
    [
        ("empty rival as x", "mine needs rival, which the check of a commit does not have"),
        ("empty co ; [Meta] as x", "mine needs co, which the check of a commit does not have"),
        ("empty unseen ; [Metta] as x", "mine.cat:1:24: unknown set 'Metta'; did you mean 'Meta'?"),
        ("empty unseen & metadata-clash as x", "mine.cat:1:23: unknown relation 'metadata-clash'; did you mean 'metadata-clashes'?"),
        ("acyclic unseen as x", "mine.cat is not a protocol: its axiom x is acyclic, and what is checked at"),
    ],
)  # fmt: skip
def test_protocols_that_no_commit_can_be_checked_by(refusal, axiom, message):
    Path("mine.cat").write_text(f'"Mine" {axiom}')
    assert refusal("run", "reorder", "--protocol", "mine.cat").startswith(message)


def test_a_protocol_that_an_engine_does_not_implement(refusal):
    """Said before anything is started."""
    Path("delta-mine.cat").write_text('"Mine" empty unseen as x')
    assert (
        refusal("run", "reorder", "--engine", "delta", "--protocol", "delta-mine.cat")
        == "PySpark with Delta does not implement the protocol 'delta-mine'; known:"
        " delta-serializable, delta-snapshot-isolation, delta-write-serializable"
    )


def test_a_level_that_a_history_has_no_names_for(refusal):
    Path("mine.cat").write_text('"Mine" empty unseen as x')
    assert (
        refusal("check", "history-write-skew", "--level", "mine.cat")
        == "history-write-skew.toml: mine needs unseen, which this history does not have"
    )


# Files that are no texts


@pytest.mark.parametrize(
    ("words", "name", "content", "message"),
    [
        (RUN, "bad.toml", b"title = '\xff'", "cannot read bad.toml: it is not UTF-8 text (byte 10)"),
        (RUN, "bad.toml", b"", "bad.toml: the file needs 'title' (a string)"),
        (RUN, "bad.toml", None, "folder 'bad.toml' has no litmus test (.toml) in it"),
        ((*SEPARATE, "--universe", "bad.toml"), "bad.toml", None, "cannot read bad.toml: Is a directory"),
        (("check", "reorder", "--level", "bad.cat"), "bad.cat", b"\xff", "cannot read bad.cat: it is not UTF-8 text (byte 1)"),
        (("check", "reorder", "--level", "bad.cat"), "bad.cat", b"", "bad.cat:1:1: a spec starts with its title in double quotes"),
        (("check", "reorder", "--level", "bad.cat"), "bad.cat", None, "cannot read bad.cat: Is a directory"),
    ],
)  # fmt: skip
def test_files_that_are_no_texts(refusal, words, name, content, message):
    if content is None:
        Path(name).mkdir()
    else:
        Path(name).write_bytes(content)
    assert refusal(*words).startswith(message)


@pytest.mark.parametrize(
    ("out", "problem"), [("file", "File exists"), ("file/report", "Not a directory")]
)
def test_a_report_that_cannot_be_written(call, out, problem):
    Path("file").write_text("")
    status, _, err = call("demo", "--no-spark", "--out", out)
    assert status == 2
    assert err.endswith(f"{out}: {problem}\n")


def test_an_answer_that_cannot_be_saved(call):
    status, _, err = call(*SEPARATE, "--save", "gone/found.toml")
    assert status == 2
    assert err == "isolitmus: cannot write gone/found.toml: there is no folder gone\n"


# Specs: what a text can have wrong is in tests/specs/language/test_parser.py


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rw &", "wx &", "mine.cat:2:14: unknown relation 'wx'; did you mean 'wr'?\n  let missed = wx & log^-1\n               ^"),
        ("rw & log^-1", "rw & (log^-1", "mine.cat:3:1: expected an operator or ')', found 'empty'\n"),
        ("empty missed", "empty mised", "mine.cat:3:7: unknown relation 'mised'; did you mean 'missed'?\n"),
        ('"Mine"', '"Mine', "mine.cat:1:1: this text in quotes is never closed\n"),
        ("empty missed as missed-write", "", "mine.cat:1:1: a spec has at least one axiom: "),
        ("log^-1", "log" + "^-1" * 500, "mine.cat:2:14: this is nested more than 100 deep"),
        ("let missed", 'include "mine.cat"\nlet', "mine.cat:3:"),
        ('"Mine"', f'"Mine" include "{"x" * 300}"', "mine.cat:1:16: no file 'xxx"),
    ],
)  # fmt: skip
def test_specs(refusal, old, new, message):
    Path("mine.cat").write_text(changed(SPEC, old, new))
    for words in (("check", "reorder", "--level", "mine.cat"), ("show", "mine.cat")):
        assert refusal(*words).startswith(message)


def test_a_chain_of_definitions_that_is_too_deep(refusal):
    chain = "\n".join(f"let a{n} = a{n - 1}+" for n in range(1, 200))
    Path("mine.cat").write_text(f'"Mine"\nlet a0 = wr\n{chain}\nacyclic a199 as x\n')
    message = "mine.cat:52:11: this is nested more than 100 deep, lets unfolded"
    assert refusal("check", "reorder", "--level", "mine.cat").startswith(message)


# TOML


@pytest.mark.parametrize(
    ("old", "new", "place", "problem"),
    [
        ('title = "T"', "title = T", "1:9", "Invalid value"),
        ('title = "T"', 'title "T"', "1:7", "Expected '=' after a key"),
        ('title = "T"', 'title = "T', "1:11", "Illegal character '\\n'"),
        ("[table]", "[table", "6:7", "Expected ']'"),
        ("[transactions]", "[table]", "13:7", "Cannot declare ('table',) twice"),
        ('source = "S"', 'title = "U"', "2:12", "Cannot overwrite a value"),
        ('source = "S"', 'source = "\\q"', "2:13", "Unescaped '\\' in a string"),
        ("rows_per_file = 1", "rows_per_file = 2020-02-30", "10:17", "Invalid date or datetime"),
        ("fails = []\n", "fails = [", "27:10", "Invalid value"),
    ],
)  # fmt: skip
def test_what_is_no_toml(refusal, old, new, place, problem):
    Path("bad.toml").write_text(changed(LITMUS, old, new))
    assert refusal(*RUN).startswith(f"bad.toml:{place}: not valid TOML: {problem}")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (str(2**63), "a number in it is too large; whole numbers go from -9223372036854775808 to"),
        ("9" * 5000, "a number in it is too large"),
        ("0x" + "f" * 5000, "a number in it is too large"),
        ("[" * 5000 + "]" * 5000, "its values are nested more than 100 deep"),
    ],
)
def test_toml_beyond_any_measure(refusal, value, problem):
    Path("bad.toml").write_text(changed(LITMUS, "rows_per_file = 1", f"rows_per_file = {value}"))
    assert refusal(*RUN).startswith(f"bad.toml: {problem}")


# Litmus files

TABLES = "[tables.u]\ncolumns = 'id INT'\n[tables.{}]\ncolumns = 'id INT, part INT'\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        # heads
        ('title = "T"\n', "", ": the file needs 'title' (a string)"),
        ('"T"', "3", ":1: title is 3; expected a string"),
        ('"S"', "[]", ":2: source is []; expected a string"),
        ('["x"]', '"x"', ":3: tags is 'x'; expected a list"),
        ('["x"]', "[1]", ":3: tags holds 1; expected strings"),
        ("tags =", "tag =", ":3: the file has no key 'tag'; did you mean 'tags'?"),
        # schedules
        ('schedule = "a.start b a.commit r"\n', "", ": the file needs 'schedule' (a string)"),
        ('"a.start b a.commit r"', "[]", ":4: schedule is []; expected a string"),
        ("a.start b a.commit", "a.commit b a.start", ":4: schedule step 'a.commit' commits a before it starts; put a.start earlier"),
        ("a.start b a.commit", "a.start b a.commit a.commit", ":4: schedule step 'a.commit' commits a a second time"),
        ("a.start b a.commit", "a.start a.start b a.commit", ":4: schedule step 'a.start' starts a a second time"),
        ("a.start b a.commit", "a.start bb a.commit", ":4: schedule step 'bb' names no transaction; did you mean 'b'?"),
        ("a.start b a.commit", "a.start b", ":4: the schedule never ends a; add 'a.commit'"),
        ("a.start b a.commit", "a.start a.commit", ":4: the schedule never starts b; add 'b'"),
        ("a.start b", "a.strat b", ":4: schedule step 'a.strat' is none that there is; use a.before, a.park-init"),
        # tables
        ("[table]", "[tabel]", ":6: the file has no key 'tabel'; did you mean 'table'?"),
        ("[table]", "table = 3\n[tabel]", ":7: the file has no key 'tabel'"),
        ('columns = "id INT, part INT"\n', "", ":6: [table] needs 'columns' (a string)"),
        ('"id INT, part INT"', "[]", ":7: table.columns is []; expected a string"),
        ('"id INT, part INT"', '""', ":7: table.columns: '' is not a column; write NAME TYPE, …"),
        ("part INT", "part INTT", ":7: table.columns: no type 'INTT'; did you mean 'INT'?"),
        ("part INT", "ID INT", ":7: table.columns names 'id' twice"),
        ('["part"]', '"part"', ":8: table.partitioned_by is 'part'; expected a list"),
        ('["part"]', "[1]", ":8: table.partitioned_by holds 1; expected strings"),
        ('["part"]', '["prat"]', ":8: table.partitioned_by names no column: 'prat'; did you mean 'part'?"),
        ('["part"]', '["part", "Part"]', ":8: table.partitioned_by names a column twice"),
        ('["part"]', '["part", "id"]', ":8: table.partitioned_by takes every column; at least one must hold data"),
        ("properties = {}", "properties = 1", ":9: table.properties is 1; expected a table"),
        ("properties = {}", "properties = { a = 1 }", ":9: table.properties: a is 1; expected a string"),
        ("rows_per_file = 1", "rows_per_file = 0", ":10: table.rows_per_file is 0; expected an integer of at least 1"),
        ("rows_per_file = 1", "rows_per_file = true", ":10: table.rows_per_file is True; expected an integer"),
        ("rows_per_file = 1", "rows_per_file = 1.5", ":10: table.rows_per_file is 1.5; expected an integer"),
        ("rows_per_file = 1", "exists = 1", ":10: table.exists is 1; expected true or false"),
        ("rows_per_file = 1", "exists = false", ":11: table.init is for an existing table, but exists = false; omit one"),
        ("rows_per_file = 1", "row_per_file = 1", ":10: [table] has no key 'row_per_file'; did you mean 'rows_per_file'?"),
        ('["INSERT INTO t VALUES (1, 0)"]', "3", ":11: table.init is 3; expected a list"),
        ('["INSERT INTO t VALUES (1, 0)"]', "[3]", ":11: table.init holds 3; expected SQL strings"),
        ('["INSERT INTO t VALUES (1, 0)"]', '[["DELETE FROM t"], []]', ":11: table.init is a list of lists; a litmus test has one initial table"),
        ("INSERT INTO t VALUES (1, 0)", "SELECT * FROM t", ":11: table.init holds a query, 'SELECT * FROM t'"),
        ("INSERT INTO t VALUES (1, 0)", "INSERT INTO t VALUES (1)", ":11, in init:1:13: table t has 2 columns, the query gives 1\n"),
        ("INSERT INTO t VALUES (1, 0)", "INSERT INTO t VALUES (DATE '2020-01-01', 0)", ":11, in init:1:13: 'DATE '2020-01-01'' is DATE and column id is INT: no implicit cast\n"),
        ("INSERT INTO t VALUES (1, 0)", "INSERT INTO u VALUES (1, 0)", ":11, in init:1:13: unknown table 'u'; known: t\n"),
        # transactions
        ("[transactions]", "[transaction]", ":13: the file has no key 'transaction'; did you mean 'transactions'?"),
        ('a = "DELETE FROM t WHERE part = 0"', "a = 3", ":14: transactions.a is 3; expected a string"),
        ('a = "DELETE FROM t WHERE part = 0"', "a = {}", ":14: [transactions.a] needs 'sql' (a string)"),
        ('a = "DELETE FROM t WHERE part = 0"', "a = { sq = '' }", ":14: [transactions.a] has no key 'sq'; did you mean 'sql'?"),
        ('a = "DELETE', "'a b' = \"DELETE", ":14: transaction 'a b': a name is letters, digits and _"),
        # SQL
        ("WHERE part = 0", "WHERE prat = 0", ":14, transaction a:1:21: unknown column 'prat'; did you mean 'part'?\n    DELETE FROM t WHERE prat = 0\n"),
        ("WHERE part = 0", "WHERE (part = 0", ":14, transaction a:1:29: this does not parse: Expecting )\n"),
        ("WHERE part = 0", "WHERE part = 9223372036854775808", ":14, transaction a:1:28: 9223372036854775808 does not fit into BIGINT\n"),
        ("WHERE part = 0", "WHERE part = " + "9" * 5000, ":14, transaction a:1:28: 9999"),
        ("WHERE part = 0", "WHERE part = ²", ":14, transaction a:1:"),
        ("WHERE part = 0", "WHERE" + " NOT" * 150 + " part = 0", ":14, transaction a: the statement is nested more than 100 deep"),
        ("WHERE part = 0", "WHERE " + " AND ".join(["part = 0"] * 150), ":14, transaction a: the statement is nested more than 100 deep"),
        ("DELETE FROM t WHERE part = 0", "", ":14, transaction a: expected one statement, found none"),
        ("WHERE part = 0", "; DELETE FROM t", ":14, transaction a: expected one statement, found 2"),
        ("DELETE FROM t", "DELETE t", ":14, transaction a:1:8: write DELETE FROM table\n"),
        ("DELETE FROM t WHERE part = 0", "DROP TABLE t", ":14, transaction a:1:12: a statement that begins 'DROP' is outside the SQL that isolitmus models\n"),
        # expectations
        ("[expect.delta-serializable]", "[expect.delta-serialisable]", ":18: [expect.delta-serialisable] is of no protocol; did you mean 'delta-serializable'?"),
        ("[expect.delta-serializable]", '[expect."detla-*"]', ":18: [expect.detla-*] is of no protocol; known: "),
        ("[expect.delta-serializable]", "[expect]", ":19: [expect.outcome] is of no protocol; known: databricks-serializable-middle, "),
        ("outcome =", "outcomes =", ":19: [expect.delta-serializable] has no key 'outcomes'; did you mean 'outcome'?"),
        ('{ a = "ConcurrentAppendException", b = ["committed"] }', "3", ":19: expect.delta-serializable.outcome is 3; expected a table"),
        ('b = ["committed"]', 'c = "committed"', ":19: [expect.delta-serializable.outcome] has no key 'c'; known: a, b, r"),
        ('["committed"]', "[]", ":19: expect.delta-serializable.outcome.b is []; expected an outcome or a list of them"),
        ('["committed"]', "true", ":19: expect.delta-serializable.outcome.b is True; expected an outcome or a list of them"),
        ('["committed"]', '"comitted"', ":19: expect.delta-serializable.outcome.b: no outcome 'comitted'; did you mean 'committed'?"),
        ('["committed"]', '"error:"', ":19: expect.delta-serializable.outcome.b: no outcome 'error:'; did you mean 'error:CLASS'?"),
        ("ConcurrentAppendException", "ConcurrentApendException", ":19: expect.delta-serializable.outcome.a: no outcome 'ConcurrentApendException'; did you mean 'ConcurrentAppendException'?"),
        ('{ a = "DELTA_CONCURRENT_APPEND" }', "{ a = 1 }", ":20: expect.delta-serializable.error_class.a is 1; expected a string"),
        ("blind = true", "blnd = true", ":21: [expect.delta-serializable.log.b] has no key 'blnd'; did you mean 'blind'?"),
        ("blind = true", "blind = 1", ":21: expect.delta-serializable.log.b.blind is 1; expected true or false"),
        ('{ blind = true, level = "Serializable", operation = "WRITE" }', "1", ":21: expect.delta-serializable.log.b is 1; expected a table"),
        ("{ r = [[1], [2]] }", "{ a = [] }", ":22: expect.delta-serializable.reads.a: a reads nothing that one sees; 'DELETE FROM t WHERE part = 0' writes"),
        ("{ r = [[1], [2]] }", "{ r = [[1, 0]] }", ":22: expect.delta-serializable.reads.r: row [1, 0] has not 1 values"),
        ("{ r = [[1], [2]] }", "{ r = [['1']] }", ":22: expect.delta-serializable.reads.r: '1' is not of type INT"),
        ("tables = { t = [[1, 0], [2, 0]] }", "tables = { u = [] }", ":23: [expect.delta-serializable.tables] has no key 'u'; known: t"),
        ("tables = { t = [[1, 0], [2, 0]] }", "tables = { t = 1 }", ":23: expect.delta-serializable.tables.t is not a list of rows; write [[1, 0], [2, 1]]"),
        ("tables = { t = [[1, 0], [2, 0]] }", "tables = { t = [[1]] }", ":23: expect.delta-serializable.tables.t: row [1] has not 2 values"),
        ("tables = { t = [[1, 0], [2, 0]] }", "tables = { t = [[1, 0], ['2', 0]] }", ":23: expect.delta-serializable.tables.t: '2' is not of type INT"),
        ("tables = { t = [[1, 0], [2, 0]] }", "tables = { t = [[1, 0], [true, 0]] }", ":23: expect.delta-serializable.tables.t: True is not of type INT"),
        ("tables = { t = [[1, 0], [2, 0]] }", "tables = { t = [[1, 0.5]] }", ":23: expect.delta-serializable.tables.t: 0.5 is not of type INT"),
        ("versions = { 1 =", "versions = { one =", ":24: expect.delta-serializable.versions.one is not a version; 0 is the table at the start"),
        ("versions = { 1 =", "versions = { '²' =", ":24: expect.delta-serializable.versions.² is not a version; 0 is the table at the start"),
        ('["b"]', '["c"]', ":25: expect.delta-serializable.serial names no transaction: 'c'; known: a, b, r"),
        ('["b"]', '["b b"]', ":25: expect.delta-serializable.serial: order 'b b' has a transaction twice"),
        ('["serializable"]', '["serialisable"]', ":26: expect.delta-serializable.holds names no level: 'serialisable'; did you mean 'serializable'?"),
        ("fails = []", 'fails = ["serializable"]', ":18: expect.delta-serializable: 'serializable' is in holds and in fails"),
    ],
)  # fmt: skip
def test_litmus_files(refusal, old, new, message):
    Path("bad.toml").write_text(changed(LITMUS, old, new))
    assert refusal(*RUN).startswith(f"bad.toml{message}")


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ("[table]\ncolumns = 'id INT'\n[tables.u]\ncolumns = 'id INT'\n", ": has [table] and [tables]; one table t or several named ones, not both"),
        ("[tables]\n", ":6: [tables] is empty"),
        (TABLES.format("'a b'"), ":8: table 'a b': a name is letters, digits and _"),
        (TABLES.format("U"), ":8: tables 'u' and 'U' have one name; SQL ignores case"),
        ("[tables]\nt = 3\n", ":7: tables.t is 3; expected a table"),
    ],
)  # fmt: skip
def test_several_tables(refusal, tables, message):
    start, end = LITMUS.index("[table]"), LITMUS.index("[transactions]")
    Path("bad.toml").write_text(LITMUS[:start] + tables + LITMUS[end:])
    assert refusal(*RUN).startswith(f"bad.toml{message}")


def test_an_init_statement_that_fails(refusal):
    text = changed(LITMUS, '(1, 0)"]', '(2147483647, 0)", "UPDATE t SET id = id + 1"]')
    Path("bad.toml").write_text(text)
    for words in (RUN, CHECK):
        assert (
            refusal(*words)
            == "bad: init statement 'UPDATE t SET id = id + 1' fails with SparkArithmeticException:"
            " 2147483648 does not fit into INT"
        )


def test_a_column_may_have_a_reserved_name(call):
    """One that the reader of SQL lets through; DuckDB, which checks the serial orders, minds
    more.
    """
    Path("bad.toml").write_text(LITMUS.replace("id", "desc"))
    assert call(*RUN)[0] == 0


def test_a_protocol_of_one_s_own_beside_the_file(call):
    Path("bad.toml").write_text(changed(LITMUS, "[expect.delta-serializable]", "[expect.mine]"))
    Path("mine.cat").write_text('"Mine" empty unseen & adds-meets-reads as Refused')
    status, out, err = call(*RUN, "--protocol", "mine.cat")
    assert (status, err) == (1, "")
    assert "a: expected ConcurrentAppendException, got Refused" in out


def test_a_version_that_the_run_does_not_have_is_a_difference(call):
    Path("bad.toml").write_text(changed(LITMUS, "versions = { 1 =", "versions = { 9 ="))
    status, out, _ = call(*RUN)
    assert status == 1
    assert "version 9: expected, but the run ends at version 1" in out


# Scope files


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "S"\n', "", ": the file needs 'title' (a string)"),
        ("[scope]", "[scop]", ":5: the file has no key 'scop'; did you mean 'scope'?"),
        ("transactions = 1", "transactions = 0", ":6: scope.transactions is 0; expected an integer from 1 to 8, or a list of them"),
        ("transactions = 1", "transactions = [1, 9]", ":6: scope.transactions is [1, 9]; expected an integer from 1 to 8"),
        ("transactions = 1", "transactions = true", ":6: scope.transactions is True; expected an integer from 1 to 8"),
        ("transactions = 1\n", "", ":5: scope.transactions is None; expected an integer from 1 to 8"),
        ("transactions = 1", "transaction = 1", ":6: [scope] has no key 'transaction'; did you mean 'transactions'?"),
        ("statements =", "statments =", ":7: [scope] has no key 'statments'; did you mean 'statements'?"),
        ('statements = ["INSERT INTO t VALUES ({fresh})", "DELETE FROM t WHERE id = 1"]', "statements = []", ":7: scope.statements is empty"),
        ('statements = ["INSERT INTO t VALUES ({fresh})", "DELETE FROM t WHERE id = 1"]', "statements = [1]", ":7: scope.statements holds 1; expected strings"),
        ("({fresh})", "({frehs})", ":7, in statements:1:24: "),
        ("DELETE FROM t WHERE id = 1", "SELECT id FROM t WHERE id = 1", ":7: scope.statements holds a query, 'SELECT id FROM t WHERE id = 1'; put it into scope.readers"),
        ("SELECT id FROM t", "DELETE FROM t", ":8: scope.readers holds a statement that writes, 'DELETE FROM t'"),
        ("SELECT id FROM t", "SELECT ids FROM t", ":8, in readers:1:8: unknown column 'ids'; did you mean 'id'?\n"),
        ('["delta-serializable"]', "3", ":9: scope.protocols is 3; expected a list"),
        ('["delta-serializable"]', '["delta-serialisable"]', ":9: scope.protocols names no protocol: 'delta-serialisable'; did you mean 'delta-serializable'?"),
        ('["serializable"]', "[3]", ":10: scope.levels holds 3; expected strings"),
        ('["serializable"]', '["serialisable"]', ":10: scope.levels names no level: 'serialisable'; did you mean 'serializable'?"),
        ('noops = "skip"', "noops = true", ":11: scope.noops is True; expected a string"),
        ('noops = "skip"', 'noops = "drop"', ":11: scope.noops is 'drop'; expected 'skip' or 'keep'"),
    ],
)  # fmt: skip
def test_scope_files(refusal, old, new, message):
    Path("bad.toml").write_text(changed(SCOPE, old, new))
    assert refusal(*SEPARATE, "--universe", "bad.toml").startswith(f"bad.toml{message}")


@pytest.mark.slow
def test_scopes_that_cannot_be_swept(refusal, monkeypatch):
    monkeypatch.setattr(import_module("isolitmus.checker.sweeps.table_sweep"), "SAMPLE", 0.1)
    Path("lines.toml").write_text(changed(SCOPE, ', "DELETE FROM t WHERE id = 1"', ',\n"DELETE FROM t",\n"DELETE FROM u"'))  # fmt: skip
    assert refusal("sweep", "lines.toml").startswith(
        "lines.toml:9, in statements:1:13: unknown table 'u'"
    )
    Path("init.toml").write_text(changed(SCOPE, "VALUES (1)", "VALUES (3000000000)"))
    assert "scope init: init statement 'INSERT INTO t VALUES (3000000000)' fails with SparkArithmetic" in refusal("sweep", "init.toml")  # fmt: skip
    large = refusal("sweep", "two-partitions", "--transactions", "5", "--limit", "1000", "--cores", "1")  # fmt: skip
    assert "4,033,680 candidates with 5 transactions, more than the limit of 1,000; on 1 core this takes about" in large  # fmt: skip
    assert large.endswith("; to run it, add --limit 4033680")


# Abstract histories: the defects are in tests/model/test_history.py


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("r(x0) w(x1)", "r(x0) w(x2)", ":3: w(x2) of T1: the version x2 is T2's; T1 writes x1"),
        ("r(x0) w(x1)", "r(x0) w(x1) w(x1)", ":3: T1 has w(x1) and then w(x1); the last version that it wrote is x1"),
        ("r(P: x0*)", "r(P: x0* | y1)", ":4: r(P: x0* | y1) of T2 says whether y1 matches, but T1 has no w(y1)"),
        ('["x1 < x2"]', '["x1 < x3"]', ":6: order x1 < x3 names x3, but T3 has no w(x3)"),
        ("aborted = []", 'schedule = "T1.start T1.end T1[2] T2"', ":7: schedule: T1.end, which is number 2, comes before T1[2], number 3; a transaction starts"),
        ("aborted = []", 'schedule = "T1.end T1.start T2"', ":7: schedule: T1.end, which is number 1, comes before T1.start, number 2; a transaction starts"),
        ("aborted = []", 'schedule = "T1 T3"', ":7: schedule: T3.start is of T3, which does nothing here; known: T1, T2"),
        ("r(x0) w(x1)", "r(x0) w(x1", ":3: T1, column 7: 'w(x1' is not an operation; use r(x0), w(x1)"),
        ("r(x0) w(x1)", "w(x" + "9" * 5000 + ")", ":3: T1, column 3: 'x9999"),
        ("w(x2)", "w(x²)", ":4: T2, column 13: 'x²' is not a version; write an object and a transaction's number, x0\n"),
        ("T2 =", "S2 =", ":4: history has no key 'S2'; known: T1, aborted, order, schedule, sessions, sets, unknown"),
        ('"r(x0) w(x1)"', "3", ":3: T1 is 3; expected a string such as 'r(x0) w(x1)'"),
        ('["T1 T2"]', '["T1 T3"]', ":3: session 1 has T3, which does nothing here; known: T1, T2"),
        ('["T1 T2"]', '"T1 T2"', ":5: sessions is 'T1 T2'; expected a list of strings"),
        ('["x1 < x2"]', '["x1 < x2", "x2 < x1"]', ":6: order x2 < x1 contradicts x1 < x2 before it"),
        ('["x1 < x2"]', '["x1"]', ":6: order 'x1' is not a chain of versions; write x0 < x2 < x1"),
        ("aborted = []", 'sets = { Mine = ["T3"] }', ":7: sets.Mine has T3, which does nothing here; known: T1, T2"),
        ("aborted = []", 'sets = { Mine = "T1" }', ":7: sets.Mine is 'T1'; expected a list of strings"),
        ("aborted = []", 'sets = { Writer = ["T1"] }', ":7: sets: 'Writer' is a base set of every spec"),
        ("aborted = []", "sets = []", ":7: sets is []; expected names of sets"),
        ("aborted = []", 'aborted = ["T3"]', ":7: aborted: there is no transaction T3; known: T1, T2"),
        ("aborted = []", 'aborted = ["T2"]', ":6: order x1 < x2 names x2, but T2 aborted"),
        ("[expect]", "[expected]", ":8: the file has no key 'expected'; did you mean 'expect'?"),
        ("holds = []", "hold = []", ":9: [expect] has no key 'hold'; did you mean 'holds'?"),
        ('["serializable"]', '["serialisable"]', ":10: expect.fails names no level: 'serialisable'; did you mean 'serializable'?"),
        ("[history]", "schedule = ''\n[history]", ":2: the file has no key 'schedule'"),
    ],
)  # fmt: skip
def test_histories(refusal, old, new, message):
    Path("bad.toml").write_text(changed(HISTORY, old, new))
    assert refusal(*CHECK).startswith(f"bad.toml{message}")


@pytest.mark.slow
def test_the_program_itself_says_it_so(tmp_path):
    """As a process: nothing on standard output, no traceback on standard error."""
    program = Path(sys.executable).with_name("isolitmus")
    done = subprocess.run(
        [program, "run", "reordr"], check=False, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(r"isolitmus: unknown litmus test 'reordr'; [^\n]*\n", done.stderr)


@pytest.mark.slow
def test_a_terminal_without_the_signs_of_a_picture_gets_others():
    program = Path(sys.executable).with_name("isolitmus")
    done = subprocess.run(
        [program, "run", "reorder"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "delete  ?????" in done.stdout


def test_what_the_model_cannot_compute_refuses_no_file(call, tmp_path):
    """Its run is undecided, with the part that is to blame, and the other file's is carried out."""
    sql = "DELETE FROM t WHERE part RLIKE 'x{2}'"
    path = tmp_path / "unknown.toml"
    path.write_text(
        'title = "a"\nschedule = "a"\n[table]\ncolumns = "id INT, part STRING"\n[transactions]\n'
        f'a = "{sql}"\n'
    )
    status, out, err = call("run", str(path), "reorder", "--protocol", "delta-serializable")
    assert (status, err) == (3, "")
    assert f"Reason: '{sql}': what 'part RLIKE 'x{{2}}'' gives is not modelled: " in out
    assert "a  possible: no-op or an error of its own" in out
    assert "1 of 1 run passed. 1 undecided: several runs are possible." in out
