"""The frame: named sets and relations over nodes. It is all that a spec sees."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.model.errors import FrameError
from isolitmus.model.vocabulary import RELATIONS, SETS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.relation import Relation

__all__ = ["Edge", "Frame"]


@dataclass(frozen=True, slots=True)
class Edge:
    """One pair of a base relation, by the names of its nodes, with the reason why it is there."""

    source: str
    target: str
    kind: str
    why: str


@dataclass(frozen=True, slots=True)
class Frame:
    """Nodes by name, relations (lower case) and sets (capitals, as bitsets) over their positions.

    ``why[kind, i, j]`` is the reason for a pair of a base relation, a clause that reads after
    "because"; a frame made for counting only may leave it empty. The nodes are transactions; where
    reads count one by one, the initial transaction and the reads are ``beside`` them, at the end.

    >>> from isolitmus.model.relation import Relation
    >>> Frame(("a", "b"), {"wr": Relation.of(2, [(0, 1)])}, {"Writer": 0b01}).names()
    ['Writer', 'wr']
    """

    nodes: tuple[str, ...]
    relations: Mapping[str, Relation]
    sets: Mapping[str, int]
    why: Mapping[tuple[str, int, int], str] = field(default_factory=dict)
    beside: int = 0

    def __post_init__(self) -> None:
        n = len(self.nodes)
        for name, relation in self.relations.items():
            if relation.size != n:
                raise FrameError(f"relation {name} is on {relation.size} nodes, its frame has {n}")
        for name, members in self.sets.items():
            if members >> n:
                raise FrameError(f"set {name} has members outside the {n} nodes of its frame")

    @property
    def transactions(self) -> int:
        """The number of nodes that are transactions (the initial one not counted)."""
        return len(self.nodes) - self.beside

    def is_read(self, i: int) -> bool:
        """Whether the node is a read; the initial transaction is the first node that is beside."""
        return i > self.transactions

    def names(self) -> list[str]:
        """The names that a spec may use on this frame, sorted."""
        return sorted([*self.relations, *self.sets])

    def edge(self, kind: str, i: int, j: int) -> Edge:
        """The pair (i, j) of a base relation with its reason."""
        return Edge(self.nodes[i], self.nodes[j], kind, self.why.get((kind, i, j), ""))

    def edges(self) -> list[Edge]:
        """Every pair of every relation with its reason, in the order of the vocabulary.

        >>> from isolitmus.model.relation import Relation
        >>> frame = Frame(("a", "b"), {"rw": Relation.of(2, [(1, 0)])}, {}, {("rw", 1, 0): "b missed a"})
        >>> frame.edges()
        [Edge(source='b', target='a', kind='rw', why='b missed a')]
        """
        kinds = [kind for kind in RELATIONS if kind in self.relations]
        return [self.edge(kind, i, j) for kind in kinds for i, j in self.relations[kind].pairs()]

    def member_of(self, node: str) -> list[str]:
        """The sets that a node is in, in the order of the vocabulary."""
        bit = 1 << self.nodes.index(node)
        return [name for name in SETS if self.sets.get(name, 0) & bit]

    def to_json(self) -> dict[str, object]:
        """The nodes, each with its sets, and the edges."""
        return {
            "nodes": {node: self.member_of(node) for node in self.nodes},
            "edges": [
                {"from": e.source, "to": e.target, "kind": e.kind, "why": e.why}
                for e in self.edges()
            ],
        }
