"""The core stands alone: what it imports, how long it is, and the page that explains it."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pages import BLOCKS

from isolitmus.model.errors import SpecError
from isolitmus.specs.files import spec_reader
from isolitmus.specs.language.parser import Library, read

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/core.md"
LONGEST = 8_700
"""Maximum number of lines of the core."""
FIRST = 3_000
"""Maximum number of lines that the page asks a newcomer to read."""
CONTRACT = next(
    contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
    if contract["name"] == "The core imports nothing of the rest"
)
PACKAGES = {"isolitmus", "isolitmus.checker", "isolitmus.model", "isolitmus.specs"}
"""Packages around the core's modules; they import names when these are used."""
RECORDED = (
    "isolitmus.histories.blackbox", "isolitmus.checker.checks", "isolitmus.checker.render",
    "isolitmus.cli", "isolitmus.histories.readers.blackbox_history", "isolitmus.model.records",
    "isolitmus.histories.sources", "isolitmus.model.plugins", "isolitmus.model.registry",
    "isolitmus.specs.registries", "isolitmus.specs.disk.input_files",
    "isolitmus.specs.disk.output_files", "isolitmus.specs.files.catalogue_titles",
    "isolitmus.histories.readers",
)  # fmt: skip
"""What a check of a recorded history imports besides the core."""
OF_COMMANDS = {"annotated_doc", "click", "rich", "shellingham", "typer", "typing_extensions"}
NEW = """
import json, sys
def loaded():
    return sorted(name for name in sys.modules if name.partition(".")[0] not in before)
before = {*sys.stdlib_module_names, *(name.partition(".")[0] for name in sys.modules)}
"""


def is_below(name, packages):
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def core_files():
    """Return the files of the core by module; a package stands for its modules."""
    files = {}
    for name in CONTRACT["source_modules"]:
        path = Path(importlib.util.find_spec(name).origin)
        for file in path.parent.glob("*.py") if path.name == "__init__.py" else [path]:
            own = name if file.stem in {"__init__", path.stem} else f"{name}.{file.stem}"
            files[own] = file
    return files


def loaded_by(code, *words):
    """Return the modules that a new process has loaded when it ends, but those of Python."""
    end = "\nprint(json.dumps(loaded()), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", NEW + code + end, *words], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stderr.splitlines()[-1])), done.stdout


def command(*words):
    """Return the modules that a command loads, and what it prints."""
    code = """
from isolitmus.cli.main import main
sys.argv[0] = "isolitmus"
try:
    main()
except SystemExit:
    pass
"""
    return loaded_by(code, *words)


def test_every_module_is_in_the_core_or_forbidden_to_it():
    names = {*CONTRACT["source_modules"], *CONTRACT["forbidden_modules"]}
    for package in ROOT.glob("*/__init__.py"):
        for file in package.parent.rglob("*.py"):
            parts = file.relative_to(ROOT).with_suffix("").parts
            name = ".".join(("isolitmus", *parts)).removesuffix(".__init__")
            assert name in PACKAGES or is_below(name, names), f"{name}: core, or not?"


def test_each_module_of_the_core_loads_the_core_only():
    code = f"""
from importlib import import_module
found = {{}}
for name in {sorted(core_files())}:
    for other in [m for m in sys.modules if m.partition(".")[0] == "isolitmus"]:
        del sys.modules[other]
    import_module(name)
    found[name] = loaded()
print(json.dumps(found))
"""
    found = json.loads(loaded_by(code)[1])
    assert found.keys() == core_files().keys()
    allowed = {*core_files(), *PACKAGES}
    assert {name for names in found.values() for name in names} <= allowed


@pytest.mark.parametrize(
    "block", [b for b in BLOCKS if b.page == PAGE and b.kind == "python"], ids=str
)
def test_the_example_of_the_page_needs_the_core_and_lark_only(block):
    code = "\n".join(
        line[4:] for line in block.text.splitlines() if line.startswith((">>> ", "... "))
    )
    names, _ = loaded_by(code)
    assert {name.partition(".")[0] for name in names} == {"isolitmus", "lark"}
    ours = {name for name in names if name.startswith("isolitmus")}
    assert ours <= {*core_files(), *PACKAGES}


def test_the_core_is_short():
    lines = sum(len(file.read_text("utf-8").splitlines()) for file in core_files().values())
    assert lines <= LONGEST


AWDIT = "w 1 0\nw 2 0\n=====\nr 1 0\nw 1 1\n-----\nr 1 1\n=====\nr 2 0\nw 2 2\n"
DBCOP = [
    [{"events": [{"Write": {"variable": 0, "version": 1}}], "committed": True}],
    [{"events": [{"Read": {"variable": 0, "version": 1}}], "committed": True}],
]


@pytest.mark.parametrize(
    ("file", "text"),
    [("awdit.txt", AWDIT), ("dbcop.json", json.dumps(DBCOP))],
    ids=["awdit", "dbcop"],
)
def test_a_recorded_history_is_checked_with_numpy_alone(tmp_path, file, text):
    (tmp_path / file).write_text(text)
    names, said = command("check", str(tmp_path / file))
    assert "Strongest level that holds: serializable" in said
    packages = {name.rpartition(".")[0] for name in RECORDED} | PACKAGES
    ours = {name for name in names if is_below(name, ["isolitmus"])}
    assert {n for n in ours - packages - {*core_files()} if not is_below(n, RECORDED)} == set()
    third = {name.partition(".")[0] for name in names} - {"isolitmus"}
    assert {"numpy"} <= third <= {"numpy", *OF_COMMANDS}


def test_a_litmus_test_of_a_history_needs_few_modules():
    names, said = command("check", "history-long-fork")
    assert "long fork" in said
    assert sum(name.startswith("isolitmus.") for name in names) <= 75


def test_the_core_reads_a_text_with_names_of_histories_alone():
    assert read('"Mine" acyclic ww | rw as order', "mine").needs == {"ww", "rw"}
    for text, message in [
        ('include "stdlib.cat"', "1:16: no file 'stdlib.cat' to include: this text stands alone"),
        ('runtime "14.3"', "1:16: no runtime '14.3'"),
        ("format locking", "1:15: unknown format 'locking'"),
        ("empty [Blind] ; ww as x", "1:15: the set 'Blind' is one of format delta, and this is of no format"),
        ("lock reads S row until commit", "1:8: a spec of no format has no clause 'lock'"),
    ]:  # fmt: skip
        with pytest.raises(SpecError, match=re.escape(f"t:{message}")):
            read(f'"Mine" {text}', "t")


def test_a_program_gives_the_parser_its_own_files(tmp_path):
    (tmp_path / "words.cat").write_text("let depends = wr | ww")
    library = Library(find=lambda wanted, _beside: tmp_path / wanted)
    text = '"Mine" include "words.cat" acyclic depends as order'
    assert read(text, "mine", library=library).needs == {"wr", "ww"}
    assert spec_reader.read_spec(text, "mine", tmp_path / "mine.cat").needs == {"wr", "ww"}


ROW = re.compile(r"^\| `(?P<file>[\w./]+)` \| (?P<lines>[\d,]+) \|", re.MULTILINE)
"""Row of the first table. ISOLITMUS_UPDATE=1 writes the lines anew."""


def test_what_the_page_says_first_is_short_and_there():
    def counted(row):
        counts.append(len((ROOT / row["file"]).read_text("utf-8").splitlines()))
        return f"| `{row['file']}` | {counts[-1]} |"

    counts, page = [], PAGE.read_text("utf-8")
    written = ROW.sub(counted, page)
    if os.environ.get("ISOLITMUS_UPDATE"):
        PAGE.write_text(written, "utf-8")
        page = written
    assert (len(counts) > 8, sum(counts) <= FIRST, page) == (True, True, written)


def test_the_page_names_every_file_of_the_core():
    page = PAGE.read_text("utf-8")
    names = {str(file.relative_to(ROOT)) for file in core_files().values()}
    missing = {name for name in names if not name.endswith("__init__.py") and name not in page}
    assert missing == set()
