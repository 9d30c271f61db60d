"""The answer to ``compare`` as a page, and as a notebook shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.render.colours import DARK, LIGHT, coloured
from isolitmus.checker.render.lattice import (
    LEGEND,
    SIGNS,
    apart_words,
    depending_lines,
    equal_words,
    forward_words,
)
from isolitmus.checker.render.lattice_diagram import node_name
from isolitmus.checker.render.notebook import THEMES
from isolitmus.checker.render.page_parts import render_template

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.checker.render.page_parts import Made
    from isolitmus.checker.search.lattice import Lattices

__all__ = ["lattices_html", "lattices_page"]


def lattices_page(found: Lattices, made: Made) -> str:
    """The page: of each universe the picture, the neighbours, and every pair. No script, every text escaped."""
    return render_template("lattices_page.html.j2", **_context(found), made=made)


def lattices_html(found: Lattices) -> str:
    """The same as a fragment for a notebook.

    >>> from isolitmus.checker import compare
    >>> from isolitmus.specs import level
    >>> two = compare([level("serializable"), level("snapshot-isolation")], "abstract")
    >>> lattices_html(two).count("<svg")
    1
    """
    return render_template(
        "lattices_fragment.html.j2",
        **_context(found),
        light=LIGHT,
        dark=DARK,
        themes=THEMES,
        coloured=coloured,
    )


def _context(found: Lattices) -> Mapping[str, object]:
    return {
        "found": found,
        "legend": LEGEND,
        "signs": SIGNS,
        "named": node_name,
        "forward": forward_words,
        "apart": apart_words,
        "equal": equal_words,
        "depending": list(depending_lines(found)),
        "assumed": list(dict.fromkeys(a for one in found.lattices for a in one.assumptions)),
    }
