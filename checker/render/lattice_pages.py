"""Pages of lattices and of the shipped levels.

Results of ``compare`` become a page or a notebook fragment. The page of the levels shows their
implications, the anomalies that each forbids, and each level by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.render.colours import DARK, LIGHT, coloured
from isolitmus.checker.render.history_notation import adya_notation, one_line_of
from isolitmus.checker.render.lattice import (
    CAPTION,
    LEGEND,
    SIGNS,
    apart_words,
    depending_lines,
    equal_words,
    forward_words,
    origin_words,
    space_words,
)
from isolitmus.checker.render.notebook import THEMES
from isolitmus.checker.render.page_parts import render_template
from isolitmus.checker.render.verdicts import axiom_lines
from isolitmus.checker.search.lattice import node_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.checker.render.page_parts import PageOrigin
    from isolitmus.checker.search.lattice import Lattice, Lattices
    from isolitmus.model.litmus import HistoryTest
    from isolitmus.model.spec import Spec

__all__ = ["anomaly_verdicts", "lattices_html", "lattices_page", "levels_page"]


def lattices_page(found: Lattices, made: PageOrigin) -> str:
    """Return the page: for each search space the picture, the neighbours, and every pair.

    It has no scripts, and every text is escaped.
    """
    return render_template("lattices_page.html.j2", **_context(found), made=made)


def lattices_html(found: Lattices) -> str:
    """Return the same as a fragment for a notebook.

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
        "legend": f"{CAPTION}. {LEGEND}.",
        "signs": SIGNS,
        "space": space_words,
        "named": node_name,
        "forward": forward_words,
        "apart": apart_words,
        "equal": equal_words,
        "depending": list(depending_lines(found)),
        "assumed": list(dict.fromkeys(a for one in found.lattices for a in one.assumptions)),
    }


MARKS = {"allowed": "yes", "forbidden": "**no**"}


def levels_page(
    found: Lattices,
    specs: Sequence[Spec],
    anomalies: Sequence[HistoryTest],
    pictures: Sequence[str],
) -> str:
    """Return the page in Markdown.

    ``pictures`` has, for each lattice, the file name of its picture without ``-light.svg`` and
    ``-dark.svg``.
    """
    place = {name: k for lattice in found.lattices for k, name in enumerate(lattice.ordered)}
    ordered = sorted(specs, key=lambda spec: (place.get(spec.name, len(place)), spec.name))
    return render_template(
        "levels.j2",
        found=found,
        specs=ordered,
        anomalies=anomalies,
        said=anomaly_verdicts(ordered, anomalies),
        marks=MARKS,
        pictures=pictures,
        described=[_described(lattice) for lattice in found.lattices],
        depending=list(depending_lines(found)),
        axioms=lambda spec: list(axiom_lines(spec)),
        named=node_name,
        linear=lambda test: adya_notation(test.history),
        told=lambda one: f"`{one_line_of(one.test)}`{origin_words(one)}" if one.test else "",
        forward=forward_words,
        apart=apart_words,
        equal=equal_words,
    )


def anomaly_verdicts(
    specs: Sequence[Spec], anomalies: Sequence[HistoryTest]
) -> Mapping[tuple[str, str], str]:
    """Return the verdict of each level on each history.

    It is ``allowed``, ``forbidden``, or the names that the level needs and the history lacks.

    >>> from isolitmus.specs import level, litmus
    >>> anomaly_verdicts([level("serializable")], [litmus("history-write-skew")])
    {('serializable', 'history-write-skew'): 'forbidden'}
    """
    return {
        (spec.name, test.name): str(check_history(test.history, spec))
        for spec in specs
        for test in anomalies
    }


def _described(lattice: Lattice) -> str:
    """Return the picture in words, as its alternative text."""
    steps = (f"{node_name(e.stronger)} implies {node_name(e.weaker)}" for e in lattice.edges)
    return "; ".join(steps)
