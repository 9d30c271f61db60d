"""The report, word for word, and what holds of the page whatever is in it.

After a wanted change: ISOLITMUS_UPDATE=1 pytest tests/checker/render/test_demo_page.py.
"""

import os
import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from html_pages import Outline, check_form, check_policy
from jinja2.filters import escape

from isolitmus.checker import check, compare, run, separate
from isolitmus.checker.execution import run_result as runs
from isolitmus.checker.execution.run_diff import run_differences
from isolitmus.checker.execution.run_result import RunResult
from isolitmus.checker.render.demo_page import DemoAdvice, Demonstration, DemoRun, demo_page
from isolitmus.checker.render.lattice_pages import lattices_page
from isolitmus.checker.render.notebook import separation_html
from isolitmus.checker.render.page_parts import PageOrigin
from isolitmus.checker.render.sweeps import CountedPair, Stops, SweepPage, sweep_page
from isolitmus.checker.search.separation_result import Separation
from isolitmus.model.verdict import Forbidden
from isolitmus.specs import level, litmus, protocol, scope, spec
from isolitmus.specs.files.litmus_file import read_litmus

GOLDEN = Path(__file__).parents[2] / "golden" / "report.html"
LEVELS = ["log-serializable", "serializable", "snapshot-isolation", "write-serializable"]
ENGINE = "delta-spark 4.4.0, Spark 4.2.0"
MADE = PageOrigin("isolitmus 0.1.0", "2026-01-31 12:00 UTC", "isolitmus demo --out report")


@pytest.fixture(scope="module")
def found():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "levels", lambda _log: LEVELS)
        yield separate(
            spec("delta-write-serializable"),
            spec("write-serializable"),
            scope("orders"),
            unexplained=True,
        )


def replayed(predicted, **changes):
    """The model replayed on itself, under another name; ``changes`` are what it did otherwise."""
    done = replace(predicted.run, engine="delta", engine_version=ENGINE, **changes)
    return DemoRun(
        predicted, RunResult(predicted.litmus, done), run_differences(predicted.run, done)
    )


def page(found, *replays, headline="The model replayed on itself.", advised=()):
    finding = Demonstration(
        found, replays, "A title", "What was promised.", "Why it matters.", tuple(advised)
    )
    text = demo_page([finding], headline, MADE)
    return re.sub(r"\b\d+\.\d s\b", "… s", text)


@pytest.fixture(scope="module")
def text(found):
    names = ("delta-serializable", "delta-write-serializable")
    replays = [replayed(run(found.litmus, protocol(name))) for name in names]
    advised = DemoAdvice("Do it", "So.", "SELECT 1", True, "It was checked.", "It costs.")
    return page(found, *replays, advised=[advised])


@pytest.mark.slow
def test_the_report_reads_as_it_should(text):
    if os.environ.get("ISOLITMUS_UPDATE"):
        GOLDEN.write_text(text, "utf-8")
    assert text == GOLDEN.read_text("utf-8")


def pages_with_styles(text):
    """The demo's page, and those whose tables and pictures have a style of their own."""
    yield text
    yield lattices_page(compare([level("serializable"), level("causal")], "abstract"), MADE)
    counts = [CountedPair(n, 196, "p", "l", 102, 8, 0, 8) for n in (2, 3)]
    stops = [Stops("p", "l", 0, 1, 7, 3), Stops("p", "l", 1, 0, 7, 4)]
    yield sweep_page(SweepPage("T", "S", ["A", "B"], counts, stops, []), [], {}, MADE)


@pytest.mark.slow
def test_a_page_allows_its_own_styles_and_nothing_else(text):
    for one in pages_with_styles(text):
        check_policy(one)


@pytest.mark.slow
def test_the_page_is_well_formed(text):
    check_form(text)
    assert text.count("<svg") == text.count('role="img"') == text.count("<figure>")


@pytest.mark.slow
def test_the_page_stands_alone(text):
    outline = Outline(text)
    assert not outline.tags & {"script", "link", "img", "iframe", "object", "base"}
    links = {value for name, value in outline.attributes if name in ("src", "href", "action")}
    assert links == {"#history-1", "#top"}
    assert set(re.findall(r"https?://[^\"<\s]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "url(" not in text
    assert "@import" not in text
    assert "undefined" not in text


@pytest.mark.slow
def test_every_edge_of_the_violation_has_its_reason_on_the_page(found, text):
    for edge in found.violation.cycle:
        assert escape(f"{edge.source} before {edge.target}, because {edge.why}") in text
    assert text.count('<path class="edge cycle"') == len(found.violation.cycle)


def test_the_page_begins_with_both_levels_side_by_side(found, text):
    header = text[: text.index("</header>")]
    assert header.count("<svg") == 2
    for words in (
        "Delta Lake, Serializable", "aborts cleanup with ConcurrentAppendException",
        "Delta Lake, WriteSerializable", "commits all 3", "No serial order of the statements",
        *(f"<dt>{name}</dt>" for name in found.litmus.transactions),
    ):  # fmt: skip
        assert words in header
    marked = re.findall(r'<text class="cell extra"[^>]*>(.*?)<', header)
    assert marked == ["100", "25", "mon"]


def test_rows_stand_under_the_names_of_their_columns(text):
    tables = re.findall(r'<table class="data">(.*?)</table>', text, re.DOTALL)
    assert len(tables) > 10
    for table in tables:
        assert re.findall(r'<th scope="col">(.*?)</th>', table) == ["id", "amount", "day"]
    assert text.count("✕ another table") == 6
    assert "✓ the same table" not in text


def test_what_is_equal_stands_once(text):
    """Predicted and observed in one column, folded away; levels are counted, their names folded."""
    assert text.count(f"predicted by the model and observed on {ENGINE}") == 4
    assert ">observed on" not in text
    assert "≠ differs" not in text
    assert '<details open="open">' not in text
    assert "The verdicts of 4 levels: 4 allowed</summary>" in text
    assert "The verdicts of 4 levels: 1 allowed, 3 forbidden</summary>" in text


@pytest.mark.slow
def test_advice_says_whether_it_was_found_to_help(found, text):
    assert "Remedies" in text
    assert "✓ Checked.</span> It was checked. It costs." in text
    useless = DemoAdvice("Do it", "So.", "", False, "One is left.", "")
    assert "✕ Not enough.</span> One is left." in page(
        found, replayed(run(found.litmus, protocol("delta-serializable"))), advised=[useless]
    )


def test_the_foot_says_how_the_page_was_made(text):
    foot = text[text.index('<p class="made">') :]
    assert "isolitmus 0.1.0, 2026-01-31 12:00 UTC" in foot
    assert "<code>isolitmus demo --out report</code>" in foot


@pytest.mark.slow
def test_what_differs_is_marked_in_words_too(found):
    predicted = run(found.litmus, protocol("delta-write-serializable"))
    versions = [dict(tables) for tables in predicted.run.versions]
    versions[-1]["orders"] = ((2, 30, "tue"), (0, 65, "total"), (0, 65, "total"))
    replay = replayed(predicted, versions=tuple(versions))
    shown = page(found, replay)
    assert '<p class="headline differ">' in shown
    assert "table orders at version 3: predicted" in shown
    differing = re.findall(r'<td class="differs">(.*?)</table>', shown, re.DOTALL)
    predicted_cell, observed_cell = differing[:2]
    marked = [
        re.findall(r'<tr class="extra"><td>(.*?)</td><td>(.*?)</td>', cell)
        for cell in differing[:2]
    ]
    assert marked == [[("100", "25")], [("0", "65")]]
    assert "≠ differs:" in observed_cell
    assert "≠ differs:" not in predicted_cell
    assert '<details open="open">' in shown
    assert 'class="differs"' not in page(found, replayed(predicted))


@pytest.mark.slow
def test_what_was_not_run_or_not_found_is_said(found):
    predicted = run(found.litmus, protocol("delta-write-serializable"))
    shown = page(found, DemoRun(predicted, None, ()), headline="Nothing was replayed.")
    assert "Not replayed on the engine." in shown
    assert "then carried out" not in shown
    nothing = Separation("a", "b", "table", False, "up to 2 transactions", 7, 0.1)
    assert "Not found: up to 2 transactions." in page(nothing)


EVIL = '''
title    = "Markup in a statement"
schedule = "a b"
[table]
columns = "id INT, name STRING"
[transactions]
a = """INSERT INTO t VALUES (1, '<script>alert("1")</script> & x')"""
b = "DELETE FROM t"
'''


@pytest.mark.slow
def test_text_is_escaped(found):
    judged = run(read_litmus(EVIL, "evil"), protocol("delta-serializable"))
    shown = page(replace(found, litmus=judged.litmus), replayed(judged), headline="<script>")
    for html in (shown, judged._repr_html_()):
        assert "script" not in Outline(html).tags
        assert "&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt; &amp; x" in html


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_light_and_dark_have_contrast(text):
    """WCAG 2 AA for text: 4.5 to 1."""
    light, dark = (
        dict(re.findall(r"--([\w-]+): (#\w{6});", block))
        for block in (text.split("@media")[0], text.split("prefers-color-scheme: dark")[1])
    )
    assert light.keys() == dark.keys()
    pairs = [
        *product(("ink", "soft", "bad", "good", "link"), ("page", "panel", "code")),
        *product(("ink", "bad"), ("bad-page",)),
        *product(("ink", "good"), ("good-page",)),
        ("on", "bad"),
    ]
    for palette, (front, back) in product((light, dark), pairs):
        a, b = sorted(luminance(palette[name]) for name in (front, back))
        assert (b + 0.05) / (a + 0.05) >= 4.5, (front, back)


@pytest.mark.slow
def test_a_run_and_verdicts_show_themselves_in_a_notebook():
    judged = run(litmus("hole-partitioned"), protocol("delta-write-serializable"))
    skew = check(litmus("history-write-skew"), [level(name) for name in LEVELS[1:3]])
    for html, title in ((judged._repr_html_(), "delete"), (skew._repr_html_(), "history-write")):
        outline = Outline(html)
        ET.fromstring(html)
        assert title in html
        assert "svg" in outline.tags
        assert "prefers-color-scheme: dark" in html
        styles = html[html.index("<style>") + 7 : html.index("</style>")]
        selectors = re.findall(r"(?:^|\})\s*([^{}@]+)\{", styles)
        assert all(".isolitmus" in part for part in selectors), selectors
    violations = [v for v in judged.levels.values() if isinstance(v, Forbidden)]
    for edge in violations[-1].violations[0].cycle:
        assert edge.why in judged._repr_html_()
    assert "T1 before T2, because T1 read y0 and T2 wrote the next version y2" in skew._repr_html_()
    assert '<span class="yes">allowed</span>: <code>snapshot-isolation</code>' in skew._repr_html_()


def test_a_notebook_does_not_move_tables():
    """Jupyter's sheet, which may come later, centres tables and aligns their cells to the right."""
    html = run(litmus("reorder"), protocol("delta-serializable"))._repr_html_()
    rule = re.search(r"\.isolitmus\.notebook :is\(th, td, caption\) \{([^}]*)\}", html)
    assert "text-align: left" in rule[1]
    assert re.search(r"\.isolitmus\.notebook table \{ margin: 0;", html)


def test_a_separation_shows_itself_in_a_notebook(found):
    html = separation_html(found)
    Outline(html)
    assert html.count("<svg") == 2
    assert all(assumption in html for assumption in found.assumptions)
    assert html.count('<table class="data">') == 4
    assert "3 transactions that delta-write-serializable admits" in html
    test = litmus("history-write-skew")
    verdict = check(test, [level("serializable")]).levels["serializable"]
    abstract = replace(
        found, a="snapshot-isolation", b="serializable", unexplained=False, transactions=2,
        litmus=test, forbidden=verdict, serial=None,
    )  # fmt: skip
    html = separation_html(abstract)
    Outline(html)
    assert html.count("<svg") == 1
    assert "r(x0) r(y0) w(x1)" in html
    nothing = Separation(
        "a", "b", "table", False, "up to 2 transactions", 7, 0.1, assumptions=("time stands still",)
    )
    html = separation_html(nothing)
    assert "a admits nothing that b forbids" in html
    assert "Assumptions: time stands still." in html
