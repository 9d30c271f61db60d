"""docs/interface.md says what there is: commands, keys of files, keys of documents."""

import json
import re
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.main import get_command

from isolitmus.claims import claims_file
from isolitmus.cli.main import FUNCTIONS, VERBS, VERBS_BY_DOOR, app, main
from isolitmus.specs.files import expectations, matrix_file

VERB = get_command(app).get_command
PAGE = (Path(__file__).parents[1] / "docs" / "interface.md").read_text("utf-8")
WORD = re.compile(r"`([\w-]+)`")


def table(heading):
    """The rows of the first table after these words: what the first cell says, the others."""
    (_, _, after) = PAGE.partition(heading)
    (rows,) = re.findall(r"\n\|[-|]+\|\n((?:\|.*\n)+)", after)[:1]
    return dict(re.findall(r"^\| (.*?) \| (.*) \|$", rows, re.MULTILINE))


def keys(heading):
    """The keys that the first cells of a table name."""
    return {key for first in table(heading) for key in WORD.findall(first)}


DOCUMENTS = {first: set(WORD.findall(rest)) for first, rest in table("## 6. JSON").items()}


def of(first):
    """The keys of a document, by how its row of the page begins."""
    (found,) = (keys for row, keys in DOCUMENTS.items() if row.startswith(first))
    return found


@pytest.fixture
def ask(monkeypatch, capsys):
    """A function that runs a command with --json, and gives its document."""

    def asked(*words):
        monkeypatch.setattr(sys, "argv", ["isolitmus", *words, "--json"])
        with pytest.raises(SystemExit):
            main()
        return json.loads(capsys.readouterr().out)

    return asked


def test_every_command_is_there():
    assert keys("## 1. Commands") == set(VERBS)
    options = {name: str([p.opts for p in VERB(None, name).params]) for name in VERBS}
    assert {name for name, those in options.items() if "--json" not in those} == {"install"}
    for limit in ("--time", "--memory"):
        assert [name for name, those in options.items() if limit not in those] == []


def test_the_document_of_every_command_is_there():
    rows = {verb for row in DOCUMENTS for verb in re.findall(r"^`(\w+)", row)}
    assert {*VERBS} - {"install"} <= rows


def test_every_form_of_a_verb_is_there():
    metavars = {
        name: {str(p.metavar) for p in VERB(None, name).params if "--as" in p.opts}
        for name in VERBS
    }
    has = {name: set(word.split("|")) for name, words in metavars.items() for word in words}
    assert {
        row.strip("`"): set(WORD.findall(rest.split(" | ")[0]))
        for row, rest in table("<!-- forms -->").items()
    } == has


@pytest.mark.slow
@pytest.mark.parametrize("name", VERBS)
def test_help_says_what_a_verb_does_and_what_its_exit_status_means(name):
    assert VERB(None, name).help.startswith(f"{VERBS[name]}\n\n")
    assert "xit status" in " ".join(VERB(None, name).help.split())
    assert "``" not in VERB(None, name).help


def test_a_verb_costs_a_file_and_two_lines(call, monkeypatch):
    def greet(who: str, *, loud: bool = False) -> int:
        """Exit status 1."""
        sys.stdout.write(f"hello {who}{'!' * loud}\n")
        return 1

    file = SimpleNamespace(greet=greet)
    monkeypatch.setitem(sys.modules, "isolitmus.cli.greet", file)
    monkeypatch.setitem(FUNCTIONS.shipped, "greet", "isolitmus.cli.greet:greet")
    monkeypatch.setattr(FUNCTIONS, "_known", dict(FUNCTIONS._known))  # the call adds it
    monkeypatch.setitem(VERBS, "greet", "Say hello.")
    monkeypatch.setitem(VERBS_BY_DOOR, "I greet", {"greet": "Say hello."})
    assert call("greet", "Ada", "--loud") == (1, "hello Ada!\n", "")
    assert "\nI greet:\n  greet  Say hello.\n" in call("--help")[1]
    status, _, err = call("gret", "Ada")
    assert (status, "did you mean 'greet'?" in err) == (2, True)


def test_every_key_of_a_file_is_there():
    assert keys("What may be expected") == expectations.KEYS
    assert keys("## 4. Scopes") == {
        "transactions", "statements", "readers", "protocols", "levels", "noops"
    }  # fmt: skip
    assert keys("<!-- keys: claims -->") == set(claims_file.KEYS)
    asked = {key for kind, more in claims_file.ASKED.items() for key in (kind, *more)}
    assert keys("<!-- keys: evidence -->") == {*asked, *claims_file.ABOUT}
    (_, _, matrices) = PAGE.partition("## 5. Matrices")
    assert set(WORD.findall(matrices)) >= set(matrix_file.OF_LAYOUT)


@pytest.mark.parametrize("name", ["pairs", "random"])
def test_every_key_of_evidence_is_there(name):
    path = Path(__file__).parents[1] / "conformance" / "evidence" / f"{name}.toml"
    evidence = tomllib.loads(path.read_text("utf-8"))
    inner = [key for batch in evidence.get("batches", ())[:1] for key in batch]
    (_, _, after) = PAGE.partition("## 5. Matrices")
    assert {*evidence, *inner} - {"grids"} <= set(WORD.findall(after))


def test_the_document_of_run(ask):
    done = ask("run", "reorder", "--protocol", "delta-serializable")
    assert set(done) == of("`run`")
    (run,) = done["runs"]
    assert set(run) == of("each of `runs`")
    assert set(run["transactions"]["delete"]) == of("each of `transactions`")
    both = ask("run", "reorder", "insert-last", "--protocol", "delta-serializable")
    assert [document["litmus"] for document in both] == ["reorder", "insert-last"]


def test_the_document_of_check(ask):
    (done,) = ask("check", "history-write-skew", "--level", "serializable")
    assert set(done) == of("`check`")
    (verdict,) = done["levels"].values()
    assert {*verdict, "reason"} == of("each of its `levels`") - {"unknown"}
    assert set(verdict["violation"]) == of("`violation`")
    assert set(verdict["violation"]["cycle"][0]) == of("each of `cycle`")


def test_the_document_of_separate(ask):
    size = ("--transactions", "2")
    assert set(ask("separate", "snapshot-isolation", "serializable", *size)) == of("`separate`")
    two = ask("separate", "snapshot-isolation", "serializable", *size, "--both")
    assert [set(answer) - of("`separate`") for answer in two] == [{"relation"}] * 2


@pytest.mark.slow
def test_the_document_of_compare(ask):
    done = ask("compare", "causal", "read-atomic", "--universe", "abstract")
    assert set(done) == of("`compare`")
    (lattice,) = done["lattices"]
    assert set(lattice) == of("each of its `lattices`")
    assert set(lattice["edges"][0]) == of("each of their `edges`")
    assert set(lattice["inclusions"][0]) == of("each of their `inclusions`")


@pytest.mark.slow
def test_the_document_of_sweep(ask):
    done = ask("sweep", "two-partitions", "--transactions", "2", "--cores", "1")
    assert set(done) == of("`sweep`")
    counts = done["protocols"]["delta-serializable"]
    assert set(counts) == of("each of its `protocols`")
    assert set(counts["levels"]["log-serializable"]) == of("each of their `levels`")


def test_the_documents_of_claims(ask):
    (claim,) = ask("claims", "D46")
    assert set(claim) == of("`claims`:")
    assert set(claim["evidence"][0]) == of("each of `evidence`")
    (done,) = ask("claims", "verify", "D46")
    assert set(done) == of("`claims verify`")
    assert set(done["answers"][0]) == of("each of `answers`")
    assert set(done["answers"][0]["engines"][0]) == of("each of `engines`")


@pytest.mark.slow
def test_the_documents_of_matrix_and_show(ask):
    cells = ask("matrix", "--sample", "1", "--protocol", "delta-serializable")
    assert set(cells[0]) == of("`matrix`")
    assert set(ask("show", "serializable")[0]) == of("`show`")
    assert set(ask("show", "reorder")[0]) - of("`show`") == {"frame", "values"}


@pytest.mark.slow
def test_the_documents_of_explain(ask, tmp_path, delta):
    (tmp_path / "error.txt").write_text("DELTA_CONCURRENT_APPEND")
    done = ask("explain", str(tmp_path / "error.txt"))
    assert set(done) == DOCUMENTS["`explain`"]
    assert set(done["winner"]) == of("its `winner`")
    assert set(done["example"]) == of("its `example`")
    stopped = ask("explain", "--table", str(delta.table()), "--version", "0")
    assert set(stopped) == of("`explain` without")
    assert set(stopped["commits"][0]) == of("each of its `commits`")


@pytest.mark.slow
def test_the_document_of_export(ask, tmp_path):
    done = ask("export", "reorder", "--pytest", str(tmp_path / "test_reorder.py"))
    assert set(done) == of("`export`")
    assert set(done["written"][0]) == of("each of `written`")


def test_the_document_of_audit(ask, tmp_path):
    log = tmp_path / "_delta_log"
    log.mkdir()
    table = {"schemaString": '{"type":"struct","fields":[]}', "partitionColumns": []}
    level = {"delta.isolationLevel": "WriteSerializable"}
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    commits = [
        [{"protocol": protocol}, {"metaData": {**table, "configuration": {}}}],
        [{"metaData": {**table, "configuration": level}}],
    ]
    for version, actions in enumerate(commits):
        lines = "".join(json.dumps(action) + "\n" for action in actions)
        (log / f"{version:020}.json").write_text(lines)
    lines = tmp_path / "lines"
    (done,) = ask("audit", str(tmp_path), str(tmp_path / "nowhere"), "--jsonl", str(lines))
    written = [json.loads(line) for line in lines.read_text("utf-8").splitlines()]
    assert [line["event"] for line in written] == ["finding", "error", "round"]
    for line in written:
        assert set(line) == {"event", "time"} | of(f"event `{line['event']}`")
    assert set(done) == of("`audit`")
    assert set(done["findings"][0]) == of("each of `findings`")
    assert set(done["counts"][0]) == of("each of `counts`")
    for state in written[-1]["tables"]:
        assert set(state) == of("each of the `tables` of a round")


@pytest.mark.slow
def test_the_document_of_demo(ask, tmp_path):
    done = ask("demo", "--no-spark", "--out", str(tmp_path))
    assert set(done) == of("`demo`")
    assert {*done["separations"][0]} == of("`separate`")
