"""Results in a notebook: the pictures of the report as independent fragments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.checker.execution.dependency_graph import dependency_edges
from isolitmus.checker.execution.serial_orders import ModelExecutor
from isolitmus.checker.render.colours import DARK, LIGHT, coloured
from isolitmus.checker.render.page_parts import GraphFigure, figure, render_template
from isolitmus.checker.render.run_panels import at_every_version
from isolitmus.checker.render.search_results import beside_lines, separation_words
from isolitmus.checker.render.timeline import timeline_svg
from isolitmus.checker.render.verdicts import (
    assumption_words,
    order_words,
    other_ways,
    serial_words,
    view_words,
)
from isolitmus.model.litmus import HistoryTest, Litmus
from isolitmus.model.verdict import Allowed, Forbidden, Needs, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.checker.checks.history_verdicts import HistoryVerdicts
    from isolitmus.checker.execution.run_result import RunResult
    from isolitmus.checker.render.run_panels import ShownTable
    from isolitmus.checker.search.separation_result import Separation
    from isolitmus.model.reason import Edge
    from isolitmus.model.verdict import Verdict, Violation

THEMES = (
    (LIGHT, "light", ":is([data-jp-theme-light=true], [theme=light], .vscode-light)"),
    (DARK, "dark", ":is([data-jp-theme-light=false], [theme=dark], .vscode-dark)"),
)
"""Selectors of themes in Jupyter, Colab and VS Code, which may differ from the system's setting."""


@dataclass(frozen=True, slots=True)
class _Fragment:
    """Content of a fragment; empty parts are left out.

    ``verdicts`` maps a verdict and its details to levels; ``graphs`` are by caption.
    """

    title: str
    lines: Sequence[str] = ()
    transactions: Mapping[str, str] = field(default_factory=dict)
    timeline: str = ""
    versions: Sequence[Sequence[ShownTable]] = ()
    verdicts: Mapping[tuple[str, str], list[str]] = field(default_factory=dict)
    graphs: Mapping[str, GraphFigure] = field(default_factory=dict)
    assumed: Sequence[str] = ()

    def html(self) -> str:
        return render_template("notebook.html.j2", shown=self, themes=THEMES, coloured=coloured)


def judged_html(judged: RunResult) -> str:
    """Return a run as HTML: outcomes, the tables at every version, the verdicts with reasons.

    >>> from isolitmus.checker import run
    >>> from isolitmus.specs import litmus, protocol
    >>> html = judged_html(run(litmus("reorder"), protocol("delta-write-serializable")))
    >>> html.count("<svg"), "The final table equals that of the serial order" in html
    (2, True)
    """
    done, test = judged.run, judged.litmus
    frame = judged.frame
    sql = _sql(test)
    nodes = {} if frame is None else {name: sql[name] for name in frame.nodes}
    edges = [] if frame is None else dependency_edges(frame)
    levels = {name: v for name, v in judged.levels.items() if not isinstance(v, Needs)}
    graphs = _graphs(nodes, edges, levels)
    if not graphs and edges:
        graphs = {"The dependencies": figure(nodes, edges)}
    return _Fragment(
        f"{test.name} on {done.engine} ({done.engine_version}) under {done.protocol}",
        [
            serial_words(judged.serial.orders, judged.serial.unexplained),
            *(view_words(one) for one in judged.explained.values() if one.reads),
            *judged.differences,
        ],
        sql,
        timeline_svg(test.schedule, done),
        list(at_every_version(test, done, judged.executor)),
        _verdicts(levels),
        graphs,
    ).html()


def checked_html(checked: HistoryVerdicts) -> str:
    """Return the verdicts on a history as HTML, with each cycle as a graph.

    >>> from isolitmus.checker import check
    >>> from isolitmus.specs import level, litmus
    >>> skew = check(litmus("history-write-skew"), [level("serializable")])
    >>> "T1 before T2, because" in checked_html(skew)
    True
    """
    return _Fragment(
        checked.name,
        [
            checked.counted,
            *map(view_words, checked.explained.values()),
        ],
        verdicts=_verdicts(checked.levels),
        graphs=_graphs({}, [], checked.levels),
        assumed=checked.assumptions,
    ).html()


def separation_html(separation: Separation) -> str:
    """Return the result of ``separate`` as HTML: the history, its schedule if any, the graph."""
    found = separation
    title = separation_words(found)
    effort = f"{found.effort}; {found.seconds:.1f} s"
    if found.litmus is None or found.forbidden is None:
        lines = [f"Search: {effort}.", *beside_lines(found)]
        return _Fragment(title, lines, assumed=found.assumptions).html()
    searched = f"Search: {found.bound}; {effort}."
    violations = {
        f"Why {found.b} forbids it{assumption_words(violation)} ({violation.axiom})": violation
        for violation in found.forbidden.violations
    }
    test, nodes, edges = found.litmus, found.graph.nodes, found.graph.edges
    if isinstance(test, HistoryTest):
        drawn = {words: figure(nodes, edges, violation) for words, violation in violations.items()}
        lines = [searched, *other_ways(found.forbidden)]
        return _Fragment(title, lines, nodes, graphs=drawn, assumed=found.assumptions).html()
    assert found.run is not None
    lines = [searched]
    if found.serial is not None:
        lines.append(serial_words(found.serial.orders, found.serial.unexplained))
    if found.explained is not None and found.explained.reads:
        lines.append(view_words(found.explained))
    return _Fragment(
        title,
        lines,
        nodes,
        timeline_svg(test.schedule, found.run),
        list(at_every_version(test, found.run, ModelExecutor(test))),
        graphs={words: figure(nodes, edges, violation) for words, violation in violations.items()},
        assumed=found.assumptions,
    ).html()


def _sql(test: Litmus) -> dict[str, str]:
    return {name: statement.sql for name, statement in test.transactions.items()}


def _verdicts(levels: Mapping[str, Verdict]) -> dict[tuple[str, str], list[str]]:
    """Return the levels by verdict, with the witness order or the reason why it is unknown."""
    shown: dict[tuple[str, str], list[str]] = {}
    for name, verdict in levels.items():
        match verdict:
            case Allowed():
                more = order_words(verdict)
            case Unknown(reason):
                more = f": {reason}"
            case _:
                more = ""
        shown.setdefault((str(verdict), more), []).append(name)
    return shown


def _graphs(
    nodes: Mapping[str, str], edges: Sequence[Edge], levels: Mapping[str, Verdict]
) -> dict[str, GraphFigure]:
    """Return a graph for each cycle; levels that forbid the same cycle share it."""
    shared: dict[tuple[bool, frozenset[Edge]], list[str]] = {}
    violations: dict[tuple[bool, frozenset[Edge]], Violation] = {}
    for name, verdict in levels.items():
        if isinstance(verdict, Forbidden):
            violation = verdict.violations[0]
            key = violation.kind == "empty", frozenset(violation.cycle)
            shared.setdefault(key, []).append(name)
            violations.setdefault(key, violation)
    return {
        f"Why {' and '.join(names)} {'forbids' if len(names) == 1 else 'forbid'} it": figure(
            nodes, edges, violations[key]
        )
        for key, names in shared.items()
    }
