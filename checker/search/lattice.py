"""Result of ``compare``: implications between specs, and the histories that separate them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations, product
from typing import TYPE_CHECKING, Literal

from isolitmus.checker.universes.exercised_names import NONE_OPEN, Unexercised
from isolitmus.model.dependency_graph import GraphResult, HasseDiagram
from isolitmus.model.display import PageResult, ReadableRepr, TextResult
from isolitmus.model.litmus import HistoryTest
from isolitmus.model.reason import Edge, Reason
from isolitmus.model.records import Records, Tabular

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from networkx import DiGraph

    from isolitmus.model.litmus import Litmus

PROVED, SEARCHED = "implies", "implies as far as was searched"

BY_TEXT = "by the texts"
"""Start of the text of a proof that holds for all histories."""
Strength = Literal["equal", "stronger", "weaker", "incomparable", "unknown"]
"""Relation of a spec to another one."""


@dataclass(frozen=True, slots=True)
class Inclusion(ReadableRepr):
    """Statement that a spec implies another: it admits nothing that the other forbids."""

    a: str
    """Implying spec."""
    b: str
    """Implied spec."""
    holds: bool | None
    """True if the implication holds; None if unknown."""
    proof: str = ""
    """Proof for any number of transactions, as text; empty if there is none."""
    bound: str = ""
    """Bound of the search as text."""
    test: HistoryTest | Litmus | None = None
    """Counterexample that ``a`` admits and ``b`` forbids, if the implication does not hold."""
    smallest: bool = False
    """True if the search found no smaller counterexample."""

    @property
    def evidence(self) -> str:
        """Evidence in a few words."""
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
        """Return the inclusion in the form of docs/interface.md, 6."""
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
    """Two neighbours, with no spec in between; equal specs form one node."""

    stronger: tuple[str, ...]
    """Specs of the implying node."""
    weaker: tuple[str, ...]
    """Specs of the implied node."""
    forward: Inclusion
    """Statement that the stronger one implies the weaker one."""
    back: Inclusion
    """Converse statement: false, or unknown if the two may be equal."""


@dataclass(frozen=True, repr=False)
class Lattice(TextResult, GraphResult, Tabular):
    """Implications between specs in one search space."""

    universe: str
    """Search space: ``abstract``, or the name of a scope."""
    where: str
    """Description of the search space."""
    specs: tuple[str, ...]
    """Names of the compared specs."""
    inclusions: Mapping[tuple[str, str], Inclusion]
    """Inclusions by ordered pair of names."""
    assumptions: tuple[str, ...]
    """Assumptions of the answers."""
    focus: tuple[str, ...] = ()
    """Specs to place among the others; empty for all."""
    ended: str | None = None
    """Limit that ended the search; None if none did."""
    seconds: float = 0.0
    """Run time in seconds."""
    sizes: Sequence[int] = ()
    """Numbers of transactions of the searched histories."""
    unexercised: Unexercised = NONE_OPEN
    """Parts of the specs that no searched history made non-empty."""

    @property
    def decided(self) -> bool:
        """True if every implication is known to hold or not."""
        return all(one.holds is not None for one in self.inclusions.values())

    def relation(self, a: str, b: str) -> Strength:
        """Return the relation of `a` to `b`."""
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
        """Graph of the known implications, which is transitive."""
        from networkx import DiGraph

        graph = DiGraph()
        graph.add_nodes_from(self.specs)
        graph.add_edges_from(pair for pair, one in self.inclusions.items() if one.holds)
        return graph

    @cached_property
    def nodes(self) -> tuple[tuple[str, ...], ...]:
        """Classes of equal specs, each after all that imply it, else in the order of the specs."""
        place = {name: k for k, name in enumerate(self.specs)}
        above = {name: self.implied.in_degree(name) for name in self.specs}
        seen: dict[str, tuple[str, ...]] = {}
        for name in self.specs:
            equal = tuple(one for one in self.specs if self.relation(one, name) == "equal")
            seen.setdefault(equal[0], equal)
        return tuple(sorted(seen.values(), key=lambda node: (above[node[0]], place[node[0]])))

    @property
    def ordered(self) -> tuple[str, ...]:
        """Specs in the order of the nodes."""
        return tuple(name for node in self.nodes for name in node)

    @cached_property
    def edges(self) -> tuple[Covering, ...]:
        """Neighbours, strongest first: the transitive reduction of the implications."""
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
        """Return the covering of two nodes, with the best evidence among their specs.

        That is a proved implication, and the smallest history.
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
        """Hasse diagram, with the stronger specs above."""
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
        """One row per unordered pair: the relation, and the evidence in both directions."""
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
        """Return the lattice in the form of docs/interface.md, 6."""
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
            **self.unexercised.to_json(),
            "ended": self.ended,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True, repr=False)
class Lattices(TextResult, PageResult, GraphResult, Tabular):
    """Result of ``compare``: a lattice for each search space in which specs can be compared."""

    lattices: tuple[Lattice, ...]
    """Lattices; the first one is drawn."""
    apart: Mapping[str, str]
    """Specs that could not be compared, with the reasons."""

    @property
    def decided(self) -> bool:
        """True if every implication is decided in each search space."""
        return all(lattice.decided for lattice in self.lattices)

    @property
    def graph(self) -> HasseDiagram:
        """Hasse diagram of the first lattice."""
        return self.lattices[0].graph

    @property
    def records(self) -> Records:
        """Records of all lattices."""
        return Records.together(lattice.records for lattice in self.lattices)

    def to_json(self) -> dict[str, object]:
        """Return the lattices in the form of docs/interface.md, 6."""
        return {
            "lattices": [lattice.to_json() for lattice in self.lattices],
            "apart": dict(self.apart),
        }


def node_name(node: Sequence[str]) -> str:
    """Return the joint name of equal levels.

    Examples
    --------
    >>> node_name(["causal", "read-atomic"])
    'causal = read-atomic'
    """
    return " = ".join(node)


def history_size(test: HistoryTest | Litmus) -> tuple[int, ...]:
    """Return the size of a history as a tuple to compare.

    Returns
    -------
    tuple of int
        For an abstract history the numbers of transactions, session links, aborted transactions,
        and operations. For a test with statements the numbers of transactions and steps.

    Examples
    --------
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
