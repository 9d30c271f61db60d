"""Colours of pages and pictures, light and dark, and the style sheet inside each picture.

A picture that is cut out of a page, saved or embedded keeps its colours: its style contains them
literally, because some SVG renderers do not support variables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, assert_never

if TYPE_CHECKING:
    from collections.abc import Mapping

Theme = Literal["auto", "light", "dark", "page"]
"""Colours of a picture; ``auto`` follows the viewer's setting (``prefers-color-scheme``).

With ``page`` the picture has no style: the page that it is part of has it, once for all pictures.
"""

LIGHT = {
    "page": "#ffffff",
    "panel": "#f6f7f9",
    "ink": "#1b1f24",
    "soft": "#55606c",
    "line": "#c6ccd4",
    "code": "#eef0f3",
    "bad": "#b3261e",
    "bad-page": "#fdeceb",
    "good": "#17683a",
    "good-page": "#e6f4ea",
    "perhaps": "#7a4a00",
    "perhaps-page": "#fdf1d8",
    "link": "#0b57b0",
    "on": "#ffffff",
}
DARK = {
    "page": "#15181c",
    "panel": "#1d2126",
    "ink": "#e8eaed",
    "soft": "#aeb6c0",
    "line": "#454d57",
    "code": "#262b32",
    "bad": "#ff9d92",
    "bad-page": "#3a1f1e",
    "good": "#84d6a4",
    "good-page": "#17301f",
    "perhaps": "#f0c36a",
    "perhaps-page": "#352a12",
    "link": "#8fc1ff",
    "on": "#15181c",
}

PICTURE = "isolitmus-picture"
"""Class of pictures.

It limits a picture's style, which a browser applies to the whole page, to pictures.
"""

SANS = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif'
MONO = 'ui-monospace, "SFMono-Regular", Menlo, Consolas, "DejaVu Sans Mono", monospace'

RULES: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    ("", "", {"background": "page"}),
    ("text", f"font: 12px {SANS}", {"fill": "ink"}),
    (".name", f"font: 700 14px {MONO}", {}),
    (".fate, .version, .verb", "", {"fill": "soft"}),
    (".sql", f"font: 11px {MONO}", {"fill": "soft"}),
    (".kind", f"font: 700 13px {MONO}", {}),
    (
        ".fate, .name",
        "paint-order: stroke; stroke-width: 5px; stroke-linejoin: round",
        {"stroke": "page"},
    ),
    ("g .name", "stroke-width: 0", {}),
    (".middle, .sql, .verb, .version, .digit", "text-anchor: middle", {}),
    (".bar", "stroke-width: 2.5; fill: none", {"stroke": "ink"}),
    (".start", "stroke-width: 2", {"stroke": "ink", "fill": "page"}),
    (".commit", "", {"fill": "ink"}),
    (".abort", "stroke-width: 3.5; fill: none; stroke-linecap: round", {"stroke": "bad"}),
    (".drop", "stroke-width: 1.5; stroke-dasharray: 3 3; fill: none", {"stroke": "line"}),
    (".rule", "stroke-width: 1.5; fill: none", {"stroke": "line"}),
    (".heading", f"font: 700 17px {SANS}", {}),
    (".decision", "font-weight: 600", {}),
    (".statement", f"font: 12px {MONO}", {"fill": "soft"}),
    (".column", f"font: 700 12px {MONO}", {"fill": "soft"}),
    (".cell", f"font: 12px {MONO}", {}),
    (".extra, .sign", "font-weight: 700", {"fill": "bad"}),
    (".missing", "text-decoration: line-through", {"fill": "bad"}),
    (".marked", "", {"fill": "bad-page"}),
    (".conclusion", "font-weight: 700; font-size: 13px", {}),
    (".good", "", {"fill": "good"}),
    (".bad", "", {"fill": "bad"}),
    (".axis", "stroke-width: 1.5; fill: none", {"stroke": "soft"}),
    (".node", "stroke-width: 1.5", {"fill": "panel", "stroke": "soft"}),
    (".behind", "", {"fill": "page"}),
    ("path.edge", "stroke-width: 1.5; fill: none", {"stroke": "soft"}),
    ("path.edge.cycle", "stroke-width: 3", {"stroke": "bad"}),
    ("polygon.edge", "", {"fill": "soft"}),
    ("polygon.edge.cycle", "", {"fill": "bad"}),
    ("circle.badge", "stroke-width: 1.5", {"fill": "page", "stroke": "soft"}),
    ("circle.badge.cycle", "", {"fill": "bad", "stroke": "bad"}),
    ("text.badge", f"font: 700 12px {SANS}", {}),
    ("text.badge.cycle", "", {"fill": "on"}),
)
"""Style of the parts of a picture, by class: shape and font, and the colour of each part."""


def picture_style(theme: Theme = "auto") -> str:
    """Return the style sheet inside a picture.

    >>> "#1b1f24" in picture_style("light"), "#1b1f24" in picture_style("dark")
    (True, False)
    >>> "prefers-color-scheme: dark" in picture_style()
    True
    """
    fixed = "\n".join(_rule(where, shape) for where, shape, _ in RULES if shape)
    match theme:
        case "light":
            return f"{fixed}\n{coloured(LIGHT)}"
        case "dark":
            return f"{fixed}\n{coloured(DARK)}"
        case "auto":
            dark = f"@media (prefers-color-scheme: dark) {{\n{coloured(DARK)}\n}}"
            return f"{fixed}\n{coloured(LIGHT)}\n{dark}"
        case "page":
            return ""
    assert_never(theme)


def coloured(palette: Mapping[str, str], within: str = "") -> str:
    """Return the style sheet of pictures' colours, for all or inside a selector ``within``.

    >>> coloured(DARK, ".night").splitlines()[0]
    '.night .isolitmus-picture { background: #15181c }'
    """
    return "\n".join(
        _rule(where, "; ".join(f"{what}: {palette[name]}" for what, name in paint.items()), within)
        for where, _, paint in RULES
        if paint
    )


def _rule(where: str, declared: str, within: str = "") -> str:
    scope = f"{within} .{PICTURE}".strip()
    selectors = ", ".join(f"{scope} {one}".strip() for one in where.split(", "))
    return f"{selectors} {{ {declared} }}"
