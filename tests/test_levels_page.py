"""docs/levels.md and its pages below docs/results are what compare finds: the lattice in both
search spaces, its pictures, a page for each level, a section for each history.

After a change of the levels or of the catalogue's histories: ISOLITMUS_UPDATE=1 pytest
tests/test_levels_page.py, which takes minutes. Without it the pages are held against the levels as
they are: their texts, their verdicts, each history that separates two, each implication that is
said to follow from definitions.
"""

import difflib
import os
import re
from itertools import product
from pathlib import Path

import networkx as nx
import pytest

from isolitmus.checker import compare
from isolitmus.checker.execution.worker_processes import available_cores
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.prove.structural_implication import derive_from_texts
from isolitmus.checker.render.history_notation import adya_notation
from isolitmus.checker.render.lattice_diagram import hasse_svg
from isolitmus.checker.render.lattice_pages import anomaly_verdicts, levels_pages
from isolitmus.checker.universes.catalogue_histories import shipped_histories
from isolitmus.model.history import History
from isolitmus.specs import level, litmus
from isolitmus.specs.files.spec_catalogue import every_level

STEP = re.compile(
    r"""\d+\. \*\*(?P<stronger>.*)\*\* is stronger than \*\*(?P<weaker>.*)\*\*\.
   (?P<a>\S+) implies (?P<b>\S+): (?P<why>.*)\.
   Only `\S+` admits `(?P<apart>.*)`(?: \(litmus test (?P<test>\S+)\))?\.
"""
)
"""An implication, as the page words it."""
STEPS = re.compile(r"[rwd][0-9]*\([^()]*\)|\[.*")
"""Operations and orders of versions."""
DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "levels.md"
IMPLICATIONS = DOCS / "results" / "implications.md"
LEVELS = DOCS / "results" / "levels"
PICTURES = ["levels", "levels-on-tables"]


@pytest.fixture(scope="module")
def found():
    return compare([level(name) for name in every_level()], processes=available_cores())


def written(path, new):
    text = path.read_text("utf-8") if path.exists() else ""
    if os.environ.get("ISOLITMUS_UPDATE"):
        path.write_text(new, "utf-8")
    elif new != text:
        lines = text.splitlines(), new.splitlines()
        diff = difflib.unified_diff(*lines, path.name, "what compare finds", lineterm="", n=0)
        pytest.fail("\n".join([*diff, "", "ISOLITMUS_UPDATE=1 writes it anew."]), pytrace=False)
    assert path.read_text("utf-8") == new


@pytest.mark.slow
@pytest.mark.wide
def test_the_pages_are_what_compare_finds(found):
    assert found.decided
    assert {*found.apart} == {name for name in every_level() if level(name).given}
    specs = [level(name) for name in every_level()]
    pages = levels_pages(found, specs, list(shipped_histories()), PICTURES)
    for path, text in pages.items():
        written(DOCS / path, text)
    assert {*LEVELS.iterdir()} == {DOCS / path for path in pages if "/levels/" in path}


@pytest.mark.slow
@pytest.mark.wide
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pictures_are_what_compare_finds(found, theme):
    for lattice, name in zip(found.lattices, PICTURES, strict=True):
        graph = lattice.graph
        drawn = hasse_svg(tuple(graph.nodes), graph.edges, graph.chosen, theme)
        written(DOCS / f"{name}-{theme}.svg", drawn + "\n")


def test_the_overview_is_read_in_a_sitting():
    assert len(PAGE.read_bytes()) <= 20_000


def test_every_level_has_a_page_with_its_text():
    pages = {path.stem: path.read_text("utf-8") for path in LEVELS.iterdir()}
    assert {*pages} == {*every_level()}
    for name, text in pages.items():
        assert f"```text\n{level(name).text.strip()}\n```" in text


@pytest.fixture(scope="module")
def verdicts():
    """What each level says of each history of the catalogue."""
    return anomaly_verdicts([level(name) for name in every_level()], list(shipped_histories()))


@pytest.mark.slow
def test_the_verdicts_of_the_page_are_those_of_the_levels(verdicts):
    """Read from the pages: what a level forbids, and what it admits."""
    for name in every_level():
        text = (LEVELS / f"{name}.md").read_text("utf-8")
        for word, verdict in (("Forbids", "forbidden"), ("Admits", "allowed")):
            (line,) = re.findall(rf"^{word}, .*$", text, re.MULTILINE) or [""]
            shown = set(re.findall(r"#([\w-]+)\)", line))
            assert shown == {
                test for one, test in verdicts if one == name and verdicts[one, test] == verdict
            }


@pytest.fixture(scope="module")
def steps():
    """What the page says of each line of the picture of abstract histories."""
    (page, _, _) = IMPLICATIONS.read_text("utf-8").partition("## On tables")
    found = list(STEP.finditer(page))
    assert len(found) == page.count("   Only `")
    return found


def test_what_the_page_draws_is_a_picture_of_all_levels(steps):
    """Each is there, nobody implies himself, and no line is drawn that others give."""
    lines = nx.DiGraph((step["stronger"], step["weaker"]) for step in steps)
    names = [name for equal in lines for name in equal.split(" = ")]
    elsewhere = {name for name in every_level() if level(name).given or "log" in level(name).needs}
    assert sorted(names) == sorted({*every_level()} - elsewhere)
    assert {*nx.transitive_reduction(lines).edges} == {*lines.edges}


def test_every_history_of_the_page_is_read():
    """What stands behind it, sessions, times and sets, is read from a table."""
    pages = (IMPLICATIONS, DOCS / "results" / "anomalies.md")
    text = "".join(page.read_text("utf-8") for page in pages)
    found = set(re.findall(r"`([^`\n]*\b[rw][0-9]*\([^`\n]*)`", text))
    lines = {
        re.split(r", (?=in time|T\d|nobody)", text)[0] for text in found if "where " not in text
    }
    assert len(lines) > 50
    for line in lines:
        again = adya_notation(History.parse(line))
        assert sorted(STEPS.findall(again)) == sorted(STEPS.findall(line))


@pytest.mark.slow
def test_what_sets_two_levels_apart_on_the_page_does(steps):
    """What one alone admits is admitted by all that are equal to it, and forbidden by all of the
    stronger.
    """
    shown = 0
    for step in steps:
        if step["test"]:
            history = litmus(step["test"]).history
        elif ", " in step["apart"]:  # who continues a session, or when: told in words
            continue
        else:
            history = History.parse(step["apart"])
        shown += 1
        for names, verdict in (("weaker", "allowed"), ("stronger", "forbidden")):
            for name in step[names].split(" = "):
                assert str(check_history(history, level(name))) == verdict, (step[0], name)
    assert shown > len(steps) / 2


@pytest.mark.slow
def test_no_history_of_the_catalogue_speaks_against_the_page(steps, verdicts):
    lines = nx.DiGraph((step["stronger"], step["weaker"]) for step in steps)
    for one, other in nx.transitive_closure(lines).edges:
        for a, b in product(one.split(" = "), other.split(" = ")):
            for test in shipped_histories():
                pair = verdicts[a, test.name], verdicts[b, test.name]
                assert pair != ("allowed", "forbidden"), (a, b, test.name)


@pytest.mark.slow
def test_what_the_page_says_follows_from_texts_does(steps):
    by_text = [step for step in steps if step["why"].startswith("proved from the definitions: ")]
    assert len(by_text) > len(steps) / 3
    for step in by_text:
        found = derive_from_texts(level(step["a"]), level(step["b"]))
        assert step["why"] == f"proved from the definitions: {found}"
