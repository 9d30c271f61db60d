"""The page of an audit: for each table what was found, by kind, with versions and reasons."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from isolitmus.checker.render.audit import nothing_found, overview_lines, overview_svg, when_written
from isolitmus.checker.render.page_parts import render_template
from isolitmus.model.audit import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.checker.render.page_parts import Made
    from isolitmus.model.audit import Audit, Finding

__all__ = ["audit_page"]

SHOWN = 100
"""So many findings of a kind and certainty of one table stand on the page."""


def audit_page(audits: Sequence[Audit], made: Made) -> str:
    """The page: no script, nothing loaded from anywhere, every text escaped.

    >>> from isolitmus.model.audit import Audit
    >>> from isolitmus.checker.render.page_parts import Made
    >>> page = audit_page([Audit("<t>", 0, 4, ())], Made("isolitmus 1", "today", "isolitmus audit"))
    >>> "&lt;t&gt;" in page, "5 commits" in page, "isolitmus 1, today" in page
    (True, True, True)
    """
    total: Counter[str] = Counter()
    for audit in audits:
        for (_, certainty), number in audit.counts.items():
            total[certainty] += number
    return render_template(
        "audit.html.j2",
        audits=audits,
        made=made,
        certain=total["certain"],
        possible=total["possible"],
        commits=sum(audit.commits for audit in audits),
        kinds=KINDS,
        groups=_groups,
        shown=SHOWN,
        overview=overview_lines,
        nothing=nothing_found,
        when=when_written,
        timeline=overview_svg,
    )


def _groups(audit: Audit) -> list[tuple[str, str, int, list[Finding]]]:
    """Kind, certainty, how many, and the first of them."""
    found = groupby(audit.findings, lambda finding: (finding.kind, finding.certainty))
    return [(*key, audit.counts[key], list(group)[:SHOWN]) for key, group in found]
