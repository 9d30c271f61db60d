"""The picture of the README: the three jobs of the demo at two levels, found, carried out and drawn
by the tool.

After a wanted change: ISOLITMUS_UPDATE=1 pytest tests/test_picture.py draws it anew.
"""

import os
from pathlib import Path

import pytest

from isolitmus.checker import run, separate
from isolitmus.checker.render.run_panels import side_by_side_svg
from isolitmus.specs import protocol, scope, spec

DOCS = Path(__file__).parents[1] / "docs"


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
