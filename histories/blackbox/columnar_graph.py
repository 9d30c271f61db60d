"""Directed graphs as columns: topological order, cycles, paths, vector clocks.

An edge list is two arrays, sources and targets, of shape (n_edges,); an edge's number is its index.

For graphs whose nodes lie in few chains (totally ordered by node number), a graph is a matrix of
shape (n_nodes, n_chains): row v holds the latest direct predecessor of v in each chain, or -1. A
vector clock is such a matrix too: the latest node of each chain that reaches v, or -1.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from numpy.typing import NDArray

    from isolitmus.model.budget import Budget

STARTS = 64
"""Number of start nodes, about, from which `find_cycle` looks for a shortest cycle."""
WALKS = 8
"""Number of walks, about, by which it finds nodes on cycles first."""


def stable_order(number: NDArray[np.int32] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices that sort numbers from 0; equal numbers keep their order.

    Where each number fits into one int64 with its index, these are sorted: many times as fast as
    NumPy's stable argsort.

    Examples
    --------
    >>> stable_order(np.array([2, 0, 2, 1])).tolist()
    [1, 3, 0, 2]
    """
    bits = len(number).bit_length()
    if int(number.max(initial=0)) >> (63 - bits):
        return np.argsort(number, kind="stable")
    packed = number.astype(np.int64) << bits
    packed |= np.arange(len(number))
    packed.sort()
    packed &= (1 << bits) - 1
    return packed


def begins_run(column: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return, for each row, whether it differs from the row before it."""
    begins = np.ones(len(column), bool)
    begins[1:] = column[1:] != column[:-1]
    return begins


def adjacency(size: int, source: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the edge numbers sorted by source, and where the edges of each source begin.

    Parameters
    ----------
    size : int
        Number of nodes.
    source : ndarray of int64, shape (n_edges,)
        Source of each edge.

    Returns
    -------
    edges : ndarray of int64, shape (n_edges,)
        Edge numbers in the order of their sources.
    starts : ndarray of int64, shape (size + 1,)
        The edges of node v are ``edges[starts[v] : starts[v + 1]]``.

    Examples
    --------
    >>> [column.tolist() for column in adjacency(3, np.array([2, 0, 2]))]
    [[1, 0, 2], [0, 1, 1, 3]]
    """
    edges = stable_order(source)
    starts = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(source, minlength=size), out=starts[1:])
    return edges, starts


def topological_order(
    size: int, source: NDArray[np.int64], target: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the nodes in topological order, without those on cycles and those that cycles reach.

    Examples
    --------
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


def latest_edges(
    chain: NDArray[np.int64], source: NDArray[np.int64], target: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the numbers of edges that imply the others.

    An edge between two chains is implied if an edge to the same node of its target's chain, or to
    an earlier one, comes from the same node of its source's chain, or from a later one.

    Parameters
    ----------
    chain : ndarray of int64, shape (n_nodes,)
        Chain of each node; those of a chain are adjacent, and edges link each to the next.
    source, target : ndarray of int64, shape (n_edges,)
        Edges, with those that link the chains.

    Examples
    --------
    >>> edges = np.array([0, 2, 1, 0, 1]), np.array([1, 3, 2, 3, 3])
    >>> latest_edges(np.array([0, 0, 1, 1]), *edges).tolist()
    [0, 2, 1]
    """
    size, width = len(chain), int(chain.max(initial=0)) + 1
    edges = stable_order(chain[source] * size + target)
    source, to = source[edges], chain[target[edges]]
    pair = np.cumsum(begins_run(chain[source] * width + to))  # of chains, by number
    latest = np.maximum.accumulate(pair * size + source)
    kept: NDArray[np.int64] = edges[begins_run(latest) | (chain[source] == to)]
    return kept


def find_cycle(
    size: int,
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    few: NDArray[np.int64] | None = None,
) -> tuple[int, ...] | None:
    """Return the edge numbers of a short cycle, or None if the graph is acyclic.

    A shortest cycle through each of about `STARTS` start nodes, and through `WALKS` nodes that are
    on a cycle, is computed by breadth-first search; the shortest of them is returned. ``few`` are
    the numbers of edges that imply the others (`latest_edges`), if known.

    Examples
    --------
    >>> find_cycle(4, np.array([0, 1, 2, 3, 2]), np.array([1, 2, 3, 0, 1]))
    (1, 4)
    """
    few = np.arange(len(source)) if few is None else few
    free = np.zeros(size, bool)
    # Drop the nodes before all cycles, then those after all cycles.
    for tails, heads in ((source, target), (target, source)):
        few = few[~free[source[few]] & ~free[target[few]]]
        free[topological_order(size, tails[few], heads[few])] = True
        if free.all():
            return None
    edges = np.flatnonzero(~free[source] & ~free[target])
    nodes, ends = np.unique(np.append(source[edges], target[edges]), return_inverse=True)
    tails, heads = np.split(ends, 2)
    out, starts = adjacency(len(nodes), tails)
    columns = starts.tolist(), tails[out].tolist(), heads[out].tolist()
    tried = range(0, len(nodes), max(1, len(nodes) // STARTS))
    # Few start nodes may be on a cycle. A node to which a walk returns is: its cycle is a bound.
    best: list[int] = []
    for start in tried[:: max(1, len(tried) // WALKS)]:
        at = _node_on_cycle(columns[0], columns[2], start)
        shorter = len(best) - 1 if best else len(nodes)
        best = _shortest_path(*columns, at, {at}, most=shorter) or best
    most = len(best)
    for start in tried:
        found = _shortest_path(*columns, start, {start}, most=most)
        if found is not None:
            best, most = found, len(found) - 1
    return tuple(edges[out[best]].tolist())


def _node_on_cycle(starts: list[int], heads: list[int], node: int) -> int:
    """Return a node on a cycle, where each node has an edge: the first one to be met again."""
    met = set()
    while node not in met:
        met.add(node)
        node = heads[starts[node]]
    return node


def _shortest_path(
    starts: list[int],
    tails: list[int],
    heads: list[int],
    start: int,
    ends: Collection[int],
    *,
    most: int,
) -> list[int] | None:
    """Return the edges of a shortest path from a node to one of ``ends``; None if there is none.

    It has at least one edge and at most ``most``. The edges of node v are ``starts[v]`` to
    ``starts[v + 1] - 1``. Breadth-first search.
    """
    back: dict[int, int] = {}
    reached = [start]
    for _ in range(most):
        nodes, reached = reached, []
        for node in nodes:
            for edge in range(starts[node], starts[node + 1]):
                head = heads[edge]
                if head in back:
                    continue
                back[head] = edge
                if head in ends:
                    path = [edge]
                    while tails[path[-1]] != start:
                        path.append(back[tails[path[-1]]])
                    return path[::-1]
                reached.append(head)
        if not reached:
            return None
    return None


def strong_components(
    size: int, source: NDArray[np.int64], target: NDArray[np.int64], place: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the number of the strongly connected component of each node; -1 if it is on no cycle.

    Fast if few edges lead backward in the order of ``place``. A node whose only cycle is a
    self-loop has -1.

    Parameters
    ----------
    size : int
        Number of nodes.
    source, target : ndarray of int64, shape (n_edges,)
        Edges.
    place : ndarray of int64, shape (size,)
        Position of each node in some order.

    Returns
    -------
    ndarray of int64, shape (size,)
        Component number from 0, or -1.

    Examples
    --------
    >>> strong_components(4, np.array([0, 1, 1, 3]), np.array([1, 0, 2, 3]), np.arange(4)).tolist()
    [0, 0, -1, -1]
    """
    back = place[source] > place[target]
    spanned = np.bincount(place[target[back]], minlength=size + 1)
    spanned -= np.bincount(place[source[back]], minlength=size + 1)
    # A back edge spans the places between its ends. A component lies within one stretch: a maximal
    # run of places whose gaps are all spanned. Edges between stretches are on no cycle.
    within = np.cumsum(spanned) > 0
    stretch: NDArray[np.int64] = np.cumsum(~within) - ~within
    inside = stretch[place[source]] == stretch[place[target]]
    found = np.full(size, -1)
    nodes, ends = np.unique(np.append(source[inside], target[inside]), return_inverse=True)
    tails, heads = np.split(ends, 2)
    ahead, behind = np.zeros((2, len(nodes)), bool)
    ahead[topological_order(len(nodes), tails, heads)] = True
    behind[topological_order(len(nodes), heads, tails)] = True
    core = ~(ahead | behind)
    inside = core[tails] & core[heads]
    if not inside.any():
        return found
    from networkx import DiGraph, strongly_connected_components

    graph = DiGraph(zip(tails[inside].tolist(), heads[inside].tolist(), strict=True))
    components = (one for one in strongly_connected_components(graph) if len(one) > 1)
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
    """Return the edge numbers of a shortest path, of at least one edge, from ``start`` to one of
    ``ends``.

    Returns None if there is no such path.

    Examples
    --------
    >>> find_path(3, np.array([0, 1, 0]), np.array([1, 2, 2]), 0, {2})
    (2,)
    """
    edges, starts = adjacency(size, source)
    columns = starts.tolist(), source[edges].tolist(), target[edges].tolist()
    path = _shortest_path(*columns, start, ends, most=size)
    return None if path is None else tuple(edges[path].tolist())


def find_cheap_cycles(
    size: int,
    free: tuple[NDArray[np.int64], NDArray[np.int64]],
    paid: tuple[NDArray[np.int64], NDArray[np.int64]],
    most: int,
) -> Iterator[NDArray[np.int64]]:
    """Yield about ``most`` cycles through paid edges, each with as few paid edges as possible.

    0-1 breadth-first search: a free edge costs 0, a paid edge 1. All edges must lie in one strongly
    connected component.

    Parameters
    ----------
    size : int
        Number of nodes.
    free, paid : tuple of two ndarrays of int64, shape (n_edges,)
        Sources and targets of the free and of the paid edges.
    most : int
        Approximate number of cycles.

    Yields
    ------
    ndarray of int64, shape (n_paid_on_cycle,)
        Sorted indices of the paid edges on the cycle.

    Examples
    --------
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
                # Edge numbers from `count` on are paid.
                head, price = target[edge], cost[node] + (edge >= count)
                if price < cost.get(head, size):
                    cost[head], back[head] = price, edge
                    (queue.append if edge >= count else queue.appendleft)(head)
        path = [first]
        while end != start:
            path.append(back[end])
            end = source[back[end]]
        yield np.array(sorted({edge - count for edge in path if edge >= count}))


STEPS = 10_000
"""Number of nodes visited between two checks of the budget."""


def chain_graph(chain: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the graph whose only edges link consecutive nodes of each chain.

    Parameters
    ----------
    chain : ndarray of int64, shape (n_nodes,)
        Chain of each node.

    Returns
    -------
    ndarray of int32, shape (n_nodes, n_chains)
        Latest direct predecessor of each node in each chain; -1 if there is none.

    Examples
    --------
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
    """Add edges to ``graph`` in place: per target and source chain the latest source is kept.

    Parameters
    ----------
    graph : ndarray of int32, shape (n_nodes, n_chains)
        Latest direct predecessors; -1 if there is none. Must be contiguous.
    chain : ndarray of int64, shape (n_nodes,)
        Chain of each node.
    source, target : ndarray of int64, shape (n_edges,)
        Edges to add.
    """
    width = graph.shape[1]
    np.maximum.at(graph.reshape(-1), target * width + chain[source], source.astype(np.int32))


def drop_chain_edges(
    graph: NDArray[np.int32], chain: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the edges of ``graph``, without those that the predecessor in the chain also has.

    Parameters
    ----------
    graph : ndarray of int32, shape (n_nodes, n_chains)
        Latest direct predecessors; -1 if there is none.
    chain : ndarray of int64, shape (n_nodes,)
        Chain of each node.

    Returns
    -------
    source, target : ndarray of int64, shape (n_edges,)
        Edges that are not implied by the previous node of the target's chain.
    """
    target, column = np.nonzero(graph >= 0)
    source = graph[target, column].astype(np.int64)
    own = graph[np.arange(len(graph)), chain]
    before = np.where(own < np.arange(len(graph)), own, -1)[target]
    implied = (before >= 0) & (column != chain[target]) & (graph[before, column] >= source)
    return source[~implied], target[~implied]


def vector_clocks(
    graph: NDArray[np.int32], chain: NDArray[np.int64], budget: Budget | None = None
) -> NDArray[np.int32] | None:
    """Return the vector clock of each node, or None if the graph has a cycle.

    Parameters
    ----------
    graph : ndarray of int32, shape (n_nodes, n_chains)
        Latest direct predecessors; -1 if there is none.
    chain : ndarray of int64, shape (n_nodes,)
        Chain of each node.
    budget : Budget, optional
        Limits of time and memory.

    Returns
    -------
    ndarray of int32, shape (n_nodes, n_chains), or None
        Latest node of each chain that reaches the node, or is it; -1 if there is none.

    Raises
    ------
    Limit
        TimeLimit or MemoryLimit if the ``budget`` is spent.

    Examples
    --------
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
    """Return the vector clocks after edges were added to ``graph``, or None if it has a cycle.

    Parameters
    ----------
    clock : ndarray of int32, shape (n_nodes, n_chains)
        Vector clocks from before the edges were added.
    graph : ndarray of int32, shape (n_nodes, n_chains)
        Latest direct predecessors, with the new edges; -1 if there is none.
    chain : ndarray of int64, shape (n_nodes,)
        Chain of each node.
    touched : ndarray of bool, shape (n_nodes,)
        Targets of the new edges; rows are recomputed from these on.
    budget : Budget, optional
        Limits of time and memory.

    Returns
    -------
    ndarray of int32, shape (n_nodes, n_chains), or None
        New clocks; ``clock`` is not changed.
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
    # In topological order, a row is the maximum of its predecessors' rows and itself. Only nodes
    # behind a changed row are recomputed.
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
    """Return, for each pair of two different nodes, whether the source reaches the target.

    Parameters
    ----------
    clock : ndarray of int32, shape (n_nodes, n_chains)
        Vector clocks.
    chain : ndarray of int64, shape (n_nodes,)
        Chain of each node.
    source, target : ndarray of int64
        Nodes; shapes broadcast against each other.

    Returns
    -------
    ndarray of bool
        Of the broadcast shape.
    """
    found: NDArray[np.bool_] = clock[target, chain[source]] >= source
    return found
