"""Audits in words, as a picture, as a page.

The overview of a log in words, and as a picture: a line for each commit, from what it had read to what it made.

The page of an audit: for each table what was found, by kind, with versions and reasons.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING

from isolitmus.checker.render.page_parts import render_template
from isolitmus.checker.render.timeline import LINE, WIDTH, coordinate, label, svg
from isolitmus.model.audit import KINDS
from isolitmus.model.display import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.checker.render.colours import Theme
    from isolitmus.checker.render.page_parts import PageOrigin
    from isolitmus.model.audit import Audit, CommitSpan, Finding, Overview

__all__ = ["audit_page", "commit_times", "nothing_found", "overview_lines", "overview_svg"]

NEAR_MISSES_SHOWN = 5
"""So many near misses are said."""
LISTED = 6
"""So many counts of a kind."""
NAMED = 16
"""So long is the name of a commit in the picture."""
LEFT, RIGHT = 126.0, WIDTH - 8.0
"""Where the oldest and the newest version of the picture stand; the names are to the left."""


def commit_times(overview: Overview) -> str:
    """When the commits were made, after a comma; nothing if they do not say.

    >>> from isolitmus.model.audit import Overview
    >>> commit_times(Overview({}, {}, {}, 1767225600000, 1767312000000))
    ', 2026-01-01 00:00 to 2026-01-02 00:00 UTC'
    """
    times = [_time(milliseconds) for milliseconds in (overview.first, overview.last)]
    if not all(times):
        return ""
    return f", {times[0]} to {times[1]} UTC"


def overview_lines(overview: Overview) -> Iterator[str]:
    """The overview for a person.

    >>> from isolitmus.model.audit import Overview
    >>> for line in overview_lines(Overview({"WRITE": 3}, {"Serializable": 3}, {"x": 3}, overlapping=1,
    ...     pairs={"WRITE beside WRITE": 1})): print(line)
    operations: 3 WRITE
    levels: 3 Serializable
    writers: 3 x
    overlaps: 1 commit had not seen another one (1 WRITE beside WRITE)
    by a hair: no pair of these would have conflicted or changed places with another timing
    """
    for name in ("operations", "levels", "writers"):
        yield f"{name}: {_counts(getattr(overview, name))}"
    if not overview.overlapping:
        yield "overlaps: none, each commit had seen all before it"
        return
    have = count_of(overview.overlapping, "commit")
    yield f"overlaps: {have} had not seen another one ({_counts(overview.pairs or {})})"
    if not overview.near_counts:
        yield "by a hair: no pair of these would have conflicted or changed places with another timing"
        return
    pairs = count_of(sum(overview.near_counts.values()), "pair")
    yield f"by a hair: {pairs} with another timing ({_counts(overview.near_counts)})"
    operations = {span.version: span.operation for span in overview.spans}
    surest = sorted(overview.near, key=lambda one: one.certainty != "certain")
    for near in surest[:NEAR_MISSES_SHOWN]:
        yield f"  {near.words(operations)}"


def nothing_found(audit: Audit) -> str:
    """What was looked at, where nothing was found.

    >>> from isolitmus.model.audit import Audit
    >>> nothing_found(Audit("t", 0, 4, ()))
    'Nothing found: 5 commits were held against 12 kinds of findings (docs/auditing.md). That is what the log shows, \
not all that may have happened.'
    """
    over = 0 if audit.overview is None else audit.overview.overlapping
    of = f" ({over:,} had not seen all before them)" if over else ""
    were = "was" if audit.commits == 1 else "were"
    return (
        f"Nothing found: {count_of(audit.commits, 'commit')}{of} {were} held against {len(KINDS)} kinds of findings"
        " (docs/auditing.md). That is what the log shows, not all that may have happened."
    )


def _counts(counts: Mapping[str, int]) -> str:
    shown = [f"{number:,} {name}" for name, number in list(counts.items())[:LISTED]]
    more = sum(list(counts.values())[LISTED:])
    return ", ".join([*shown, *([f"{more:,} others"] if more else [])])


def _time(milliseconds: int) -> str:
    if not 0 < milliseconds < 1 << 47:
        return ""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def overview_svg(overview: Overview, theme: Theme = "auto") -> str:
    """The newest commits as a picture that stands alone: each a line of the log's versions, from the one that it had
    read to the one that it made. Who had not seen others is drawn as a bar, and dotted lines lead to these; all others are
    dots.

    >>> from isolitmus.model.audit import CommitSpan, Overview
    >>> spans = (CommitSpan(1, 0, "WRITE", True), CommitSpan(2, 0, "DELETE", False))
    >>> overview_svg(Overview({}, {}, {}, spans=spans)).count('class="bar"')
    1
    """
    spans = overview.spans
    if not spans:
        return svg("A log without commits", "", (0, 0, WIDTH, LINE), [])
    first = min(_from(span) for span in spans)
    steps = max(1, spans[-1].version - first)

    def at(version: int) -> float:
        return LEFT + (RIGHT - LEFT) * (max(version, first) - first) / steps

    rows = {span.version: LINE * (k + 1.0) - 4 for k, span in enumerate(spans)}
    parts: list[str] = []
    for k, span in enumerate(spans):
        y = LINE * (k + 1.0)
        end, height = coordinate(at(span.version)), coordinate(y - 4)
        if span.version - _from(span) > 1:
            begun = coordinate(at(_from(span)))
            for missed in range(_from(span) + 1, span.version):
                if missed in rows:
                    x, top = coordinate(at(missed)), coordinate(rows[missed] + 4)
                    parts.append(f'<path class="drop" d="M{x} {top}V{height}"/>')
            parts.append(f'<path class="bar" d="M{begun} {coordinate(y - 7)}v6m0 -3H{end}"/>')
        kind = "start" if span.blind else "commit"
        parts.append(f'<circle class="{kind}" cx="{end}" cy="{height}" r="4"/>')
        parts.append(label(0, y, _short(f"{span.version} {span.operation}"), "fate"))
    title = f"Versions {spans[0].version} to {spans[-1].version} of the log"
    said = "; ".join(
        f"version {s.version}, {s.operation}, had read version {s.read}"
        for s in spans
        if s.version - _from(s) > 1
    )
    return svg(title, said, (0, 0, WIDTH, LINE * (len(spans) + 1.0)), parts, theme)


def _from(span: CommitSpan) -> int:
    read = span.read
    return span.version - 1 if read is None or not -1 <= read < span.version else read


def _short(text: str) -> str:
    return text if len(text) <= NAMED else f"{text[: NAMED - 1]}…"


FINDINGS_SHOWN = 100
"""So many findings of a kind and certainty of one table stand on the page."""


def audit_page(audits: Sequence[Audit], made: PageOrigin) -> str:
    """The page: no script, nothing loaded from anywhere, every text escaped.

    >>> from isolitmus.model.audit import Audit
    >>> from isolitmus.checker.render.page_parts import PageOrigin
    >>> page = audit_page([Audit("<t>", 0, 4, ())], PageOrigin("isolitmus 1", "today", "isolitmus audit"))
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
        shown=FINDINGS_SHOWN,
        overview=overview_lines,
        nothing=nothing_found,
        when=commit_times,
        timeline=overview_svg,
    )


def _groups(audit: Audit) -> list[tuple[str, str, int, list[Finding]]]:
    """Kind, certainty, how many, and the first of them."""
    found = groupby(audit.findings, lambda finding: (finding.kind, finding.certainty))
    return [(*key, audit.counts[key], list(group)[:FINDINGS_SHOWN]) for key, group in found]
