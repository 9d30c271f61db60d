"""Dependency graphs of histories, litmus tests, frames and violations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import execute, execution_frame
from isolitmus.checker.judge.completion import frame_of
from isolitmus.model.dependency_graph import DependencyGraph
from isolitmus.model.frame import Frame
from isolitmus.model.history import History
from isolitmus.model.litmus import HistoryTest, Litmus
from isolitmus.model.verdict import Violation
from isolitmus.specs.files.catalogue import litmus as named

if TYPE_CHECKING:
    from isolitmus.model.reason import Edge
    from isolitmus.specs.files.spec_catalogue import NameOrPath

DEPENDENCIES = ("so", "wr", "ww", "rw")


def graph(of: Frame | History | HistoryTest | Litmus | Violation | NameOrPath) -> DependencyGraph:
    """Return the dependency graph of a frame, history, litmus test or violation.

    Parameters
    ----------
    of : Frame, History, HistoryTest, Litmus, Violation, str or path
        What has dependencies. A name or path stands for a litmus test.

    Returns
    -------
    DependencyGraph
        Of a frame all its relations, of a test the dependencies of its schedule, of a violation its
        cycle. A history with open version orders or outcomes gives its transactions without edges.

    Examples
    --------
    >>> from isolitmus.specs import litmus
    >>> graph(litmus("reorder"))  # doctest: +NORMALIZE_WHITESPACE
    delete  DELETE FROM t WHERE part = 0
    insert  INSERT INTO t VALUES (100, 0)
    rw  delete → insert  delete read t WHERE part = 0 at version 0,
        without row (100, 0), which insert added
    """
    match of:
        case Frame():
            return DependencyGraph(dict.fromkeys(of.nodes, ""), tuple(of.edges()))
        case Violation():
            names = dict.fromkeys(name for e in of.cycle for name in (e.source, e.target))
            return DependencyGraph(dict.fromkeys(names, ""), (), of.cycle)
        case HistoryTest():
            return graph(of.history)
        case History():
            nodes = {transaction.name: str(transaction) for transaction in of.transactions}
            edges = () if of.undetermined() else tuple(dependency_edges(frame_of(of)))
            return DependencyGraph(nodes, edges)
        case Litmus():
            return transaction_graph(of, execution_frame(execute(of)))
        case name:
            return graph(named(name))


def transaction_graph(test: Litmus, frame: Frame | None) -> DependencyGraph:
    """Return the transactions of a litmus test, with the dependencies in their frame, if any."""
    nodes = {name: statement.sql for name, statement in test.transactions.items()}
    return DependencyGraph(nodes, () if frame is None else tuple(dependency_edges(frame)))


def dependency_edges(frame: Frame) -> list[Edge]:
    """Return the edges of the dependency graph, by source and target.

    They are Adya's dependencies and the session order.
    """
    pairs = sorted(
        (i, j, kind)
        for kind in DEPENDENCIES
        if kind in frame.relations
        for i, j in frame.relations[kind].pairs()
    )
    return [frame.edge(kind, i, j) for i, j, kind in pairs]
