"""Pictures in text: the timeline of a schedule, a frame, and the dependency graph for Mermaid."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from isolitmus.model.values import show_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from isolitmus.checker.telling.sight import Value
    from isolitmus.model.frame import Edge, Frame
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import Run
    from isolitmus.model.schedule import Schedule

__all__ = ["denotations", "dependencies", "fate", "frame_lines", "mermaid", "run_lines", "timeline"]

DEPENDENCIES = ("so", "wr", "ww", "rw")


def run_lines(litmus: Litmus) -> list[str]:
    r"""The tables of a litmus test, what is in them at the start, and its transactions.

    >>> from isolitmus.specs import litmus
    >>> print(*run_lines(litmus("reorder")), sep="\n")
    t(id INT, part INT), partitioned by part
      INSERT INTO t VALUES (1, 0), (2, 1)
    <BLANKLINE>
    delete  DELETE FROM t WHERE part = 0
    insert  INSERT INTO t VALUES (100, 0)
    """
    lines: list[str] = []
    for schema in litmus.tables.values():
        columns = ", ".join(schema.partitioned_by)
        line = f"{schema.name}({schema.ddl()}){columns and f', partitioned by {columns}'}"
        rows = f", Parquet at the start: {' '.join(map(show_row, schema.parquet))}"
        gone = rows if schema.parquet else ", not there at the start"
        lines.append(line if schema.exists else f"{line}{gone}")
    lines += [f"  {statement.sql}" for statement in litmus.init]
    width = max(map(len, litmus.transactions))
    named = (f"{name:<{width}}  {s.sql}" for name, s in litmus.transactions.items())
    return [*lines, "", *named]


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
    if not done.commits:
        return read
    versions = " and ".join(map(str, done.commits))
    return f"{read}, becomes version{'s' if len(done.commits) > 1 else ''} {versions}"


def dependencies(frame: Frame) -> list[Edge]:
    """The edges of the dependency graph (Adya's, and the session order), by source and target."""
    pairs = sorted(
        (i, j, kind)
        for kind in DEPENDENCIES
        if kind in frame.relations
        for i, j in frame.relations[kind].pairs()
    )
    return [frame.edge(kind, i, j) for i, j, kind in pairs]


def frame_lines(frame: Frame) -> list[str]:
    """A line for each node with its sets, then one for each pair of a relation with its reason.

    >>> from isolitmus.model.history import History
    >>> for line in frame_lines(History.parse("w1(x1) r2(x1)").frame()): print(line)
    T1  Writer
    T2  Reader
    <BLANKLINE>
    wr  T1 → T2  T2 read x1, which T1 wrote
    """
    width = max(map(len, frame.nodes))
    lines = [
        f"{node:<{width}}  {', '.join(frame.member_of(node))}".rstrip() for node in frame.nodes
    ]
    edges = [(e.kind, f"{e.source} → {e.target}", e.why) for e in frame.edges()]
    if edges:
        wide = max(len(kind) for kind, _, _ in edges), max(len(pair) for _, pair, _ in edges)
        lines.append("")
        lines += [
            f"{kind:<{wide[0]}}  {pair:<{wide[1]}}  {why}".rstrip() for kind, pair, why in edges
        ]
    return lines


def denotations(values: Iterable[Value]) -> list[str]:
    """A line for each let, axiom and label of a spec with what it denotes.

    >>> from isolitmus.checker.telling.sight import Value
    >>> for line in denotations([Value("let", "both", (("a", "b"), ("b", "a"))), Value("show", "S", ())]):
    ...     print(line)
    let both  a → b, b → a
    show S    nothing
    """
    lines = [(f"{v.statement} {v.name}", ", ".join(map(" → ".join, v.items))) for v in values]
    width = max((len(what) for what, _ in lines), default=0)
    return [f"{what:<{width}}  {items or 'nothing'}" for what, items in lines]


def mermaid(nodes: Mapping[str, str], edges: Iterable[Edge], cycle: Iterable[Edge] = ()) -> str:
    """A Mermaid flowchart: ``nodes`` by name with what to write into them, the reason on every
    edge, the edges of the cycle thick. What only an edge names, such as ``init``, is there, too.

    >>> from isolitmus.model.frame import Edge
    >>> print(mermaid({"a": "INSERT", "b": "SELECT"}, [Edge("a", "b", "wr", "b read it")]))
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
        text = f"{name}: {nodes[name]}" if name in nodes else name
        lines.append(f'    {ids[name]}["{_quoted(text)}"]')
    thick = {(e.source, e.target, e.kind) for e in cycle}
    reasons: dict[tuple[str, str, bool], list[str]] = defaultdict(list)
    for edge in drawn:
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
