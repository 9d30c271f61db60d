"""Timelines of schedules as SVG, without scripts, fonts or ids.

A picture is 350 units wide, so that its text is readable on a phone without scaling. Every shape
has a class, to which the style inside the picture (colours.py) assigns a light and a dark colour.
"""

from __future__ import annotations

import re
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING

from isolitmus.checker.render.colours import PICTURE, picture_style
from isolitmus.checker.render.text_pictures import outcome_words
from isolitmus.model.errors import printable, visible
from isolitmus.model.run import SILENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from isolitmus.checker.render.colours import Theme
    from isolitmus.model.run import Run
    from isolitmus.model.schedule import Schedule

WIDTH = 350
MARGIN = 8
"""Margin around a picture; a standalone picture has a background of its own."""
LINE = 17
"""Height of a line of text."""
FIRST, LAST = 46, WIDTH - 26
"""x of the first and the last step of a schedule; version 0 is left of the first."""
ORIGIN = 16
NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML does not allow."""


def coordinate(value: float) -> str:
    """Return a coordinate with at most one decimal, equal on every machine.

    >>> coordinate(3.0), coordinate(2.25), coordinate(-0.01)
    ('3', '2.2', '0')
    """
    return f"{round(value, 1) + 0.0:g}"


def text_width(text: str, size: float) -> float:
    """Return an upper bound of a text's width, a little more than a monospaced font's."""
    return 0.61 * size * len(text)


def lines_of(text: str, width: float, size: float) -> list[str]:
    """Return a text in lines that fit; a word that is too long is broken.

    >>> lines_of("DELETE FROM t WHERE part = 0", 100, 12)
    ['DELETE FROM t', 'WHERE part =', '0']
    """
    return wrap(text, max(1, int(width / text_width("m", size))), break_on_hyphens=False)


def marked_up(text: str) -> str:
    r"""Return a text escaped for SVG; most characters that do not print are not allowed in XML.

    >>> marked_up("a < b\x1b")
    'a &lt; b\\x1b'
    """
    return escape(visible(NO_XML.sub(lambda found: printable(found[0]), text)))


def label(x: float, y: float, text: str, style: str) -> str:
    """Return a text with its anchor at (x, y); ``style`` is a class of the style sheet."""
    place = f'x="{coordinate(x)}" y="{coordinate(y)}"'
    return f'<text class="{style}" {place}>{marked_up(text)}</text>'


def svg(
    title: str,
    described: str,
    box: tuple[float, float, float, float],
    parts: Iterable[str],
    theme: Theme = "auto",
) -> str:
    """Return a picture with its style; ``box`` is left, top, right and bottom of its content.

    Screen readers read the title, and ``described``.
    """
    left, top, right, bottom = (*(v - MARGIN for v in box[:2]), *(v + MARGIN for v in box[2:]))
    size = f"{coordinate(right - left)} {coordinate(bottom - top)}"
    width, height = size.split()
    place = (
        f'viewBox="{coordinate(left)} {coordinate(top)} {size}" width="{width}" height="{height}"'
    )
    style = picture_style(theme)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{PICTURE}" role="img" {place}>',
            f"<title>{marked_up(title)}</title>",
            f"<desc>{marked_up(described)}</desc>",
            *([f"<style>\n{style}\n</style>"] if style else []),
            *parts,
            "</svg>",
        ]
    )


def timeline_svg(schedule: Schedule, run: Run | None = None, theme: Theme = "auto") -> str:
    """Return a timeline as a standalone SVG: a lane for each transaction, time to the right.

    With a run, it shows the outcome of each transaction and, below the lanes, the versions of the
    table. The SVG contains its colours; ``auto`` follows the viewer's light or dark setting.

    >>> from isolitmus.model.schedule import Schedule
    >>> timeline_svg(Schedule.parse("a.start b a.commit", ["a", "b"])).count('class="start"')
    2
    """
    names = dict.fromkeys(step.transaction for step in schedule.steps)
    fates = {} if run is None else {name: outcome_words(run, name) for name in names}
    drawn, bottom = lanes(schedule, run, fates, 0)
    title = "A schedule" if run is None else f"A schedule under {run.protocol}"
    described = "; ".join([str(schedule), *(f"{name} {words}" for name, words in fates.items())])
    return svg(title, described, (0, 0, WIDTH, bottom), drawn, theme)


def lanes(
    schedule: Schedule, run: Run | None, fates: Mapping[str, str], top: float
) -> tuple[list[str], float]:
    """Return the lanes of a timeline and their lower end.

    They begin at ``top``, have each transaction's fate beside its name, and the versions below.
    """
    steps = schedule.steps
    gap = (LAST - FIRST) / max(1, len(steps) - 1)
    half = min(10.0, gap * 0.35)
    names = list(dict.fromkeys(step.transaction for step in steps))
    below: list[str] = []
    above: list[str] = []
    commits: dict[tuple[int, ...], tuple[float, float]] = {}
    y = top + 2.0
    for name in names:
        at = [FIRST + gap * k for k, step in enumerate(steps) if step.transaction == name]
        start, end = (at[0] - half, at[0] + half) if len(at) == 1 else (at[0], at[-1])
        words, y = _heading(name, fates.get(name, ""), y)
        above += [*words, *_bar(start, end, y, _mark(run, name))]
        versions = () if run is None else run.transactions[name].commits
        if versions:
            commits[versions] = (end, y)
        y += LINE
    if run is not None:
        below, axis = _versions(commits, y + LINE)
        above += axis
        y += 2.6 * LINE
    return [*below, *above], y


def _heading(name: str, fated: str, y: float) -> tuple[list[str], float]:
    """Return the name, its fate on the same line if there is room, and the place of the bar."""
    y += LINE
    room = WIDTH - 12 - text_width(name, 14)
    parts = [label(2, y - 4, name, "name")]
    if fated and text_width(fated, 12) <= room:
        parts.append(label(12 + text_width(name, 14), y - 4, fated, "fate"))
        return parts, y + 9
    for line in lines_of(fated, WIDTH - 4, 12):
        y += LINE
        parts.append(label(2, y - 4, line, "fate"))
    return parts, y + 9


def _mark(run: Run | None, name: str) -> str:
    """Return the class of a transaction's end: "commit", "nothing" or "abort"."""
    outcome = "committed" if run is None else run.transactions[name].outcome
    if outcome == "committed":
        return "commit"
    return "nothing" if outcome in ("no-op", SILENT, "unknown") else "abort"


def _bar(start: float, end: float, y: float, mark: str) -> list[str]:
    """Return the SVG elements of a transaction: a line with a start mark and an end mark."""
    a, b, at = coordinate(start), coordinate(end), coordinate(y)
    parts = [
        f'<path class="bar" d="M{a} {at}H{b}"/>',
        f'<circle class="start" cx="{a}" cy="{at}" r="4.5"/>',
    ]
    match mark:
        case "commit":
            parts.append(f'<circle class="commit" cx="{b}" cy="{at}" r="5.5"/>')
        case "nothing":
            box = f'x="{coordinate(end - 4.5)}" y="{coordinate(y - 4.5)}" width="9" height="9"'
            parts.append(f'<rect class="start" {box}/>')
        case _:
            cross = f"M{coordinate(end - 5)} {coordinate(y - 5)}l10 10m-10 0l10 -10"
            parts.append(f'<path class="abort" d="{cross}"/>')
    return parts


def _versions(
    commits: dict[tuple[int, ...], tuple[float, float]], y: float
) -> tuple[list[str], list[str]]:
    """Return the lines from the commits down to the axis, and the axis itself."""
    drops = [
        f'<path class="drop" d="M{coordinate(x)} {coordinate(top)}V{coordinate(y)}"/>'
        for x, top in commits.values()
    ]
    end = WIDTH - 6
    axis = [
        f'<path class="axis" d="M4 {coordinate(y)}H{end}m-6 -4l6 4l-6 4"/>',
        *(
            part
            for versions, x in [((0,), float(ORIGIN)), *((v, x) for v, (x, _) in commits.items())]
            for part in (
                f'<path class="axis" d="M{coordinate(x)} {coordinate(y - 4)}v8"/>',
                label(x, y + LINE, " ".join(f"v{k}" for k in versions), "version"),
            )
        ),
    ]
    return drops, axis
