"""No module imports itself by way of others, be it in a function or for types alone."""

import ast
import importlib
import inspect
from pathlib import Path

import networkx as nx
import pytest

import isolitmus.model
from isolitmus.checker.render.results import RENDERERS, render_result
from isolitmus.model import display
from isolitmus.model.display import PageResult, TextResult
from isolitmus.model.plugins import PLUGINS
from isolitmus.model.reason import Reason

ROOT = Path(isolitmus.model.__file__).parents[1]
ROOMS = [path.parent.name for path in ROOT.glob("*/py.typed")]


def modules():
    """Every module by name, with its text."""
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(("isolitmus", *parts)).removesuffix(".__init__")
            yield name, path.read_text("utf-8")


def imports(texts):
    """What every module imports, at the top, in a function, or for types."""
    for name, text in texts.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    other = whole if whole in texts else node.module
                    if other in texts and other != name:
                        yield name, other


def circles(arrows):
    groups = nx.strongly_connected_components(nx.DiGraph(arrows))
    return [sorted(group) for group in groups if len(group) > 1]


@pytest.mark.slow
def test_there_is_no_circle_of_imports():
    assert circles(imports(dict(modules()))) == []


def test_an_import_in_a_function_counts_and_so_does_one_for_types():
    late = "def f():\n    from isolitmus.a import g"
    typed = "if TYPE_CHECKING:\n    from isolitmus.a import G"
    for text in (late, typed):
        found = imports({"isolitmus.a": "from isolitmus import b", "isolitmus.b": text})
        assert circles(found) == [["isolitmus.a", "isolitmus.b"]]


@pytest.mark.parametrize("name", PLUGINS["renderer"])
def test_what_renders_a_result_takes_such_a_result(name):
    """It is found by the name of the class: no type checker looks there."""
    first = next(iter(inspect.signature(RENDERERS.named(name)).parameters.values()))
    assert first.annotation == name.partition(".")[0]


def test_every_result_has_what_renders_it():
    for name, _ in modules():
        if not name.startswith("isolitmus.cli"):
            importlib.import_module(name)
    for base, form in ((TextResult, "text"), (PageResult, "html")):
        results = {f"{result.__name__}.{form}" for result in base.__subclasses__()}
        assert results <= {*PLUGINS["renderer"]}
        assert results


def test_what_nothing_renders_is_told_so():
    with pytest.raises(TypeError, match="nothing renders int as text"):
        render_result(1, "text")


def test_without_a_renderer_a_result_prints_as_any_object(monkeypatch):
    monkeypatch.setattr(display, "_load", None)
    assert str(Reason.of("saw", reader="b", version=3)).startswith(
        "<isolitmus.model.reason.Reason object"
    )
