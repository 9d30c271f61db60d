"""Plug-ins: of our own table, of installed packages, and what is wrong with them."""

import sys
from types import SimpleNamespace

import pytest

from isolitmus.checker.checks import history_sources
from isolitmus.checker.render.results import RENDERERS
from isolitmus.cli import main as shell
from isolitmus.jobs.readers.project_sources import KINDS
from isolitmus.model import plugins, registry
from isolitmus.model.errors import IsolitmusError, MissingPart, UnknownName
from isolitmus.model.registry import INTERFACE, Registry
from isolitmus.specs.files.spec_reader import read_spec
from isolitmus.specs.registries import ENGINES, FORMATS


@pytest.fixture
def packages(monkeypatch, tmp_path):
    """packages(name, text): install a package with these entry points."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(name, text):
        told = tmp_path / f"{name}-1.dist-info"
        told.mkdir()
        (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (told / "entry_points.txt").write_text(text)
        registry._entry_points.cache_clear()

    yield install
    registry._entry_points.cache_clear()
    registry.PACKAGES.clear()


def paints(*lines, version=INTERFACE):
    return "\n".join((f"[isolitmus.colours.v{version}]", *lines, ""))


def test_what_an_installed_package_offers_is_known_as_long_as_it_is_there(packages, monkeypatch):
    monkeypatch.setitem(registry.PLUGINS, "colour", {"zip": "isolitmus.model.run:Run"})
    colours = Registry("colour")
    assert colours.names() == ("zip",)
    packages("paints", paints("red = pathlib:Path"))
    assert (colours.names(), colours.own_names()) == (("red", "zip"), ("zip",))
    assert colours.named("red").__name__ == "Path"
    assert ("red" in colours, "green" in colours) == (True, False)
    with pytest.raises(UnknownName, match="unknown colour 'rde'; did you mean 'red'"):
        Registry("colour").named("rde")


def test_metadata_is_not_read_for_a_name_of_the_table(monkeypatch):
    def read(*_):
        raise AssertionError("read")

    monkeypatch.setattr(registry, "_entry_points", read)
    monkeypatch.setitem(registry.PLUGINS, "colour", {"zip": "isolitmus.model.run:Run"})
    colours = Registry("colour", {"zipped": "zip"})
    assert "zip" in colours
    assert colours.named("zip") is colours.named("zipped")
    with pytest.raises(AssertionError, match="read"):
        colours.named("red")


BROKEN = {
    ("red = nowhere_at_all:RED",): (
        "the colour 'red' of paints 1 cannot be imported from nowhere_at_all:RED:"
        " ModuleNotFoundError: No module named 'nowhere_at_all'"
    ),
    ("red = pathlib:Paths",): (
        "the colour 'red' of paints 1 cannot be imported from pathlib:Paths:"
        " AttributeError: module 'pathlib' has no attribute 'Paths'"
    ),
    ("red = math:pi",): "the colour 'red' of paints 1: math:pi is of type float, not a colour",
}


@pytest.mark.parametrize("lines", BROKEN)
def test_a_plug_in_that_cannot_be_used_is_an_error_that_names_its_package(packages, lines):
    packages("paints", paints(*lines))
    with pytest.raises(IsolitmusError) as error:
        Registry("colour").named("red")
    assert str(error.value) == BROKEN[lines]


def test_a_name_that_two_packages_register_is_an_error_that_names_both(packages):
    packages("paints", paints("red = pathlib:Path"))
    packages("inks", paints("red = pathlib:PurePath"))
    with pytest.raises(
        IsolitmusError, match=r"^the colour 'red' of (paints|inks) 1 has a name"
    ) as e:
        Registry("colour").named("red")
    assert {"paints 1", "inks 1"} <= {
        part for part in ("paints 1", "inks 1") if part in str(e.value)
    }


def test_a_name_of_ours_that_a_package_registers_is_an_error_in_a_list(packages, monkeypatch):
    monkeypatch.setitem(registry.PLUGINS, "colour", {"red": "isolitmus.model.run:Run"})
    packages("paints", paints("red = pathlib:Path"))
    with pytest.raises(
        IsolitmusError, match="'red' of paints 1 has a name that isolitmus registers"
    ):
        Registry("colour").names()


@pytest.mark.parametrize(("group", "said"), [("s.v2", "version 2"), ("s", "no version")])
def test_a_plug_in_for_another_interface_is_an_error(packages, group, said):
    packages("paints", f"[isolitmus.colour{group}]\nred = pathlib:Path\n")
    with pytest.raises(IsolitmusError) as error:
        Registry("colour").named("red")
    assert str(error.value) == (
        f"the colour 'red' of paints 1 is for {said} of the interface, this is version 1; install"
        " a release of paints 1 that registers it in the group isolitmus.colours.v1"
    )


def test_a_part_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(registry.PLUGINS, "colour", {"red": "isolitmus.poetry.paint:RED"})
    colours = Registry("colour")
    assert ("red" in colours, colours.names()) == (True, ())
    with pytest.raises(MissingPart, match=r"no colour 'red' here: it is in isolitmus\.poetry"):
        colours.named("red")


def test_every_plug_in_of_ours_is_there_and_has_its_name():
    for kind, paths in plugins.PLUGINS.items():
        known = Registry(kind)
        for name in paths:
            found = known.named(name)
            assert getattr(found, "name", name) == name
            assert known.check(found) or kind not in ("verb", "renderer", "history writer")


STRANGER = """
from dataclasses import replace
from pathlib import Path
from isolitmus.checker.checks.history_sources import LITMUS, HistorySource
from isolitmus.checker.delta.format import DELTA
from isolitmus.checker.execution.run_result import MODEL
from isolitmus.jobs.readers.project_sources import ProjectSources, WorkloadKind
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.model.display import TextResult

class Greeting(TextResult):
    def __init__(self, who):
        self.who = who

def greet(who: str) -> int:
    \"""Say hello to WHO.\"""
    print(Greeting(who) if who != "nobody" else 1 / 0)
    return 0

def words(greeting):
    return f"hello {greeting.who}"

def found(path):
    return path / "orders.tale" if (path / "orders.tale").exists() else None

def read(root, home, ddl, logged, **_):
    return ProjectSources(workload("shop"), lambda: ([], []))

TALES = replace(LITMUS, name="tales")
LAKE = replace(DELTA, name="lake")
ECHO = replace(MODEL, name="echo")
ORDERS = WorkloadKind("orders", "a tale of orders", found, lambda root: root.parent, read)
"""
OFFERED = {
    "verbs": ("greet", "greet"), "renderers": ("Greeting.text", "words"),
    "history_sources": ("tales", "TALES"), "formats": ("lake", "LAKE"),
    "engines": ("echo", "ECHO"), "workload_kinds": ("orders", "ORDERS"),
}  # fmt: skip
"""Name and place of a plug-in of each kind, by the group of its entry point."""


@pytest.fixture
def stranger(packages, monkeypatch, tmp_path):
    """A package with a plug-in of each kind, which only its entry points tell."""
    (tmp_path / "stranger.py").write_text(STRANGER)
    groups = (
        f"[isolitmus.{group}.v1]\n{name} = stranger:{place}\n"
        for group, (name, place) in OFFERED.items()
    )
    packages("stranger", "".join(groups))
    known = (shell.FUNCTIONS, history_sources.SOURCES, ENGINES, FORMATS, KINDS, RENDERERS)
    for one in known:
        monkeypatch.setattr(one, "_known", dict(one._known))
    monkeypatch.delitem(sys.modules, "stranger", raising=False)
    return tmp_path


def test_plug_ins_of_another_package_work_as_ours(stranger, call):
    assert call("greet", "Ada") == (0, "hello Ada\n", "")
    assert "\nOf other packages:\n  greet  isolitmus greet --help\n" in call("--help")[1]
    assert "Say hello to WHO." in call("greet", "--help")[1]
    status, _, err = call("greet", "nobody")
    said = "error of the plug-in stranger 1: ZeroDivisionError in stranger:17 (division by zero)"
    assert (status, err.partition(";")[0]) == (70, f"isolitmus: {said}")
    words = "check", "history-write-skew", "--level", "serializable"
    assert call(*words, "--format", "tales") == call(*words)
    assert "did you mean 'tales'" in call(*words, "--format", "talse")[2]
    assert call("run", "reorder", "--engine", "echo")[0] == 0
    mine = stranger / "mine.cat"
    mine.write_text('"Mine" format lake promises serializable empty unseen as Refused')
    assert read_spec(mine.read_text(), "mine", mine).format == "lake"
    (stranger / "jobs").mkdir()
    (stranger / "jobs" / "orders.tale").touch()
    assert call("predict", str(stranger / "jobs")) == call("predict", "shop")


def test_a_record_is_registered_for_a_block():
    colours = Registry("colour")
    blue = SimpleNamespace(name="blue")
    with colours.offered(blue):
        assert colours.named("blue") is blue
    assert colours.names() == ()
