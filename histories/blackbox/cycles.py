"""Cycles of recorded histories as steps with reasons, and as violations of a level.

The reason of a step is a read and what its reader saw, or the cycle that the opposite order of two
versions would close.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.judge.anomalies import DISAGREEMENT, anomaly_of, missed_anomaly
from isolitmus.histories.blackbox.columnar_graph import find_cycle, find_path
from isolitmus.histories.blackbox.precedence import (
    KINDS,
    EdgeColumns,
    Precedence,
    concatenate_edges,
)
from isolitmus.model.reason import Edge, Reason
from isolitmus.model.verdict import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.histories.blackbox.precedence import Names
    from isolitmus.histories.blackbox.read_from import AttributedReads
    from isolitmus.histories.blackbox.version_order import VersionOrderConstraints


def trace_cycle(
    seen: AttributedReads, level: str, edges: EdgeColumns, cycle: Sequence[int]
) -> tuple[Precedence, ...]:
    """Return the steps of a cycle at a level whose axioms give the commit order (`saturate`).

    Parameters
    ----------
    seen : AttributedReads
        Reads with their writers.
    level : str
        One of POLYNOMIAL.
    edges : EdgeColumns
        Edges in which the cycle was found.
    cycle : sequence of int
        Edge numbers of the cycle.

    Returns
    -------
    tuple of Precedence
        A step of kind "co" has the path by which its reader sees its source.
    """
    return tuple(_step(seen, level, edges, edge) for edge in cycle)


def _step(seen: AttributedReads, level: str, edges: EdgeColumns, edge: int) -> Precedence:
    """Return an edge as a step; a co step gets the path by which its reader sees the source."""
    step = _plain(seen, edges, edge)
    if step.kind != "co":
        return step
    assert step.read is not None
    reader = int(seen.owner[step.read])
    reads = EdgeColumns.of("wr", seen.writer, seen.reader, seen.read)
    if level == "read-committed-biswas-enea":
        reads = reads.only(reads.read < step.read)
    if level != "causal":
        reads = reads.only((reads.source == step.source) & (reads.target == reader))
    known = reads
    if level != "read-committed-biswas-enea":
        known = concatenate_edges([reads, EdgeColumns.of("so", *seen.sessions())])
    path = find_path(seen.initial + 1, known.source, known.target, step.source, {reader})
    assert path is not None
    return Precedence(
        seen.history,
        step.source,
        step.target,
        "co",
        step.read,
        tuple(_plain(seen, known, one) for one in path),
    )


def _plain(seen: AttributedReads, edges: EdgeColumns, edge: int) -> Precedence:
    """Return an edge as a step without premises."""
    read = int(edges.read[edge])
    return Precedence(
        seen.history,
        int(edges.source[edge]),
        int(edges.target[edge]),
        KINDS[edges.kind[edge]],
        read if read >= 0 else None,
    )


def trace_version_cycle(choosing: VersionOrderConstraints) -> tuple[Precedence, ...]:
    """Return the steps of a cycle among the known edges, at a level with a version order."""
    size = len(choosing.chain)
    edges = concatenate_edges(choosing.stages)
    cycle = find_cycle(size, *choosing.events.of(edges))
    assert cycle is not None
    return _Trace(choosing).steps(cycle)


class _Trace:
    """Edges of all rounds under one numbering, each with the premises that made it certain."""

    def __init__(self, choosing: VersionOrderConstraints) -> None:
        self.choosing = choosing
        self.edges = concatenate_edges(choosing.stages)
        self.ends = np.cumsum([len(stage) for stage in choosing.stages])
        self.source, self.target = choosing.events.of(self.edges)
        self.found: dict[int, Precedence] = {}
        self.orders: dict[tuple[int, int, int, int], Precedence] = {}

    def steps(self, edges: Sequence[int]) -> tuple[Precedence, ...]:
        within = KINDS.index("within")
        return tuple(self.step(edge) for edge in edges if self.edges.kind[edge] != within)

    def step(self, edge: int) -> Precedence:
        if edge not in self.found:
            self.found[edge] = self._step(edge)
        return self.found[edge]

    def _step(self, edge: int) -> Precedence:
        """Return an edge as a step; if inferred in a later round, with its premise."""
        seen = self.choosing.seen
        plain = _plain(seen, self.edges, edge)
        stage = int(np.searchsorted(self.ends, edge, "right"))
        if not stage:
            return plain
        if plain.kind == "ww":
            return self._order(plain.source, plain.target, stage)
        assert plain.read is not None
        writer = int(seen.writer[np.flatnonzero(seen.read == plain.read)[0]])
        order = self._order(writer, plain.target, stage)
        return Precedence(seen.history, plain.source, plain.target, "rw", plain.read, (order,))

    def _order(self, first: int, second: int, stage: int) -> Precedence:
        """Return the order of two versions, with the cycle that the opposite order closes."""
        seen, before = self.choosing.seen, int(self.ends[stage - 1])
        size, known = len(self.choosing.chain), (self.source[:before], self.target[:before])
        for other in self._opposite(first, second):
            (source,), (target,) = self.choosing.events.of(other)
            path = find_path(size, *known, int(target), {int(source)})
            if path is not None:
                because = (_plain(seen, other, 0), *self.steps(path))
                return Precedence(seen.history, first, second, "ww", None, because)
        raise AssertionError(f"{first} before {second} follows from nothing")

    def _opposite(self, first: int, second: int) -> Iterator[EdgeColumns]:
        """Yield the edges that the opposite order of two versions implies, one at a time."""
        seen = self.choosing.seen
        yield EdgeColumns.of("ww", np.array([second]), np.array([first]))
        own = seen.written_key[seen.written_by == first]
        if first == seen.initial:
            own = seen.written_key[seen.written_by == second]
        reads = (seen.writer == second) & np.isin(seen.key, own) & (seen.reader != first)
        for k in np.flatnonzero(reads).tolist():
            yield EdgeColumns.of("rw", seen.reader[[k]], np.array([first]), seen.read[[k]])


def cycle_violation(cycle: Sequence[Precedence], names: Names, level: str) -> Violation:
    """Return the cycle as a violation, named by the anomaly that it is."""
    edges = tuple(_edge(step, names) for step in cycle)
    return Violation(_name(cycle, edges, names, level), "acyclic", edges)


def _name(cycle: Sequence[Precedence], edges: Sequence[Edge], names: Names, level: str) -> str:
    """Return the name of the anomaly of a cycle."""
    stale = [step for step in cycle if step.kind == "co"]
    if not stale:
        return anomaly_of(edges) or "no order of versions"
    if len(stale) > 1:
        return DISAGREEMENT
    # The reader misses a version that it sees; the rest of the cycle makes that the later version.
    (step,) = stale
    assert step.read is not None
    reader, key = names.owner(step.read), int(names.history.key[step.read])
    why = names.missed(reader, step.source, key, step.target)
    miss = Edge(names[reader], names[step.source], "rw", why)
    way = [_edge(one, names) for one in step.because]
    return missed_anomaly(miss, way, ordered=level == "read-committed-biswas-enea")


def _edge(step: Precedence, names: Names) -> Edge:
    return Edge(names[step.source], names[step.target], step.kind, _reason(step, names))


def _reason(step: Precedence, names: Names) -> Reason:
    """Return the reason of a step, in terms of the operations of the history."""
    match step.kind:
        case "so":
            return names.session(step.source, step.target)
        case "rt":
            return names.in_time(step.source, step.target)
        case "wr":
            assert step.read is not None
            key = int(names.history.key[step.read])
            return names.read_from(step.source, step.target, key, step.read)
        case "co":
            assert step.read is not None
            return names.stale(
                step.source, step.read, [_reason(one, names) for one in step.because]
            )
        case "rw":
            assert step.read is not None
            (order,) = step.because
            key = int(names.history.key[step.read])
            return names.missed(step.source, step.target, key, order.source)
    if step.read is not None:
        return names.listed("recorded listed", step.source, step.target, step.read)
    other = [_reason(one, names) for one in step.because[1:]]
    first, second = names[step.source], names[step.target]
    return Reason.of(
        "recorded forced", first=first, second=second, sees=Reason.of("both", parts=tuple(other))
    )
