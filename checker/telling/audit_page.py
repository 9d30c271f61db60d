"""The page of an audit: for each table what was found, by kind, with versions and reasons."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from isolitmus.checker.telling.figures import render
from isolitmus.model.finding import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.model.finding import Audit, Finding

__all__ = ["audit_page"]

SHOWN = 100
"""So many findings of a kind and certainty of one table stand on the page."""


def audit_page(audits: Sequence[Audit]) -> str:
    """The page: no script, nothing loaded from anywhere, every text escaped.

    >>> from isolitmus.model.finding import Audit
    >>> page = audit_page([Audit("<t>", 0, 4, ())])
    >>> "&lt;t&gt;" in page, "5 commits" in page
    (True, True)
    """
    total: Counter[str] = Counter()
    for audit in audits:
        for (_, certainty), number in audit.counts.items():
            total[certainty] += number
    return render(
        "audit.html.j2",
        audits=audits,
        certain=total["certain"],
        possible=total["possible"],
        commits=sum(audit.commits for audit in audits),
        kinds=KINDS,
        groups=_groups,
        shown=SHOWN,
    )


def _groups(audit: Audit) -> list[tuple[str, str, int, list[Finding]]]:
    """Kind, certainty, how many, and the first of them."""
    found = groupby(audit.findings, lambda finding: (finding.kind, finding.certainty))
    return [(*key, audit.counts[key], list(group)[:SHOWN]) for key, group in found]
