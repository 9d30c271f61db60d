"""Audits in text, as a picture and as a page.

The picture has a line for each commit, from the version that it read to the version that it made.
The page has, for each table, the findings by kind, with versions and reasons.
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

NEAR_MISSES_SHOWN = 5
"""Maximum number of near misses that are printed."""
LISTED = 6
"""Maximum number of counts of one kind that are printed."""
NAMED = 16
"""Maximum length of a commit's name in the picture."""
LEFT, RIGHT = 126.0, WIDTH - 8.0
"""Positions of the oldest and the newest version in the picture; the names are to the left."""
NAMES = {
    "not said": "not recorded",
    "a writer without a name": "unnamed",
    "an operation without a name": "unnamed",
}
"""Display names of what a commit does not record."""


def commit_times(overview: Overview) -> str:
    """Return the time span of the commits after a comma; empty if they do not record it.

    >>> from isolitmus.model.audit import Overview
    >>> commit_times(Overview({}, {}, {}, 1767225600000, 1767312000000))
    ', 2026-01-01 00:00 to 2026-01-02 00:00 UTC'
    """
    times = [_time(milliseconds) for milliseconds in (overview.first, overview.last)]
    if not all(times):
        return ""
    return f", {times[0]} to {times[1]} UTC"


def overview_lines(overview: Overview) -> Iterator[str]:
    """Yield the lines of the overview.

    >>> from isolitmus.model.audit import Overview
    >>> pairs = {"WRITE beside WRITE": 1}
    >>> one = Overview({"WRITE": 3}, {"Serializable": 3}, {"x": 3}, overlapping=1, pairs=pairs)
    >>> for line in overview_lines(one): print(line)  # doctest: +NORMALIZE_WHITESPACE
    operations: 3 WRITE
    levels: 3 Serializable
    writers: 3 x
    overlaps: 1 commit did not see a concurrent commit (1 WRITE concurrent with WRITE)
    near misses: none (with another timing, none of these pairs would have conflicted
    or been reordered)
    """
    for name in ("operations", "levels", "writers"):
        yield f"{name}: {_counts(getattr(overview, name))}"
    if not overview.overlapping:
        yield "overlaps: none (each commit saw all commits before it)"
        return
    have = count_of(overview.overlapping, "commit")
    yield f"overlaps: {have} did not see a concurrent commit ({_counts(overview.pairs or {})})"
    if not overview.near_counts:
        yield (
            "near misses: none (with another timing, none of these pairs would have conflicted or"
            " been reordered)"
        )
        return
    pairs = count_of(sum(overview.near_counts.values()), "pair")
    yield (
        f"near misses: {pairs}, by the outcome with another timing"
        f" ({_counts(overview.near_counts)})"
    )
    operations = {span.version: span.operation for span in overview.spans}
    surest = sorted(overview.near, key=lambda one: one.certainty != "certain")
    for near in surest[:NEAR_MISSES_SHOWN]:
        yield f"  {near.words(operations)}"


def headline(audit: Audit) -> str:
    """Return the answer of an audit in one line.

    >>> from isolitmus.model.audit import Audit
    >>> headline(Audit("t", 0, 4, ()))
    'No anomaly found in table t, versions 0–4 (5 commits).'
    >>> headline(Audit("t", 0, 4, (), {("reorder", "certain"): 2}))
    '2 findings in table t, versions 0–4 (5 commits): 2 certain, 0 possible.'
    """
    if not audit.commits:
        return f"No commits to audit in table {audit.table}."
    when = "" if audit.overview is None else commit_times(audit.overview)
    where = (
        f"in table {audit.table}, versions {audit.first}–{audit.last}"
        f" ({count_of(audit.commits, 'commit')}{when})"
    )
    sure, maybe = (
        sum(n for (_, c), n in audit.counts.items() if c == certainty)
        for certainty in ("certain", "possible")
    )
    if not sure + maybe:
        return f"No anomaly found {where}."
    return f"{count_of(sure + maybe, 'finding')} {where}: {sure:,} certain, {maybe:,} possible."


def audit_assumptions(audit: Audit) -> Iterator[str]:
    """Yield the assumptions and limits of an audit, one sentence each, as far as they apply.

    >>> from isolitmus.model.audit import Audit
    >>> list(audit_assumptions(Audit("t", 0, 0, (), {("reorder", "possible"): 2})))[0]
    'Possible: the log does not exclude the finding.'
    """
    found = {certainty for _, certainty in audit.counts}
    if "certain" in found:
        yield (
            "Certain: the log shows the finding, provided that the commits record the truth about"
            " themselves."
        )
    if "possible" in found:
        yield "Possible: the log does not exclude the finding."
    yield (
        f"Each commit was checked for {len(KINDS)} kinds of findings (docs/auditing.md). Anomalies"
        " that the log does not record are not found."
    )


def _counts(counts: Mapping[str, int]) -> str:
    shown = [f"{number:,} {_shown(name)}" for name, number in list(counts.items())[:LISTED]]
    more = sum(list(counts.values())[LISTED:])
    return ", ".join([*shown, *([f"{more:,} others"] if more else [])])


def _shown(name: str) -> str:
    return NAMES.get(name, name.replace(" beside ", " concurrent with "))


def _time(milliseconds: int) -> str:
    if not 0 < milliseconds < 1 << 47:
        return ""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def overview_svg(overview: Overview, theme: Theme = "auto") -> str:
    """Return a standalone picture of the newest commits, one line each.

    A commit that did not see others is a bar from the version that it read to the version that it
    made, and dotted lines lead to those others; every other commit is a dot.

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
        f"version {s.version}, {s.operation}, read version {s.read}"
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
"""Maximum number of findings of a kind, certainty and table on the page."""


def audit_page(audits: Sequence[Audit], made: PageOrigin) -> str:
    """Return the page, without scripts or external resources, and with every text escaped.

    >>> from isolitmus.model.audit import Audit
    >>> from isolitmus.checker.render.page_parts import PageOrigin
    >>> made = PageOrigin("isolitmus 1", "today", "isolitmus audit")
    >>> page = audit_page([Audit("<t>", 0, 4, ())], made)
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
        headline=headline,
        audit_assumptions=audit_assumptions,
        timeline=overview_svg,
    )


def _groups(audit: Audit) -> list[tuple[str, str, int, list[Finding]]]:
    """Return kind, certainty, number and first findings of each group."""
    found = groupby(audit.findings, lambda finding: (finding.kind, finding.certainty))
    return [(*key, audit.counts[key], list(group)[:FINDINGS_SHOWN]) for key, group in found]
