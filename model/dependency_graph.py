"""Dependency graph of a history, a run or a lattice, and results that have one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.model.display import ReadableRepr, first_lines, render
from isolitmus.model.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from networkx import MultiDiGraph

    from isolitmus.model.reason import Edge


@dataclass(frozen=True, slots=True)
class DependencyGraph(ReadableRepr):
    """Graph with a text for each node, edges with their reasons, and a highlighted cycle.

    ``nodes`` maps each name to its text; the edges of ``cycle`` are highlighted.

    Examples
    --------
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
        """Return this graph with `cycle` highlighted."""
        return replace(self, cycle=tuple(cycle))

    def to_networkx(self) -> MultiDiGraph:
        """Return the graph as a networkx MultiDiGraph, which can be written as GraphML.

        A node has the attribute ``text``. An edge has its kind as key and ``kind``, its reason as
        ``why``, and in ``cycle`` whether it is highlighted.
        """
        from networkx import MultiDiGraph

        made = MultiDiGraph()
        made.add_nodes_from((name, {"text": printable(text)}) for name, text in self.nodes.items())
        for edge in self.every:
            about = {"kind": edge.kind, "why": printable(edge.why), "cycle": edge in self.cycle}
            made.add_edge(edge.source, edge.target, edge.kind, **about)
        return made

    def to_graphml(self) -> str:
        """Return the graph as GraphML, for Gephi, yEd and Cytoscape; every edge has its own id."""
        from networkx import generate_graphml

        made = self.to_networkx()
        for number, (*_, about) in enumerate(made.edges(data=True)):
            about["id"] = number
        return "\n".join(generate_graphml(made, edge_id_from_attribute="id"))

    def to_dot(self) -> str:
        """Return the graph in DOT, for Graphviz."""
        return render(self, "dot")

    def to_mermaid(self) -> str:
        """Return the graph as a Mermaid flowchart."""
        return render(self, "mermaid")

    def to_tikz(self) -> str:
        """Return the graph as a ``tikzpicture`` for LaTeX."""
        return render(self, "tikz")

    def to_svg(self) -> str:
        """Return the graph as a self-contained SVG image for light and dark backgrounds."""
        return render(self, "svg")


@dataclass(frozen=True, slots=True, repr=False)
class HasseDiagram(DependencyGraph):
    """Hasse diagram of implication: nodes are equal specs, edges lead to the nearest specs they
    imply.
    """

    chosen: frozenset[str] = frozenset()
    """Highlighted nodes."""


class GraphResult:
    """Result that has a dependency graph."""

    __slots__ = ()

    @property
    def graph(self) -> DependencyGraph:
        """Dependency graph; if a level forbids the history, the cycle is highlighted."""
        raise NotImplementedError

    def to_networkx(self) -> MultiDiGraph:
        """Return the dependency graph as a networkx MultiDiGraph."""
        return self.graph.to_networkx()

    def to_graphml(self) -> str:
        """Return the dependency graph as GraphML."""
        return self.graph.to_graphml()

    def to_dot(self) -> str:
        """Return the dependency graph in DOT, for Graphviz."""
        return self.graph.to_dot()

    def to_mermaid(self) -> str:
        """Return the dependency graph as a Mermaid flowchart."""
        return self.graph.to_mermaid()

    def to_tikz(self) -> str:
        """Return the dependency graph as a ``tikzpicture`` for LaTeX."""
        return self.graph.to_tikz()

    def to_svg(self) -> str:
        """Return the dependency graph as a self-contained SVG image."""
        return self.graph.to_svg()
