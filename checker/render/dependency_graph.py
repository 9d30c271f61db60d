"""The dependency graph of whatever has one, and what it converts to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import execute, execution_frame
from isolitmus.checker.judge.completion import frame_of
from isolitmus.checker.render.text_pictures import dependency_edges
from isolitmus.model.display import Readable, few
from isolitmus.model.errors import printable
from isolitmus.model.frame import Frame
from isolitmus.model.history import History
from isolitmus.model.litmus import HistoryTest, Litmus
from isolitmus.model.verdict import Violation
from isolitmus.specs.files.catalogue import litmus as named

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from networkx import MultiDiGraph

    from isolitmus.model.reason import Edge
    from isolitmus.specs.files.spec_catalogue import NameOrPath

__all__ = ["DependencyGraph", "between", "graph"]


@dataclass(frozen=True, slots=True)
class DependencyGraph(Readable):
    """Nodes by name, with what to write into them, and edges with their reasons; those of ``cycle`` stand out.

    >>> from isolitmus.model.history import History
    >>> print(graph(History.parse("w1(x1) r2(x1)")).to_mermaid())
    flowchart LR
        n0["T1: w(x1)"]
        n1["T2: r(x1)"]
        n0 -->|"wr: T2 read x1, which T1 wrote"| n1
    """

    nodes: Mapping[str, str]
    edges: tuple[Edge, ...] = ()
    cycle: tuple[Edge, ...] = ()

    def __repr__(self) -> str:
        nodes = [f"{name}  {text}".rstrip() for name, text in self.nodes.items()]
        return few([*nodes, *(str(edge) for edge in self.every)])

    @property
    def every(self) -> tuple[Edge, ...]:
        """All edges, each once."""
        return tuple(dict.fromkeys([*self.edges, *self.cycle]))

    def around(self, cycle: Iterable[Edge]) -> DependencyGraph:
        """The same graph, in which these edges stand out."""
        return replace(self, cycle=tuple(cycle))

    def to_networkx(self) -> MultiDiGraph:
        """A graph of networkx: each node with its ``text``; each edge has its kind as key and ``kind``, its
        reason as ``why``, and ``cycle``, whether it is in the cycle. All of that GraphML takes.
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
        from isolitmus.checker.render.graph_formats import digraph

        return digraph(self.nodes, self.edges, self.cycle)

    def to_mermaid(self) -> str:
        """A flowchart of Mermaid."""
        from isolitmus.checker.render.graph_formats import flowchart

        return flowchart(self.nodes, self.edges, self.cycle)

    def to_tikz(self) -> str:
        """A ``tikzpicture`` for LaTeX."""
        from isolitmus.checker.render.graph_formats import graph_tikz

        return graph_tikz(self.nodes, self.edges, self.cycle)

    def to_svg(self) -> str:
        """A picture that stands alone, in light and in dark."""
        from isolitmus.checker.render.graph_picture import arrows, graph_svg

        return graph_svg(self.nodes, arrows(self.edges, self.cycle))


def graph(of: Frame | History | HistoryTest | Litmus | Violation | NameOrPath) -> DependencyGraph:
    """The graph of a history or of a litmus test's schedule (or of the one with this name or path), of all relations of a frame, or of the cycle by which a
    level forbids something.

    Of a history that leaves something open there are the transactions alone.

    >>> from isolitmus.specs import litmus
    >>> graph(litmus("reorder"))
    delete  DELETE FROM t WHERE part = 0
    insert  INSERT INTO t VALUES (100, 0)
    rw  delete → insert  delete read t WHERE part = 0 at version 0, without row (100, 0), which insert put in
    """
    match of:
        case Frame():
            return DependencyGraph(dict.fromkeys(of.nodes, ""), tuple(of.edges()))
        case Violation():
            names = dict.fromkeys(name for e in of.cycle for name in (e.source, e.target))
            return DependencyGraph(dict.fromkeys(names, ""), (), of.cycle)
        case HistoryTest():
            return graph(of.history)
        case History():
            nodes = {transaction.name: str(transaction) for transaction in of.transactions}
            edges = () if of.undetermined() else tuple(dependency_edges(frame_of(of)))
            return DependencyGraph(nodes, edges)
        case Litmus():
            return between(of, execution_frame(execute(of)))
        case name:
            return graph(named(name))


def between(test: Litmus, frame: Frame | None) -> DependencyGraph:
    """The transactions of a litmus test, with the dependencies in a frame of them if there is one."""
    nodes = {name: statement.sql for name, statement in test.transactions.items()}
    return DependencyGraph(nodes, () if frame is None else tuple(dependency_edges(frame)))
