"""``--as``: what a verb has found, in another form on standard output."""

import csv
import json
import sys
from io import StringIO

import pytest

from isolitmus.checker import check, graph
from isolitmus.cli.main import main
from isolitmus.specs import level, litmus
from isolitmus.specs.disk.input_files import shipped_files

PICTURES = {"svg": "<svg ", "mermaid": "flowchart", "tikz": r"\begin{tikzpicture}"} | {
    "dot": "digraph {", "graphml": "<graphml "
}  # fmt: skip
DRAWING = {
    "show": ["reorder"],
    "check": ["reorder", "--level", "log-serializable"],
    "separate": ["snapshot-isolation", "serializable", "--transactions", "2"],
}
TABLES = {
    "show": (["levels"], "name"),
    "check": (["reorder", "history-write-skew", "--level", "serializable"], "verdict"),
    "matrix": (["--sample", "2"], "predicted"),
    "separate": (["read-committed", "--mutants"], "outcome"),
    "sweep": (["two-partitions", "--transactions", "1", "--cores", "1"], "admitted"),
}


@pytest.fixture
def say(monkeypatch, capsys):
    """A function that runs a command, and gives its exit status and what it printed on both
    streams.
    """

    def said(*words):
        monkeypatch.setattr(sys, "argv", ["isolitmus", *words])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code or 0, *capsys.readouterr()

    return said


@pytest.mark.slow
@pytest.mark.parametrize("form", PICTURES)
@pytest.mark.parametrize("verb", DRAWING)
def test_a_picture_is_all_that_is_printed(say, verb, form):
    status, out, err = say(verb, *DRAWING[verb], "--as", form)
    assert (status, err) == (int(verb != "show"), "")
    assert out.startswith(PICTURES[form])


def test_the_picture_is_that_of_the_library(say):
    test, strict = litmus("reorder"), level("log-serializable")
    assert say("show", "reorder", "--as", "dot")[1].rstrip() == graph(test).to_dot()
    asked = say("check", *DRAWING["check"], "--as", "mermaid")
    assert asked[1].rstrip() == check(test, strict).to_mermaid()


def test_as_a_spec_sees_it_all_its_relations_are_drawn(say):
    _, out, _ = say("show", "reorder", "--spec", "log-serializable", "--as", "mermaid")
    assert '|"log: ' in out


@pytest.mark.slow
@pytest.mark.parametrize("verb", TABLES)
def test_a_table_has_the_rows_of_the_document(say, verb):
    words, column = TABLES[verb]
    _, out, _ = say(verb, *words, "--as", "csv")
    rows = list(csv.DictReader(StringIO(out)))
    document = json.dumps(json.loads(say(verb, *words, "--as", "json")[1]))
    assert len(rows) > 1
    assert all(row[column] in document for row in rows)


@pytest.mark.slow
def test_json_has_two_names(say):
    assert say("show", "serializable", "--as", "json") == say("show", "serializable", "--json")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["matrix", "--as", "svg"], "--as is 'svg'; expected one of csv, json"),
        (
            ["separate", "serializable", "causal", "--as", "pdf"],
            "--as is 'pdf'; expected one of svg, mermaid, tikz, dot, graphml, elle, awdit, csv, json",
        ),
        (
            ["separate", "serializable", "causal", "--as", "csv"],
            "--as csv needs --mutants, which is about one spec",
        ),
        (
            ["separate", "serializable", "causal", "--suite", "x"],
            "--suite needs --mutants, which is about one spec",
        ),
        (["separate", "causal"], "separate causal needs a second spec, or --mutants"),
        (
            ["separate", "causal", "serializable", "--mutants"],
            "--mutants is about one spec, and 'serializable' is a second; leave it out",
        ),
        (
            ["separate", "causal", "--mutants", "--both"],
            "--both does not apply with --mutants; leave it out",
        ),
        (
            ["separate", "causal", "--mutants", "--as", "svg"],
            "--as svg does not apply with --mutants; leave it out",
        ),
        (
            ["show", "levels", "--as", "svg"],
            f"--as svg draws one thing, and {len(shipped_files('levels'))} were asked for",
        ),
        (
            ["show", "delta-serializable", "--as", "dot"],
            "not a litmus test: delta-serializable; only litmus tests have a picture",
        ),
        (
            ["separate", "serializable", "causal", "--both", "--as", "dot"],
            "--as dot draws one thing, and 2 were asked for",
        ),
        (
            ["show", "--json", "--as", "csv"],
            "--json and --as csv exclude each other; give one of them",
        ),
    ],
)
def test_what_a_verb_does_not_have_is_a_sentence(say, words, said):
    assert say(*words) == (2, "", f"isolitmus: {said}\n")


def test_what_was_not_found_is_not_drawn(say):
    words = ["serializable", "snapshot-isolation", "--transactions", "2", "--as", "svg"]
    assert say("separate", *words) == (
        0,
        "",
        "isolitmus: nothing to draw: the result has no graph\n",
    )
