"""Rules that are being designed: their texts name sources, and their pages are true to the texts."""

import re

import pytest
from pages import ROOT

from isolitmus.checker import run, sweep
from isolitmus.model.errors import SpecError
from isolitmus.model.vocabulary import relations_of
from isolitmus.specs import litmus, spec
from isolitmus.specs.disk.input_files import shipped_files
from isolitmus.specs.files.spec_catalogue import proposals

FOLDER = ROOT / "docs" / "results" / "proposals"
PAGES = sorted(FOLDER.glob("*.md"))
PROPOSED = {name: shipped_files("protocols")[name] for name in proposals()}
TESTS = sorted(
    name for name, path in shipped_files("litmus").items() if path.parent.name == "proposals"
)
COMMENT = re.compile(r"\(\*(.*?)\*\)", re.DOTALL)
CODE = re.compile(r"pull request \d+ at [0-9a-f]{8} \(\d{4}-\d\d-\d\d\)(?:, [\w ]+)?: \w+\.scala")
"""Source of a rule that is code: pull request, head commit, date, and the file that was read."""
DOCUMENT = re.compile(r"^Databricks, [^:]+ edition \([^)]+\):")
"""Source of a rule that is a sentence of a document: page, edition, and what there."""


def missing_facts(text):
    """Return what the comments of a proposal do not say: its source, and what is not modelled."""
    comments = [" ".join(comment.split()) for comment in COMMENT.findall(text)]
    source, later = comments[:1], comments[1:]
    missing = []
    if not any(CODE.search(each) or DOCUMENT.search(each) for each in source):
        missing.append("source")
    if not any("Not modelled: " in each for each in later):
        missing.append("what is not modelled")
    return missing


@pytest.mark.parametrize("name", PROPOSED)
def test_a_proposal_names_its_source_and_what_is_not_modelled(name):
    assert missing_facts(PROPOSED[name].read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("comments", "missing"),
    [
        ("", ["source", "what is not modelled"]),
        ("(* Not modelled: much. *)", ["source", "what is not modelled"]),
        ("(* pull request 7 *) (* Not modelled: much. *)", ["source"]),
        ("(* pull request 7 at 0b8f4923: A.scala *) (* Not modelled: a. *)", ["source"]),
        ("(* pull request 7 at 0b8f4923 (2026-08-12): A.scala *)", ["what is not modelled"]),
        ("(* pull request 7 at 0b8f4923 (2026-08-12): A.scala *) (* Not modelled: a. *)", []),
    ],
)
def test_a_proposal_without_a_source_is_noticed(comments, missing):
    assert missing_facts(f'"T"\n{comments}\nempty unseen as x\n') == missing


def test_a_rule_of_a_user_needs_no_source(tmp_path):
    file = tmp_path / "proposals" / "mine.cat"
    file.parent.mkdir()
    file.write_text('"Mine"\nformat delta\nempty unseen & merges-vectors as x\n', "utf-8")
    assert spec(file).needs == {"unseen", "merges-vectors"}


@pytest.mark.parametrize("name", relations_of("delta-rows"))
def test_a_rule_for_delta_rs_cannot_name_what_that_format_lacks(name, tmp_path):
    file = tmp_path / "mine.cat"
    file.write_text(f'"Mine"\nformat delta-rs\nempty unseen & {name} as x\n', "utf-8")
    with pytest.raises(SpecError) as refused:
        spec(file)
    where = rf"mine\.cat:3:16: the relation '{name}' is one of format delta, and this is of format"
    assert re.search(f"{where} delta-rs", str(refused.value))


TEXT = re.compile(r"^```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)
QUOTED = re.compile(r"`([\w-]+)`")
RULE = re.compile(r"^(?:let (?:added|deleted-read|deleted-deleted)|empty) .*$", re.MULTILINE)


def quoted_rules():
    """Yield the proposal that is named last above each text block, and the block."""
    for page in PAGES:
        text = page.read_text("utf-8")
        for block in TEXT.finditer(text):
            above = [name for name in QUOTED.findall(text[: block.start()]) if name in PROPOSED]
            yield pytest.param(above[-1], block[1], id=f"{page.stem}: {above[-1]}")


@pytest.mark.parametrize(("name", "quoted"), [*quoted_rules()])
def test_a_page_quotes_the_text_as_it_is(name, quoted):
    """A page on Delta quotes all of a rule; the one on Databricks, the line that differs."""
    text = PROPOSED[name].read_text("utf-8")
    if name.startswith("databricks-"):
        text += (ROOT / "specs" / "databricks-words.cat").read_text("utf-8")
        assert quoted.rstrip("\n") in text.splitlines()
    else:
        assert quoted.splitlines() == RULE.findall(text)


LITMUS = re.compile(r"^\| `([\w-]+)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def test_each_rule_and_each_litmus_test_is_on_a_page():
    text = "".join(page.read_text("utf-8") for page in PAGES)
    named = set(QUOTED.findall(text))
    short = {re.sub(r"-(?:write-)?serializable$", "", name): name for name in PROPOSED}
    assert [
        name for rule, name in short.items() if not named & {rule, f"{rule}-serializable"}
    ] == []
    rows = set(LITMUS.findall((FOLDER / "index.md").read_text("utf-8")))
    assert rows == {(name, litmus(name).title, litmus(name).source) for name in TESTS}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_answers_first_and_says_what_it_does_not_show(page):
    text = page.read_text("utf-8")
    assert re.match(r"# .*\?\n\n(?:[^#]*\n\n)?\*\*Answer\.\*\* ", text)
    assert "\n## What this does not show\n" in text
    assert page.stem == "index" or "\n## One sentence to quote\n\n> " in text


COUNTS = re.compile(r"^\| [^|]*: `([\w-]+)` ((?:\| \d+ ){6})\|$", re.MULTILINE)


@pytest.mark.slow
def test_counts_of_the_page_are_those_of_sweeps():
    rows = {
        name: [int(number) for number in re.findall(r"\d+", row)]
        for name, row in COUNTS.findall((FOLDER / "index.md").read_text("utf-8"))
    }
    assert len(rows) == 13
    counted = {name: [] for name in rows}
    for scope, size in (("vectors", 2), ("vectors-two-files", 2), ("compactions", 3)):
        tallies = sweep(scope, size, protocols=[*rows], levels=["log-serializable"]).protocols
        for name in rows:
            counted[name] += [tallies[name].admitted, tallies[name].forbidden["log-serializable"]]
    assert counted == rows


AT_WEAK = [name for name in PROPOSED if re.fullmatch(r"case-[\w-]*-write-serializable", name)]
NEW_VIOLATIONS = re.compile(r"case-2-(matched-|and-[34]-)?write|case-1-\w+-and-2-write")
"""Texts with which two transactions on tables with vectors violate write-serializable."""


@pytest.mark.slow
def test_no_other_text_than_those_with_case_2_adds_a_violation_by_two_transactions():
    assert len(AT_WEAK) == 19
    for name in ("vectors", "vectors-two-files"):
        asked = ["delta-write-serializable", *AT_WEAK]
        tallies = sweep(name, 2, protocols=asked, levels=["write-serializable"]).protocols
        violating = {each for each in asked if tallies[each].forbidden["write-serializable"]}
        expected = filter(NEW_VIOLATIONS.match, AT_WEAK) if name == "vectors" else ()
        assert violating == {*expected}


@pytest.mark.parametrize("name", AT_WEAK)
def test_no_text_closes_the_hole_of_write_serializable(name):
    assert run(litmus("hole-unpartitioned"), name).serial.orders == ()


@pytest.mark.parametrize("level", ["serializable", "write-serializable"])
def test_the_readings_of_one_sentence_differ_on_mirrored_merges(level):
    """Each MERGE deletes the row that the other one has read, and no row is modified twice."""
    ends = {
        reading: run(litmus("merged-write-skew"), reading).run.transactions["merge1"].outcome
        for reading in (f"databricks-{level}-newest-rows", f"databricks-same-row-{level}")
    }
    both_read, both_modified = ends.values()
    assert both_read.endswith("Exception")
    assert both_modified == "committed"


def test_the_readings_of_one_sentence_agree_on_a_row_that_both_delete():
    for reading in ("databricks-serializable-newest-rows", "databricks-same-row-serializable"):
        done = run(litmus("two-deletes-same-rows"), reading).run.transactions
        assert any(end.outcome.endswith("Exception") for end in done.values()), reading
