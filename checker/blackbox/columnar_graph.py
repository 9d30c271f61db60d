"""Directed graphs as columns: topological orders, cycles, vector clocks.

Directed graphs as two columns, sources and targets: a topological order, or a cycle.

What leads to each node of a graph whose nodes lie in few chains: the latest one of each chain
(vector clocks).

The nodes of a chain are linked in the order of their numbers, so that a row of a matrix stands for
all that leads to a node: of each chain the latest one, or -1. A graph is such a matrix, too: the
latest *direct* predecessor.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from numpy.typing import NDArray

    from isolitmus.model.budget import Budget

__all__ = [
    "add_edges",
    "adjacency",
    "chain_graph",
    "drop_chain_edges",
    "find_cheap_cycles",
    "find_cycle",
    "find_path",
    "reaches",
    "strong_components",
    "topological_order",
    "update_clocks",
    "vector_clocks",
]

STARTS = 64
"""From how many nodes a shortest cycle is looked for."""


def adjacency(size: int, source: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The edges' numbers in the order of their sources, and where each source's begin.

    >>> [column.tolist() for column in adjacency(3, np.array([2, 0, 2]))]
    [[1, 0, 2], [0, 1, 1, 3]]
    """
    edges = np.argsort(source, kind="stable")
    starts = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(source, minlength=size), out=starts[1:])
    return edges, starts


def topological_order(
    size: int, source: NDArray[np.int64], target: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The nodes, each after those that lead to it; those on cycles, and behind them, are left out.

    >>> topological_order(4, np.array([1, 0, 3, 2]), np.array([0, 2, 2, 3])).tolist()
    [1, 0]
    """
    edges, starts = adjacency(size, source)
    heads = target[edges].tolist()
    begin = starts.tolist()
    waits = np.bincount(target, minlength=size).tolist()
    order = [node for node, wait in enumerate(waits) if not wait]
    for node in order:
        for head in heads[begin[node] : begin[node + 1]]:
            waits[head] -= 1
            if not waits[head]:
                order.append(head)
    return np.array(order, np.int64)


def find_cycle(
    size: int, source: NDArray[np.int64], target: NDArray[np.int64]
) -> tuple[int, ...] | None:
    """The edges, by number, of a cycle that is short; None: there is none.

    >>> find_cycle(4, np.array([0, 1, 2, 3, 2]), np.array([1, 2, 3, 0, 1]))
    (1, 4)
    """
    edges = np.arange(len(source))
    for forward in (True, False):  # what lies before the cycles, then what lies behind them
        tails, heads = (source, target) if forward else (target, source)
        free = np.zeros(size, bool)
        free[topological_order(size, tails[edges], heads[edges])] = True
        edges = edges[~free[source[edges]] & ~free[target[edges]]]
    if not len(edges):
        return None
    nodes = np.unique(source[edges])
    best: tuple[int, ...] | None = None
    for start in nodes[:: max(1, len(nodes) // STARTS)].tolist():
        found = find_path(size, source[edges], target[edges], start, {start})
        if found is not None and (best is None or len(found) < len(best)):
            best = tuple(edges[[*found]].tolist())
    return best if best is not None else _walked(source, target, edges)


def strong_components(
    size: int, source: NDArray[np.int64], target: NDArray[np.int64], place: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Of each node the number of its strongly connected component, -1 where it is on no cycle.
    Nodes have places in some order: where few edges lead back in it, it is fast.

    >>> strong_components(4, np.array([0, 1, 1, 3]), np.array([1, 0, 2, 3]), np.arange(4)).tolist()
    [0, 0, -1, -1]
    """
    back = place[source] > place[target]
    spanned = np.bincount(place[target[back]], minlength=size + 1)
    spanned -= np.bincount(place[source[back]], minlength=size + 1)
    within = (
        np.cumsum(spanned) > 0
    )  # the edge to the next place lies in a stretch that some edge leads back over
    stretch: NDArray[np.int64] = (
        np.cumsum(~within) - ~within
    )  # the places of one stretch have one number
    inside = stretch[place[source]] == stretch[place[target]]
    found = np.full(size, -1)
    nodes, ends = np.unique(np.append(source[inside], target[inside]), return_inverse=True)
    tails, heads = np.split(ends, 2)
    ahead, behind = np.zeros((2, len(nodes)), bool)
    ahead[topological_order(len(nodes), tails, heads)] = True
    behind[topological_order(len(nodes), heads, tails)] = True
    core = ~(ahead | behind)
    inside = core[tails] & core[heads]
    graph = nx.DiGraph(zip(tails[inside].tolist(), heads[inside].tolist(), strict=True))
    components = (one for one in nx.strongly_connected_components(graph) if len(one) > 1)
    for number, component in enumerate(components):
        found[nodes[list(component)]] = number
    return found


def find_path(
    size: int,
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    start: int,
    ends: Collection[int],
) -> tuple[int, ...] | None:
    """The edges of a shortest path, of one at least, from a node to one of some others.

    >>> find_path(3, np.array([0, 1, 0]), np.array([1, 2, 2]), 0, {2})
    (2,)
    """
    edges, starts = adjacency(size, source)
    back: dict[int, int] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for edge in edges[starts[node] : starts[node + 1]].tolist():
            head = int(target[edge])
            if head in back:
                continue
            back[head] = edge
            if head in ends:
                path = [edge]
                while int(source[path[-1]]) != start:
                    path.append(back[int(source[path[-1]])])
                return tuple(reversed(path))
            queue.append(head)
    return None


def find_cheap_cycles(
    size: int,
    free: tuple[NDArray[np.int64], NDArray[np.int64]],
    paid: tuple[NDArray[np.int64], NDArray[np.int64]],
    most: int,
) -> Iterator[NDArray[np.int64]]:
    """Cycles through some of the paid edges, about so many, each with as few of these as it can
    have: as their numbers. All edges are of one strongly connected component.

    >>> edges = (np.array([0]), np.array([1])), (np.array([1, 1, 2]), np.array([0, 2, 0]))
    >>> [cycle.tolist() for cycle in find_cheap_cycles(3, *edges, 9)]
    [[0], [1, 2], [1, 2]]
    """
    count, many = len(free[0]), len(paid[0])
    edges, starts = adjacency(size, np.append(free[0], paid[0]))
    out, begin = edges.tolist(), starts.tolist()
    source, target = (np.append(free[i], paid[i]).tolist() for i in (0, 1))
    for first in range(count, count + many, max(1, many // most)):
        start, end = target[first], source[first]
        cost, back = {start: 0}, {start: first}
        queue = deque([start])
        while queue:
            node = queue.popleft()
            if node == end:
                break
            for edge in out[begin[node] : begin[node + 1]]:
                head, price = target[edge], cost[node] + (edge >= count)
                if price < cost.get(head, size):
                    cost[head], back[head] = price, edge
                    (queue.append if edge >= count else queue.appendleft)(head)
        path = [first]
        while end != start:
            path.append(back[end])
            end = source[back[end]]
        yield np.array(sorted({edge - count for edge in path if edge >= count}))


def _walked(
    source: NDArray[np.int64], target: NDArray[np.int64], edges: NDArray[np.int64]
) -> tuple[int, ...]:
    """A cycle among edges of which each has one before it."""
    into = dict(zip(target[edges].tolist(), edges.tolist(), strict=True))
    seen: dict[int, int] = {}
    walk = [int(edges[0])]
    while walk[-1] not in seen:
        seen[walk[-1]] = len(walk) - 1
        walk.append(into[int(source[walk[-1]])])
    cycle = walk[seen[walk[-1]] : -1]
    assert all(source[a] == target[b] for a, b in pairwise(cycle))
    return tuple(reversed(cycle))


STEPS = 10_000
"""How many nodes are looked at between two looks at the budget."""


def chain_graph(chain: NDArray[np.int64]) -> NDArray[np.int32]:
    """The graph that has the chains alone; of each node its chain is given.

    >>> chain_graph(np.array([0, 0, 1, 0])).tolist()
    [[-1, -1], [0, -1], [-1, -1], [1, -1]]
    """
    size = len(chain)
    graph = np.full((size, int(chain.max(initial=-1)) + 1), -1, np.int32)
    order = np.argsort(chain, kind="stable")
    same = chain[order[1:]] == chain[order[:-1]]
    graph[order[1:][same], chain[order[1:][same]]] = order[:-1][same]
    return graph


def add_edges(
    graph: NDArray[np.int32],
    chain: NDArray[np.int64],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
) -> None:
    """Add edges to a graph, in place."""
    width = graph.shape[1]
    np.maximum.at(graph.reshape(-1), target * width + chain[source], source.astype(np.int32))


def drop_chain_edges(
    graph: NDArray[np.int32], chain: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The edges of a graph, without those that the predecessor in the chain has, too."""
    target, column = np.nonzero(graph >= 0)
    source = graph[target, column].astype(np.int64)
    own = graph[np.arange(len(graph)), chain]
    before = np.where(own < np.arange(len(graph)), own, -1)[target]
    implied = (before >= 0) & (column != chain[target]) & (graph[before, column] >= source)
    return source[~implied], target[~implied]


def vector_clocks(
    graph: NDArray[np.int32], chain: NDArray[np.int64], budget: Budget | None = None
) -> NDArray[np.int32] | None:
    """Of each node the latest one of each chain that leads to it, or is it; None: the graph has a
    cycle. TimeLimit or MemoryLimit if the ``budget`` ends it.

    >>> graph = chain_graph(np.array([0, 0, 1, 1]))
    >>> add_edges(graph, np.array([0, 0, 1, 1]), np.array([1]), np.array([2]))
    >>> vector_clocks(graph, np.array([0, 0, 1, 1])).tolist()
    [[0, -1], [1, -1], [1, 2], [1, 3]]
    """
    clock = graph.copy()
    clock[np.arange(len(graph)), chain] = np.arange(len(graph))
    return update_clocks(clock, graph, chain, np.ones(len(graph), bool), budget)


def update_clocks(
    clock: NDArray[np.int32],
    graph: NDArray[np.int32],
    chain: NDArray[np.int64],
    touched: NDArray[np.bool_],
    budget: Budget | None = None,
) -> NDArray[np.int32] | None:
    """The clocks of a graph from those that it had before edges were added to it; ``touched`` are
    the nodes that some of these lead to.
    """
    source, target = drop_chain_edges(graph, chain)
    order = topological_order(len(graph), source, target)
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
