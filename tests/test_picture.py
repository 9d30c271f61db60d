"""The pictures of the pages: the three jobs of the demo at two levels, found, run and drawn by the
tool; and the layers and rooms of the code, drawn from the contracts of the linter of imports.

After a wanted change: ISOLITMUS_UPDATE=1 pytest tests/test_picture.py draws it anew.
"""

import os
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
    """Return the layers of the code, top first, and for each its rooms, from the top to the bottom.

    A module without a room is left out, and so is the layer `cli`, whose modules are commands.
    """
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    by_name = {one["name"]: one.get("layers", []) for one in tools["importlinter"]["contracts"]}
    layers = [layer.removeprefix("isolitmus.") for layer in by_name["Arrows point one way"]]
    rooms = {layer: [] for layer in layers}
    for name, rows in by_name.items():
        if name.startswith("Rooms of the "):
            layer = name.removeprefix("Rooms of the ")
            packages = [[room.rpartition(".")[2] for room in row.split(" | ")] for row in rows]
            rooms[layer] = [
                [room for room in row if (ROOT / layer / room / "__init__.py").exists()]
                for row in packages
            ]
    return [(layer, [row for row in rooms[layer] if row]) for layer in layers]


HOLDS = {
    "cli": "one file a command; options and output",
    "pipeline": "sweeps, checks and audits as Spark jobs",
    "conformance": "real engines: run litmus tests, compare",
    "checker": "check, run, separate, compare, sweep, audit",
    "specs": "levels, protocols, litmus tests, and their readers",
    "model": "relation, graph, history, litmus test, run, spec",
}
SIZE, ROW, GAP, LEFT = 12, 26, 6, 150


def layers_svg(theme):
    """Draw each layer as a band with its rooms; whatever imports stands above what it imports."""
    parts, y, right = [], 0, 520
    found = contracts()
    assert [layer for layer, _ in found] == [*HOLDS]
    for layer, rows in found:
        height = 32 + len(rows) * (ROW + GAP)
        parts.append(f'<rect class="node" x="0" y="{y}" width="{right}" height="{height}" rx="6"/>')
        parts.append(label(12, y + 20, layer, "name"))
        parts.append(label(LEFT, y + 20, HOLDS[layer], "edge-label"))
        for number, row in enumerate(rows):
            x, top = LEFT, y + 28 + number * (ROW + GAP)
            for room in row:
                width = text_width(room, SIZE) + 16
                parts.append(
                    f'<rect class="node" x="{x}" y="{top}" width="{width:g}" height="{ROW}" rx="4"/>'
                )
                parts.append(label(x + width / 2, top + 17, room, "digit"))
                x += width + GAP
        y += height + 14
    said = "; ".join(
        f"{layer}: {', '.join(room for row in rows for room in row) or 'no rooms'}"
        for layer, rows in found
    )
    return svg("Layers, each importing only from below", said, (0, 0, right, y), parts, theme)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_picture_of_the_layers_is_what_the_linter_checks(theme):
    path = DOCS / f"layers-{theme}.svg"
    drawn = layers_svg(theme) + "\n"
    if os.environ.get("ISOLITMUS_UPDATE"):
        path.write_text(drawn, "utf-8")
    assert path.read_text("utf-8") == drawn, "ISOLITMUS_UPDATE=1 draws it anew."


def test_every_layer_with_rooms_shows_them():
    rooms = {layer: {room for row in rows for room in row} for layer, rows in contracts()}
    for layer in ("specs", "checker", "conformance"):
        packages = {path.parent.name for path in (ROOT / layer).glob("*/__init__.py")}
        assert rooms[layer] == packages
