"""Pictures in text: the timeline of a schedule, and the dependency graph for Mermaid."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from isolitmus.model.frame import Edge, Frame
    from isolitmus.model.run import Run
    from isolitmus.model.schedule import Schedule

__all__ = ["dependencies", "fate", "mermaid", "timeline"]

DEPENDENCIES = ("so", "wr", "ww", "rw")


def timeline(schedule: Schedule, run: Run | None = None) -> str:
    """A line for each transaction, time to the right; with a run, what became of each.

    >>> from isolitmus.model.schedule import Schedule
    >>> print(timeline(Schedule.parse("a.start b a.commit", ["a", "b"])))
    a  ├───────┤
    b      ●
    """
    names = list(dict.fromkeys(step.transaction for step in schedule.steps))
    width = max(map(len, names))
    lines: list[str] = []
    for name in names:
        at = [k for k, step in enumerate(schedule.steps) if step.transaction == name]
        start, end = 4 * at[0], 4 * at[-1]
        bar = "●" if start == end else f"├{'─' * (end - start - 1)}┤"
        line = f"{name:<{width}}  {' ' * start}{bar}"
        if run is not None:
            line = f"{line:<{width + 4 * len(schedule.steps) + 2}}{fate(run, name)}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def fate(run: Run, name: str) -> str:
    """What became of a transaction: the version it read, and the one it became or why it did not."""
    done = run.transactions[name]
    read = f"reads version {done.read_version}"
    if done.outcome != "committed":
        return f"{read}, {done.outcome}"
    return read if done.version is None else f"{read}, becomes version {done.version}"


def dependencies(frame: Frame) -> list[Edge]:
    """The edges of the dependency graph (Adya's, and the session order), by source and target."""
    pairs = sorted(
        (i, j, kind)
        for kind in DEPENDENCIES
        if kind in frame.relations
        for i, j in frame.relations[kind].pairs()
    )
    return [frame.edge(kind, i, j) for i, j, kind in pairs]


def mermaid(nodes: Mapping[str, str], edges: Iterable[Edge], cycle: Iterable[Edge] = ()) -> str:
    """A Mermaid flowchart: ``nodes`` by name with what to write into them, the reason on every
    edge, the edges of the cycle thick.

    >>> from isolitmus.model.frame import Edge
    >>> print(mermaid({"a": "INSERT", "b": "SELECT"}, [Edge("a", "b", "wr", "b read it")]))
    flowchart LR
        n0["a: INSERT"]
        n1["b: SELECT"]
        n0 -->|"wr: b read it"| n1
    """
    lines = ["flowchart LR"]
    ids = {name: f"n{k}" for k, name in enumerate(nodes)}
    lines += [f'    {ids[name]}["{name}: {_quoted(text)}"]' for name, text in nodes.items()]
    thick = {(e.source, e.target, e.kind) for e in cycle}
    reasons: dict[tuple[str, str, bool], list[str]] = defaultdict(list)
    for edge in [*edges, *cycle]:
        bold = (edge.source, edge.target, edge.kind) in thick
        words = f"{edge.kind}: {_quoted(edge.why)}"
        if words not in reasons[edge.source, edge.target, bold]:
            reasons[edge.source, edge.target, bold].append(words)
    for (source, target, bold), labels in reasons.items():
        arrow = "==>" if bold else "-->"
        lines.append(f'    {ids[source]} {arrow}|"{"<br/>".join(labels)}"| {ids[target]}')
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return text.replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
