"""Lists of what the code knows are written by the code, between two comments of the page.

After a change of the catalogue or the vocabulary: ISOLITMUS_UPDATE=1 pytest tests/test_lists.py.
"""

import difflib
import os
import re
from pathlib import Path

import pytest

from isolitmus.checker.running import frames
from isolitmus.checker.searching import abstract
from isolitmus.conformance.engines import ENGINES
from isolitmus.model.litmus import Litmus
from isolitmus.model.vocabulary import BINDERS, RELATIONS, SETS
from isolitmus.specs import litmus, spec
from isolitmus.specs.catalogue import levels, litmus_tests, protocols, scopes

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LIST = re.compile(r"(?<=<!-- list: )([\w -]+)( -->\n)(.*?)(?=<!-- end of list -->)", re.DOTALL)


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def specs():
    """Name, title, kind, and the work that is transcribed: the source up to what it says of it."""
    kinds = {"level": levels(), "protocol": protocols()}
    found = [(spec(name), kind) for kind, names in kinds.items() for name in names]
    return table(
        ["name", "title", "kind", "after"],
        [
            [f"`{s.name}`", s.title, kind, re.split(":|, the ", s.source)[0].rstrip(".")]
            for s, kind in found
        ],
    )


def names(meanings):
    """Name, meaning, and the universes whose frames have it."""
    given = {"abstract": abstract.NAMES, "table": {*frames.RELATIONS, *frames.SETS}}
    rows = []
    for name, meaning in meanings.items():
        where = [universe for universe, known in given.items() if name in known]
        rows.append([f"`{name}`", meaning, ", ".join(where) or "none yet"])
    return table(["name", "meaning", "in universe"], rows)


def counts():
    tests = [litmus(name) for name in litmus_tests()]
    on_tables = sum(isinstance(test, Litmus) for test in tests)
    return (
        f"\nThe catalogue holds {len(levels())} levels, {len(protocols())} protocols, {len(tests)}"
        f" litmus tests ({on_tables} on tables, {len(tests) - on_tables} abstract histories),"
        f" {len(scopes())} scope{'s' * (len(scopes()) != 1)} and {len(ENGINES)} engines.\n\n"
    )


def binders():
    return table(
        ["source of orders", "statement", "meaning of what it binds"],
        [
            [f"`{source}`", f"`with {name} from {source}`", RELATIONS[name]]
            for source, name in BINDERS.items()
        ],
    )


LISTS = {
    "specs": specs,
    "relations": lambda: names(RELATIONS),
    "sets": lambda: names(SETS),
    "binders": binders,
    "counts": counts,
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_lists_are_what_the_code_gives(page):
    text = page.read_text("utf-8")
    new = LIST.sub(lambda match: match[1] + match[2] + LISTS[match[1]](), text)
    if os.environ.get("ISOLITMUS_UPDATE"):
        page.write_text(new, "utf-8")
    elif new != text:
        diff = difflib.unified_diff(
            text.splitlines(), new.splitlines(), page.name, "the code", lineterm="", n=1
        )
        pytest.fail("\n".join([*diff, "", "ISOLITMUS_UPDATE=1 writes it anew."]), pytrace=False)


def test_every_list_is_on_a_page():
    shown = [m[1] for page in PAGES for m in LIST.finditer(page.read_text("utf-8"))]
    assert set(shown) == set(LISTS)
