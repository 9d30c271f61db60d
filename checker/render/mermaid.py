"""Graphs and timelines for Mermaid, which GitHub and most notebooks draw."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from isolitmus.model.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from isolitmus.model.edge import Edge
    from isolitmus.model.run import Run
    from isolitmus.model.schedule import Schedule

__all__ = ["flowchart", "sequence"]

ESCAPES = {
    "#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", ";": "#59;", "&": "#amp;", "`": "#96;",
    "%%": "%#37;",
}  # fmt: skip
"""What means something to Mermaid, as it wants that written; two percent signs begin a comment, or a directive."""
SPECIAL = re.compile("|".join(map(re.escape, ESCAPES)))


def flowchart(nodes: Mapping[str, str], edges: Iterable[Edge], cycle: Iterable[Edge] = ()) -> str:
    """A flowchart: ``nodes`` by name with what to write into them, the reason on every edge, the edges
    of the cycle thick. What only an edge names, such as ``init``, is there, too.

    >>> from isolitmus.model.edge import Edge
    >>> from isolitmus.model.reason import Reason
    >>> print(flowchart({"a": "INSERT", "b": "SELECT"}, [Edge("a", "b", "wr", Reason("b read it"))]))
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
        lines.append(f'    {ids[name]}["{_escaped(text)}"]')
    thick = {(e.source, e.target, e.kind) for e in cycle}
    reasons: dict[tuple[str, str, bool], list[str]] = defaultdict(list)
    for edge in drawn:
        bold = (edge.source, edge.target, edge.kind) in thick
        words = f"{edge.kind}: {_escaped(edge.why)}"
        if words not in reasons[edge.source, edge.target, bold]:
            reasons[edge.source, edge.target, bold].append(words)
    for (source, target, bold), labels in reasons.items():
        arrow = "==>" if bold else "-->"
        lines.append(f'    {ids[source]} {arrow}|"{"<br/>".join(labels)}"| {ids[target]}')
    return "\n".join(lines)


def sequence(schedule: Schedule, run: Run | None = None) -> str:
    """A sequence diagram of transactions and the log: an arrow for each step, time downwards; with a run,
    what became of each transaction at its last step.

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
    lines += [f"    participant {ids[name]} as {_escaped(name)}" for name in names]
    lines.append("    participant log")
    for step in schedule.steps:
        name, words = ids[step.transaction], str(step)
        if not step.ends:
            lines.append(f"    log-->>{name}: {_escaped(words)}")
            continue
        done = None if run is None else run.transactions[step.transaction]
        arrow = "-x" if done is not None and (done.aborted or done.failed) else "->>"
        words += "" if done is None else f": {done}"
        lines.append(f"    {name}{arrow}log: {_escaped(words)}")
    return "\n".join(lines)


def _escaped(text: str) -> str:
    """A text on one line, without what Mermaid would obey."""
    return SPECIAL.sub(lambda found: ESCAPES[found[0]], printable(" ".join(text.split())))
