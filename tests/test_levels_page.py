"""docs/levels.md is what compare finds: the lattice in both universes, its pictures, every level by itself.

After a change of the levels or of the catalogue's histories: ISOLITMUS_UPDATE=1 pytest tests/test_levels_page.py, which
takes a minute.
"""

import difflib
import os
import re
from pathlib import Path

import pytest

from isolitmus.checker import compare
from isolitmus.checker.processes import cores
from isolitmus.checker.searching.shipped import shipped_histories
from isolitmus.checker.telling.hasse import hasse_svg
from isolitmus.checker.telling.levels_page import anomaly_verdicts, levels_page
from isolitmus.specs import level
from isolitmus.specs.catalogue import every_level

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "levels.md"
PICTURES = ["levels", "levels-on-tables"]


@pytest.fixture(scope="module")
def found():
    return compare([level(name) for name in every_level()], processes=cores())


def written(path, new):
    text = path.read_text("utf-8") if path.exists() else ""
    if os.environ.get("ISOLITMUS_UPDATE"):
        path.write_text(new, "utf-8")
    elif new != text:
        lines = text.splitlines(), new.splitlines()
        diff = difflib.unified_diff(*lines, path.name, "what compare finds", lineterm="", n=0)
        pytest.fail("\n".join([*diff, "", "ISOLITMUS_UPDATE=1 writes it anew."]), pytrace=False)


@pytest.mark.slow
def test_the_page_is_what_compare_finds(found):
    assert found.decided
    assert {*found.apart} == {name for name in every_level() if level(name).given}
    specs = [level(name) for name in every_level()]
    written(PAGE, levels_page(found, specs, list(shipped_histories()), PICTURES))


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pictures_are_what_compare_finds(found, theme):
    for lattice, name in zip(found.lattices, PICTURES, strict=True):
        graph = lattice.graph
        drawn = hasse_svg(tuple(graph.nodes), graph.edges, graph.chosen, theme)
        written(DOCS / f"{name}-{theme}.svg", drawn + "\n")


def test_every_level_has_a_section_with_its_text():
    page = PAGE.read_text("utf-8")
    sections = dict(re.findall(r"^## ([\w-]+)$\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE))
    assert {*sections} == {*every_level()}
    for name, section in sections.items():
        assert f"```text\n{level(name).text.strip()}\n```" in section


def test_the_verdicts_of_the_page_are_those_of_the_levels():
    """Read from the sections: what a level forbids, and what it admits."""
    page = PAGE.read_text("utf-8")
    said = anomaly_verdicts([level(name) for name in every_level()], list(shipped_histories()))
    for name in every_level():
        (_, _, section) = page.partition(f"\n## {name}\n")
        (section, _, _) = section.partition("\n## ")
        for word, verdict in (("Forbids", "forbidden"), ("Admits", "allowed")):
            (line,) = re.findall(rf"^{word}: .*$", section, re.MULTILINE) or [""]
            shown = set(re.findall(r"\(`([\w-]+)`\)", line))
            assert shown == {
                test for one, test in said if one == name and said[one, test] == verdict
            }
