"""Graphs and timelines for Graphviz, Mermaid and LaTeX.

GitHub and most notebooks draw Mermaid. The LaTeX form is a ``tikzpicture`` that needs the package
tikz and nothing else.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from isolitmus.model.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from isolitmus.model.reason import Edge
    from isolitmus.model.run import Run
    from isolitmus.model.schedule import Schedule


def digraph(nodes: Mapping[str, str], edges: Iterable[Edge], cycle: Iterable[Edge] = ()) -> str:
    r"""Return a graph in DOT (Graphviz).

    An arrow has the kind of its edge as label, and the reason as tooltip; edges of the cycle are
    thick.

    Parameters
    ----------
    nodes : mapping of str to str
        Text of each node, by name.
    edges : iterable of Edge
        The edges.
    cycle : iterable of Edge
        Edges of the cycle.

    Examples
    --------
    >>> from isolitmus.model.reason import Edge
    >>> from isolitmus.model.reason import Reason
    >>> print(digraph({"a": "INSERT", "b": ""}, [Edge("a", "b", "wr", Reason("b read it"))]))
    digraph {
      "a" [label="a\nINSERT"];
      "b" [label="b"];
      "a" -> "b" [label="wr", tooltip="b read it"];
    }
    """
    cycle = list(dict.fromkeys(cycle))
    every = list(dict.fromkeys([*edges, *cycle]))
    names = dict.fromkeys([*nodes, *(name for e in every for name in (e.source, e.target))])
    lines = []
    for name in names:
        words = f"\\n{_escaped_for_dot(nodes[name])}" if nodes.get(name) else ""
        lines.append(f'  "{_escaped_for_dot(name)}" [label="{_escaped_for_dot(name)}{words}"];')
    for edge in every:
        ends = f'"{_escaped_for_dot(edge.source)}" -> "{_escaped_for_dot(edge.target)}"'
        style = f'label="{_escaped_for_dot(edge.kind)}", tooltip="{_escaped_for_dot(edge.why)}"'
        thick = ", penwidth=3" if edge in cycle else ""
        lines.append(f"  {ends} [{style}{thick}];")
    return "\n".join(["digraph {", *lines, "}"])


def _escaped_for_dot(text: str) -> str:
    """Return a text for a quoted string, on one line."""
    return printable(" ".join(text.split())).replace("\\", "\\\\").replace('"', '\\"')


MERMAID_ESCAPES = {
    "#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", ";": "#59;", "&": "#amp;", "`": "#96;",
    "%%": "%#37;",
}  # fmt: skip
"""Characters with a meaning in Mermaid, escaped; two percent signs begin a comment or a directive.
"""
SPECIAL = re.compile("|".join(map(re.escape, MERMAID_ESCAPES)))


def flowchart(nodes: Mapping[str, str], edges: Iterable[Edge], cycle: Iterable[Edge] = ()) -> str:
    """Return a graph as a Mermaid flowchart, with reasons on edges, and thick edges of the cycle.

    ``nodes`` maps names to texts. Nodes that occur only in edges, such as ``init``, are included.

    >>> from isolitmus.model.reason import Edge
    >>> from isolitmus.model.reason import Reason
    >>> read = Edge("a", "b", "wr", Reason("b read it"))
    >>> print(flowchart({"a": "INSERT", "b": "SELECT"}, [read]))
    flowchart LR
        n0["a: INSERT"]
        n1["b: SELECT"]
        n0 -->|"wr: b read it"| n1
    """
    lines = ["flowchart LR"]
    cycle = tuple(cycle)
    drawn = [*edges, *cycle]
    names = dict.fromkeys([*nodes, *(name for e in drawn for name in (e.source, e.target))])
    ids = {name: f"n{k}" for k, name in enumerate(names)}
    for name in names:
        text = f"{name}: {nodes[name]}" if nodes.get(name) else name
        lines.append(f'    {ids[name]}["{_escaped_for_mermaid(text)}"]')
    thick = {(e.source, e.target, e.kind) for e in cycle}
    reasons: dict[tuple[str, str, bool], list[str]] = defaultdict(list)
    for edge in drawn:
        bold = (edge.source, edge.target, edge.kind) in thick
        words = f"{edge.kind}: {_escaped_for_mermaid(edge.why)}"
        if words not in reasons[edge.source, edge.target, bold]:
            reasons[edge.source, edge.target, bold].append(words)
    for (source, target, bold), labels in reasons.items():
        arrow = "==>" if bold else "-->"
        lines.append(f'    {ids[source]} {arrow}|"{"<br/>".join(labels)}"| {ids[target]}')
    return "\n".join(lines)


def sequence(schedule: Schedule, run: Run | None = None) -> str:
    """Return a Mermaid sequence diagram of transactions and the log, with an arrow for each step.

    With a run, the last step of each transaction shows its outcome.

    >>> from isolitmus.model.schedule import Schedule
    >>> print(sequence(Schedule.parse("a.start b a.commit", ["a", "b"])))
    sequenceDiagram
        participant p0 as a
        participant p1 as b
        participant log
        log-->>p0: a.start
        p1->>log: b
        p0->>log: a.commit
    """
    names = list(dict.fromkeys(step.transaction for step in schedule.steps))
    ids = {name: f"p{k}" for k, name in enumerate(names)}
    lines = ["sequenceDiagram"]
    lines += [f"    participant {ids[name]} as {_escaped_for_mermaid(name)}" for name in names]
    lines.append("    participant log")
    for step in schedule.steps:
        name, words = ids[step.transaction], str(step)
        if not step.ends:
            lines.append(f"    log-->>{name}: {_escaped_for_mermaid(words)}")
            continue
        done = None if run is None else run.transactions[step.transaction]
        arrow = "-x" if done is not None and (done.aborted or done.failed) else "->>"
        words += "" if done is None else f": {done}"
        lines.append(f"    {name}{arrow}log: {_escaped_for_mermaid(words)}")
    return "\n".join(lines)


def _escaped_for_mermaid(text: str) -> str:
    """Return a text on one line, with Mermaid's syntax escaped."""
    return SPECIAL.sub(lambda found: MERMAID_ESCAPES[found[0]], printable(" ".join(text.split())))


LATEX_ESCAPES = {
    **{sign: f"\\{sign}" for sign in "{}$&#%_"},
    "\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
}  # fmt: skip
"""Characters with a meaning in LaTeX, or with another glyph in its fonts."""
FIRST_BEND, BEND = 15, 12
"""By so many degrees the first arrow from one node to another bends, and every further one more."""


def graph_tikz(nodes: Mapping[str, str], edges: Iterable[Edge], cycle: Iterable[Edge] = ()) -> str:
    r"""Return a graph for LaTeX: nodes in a ring, an arrow with the kind of each edge.

    Edges of the cycle are thick; the reason of each edge is a comment in the line before. ``nodes``
    maps names to texts.

    >>> from isolitmus.model.reason import Edge
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
        lines.append(
            rf"  \node[draw, rounded corners] {place} {{{_escaped_for_latex(name)}{words}}};"
        )
    drawn: Counter[tuple[str, str]] = Counter()
    for edge in every:
        pair = edge.source, edge.target
        bend = f"bend left={FIRST_BEND + BEND * drawn[pair]}"
        drawn[pair] += 1
        way = "loop above" if edge.source == edge.target else bend
        style = "->, very thick" if edge in cycle else "->"
        label = f"node[auto] {{{_escaped_for_latex(edge.kind)}}}"
        lines.append(f"  % {_line(f'{edge.source} to {edge.target}: {edge.why}')}".rstrip())
        lines.append(
            rf"  \draw[{style}] ({ids[edge.source]}) to[{way}] {label} ({ids[edge.target]});"
        )
    return "\n".join([*lines, r"\end{tikzpicture}"])


def timeline_tikz(schedule: Schedule, run: Run | None = None) -> str:
    r"""Return a timeline for LaTeX, with a line for each transaction; with a run, also its outcome.

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
        lines.append(rf"  \node[left] at (0,{-k}) {{{_escaped_for_latex(name)}}};")
        alone = first == last
        lines.append(
            rf"  \fill {first} circle (2pt);"
            if alone
            else rf"  \draw[|-|, thick] {first} -- {last};"
        )
        if run is not None:
            words = _escaped_for_latex(str(run.transactions[name]))
            lines.append(rf"  \node[right] at ({len(steps)},{-k}) {{{words}}};")
    return "\n".join([*lines, r"\end{tikzpicture}"])


def _code(text: str) -> str:
    return rf"\texttt{{\footnotesize {_escaped_for_latex(text)}}}"


def _escaped_for_latex(text: str) -> str:
    r"""Return a text on one line, escaped for LaTeX.

    >>> print(_escaped_for_latex("100 % of t_1"))
    100 \% of t\_1
    """
    return "".join(LATEX_ESCAPES.get(sign, sign) for sign in _line(text))


def _line(text: str) -> str:
    """Return a text on one line, for a comment."""
    return printable(" ".join(text.split()))
