"""Findings of the linter in formats of other tools: SARIF 2.1.0 and JUnit XML.

The JUnit XML has the elements and attributes of the schema of Jenkins' xUnit plugin
(junit-10.xsd).
"""

from __future__ import annotations

from collections import defaultdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from isolitmus.jobs.lint_rule import RULES
from isolitmus.jobs.render.lint import (
    finding_details,
    finding_message,
    finding_title,
    lint_summary,
    site_words,
)
from isolitmus.model.errors import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from isolitmus.jobs.lint.finding import FindingSite, LintFinding, LintResult
    from isolitmus.model.assumption import Place

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
BASE = "SRCROOT"
FINGERPRINT = "isolitmus/v1"


def sarif_document(
    result: LintResult,
    uri: Callable[[Place], str],
    page: str | None,
    *,
    baseline: bool = False,
) -> dict[str, Any]:
    """Return the result as a SARIF 2.1.0 log.

    Parameters
    ----------
    result : LintResult
        Findings.
    uri : callable
        Function that returns the URI of a place's file, relative to the working folder or absolute.
    page : str or None
        URL of the page about the rules, if it is on the web.
    baseline : bool
        Whether the findings were compared with a baseline.
    """
    codes = sorted(result.codes | {one.code for one in result.findings})
    number = {code: k for k, code in enumerate(codes)}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "isolitmus",
                        "version": version("isolitmus"),
                        "rules": [_sarif_rule(code, page) for code in codes],
                    }
                },
                "invocations": [_invocation(result)],
                "originalUriBaseIds": {
                    BASE: {"description": {"text": "The working folder of the command."}}
                },
                "columnKind": "unicodeCodePoints",
                "results": [
                    _sarif_result(result, one, number, uri, baseline=baseline)
                    for one in result.findings
                ],
                "properties": {
                    "protocol": result.protocol,
                    "assumptions": list(result.workload.assumptions),
                },
            }
        ],
    }


def _sarif_rule(code: str, page: str | None) -> dict[str, Any]:
    rule = RULES[code]
    mend = f" To mend it: {rule.mend}" if rule.mend else ""
    place = f"docs/lint.md, section {code} {rule.name}"
    return {
        "id": code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.summary},
        **({} if page is None else {"helpUri": f"{page}#{rule.anchor}"}),
        "help": {"text": f"{rule.summary}{mend} See {place}."},
        "defaultConfiguration": {"level": rule.severity, "enabled": rule.default},
    }


def _invocation(result: LintResult) -> dict[str, Any]:
    """Return whether all questions were asked, and the limit if not."""
    found: dict[str, Any] = {"executionSuccessful": result.ended is None}
    if result.ended is not None:
        text = f"{printable(result.ended)}; the remaining questions were not asked"
        found["toolExecutionNotifications"] = [{"level": "error", "message": {"text": text}}]
    return found


def _sarif_result(
    result: LintResult,
    one: LintFinding,
    number: Mapping[str, int],
    uri: Callable[[Place], str],
    *,
    baseline: bool,
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "ruleId": one.code,
        "ruleIndex": number[one.code],
        "level": one.rule.severity,
        "message": {"text": printable(finding_message(one))},
        "locations": [_location(one.sites[0], uri)],
        "partialFingerprints": {FINGERPRINT: result.fingerprint(one)},
    }
    if one.sites[1:]:
        found["relatedLocations"] = [
            {"id": k, **_location(site, uri), "message": {"text": printable(site_words(site))}}
            for k, site in enumerate(one.sites[1:], 1)
        ]
    if baseline:
        found["baselineState"] = "unchanged" if one.state == "baseline" else "new"
    if one.state == "ignored":
        suppression: dict[str, Any] = {"kind": "external"}
        if one.comment is not None:
            suppression = {
                "kind": "inSource",
                "location": {"physicalLocation": _physical(one.comment, uri)},
            }
        found["suppressions"] = [suppression]
    return found


def _location(site: FindingSite, uri: Callable[[Place], str]) -> dict[str, Any]:
    found: dict[str, Any] = {"physicalLocation": _physical(site.place, uri)}
    if site.name:
        found["logicalLocations"] = [{"name": site.name, "kind": "statement"}]
    return found


def _physical(place: Place, uri: Callable[[Place], str]) -> dict[str, Any]:
    address = uri(place)
    artifact = {"uri": address}
    if ":" not in address.partition("/")[0]:
        artifact["uriBaseId"] = BASE
    region = {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": max(place.end_line, place.line),
    }
    return {"artifactLocation": artifact, "region": region}


def junit_text(result: LintResult, show: Callable[[Place], str]) -> str:
    """Return the result as JUnit XML: a suite for each file, a failed case for each finding.

    A file without findings has one case, which passes. Findings that are ignored or in the baseline
    are skipped cases, and so are notes.
    """
    by_file: dict[str, list[LintFinding]] = defaultdict(list)
    for place in _places(result):
        by_file[show(place)]
    for one in result.findings:
        by_file[show(one.place)].append(one)
    suites = [_suite(name, found, show) for name, found in by_file.items()]
    tests, failures = sum(suite[0] for suite in suites), sum(suite[1] for suite in suites)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="isolitmus lint" tests="{tests}" failures="{failures}" errors="0">',
        *(line for suite in suites for line in suite[2]),
        "</testsuites>",
        f"<!-- {_xml(lint_summary(result)).replace('--', '- -')} -->",
    ]
    return "\n".join(lines) + "\n"


def _places(result: LintResult) -> Iterator[Place]:
    """Yield the places of all statements."""
    work = result.workload
    places = [*(one.location for one in work.statements), *(one.location for one in work.unread)]
    yield from (place for place in places if place is not None)


def _suite(
    name: str, found: list[LintFinding], show: Callable[[Place], str]
) -> tuple[int, int, list[str]]:
    """Return the numbers of cases and failures of a suite, and its lines."""
    cases = [_case(name, one, show) for one in found]
    cases = cases or [(0, 0, [f"    <testcase name={_quoted(name)} classname={_quoted(name)}/>"])]
    failures, skipped = sum(case[0] for case in cases), sum(case[1] for case in cases)
    head = (
        f'  <testsuite name={_quoted(name)} tests="{len(cases)}" failures="{failures}" errors="0"'
        f' skipped="{skipped}">'
    )
    return (
        len(cases),
        failures,
        [head, *(line for case in cases for line in case[2]), "  </testsuite>"],
    )


def _case(name: str, one: LintFinding, show: Callable[[Place], str]) -> tuple[int, int, list[str]]:
    """Return whether a case fails and whether it is skipped, as numbers, and its lines."""
    title = f"{one.code} {one.place.line}:{one.place.column} {finding_title(one)}"
    begin = f"    <testcase name={_quoted(title)} classname={_quoted(name)}>"
    if one.state != "new" or one.rule.severity == "note":
        why = {"new": "note", "baseline": "in the baseline", "ignored": "ignored"}[one.state]
        skipped = f"      <skipped message={_quoted(why)}/>"
        return 0, 1, [begin, skipped, "    </testcase>"]
    text = "\n".join(
        [
            f"{show(one.place)}:{one.place.line}:{one.place.column}: {finding_title(one)}",
            *finding_details(one),
            *(f"{show(s.place)}:{s.place.line}: {site_words(s)}" for s in one.sites[1:]),
        ]
    )
    failure = (
        f"      <failure message={_quoted(finding_title(one))} type={_quoted(one.code)}>"
        f"{_xml(text)}</failure>"
    )
    return 1, 0, [begin, failure, "    </testcase>"]


def _xml(text: str) -> str:
    """Return a text for XML, in which control characters are escaped as in other output."""
    return escape("\n".join(printable(line) for line in text.split("\n")))


def _quoted(text: str) -> str:
    """Return a text as the value of an attribute."""
    return quoteattr(printable(" ".join(text.split())))
