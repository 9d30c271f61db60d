"""The blocks of README and docs, and how one is run and compared.

A block is a language and, after it, markers: ``console spark``. Of a ``console`` block every line
that begins with ``$`` is run, in an empty folder with the files that the page has shown before: a
``cat``, ``toml``, ``sql``, ``python`` or ``text`` block is the file whose name stands last in the
text above it, or, if it has no name there, an example that runs if it is Python. Folders of
``tests/data`` that the page names in backquotes are there, too. Times do not
count, nor how often a solver proposed; a line with nothing but ``…`` stands for any lines.

After a wanted change: ISOLITMUS_UPDATE=1 pytest tests/test_docs.py writes what one sees into the
pages, except where there is a ``…``.
"""

import difflib
import doctest
import os
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from inner_runs import run_pytest, run_script

ROOT = Path(__file__).parents[1]
FOLDERS = sorted(path.parent.name for path in ROOT.glob("*/py.typed"))
"""Layers and parts: the folders of the code."""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)([^\n`]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"`([\w.-]+)\.(cat|toml|py|sql|txt|edn)`")
ENDINGS = {"python": "py", "text": "txt"}
KINDS = {"console", "cat", "edn", "toml", "python", "sh", "sql", "text"}


def page_id(page):
    """Return the path of a page in the repository; two folders may have pages of one name."""
    return page.relative_to(ROOT).as_posix()


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


def of_kind(kind, *, spark=False):
    """Return the blocks of a language as parameters, those marked ``spark`` or the others."""
    found = [b for b in BLOCKS if b.kind == kind and spark == ("spark" in b.marks)]
    return [
        pytest.param(block, id=str(block), marks=[getattr(pytest.mark, m) for m in block.marks])
        for block in found
        if kind != "python" or not run_by_name(block)
    ]


def run_by_name(block):
    """Return whether a command of the page runs the file that a block of Python is."""
    later = [other for other in BLOCKS if other.page == block.page and other.kind == "console"]
    return block.file and any(f"$ python {block.file}\n" in other.text for other in later)


DATA = re.compile(r"`(tests/data/[\w./-]+)`")


def fill(folder, block):
    """Write the files that the page has shown before a block into a folder, and those of tests that
    it names.
    """
    for name in dict.fromkeys(DATA.findall(block.page.read_text("utf-8"))):
        shutil.copytree(ROOT / name, folder / name, dirs_exist_ok=True)
    for name, text in block.files.items():
        (folder / name).write_text(text, "utf-8")


def commands(block):
    """The commands of a console block; below each stands what it prints."""
    return re.findall(r"^\$ (.*)$", block.text, re.MULTILINE)


def without_chance(text):
    """Return an output as one line, without its times and counts of proposals: these have a say in
    where lines wrap.
    """
    text = re.sub(r"\d+\.\d s\b", "… s", " ".join(text.split()))
    return re.sub(r"\b\d+ solver proposals?", "… solver proposals", text)


def same(expected, seen):
    """Return whether an output is what a page shows; there a line of … stands for any lines."""
    shown = re.split(r"^…$", expected, flags=re.MULTILINE)
    pattern = ".*".join(re.escape(without_chance(part)) for part in shown)
    return re.fullmatch(pattern, without_chance(seen)) is not None


def rewrite(block, seen):
    text = block.page.read_text("utf-8")
    assert text.count(block.text) == 1
    block.page.write_text(text.replace(block.text, seen), "utf-8")


def run_command(program, words, folder, call):
    """Run a command of a page in this process: what one sees of it.

    As a process of its own, each that needs Spark would start a JVM; here they have the shared
    session. A sweep and a replay as processes are in tests/pipeline/test_pipeline.py and
    tests/conformance/test_commands.py.
    """
    if program == "cat":
        return "".join(Path(word).read_text("utf-8") for word in words)
    if program == "pytest":
        done = run_pytest(folder, *words)
        return "".join(f"{line}\n" for line in [*done.outlines, *done.errlines])
    if program == "python":
        return "".join(run_script(*words)[1:])
    assert program == "isolitmus"
    _, out, error = call(*words, columns=100)
    lines = error.splitlines(keepends=True)
    # what is not stopped while functions run depends on the machine
    return out + "".join(one for one in lines if not one.startswith("isolitmus: --run executes"))


def check_console(block, folder, call):
    """Run the commands of a block in a folder; assert that they print what the page shows."""
    fill(folder, block)
    whole = ""
    for command in commands(block):
        program, *words = shlex.split(command)
        whole += f"$ {command}\n{run_command(program, words, folder, call)}"
    is_true = same(block.text, whole)
    if not is_true and os.environ.get("ISOLITMUS_UPDATE") and "…\n" not in block.text:
        rewrite(block, whole)
        return
    expected, seen = (without_chance(text).splitlines() for text in (block.text, whole))
    where = f"{block.page.name}:{block.line}"
    diff = difflib.unified_diff(expected, seen, where, "what one sees", lineterm="")
    assert is_true, "\n".join(diff)


def check_python(block, folder):
    """Run a block of Python, the current folder being this one; assert that its examples print what
    the page shows.
    """
    fill(folder, block)
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
