"""Renderers: the function that renders each kind of result in each form.

A renderer is imported when a result is shown. Results themselves are defined in lower layers and
import no renderer; ``model.display`` has the only hook, which ``isolitmus.checker`` binds to
`render_result`. Each renderer is a plug-in (``model.plugins``), named after the class and the form:
``Lattice.text``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isolitmus.model.display import first_lines
from isolitmus.model.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from isolitmus.model.dependency_graph import DependencyGraph, HasseDiagram
    from isolitmus.model.run import Timeline

RENDERERS: Registry[Callable[[Any], str | Iterable[str]]] = Registry("renderer")
"""Function that renders a result as a text or as lines, by class and form."""
MOST = 40
"""Maximum number of lines of a result; the command line prints all."""
LONGER = dict.fromkeys(("ConflictingCommits", "Diagnosis", "OtherDiagnosis"), 60)
"""Maximum of results that say what to do."""


def _timeline_text(of: Timeline) -> str:
    from isolitmus.checker.render.text_pictures import timeline

    return timeline(of.schedule, of.run)


def _timeline_svg(of: Timeline) -> str:
    from isolitmus.checker.render.timeline import timeline_svg

    return timeline_svg(of.schedule, of.run)


def _timeline_mermaid(of: Timeline) -> str:
    from isolitmus.checker.render.graph_formats import sequence

    return sequence(of.schedule, of.run)


def _timeline_tikz(of: Timeline) -> str:
    from isolitmus.checker.render.graph_formats import timeline_tikz

    return timeline_tikz(of.schedule, of.run)


def _graph_dot(graph: DependencyGraph) -> str:
    from isolitmus.checker.render.graph_formats import digraph

    return digraph(graph.nodes, graph.edges, graph.cycle)


def _graph_mermaid(graph: DependencyGraph) -> str:
    from isolitmus.checker.render.graph_formats import flowchart

    return flowchart(graph.nodes, graph.edges, graph.cycle)


def _graph_tikz(graph: DependencyGraph) -> str:
    from isolitmus.checker.render.graph_formats import graph_tikz

    return graph_tikz(graph.nodes, graph.edges, graph.cycle)


def _graph_svg(graph: DependencyGraph) -> str:
    from isolitmus.checker.render.graph_picture import arrows, graph_svg

    return graph_svg(graph.nodes, arrows(graph.edges, graph.cycle))


def _hasse_svg(diagram: HasseDiagram) -> str:
    from isolitmus.checker.render.lattice_diagram import hasse_svg

    return hasse_svg(tuple(diagram.nodes), diagram.edges, diagram.chosen)


def render_result(thing: object, form: str) -> str:
    """Return a result in a form, by the renderer of its class or of a base class.

    >>> from isolitmus.model.reason import Reason
    >>> render_result(Reason.of("saw", reader="b", version=3), "text")
    'b read version 3'
    """
    kinds = [kind.__name__ for kind in type(thing).__mro__]
    for kind in kinds:
        if f"{kind}.{form}" in RENDERERS:
            shown = RENDERERS.named(f"{kind}.{form}")(thing)
            return shown if isinstance(shown, str) else first_lines(shown, LONGER.get(kind, MOST))
    raise TypeError(f"nothing renders {kinds[0]} as {form}")
