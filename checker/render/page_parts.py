"""Parts that pages and notebooks share: captioned pictures, environment of the templates."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import unescape
from typing import TYPE_CHECKING

from isolitmus.checker.render.colours import DARK, LIGHT, picture_style
from isolitmus.checker.render.graph_picture import arrows, edge_sentence, graph_svg
from isolitmus.checker.render.verdicts import because
from isolitmus.model.display import capitalized, count_of
from isolitmus.model.errors import visible
from isolitmus.model.sql.values import show_row
from isolitmus.specs.sql.parameters import any_version, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jinja2 import Environment

    from isolitmus.model.reason import Edge
    from isolitmus.model.sql.values import Rows
    from isolitmus.model.verdict import Violation

HERE = "isolitmus.checker.render"
POLICY = "the policy of this page"
"""Placeholder for the policy in a template."""
STYLE_SHEET = re.compile(r"<style>(.*?)(?:</style>|\Z)", re.DOTALL)
STYLE_ATTRIBUTE = re.compile(r"<[^<>]* style=\"([^\"]*)\"")


@dataclass(frozen=True, slots=True)
class PageOrigin:
    """Origin of a page in its footer: release, date and command."""

    release: str
    when: str
    command: str


@dataclass(frozen=True, slots=True)
class ArrowReason:
    """Reason of an arrow.

    ``number`` is the arrow's in the picture, ``kind`` the edge's, with its meaning if it is a base
    relation.
    """

    number: int
    text: str
    kind: str
    meaning: str


@dataclass(frozen=True, slots=True)
class GraphFigure:
    """Picture of a dependency graph with the reason of every edge.

    The argument, which follows the cycle and ends with the conclusion, comes before the other
    edges.
    """

    picture: str
    argument: tuple[ArrowReason, ...]
    conclusion: str
    others: tuple[ArrowReason, ...]


def figure(
    nodes: Mapping[str, str], edges: Iterable[Edge], violation: Violation | None = None
) -> GraphFigure:
    """Return the graph of these edges and those of the violation, whose cycle is thick.

    ``nodes`` maps the names of transactions to texts.

    >>> from isolitmus.model.reason import Edge
    >>> cycle = (Edge("a", "b", "log", "a is earlier"), Edge("b", "a", "rw", "b missed a"))
    >>> from isolitmus.model.verdict import Violation
    >>> drawn = figure({"a": "", "b": ""}, [], Violation("order", "acyclic", cycle))
    >>> [reason.text for reason in drawn.argument]
    ['a before b, because a is earlier', 'b before a, because b missed a']
    >>> drawn.conclusion
    'cycle a → b → a: no serial order satisfies these dependencies'
    """
    cycle = () if violation is None else violation.cycle
    drawn = arrows(edges, cycle)
    numbers = {(arrow.source, arrow.target): arrow.number for arrow in drawn}
    *sentences, conclusion = [""] if violation is None else because(violation)
    argument = tuple(
        ArrowReason(
            numbers[edge.source, edge.target],
            sentences[k] if sentences else _plainly(edge),
            edge.kind,
            _meaning(edge),
        )
        for k, edge in enumerate(cycle)
    )
    others = tuple(
        ArrowReason(arrow.number, _plainly(edge), edge.kind, _meaning(edge))
        for arrow in drawn
        for edge in arrow.edges
        if edge not in cycle
    )
    return GraphFigure(graph_svg(nodes, drawn), argument, conclusion, others)


def _plainly(edge: Edge) -> str:
    return f"{edge_sentence(edge)}: {edge.why}"


def _meaning(edge: Edge) -> str:
    return "" if edge.term is None else edge.term.meaning


def render_template(template: str, package: str = HERE, /, **context: object) -> str:
    """Return a template of a package with its context; it may include templates of this package.

    Every text of an HTML page is escaped; pictures are safe. A page has a Content-Security-Policy:
    a browser loads nothing, runs nothing, and applies only the styles in the page.
    """
    page = visible(_environment(package).get_template(template).render(context))
    return page.replace(POLICY, _policy(page), 1)


def _policy(page: str) -> str:
    """Return the policy of a page, with the digests of its styles."""
    sheets, attributes = STYLE_SHEET.findall(page), map(unescape, STYLE_ATTRIBUTE.findall(page))
    inline = list(dict.fromkeys(map(_digest, attributes)))
    digests = [
        *dict.fromkeys(map(_digest, sheets)),
        *(["'unsafe-hashes'"] if inline else []),
        *inline,
    ]
    said = " ".join(digests) or "'none'"
    return f"default-src 'none'; style-src {said}; base-uri 'none'; form-action 'none'"


def _digest(style: str) -> str:
    return f"'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'"


@cache
def _environment(package: str) -> Environment:
    """Return the Jinja environment of the templates of a package, created once."""
    from jinja2 import (
        ChoiceLoader,
        Environment,
        PackageLoader,
        StrictUndefined,
        select_autoescape,
    )

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(one, ".") for one in (package, HERE)]),
        undefined=StrictUndefined,
        autoescape=select_autoescape(["html.j2"]),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["rows"] = _rows
    environment.filters["parts"] = _parts
    environment.filters |= {"as_written": _as_written, "begun": capitalized}
    environment.globals |= {"light": LIGHT, "dark": DARK}
    environment.globals |= {"picture_style": picture_style}
    environment.globals |= {"many": count_of, "policy": POLICY}
    return environment


def _as_written(sql: str) -> str:
    """Return the SQL of a job in one line."""
    return any_version(one_line(sql))


def _rows(rows: Rows) -> list[str]:
    return [show_row(row) for row in rows]


def _parts(text: str) -> list[str]:
    """Return a text cut where a long name may be broken: ConcurrentAppendException."""
    return re.split(r"(?<=[a-z])(?=[A-Z])", text)
