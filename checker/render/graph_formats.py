"""Graphs for Graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from isolitmus.model.edge import Edge

__all__ = ["digraph"]


def digraph(nodes: Mapping[str, str], edges: Iterable[Edge], cycle: Iterable[Edge] = ()) -> str:
    r"""A digraph in DOT: ``nodes`` by name with what to write into them, an arrow for each edge with its kind
    and, as its tooltip, its reason; those of the cycle are thick.

    >>> from isolitmus.model.edge import Edge
    >>> from isolitmus.model.reason import Reason
    >>> print(digraph({"a": "INSERT", "b": ""}, [Edge("a", "b", "wr", Reason("b read it"))]))
    digraph {
      "a" [label="a\nINSERT"];
      "b" [label="b"];
      "a" -> "b" [label="wr", tooltip="b read it"];
    }
    """
    cycle = list(dict.fromkeys(cycle))
    every = list(dict.fromkeys([*edges, *cycle]))
    names = dict.fromkeys([*nodes, *(name for e in every for name in (e.source, e.target))])
    lines = []
    for name in names:
        words = f"\\n{_escaped(nodes[name])}" if nodes.get(name) else ""
        lines.append(f'  "{_escaped(name)}" [label="{_escaped(name)}{words}"];')
    for edge in every:
        ends = f'"{_escaped(edge.source)}" -> "{_escaped(edge.target)}"'
        style = f'label="{_escaped(edge.kind)}", tooltip="{_escaped(edge.why)}"'
        thick = ", penwidth=3" if edge in cycle else ""
        lines.append(f"  {ends} [{style}{thick}];")
    return "\n".join(["digraph {", *lines, "}"])


def _escaped(text: str) -> str:
    """What stands between quotes, on one line."""
    return printable(" ".join(text.split())).replace("\\", "\\\\").replace('"', '\\"')
