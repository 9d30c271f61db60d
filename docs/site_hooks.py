"""Hooks of the site (MkDocs): pages from outside docs/, and pictures for both themes.

GitHub chooses a source of `<picture>` by the reader's preference; the site has a switch, which
Material's images `#only-light` and `#only-dark` follow.
"""

from __future__ import annotations

import re
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
}
"""Files of the site that stand elsewhere in the checkout."""
PLACES = {ROOT / source: place for place, source in OUTSIDE.items()}
PICTURE = re.compile(
    r'<picture>.*?srcset="(?P<dark>[^"]+)".*?src="(?P<light>[^"]+)"'
    r' alt="(?P<alt>[^"]*)".*?</picture>',
    re.DOTALL,
)
LINK = re.compile(r"(?<=\[)(?P<text>[^\]]*)\]\((?P<path>[^)#:\s]+)(?P<anchor>[^)\s]*)\)")
MARKED_FENCE = re.compile(r"^```(\w+) .*$", re.MULTILINE)
"""A block with a marker for tests behind its language."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what stands outside docs/."""
    for path, source in OUTSIDE.items():
        files.append(File.generated(config, path, content=(ROOT / source).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Return the page with links into the site, and its pictures in both themes."""
    path = page.file.src_uri
    stands = OUTSIDE.get(path, f"docs/{path}")

    def link(match: re.Match[str]) -> str:
        target = (ROOT / stands).parent.joinpath(match["path"]).resolve()
        if target in PLACES:
            to = PLACES[target]
        elif target.is_relative_to(ROOT / "docs"):
            to = target.relative_to(ROOT / "docs").as_posix()
        else:
            return match[0]
        return f"{match['text']}]({'../' * path.count('/')}{to}{match['anchor']})"

    both = r"![\g<alt>](\g<light>#only-light)\n![\g<alt>](\g<dark>#only-dark)"
    return MARKED_FENCE.sub(r"```\1", LINK.sub(link, PICTURE.sub(both, markdown)))
