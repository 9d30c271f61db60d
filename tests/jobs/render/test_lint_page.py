"""The page of the linter: findings by file, examples, what is known, and any text of a file."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from html_pages import check_form, check_policy
from hypothesis import example, given
from hypothesis import strategies as st

from isolitmus.checker.render.page_parts import PageOrigin
from isolitmus.jobs.lint.finding import FindingSite, LintFinding, LintResult
from isolitmus.jobs.lint_rule import RULES
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.jobs.render import lint_page as pages
from isolitmus.jobs.render.lint_page import lint_page
from isolitmus.model.assumption import Place
from isolitmus.model.errors import visible

MADE = PageOrigin("isolitmus 0.1.0", "2026-01-31 12:00 UTC", "isolitmus lint")
DDL = "CREATE TABLE events (id BIGINT, kind STRING, day DATE) USING delta PARTITIONED BY (day)"
DEDUPE = "DELETE FROM events WHERE day = :day AND kind = '<script>'"
APPEND = "-- <script>\nINSERT INTO events VALUES (:id, '<script>', :day)"
MERGE = "MERGE INTO events USING staged ON events.id = staged.id WHEN NOT MATCHED THEN INSERT *"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    texts = {"tables": DDL, "<script>": DEDUPE, "append": APPEND, "odd": "FROBNICATE <script>"}
    for name, text in texts.items():
        (tmp_path / f"{name}.sql").write_text(text + "\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(call, folder, *words):
    status, out, err = call("lint", ".", *words, "--no-cache", "--html", "page.html")
    assert err == ""
    page = (folder / "page.html").read_text("utf-8")
    outline = check_form(page)
    check_policy(page)
    assert "script" not in outline.tags
    return status, out, page


@pytest.mark.slow
def test_a_finding_has_its_place_partner_mend_and_smallest_schedule(call, folder):
    status, out, page = written(call, folder)
    assert status == 1
    assert "3 findings (3 warnings)" in out
    assert "3 findings (3 warnings)" in page
    assert "<h2>&lt;script&gt;.sql</h2>" in page
    assert "&lt;script&gt;.sql:1:1: _script_ <code>" in page
    assert "append.sql:2:1: append <code>INSERT INTO events VALUES" in page
    assert "ISO201 jobs-may-conflict" in page
    assert f"<em>To mend it</em>: {RULES['ISO201'].mend}" in page
    assert "ISO005 statement-invalid" in page
    assert "<code>FROBNICATE &lt;script&gt;</code>" in page
    titles = re.findall(r"<summary>Example: (.*?)</summary>", page)
    assert titles == [
        "_script_ conflicts with _script__2: ConcurrentAppendException",
        "_script_ conflicts with _script__2: ConcurrentDeleteReadException",
        "_script_ conflicts with append: ConcurrentAppendException",
    ]
    assert page.count("<svg") == 3
    assert "DELETE FROM events WHERE day = :day AND kind = &#39;&lt;script&gt;&#39;" in page
    assert "without an example" not in page


@pytest.mark.slow
def test_a_broken_invariant_and_a_violated_promise_have_examples(call, folder):
    (folder / "odd.sql").write_text(MERGE, "utf-8")
    (folder / "isolitmus.toml").write_text('[invariants]\nkey = "unique(id)"\n', "utf-8")
    _, out, page = written(
        call, folder, "--select", "ISO101,ISO302", "--level", "WriteSerializable"
    )
    assert "ISO101" in out and "ISO302" in out
    assert page.count("<summary>Example: ") == page.count("<svg") >= 2
    assert "one run of odd may violate key, unique(id)" in page


@pytest.mark.slow
def test_what_is_known_stands_at_the_end(call, folder):
    (folder / "odd.sql").write_text("-- isolitmus: ignore[ISO202]\nDELETE FROM events", "utf-8")
    assert call("lint", ".", "--baseline", "b.json", "--update-baseline")[0] == 0
    status, _, page = written(call, folder, "--baseline", "b.json")
    assert status == 0
    assert page.index("<h2>In the baseline</h2>") < page.index("<h2>Ignored</h2>")
    assert "<h2>&lt;script&gt;.sql</h2>" not in page
    assert "<svg" not in page
    (folder / "append.sql").unlink()
    _, _, page = written(call, folder, "--baseline", "b.json")
    assert "<h2>No longer found</h2>" in page


@pytest.mark.slow
def test_a_limit_leaves_out_examples_and_says_so(call, folder, monkeypatch):
    monkeypatch.setattr(pages, "MOST_EXAMPLES", 1)
    _, _, page = written(call, folder)
    assert "1 finding without an example on this page" in page
    assert page.count("<svg") == 2
    _, out, page = written(call, folder, "--time", "0")
    assert "the remaining questions were not asked" in out
    assert "the remaining questions were not asked" in page


WORK = workload("shop")
TEXT = st.text(min_size=1) | st.sampled_from(["]]>", "--", "<b>&", '"><i>', "{{ 1 }}", "{% raw %}"])


@given(TEXT, TEXT, TEXT, TEXT)
@example("a", "b.sql", "\x1b[31m\u202e\r\n</p>", "<!--")
def test_a_page_holds_any_text(name, file, problem, sql):
    one = replace(WORK.statements[0], name=name, sql=sql)
    job = replace(WORK.jobs["ingest"], statements=(one,))
    site = FindingSite(name, Place(file, 3, 1, 3))
    findings = tuple(
        LintFinding(code, (site,), problem=problem, state=state)
        for code, state in (("ISO001", "new"), ("ISO003", "ignored"))
    )
    work = replace(WORK, jobs={"ingest": job}, schedule=problem)
    result = LintResult(work, "delta-serializable", Path(), frozenset(RULES), findings)
    page = lint_page(result, MADE, str, path=lambda place: place.file)
    outline = check_form(page)
    assert outline.tags <= {
        "html", "head", "meta", "title", "style", "body", "header", "main", "footer", "h1", "h2", "h3",
        "p", "strong", "em", "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "a", "span",
        "section", "ul", "li", "code",
    }  # fmt: skip
    assert visible(page) == page
