"""Findings of the linter as text, JSON, GitHub annotations and Markdown."""

from __future__ import annotations

import re
from collections import Counter
from html import escape
from typing import TYPE_CHECKING

from isolitmus.jobs.render.prediction import assumed_lines, enumeration, meeting_words
from isolitmus.model.display import capitalized, count_of, first_reasons
from isolitmus.model.errors import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from isolitmus.jobs.lint.finding import BrokenInvariant, FindingSite, LintFinding, LintResult
    from isolitmus.jobs.lint_rule import Severity
    from isolitmus.jobs.readers.baseline_file import BaselineEntry
    from isolitmus.model.assumption import Place

OF_PROMISE = {
    "write-serializable": "a table that no serial order produces",
    "log-serializable": "versions that the order of the log does not produce serially",
}
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
AGAIN = "another run of itself"
FEW = 4
"""Maximum number of statements that a title names."""


def finding_title(one: LintFinding) -> str:
    """Return a finding in one line.

    Examples
    --------
    >>> from isolitmus.jobs.lint.finding import LintFinding, FindingSite
    >>> from isolitmus.model.assumption import Place
    >>> sites = tuple(FindingSite(name, Place(f"{name}.sql", 1, 1, 1)) for name in ("a", "b"))
    >>> finding_title(LintFinding("ISO201", sites)), finding_title(LintFinding("ISO202", sites[:1]))
    ('a and b may conflict', 'a always conflicts with another run of itself')
    """
    names = [site.name for site in one.sites]
    pair = len(names) == 2
    some = enumeration(names if len(names) <= FEW else [names[0], f"{len(names) - 1} others"])
    match one.code:
        case "ISO201":
            return f"{some} may conflict" if pair else f"{some} may conflict with {AGAIN}"
        case "ISO202":
            return f"{some} always conflict" if pair else f"{some} always conflicts with {AGAIN}"
        case "ISO301" | "ISO302" if one.violation is not None:
            return f"overlapping runs of {some} may leave {OF_PROMISE[one.violation.promise]}"
        case "ISO101" | "ISO102" if one.broken is not None:
            return _broken_title(one.broken)
        case "ISO304":
            return _with_null_title(one, some, pair=pair)
        case "ISO303" if one.meetings:
            return f"it is unknown whether {some} {'conflict' if pair else 'conflicts with itself'}"
        case "ISO303":
            verb = "" if one.problem.endswith(" is kept") else f"runs of {some} are "
            return f"it is unknown whether {verb}{one.problem}"
        case "ISO001":
            return f"statement not understood: {one.problem}"
        case "ISO005":
            return f"invalid statement: {one.problem}"
        case "ISO002":
            return f"unused ignore comment: {one.problem}"
        case "ISO003":
            return f"invalid ignore comment: {one.problem}"
        case "ISO004":
            return one.problem
    return f"{one.rule.name}: {one.problem}"


def _with_null_title(one: LintFinding, some: str, *, pair: bool) -> str:
    """Return in one line what happens only if a parameter is NULL."""
    if one.broken is not None:
        return f"{_broken_title(one.broken)}, but only if a parameter is NULL"
    if one.violation is not None:
        left = OF_PROMISE[one.violation.promise]
        return f"overlapping runs of {some} may leave {left}, but only if a parameter is NULL"
    beside = "" if pair else f" with {AGAIN}"
    return f"{some} may conflict{beside}, but only if a parameter is NULL"


def _broken_title(one: BrokenInvariant) -> str:
    """Return the violation of an invariant in one line."""
    stated = one.name if one.name == one.text else f"{one.name}, {one.text}"
    if one.half_done:
        return f"between its statements, a run of {one.jobs[0]} may violate {stated}"
    if one.alone:
        return f"one run of {one.jobs[0]} may violate {stated}, with no other run beside it"
    a, b = one.jobs
    who = f"two runs of {a}" if a == b else f"runs of {a} and {b}"
    return f"{who} that overlap may violate {stated}"


def finding_details(one: LintFinding) -> list[str]:
    """Return the sentences behind a finding: each direction of a pair, the smallest run, or the
    first reasons why an answer is unknown.
    """
    found = []
    for meeting in one.meetings:
        if meeting.word == "never":
            found.append(
                f"{meeting.loser} never aborts if {meeting.winner} commits meanwhile (proved)."
            )
        else:
            found.append(meeting_words(meeting))
    if one.violation is not None:
        *others, last = one.violation.members
        met = enumeration(list(others)) if others else "another run of it"
        found.append(
            f"Counterexample: {last} starts, {met} {'commit' if len(others) > 1 else 'commits'}"
            f" meanwhile, and {last} commits without seeing that, under"
            f" {one.violation.protocol} ({one.violation.promise} is violated)."
        )
    return [*found, *(f"Unknown: {why}." for why in first_reasons(one.why))]


def finding_message(one: LintFinding) -> str:
    """Return a finding with its details as one text."""
    return " ".join([f"{finding_title(one)}.", *finding_details(one)])


def site_words(site: FindingSite) -> str:
    """Return the name of a related statement."""
    return site.name or "ignore comment"


# Text


def lint_lines(result: LintResult, show: Callable[[Place], str] = str) -> Iterator[str]:
    """Yield the lines of a result: findings, what is gone of the baseline, assumptions, a summary.

    `show` returns a place as the user names it.
    """
    for one in result.new:
        yield f"{show(one.place)}: {one.code} {one.rule.severity}: {finding_title(one)}"
        yield from (f"    {line}" for line in finding_details(one))
        yield from (f"    {show(site.place)}: {site_words(site)}" for site in one.sites[1:])
    if result.new:
        yield ""
    for entry in result.gone:
        yield f"no longer found, remove it with --update-baseline: {baseline_entry_words(entry)}"
    if result.gone:
        yield ""
    yield from _conclusion(result)


def baseline_entry_words(entry: BaselineEntry) -> str:
    """Return a finding of the baseline in one line."""
    return f"{entry.code} {', '.join(entry.files)}: {entry.title}"


def _conclusion(result: LintResult) -> Iterator[str]:
    """Yield the summary, the limit that was reached, and the assumptions."""
    if result.workload.schedule:
        yield f"Assumed: {result.workload.schedule}"
    yield lint_summary(result)
    if result.ended is not None:
        yield f"{capitalized(result.ended)}; the remaining questions were not asked."
    work = result.workload
    yield from assumed_lines([one for one in work.assumptions if one != work.schedule])


def lint_summary(result: LintResult) -> str:
    """Return the counts of a result in one line."""
    counts = Counter(one.rule.severity for one in result.new)
    kinds = [count_of(counts[word], word) for word in SEVERITIES if counts[word]]
    many = count_of(len(result.new), "finding")
    said = [f"{many} ({', '.join(kinds)})" if kinds else "No findings"]
    for state, words in (("baseline", "in the baseline"), ("ignored", "ignored")):
        if known := result.of_state(state):  # type: ignore[arg-type] # both are states
            said.append(f"{len(known):,} {words}")
    statements = len(result.workload.statements) + len(result.workload.unread)
    said[-1] += f"; {count_of(statements, 'statement')} in {count_of(result.files, 'file')}"
    if result.workload.unread:
        said.append(
            f"{len(result.workload.unread):,} of them not understood, so their conflicts are"
            " unknown"
        )
    return f"{', '.join(said)}. Protocol: {result.protocol}."


# JSON


def lint_json(result: LintResult, show: Callable[[Place], str]) -> dict[str, object]:
    """Return a result in the format of docs/interface.md, 6; `show` returns the path of a file."""
    return {
        "workload": result.workload.name,
        "protocol": result.protocol,
        "findings": [
            {
                "rule": one.code,
                "name": one.rule.name,
                "severity": one.rule.severity,
                "state": one.state,
                "fingerprint": result.fingerprint(one),
                "title": finding_title(one),
                "details": finding_details(one),
                "places": [
                    {
                        "statement": site.name,
                        "file": show(site.place),
                        "line": site.place.line,
                        "column": site.place.column,
                        "end_line": site.place.end_line,
                    }
                    for site in one.sites
                ],
            }
            for one in result.findings
        ],
        "gone": [
            {"rule": one.code, "fingerprint": one.fingerprint, "title": one.title}
            for one in result.gone
        ],
        "files": result.files,
        "statements": len(result.workload.statements),
        "not_understood": [one.to_json() for one in result.workload.unread],
        "assumptions": list(result.workload.assumptions),
        "ended": result.ended,
    }


# GitHub

COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
PROPERTY = {**DATA, ":": "%3A", ",": "%2C"}


def github_lines(result: LintResult, show: Callable[[Place], str]) -> Iterator[str]:
    """Yield a workflow command of GitHub Actions for each new finding, then the summary.

    `show` returns the path of a file relative to the working folder.
    """
    for one in result.new:
        related = [
            f"Related: {show(site.place)}:{site.place.line}: {site_words(site)}"
            for site in one.sites[1:]
        ]
        text = "\n".join([finding_message(one), *related])
        place = {
            "file": show(one.place),
            "line": str(one.place.line),
            "endLine": str(one.place.end_line),
            "col": str(one.place.column),
            "title": f"{one.code} {one.rule.name}",
        }
        if one.place.end_line != one.place.line:
            del place["col"]
        properties = ",".join(f"{key}={_replaced(value, PROPERTY)}" for key, value in place.items())
        yield f"::{COMMANDS[one.rule.severity]} {properties}::{_replaced(text, DATA)}"
    yield _replaced(lint_summary(result), DATA)


def _replaced(text: str, signs: dict[str, str]) -> str:
    """Return a text with signs replaced, each once.

    Examples
    --------
    >>> _replaced("a%,b", PROPERTY)
    'a%25%2Cb'
    """
    lines = (printable(line) for line in text.split("\n"))
    return signs["\n"].join("".join(signs.get(sign, sign) for sign in line) for line in lines)


# Markdown

MARKED = re.compile(r"([\\`*_{}\[\]()#!|~@:.])")


def markdown_text(text: str) -> str:
    r"""Return a text that Markdown shows as it is, within a cell of a table.

    Examples
    --------
    >>> print(markdown_text("a|b <i> `x`"))
    a\|b &lt;i&gt; \`x\`
    """
    return MARKED.sub(r"\\\1", escape(printable(" ".join(text.split())), quote=False))


def lint_markdown(result: LintResult, show: Callable[[Place], str]) -> Iterator[str]:
    """Yield the result as Markdown for a job summary; all texts from files are escaped."""
    yield "## isolitmus lint"
    yield ""
    yield markdown_text(lint_summary(result))
    if result.new:
        yield ""
        yield "| rule | severity | place | finding |"
        yield "|---|---|---|---|"
        for one in result.new:
            places = ", ".join(
                markdown_text(f"{show(site.place)}:{site.place.line}") for site in one.sites
            )
            said = markdown_text(finding_message(one))
            yield f"| {one.code} | {one.rule.severity} | {places} | {said} |"
    if result.gone:
        yield ""
        yield "No longer found:"
        yield ""
        yield from (f"- {markdown_text(baseline_entry_words(entry))}" for entry in result.gone)
    if result.ended is not None:
        yield ""
        yield markdown_text(f"{capitalized(result.ended)}; the remaining questions were not asked.")
    if result.workload.assumptions:
        yield ""
        yield "Assumptions:"
        yield ""
        yield from (f"- {markdown_text(one)}" for one in result.workload.assumptions)
