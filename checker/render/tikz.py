r"""Graphs and timelines for LaTeX: a ``tikzpicture`` that needs ``\usepackage{tikz}`` and nothing else."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from isolitmus.model.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from isolitmus.model.edge import Edge
    from isolitmus.model.run import Run
    from isolitmus.model.schedule import Schedule

__all__ = ["graph_tikz", "timeline_tikz"]

ESCAPES = {
    **{sign: f"\\{sign}" for sign in "{}$&#%_"},
    "\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
}  # fmt: skip
"""What means something to LaTeX, or is another sign in its fonts."""
FIRST_BEND, BEND = 15, 12
"""By so many degrees the first arrow from one node to another bends, and every further one more."""


def graph_tikz(nodes: Mapping[str, str], edges: Iterable[Edge], cycle: Iterable[Edge] = ()) -> str:
    r"""The nodes in a ring, with what to write into them, an arrow for each edge with its kind, those of the
    cycle thick; the reason of each is a comment in the line before.

    >>> from isolitmus.model.edge import Edge
    >>> from isolitmus.model.reason import Reason
    >>> print(graph_tikz({"a": "", "b": ""}, [Edge("a", "b", "wr", Reason("b read it"))]))
    \begin{tikzpicture}[every node/.style={align=center}]
      \node[draw, rounded corners] (n0) at (90:3) {a};
      \node[draw, rounded corners] (n1) at (-90:3) {b};
      % a to b: b read it
      \draw[->] (n0) to[bend left=15] node[auto] {wr} (n1);
    \end{tikzpicture}
    """
    cycle = list(dict.fromkeys(cycle))
    every = list(dict.fromkeys([*edges, *cycle]))
    names = list(dict.fromkeys([*nodes, *(n for e in every for n in (e.source, e.target))]))
    ids = {name: f"n{k}" for k, name in enumerate(names)}
    radius = max(3, len(names))
    lines = [r"\begin{tikzpicture}[every node/.style={align=center}]"]
    for k, name in enumerate(names):
        words = rf"\\ {_code(nodes[name])}" if nodes.get(name) else ""
        angle = round(90 - 360 * k / len(names))
        place = f"({ids[name]}) at ({angle}:{radius})"
        lines.append(rf"  \node[draw, rounded corners] {place} {{{_escaped(name)}{words}}};")
    drawn: Counter[tuple[str, str]] = Counter()
    for edge in every:
        pair = edge.source, edge.target
        bend = f"bend left={FIRST_BEND + BEND * drawn[pair]}"
        drawn[pair] += 1
        way = "loop above" if edge.source == edge.target else bend
        style = "->, very thick" if edge in cycle else "->"
        label = f"node[auto] {{{_escaped(edge.kind)}}}"
        lines.append(f"  % {_line(f'{edge.source} to {edge.target}: {edge.why}')}".rstrip())
        lines.append(
            rf"  \draw[{style}] ({ids[edge.source]}) to[{way}] {label} ({ids[edge.target]});"
        )
    return "\n".join([*lines, r"\end{tikzpicture}"])


def timeline_tikz(schedule: Schedule, run: Run | None = None) -> str:
    r"""A line for each transaction, time to the right; with a run, what became of each.

    >>> from isolitmus.model.schedule import Schedule
    >>> print(timeline_tikz(Schedule.parse("a.start b a.commit", ["a", "b"])))
    \begin{tikzpicture}
      \node[left] at (0,0) {a};
      \draw[|-|, thick] (0,0) -- (2,0);
      \node[left] at (0,-1) {b};
      \fill (1,-1) circle (2pt);
    \end{tikzpicture}
    """
    steps = schedule.steps
    lines = [r"\begin{tikzpicture}"]
    for k, name in enumerate(dict.fromkeys(step.transaction for step in steps)):
        at = [place for place, step in enumerate(steps) if step.transaction == name]
        first, last = f"({at[0]},{-k})", f"({at[-1]},{-k})"
        lines.append(rf"  \node[left] at (0,{-k}) {{{_escaped(name)}}};")
        alone = first == last
        lines.append(
            rf"  \fill {first} circle (2pt);"
            if alone
            else rf"  \draw[|-|, thick] {first} -- {last};"
        )
        if run is not None:
            words = _escaped(str(run.transactions[name]))
            lines.append(rf"  \node[right] at ({len(steps)},{-k}) {{{words}}};")
    return "\n".join([*lines, r"\end{tikzpicture}"])


def _code(text: str) -> str:
    return rf"\texttt{{\footnotesize {_escaped(text)}}}"


def _escaped(text: str) -> str:
    r"""A text on one line as LaTeX prints it.

    >>> print(_escaped("100 % of t_1"))
    100 \% of t\_1
    """
    return "".join(ESCAPES.get(sign, sign) for sign in _line(text))


def _line(text: str) -> str:
    """A text on one line, as a comment has it."""
    return printable(" ".join(text.split()))
