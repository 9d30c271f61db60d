"""Files of every kind that users give, damaged: a command succeeds, or says one sentence; it never
ends in a traceback, hangs, or lets a file speak to the terminal.

As many of each kind are tried as Hypothesis tries examples, drawn by the seed of the run.
"""

import json
import os
import re
import signal
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import settings

from isolitmus import conformance
from isolitmus import specs as package
from isolitmus.checker.auditing.diagnosis import explain
from isolitmus.checker.auditing.log_audit import audit
from isolitmus.checker.render.diagnosis import diagnosis_lines
from isolitmus.histories.blackbox.check import check_recorded
from isolitmus.histories.blackbox.events import has_times
from isolitmus.histories.readers.recorded_history import recorded_history
from isolitmus.jobs.readers.function_records import FunctionRecord
from isolitmus.jobs.readers.function_targets import FunctionTarget
from isolitmus.jobs.readers.lint_settings import LintSettings, read_settings
from isolitmus.jobs.readers.lint_sources import read_lint_sources
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.jobs.sql.invariant_text import read_invariants_of
from isolitmus.model.budget import Budget
from isolitmus.model.errors import IsolitmusError, printable
from isolitmus.specs.files.catalogue import matrix
from isolitmus.specs.files.evidence_files import ExplorationEvidence, MatrixEvidence
from isolitmus.specs.files.spec_catalogue import protocols

HOME, EVIDENCE = Path(package.__file__).parent, Path(conformance.__file__).parent / "evidence"
TRIES = settings.default.max_examples
SECONDS = 20
"""So long may one command take."""


def texts(folder, pattern):
    return [path.read_text("utf-8") for path in sorted(folder.glob(pattern))]


SPECS, SCOPES = texts(HOME, "**/*.cat"), texts(HOME / "scopes", "**/*.toml")
TESTS = texts(HOME / "litmus", "**/*.toml")
HISTORIES = [text for text in TESTS if "[history]" in text]
RAW = [text for text in TESTS if "removes" in text or "reads = [" in text]
CLIENTS = [text for text in TESTS if "let = " in text or "before = " in text or "conf = " in text]
CLAIMS = [
    "title = 'T'\n" + claim
    for text in texts(HOME / "claims", "*.toml")
    for claim in re.split(r"(?m)^(?=\[[DNQ]\d)", text)[1:]
]
WORKLOADS = texts(HOME / "workloads", "*.toml")
TABLES = "CREATE TABLE t (id INT, part INT, x BIGINT) USING delta PARTITIONED BY (part)"
STATEMENTS = [
    TABLES,
    "DELETE FROM t WHERE id IN (1, 2) AND part = :part",
    "INSERT INTO t (id, part, x) VALUES (:id, :part, 1), (2, 0, NULL)",
    "INSERT INTO t REPLACE WHERE part = 1 SELECT * FROM t WHERE part = 0",
    "UPDATE t SET x = x + 1, id = :id WHERE id BETWEEN 1 AND 2 OR x IS NULL",
    (
        "WITH a AS (SELECT id FROM t) SELECT count(*), max(t.x) FROM t JOIN a ON a.id = t.id GROUP"
        " BY part HAVING count(*) > 1"
    ),
    (
        "MERGE INTO t USING (SELECT :id AS id, 0 AS part, 1 AS x) s ON t.id = s.id WHEN MATCHED AND"
        " s.x > 1 THEN UPDATE SET x = s.x WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT"
        " (id, part, x) VALUES (s.id, s.part, s.x)"
    ),
    (
        "SELECT map('a', id)['a'], struct(id).col1, CASE id WHEN 1 THEN 2 ELSE 3 END, CAST(x AS"
        " STRING), id::INT FROM t AS b"
    ),
    "OPTIMIZE t WHERE part = 0 ZORDER BY (id)",
]
WORDS = [
    "0", "1", "-1", "2147483647", "2147483648", "-9223372036854775808", "9223372036854775808", "9" * 5000,
    "1.5", "nan", "true", "null", '""', '"t"', '"a"', '"\\u001b[31m\\n"', '"id"', '"1"', "[]", "{}", "[[]]",
    "[1]", '["t"]', '{"a": 1}', "{ a = 1 }", "{ null = true }", "07:32:00", "2020-01-01", "2020-01-01T00:00:00",
    "'INT'", '"committed"', "[" * 300, "{" * 300, '{"a":' * 300,
]  # fmt: skip
PIECES = [
    "'", '"', "\\", "(", ")", "[", "]", "{", "}", ",", ".", "=", ":", "*", "~", "|", ";", "&", "\n", "\t", "\0",
    "\x1b[31m", "\u202e", "é", "𝔸", " as ", " let ", "NULL", "SELECT", " WHERE ", "t", "x1", "T1", "a.start", "--", "/*",
    "[table]", "[history]", "(*", "*)", 'include "stdlib.cat"', "NOT " * 200, "(" * 300, "x" * 3000,
]  # fmt: skip
VALUE = re.compile(r"(?<=[=:])\s*[^\s=:,][^\n,]*|(?<=[\[(,])\s*[^\s,\])]+")
NUMBER = re.compile(r"\d+")
STRING = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'")
TOKEN = re.compile(r"'[^']*'|\w+|\s+|[^\w\s]")
TOKENS = [
    "(", ")", "()", ",", ".", "..", ";", "'", "`", "[", "]", ":", ":p", "?", "*", "=", "<=>", "::", "->", "||", "--", "/*", "0", "-1",
    "9" * 30, "NULL", "DEFAULT", "USING", "AS", "ON", "IN ()", "NOT", "DISTINCT", "INTERVAL", "CAST", "map", "struct", "array",
    "VALUES", "UNION", "WITH", "SET", "WHEN", "MATCHED", "THEN", "PARTITION", "a.b.c.d", "SELECT", "FROM", "WHERE", "GROUP BY",
]  # fmt: skip


def attempts(what, seed):
    """Yield a random generator for each attempt at something, other ones with each seed."""
    return (Random(f"{what} {seed} {attempt}") for attempt in range(TRIES))


def respelled(random, text):
    """A statement without some token, with one twice, or with another one there."""
    tokens = TOKEN.findall(text)
    for _ in range(random.choice([1, 1, 1, 2, 3]) if tokens else 0):
        k, n = random.randrange(len(tokens)), random.randrange(len(tokens))
        match random.randrange(5):
            case 0:
                del tokens[k : k + random.choice([1, 1, 3, 9])]
            case 1:
                tokens.insert(k, tokens[k])
            case 2:
                tokens[k] = random.choice(TOKENS)
            case 3:
                tokens.insert(k, f" {random.choice(TOKENS)} ")
            case 4:
                tokens[k], tokens[n] = tokens[n], tokens[k]
        if not tokens:
            break
    return "".join(tokens)


def mutated(random, some):
    """One of some texts with a few changes, of which most leave it nearly right."""
    text = random.choice(some)
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        match random.randrange(9):
            case 8:
                found = list(STRING.finditer(text))
                if found:
                    one = random.choice(found)
                    inside = respelled(random, one[0][1:-1]).replace(one[0][0], "")
                    text = f"{text[: one.start() + 1]}{inside}{text[one.end() - 1 :]}"
            case 0:
                start = random.randrange(len(text) + 1)
                text = text[:start] + random.choice(PIECES) + text[start + random.randrange(9) :]
            case 1 | 2:
                text = replaced(random, text, VALUE, random.choice(WORDS))
            case 3:
                text = replaced(random, text, NUMBER, random.choice(WORDS[:8]))
            case 4:
                others = STRING.findall(random.choice(some)) or ['""']
                text = replaced(random, text, STRING, random.choice(others))
            case 5:
                lines = text.split("\n")
                del lines[random.randrange(len(lines))]
                text = "\n".join(lines)
            case 6:
                lines, others = text.split("\n"), random.choice(some).split("\n")
                lines.insert(random.randrange(len(lines)), random.choice(others))
                text = "\n".join(lines)
            case 7:
                lines = text.split("\n")
                k, n = random.randrange(len(lines)), random.randrange(len(lines))
                lines[k], lines[n] = lines[n], lines[k]
                text = "\n".join(lines)
    return text


def replaced(random, text, pattern, word):
    found = list(pattern.finditer(text))
    if not found:
        return text + word
    one = random.choice(found)
    return f"{text[: one.start()]} {word}{text[one.end() :]}"


def logs(logs_in, folder):
    """The files of some logs, by name: commits, and a checkpoint in JSON."""
    made = logs_in(folder)
    made.table(
        made.append(0, "f"),
        made.append(1, "g", 1, (1, 2)),
        made.delete(1, "(id#1 = 5)", "f"),
        [made.info("MERGE", 2, False, predicate='["(id = 1)"]'), made.remove("g", 1), made.add("h", 1)],
        [made.info("WRITE", 3, False, mode="Overwrite"), made.remove("h", 1), made.add("i", 0)],
    )  # fmt: skip
    files = {p.name: p.read_text() for p in sorted((made.folder / "t/_delta_log").glob("*.json"))}
    start = [json.loads(line) for line in files[f"{0:020}.json"].splitlines()]
    state = [*start[1:], made.add("f"), made.add("g", 1), {"checkpointMetadata": {"version": 2}}]
    lines = "".join(json.dumps(action) + "\n" for action in state)
    return files, {**dict(list(files.items())[3:]), f"{2:020}.checkpoint.a.json": lines}


COMMANDS = {
    "spec": (SPECS, "bad.cat", [
        "check reorder history-write-skew --level bad.cat", "show bad.cat", "run reorder --protocol bad.cat",
        "separate bad.cat serializable --transactions 2 --time 2", "show reorder --spec bad.cat",
    ]),
    "scope": (SCOPES, "bad.toml", [
        "sweep bad.toml --transactions 1..2 --limit 500 --cores 1 --json", "show bad.toml",
        "separate causal serializable --universe bad.toml --transactions 2 --time 2",
        "separate locking-read-committed row-once --universe bad.toml --transactions 2 --time 2",
    ]),
    "litmus": (TESTS, "bad.toml", ["run bad.toml", "check bad.toml --level serializable,causal", "show bad.toml"]),
    "history": (HISTORIES, "bad.toml", ["check bad.toml --level serializable,causal --json", "show bad.toml"]),
    "raw": (RAW, "bad.toml", ["run bad.toml --json", "show bad.toml"]),
    "client": (CLIENTS, "bad.toml", ["run bad.toml", "show bad.toml --json"]),
    "claims": (CLAIMS, "bad.toml", ["claims bad.toml", "claims bad.toml --json"]),
    "matrix": (texts(HOME / "matrices", "*.toml"), "bad.toml", ["matrix bad.toml --sample 3", "matrix bad.toml --shard 1/300 --json"]),
}  # fmt: skip


@pytest.fixture
def said(call, monkeypatch, tmp_path):
    """said(words): what a command says, in time."""
    monkeypatch.chdir(tmp_path)

    def late(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)

    def said(words):
        signal.alarm(SECONDS)
        try:
            status, out, err = call(*words.split())
        finally:
            signal.alarm(0)
        assert status in (0, 1, 2, 3)
        assert printable((out + err).replace("\n", "")) == (out + err).replace("\n", "")
        if status == 2:
            *sentences, last = [line for line in err.split("\n")[:-1] if line[0] != " "]
            assert all(line.startswith("isolitmus: ") for line in (*sentences, last)), err

    yield said
    signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
@pytest.mark.parametrize("kind", COMMANDS)
def test_a_damaged_file(said, kind, seed):
    some, name, commands = COMMANDS[kind]
    for random in attempts(kind, seed):
        Path(name).write_text(mutated(random, some), "utf-8")
        said(random.choice(commands))


def refused_in_a_sentence(read):
    """What a reader gives; None if it refuses, in one sentence."""
    try:
        return read()
    except IsolitmusError as error:
        said = str(error).replace("\n", "")
        assert said and printable(said) == said
        return None


def test_damaged_statements_of_jobs(tmp_path, seed):
    whole, job, ddl = [], tmp_path / "job.sql", tmp_path / "tables.ddl"
    for random in attempts("statements", seed):
        for _ in range(4):
            text = random.choice(STATEMENTS[1:])
            other = random.randrange(4) == 0
            ddl.write_text(respelled(random, TABLES) if other else TABLES, "utf-8")
            job.write_text(text if other else respelled(random, text), "utf-8")
            whole.append(refused_in_a_sentence(lambda: workload(str(job), ddl=ddl)))
    assert any(whole)


def test_a_damaged_workload(tmp_path, seed):
    path, whole = tmp_path / "bad.toml", 0
    for random in attempts("workload", seed):
        path.write_text(mutated(random, WORKLOADS), "utf-8")
        whole += refused_in_a_sentence(lambda: workload(str(path))) is not None
    assert whole < TRIES, "nothing was damaged"


def test_a_damaged_log(said, logs_in, tmp_path, seed):
    kinds = logs(logs_in, tmp_path / "whole")
    log = tmp_path / "t" / "_delta_log"
    log.mkdir(parents=True)
    for random in attempts("log", seed):
        files = random.choice(kinds)
        for path in log.iterdir():
            path.unlink()
        damaged = random.choice(list(files))
        for name, text in files.items():
            changed = mutated(random, list(files.values())) if name == damaged else text
            (log / name).write_text(changed, "utf-8")
        if random.randrange(8) == 0:
            (log / "_last_checkpoint").write_text(mutated(random, ['{"version": 2, "size": 3}']))
        said(
            random.choice(
                ["audit t", "audit t --json --html page.html", "check t --level serializable"]
            )
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pairs.toml", "random.toml"])
def test_damaged_evidence(name, tmp_path, seed):
    pairs, known = matrix("pairs"), protocols()
    some, path = [(EVIDENCE / name).read_text("utf-8")], tmp_path / name
    for random in attempts(name, seed):
        path.write_text(mutated(random, some), "utf-8")
        try:
            found = (
                MatrixEvidence.read(path, pairs, known)
                if name == "pairs.toml"
                else ExplorationEvidence.read(path, ("tables", "raw"))
            )
            found.write(path)
        except IsolitmusError as error:
            assert printable(str(error).replace("\n", "")) == str(error).replace("\n", "")


# Doors: files in a folder of a user, one of them damaged

DATA = Path(__file__).parents[1] / "data"
JSON_VALUES = [
    None, True, 0, -1, 1.5, 10**30, "", "x", "a\0b", "1", [], [[]], ["x"], [None], {}, {"a": 1},
]  # fmt: skip
NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": ["# %sql"]},
        {
            "cell_type": "code", "metadata": {}, "outputs": [],
            "source": ["%sql\n", "DELETE FROM t WHERE part = 1"],
        },
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": "spark.sql('SELECT 1')"},
    ],
    "metadata": {"language_info": {"name": "python"}, "kernelspec": {"name": "python3"}},
    "nbformat": 4,
}  # fmt: skip
COMMIT = {
    "timestamp": 1, "operation": "WRITE", "operationParameters": {"predicate": "[]"},
    "readVersion": 1, "isolationLevel": "Serializable", "isBlindAppend": True, "txnId": "x",
}  # fmt: skip
MESSAGE = (
    "io.delta.exceptions.ConcurrentAppendException: [DELTA_CONCURRENT_APPEND.WITHOUT_HINT] Files"
    " were added to partition [part=1] by a concurrent update. Please try the operation again.\n"
    "Conflicting commit: "
)
RECORDING = (
    "SELECT count(*) AS n FROM t;INSERT INTO t VALUES (1, :n, 2);DELETE FROM t WHERE id = :n"
)
SETTINGS = (
    "[tool.isolitmus]\npaths = ['jobs']\nlevel = 'Serializable'\nselect = ['ISO2']\n"
    "exclude = ['**/old_*.sql', 'a*b']\nddl = 'tables.sql'\n[tool.isolitmus.per-file-ignores]\n"
    "'a/**' = ['ISO201']\n"
)
KEPT = [
    "unique(id)", "not null(part)", "check(x >= 0)", "count per part <= 3 where x > 0",
    "id references t(part)", "sum(x) unchanged", "t: sum(x) <= before(x) where id > 1",
    "SELECT * FROM t WHERE NOT EXISTS (SELECT 1 FROM t AS u WHERE u.id = t.part)",
    "SELECT part FROM t GROUP BY part HAVING count(*) > 1",
]  # fmt: skip
DBCOP = [
    [{"events": [{"write": True, "variable": 0, "value": 1, "success": True}], "success": True}],
    [{"events": [{"write": False, "variable": 0, "value": 1, "success": True}], "success": True}],
]
EDN = """\
{:type :invoke, :f :txn, :value [[:w y 2]], :process 0}
{:type :ok, :f :txn, :value [[:w y 2]], :process 0}
{:type :invoke, :f :txn, :value [[:r y nil]], :process 4}
{:type :ok, :f :txn, :value [[:r y 2]], :process 4}
{:type :info, :f :txn, :value [[:w y 2]], :process 2}
"""
PLUME = "r(0,1,0,0)\nw(0,2,0,0)\nr(0,2,1,1)\n"
RECORDED = {"history": [json.dumps(DBCOP), EDN, PLUME]}


def project(folder, pattern="*"):
    """The texts of a project in the tests' data, by path."""
    return {
        path.relative_to(DATA / folder).as_posix(): [path.read_text("utf-8")]
        for path in sorted((DATA / folder).rglob(pattern))
        if path.is_file()
    }


def sources(folder):
    """What lint reads of a folder."""
    settings = replace(LintSettings(folder), ddl=folder / "ddl.sql")
    return read_lint_sources([str(folder)], settings)


def checked(folder):
    """The verdicts on a history."""
    history = recorded_history(folder / "history")
    levels = ["strict-serializable", "causal"] if has_times(history.registers) else ["causal"]
    return check_recorded("history", history, levels, budget=Budget(5))


def record(folder):
    """The workload of a function that executed a query and some statements."""
    target = FunctionTarget(folder / "job.py", "load", 1, "job.py:load")
    query, *statements = (folder / "recording").read_text("utf-8").split(";")
    steps = [
        {"kind": "read", "line": 2, "sql": query, "name": "n", "call": "count()", "tables": ["t"]},
        *(
            {"kind": "statement", "line": line, "sql": sql}
            for line, sql in enumerate(statements, 3)
        ),
    ]
    records = FunctionRecord.of_paths(target, [steps], more=False)
    return workload(ddl=folder / "ddl.sql", run=lambda _: records)


def kept(folder):
    """The invariants in a file, of a table."""
    tables = workload(str(folder / "job.sql"), ddl=folder / "ddl.sql").tables
    return [*read_invariants_of((folder / "kept.txt").read_text("utf-8"), tables, ["t"])]


def explained(folder):
    """The lines about the text of an exception."""
    return [*diagnosis_lines(explain((folder / "error.txt").read_text("utf-8")))]


SQL = {"ddl.sql": [TABLES], "job.sql": STATEMENTS[1:]}
DOORS = {
    "sql": (SQL, sources),
    "dbt": (project("dbt/shop", "*.json") | project("dbt/shop", "*.yml"), lambda at: workload(str(at))),
    "bundle": (project("bundle"), lambda at: workload(str(at))),
    "notebook": (SQL | {"a.ipynb": [json.dumps(NOTEBOOK)]}, sources),
    "source": (SQL | {"b.py": [(DATA / "bundle/notebooks/report.py").read_text("utf-8")]}, sources),
    "recording": ({"ddl.sql": [TABLES], "recording": [RECORDING]}, record),
    "history": (RECORDED, checked),
    "exception": ({"error.txt": [MESSAGE + json.dumps(COMMIT)]}, explained),
    "invariant": (SQL | {"kept.txt": KEPT}, kept),
    "settings": ({"pyproject.toml": [SETTINGS]}, lambda at: read_settings(at / "pyproject.toml")),
}  # fmt: skip


def mistyped(random, text):
    """A text with JSON, a line or the whole, in which a value has another type."""
    head, brace, rest = text.partition("{")
    try:
        document = json.loads(rest if not brace else brace + rest if head == MESSAGE else text)
    except ValueError:
        return mutated(random, [text])
    known = [*places(document)]
    *path, last = random.choice(known) if known else [None]
    holder = document
    for key in path:
        holder = holder[key]
    if known:
        holder[last] = random.choice(JSON_VALUES)
    return (head if head == MESSAGE else "") + json.dumps(document)


def places(document, path=()):
    """Every place in a document, as keys from its root."""
    inner = document.items() if isinstance(document, dict) else enumerate(document)
    for key, part in inner:
        yield (*path, key)
        if isinstance(part, dict | list):
            yield from places(part, (*path, key))


def enter(door, random, folder):
    """Write the files of a door, one of them damaged, and read them."""
    files, read_folder = DOORS[door]
    damaged = random.choice([*files])
    for name, texts in files.items():
        text = random.choice(texts)
        if name == damaged:
            change = random.choice([mistyped, mutated, respelled])
            text = change(random, [text]) if change is mutated else change(random, text)
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", "replace")
    return refused_in_a_sentence(lambda: read_folder(folder))


@pytest.fixture
def clock():
    """clock(seconds): a TimeoutError so much later."""

    def late(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    yield signal.alarm
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("door", DOORS)
def test_a_damaged_file_at_each_door(door, tmp_path, clock, seed):
    whole = 0
    for random in attempts(door, seed):
        clock(SECONDS)
        whole += enter(door, random, tmp_path / "files") is not None
    assert whole or TRIES < 30  # about a sixth of the damaged files are read


FIELDS = {
    "commitInfo": {**COMMIT, "engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0"},
    "protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["v2Checkpoint"],
                 "writerFeatures": ["v2Checkpoint"]},
    "metaData": {
        "id": "x", "name": "t", "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({
            "type": "struct", "fields": [
                {"name": "id", "type": "integer", "nullable": True, "metadata": {}}]}),
        "partitionColumns": ["id"], "createdTime": 1,
        "configuration": {"delta.isolationLevel": "Serializable", "team": "us"},
    },
    "add": {"path": "f", "size": 1, "partitionValues": {"id": "1"}, "modificationTime": 1,
            "dataChange": True, "stats": '{"numRecords": 1, "minValues": {"id": 1}}',
            "deletionVector": {"storageType": "u", "pathOrInlineDv": "x", "offset": 1,
                               "sizeInBytes": 1, "cardinality": 1}},
}  # fmt: skip


def test_each_field_of_a_log_with_a_value_of_another_type(tmp_path, clock):
    log, job = tmp_path / "t" / "_delta_log", tmp_path / "job.sql"
    log.mkdir(parents=True)
    job.write_text("DELETE FROM t WHERE id = 1", "utf-8")
    whole = 0
    for where in places(FIELDS):
        for value in JSON_VALUES[:2] + JSON_VALUES[2::4]:
            clock(SECONDS)
            actions = json.loads(json.dumps(FIELDS))
            holder = actions
            for key in where[:-1]:
                holder = holder[key]
            holder[where[-1]] = value
            lines = "".join(json.dumps({name: one}) + "\n" for name, one in actions.items())
            (log / f"{0:020}.json").write_text(lines, "utf-8")
            whole += refused_in_a_sentence(lambda: audit(tmp_path / "t")) is not None
            refused_in_a_sentence(lambda: workload(str(job), tables=[f"t={tmp_path / 't'}"]))
    assert whole


def test_a_value_of_another_type_in_the_settings_of_a_table(tmp_path, call):
    log, job = tmp_path / "t" / "_delta_log", tmp_path / "job.sql"
    log.mkdir(parents=True)
    job.write_text("DELETE FROM t WHERE id = 1", "utf-8")
    actions = json.loads(json.dumps(FIELDS))
    actions["protocol"] = {"minReaderVersion": 1, "minWriterVersion": 2}
    actions["metaData"]["configuration"]["delta.isolationLevel"] = 5
    lines = "".join(json.dumps({name: one}) + "\n" for name, one in actions.items())
    (log / f"{0:020}.json").write_text(lines, "utf-8")
    status, _, err = call("predict", str(job), "--table", str(tmp_path / "t"))
    assert status == 2
    assert "its delta.isolationLevel is '5'; known: Serializable" in err


def test_a_file_name_that_is_no_utf_8(tmp_path, call):
    (tmp_path / "ddl.sql").write_text(TABLES)
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff.sql")).write_text("DELETE FROM t WHERE x = 1")
    status, out, _ = call("lint", str(tmp_path), "--no-cache", "--as", "sarif")
    assert status in (0, 1)
    assert "a%FF.sql" in out


def test_a_subquery_without_from_in_an_invariant(tmp_path):
    text = "SELECT * FROM t WHERE NOT EXISTS (SELECT 1 WHERE id = 1)"
    for name, sql in {"ddl.sql": TABLES, "job.sql": STATEMENTS[1], "kept.txt": text}.items():
        (tmp_path / name).write_text(sql)
    with pytest.raises(IsolitmusError, match="a subquery is a SELECT"):
        kept(tmp_path)


def test_a_commit_whose_parameters_are_no_object(tmp_path):
    (tmp_path / "error.txt").write_text(MESSAGE + json.dumps(COMMIT | {"operationParameters": "x"}))
    assert explained(tmp_path)


# Fields of a log, each with values of every other type

WRONG = [None, 5, -1, 1.5, True, "x", "5", "", [], ["x"], [5], [None], {}, {"a": 1}, {"a": []}]
VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "x",
    "offset": 1,
    "sizeInBytes": 1,
    "cardinality": 1,
}


def typed_log(made):
    """Commits whose actions have each field that is read."""
    start = [
        made.info("CREATE TABLE", None, True),
        made.protocol(("deletionVectors", "domainMetadata")),
        made.metadata("WriteSerializable"),
    ]
    more = {"timestamp": 1, "txnId": "a", "operationMetrics": {"numOutputRows": "1"}}
    delete = made.info("DELETE", 1, False, predicate='["(id#1 = 5)"]')
    delete["commitInfo"] |= more | {"inCommitTimestamp": 1, "userMetadata": "x", "tags": {"a": "b"}}
    second = [
        delete,
        made.remove("f", deletionVector=VECTOR, deletionTimestamp=1, size=1, tags={"a": "b"}),
        made.add("f", deletionVector=VECTOR, size=1, modificationTime=1, baseRowId=1),
        {"txn": {"appId": "a", "version": 1, "lastUpdated": 1}},
        {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
        {"cdc": {"path": "c", "partitionValues": {"part": "1"}, "size": 1, "dataChange": False}},
    ]
    merge = made.info(
        "MERGE", 1, False, predicate='["(id = 1)"]', matchedPredicates='[{"actionType":"update"}]',
        notMatchedPredicates='[{"actionType":"insert"}]', mode="Append", partitionBy='["part"]',
        zOrderBy="[]", auto=False, statsOnLoad=False, properties='{"a":"b"}', version=1,
    )  # fmt: skip
    third = [merge, made.remove("f"), made.add("h")]
    return [start, made.append(0, "f"), second, third, made.append(2, "i", 1)]


def mistypings(value):
    """Documents in which one part has another type; texts of JSON are documents, too."""
    yield from WRONG
    if isinstance(value, str) and value[:1] in ("{", "["):
        yield from map(json.dumps, mistypings(json.loads(value)))
    parts = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, part in parts:
        for changed in mistypings(part):
            whole = value.copy()
            whole[key] = changed
            yield whole


QUESTIONS = [
    "audit t", "audit t --json", "explain error.txt --table t", "explain --table t --version 3",
    "explain error.txt --table t --json", "explain --table t --failed-after 2 --json",
]  # fmt: skip


FILES = [*(f"{version:020}.json" for version in range(5)), f"{2:020}.checkpoint.a.json"]


@pytest.mark.parametrize("name", [*FILES, "_last_checkpoint", "error.txt"])
def test_a_field_of_a_log_with_another_type(said, logs_in, tmp_path, name, seed):
    made = logs_in(tmp_path)
    log = made.table() / "_delta_log"
    for number, actions in enumerate(typed_log(made)):
        made.write(log, number, actions)
    Path("error.txt").write_text(MESSAGE + json.dumps(COMMIT), "utf-8")
    if "checkpoint" in name:
        for old in (0, 1):
            (log / f"{old:020}.json").unlink()
        start = [
            made.protocol(("deletionVectors", "domainMetadata")),
            made.metadata("WriteSerializable"),
        ]
        state = [
            *start,
            made.add("f", deletionVector=VECTOR),
            {"checkpointMetadata": {"version": 2}},
        ]
        lines = "".join(json.dumps(action) + "\n" for action in state)
        (log / f"{2:020}.checkpoint.a.json").write_text(lines)
        (log / "_last_checkpoint").write_text('{"version": 2, "size": 4, "parts": 1}')
    path = Path(name) if name == "error.txt" else log / name
    lines = path.read_text("utf-8").splitlines()
    changes = [
        (at, head, changed)
        for at, line in enumerate(lines)
        for head, brace, rest in [line.partition("{")]
        if brace
        for changed in mistypings(json.loads(brace + rest))
    ]
    for random in attempts(name, seed):
        at, head, changed = random.choice(changes)
        path.write_text("\n".join([*lines[:at], head + json.dumps(changed), *lines[at + 1 :]]))
        said(random.choice(QUESTIONS))
