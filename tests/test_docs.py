"""README and docs are true: their commands are run and compared, their files and examples are read.

A block is a language and, after it, markers: ``console spark``. Of a ``console`` block every line
that begins with ``$`` is run, in an empty folder with the files that the page has shown before: a
``cat``, ``toml``, ``sql``, ``python`` or ``text`` block is the file whose name stands last in the text above it, or, if
it has no name there, an example that runs if it is Python. Times do not count, nor how often a solver
proposed; a line with nothing but ``…`` stands for any lines.

After a wanted change: ISOLITMUS_UPDATE=1 pytest tests/test_docs.py writes what one sees into the pages,
except where there is a ``…``.
"""

import difflib
import doctest
import json
import os
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pytest
from inner_runs import run_pytest, run_script

from isolitmus.checker.reading.histories import check_history
from isolitmus.checker.running.execute import execute, judge_execution
from isolitmus.cli.main import VERBS, main
from isolitmus.model.history import History
from isolitmus.model.litmus import Litmus
from isolitmus.model.spec import BinaryOp, Bracket, UnaryOp
from isolitmus.specs import litmus, spec
from isolitmus.specs.catalogue import levels, litmus_names

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)([^\n`]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"`([\w.-]+)\.(cat|toml|py|sql|txt|edn)`")
ENDINGS = {"python": "py", "text": "txt"}
KINDS = {"console", "cat", "edn", "toml", "python", "sh", "sql", "text"}


@dataclass(frozen=True)
class Block:
    """A fenced block: where it stands, what it holds, and the files that the page showed before."""

    page: Path
    line: int
    kind: str
    marks: tuple[str, ...]
    text: str
    file: str | None
    files: dict[str, str]

    def __str__(self):
        first = self.text.partition("\n")[0].removeprefix("$ ")
        return f"{self.page.name}:{self.line}: {first}"


def blocks(page):
    text = page.read_text("utf-8")
    files: dict[str, str] = {}
    end = 0
    for match in FENCE.finditer(text):
        kind, marks, inside = match.groups()
        ending = ENDINGS.get(kind, kind)
        above = FILE.findall(text[end : match.start()])
        file = next((f"{name}.{of}" for name, of in reversed(above) if of == ending), None)
        line = text.count("\n", 0, match.start()) + 1
        yield Block(page, line, kind, tuple(marks.split()), inside, file, dict(files))
        if file is not None:
            files[file] = inside
        end = match.end()


BLOCKS = [block for page in PAGES for block in blocks(page)]


def of_kind(*kinds):
    """The blocks of these languages as parameters; a mark of a block, ``spark`` say, is ``pytest.mark.spark``."""
    return [
        pytest.param(block, id=str(block), marks=[getattr(pytest.mark, m) for m in block.marks])
        for block in BLOCKS
        if block.kind in kinds
    ]


def run_by_name(param):
    """Whether a command of the page runs the file that a block of Python is."""
    (block,) = param.values
    later = [other for other in BLOCKS if other.page == block.page and other.kind == "console"]
    return block.file and any(f"$ python {block.file}\n" in other.text for other in later)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to be in, and a function that puts a block's files there."""
    monkeypatch.chdir(tmp_path)

    def fill(block):
        for name, text in block.files.items():
            (tmp_path / name).write_text(text, "utf-8")

    return fill


def commands(block):
    """The commands of a console block; below each stands what it prints."""
    return re.findall(r"^\$ (.*)$", block.text, re.MULTILINE)


def without_chance(text):
    text = re.sub(r"\d+\.\d s\b", "… s", text)
    return re.sub(r"\b\d+ proposals? of the solver", "… proposals of the solver", text)


def same(expected, seen):
    lines = without_chance(expected).splitlines(keepends=True)
    pattern = "".join(r"(?:.*\n)*" if line == "…\n" else re.escape(line) for line in lines)
    return re.fullmatch(pattern, without_chance(seen)) is not None


def rewrite(block, seen):
    text = block.page.read_text("utf-8")
    assert text.count(block.text) == 1
    block.page.write_text(text.replace(block.text, seen), "utf-8")


def run_command(program, words, folder, call):
    """Run a command of a page in this process: what one sees of it.

    As a process of its own, each that needs Spark would start a JVM; here they have the shared session. A sweep and a
    replay as processes are in tests/pipeline/test_pipeline.py and tests/conformance/test_commands.py.
    """
    if program == "cat":
        return "".join(Path(word).read_text("utf-8") for word in words)
    if program == "pytest":
        done = run_pytest(folder, *words)
        return "".join(f"{line}\n" for line in [*done.outlines, *done.errlines])
    if program == "python":
        return "".join(run_script(*words)[1:])
    assert program == "isolitmus"
    return "".join(call(*words)[1:])


@pytest.mark.slow
@pytest.mark.parametrize("block", of_kind("console"))
def test_what_a_page_shows_is_what_one_sees(block, folder, tmp_path, call, request):
    if "spark" in block.marks:
        request.getfixturevalue("session")
    folder(block)
    whole = ""
    for command in commands(block):
        program, *words = shlex.split(command)
        whole += f"$ {command}\n{run_command(program, words, tmp_path, call)}"
    is_true = same(block.text, whole)
    if not is_true and os.environ.get("ISOLITMUS_UPDATE") and "…\n" not in block.text:
        rewrite(block, whole)
        return
    expected, seen = (without_chance(text).splitlines() for text in (block.text, whole))
    where = f"{block.page.name}:{block.line}"
    diff = difflib.unified_diff(expected, seen, where, "what one sees", lineterm="")
    assert is_true, "\n".join(diff)


@pytest.mark.slow
@pytest.mark.parametrize("block", [one for one in of_kind("python") if not run_by_name(one)])
def test_what_a_page_says_in_python_runs(block, folder):
    folder(block)
    if ">>>" in block.text:
        test = doctest.DocTestParser().get_doctest(
            block.text, {}, block.page.name, str(block.page), block.line
        )
        report = []
        assert doctest.DocTestRunner().run(test, out=report.append).failed == 0, "".join(report)
    else:
        names = {}
        exec(compile(block.text, f"{block.page}:{block.line}", "exec"), names)
        assert names.keys() > {"__builtins__"}, "it defines nothing"


WITH_BLOCKS = [page for page in PAGES if any(block.page == page for block in BLOCKS)]
LINK = re.compile(r"\]\(([^)\s]+)\)")
WITH_LINKS = [page for page in PAGES if LINK.search(FENCE.sub("", page.read_text("utf-8")))]


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: page.name)
def test_every_block_is_of_a_kind_and_every_file_is_used(page):
    mine = [block for block in BLOCKS if block.page == page]
    for block in mine:
        assert block.kind in KINDS, f"{block}: no language that is run or known to be none"
        assert block.file or block.kind not in ("cat", "toml", "sql"), f"{block}: which file is it?"
        later = [b.text for b in mine if b.line > block.line]
        assert not block.file or any(block.file in text for text in later), f"{block}: unused"


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_LINKS, ids=lambda page: page.name)
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
    """But those that need a table of one's own, fetch something, or ask for hours of random tests."""
    shown = {command.split()[1] for b in BLOCKS if b.kind == "console" for command in commands(b)}
    assert set(VERBS) - {"audit", "explore", "install"} <= shown


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
        *ROOT.glob("model/*.py"),
        *ROOT.glob("checker/**/*.py"),
        *ROOT.glob("conformance/*.py"),
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
    said = {}
    for more in ([], ["--json"]):
        monkeypatch.setattr(sys, "argv", [*words, *more])
        with pytest.raises(SystemExit) as done:
            main()
        assert done.value.code == 0
        said[bool(more)] = capsys.readouterr().out
    assert "Proved in universe 'table', for any statements on one Delta table, " in said[False]
    assert f": {a} admits nothing that {b} forbids, with " in said[False]
    outside = {test["litmus"]: test for test in json.loads(said[True])["outside"]}
    failing = set()
    for name in litmus_names():
        if isinstance(test := litmus(name), Litmus) and not test.raw:
            run = execute(test, spec(a))
            verdicts = [str(judge_execution(run, spec(level))) for level in (a, b)]
            failing |= {name} if verdicts == ["allowed", "forbidden"] else set()
    assert failing == {name for name, test in outside.items() if test["fails"]}
    assert all(test["why"] for test in outside.values())
    assert all(re.search(rf"^  .*\b{name}\b.*: ", said[False], re.MULTILINE) for name in failing)


def test_the_page_names_an_anomaly_for_every_level_but_the_strongest():
    named = {level for _, _, *pair in ANOMALIES for level in pair}
    assert set(levels()) - {"log-serializable"} <= named


def test_the_known_holes_are_litmus_tests_at_both_levels():
    """Those of a row have, at one of the levels at least, an end that no serial order gives, or an abort that
    the stricter level alone does without.
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
    several = re.compile(r"(?<![\w.,:/-])(?<!of )1 (?!s\b)[a-z]+[^su\W]s\b(?! (?:are|ago)\b)")
    golden = [
        f for f in (ROOT / "tests" / "golden").rglob("*") if f.is_file() and f.suffix != ".json"
    ]
    found = {
        f"{file.relative_to(ROOT)}: {match[0]}"
        for file in [*PAGES, *golden]
        for match in several.finditer(file.read_text("utf-8"))
    }
    assert found == set()
