"""The timeline of a schedule as a picture: SVG without scripts, fonts or ids.

A picture is 350 units wide, so that its text is readable on a phone without scaling. Colours are
those of the page: every shape has a class, and the style sheet (style.css.j2) gives it a colour in
light and in dark.
"""

from __future__ import annotations

from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING

from isolitmus.checker.telling.draw import fate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolitmus.model.run import Run
    from isolitmus.model.schedule import Schedule

__all__ = ["WIDTH", "label", "lines_of", "number", "svg", "text_width", "timeline_svg"]

WIDTH = 350
LINE = 17
"""The height of a line of text."""
FIRST, LAST = 46, WIDTH - 26
"""Where the first and the last step of a schedule stand; to the left of the first is version 0."""
ORIGIN = 16


def number(value: float) -> str:
    """A coordinate: at most one decimal, and the same on every machine.

    >>> number(3.0), number(2.25), number(-0.01)
    ('3', '2.2', '0')
    """
    return f"{round(value, 1) + 0.0:g}"


def text_width(text: str, size: float) -> float:
    """How wide a text may become in whatever font: a little more than a monospaced one."""
    return 0.61 * size * len(text)


def lines_of(text: str, width: float, size: float) -> list[str]:
    """The text in lines that fit; a word that is too long is broken.

    >>> lines_of("DELETE FROM t WHERE part = 0", 100, 12)
    ['DELETE FROM t', 'WHERE part =', '0']
    """
    return wrap(text, max(1, int(width / text_width("m", size))), break_on_hyphens=False)


def label(x: float, y: float, text: str, style: str) -> str:
    """A text with its anchor at (x, y); the style is a class of the style sheet."""
    place = f'x="{number(x)}" y="{number(y)}"'
    return f'<text class="{style}" {place}>{escape(text)}</text>'


def svg(title: str, top: float, bottom: float, parts: Iterable[str]) -> str:
    """A picture from ``top`` to ``bottom``; the title is what a screen reader says of it."""
    box = f"0 {number(top)} {WIDTH} {number(bottom - top)}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="{box}">',
            f"<title>{escape(title)}</title>",
            *parts,
            "</svg>",
        ]
    )


def timeline_svg(schedule: Schedule, run: Run | None = None) -> str:
    """A lane for each transaction, time to the right; with a run, what became of each, and below
    the lanes the versions of the table.

    >>> from isolitmus.model.schedule import Schedule
    >>> timeline_svg(Schedule.parse("a.start b a.commit", ["a", "b"])).count('class="start"')
    2
    """
    steps = schedule.steps
    gap = (LAST - FIRST) / max(1, len(steps) - 1)
    half = min(10.0, gap * 0.35)
    names = list(dict.fromkeys(step.transaction for step in steps))
    below: list[str] = []
    above: list[str] = []
    commits: dict[tuple[int, ...], tuple[float, float]] = {}
    y = 2.0
    for name in names:
        at = [FIRST + gap * k for k, step in enumerate(steps) if step.transaction == name]
        start, end = (at[0] - half, at[0] + half) if len(at) == 1 else (at[0], at[-1])
        words, y = _heading(name, "" if run is None else fate(run, name), y)
        above += [*words, *_bar(start, end, y, _mark(run, name))]
        versions = () if run is None else run.transactions[name].commits
        if versions:
            commits[versions] = (end, y)
        y += LINE
    if run is not None:
        below, axis = _versions(commits, y + LINE)
        above += axis
        y += 2.6 * LINE
    told = "" if run is None else f": {'; '.join(f'{name} {fate(run, name)}' for name in names)}"
    return svg(f"Schedule {schedule}{told}", 0, y, [*below, *above])


def _heading(name: str, fated: str, y: float) -> tuple[list[str], float]:
    """The name and, on the same line if there is room, its fate; and where the bar goes."""
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
    outcome = "committed" if run is None else run.transactions[name].outcome
    if outcome == "committed":
        return "commit"
    return "nothing" if outcome in ("no-op", "unknown") else "abort"


def _bar(start: float, end: float, y: float, mark: str) -> list[str]:
    a, b, at = number(start), number(end), number(y)
    parts = [
        f'<path class="bar" d="M{a} {at}H{b}"/>',
        f'<circle class="start" cx="{a}" cy="{at}" r="4.5"/>',
    ]
    match mark:
        case "commit":
            parts.append(f'<circle class="commit" cx="{b}" cy="{at}" r="5.5"/>')
        case "nothing":
            box = f'x="{number(end - 4.5)}" y="{number(y - 4.5)}" width="9" height="9"'
            parts.append(f'<rect class="start" {box}/>')
        case _:
            cross = f"M{number(end - 5)} {number(y - 5)}l10 10m-10 0l10 -10"
            parts.append(f'<path class="abort" d="{cross}"/>')
    return parts


def _versions(
    commits: dict[tuple[int, ...], tuple[float, float]], y: float
) -> tuple[list[str], list[str]]:
    """The lines from the commits down to the axis, and the axis itself."""
    drops = [
        f'<path class="drop" d="M{number(x)} {number(top)}V{number(y)}"/>'
        for x, top in commits.values()
    ]
    end = WIDTH - 6
    axis = [
        f'<path class="axis" d="M4 {number(y)}H{end}m-6 -4l6 4l-6 4"/>',
        *(
            part
            for versions, x in [((0,), float(ORIGIN)), *((v, x) for v, (x, _) in commits.items())]
            for part in (
                f'<path class="axis" d="M{number(x)} {number(y - 4)}v8"/>',
                label(x, y + LINE, " ".join(f"v{k}" for k in versions), "version"),
            )
        ),
    ]
    return drops, axis
