"""The dependency graph of a history, a run or a lattice, and the results that have one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.model.display import ReadableRepr, first_lines, render
from isolitmus.model.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from networkx import MultiDiGraph

    from isolitmus.model.reason import Edge

__all__ = ["DependencyGraph", "GraphResult", "HasseDiagram"]


@dataclass(frozen=True, slots=True)
class DependencyGraph(ReadableRepr):
    """Nodes by name, with what to write into them, and edges with their reasons; those of ``cycle``
    stand out.

    >>> graph = DependencyGraph({"T1": "w(x1)", "T2": "r(x1)"})
    >>> graph
    T1  w(x1)
    T2  r(x1)
    >>> list(graph.to_networkx())
    ['T1', 'T2']
    """

    nodes: Mapping[str, str]
    edges: tuple[Edge, ...] = ()
    cycle: tuple[Edge, ...] = ()

    def __repr__(self) -> str:
        nodes = [f"{name}  {text}".rstrip() for name, text in self.nodes.items()]
        return first_lines([*nodes, *(str(edge) for edge in self.every)])

    @property
    def every(self) -> tuple[Edge, ...]:
        """All edges, each once."""
        return tuple(dict.fromkeys([*self.edges, *self.cycle]))

    def around(self, cycle: Iterable[Edge]) -> DependencyGraph:
        """The same graph, in which these edges stand out."""
        return replace(self, cycle=tuple(cycle))

    def to_networkx(self) -> MultiDiGraph:
        """A graph of networkx: each node with its ``text``; each edge has its kind as key and
        ``kind``, its reason as ``why``, and ``cycle``, whether it is in the cycle. All of that
        GraphML takes.
        """
        from networkx import MultiDiGraph

        made = MultiDiGraph()
        made.add_nodes_from((name, {"text": printable(text)}) for name, text in self.nodes.items())
        for edge in self.every:
            about = {"kind": edge.kind, "why": printable(edge.why), "cycle": edge in self.cycle}
            made.add_edge(edge.source, edge.target, edge.kind, **about)
        return made

    def to_graphml(self) -> str:
        """GraphML, which Gephi, yEd and Cytoscape read; every edge has an id of its own."""
        from networkx import generate_graphml

        made = self.to_networkx()
        for number, (*_, about) in enumerate(made.edges(data=True)):
            about["id"] = number
        return "\n".join(generate_graphml(made, edge_id_from_attribute="id"))

    def to_dot(self) -> str:
        """DOT, for Graphviz."""
        return render(self, "dot")

    def to_mermaid(self) -> str:
        """A flowchart of Mermaid."""
        return render(self, "mermaid")

    def to_tikz(self) -> str:
        """A ``tikzpicture`` for LaTeX."""
        return render(self, "tikz")

    def to_svg(self) -> str:
        """A picture that stands alone, in light and in dark."""
        return render(self, "svg")


@dataclass(frozen=True, slots=True, repr=False)
class HasseDiagram(DependencyGraph):
    """Who implies whom: nodes are specs that are equal, edges lead to the neighbours that they
    imply.
    """

    chosen: frozenset[str] = frozenset()
    """The nodes that stand out."""


class GraphResult:
    """A result that has a dependency graph."""

    __slots__ = ()

    @property
    def graph(self) -> DependencyGraph:
        """Its dependency graph; of what a level forbids, the cycle stands out."""
        raise NotImplementedError

    def to_networkx(self) -> MultiDiGraph:
        """Its graph for networkx."""
        return self.graph.to_networkx()

    def to_graphml(self) -> str:
        """Its graph as GraphML."""
        return self.graph.to_graphml()

    def to_dot(self) -> str:
        """Its graph for Graphviz."""
        return self.graph.to_dot()

    def to_mermaid(self) -> str:
        """Its graph for Mermaid."""
        return self.graph.to_mermaid()

    def to_tikz(self) -> str:
        """Its graph for LaTeX."""
        return self.graph.to_tikz()

    def to_svg(self) -> str:
        """Its graph as a picture that stands alone."""
        return self.graph.to_svg()
