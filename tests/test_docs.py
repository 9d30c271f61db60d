"""README and docs are true: their commands are run and compared, their files and examples are read.

How is said in ``pages``; blocks that need Spark are run by tests/conformance/test_docs_on_spark.py.
"""

import json
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest
from pages import (
    BLOCKS,
    FENCE,
    FOLDERS,
    KINDS,
    PAGES,
    ROOT,
    check_console,
    check_python,
    commands,
    of_kind,
    page_id,
)

import isolitmus
from isolitmus.checker.execution.commit_loop import execute, judge_execution, unfit_table
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.search.unbounded_separation import separate_unbounded
from isolitmus.cli.main import VERBS, main
from isolitmus.model.errors import UndeterminedError
from isolitmus.model.history import History
from isolitmus.model.litmus import Litmus
from isolitmus.model.spec import BinaryOp, Bracket, UnaryOp
from isolitmus.specs import litmus, spec
from isolitmus.specs.files.catalogue import litmus_names
from isolitmus.specs.files.spec_catalogue import levels


@pytest.mark.slow
@pytest.mark.parametrize("block", of_kind("console"))
def test_what_a_page_shows_is_what_one_sees(block, tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    check_console(block, tmp_path, call)


@pytest.mark.slow
@pytest.mark.parametrize("block", of_kind("python"))
def test_what_a_page_says_in_python_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_python(block, tmp_path)


WITH_BLOCKS = [page for page in PAGES if any(block.page == page for block in BLOCKS)]
LINK = re.compile(r"\]\(([^)\s]+)\)")
WITH_LINKS = [page for page in PAGES if LINK.search(FENCE.sub("", page.read_text("utf-8")))]


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=page_id)
def test_every_block_is_of_a_kind_and_every_file_is_used(page):
    mine = [block for block in BLOCKS if block.page == page]
    for block in mine:
        assert block.kind in KINDS, f"{block}: no language that is run or known to be none"
        assert block.file or block.kind not in ("cat", "toml", "sql"), f"{block}: which file is it?"
        later = [b.text for b in mine if b.line > block.line]
        assert not block.file or any(block.file in text for text in later), f"{block}: unused"


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_LINKS, ids=page_id)
def test_links_lead_somewhere(page):
    text = FENCE.sub("", page.read_text("utf-8"))
    for target in LINK.findall(text):
        path, _, anchor = target.partition("#")
        to = (page.parent / path).resolve() if path else page
        assert to.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", to.read_text("utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings}
            assert anchor in anchors, target


def test_every_command_is_shown():
    """But those that need a table of one's own, fetch something, or ask for hours of random
    tests.
    """
    shown = {command.split()[1] for b in BLOCKS if b.kind == "console" for command in commands(b)}
    assert set(VERBS) - {"audit", "explore", "install"} <= shown


def test_the_page_on_python_shows_each_function_and_names_each_command():
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    assert [name for name in isolitmus.__all__ if not re.search(rf"`{name}\b", page)] == []
    (rows,) = re.findall(r"^\| command .*\n.*\n((?:\|.*\n)+)", page, re.MULTILINE)
    assert {re.match(r"\| `(\w+)", row)[1] for row in rows.splitlines()} == set(VERBS)


def test_the_readme_is_read_in_a_sitting():
    assert len(PAGES[0].read_bytes()) <= 8000
    assert [b.text for b in BLOCKS if b.page == PAGES[0] and "spark" in b.marks] == []


ITALIC = re.compile(r"(?<![*\w])\*([^*\n]+)\*(?![*\w])")
BOLD = re.compile(r"\*\*([^*]+)\*\*")


def test_words_that_the_readme_introduces_are_in_the_glossary():
    glossary = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    known = {word for entry in BOLD.findall(glossary) for word in entry.lower().split(", ")}
    introduced = {
        word.lower() for word in ITALIC.findall(FENCE.sub("", PAGES[0].read_text("utf-8")))
    }
    assert introduced
    assert introduced <= known


@pytest.mark.slow
def test_words_of_the_glossary_are_used():
    """In another page, or in what ships: a glossary explains words that one meets."""
    glossary = ROOT / "docs" / "glossary.md"
    files = [
        *PAGES,
        *(path for top in FOLDERS for path in ROOT.glob(f"{top}/**/*.py")),
        *ROOT.glob("specs/**/*.cat"),
    ]
    texts = " ".join(" ".join(f.read_text("utf-8").lower().split()) for f in files if f != glossary)
    words = [
        w for entry in BOLD.findall(glossary.read_text("utf-8")) for w in entry.lower().split(", ")
    ]
    assert len(words) == len(set(words))
    assert [word for word in words if not re.search(rf"\b{re.escape(word)}", texts)] == []


def test_the_page_on_specs_shows_all_of_the_language(tmp_path, monkeypatch):
    page = [block for block in BLOCKS if block.page.name == "writing-a-spec.md"]
    monkeypatch.chdir(tmp_path)
    operators, tests, statements = set(), set(), set()
    for block in page:
        if block.kind != "cat":
            continue
        Path(block.file).write_text(block.text, "utf-8")
        if "broken" in block.marks:
            continue
        read = spec(block.file)
        tests |= {axiom.test for axiom in read.axioms}
        statements |= set(
            re.findall(r"^(let|include|with|show|silent)\b", block.text, re.MULTILINE)
        )
        todo = [*(axiom.expr for axiom in read.axioms), *read.definitions.values()]
        todo += [label.expr for label in read.labels]
        while todo:
            part = todo.pop()
            operators.add("[]" if isinstance(part, Bracket) else getattr(part, "op", None))
            todo += [
                getattr(part, side) for side in ("left", "right", "operand") if hasattr(part, side)
            ]
    assert operators - {None} == {*get_args(BinaryOp), *get_args(UnaryOp), "[]"}
    assert tests == {"acyclic", "irreflexive", "empty"}
    assert statements == {"let", "include", "with", "show", "silent"}


ANOMALY = re.compile(r"^\| ([\w -]+) \| `([^`]+)` \| `([\w-]+)` \| `([\w-]+)` \|$", re.MULTILINE)
LEVELS = (ROOT / "docs" / "comparing-levels.md").read_text("utf-8")
ANOMALIES = ANOMALY.findall(LEVELS)


@pytest.mark.parametrize(
    ("history", "admits", "forbids"),
    [pytest.param(*rest, id=f"{name}: {rest[1]}") for name, *rest in ANOMALIES],
)
def test_an_anomaly_of_the_page_separates_its_levels(history, admits, forbids):
    parsed = History.parse(history)
    assert str(check_history(parsed, spec(admits))) == "allowed"
    assert str(check_history(parsed, spec(forbids))) == "forbidden"


PROVED = re.compile(r"^\| `([\w-]+)` \| `([\w-]+)` \| (?:`([^`]+)` )?\|$", re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b", "options"), PROVED.findall(LEVELS))
def test_what_the_readme_says_is_proved_is(a, b, options, capsys, monkeypatch):
    """Every litmus test either satisfies it, or is listed as outside of it, with the reason."""
    words = ["isolitmus", "separate", a, b, "--unbounded", *options.split()]
    said, answers = {}, []

    def prove_once(*asked, **premises):
        answers[:] = answers or [separate_unbounded(*asked, **premises)]
        return answers[0]

    verb = import_module("isolitmus.cli.separate")
    monkeypatch.setattr(verb, "separate_unbounded", prove_once)
    monkeypatch.setenv("COLUMNS", "10000")
    for more in ([], ["--json"]):
        monkeypatch.setattr(sys, "argv", [*words, *more])
        with pytest.raises(SystemExit) as done:
            main()
        assert done.value.code == 0
        said[bool(more)] = capsys.readouterr().out
    assert len(answers) == 1
    assert said[False].startswith(f"Proved: {a} admits nothing that {b} forbids, with ")
    assert "\nScope: search space 'table'; any statements on one Delta table, " in said[False]
    outside = {test["litmus"]: test for test in json.loads(said[True])["outside"]}
    failing = set()
    for name in litmus_names():
        test = litmus(name)
        if isinstance(test, Litmus) and not test.raw and not unfit_table(test, spec(a)):
            try:
                run = execute(test, spec(a))
            except UndeterminedError:  # of rules that look below the level of files
                continue
            verdicts = [str(judge_execution(run, spec(level))) for level in (a, b)]
            failing |= {name} if verdicts == ["allowed", "forbidden"] else set()
    assert failing == {name for name, test in outside.items() if test["fails"]}
    assert all(test["why"] for test in outside.values())
    assert all(re.search(rf"^- .*: .*\b{name}\b", said[False], re.MULTILINE) for name in failing)


def test_the_page_names_an_anomaly_for_every_level_but_the_strongest():
    named = {level for _, _, *pair in ANOMALIES for level in pair}
    assert set(levels()) - {"log-serializable"} <= named


def test_the_known_holes_are_litmus_tests_at_both_levels():
    """Those of a row have, at one of the levels at least, an end that no serial order gives, or an
    abort that the stricter level alone does without.
    """
    page = (ROOT / "docs" / "conformance.md").read_text("utf-8")
    (rows,) = re.findall(r"^\| hole \| litmus tests \|\n.*\n((?:\|.*\n)+)", page, re.MULTILINE)
    for row in rows.splitlines():
        names = re.findall(r"`([a-z-]+)`", row)
        assert names, row
        for name in names:
            expect = litmus(name).expect
            strict, weak = (
                expect[f"delta-{level}"] for level in ("serializable", "write-serializable")
            )
            unexplained = () in (strict.serial, weak.serial)
            inverted = strict.outcome != weak.outcome
            assert unexplained or inverted or name == "hole-unpartitioned-one-file", name


def test_one_of_a_thing_is_never_several():
    """Neither on a page nor in a golden file: "1 findings"."""
    several = re.compile(
        r"(?<![\w.,:/-])(?<!of )(?<!goes on, )1 (?!s\b)[a-z]+[^su\W]s\b(?! (?:are|ago)\b)"
    )
    golden = [
        f for f in (ROOT / "tests" / "golden").rglob("*") if f.is_file() and f.suffix != ".json"
    ]
    found = {
        f"{file.relative_to(ROOT)}: {match[0]}"
        for file in [*PAGES, *golden]
        for match in several.finditer(file.read_text("utf-8"))
    }
    assert found == set()
