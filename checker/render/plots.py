"""Line plots, with a legend below."""

from __future__ import annotations

from math import log10
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.render.timeline import LINE, WIDTH, coordinate, label, svg

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.checker.render.colours import Theme

LEFT, RIGHT, TOP, HEIGHT = 42.0, WIDTH - 8.0, 8.0, 130.0
"""Edges and height of a plot in its picture.

Two lines for the horizontal scale stand below it, then one for each line.
"""
INSET = 8.0
"""Distance of the first and the last mark from the ends of the plot."""
DASHES = ("", "6 4", "2 3", "9 3 2 3", "1 5")
"""Dash patterns of the lines, repeated cyclically."""
SUFFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


class PlotLine(NamedTuple):
    """Line of a plot."""

    name: str
    """Name in the legend."""
    points: Sequence[tuple[float, float]]
    """Points from left to right; both coordinates are from 0 to 1."""


class Scale(NamedTuple):
    """Scale of a plot."""

    name: str
    """Quantity on the scale."""
    marks: Sequence[tuple[float, str]]
    """Marks: position from 0 to 1, and label."""


def line_plot(
    title: str,
    described: str,
    across: Scale,
    up: Scale,
    lines: Sequence[PlotLine],
    *,
    theme: Theme = "auto",
) -> str:
    """Return a plot as a picture.

    >>> across, up = Scale("n", [(0, "2"), (1, "3")]), Scale("", [(0, "0 %"), (1, "9 %")])
    >>> line_plot("t", "d", across, up, [PlotLine("l", [(0, 0), (1, 1)])]).count("<circle")
    2
    """
    bottom = TOP + HEIGHT
    width = RIGHT - LEFT - 2 * INSET

    def at(point: tuple[float, float]) -> tuple[str, str]:
        x, y = point
        return coordinate(LEFT + INSET + width * x), coordinate(bottom - HEIGHT * y)

    parts = []
    for place, text in up.marks:
        y = bottom - HEIGHT * place
        parts.append(
            f'<path class="rule" d="M{coordinate(LEFT)} {coordinate(y)}H{coordinate(RIGHT)}"/>'
        )
        parts.append(label(0, y + 4, text, "fate"))
    for place, text in across.marks:
        x = LEFT + INSET + width * place - 3.5 * (len(text) - 1)
        parts.append(label(x, bottom + LINE, text, "version"))
    parts.append(label(LEFT, bottom + LINE * 2, across.name, "fate"))
    for k, line in enumerate(lines):
        dash = f' stroke-dasharray="{DASHES[k % len(DASHES)]}"' if DASHES[k % len(DASHES)] else ""
        points = [at(point) for point in line.points]
        way = " L".join(f"{x} {y}" for x, y in points)
        parts.append(f'<path class="bar"{dash} d="M{way}"/>')
        parts += [f'<circle class="commit" cx="{x}" cy="{y}" r="3.5"/>' for x, y in points]
        y = bottom + LINE * (k + 3.2)
        parts.append(f'<path class="bar"{dash} d="M0 {coordinate(y - 4)}h26"/>')
        parts.append(label(LEFT, y, line.name, "fate"))
    box = (0, 0, WIDTH, bottom + LINE * (len(lines) + 2.6))
    return svg(title, described, box, parts, theme)


def scaling_svg(
    title: str,
    across: str,
    unit: str,
    measured: Mapping[str, Sequence[tuple[float, float]]],
    theme: Theme = "auto",
) -> str:
    """Plot how cost grows with size.

    Both scales are logarithmic, so that cost proportional to size is a line of slope one.

    Parameters
    ----------
    title : str
        Title of the plot.
    across, unit : str
        Quantity on the horizontal scale, and unit of the cost.
    theme : str
        Colours.
    measured : mapping of str to sequence of (size, cost)
        Measurements of each line.

    Examples
    --------
    >>> picture = scaling_svg("t", "commits", "s", {"audit": [(1000, 0.5), (10000, 5.0)]})
    >>> "commits" in picture, ">10k<" in picture, ">1 s<" in picture
    (True, True, True)
    """
    points = [point for line in measured.values() for point in line]
    sizes, costs = (_decades([point[i] for point in points]) for i in (0, 1))

    def at(value: float, decades: range) -> float:
        return (log10(value) - decades[0]) / max(decades[-1] - decades[0], 1)

    lines = [
        PlotLine(name, [(at(size, sizes), at(cost, costs)) for size, cost in sorted(line)])
        for name, line in measured.items()
    ]
    below = Scale(across, [(at(10.0**d, sizes), _short(10.0**d)) for d in sizes])
    beside = Scale("", [(at(10.0**d, costs), f"{_short(10.0**d)} {unit}") for d in costs])
    said = "; ".join(
        f"{name}: "
        + ", ".join(f"{size:,.0f} {across} {cost:g} {unit}" for size, cost in sorted(line))
        for name, line in measured.items()
    )
    return line_plot(title, said, below, beside, lines, theme=theme)


def _decades(values: Sequence[float]) -> range:
    """Return the exponents of the powers of ten around some numbers."""
    least, most = log10(min(values)), log10(max(values))
    return range(int(least // 1), int(-(-most // 1)) + 1)


def _short(value: float) -> str:
    """Return a number with the suffix of its magnitude."""
    for size, suffix in SUFFIXES:
        if value >= size:
            return f"{value / size:g}{suffix}"
    return f"{value:g}"
