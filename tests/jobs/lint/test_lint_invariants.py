"""Invariants in the linter: rules ISO101 and ISO102, settings, cached answers, altered tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from isolitmus.jobs.lint.answer_cache import AnswerCache
from isolitmus.jobs.lint.linter import FindingExamples, lint_workload
from isolitmus.jobs.readers.lint_settings import LintSettings
from isolitmus.jobs.readers.workload_file import read_workload

DDL = 'ddl = ["CREATE TABLE t (id INT, v STRING) USING delta", "CREATE TABLE s (id INT, v STRING)"]'
MERGE = (
    "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN"
    " INSERT *"
)
LOOKUP = """
[jobs.register]
sql = "INSERT INTO t SELECT :id, :v WHERE :n = 0"
let = { n = "SELECT count(*) FROM t WHERE id = :id" }
parameters = { id = "INT", v = "STRING" }
"""
INVARIANTS = '[invariants]\nkey = "t: unique(id)"\nnamed = "t: not null(v)"\n'


def linted(text, cache=None):
    settings = LintSettings(Path(), select=("ISO1", "ISO3"), ignore=("ISO301", "ISO302"))
    work = read_workload(f"{DDL}\n{text}", "work")
    return lint_workload(work, "delta-serializable", settings, cache=cache)


def told(result):
    return [(one.code, one.broken and one.broken.jobs) for one in result.findings]


@pytest.mark.slow
def test_a_finding_for_each_invariant_and_set_of_jobs():
    found = linted(f"[jobs]\nload = '{MERGE}'\n{LOOKUP}{INVARIANTS}")
    assert sorted(told(found)) == [
        ("ISO101", ("load",)),
        ("ISO101", ("register", "register")),
        ("ISO102", ("load",)),
    ]
    for one in found.findings:
        (test,) = FindingExamples(found).of(one)
        assert test.transactions


def test_a_kept_invariant_is_no_finding():
    stated = INVARIANTS + 'source = "s: unique(id)"\nnamed_there = "s: not null(v)"\n'
    assert told(linted(f"[jobs]\nload = '{MERGE}'\n{stated}")) == []


@pytest.mark.slow
def test_answers_about_invariants_are_cached():
    text = f"[jobs]\nload = '{MERGE}'\n{LOOKUP}{INVARIANTS}"
    cache = AnswerCache(None)
    first, second = linted(text, cache), linted(text, cache)
    assert first.asked
    assert not second.asked
    assert told(first) == told(second)
    other = text.replace('named = "t: not null(v)"', 'named = "s: unique(id)"')
    assert told(linted(other, cache)) == told(linted(other))


@pytest.mark.slow
def test_a_damaged_answer_is_asked_again_or_unknown():
    text = f"[jobs]\nload = '{MERGE}'\n{INVARIANTS}"
    for damage in ({}, {"key": 3}, {"key": {"why": [3], "broken": []}}, [], "x"):
        cache = AnswerCache(None)
        first = linted(text, cache)
        for key in [*cache._used]:
            if isinstance(cache._used[key], dict) and "key" in cache._used[key]:
                cache._used[key] = damage
        again = linted(text, cache)
        unknown = {one.code for one in again.findings} == {"ISO303"}
        assert told(again) == told(first) or unknown


def test_a_statement_that_alters_the_table_is_part_of_a_question():
    """An INSERT never aborts because of another one, but does if a job changes the properties."""
    text = "[jobs]\na = 'INSERT INTO t VALUES (1, \"x\")'\nb = 'INSERT INTO s VALUES (1, \"x\")'\n"
    settings = LintSettings(Path(), select=("ISO2",))
    cache = AnswerCache(None)
    alter = "c = \"ALTER TABLE t SET TBLPROPERTIES ('team' = 'x')\"\n"
    for more in ("", alter, ""):
        work = read_workload(f"{DDL}\n{text}{more}", "work")
        found = lint_workload(work, "delta-serializable", settings, cache=cache)
        fresh = lint_workload(work, "delta-serializable", settings)
        assert [(one.code, *(site.name for site in one.sites)) for one in found.findings] == [
            (one.code, *(site.name for site in one.sites)) for one in fresh.findings
        ]
        assert bool(found.findings) == bool(more)
