"""Formats of the linter hold any text of a user's file without being changed by it."""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

from hypothesis import example, given
from hypothesis import strategies as st

from isolitmus.jobs.lint.finding import FindingSite, LintFinding, LintResult
from isolitmus.jobs.lint_rule import RULES
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.jobs.render.lint import (
    finding_message,
    github_lines,
    lint_json,
    lint_lines,
    lint_markdown,
)
from isolitmus.jobs.render.lint_exchange import junit_text, sarif_document
from isolitmus.model.assumption import Place
from isolitmus.model.errors import printable

WORK = workload("shop")
TEXT = st.text(min_size=1) | st.sampled_from(["]]>", "--", "<b>&", "a,b:c%", "::error::", "|\n|"])


def result(name, file, problem):
    site = FindingSite(name, Place(file, 3, 1, 3))
    findings = tuple(
        LintFinding(code, (site, replace_file(site)), problem=problem)
        for code in ("ISO001", "ISO003")
    )
    return LintResult(WORK, "delta-serializable", Path(), frozenset(RULES), findings)


def replace_file(site):
    return FindingSite(site.name, site.place._replace(line=9))


def show(place):
    return place.file


@given(TEXT, TEXT, TEXT)
@example("a", "b.sql", "\x1b[31m\u202e\r\n::warning::x")
def test_every_format_holds_any_text(name, file, problem):
    made = result(name, file, problem)
    root = ET.fromstring(junit_text(made, show))
    assert len(root.findall(".//failure")) == 1
    assert len(root.findall(".//skipped")) == 1
    commands = [*github_lines(made, show)][:-1]
    assert [line.partition(" ")[0] for line in commands] == ["::notice", "::warning"]
    for line in commands:
        assert line.isprintable()
        found = re.fullmatch(r"::\w+ file=([^,:]*),line=3,endLine=3,col=1,title=[^,:]*::(.*)", line)
        assert decoded(found[1]) == printable(file.replace("\n", "")) or "\n" in file
        message = decoded(found[2]).partition("\nRelated: ")[0]
        expected = "\n".join(map(printable, finding_message(made.findings[0]).split("\n")))
        assert message.partition(": ")[2] == expected.partition(": ")[2]
    rows = [line for line in lint_markdown(made, show) if line.startswith("|")]
    assert len(rows) == 4
    for row in rows:
        assert len(re.findall(r"(?<!\\)\|", row.replace(r"\\", ""))) == 5
        assert "<" not in row
    log = json.loads(json.dumps(sarif_document(made, show, None)))
    assert [one["ruleId"] for one in log["runs"][0]["results"]] == ["ISO001", "ISO003"]
    assert json.loads(json.dumps(lint_json(made, show)))["findings"][0]["title"]
    assert all(printable(line).isprintable() for line in lint_lines(made))


def decoded(text):
    """What GitHub makes of an escaped text."""
    for sign, code in (("\r", "%0D"), ("\n", "%0A"), (":", "%3A"), (",", "%2C"), ("%", "%25")):
        text = text.replace(code, sign)
    return text


@given(st.permutations(["b.sql", "a.sql"]))
def test_a_fingerprint_does_not_depend_on_the_order_of_sites_and_lines(files):
    made = result("j", "a.sql", "p").findings[0]
    sites = tuple(FindingSite("j", Place(file, 1, 1, 1), f"SQL of {file}") for file in files)
    moved = tuple(FindingSite("j", Place(file, 7, 1, 7), f"SQL of {file}") for file in files)
    one, two = (replace(made, sites=some) for some in (sites, moved))
    other = replace(made, sites=sites[::-1])
    assert one.fingerprint(files) == two.fingerprint(files) == other.fingerprint(files[::-1])
    assert replace(one, code="ISO003").fingerprint(files) != one.fingerprint(files)
