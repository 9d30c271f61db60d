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
)
from isolitmus.checker.render.notebook import THEMES
from isolitmus.checker.render.page_parts import render_template
from isolitmus.checker.render.verdicts import axiom_lines
from isolitmus.checker.search.lattice import node_name
from isolitmus.specs.files.anomaly_file import anomalies as named_anomalies
from isolitmus.specs.files.spec_catalogue import levels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.checker.render.page_parts import PageOrigin
    from isolitmus.checker.search.lattice import Lattices
    from isolitmus.model.litmus import HistoryTest
    from isolitmus.model.spec import Spec


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
    """Return the variables of the templates of a comparison."""
    return {
        "found": found,
        "legend": f"{CAPTION}. {LEGEND}.",
        "signs": SIGNS,
        "named": node_name,
        "forward": forward_words,
        "apart": apart_words,
        "equal": equal_words,
        "depending": list(depending_lines(found)),
        "assumed": list(dict.fromkeys(a for one in found.lattices for a in one.assumptions)),
    }


HEADINGS = {"abstract": "On abstract histories", "table": "On tables"}
"""Headings of the search spaces in the pages of the levels."""


ALLOWED = {"allowed": "yes", "forbidden": "no"}
"""Cell of the table of anomalies: does the level allow the anomaly?"""


def levels_pages(
    found: Lattices,
    specs: Sequence[Spec],
    anomalies: Sequence[HistoryTest],
    pictures: Sequence[str],
) -> Mapping[str, str]:
    """Return the documentation pages of the shipped levels, in Markdown.

    Parameters
    ----------
    found : Lattices
        Implications between all levels.
    specs : sequence of Spec
        The levels.
    anomalies : sequence of HistoryTest
        Histories on which each level is judged.
    pictures : sequence of str
        File name of the picture of each lattice, without ``-light.svg`` or ``-dark.svg``.

    Returns
    -------
    mapping of str to str
        Text of each page by its path below ``docs/``.
    """
    place = {name: k for lattice in found.lattices for k, name in enumerate(lattice.ordered)}
    ordered = sorted(specs, key=lambda spec: (place.get(spec.name, len(place)), spec.name))
    said = anomaly_verdicts(ordered, anomalies)
    names = {test.name for test in anomalies}
    judged = {name for (name, _), verdict in said.items() if verdict in ALLOWED}
    canonical = [spec.name for spec in ordered if spec.name in judged & {*levels()}]
    context = {
        "canonical": canonical,
        "named_anomalies": [one for one in named_anomalies().values() if one.history in names],
        "allowed": lambda one, level: ALLOWED.get(said.get((level, one.history), ""), "–"),
        "found": found,
        "specs": ordered,
        "anomalies": anomalies,
        "said": said,
        "headings": HEADINGS,
        "pictures": pictures,
        "depending": list(depending_lines(found)),
        "axioms": lambda spec: list(axiom_lines(spec)),
        "named": node_name,
        "links": lambda names, between=" = ": between.join(
            f"[{name}]({name}.md)" for name in names
        ),
        "below": lambda name, universe: _below(found, name, universe),
        "by": lambda test, verdict: _names_by(said, canonical, test, verdict),
        "linear": lambda test: adya_notation(test.history),
        "told": lambda one: f"`{one_line_of(one.test)}`{origin_words(one)}" if one.test else "",
        "forward": forward_words,
        "equal": equal_words,
    }
    pages = {
        "levels.md": "levels_index.j2",
        "results/implications.md": "level_implications.j2",
        "results/anomalies.md": "level_anomalies.j2",
    }
    texts = {path: render_template(template, **context) for path, template in pages.items()}
    for spec in ordered:
        texts[f"results/levels/{spec.name}.md"] = render_template(
            "level_page.j2", **context, spec=spec
        )
    return texts


def _below(found: Lattices, name: str, universe: str) -> str:
    """Return links to the levels directly below a level, and to those that equal it."""
    for lattice in found.lattices:
        if lattice.universe == universe and name in lattice.specs:
            (node,) = (node for node in lattice.nodes if name in node)
            nodes = [edge.weaker for edge in lattice.edges if name in edge.stronger]
            equal = [f"= {other}" for other in node if other != name]
            return ", ".join([*equal, *(lower[0] for lower in nodes)])
    return ""


def _names_by(
    said: Mapping[tuple[str, str], str], first: Sequence[str], test: HistoryTest, verdict: str
) -> str:
    """Return the levels that give a history this verdict, some first; ``none`` if none does."""
    names = [name for (name, of), word in said.items() if of == test.name and word == verdict]
    usual = [name for name in first if name in names]
    return ", ".join(dict.fromkeys((*usual, *names))) or "none"


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
