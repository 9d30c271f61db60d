"""Hooks of the site (MkDocs): pages from outside docs/, pictures, consoles, the order of results.

GitHub chooses a source of `<picture>` by the reader's preference; the site has a switch, which
Material's images `#only-light` and `#only-dark` follow. There a picture is a link to itself, and is
never smaller than its text can be read: in a narrow window it scrolls.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {
    "overview.md": "README.md",
    "speed.md": "bench/README.md",
    "sweeps.svg": "bench/sweeps.svg",
    "audits.svg": "bench/audits.svg",
    "changes.md": "CHANGELOG.md",
    "LICENSE.txt": "LICENSE",
    "CITATION.cff": "CITATION.cff",
    "security.md": "SECURITY.md",
}
"""Files of the site that stand elsewhere in the checkout."""
PLACES = {ROOT / source: place for place, source in OUTSIDE.items()}
LEXERS = {"console": "text"}
"""Languages that are coloured as another one: the output of a command is no shell script."""
PICTURE = re.compile(
    r'<picture>.*?srcset="(?P<dark>[^"]+)".*?src="(?P<light>[^"]+)"'
    r' alt="(?P<alt>[^"]*)".*?</picture>',
    re.DOTALL,
)
LINK = re.compile(r"(?<=\[)(?P<text>[^\]]*)\]\((?P<path>[^)#:\s]+)(?P<anchor>[^)\s]*)\)")
FENCE = re.compile(r"^```(\w+)(?: .*)?$", re.MULTILINE)
"""Beginning of a block: its language, and markers for tests."""
COMMAND = re.compile(r"(?:^|(?<=<code>))(\$ )(.+)$", re.MULTILINE)
"""A command in a block of a console."""
WIDTH = re.compile(r'<svg [^>]*? width="([\d.]+)"')
SMALLEST = 0.78
"""Scale at which the smallest text of a picture, 12 pixels high, can just be read."""
WIDE = 1000
"""Width of a picture from which a page has no margins beside its text."""
BOOST = {
    "results/anomalies.md": 8,
    "results/engines-and-anomalies.md": 4,
    "glossary.md": 2,
    "results/levels/": 0.05,
    "results/": 0.5,
}
"""Weight of pages in the search, by the beginnings of their paths: who looks for an anomaly finds
it before the levels that forbid it."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what stands outside docs/."""
    for path, source in OUTSIDE.items():
        files.append(File.generated(config, path, content=(ROOT / source).read_text("utf-8")))
    return files


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Show release and license at the foot of each page."""
    release = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    config.copyright = f"isolitmus {release}, Apache License 2.0"
    return config


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Return the page with links into the site, and its pictures in both themes."""
    path = page.file.src_uri
    folder = (ROOT / OUTSIDE.get(path, f"docs/{path}")).parent

    def place(target: str) -> str | None:
        """Return the path from the page to a file of the site; None for another file."""
        file = (folder / target).resolve()
        if file in PLACES:
            to = PLACES[file]
        elif file.is_relative_to(ROOT / "docs"):
            to = file.relative_to(ROOT / "docs").as_posix()
        else:
            return None
        return f"{'../' * path.count('/')}{to}"

    def link(match: re.Match[str]) -> str:
        to = place(match["path"])
        return match[0] if to is None else f"{match['text']}]({to}{match['anchor']})"

    def picture(match: re.Match[str]) -> str:
        both = ""
        for theme in ("light", "dark"):
            width = picture_width(folder / match[theme])
            if width > WIDE:
                page.meta["hide"] = ["navigation", "toc"]
            style = f"width: {width:.0f}px; min-width: {width * SMALLEST:.0f}px"
            to = place(match[theme])
            both += (
                f'<a href="{to}"><img src="{to}#only-{theme}" alt="{match["alt"]}"'
                f' style="{style}"></a>'
            )
        return f'<div class="picture">{both}</div>'

    boost = next((of for start, of in BOOST.items() if path.startswith(start)), None)
    if boost is not None:
        page.meta["search"] = {"boost": boost}
    text = PICTURE.sub(picture, LINK.sub(link, markdown))
    return FENCE.sub(lambda fence: f"```{LEXERS.get(fence[1], fence[1])}", text)


def picture_width(path: Path) -> float:
    """Return the width of a picture in pixels."""
    width = WIDTH.search(path.read_text("utf-8"))
    assert width, f"{path} has no width"
    return float(width[1])


def on_page_content(html: str, **_: object) -> str:
    """Mark the commands of consoles; their outputs stay plain."""
    return COMMAND.sub(r"\1<strong>\2</strong>", html)
