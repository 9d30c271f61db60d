"""Dependency graph (frame): named sets and relations over nodes, the only input of a spec."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from isolitmus.model.display import ReadableRepr, first_lines
from isolitmus.model.errors import FrameError, UndeterminedError, printable
from isolitmus.model.reason import Edge, Reason
from isolitmus.model.relation import Relation
from isolitmus.model.verdict import Violation
from isolitmus.model.vocabulary import APART, BASE, RELATIONS, SETS, Term

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from networkx import MultiDiGraph


@dataclass(frozen=True, slots=True)
class Frame(ReadableRepr):
    """Dependency graph: nodes by name, with relations and sets over their positions.

    A frame is the only input of a spec.

    Examples
    --------
    >>> from isolitmus.model.reason import Reason
    >>> from isolitmus.model.relation import Relation
    >>> why = {("wr", 0, 1): Reason("b read it")}
    >>> frame = Frame(("a", "b"), {"wr": Relation.of(2, [(0, 1)])}, {"Writer": 0b01}, why)
    >>> frame.names()
    ['Writer', 'wr']
    >>> frame
    a  Writer
    b
    <BLANKLINE>
    wr  a → b  b read it
    """

    nodes: tuple[str, ...]
    """Names of transactions. If reads are nodes, the initial transaction and then the reads, or all
    operations, follow.
    """
    relations: dict[str, Relation]
    """Relations by name (lower case), over the positions of the nodes."""
    sets: Mapping[str, int]
    """Sets by name (capitalized), as bit masks: bit i stands for the node at position i."""
    reasons: Mapping[tuple[str, int, int], Reason] = field(default_factory=dict)
    """Reason of each pair of a base relation, by its name and the two positions; empty in frames
    that are built for counting.
    """
    beside: int = 0
    """Number of nodes, at the end, that are not transactions."""
    own: Mapping[str, Term] = field(default_factory=dict)
    """Terms that only the format of the frame has, by name."""
    flaws: tuple[Violation, ...] = ()
    """Reads that no order of the transactions explains; if there is one, no spec admits the frame.
    """
    later: frozenset[str] = field(default=frozenset(), compare=False)
    """Names of relations that are computed when ``relations`` is asked for them, and not listed."""

    def __post_init__(self) -> None:
        n = len(self.nodes)
        for name, relation in self.relations.items():
            if relation.size != n:
                raise FrameError(f"relation {name} is on {relation.size} nodes, its frame has {n}")
        for name, members in self.sets.items():
            if members >> n:
                raise FrameError(f"set {name} has members outside the {n} nodes of its frame")

    def lines(self) -> list[str]:
        """Return one line for each node with its sets, each pair with its reason, and each flaw."""
        width = max(map(len, self.nodes), default=0)
        lines = [
            f"{node:<{width}}  {', '.join(self.member_of(node))}".rstrip() for node in self.nodes
        ]
        edges = [(e.kind, f"{e.source} → {e.target}", e.why) for e in self.edges()]
        if edges:
            wide = max(len(kind) for kind, _, _ in edges), max(len(pair) for _, pair, _ in edges)
            lines.append("")
            lines += [
                f"{kind:<{wide[0]}}  {pair:<{wide[1]}}  {why}".rstrip() for kind, pair, why in edges
            ]
        if self.flaws:
            lines.append("")
            lines += [f"{flaw.axiom}: {edge.why}" for flaw in self.flaws for edge in flaw.cycle]
        return lines

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return first_lines(self.lines())

    @property
    def transactions(self) -> int:
        """Number of nodes that are transactions, without the initial one."""
        return len(self.nodes) - self.beside

    def is_operation(self, i: int) -> bool:
        """Return whether node `i` is an operation.

        The initial transaction is the first node that is not counted as a transaction.
        """
        return i > self.transactions

    def names(self) -> list[str]:
        """Return the names that a spec may use on this frame, sorted."""
        return sorted([*self.relations, *self.sets])

    def edge(self, kind: str, i: int, j: int) -> Edge:
        """Return the pair (i, j) of a base relation with its reason."""
        reason = self.reasons.get((kind, i, j), Reason())
        if kind in self.later:
            reason = Reason.of(kind, first=self.nodes[i], second=self.nodes[j])
        return Edge(self.nodes[i], self.nodes[j], kind, reason, self.own.get(kind))

    def every_relation(self) -> dict[str, Relation]:
        """Return all relations by name, except for those that the execution leaves undetermined."""
        found = dict(self.relations)
        for name in sorted(self.later):
            with suppress(UndeterminedError):
                found[name] = self.relations[name]
        return found

    def term(self, name: str) -> Term:
        """Return the meaning of a base name of the frame."""
        return self.own[name] if name in self.own else BASE[name]

    def edges(self) -> list[Edge]:
        """Return every pair of every relation with its reason.

        They are in the order of the vocabulary, terms of a format last. A relation that covers only
        items or only predicates is left out if the frame has the relation that covers both.

        Examples
        --------
        >>> from isolitmus.model.reason import Reason
        >>> from isolitmus.model.relation import Relation
        >>> why = {("rw", 1, 0): Reason("b missed a")}
        >>> frame = Frame(("a", "b"), {"rw": Relation.of(2, [(1, 0)])}, {}, why)
        >>> print(*frame.edges())
        rw  b → a  b missed a
        """
        kinds = [
            kind
            for kind in (*RELATIONS, *self.own)
            if kind in self.relations and APART.get(kind) not in self.relations
        ]
        return [self.edge(kind, i, j) for kind in kinds for i, j in self.relations[kind].pairs()]

    def member_of(self, node: str) -> list[str]:
        """Return the sets that contain `node`, in the order of the vocabulary, terms of a format
        last.
        """
        bit = 1 << self.nodes.index(node)
        return [name for name in (*SETS, *self.own) if self.sets.get(name, 0) & bit]

    def to_networkx(self, *kinds: str) -> MultiDiGraph:
        """Return the frame as a networkx MultiDiGraph, which can be written as GraphML.

        A node has its ``sets``, separated by commas. An edge for each pair of a relation has the
        name of the relation as key and ``kind``, and the reason as ``why``.

        Parameters
        ----------
        *kinds : str
            Relations to include; all by default.

        Raises
        ------
        FrameError
            If the frame does not have such a relation.

        Examples
        --------
        >>> from isolitmus.model.relation import Relation
        >>> wr, rw = Relation.of(2, [(0, 1)]), Relation.of(2, [(1, 0)])
        >>> graph = Frame(("a", "b"), {"wr": wr, "rw": rw}, {"Writer": 0b01}).to_networkx()
        >>> import networkx
        >>> networkx.find_cycle(graph)
        [('a', 'b', 'wr'), ('b', 'a', 'rw')]
        """
        from networkx import MultiDiGraph

        lacking = sorted(set(kinds).difference(self.relations))
        if lacking:
            raise FrameError(f"the frame has no relation {', '.join(lacking)}")
        graph = MultiDiGraph()
        graph.add_nodes_from(
            (node, {"sets": ", ".join(self.member_of(node))}) for node in self.nodes
        )
        for edge in self.edges():
            if not kinds or edge.kind in kinds:
                about = {"kind": edge.kind, "why": printable(edge.why)}
                graph.add_edge(edge.source, edge.target, edge.kind, **about)
        return graph

    def to_json(self) -> dict[str, object]:
        """Return the nodes with their sets, the edges, and the flaws as a JSON object."""
        return {
            "nodes": {node: self.member_of(node) for node in self.nodes},
            "edges": [
                {"from": e.source, "to": e.target, "kind": e.kind, "why": e.why}
                for e in self.edges()
            ],
            "flaws": [
                {"name": flaw.axiom, "node": edge.target, "why": edge.why}
                for flaw in self.flaws
                for edge in flaw.cycle
            ],
        }


class FrameBuilder:
    """Builder of a frame, to which pairs and members of sets are added one by one.

    Parameters
    ----------
    nodes : iterable of str
        Names of the nodes.
    relations, sets : iterable of str or Term
        Relations and sets, empty at first: names of the vocabulary, or terms of a format.
    reasons : bool
        Whether reasons are kept; False for counting. The first reason of a pair is kept.

    Raises
    ------
    FrameError
        If the vocabulary does not have a name.

    Examples
    --------
    >>> builder = FrameBuilder(("a", "b"), ("ww", "rw"), ("Writer",))
    >>> builder.add("rw", 1, 0, "b missed a")
    >>> builder.put("Writer", 0)
    >>> builder.build()
    a  Writer
    b
    <BLANKLINE>
    rw  b → a  b missed a
    """

    def __init__(
        self,
        nodes: Iterable[str],
        relations: Iterable[str | Term],
        sets: Iterable[str | Term] = (),
        *,
        reasons: bool = True,
    ) -> None:
        self.nodes = list(nodes)
        self.reasons = reasons
        self._own: dict[str, Term] = {}
        self._rows: dict[str, list[int]] = {}
        self._sets = dict.fromkeys(map(self._named, sets), 0)
        self._why: dict[tuple[str, int, int], Reason] = {}
        self._beside = 0
        self._flaws: list[Violation] = []
        self.have(*relations)

    def have(self, *relations: str | Term, sets: Iterable[str] = ()) -> None:
        """Add empty relations and sets."""
        self._rows |= {self._named(name): [0] * len(self.nodes) for name in relations}
        self._sets |= dict.fromkeys(map(self._named, sets), 0)

    def _named(self, term: str | Term) -> str:
        """Return the name of a term, recording a format's own; raise FrameError if unknown."""
        if isinstance(term, Term):
            self._own[term.name] = term
            return term.name
        if term not in BASE:
            raise FrameError(f"the vocabulary has no '{term}'; a format's own needs its Term")
        return term

    def beside(self, *nodes: str) -> None:
        """Add nodes after the transactions: the initial transaction first, then operations."""
        self.nodes += nodes
        self._beside += len(nodes)
        for rows in self._rows.values():
            rows.extend([0] * len(nodes))

    def add(self, relation: str, i: int, j: int, kind: str, /, **nouns: Any) -> None:
        """Add a pair of nodes to a relation, with a reason of this kind with these nouns."""
        self._rows[relation][i] |= 1 << j
        if self.reasons:
            self._why.setdefault((relation, i, j), Reason(kind, nouns))

    def put(self, name: str, i: int) -> None:
        """Add a node to a set."""
        self._sets[name] |= 1 << i

    def flaw(self, name: str, i: int, why: Reason) -> None:
        """Record that transaction `i` has a read that no order explains; `name` is the kind of
        flaw.
        """
        node = self.nodes[i]
        self._flaws.append(Violation(name, "flaw", (Edge(node, node, "wr", why),)))

    def build(self) -> Frame:
        """Return the frame; nothing can be added afterwards."""
        relations = {name: Relation(tuple(rows)) for name, rows in self._rows.items()}
        nodes, flaws = tuple(self.nodes), tuple(self._flaws)
        return Frame(nodes, relations, self._sets, self._why, self._beside, self._own, flaws)
