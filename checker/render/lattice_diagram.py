"""Lattices as pictures: stronger levels above, a line to each neighbour below (a Hasse diagram).

The rows of the picture are longest paths from the top. A line that passes a row has a place there,
so that it crosses no box. Each row is ordered by the mean position of its neighbours, and then
shifted to be below and above them (Sugiyama, Tagawa and Toda, Methods for visual understanding of
hierarchical system structures, 1981). The number of a line refers to its explanation. Proved
implications are solid, searched ones dashed.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from isolitmus.checker.render.graph_picture import Box
from isolitmus.checker.render.timeline import coordinate, label, marked_up, svg, text_width
from isolitmus.checker.search.lattice import PROVED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.checker.render.colours import Theme
    from isolitmus.model.reason import Edge

LINE_HEIGHT, BETWEEN, ASIDE = 17.0, 58.0, 22.0
"""Of a name in a box; between two levels of the picture; between two boxes of one."""
PASSING = 14.0
"""Width of the place for a line that passes a row."""
SWEEPS = 12
"""Number of passes that order and straighten the rows."""


def hasse_svg(
    nodes: Sequence[str],
    edges: Sequence[Edge],
    chosen: frozenset[str] = frozenset(),
    theme: Theme = "auto",
) -> str:
    """Return the picture; edges are numbered in their order.

    >>> from isolitmus.model.reason import Edge
    >>> from isolitmus.model.reason import Reason
    >>> picture = hasse_svg(["a", "b"], [Edge("a", "b", PROVED, Reason("w1(x1)"))])
    >>> picture.count("<rect"), "a implies b" in picture
    (2, True)
    """
    layout = _Layout(nodes, [(edge.source, edge.target) for edge in edges])
    boxes = layout.boxes()
    parts: list[str] = []
    badges: list[str] = []
    taken: list[Box] = []
    for number, edge in enumerate(edges, 1):
        way = layout.way(number - 1, boxes)
        dashed = "" if edge.kind == PROVED else ' style="stroke-dasharray: 6 4"'
        told = (
            f"{number}: {edge.source} {edge.kind} {edge.target}; not the other way round:"
            f" {edge.why}"
        )
        parts.append(
            '<path class="edge"'
            f' d="{_through(way)}"{dashed}><title>{marked_up(told)}</title></path>'
        )
        badge = _badge(way, taken)
        taken.append(badge)
        badges += [
            f'<circle class="badge" cx="{coordinate(badge.x)}" cy="{coordinate(badge.y)}" r="9"/>',
            label(badge.x, badge.y + 4, str(number), "badge digit"),
        ]
    drawn = [_box(name, boxes[name], thick=name in chosen) for name in nodes]
    right = max((box.x + box.width / 2 for box in boxes.values()), default=0)
    left = min((box.x - box.width / 2 for box in boxes.values()), default=0)
    bottom = max((box.y + box.height / 2 for box in boxes.values()), default=0)
    said = "; ".join(f"{e.source} {e.kind} {e.target}" for e in edges) or "all are incomparable"
    return svg(
        "Implications between levels",
        said,
        (left, 0, right, bottom),
        [*parts, *badges, *drawn],
        theme,
    )


def _lines(name: str) -> list[str]:
    first, *others = name.split(" = ")
    return [first, *(f"= {other}" for other in others)]


def _box(name: str, box: Box, *, thick: bool) -> str:
    """Return the box of a level as SVG, with its name in lines; a thick border if ``thick``."""
    left, top = box.x - box.width / 2, box.y - box.height / 2
    place = f'x="{coordinate(left)}" y="{coordinate(top)}"'
    size = f'width="{coordinate(box.width)}" height="{coordinate(box.height)}"'
    more = ' style="stroke-width: 4"' if thick else ""
    names = [
        label(box.x, top + 6 + LINE_HEIGHT * (k + 0.72), line, "name middle")
        for k, line in enumerate(_lines(name))
    ]
    return f'<g><rect class="node" {place} {size} rx="6"{more}/>{"".join(names)}</g>'


def _through(way: Sequence[tuple[float, float]]) -> str:
    """Return the path of a line down through points, vertical at each."""
    parts = [f"M{coordinate(way[0][0])} {coordinate(way[0][1])}"]
    for (x, y), (u, v) in pairwise(way):
        middle = coordinate((y + v) / 2)
        parts.append(
            f"C{coordinate(x)} {middle} {coordinate(u)} {middle} {coordinate(u)} {coordinate(v)}"
        )
    return "".join(parts)


def _badge(way: Sequence[tuple[float, float]], taken: Sequence[Box]) -> Box:
    """Return the box of a line's number: on its first piece, where there is room."""
    (x, y), (u, v) = way[0], way[1]
    found = Box((x + u) / 2, (y + v) / 2, 19, 19)
    for t in (0.5, 0.62, 0.38, 0.74, 0.26):
        s = 1 - t  # the piece is a cubic curve, vertical at both ends
        across = s**3 * x + 3 * s * s * t * x + 3 * s * t * t * u + t**3 * u
        down = s**3 * y + 3 * s * s * t * (y + v) / 2 + 3 * s * t * t * (y + v) / 2 + t**3 * v
        found = Box(across, down, 19, 19)
        if not any(found.meets(other) for other in taken):
            return found
    return found


Spot = str | tuple[int, int]
"""Node, or place where an edge (its number) passes a row."""


class _Layout:
    """Places of the nodes, and of the lines that pass rows."""

    def __init__(self, nodes: Sequence[str], edges: Sequence[tuple[str, str]]) -> None:
        self.nodes, self.edges = nodes, edges
        self.level = _levels(nodes, edges)
        self.rows: list[list[Spot]] = [[] for _ in range(1 + max(self.level.values(), default=0))]
        self.above: dict[Spot, list[Spot]] = {}
        self.below: dict[Spot, list[Spot]] = {}
        for name in nodes:
            self.rows[self.level[name]].append(name)
        for k, (a, b) in enumerate(edges):
            last: Spot = a
            for row in range(self.level[a] + 1, self.level[b]):
                self.rows[row].append((k, row))
                self._join(last, (k, row))
                last = (k, row)
            self._join(last, b)
        self._order()
        self.x = self._across()

    def _join(self, upper: Spot, lower: Spot) -> None:
        self.below.setdefault(upper, []).append(lower)
        self.above.setdefault(lower, []).append(upper)

    def _order(self) -> None:
        """Order each row by the mean position of its neighbours, from above and from below in turn.

        The order with the fewest crossings is kept.
        """
        best, least = [list(row) for row in self.rows], self._crossings()
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            beside = self.above if down else self.below
            for row in self.rows if down else reversed(self.rows):
                place = {one: k for each in self.rows for k, one in enumerate(each)}
                middles = {
                    one: sum(place[n] for n in near) / len(near)
                    if (near := beside.get(one)) else place[one]
                    for one in row
                }  # fmt: skip
                row.sort(key=middles.__getitem__)
            if (now := self._crossings()) < least:
                best, least = [list(row) for row in self.rows], now
        self.rows = best

    def _crossings(self) -> int:
        """Return the number of crossings of lines between adjacent rows."""
        place = {one: k for row in self.rows for k, one in enumerate(row)}
        found = 0
        for row in self.rows:
            pairs = [(place[a], place[b]) for a in row for b in self.below.get(a, ())]
            found += sum(a < c and b > d for a, b in pairs for c, d in pairs)
        return found

    def _across(self) -> dict[Spot, float]:
        """Return the x coordinate of each place, by sweeps toward the mean of its neighbours."""
        x: dict[Spot, float] = {}
        for row in self.rows:
            far = 0.0
            for one in row:
                x[one] = far + self.width(one) / 2
                far += self.width(one) + ASIDE
            for one in row:
                x[one] -= far / 2
        for sweep in range(SWEEPS):
            beside = (self.above, self.below)[sweep % 2]
            for row in self.rows if sweep % 2 == 0 else reversed(self.rows):
                wanted = [
                    sum(x[n] for n in near) / len(near) if (near := beside.get(one)) else x[one]
                    for one in row
                ]
                x.update(zip(row, self._apart(row, wanted), strict=True))
        return x

    def _apart(self, row: Sequence[Spot], wanted: Sequence[float]) -> list[float]:
        """Return places near the wanted ones, in this order and not too close.

        They minimize the sum of squared distances (pooling of adjacent violators).
        """
        offsets, far = [], 0.0
        for k, one in enumerate(row):
            far += 0.0 if k == 0 else (self.width(row[k - 1]) + self.width(one)) / 2 + ASIDE
            offsets.append(far)
        pools: list[tuple[float, int]] = []
        for want, offset in zip(wanted, offsets, strict=True):
            pools.append((want - offset, 1))
            while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
                (b, m), (a, n) = pools.pop(), pools.pop()
                pools.append(((a * n + b * m) / (n + m), n + m))
        level = [value for value, count in pools for _ in range(count)]
        return [value + offset for value, offset in zip(level, offsets, strict=True)]

    def width(self, one: Spot) -> float:
        if not isinstance(one, str):
            return PASSING
        return max(text_width(line, 14) for line in _lines(one)) + 18

    def height(self, one: Spot) -> float:
        return 12 + LINE_HEIGHT * len(_lines(one)) if isinstance(one, str) else 0.0

    def boxes(self) -> dict[Spot, Box]:
        """Return the boxes of the nodes, and of the points where lines pass."""
        found: dict[Spot, Box] = {}
        top = 0.0
        for row in self.rows:
            tall = max(map(self.height, row), default=0.0)
            for one in row:
                middle = top + tall / 2
                tallness = self.height(one) if isinstance(one, str) else tall
                found[one] = Box(self.x[one], middle, self.width(one), tallness)
            top += tall + BETWEEN
        return found

    def way(self, number: int, boxes: Mapping[Spot, Box]) -> list[tuple[float, float]]:
        """Return the points of a line from one node, past the rows between, to the other one."""
        a, b = self.edges[number]
        points = [(boxes[a].x, boxes[a].y + boxes[a].height / 2)]
        for row in range(self.level[a] + 1, self.level[b]):
            box = boxes[number, row]
            points += [(box.x, box.y - box.height / 2), (box.x, box.y + box.height / 2)]
        return [*points, (boxes[b].x, boxes[b].y - boxes[b].height / 2)]


def _levels(nodes: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Return the row of each node: its longest path from the top; 0 for isolated nodes."""
    above: dict[str, list[str]] = {}
    for a, b in edges:
        above.setdefault(b, []).append(a)
    found: dict[str, int] = {}

    def level(name: str) -> int:
        if name not in found:
            found[name] = max((level(one) + 1 for one in above.get(name, ())), default=0)
        return found[name]

    for name in nodes:
        level(name)
    return found
