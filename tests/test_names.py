"""Names say what things are: no two of one name, and a comment at each field."""

import ast
import re
from pathlib import Path

import pytest
from pages import FOLDERS

import isolitmus.model

ROOT = Path(isolitmus.model.__file__).parents[1]
ROOMS = FOLDERS


def modules():
    """Every module by its path, with its text."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text("utf-8")


ONE_THING = {
    **dict.fromkeys(
        (
            "audit",
            "check",
            "claims",
            "compare",
            "explain",
            "explore",
            "install",
            "matrix",
            "repair",
            "run",
            "separate",
            "sweep",
        ),
        "a command, and what it is the command of; on Spark it is the same",
    ),
    "predict": "of a race that is over and of jobs that have not met: what the model says",
    "replay": "by each engine",
    "search": "in each universe, by enumeration and by a solver",
}
"""Functions of one name that do one thing in several places, and which."""


def things(text: str):
    """Classes, public functions and names of types, at the top of a module."""
    for node in ast.parse(text).body:
        match node:
            case ast.ClassDef(name=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name[0] != "_":
                yield name
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if TYPE.fullmatch(name):
                if not (isinstance(value, ast.Call) or name == ast.unparse(value)):
                    yield name


TYPE = re.compile(r"_?[A-Z]\w*[a-z]\w*")


@pytest.mark.slow
def test_no_two_things_have_one_name():
    """A word that means two things sends a reader to the wrong file."""
    homes = {}
    for file, text in modules():
        for name in things(text):
            homes.setdefault(name, []).append(file)
    several = {name: where for name, where in homes.items() if len(where) > 1}
    assert {name: several[name] for name in several.keys() - ONE_THING.keys()} == {}
    assert ONE_THING.keys() <= several.keys()


def test_what_has_a_name_is_found():
    text = "class _A: ...\ndef b(): ...\ndef _c(): ...\nDe = int | str\nT = TypeVar('T')\nF = 1\n"
    assert [*things(text)] == ["_A", "b", "De"]


NAMED_IN = re.compile(r"`(\w+)` of\s+`([\w/]+\.(?:py|toml))`")
"""A name, and the file that it is said to be in."""


@pytest.mark.parametrize("page", ["CONTRIBUTING", "ARCHITECTURE"])
def test_what_a_page_for_contributors_names_is_there(page):
    text = (ROOT / "docs" / f"{page}.md").read_text("utf-8")
    named = {path: (ROOT / path).read_text("utf-8") for _, path in NAMED_IN.findall(text)}
    assert len(named) > (1 if page == "CONTRIBUTING" else 0)
    for name, path in NAMED_IN.findall(text):
        assert re.search(rf"\b{name}\b", named[path]), (name, path)
    for path in re.findall(
        r"`((?:model|specs|checker|conformance|cli|jobs|histories|databases|pipeline|claims|tests)/[\w/]+\.\w+)`",
        text,
    ):
        assert (ROOT / path).exists(), path
