"""Result of ``compare``: implications between specs, by search space, and the histories that
separate them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations, product
from typing import TYPE_CHECKING, Literal

from isolitmus.model.dependency_graph import GraphResult, HasseDiagram
from isolitmus.model.display import PageResult, ReadableRepr, TextResult
from isolitmus.model.litmus import HistoryTest
from isolitmus.model.reason import Edge, Reason
from isolitmus.model.records import Records, Tabular

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from networkx import DiGraph

    from isolitmus.model.litmus import Litmus

__all__ = [
    "BY_TEXT",
    "PROVED",
    "SEARCHED",
    "Covering",
    "Inclusion",
    "Lattice",
    "Lattices",
    "Strength",
    "history_size",
    "node_name",
]

PROVED, SEARCHED = "implies", "implies as far as was searched"

BY_TEXT = "by the texts"
"""How a proof begins that holds of whatever histories."""
Strength = Literal["equal", "stronger", "weaker", "incomparable", "unknown"]
"""How a spec stands to another one."""


@dataclass(frozen=True, slots=True)
class Inclusion(ReadableRepr):
    """Whether a spec implies another: admits nothing that the other one forbids."""

    a: str
    """The spec that is to imply."""
    b: str
    """The spec that is to be implied."""
    holds: bool | None
    """None: unknown."""
    proof: str = ""
    """Why it holds with any number of transactions; empty if that is not proved."""
    bound: str = ""
    """How far was searched, in words."""
    test: HistoryTest | Litmus | None = None
    """What ``a`` admits and ``b`` forbids, if it does not hold."""
    smallest: bool = False
    """Whether the search has found no smaller one."""

    @property
    def evidence(self) -> str:
        """What it rests on, in a few words."""
        if self.holds is None:
            return f"unknown: {self.bound}"
        if self.holds:
            if not self.proof:
                return f"no counterexample with {self.bound}"
            return "proved" if self.proof.startswith(BY_TEXT) else f"proved {self.proof}"
        return "a history"

    def __repr__(self) -> str:
        verb = {True: "implies", False: "does not imply", None: "may imply"}[self.holds]
        return f"{self.a} {verb} {self.b} ({self.evidence})"

    def to_json(self) -> dict[str, object]:
        """As docs/interface.md, 6, has it."""
        return {
            "a": self.a,
            "b": self.b,
            "holds": self.holds,
            "proof": self.proof or None,
            "bound": self.bound or None,
            "litmus": None if self.test is None else str(self.test),
            "smallest": self.smallest,
        }


@dataclass(frozen=True, slots=True)
class Covering:
    """Two neighbours: nothing lies between them. Specs that are equal stand together."""

    stronger: tuple[str, ...]
    """Who implies."""
    weaker: tuple[str, ...]
    """Who is implied."""
    forward: Inclusion
    """That the stronger one implies the weaker one."""
    back: Inclusion
    """That the weaker one does not imply the stronger one; unknown where they may be equal."""


@dataclass(frozen=True, repr=False)
class Lattice(TextResult, GraphResult, Tabular):
    """Which specs imply which in one universe."""

    universe: str
    """``abstract``, or the name of a scope."""
    where: str
    """The universe in words."""
    specs: tuple[str, ...]
    """What was compared."""
    inclusions: Mapping[tuple[str, str], Inclusion]
    """By pair, both ways."""
    assumptions: tuple[str, ...]
    """What the answers rest on."""
    focus: tuple[str, ...] = ()
    """What is to be placed among the others; empty: all of them."""
    ended: str | None = None
    """The limit that ended the search."""
    seconds: float = 0.0
    """What it took."""
    sizes: Sequence[int] = ()
    """How many transactions what was searched has."""

    @property
    def decided(self) -> bool:
        """Whether of every pair it is known who implies whom."""
        return all(one.holds is not None for one in self.inclusions.values())

    def relation(self, a: str, b: str) -> Strength:
        """How one spec stands to another."""
        match a == b or self.inclusions[a, b].holds, a == b or self.inclusions[b, a].holds:
            case True, True:
                return "equal"
            case True, False:
                return "stronger"
            case False, True:
                return "weaker"
            case False, False:
                return "incomparable"
        return "unknown"

    @cached_property
    def implied(self) -> DiGraph:
        """Who is known to imply whom, as a graph of networkx; it is transitive."""
        from networkx import DiGraph

        graph = DiGraph()
        graph.add_nodes_from(self.specs)
        graph.add_edges_from(pair for pair, one in self.inclusions.items() if one.holds)
        return graph

    @cached_property
    def nodes(self) -> tuple[tuple[str, ...], ...]:
        """The specs, those that are equal together, each after all that imply it; else in their
        order.
        """
        place = {name: k for k, name in enumerate(self.specs)}
        above = {name: self.implied.in_degree(name) for name in self.specs}
        seen: dict[str, tuple[str, ...]] = {}
        for name in self.specs:
            equal = tuple(one for one in self.specs if self.relation(one, name) == "equal")
            seen.setdefault(equal[0], equal)
        return tuple(sorted(seen.values(), key=lambda node: (above[node[0]], place[node[0]])))

    @property
    def ordered(self) -> tuple[str, ...]:
        """The specs in the order of the nodes."""
        return tuple(name for node in self.nodes for name in node)

    @cached_property
    def edges(self) -> tuple[Covering, ...]:
        """The neighbours: the transitive reduction of who implies whom, strongest first."""
        from networkx import DiGraph, transitive_reduction

        graph = DiGraph()
        graph.add_nodes_from(range(len(self.nodes)))
        for (i, one), (j, other) in permutations(enumerate(self.nodes), 2):
            if self.inclusions[one[0], other[0]].holds:
                graph.add_edge(i, j)
        return tuple(
            self._covering(self.nodes[i], self.nodes[j])
            for i, j in sorted(transitive_reduction(graph).edges)
        )

    def _covering(self, stronger: tuple[str, ...], weaker: tuple[str, ...]) -> Covering:
        """Two neighbours: of equal specs those between which it is proved, and the smallest
        history.
        """
        forward = [self.inclusions[pair] for pair in product(stronger, weaker)]
        back = [self.inclusions[pair] for pair in product(weaker, stronger)]
        return Covering(
            stronger,
            weaker,
            min(forward, key=lambda one: not one.proof),
            min(back, key=lambda one: (not one.smallest, one.test is None)),
        )

    @property
    def graph(self) -> HasseDiagram:
        """The neighbours as a graph, the stronger above."""
        edges = []
        for one in self.edges:
            ends = node_name(one.stronger), node_name(one.weaker)
            kind = PROVED if one.forward.proof else SEARCHED
            edges.append(Edge(*ends, kind, Reason.of("told apart", test=one.back.test)))
        nodes = dict.fromkeys(map(node_name, self.nodes), "")
        chosen = (node_name(node) for node in self.nodes if {*node} & {*self.focus})
        return HasseDiagram(nodes, tuple(edges), (), frozenset(chosen))

    @property
    def records(self) -> Records:
        """Each pair once, how the one stands to the other, and what that rests on both ways."""
        rows = tuple(
            (
                self.universe,
                a,
                b,
                self.relation(a, b),
                self.inclusions[a, b].evidence,
                self.inclusions[b, a].evidence,
            )
            for a, b in combinations(self.specs, 2)
        )
        return Records(("universe", "a", "b", "relation", "forward", "back"), rows)

    def to_json(self) -> dict[str, object]:
        """As docs/interface.md, 6, has it."""
        return {
            "universe": self.universe,
            "where": self.where,
            "nodes": [list(node) for node in self.nodes],
            "edges": [
                {"stronger": list(edge.stronger), "weaker": list(edge.weaker)}
                for edge in self.edges
            ],
            "inclusions": [one.to_json() for one in self.inclusions.values()],
            "assumptions": list(self.assumptions),
            "ended": self.ended,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True, repr=False)
class Lattices(TextResult, PageResult, GraphResult, Tabular):
    """The answer to ``compare``: a lattice for each universe in which the specs can be asked."""

    lattices: tuple[Lattice, ...]
    """The first is the one that is drawn."""
    apart: Mapping[str, str]
    """What could be asked nowhere, and why."""

    @property
    def decided(self) -> bool:
        """Whether of every pair it is known who implies whom, in each universe where the two can be
        asked.
        """
        return all(lattice.decided for lattice in self.lattices)

    @property
    def graph(self) -> HasseDiagram:
        """The graph of the first lattice."""
        return self.lattices[0].graph

    @property
    def records(self) -> Records:
        """The records of every lattice."""
        return Records.together(lattice.records for lattice in self.lattices)

    def to_json(self) -> dict[str, object]:
        """As docs/interface.md, 6, has it."""
        return {
            "lattices": [lattice.to_json() for lattice in self.lattices],
            "apart": dict(self.apart),
        }


def node_name(node: Sequence[str]) -> str:
    """Equal levels as one name.

    >>> node_name(["causal", "read-atomic"])
    'causal = read-atomic'
    """
    return " = ".join(node)


def history_size(test: HistoryTest | Litmus) -> tuple[int, ...]:
    """How large what tells two specs apart is: transactions, links of sessions, who aborted, reads
    and writes; of statements, how many.

    >>> from isolitmus.specs import litmus
    >>> history_size(litmus("history-write-skew")), history_size(litmus("reorder"))
    ((2, 0, 0, 6), (2, 3))
    """
    if not isinstance(test, HistoryTest):
        return len(test.transactions), len(test.schedule.steps)
    history = test.history
    links = sum(len(session) - 1 for session in history.sessions)
    aborted = sum(t.status != "committed" for t in history.transactions)
    return len(history.transactions), links, aborted, history.operations
