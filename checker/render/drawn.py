"""What a result that has a dependency graph converts to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from networkx import MultiDiGraph

    from isolitmus.checker.render.dependency_graph import DependencyGraph

__all__ = ["Drawn"]


class Drawn:
    """What has a ``graph``."""

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
