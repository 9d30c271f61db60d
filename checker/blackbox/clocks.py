"""What leads to each node of a graph whose nodes lie in few chains: the latest one of each chain (vector clocks).

The nodes of a chain are linked in the order of their numbers, so that a row of a matrix stands for all that leads
to a node: of each chain the latest one, or -1. A graph is such a matrix, too: the latest *direct* predecessor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.columnar_graph import adjacency, topological

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolitmus.model.budget import Budget

__all__ = ["add", "chained", "clocks", "direct", "reaches", "renewed"]

STEPS = 10_000
"""How many nodes are looked at between two looks at the budget."""


def chained(chain: NDArray[np.int64]) -> NDArray[np.int32]:
    """The graph that has the chains alone; of each node its chain is given.

    >>> chained(np.array([0, 0, 1, 0])).tolist()
    [[-1, -1], [0, -1], [-1, -1], [1, -1]]
    """
    size = len(chain)
    graph = np.full((size, int(chain.max(initial=-1)) + 1), -1, np.int32)
    order = np.argsort(chain, kind="stable")
    same = chain[order[1:]] == chain[order[:-1]]
    graph[order[1:][same], chain[order[1:][same]]] = order[:-1][same]
    return graph


def add(
    graph: NDArray[np.int32],
    chain: NDArray[np.int64],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
) -> None:
    """Add edges to a graph, in place."""
    width = graph.shape[1]
    np.maximum.at(graph.reshape(-1), target * width + chain[source], source.astype(np.int32))


def direct(
    graph: NDArray[np.int32], chain: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The edges of a graph, without those that the predecessor in the chain has, too."""
    target, column = np.nonzero(graph >= 0)
    source = graph[target, column].astype(np.int64)
    own = graph[np.arange(len(graph)), chain]
    before = np.where(own < np.arange(len(graph)), own, -1)[target]
    implied = (before >= 0) & (column != chain[target]) & (graph[before, column] >= source)
    return source[~implied], target[~implied]


def clocks(
    graph: NDArray[np.int32], chain: NDArray[np.int64], budget: Budget | None = None
) -> NDArray[np.int32] | None:
    """Of each node the latest one of each chain that leads to it, or is it; None: the graph has a cycle. TimeLimit or
    MemoryLimit if the ``budget`` ends it.

    >>> graph = chained(np.array([0, 0, 1, 1]))
    >>> add(graph, np.array([0, 0, 1, 1]), np.array([1]), np.array([2]))
    >>> clocks(graph, np.array([0, 0, 1, 1])).tolist()
    [[0, -1], [1, -1], [1, 2], [1, 3]]
    """
    clock = graph.copy()
    clock[np.arange(len(graph)), chain] = np.arange(len(graph))
    return renewed(clock, graph, chain, np.ones(len(graph), bool), budget)


def renewed(
    clock: NDArray[np.int32],
    graph: NDArray[np.int32],
    chain: NDArray[np.int64],
    touched: NDArray[np.bool_],
    budget: Budget | None = None,
) -> NDArray[np.int32] | None:
    """The clocks of a graph from those that it had before edges were added to it; ``touched`` are the nodes that some
    of these lead to.
    """
    source, target = direct(graph, chain)
    order = topological(len(graph), source, target)
    if len(order) < len(graph):
        return None
    clock = np.maximum(clock, graph)
    heads, head_starts = adjacency(len(graph), source)
    after, after_starts = target[heads].tolist(), head_starts.tolist()
    tails, tail_starts = adjacency(len(graph), target)
    source, starts = source[tails], tail_starts.tolist()
    own, everything, wait = chain.tolist(), bool(touched.all()), touched.tolist()
    for place, node in enumerate(order.tolist()):
        if budget is not None and not place % STEPS:
            budget.check()
        start, end = starts[node], starts[node + 1]
        if start == end or not wait[node]:
            continue
        row = clock[source[start]] if end == start + 1 else clock[source[start:end]].max(axis=0)
        row = np.maximum(row, clock[node])
        row[own[node]] = node
        if everything:
            clock[node] = row
        elif (row != clock[node]).any() or touched[node]:
            clock[node] = row
            for head in after[after_starts[node] : after_starts[node + 1]]:
                wait[head] = True
    return clock


def reaches(
    clock: NDArray[np.int32],
    chain: NDArray[np.int64],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Of each pair of two different nodes, whether the first leads to the second."""
    found: NDArray[np.bool_] = clock[target, chain[source]] >= source
    return found
