"""Witnesses: shortest cycles, the base edges behind a pair of a relation, serial orders.

All results are deterministic: among equally short answers the one with the smaller node numbers.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING

from isolitmus.model.reason import Edge, Reason
from isolitmus.model.relation import Relation, bits
from isolitmus.model.spec import Binary, Name, Unary

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from isolitmus.model.frame import Frame
    from isolitmus.model.spec import CatExpr, Fold


def shortest_path(relation: Relation, start: int, end: int, among: int = -1) -> list[int]:
    """Return the nodes of a shortest path of at least one step, both ends included.

    Of the shortest paths it is the lexicographically smallest; [] if there is none.

    Parameters
    ----------
    relation : Relation
        Edges.
    start, end : int
        Nodes; equal ones give a cycle.
    among : int
        Bitset of the nodes that the path may use; bit i stands for node i (default: all).

    Examples
    --------
    >>> shortest_path(Relation.of(4, [(0, 2), (0, 1), (1, 3), (2, 3)]), 0, 3)
    [0, 1, 3]
    """
    parent: dict[int, int] = {}
    unseen = among
    queue = deque([start])
    while queue:
        node = queue.popleft()
        successors = relation.rows[node] & unseen
        unseen &= ~successors
        for successor in bits(successors):
            parent[successor] = node
            if successor == end:
                path = [end, node]
                while path[-1] != start:
                    path.append(parent[path[-1]])
                return path[::-1]
            queue.append(successor)
    return []


def shortest_cycle(relation: Relation) -> list[int]:
    """Return the nodes of a shortest cycle, its smallest node first; [] if the relation is acyclic.

    Examples
    --------
    >>> shortest_cycle(Relation.of(4, [(0, 1), (1, 2), (2, 0), (3, 2), (2, 3)]))
    [2, 3]
    """
    best: list[int] = []
    cyclic = relation.core()
    for start in bits(cyclic):
        path = shortest_path(relation, start, start, cyclic >> start << start)
        if path and (not best or len(path) - 1 < len(best)):
            best = path[:-1]
        if len(best) == 1:
            break
    return best


def serial_order(n: int, orders: Sequence[Relation]) -> list[int]:
    """Return all nodes in a topological order of the relations, smallest possible node first.

    Each relation must be acyclic; if their union is not, only the first one is respected.

    Examples
    --------
    >>> serial_order(3, [Relation.of(3, [(2, 0)])])
    [1, 2, 0]
    """
    union = Relation.empty(n)
    for order in orders:
        union |= order
    placed = _topological(union)
    return placed if len(placed) == n else _topological(orders[0])


class Reasons:
    """Base edges that put a pair into the relation of an expression.

    A union gives the reason of its first operand that has the pair; a composition goes through the
    smallest node in between; a closure takes a shortest path; a difference gives the reason of its
    left side. ``[S]`` and the reflexive part of ``r?`` give none. An intersection of two single
    edges is one edge with both names and both reasons (``unseen & adds-meets-reads``); else it
    gives the shorter of the two. An edge that is followed backward has ``^-1`` after its name.

    A path between transactions that passes through reads is one edge. Its kind is the path as an
    expression, ``rival & (wr ; in^-1) ; rf^-1``; its reason is made of those of its steps.
    """

    def __init__(
        self, frame: Frame, fold: Fold[Relation, int], definitions: Mapping[str, CatExpr]
    ) -> None:
        self._frame = frame
        self._fold = fold
        self._definitions = definitions
        self._reads = frozenset(frame.nodes[frame.transactions + 1 :])

    def edges(self, expr: CatExpr, i: int, j: int) -> tuple[Edge, ...]:
        """Return a path of edges from i to j.

        A pair that needs no edge, such as one of ``[S]``, gives a single edge with the expression
        as its kind.
        """
        found = _through(self._why(expr, i, j), self._reads)
        return found or (Edge(self._frame.nodes[i], self._frame.nodes[j], str(expr), Reason()),)

    def _why(self, expr: CatExpr, i: int, j: int) -> tuple[Edge, ...]:
        """Return the base edges that put a pair into the relation of an expression."""
        match expr:
            case Name(name) if name in self._definitions:
                return self._why(self._definitions[name], i, j)
            case Name(name):
                return (self._frame.edge(name, i, j),)
            case Binary("|", left, right):
                return self._why(left if self._has(left, i, j) else right, i, j)
            case Binary("&", left, right):
                pair = self._why(left, i, j), self._why(right, i, j)
                return _met(*pair) if self._reads & self._ends(i, j) else _both(*pair)
            case Binary("\\", left, _):
                return self._why(left, i, j)
            case Binary(";", left, right):
                first = self._fold.relation(left).rows[i]
                middle = next(m for m in bits(first) if self._has(right, m, j))
                return self._why(left, i, middle) + self._why(right, middle, j)
            case Unary("^-1", operand):
                return tuple(_turned(edge) for edge in reversed(self._why(operand, j, i)))
            case Unary("?", operand):
                return self._why(operand, i, j) if self._has(operand, i, j) else ()
            case Unary("*", _) if i == j:
                return ()
            case Unary("+" | "*", operand):
                path = shortest_path(self._fold.relation(operand), i, j)
                return tuple(edge for a, b in pairwise(path) for edge in self._why(operand, a, b))
        return ()

    def _ends(self, i: int, j: int) -> set[str]:
        return {self._frame.nodes[i], self._frame.nodes[j]}

    def _has(self, expr: CatExpr, i: int, j: int) -> bool:
        return (i, j) in self._fold.relation(expr)


def _both(left: tuple[Edge, ...], right: tuple[Edge, ...]) -> tuple[Edge, ...]:
    """Return two single edges as one edge with both reasons, else the shorter non-empty path."""
    if len(left) == len(right) == 1:
        reason = joined_reasons("both", [edge.reason for edge in (*left, *right)])
        return (replace(left[0], kind=f"{left[0].kind} & {right[0].kind}", reason=reason),)
    return min((e for e in (left, right) if e), key=len, default=())


def _met(left: tuple[Edge, ...], right: tuple[Edge, ...]) -> tuple[Edge, ...]:
    """Return two paths from or to one read as one edge with the reasons of both."""
    if not left or not right:
        return left or right
    one, other = _joined(left), _joined(right)
    kinds = [e.kind if len(way) == 1 else f"({e.kind})" for e, way in ((one, left), (other, right))]
    return (replace(one, kind=" & ".join(kinds), reason=_of_way(left + right)),)


def _through(edges: tuple[Edge, ...], reads: frozenset[str]) -> tuple[Edge, ...]:
    """Return the edges with consecutive ones joined if they meet in a read."""
    ways: list[tuple[Edge, ...]] = []
    for edge in edges:
        if ways and edge.source in reads:
            ways[-1] += (edge,)
        else:
            ways.append((edge,))
    return tuple(_joined(way) for way in ways)


def _joined(way: tuple[Edge, ...]) -> Edge:
    """Return a path of edges as one edge."""
    if len(way) == 1:
        return way[0]
    kind = " ; ".join(edge.kind for edge in way)
    return Edge(way[0].source, way[-1].target, kind, _of_way(way))


def joined_reasons(kind: str, reasons: Iterable[Reason]) -> Reason:
    """Return several reasons as one of a kind, each once; a single one is returned as it is."""
    parts = tuple(dict.fromkeys(filter(None, reasons)))
    return Reason.of(kind, parts=parts) if len(parts) > 1 else Reason() if not parts else parts[0]


def _of_way(way: tuple[Edge, ...]) -> Reason:
    """Return the reason of a path through reads.

    The membership of a read in its transaction is left out. A step back along rf is marked: it is
    what the read saw instead.
    """
    steps = tuple(
        (edge.reason, edge.kind == "rf^-1")
        for edge in way
        if edge.reason and edge.kind not in ("in", "in^-1")
    )
    return Reason.of("way", steps=steps) if steps else Reason()


def _turned(edge: Edge) -> Edge:
    """Return the edge of the inverse relation."""
    if "(" in edge.kind or ";" in edge.kind:
        return replace(edge, source=edge.target, target=edge.source, kind=f"({edge.kind})^-1")
    kinds = [
        kind.removesuffix("^-1") if kind.endswith("^-1") else f"{kind}^-1"
        for kind in edge.kind.split(" & ")
    ]
    return replace(edge, source=edge.target, target=edge.source, kind=" & ".join(kinds))


def _topological(relation: Relation) -> list[int]:
    """Return the nodes in topological order, smallest first, without those on or behind cycles."""
    waiting = [0] * relation.size
    for row in relation.rows:
        for j in bits(row):
            waiting[j] += 1
    ready: list[int] = [i for i, count in enumerate(waiting) if not count]
    heapify(ready)
    order: list[int] = []
    while ready:
        i = heappop(ready)
        order.append(i)
        for j in bits(relation.rows[i]):
            waiting[j] -= 1
            if not waiting[j]:
                heappush(ready, j)
    return order
