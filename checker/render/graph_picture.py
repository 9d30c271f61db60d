"""Dependency graphs as SVG: nodes in a ring, and a numbered arrow for each connected pair.

Nodes stand clockwise in two columns, in the order of the cycle, so that its arrows lead around the
outside and do not cross; an odd node stands between the columns. An arrow bends to the left of its
direction, so that two opposite arrows never coincide. Reasons are too long for a picture; the
number of an arrow refers to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count, product
from math import hypot
from typing import TYPE_CHECKING

from isolitmus.checker.render.timeline import (
    WIDTH,
    coordinate,
    label,
    lines_of,
    marked_up,
    svg,
    text_width,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from isolitmus.checker.render.colours import Theme
    from isolitmus.model.reason import Edge

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """Rectangle, given by its centre."""

    x: float
    y: float
    width: float
    height: float

    def meets(self, other: Box) -> bool:
        """Return whether two rectangles overlap."""
        return (
            abs(self.x - other.x) * 2 < self.width + other.width
            and abs(self.y - other.y) * 2 < self.height + other.height
        )

    def holds(self, point: Point, margin: float = 0) -> bool:
        """Return whether a point is inside, or outside by at most half the margin."""
        return (
            abs(point[0] - self.x) * 2 < self.width + margin
            and abs(point[1] - self.y) * 2 < self.height + margin
        )


@dataclass(frozen=True, slots=True)
class Curve:
    """Quadratic Bézier curve.

    ``arch`` is −1 if it rises above a row, 1 if it hangs below.
    """

    a: Point
    control: Point
    b: Point
    arch: int

    def at(self, t: float) -> Point:
        """Return the point at parameter t, from 0 to 1."""
        (x, y), (cx, cy), (u, v) = self.a, self.control, self.b
        s = 1 - t
        return s * s * x + 2 * s * t * cx + t * t * u, s * s * y + 2 * s * t * cy + t * t * v

    def between(self, t: float, u: float) -> Curve:
        """Return the part of the curve from t to u."""
        (ax, ay), (cx, cy), (bx, by) = self.a, self.control, self.b

        def blend(a: float, c: float, b: float) -> float:
            return (1 - t) * (1 - u) * a + ((1 - t) * u + t * (1 - u)) * c + t * u * b

        return Curve(self.at(t), (blend(ax, cx, bx), blend(ay, cy, by)), self.at(u), self.arch)


COLUMNS = (80.0, 270.0)
NODE = 150.0
"""Maximum width of a node."""
GAP, WIDE = 92.0, 142.0
"""Between the rows: room for a number, the kinds and a verb; twice, where arrows go there and
back.
"""
ARCH = 16.0
"""Height of an arrow between two nodes of a row."""
BEND, BOW = 14.0, 34.0
"""Bend of other arrows; larger if there is an arrow in the other direction."""
SHOWN = 3
"""Maximum number of lines of a node's text; the tooltip of the node has the whole text."""


@dataclass(frozen=True, slots=True)
class Arrow:
    """All edges from one node to another."""

    number: int
    """Number in the picture, from 1."""
    source: str
    target: str
    edges: tuple[Edge, ...]
    thick: bool
    """True if one of the edges is on the cycle."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Distinct kinds of its edges."""
        return tuple(dict.fromkeys(edge.kind for edge in self.edges))


def arrows(edges: Iterable[Edge], cycle: Sequence[Edge] = ()) -> tuple[Arrow, ...]:
    """Return the arrows of some edges, numbered: those of the cycle first, in its order.

    >>> from isolitmus.model.reason import Edge
    >>> wr, rw = Edge("a", "b", "wr", "b read it"), Edge("b", "a", "rw", "b missed it")
    >>> [(arrow.number, arrow.kinds, arrow.thick) for arrow in arrows([wr, rw], [rw])]
    [(1, ('rw',), True), (2, ('wr',), False)]
    """
    by_pair: dict[tuple[str, str], list[Edge]] = {}
    for edge in [*cycle, *edges]:
        reasons = by_pair.setdefault((edge.source, edge.target), [])
        if edge not in reasons:
            reasons.append(edge)
    thick = {(edge.source, edge.target) for edge in cycle}
    return tuple(
        Arrow(k, source, target, tuple(reasons), (source, target) in thick)
        for k, ((source, target), reasons) in zip(count(1), by_pair.items(), strict=False)
    )


def graph_svg(nodes: Mapping[str, str], drawn: Sequence[Arrow], theme: Theme = "auto") -> str:
    """Return a graph as a standalone SVG; ``nodes`` maps names to texts.

    >>> from isolitmus.model.reason import Edge
    >>> picture = graph_svg({"a": "", "b": ""}, arrows([Edge("a", "b", "wr", "b read it")]))
    >>> "is read by" in picture
    True
    """
    ends = [name for arrow in drawn for name in (arrow.source, arrow.target)]
    texts = {name: nodes.get(name, "") for name in dict.fromkeys([*ends, *nodes])}
    two = len({name for a in drawn if a.thick for name in (a.source, a.target)}) == 2
    pairs = {(arrow.source, arrow.target) for arrow in drawn}
    gap = WIDE if any((b, a) in pairs for a, b in pairs) else GAP
    boxes = _ring({name: _size(name, text) for name, text in texts.items()}, gap, odd_last=two)
    curves = {
        arrow.number: _curve(
            boxes[arrow.source],
            boxes[arrow.target],
            BOW if (arrow.target, arrow.source) in pairs else BEND,
        )
        for arrow in drawn
    }
    labels: dict[int, tuple[Box, str]] = {}
    for arrow in drawn:
        taken = [*boxes.values(), *(box for box, _ in labels.values())]
        labels[arrow.number] = _label_place(arrow, curves[arrow.number], taken)
    everything = [*boxes.values(), *(box for box, _ in labels.values())]
    points = [curve.at(t / 8) for curve in curves.values() for t in range(9)]
    top = min([0.0] + [box.y - box.height / 2 for box in everything] + [y for _, y in points])
    bottom = max([0.0] + [box.y + box.height / 2 for box in everything] + [y for _, y in points])
    described = "; ".join(edge_sentence(e) for a in drawn for e in a.edges)
    parts = [
        *(_drawn(arrow, curves[arrow.number], boxes) for arrow in drawn),
        *(_node(name, texts[name], box) for name, box in boxes.items()),
        *(_label(arrow, *labels[arrow.number]) for arrow in drawn),
    ]
    box = (0, top, WIDTH, bottom)
    return svg("Dependency graph", described or "no dependencies", box, parts, theme)


def _size(name: str, text: str) -> tuple[float, float]:
    lines = [*((line, 14) for line in _names(name)), *((line, 11) for line in _words(text))]
    width = max(text_width(line, size) for line, size in lines) + 16
    return max(48.0, width), 14 + sum(1.3 * size for _, size in lines)


def _names(name: str) -> list[str]:
    return lines_of(name, NODE - 14, 14)


def _words(text: str) -> list[str]:
    lines = lines_of(text, NODE - 14, 11)
    return lines if len(lines) <= SHOWN else [*lines[: SHOWN - 1], f"{lines[SHOWN - 1][:-1]}…"]


def _ring(
    sizes: Mapping[str, tuple[float, float]], gap: float, *, odd_last: bool
) -> dict[str, Box]:
    """Return the places of nodes, clockwise: down the right column and up the left one.

    An odd node stands at the top, or at the bottom with ``odd_last``; the latter for a cycle of the
    first two nodes, which then stand in one row.
    """
    names = list(sizes)
    odd = len(names) % 2
    pairs = len(names) // 2
    top = odd and not odd_last
    clockwise = names[1:] if top else [*names[1:], *names[:1]]
    right, left = clockwise[:pairs], clockwise[pairs + odd - top :][::-1]
    rows = [[a, b] for a, b in zip(left, right, strict=True)]
    if top:
        rows.insert(0, names[:1])
    elif odd:
        rows.append([clockwise[pairs]])
    boxes: dict[str, Box] = {}
    y = 0.0
    for row in rows:
        height = max(sizes[name][1] for name in row)
        for name, x in zip(row, COLUMNS if len(row) == 2 else (WIDTH / 2,), strict=True):
            boxes[name] = Box(x, y + height / 2, *sizes[name])
        y += height + gap
    return {name: boxes[name] for name in names}


def _curve(a: Box, b: Box, bend: float) -> Curve:
    """Return the curve of an arrow between two boxes, clipped at their borders."""
    dx, dy = b.x - a.x, b.y - a.y
    length = hypot(dx, dy) or 1.0
    same_row = abs(dy) < 1
    if same_row:
        bend = max(a.height, b.height) / 2 + ARCH
    middle = ((a.x + b.x) / 2 + 2 * bend * dy / length, (a.y + b.y) / 2 - 2 * bend * dx / length)
    arch = (-1 if dx > 0 else 1) if same_row else 0
    whole = Curve((a.x, a.y), middle, (b.x, b.y), arch)
    ts = [k / 200 for k in range(201)]
    leaves = next((t for t in ts if not a.holds(whole.at(t), 2)), 0.0)
    enters = next((t for t in reversed(ts) if not b.holds(whole.at(t), 6)), 1.0)
    return whole.between(min(leaves, enters), max(leaves, enters))


def _label_place(arrow: Arrow, curve: Curve, taken: Sequence[Box]) -> tuple[Box, str]:
    """Return a free place for an arrow's label, and its verb (empty if there is no room for it).

    Beside an arch the label stands outside, elsewhere on the curve or at its side.
    """
    verb = _verb(arrow.edges[0]) if len(arrow.kinds) == 1 else ""
    kinds = text_width(_kinds(arrow), 13) + 26
    box = Box(*curve.at(0.5), kinds, 20)
    for words in dict.fromkeys((verb, "")):
        width = max(kinds, text_width(words, 12)) + 4
        height = 36 if words else 20
        for aside, t in product((0, 1, -1), (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74)):
            x, y = curve.at(t)
            x += aside * (width / 2 + 4)
            x = min(max(x, width / 2 + 1), WIDTH - width / 2 - 1)
            box = Box(x, y + curve.arch * (height / 2 + 3), width, height)
            if not any(box.meets(other) for other in taken):
                return box, words
    return box, ""


def edge_sentence(edge: Edge) -> str:
    """Return an edge as a sentence: source, verb, target; a derived relation has its kind as verb.

    >>> from isolitmus.model.reason import Edge
    >>> edge_sentence(Edge("a", "b", "rw", ""))
    'a does not see b'
    """
    return f"{edge.source} {_verb(edge) or edge.kind} {edge.target}"


def _verb(edge: Edge) -> str:
    return "" if edge.term is None else edge.term.verb


def _kinds(arrow: Arrow) -> str:
    return " ".join(arrow.kinds)


def _drawn(arrow: Arrow, curve: Curve, boxes: Mapping[str, Box]) -> str:
    """Return an arrow as SVG, its line and its head; empty from a box to itself."""
    (ax, ay), (cx, cy), (bx, by) = curve.a, curve.control, curve.b
    if boxes[arrow.source] is boxes[arrow.target]:
        return ""
    length = hypot(bx - cx, by - cy) or 1.0
    ux, uy = (bx - cx) / length, (by - cy) / length
    size = 11.0 if arrow.thick else 8.0
    tx, ty = bx - size * ux, by - size * uy
    wing = size / 2
    head = [(bx, by), (tx - wing * uy, ty + wing * ux), (tx + wing * uy, ty - wing * ux)]
    corners = " ".join(f"{coordinate(x)},{coordinate(y)}" for x, y in head)
    line = (
        f"M{coordinate(ax)} {coordinate(ay)}Q{coordinate(cx)} {coordinate(cy)} {coordinate(tx)}"
        f" {coordinate(ty)}"
    )
    style = "edge cycle" if arrow.thick else "edge"
    return f'<path class="{style}" d="{line}"/><polygon class="{style}" points="{corners}"/>'


def _node(name: str, text: str, box: Box) -> str:
    """Return a node as SVG: box, name, statement, and both as a tooltip."""
    left, top = box.x - box.width / 2, box.y - box.height / 2
    place = f'x="{coordinate(left)}" y="{coordinate(top)}"'
    size = f'width="{coordinate(box.width)}" height="{coordinate(box.height)}"'
    parts = [f'<rect class="node" {place} {size} rx="6"/>']
    y = top + 7
    for line, style, height in [
        *((line, "name middle", 18.2) for line in _names(name)),
        *((line, "sql", 14.3) for line in _words(text)),
    ]:
        y += height
        parts.append(label(box.x, y - height * 0.28, line, style))
    full = f"<title>{marked_up(f'{name}: {text}' if text else name)}</title>"
    return f"<g>{full}{''.join(parts)}</g>"


def _label(arrow: Arrow, box: Box, verb: str) -> str:
    """Return the label of an arrow as SVG: its number, kinds of dependency, and verb."""
    style = "badge cycle" if arrow.thick else "badge"
    x = box.x - (text_width(_kinds(arrow), 13) + 22) / 2 + 9
    y = box.y - (8 if verb else 0)
    corner = f'x="{coordinate(box.x - box.width / 2)}" y="{coordinate(box.y - box.height / 2)}"'
    parts = [
        (
            f'<rect class="behind" {corner} width="{coordinate(box.width)}"'
            f' height="{coordinate(box.height)}"/>'
        ),
        f'<circle class="{style}" cx="{coordinate(x)}" cy="{coordinate(y)}" r="9"/>',
        label(x, y + 4, str(arrow.number), f"{style} digit"),
        label(x + 13, y + 4.5, _kinds(arrow), "kind"),
    ]
    if verb:
        parts.append(label(box.x, y + 21, verb, "verb"))
    return f"<g>{''.join(parts)}</g>"
