"""The steps of a cycle of a small part of a history as edges with their reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.judge.anomalies import DISAGREEMENT, anomaly_of, missed_by
from isolitmus.model.edge import Edge
from isolitmus.model.reason import Reason
from isolitmus.model.verdict import Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.checker.blackbox.naming import Names
    from isolitmus.checker.blackbox.precedence import Precedence

__all__ = ["circle_of"]


def circle_of(cycle: Sequence[Precedence], names: Names, level: str) -> Violation:
    """The cycle as a violation, called by the anomaly that it is."""
    edges = tuple(_edge(step, names) for step in cycle)
    return Violation(_name(cycle, edges, names, level), "acyclic", edges)


def _name(cycle: Sequence[Precedence], edges: Sequence[Edge], names: Names, level: str) -> str:
    stale = [step for step in cycle if step.kind == "co"]
    if not stale:
        return anomaly_of(edges) or "no order of versions"
    if len(stale) > 1:
        return DISAGREEMENT
    # The reader misses what it sees: the rest of the cycle says that it is the later version.
    (step,) = stale
    assert step.read is not None
    reader, key = names.owner(step.read), int(names.history.key[step.read])
    why = names.missed(reader, step.source, key, step.target)
    miss = Edge(names[reader], names[step.source], "rw", why)
    way = [_edge(one, names) for one in step.because]
    return missed_by(miss, way, ordered=level == "read-committed-biswas-enea")


def _edge(step: Precedence, names: Names) -> Edge:
    return Edge(names[step.source], names[step.target], step.kind, _reason(step, names))


def _reason(step: Precedence, names: Names) -> Reason:
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
