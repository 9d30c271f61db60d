"""The pictures of the pages: the three jobs of the demo at two levels, found, run and drawn by the
tool; and the layers and rooms of the code, drawn from the contracts of the linter of imports.

After a wanted change: ISOLITMUS_UPDATE=1 pytest tests/test_picture.py draws it anew.
"""

import os
import re
import tomllib
from pathlib import Path

import pytest

from isolitmus.checker import run, separate
from isolitmus.checker.render.run_panels import side_by_side_svg
from isolitmus.checker.render.timeline import label, svg, text_width
from isolitmus.specs import protocol, scope, spec

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def runs():
    """The smallest history that WriteSerializable's check admits and no order explains, under both
    checks.
    """
    a, b = spec("delta-write-serializable"), spec("write-serializable")
    found = separate(a, b, scope("orders"), unexplained=True).litmus
    return [
        run(found, protocol(name)) for name in ("delta-serializable", "delta-write-serializable")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_picture_of_the_readme_is_what_the_tool_finds(runs, theme):
    path = DOCS / f"three-jobs-{theme}.svg"
    drawn = side_by_side_svg(runs, theme) + "\n"
    if os.environ.get("ISOLITMUS_UPDATE"):
        path.write_text(drawn, "utf-8")
    assert path.read_text("utf-8") == drawn, "ISOLITMUS_UPDATE=1 draws it anew."


def contracts():
    """Return the layers of the code, top first, each as folders side by side with their rooms.

    Rooms are rows from the top to the bottom. A module without a room is left out.
    """
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    by_name = {one["name"]: one.get("layers", []) for one in tools["importlinter"]["contracts"]}
    rooms = {}
    for name, rows in by_name.items():
        if name.startswith("Rooms of the "):
            folder = name.removeprefix("Rooms of the ")
            packages = [
                [room.rpartition(".")[2] for room in re.split(" [|:] ", row)] for row in rows
            ]
            there = ([room for room in row if is_room(folder, room)] for row in packages)
            rooms[folder] = [row for row in there if row]
    layers = (row.split(" | ") for row in by_name["Arrows point one way"])
    names = [[name.removeprefix("isolitmus.") for name in row] for row in layers]
    return [{name: rooms[name] for name in row} for row in names]


def is_room(folder, name):
    return (ROOT / folder / name / "__init__.py").exists()


HOLDS = {
    "claims": "documents' claims",
    "databases": "locks, Derby, PostgreSQL",
    "histories": "of other tools",
    "jobs": "predict, robust, lint",
    "pipeline": "Spark at scale",
    "cli": "one file a command; options and output",
    "conformance": "real engines: run litmus tests, compare",
    "checker": "check, run, separate, compare, sweep, audit",
    "specs": "levels, protocols, litmus tests, and their readers",
    "model": "relation, graph, history, litmus test, run, spec",
}
CORE = {"judge", "language"}
SIZE, ROW, GAP, LEFT = 12, 26, 6, 130
PARTS = ("jobs", "databases", "histories", "pipeline", "claims")
"""The parts from the left to the right, the one with most rooms first."""


def box(room, x, y):
    """Return a room as a box, and its width; the boxes of the core have a thick line."""
    width = text_width(room, SIZE) + 16
    thick = ' style="stroke-width:3"' if room in CORE else ""
    rect = f'<rect class="node" x="{x:g}" y="{y}" width="{width:g}" height="{ROW}" rx="4"{thick}/>'
    return [rect, label(x + width / 2, y + 17, room, "digit")], width


def downwards(rows, left, top):
    """Yield the rooms of a part, a row below another."""
    for number, row in enumerate(rows):
        x = left
        for room in row:
            drawn, width = box(room, x, top + number * (ROW + GAP))
            yield from drawn
            x += width + GAP


def rightwards(rows, left, top):
    """Yield the rooms of a layer, each row of its contract to the right of the one above it."""
    x = left
    for row in rows:
        drawn = [box(room, x, top + number * (ROW + GAP)) for number, room in enumerate(row)]
        yield from (part for parts, _ in drawn for part in parts)
        x += max(width for _, width in drawn) + GAP


def layers_svg(theme):
    """Draw the parts side by side, and the layers below them as bands."""
    (top, *below) = contracts()
    assert {*top} == {*PARTS}
    assert [*top, *(name for layer in below for name in layer)] == [*HOLDS]
    deepest = max(map(len, top.values()))
    parts, x, height = [], 0, 52 + deepest * (ROW + GAP)
    for name in PARTS:
        wide = [sum(text_width(room, SIZE) + 16 + GAP for room in row) for row in top[name]]
        width = max(*wide, text_width(HOLDS[name], SIZE), text_width(name, 15)) + 20
        parts.append(
            f'<rect class="node" x="{x:g}" y="0" width="{width:g}" height="{height}" rx="6"/>'
        )
        parts.append(label(x + 12, 20, name, "name"))
        parts.append(label(x + 12, 38, HOLDS[name], "edge-label"))
        parts += downwards(top[name], x + 12, 48)
        x += width + 10
    right, y = round(x - 10), height + 14
    for layer in below:
        ((name, rows),) = layer.items()
        height = 32 + max((len(row) for row in rows), default=0) * (ROW + GAP)
        parts.append(f'<rect class="node" x="0" y="{y}" width="{right}" height="{height}" rx="6"/>')
        parts.append(label(12, y + 20, name, "name"))
        parts.append(label(LEFT, y + 20, HOLDS[name], "edge-label"))
        parts += rightwards(rows, 12, y + 28)
        y += height + 14
    said = "; ".join(
        f"{name}: {', '.join(room for row in rows for room in row) or 'no rooms'}"
        for layer in (top, *below)
        for name, rows in layer.items()
    )
    title = (
        "Parts above layers: each imports only from below, a room of a layer only from its right"
    )
    return svg(title, said, (0, 0, right, y), parts, theme)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_picture_of_the_layers_is_what_the_linter_checks(theme):
    path = DOCS / f"layers-{theme}.svg"
    drawn = layers_svg(theme) + "\n"
    if os.environ.get("ISOLITMUS_UPDATE"):
        path.write_text(drawn, "utf-8")
    assert path.read_text("utf-8") == drawn, "ISOLITMUS_UPDATE=1 draws it anew."


def test_every_room_is_shown():
    for layer in contracts():
        for folder, rows in layer.items():
            packages = {path.parent.name for path in (ROOT / folder).glob("*/__init__.py")}
            assert {room for row in rows for room in row} == packages
