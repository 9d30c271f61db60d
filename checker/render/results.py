"""Renderers: the function that renders each kind of result in each form.

A renderer is imported when a result is shown. Results themselves are defined in lower layers and
import no renderer; ``model.display`` has the only hook, which ``isolitmus.checker`` binds to
`render_result`. Renderers of results of other parts and packages are plug-ins, named after the
class and the form: ``Interleavings.text``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isolitmus.model.display import first_lines
from isolitmus.model.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from isolitmus.checker.auditing.diagnosis import ConflictingCommits, Diagnosis, OtherDiagnosis
    from isolitmus.checker.checks.history_verdicts import HistoryVerdicts
    from isolitmus.checker.execution.run_result import RunResult
    from isolitmus.checker.search.lattice import Lattice, Lattices
    from isolitmus.checker.search.mutant_separation import MutantReport
    from isolitmus.checker.search.portrait import Portrait
    from isolitmus.checker.search.separation_result import Separation
    from isolitmus.checker.sweeps.abstract_sweep import AbstractSweep
    from isolitmus.checker.sweeps.table_sweep import Sweep
    from isolitmus.model.dependency_graph import DependencyGraph, HasseDiagram
    from isolitmus.model.reason import Reason
    from isolitmus.model.run import Timeline
    from isolitmus.model.verdict import Violation

MOST = 40
"""Maximum number of lines of a result; the command line prints all."""
DIAGNOSIS = 60
"""Maximum number of lines of a diagnosis."""


def _reason_text(reason: Reason) -> str:
    from isolitmus.checker.render.reasons import words

    return words(reason)


def _violation_text(violation: Violation) -> str:
    from isolitmus.checker.render.verdicts import because

    return "\n".join(because(violation))


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


def _sweep_text(result: Sweep) -> str:
    from isolitmus.checker.render.sweeps import sweep_lines

    return first_lines(sweep_lines(result), MOST)


def _abstract_sweep_text(result: AbstractSweep) -> str:
    from isolitmus.checker.render.sweeps import abstract_lines

    return first_lines(abstract_lines(result), MOST)


def _lattice_text(result: Lattice) -> str:
    from isolitmus.checker.render.lattice import lattice_lines

    return first_lines(lattice_lines(result), MOST)


def _lattices_text(result: Lattices) -> str:
    from isolitmus.checker.render.lattice import lattices_lines

    return first_lines(lattices_lines(result), MOST)


def _lattices_html(result: Lattices) -> str:
    from isolitmus.checker.render.lattice_pages import lattices_html

    return lattices_html(result)


def _mutants_text(result: MutantReport) -> str:
    from isolitmus.checker.render.search_results import mutant_lines

    return first_lines(mutant_lines(result), MOST)


def _portrait_text(result: Portrait) -> str:
    from isolitmus.checker.render.search_results import portrait_lines

    return first_lines(portrait_lines(result), MOST)


def _separation_text(result: Separation) -> str:
    from isolitmus.checker.render.search_results import separation_lines

    return first_lines(separation_lines(result), MOST)


def _separation_html(result: Separation) -> str:
    from isolitmus.checker.render.notebook import separation_html

    return separation_html(result)


def _checked_html(result: HistoryVerdicts) -> str:
    from isolitmus.checker.render.notebook import checked_html

    return checked_html(result)


def _judged_html(result: RunResult) -> str:
    from isolitmus.checker.render.notebook import judged_html

    return judged_html(result)


def _diagnosis_text(result: Diagnosis) -> str:
    from isolitmus.checker.render.diagnosis import diagnosis_lines

    return first_lines(diagnosis_lines(result), DIAGNOSIS)


def _other_text(result: OtherDiagnosis) -> str:
    from isolitmus.checker.render.diagnosis import other_lines

    return first_lines(other_lines(result), DIAGNOSIS)


def _stopped_text(result: ConflictingCommits) -> str:
    from isolitmus.checker.render.diagnosis import stopped_lines

    return first_lines(stopped_lines(result), DIAGNOSIS)


RENDERERS: Mapping[tuple[str, str], Callable[[Any], str]] = {
    ("AbstractSweep", "text"): _abstract_sweep_text,
    ("HistoryVerdicts", "html"): _checked_html,
    ("DependencyGraph", "dot"): _graph_dot,
    ("DependencyGraph", "mermaid"): _graph_mermaid,
    ("DependencyGraph", "svg"): _graph_svg,
    ("DependencyGraph", "tikz"): _graph_tikz,
    ("Diagnosis", "text"): _diagnosis_text,
    ("HasseDiagram", "svg"): _hasse_svg,
    ("RunResult", "html"): _judged_html,
    ("Lattice", "text"): _lattice_text,
    ("Lattices", "html"): _lattices_html,
    ("Lattices", "text"): _lattices_text,
    ("MutantReport", "text"): _mutants_text,
    ("OtherDiagnosis", "text"): _other_text,
    ("Portrait", "text"): _portrait_text,
    ("Reason", "text"): _reason_text,
    ("Separation", "html"): _separation_html,
    ("Separation", "text"): _separation_text,
    ("ConflictingCommits", "text"): _stopped_text,
    ("Sweep", "text"): _sweep_text,
    ("Timeline", "mermaid"): _timeline_mermaid,
    ("Timeline", "svg"): _timeline_svg,
    ("Timeline", "text"): _timeline_text,
    ("Timeline", "tikz"): _timeline_tikz,
    ("Violation", "text"): _violation_text,
}
"""Function that renders a result, by class and form."""
OTHERS: Registry[Callable[[Any], str]] = Registry("renderer")
"""Renderers of results of other parts and packages."""


def render_result(thing: object, form: str) -> str:
    """Return a result in a form, by the renderer of its class or of a base class.

    >>> from isolitmus.model.reason import Reason
    >>> render_result(Reason.of("saw", reader="b", version=3), "text")
    'b read version 3'
    """
    kinds = [kind.__name__ for kind in type(thing).__mro__]
    for kind in kinds:
        if (renderer := RENDERERS.get((kind, form))) is not None:
            return renderer(thing)
    for kind in kinds:
        if f"{kind}.{form}" in OTHERS:
            return OTHERS.named(f"{kind}.{form}")(thing)
    raise TypeError(f"nothing renders {kinds[0]} as {form}")
