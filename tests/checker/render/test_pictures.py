"""Pictures: well-formed, complete, nothing over the edge or over something else, deterministic."""

import re
from itertools import combinations, pairwise
from xml.etree import ElementTree as ET

import pytest
from case_checks import check_cases
from catalogue_runs import predicted
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker.execution.commit_loop import unfit_table
from isolitmus.checker.render.colours import DARK, LIGHT, PICTURE, RULES, picture_style
from isolitmus.checker.render.graph_picture import arrows, graph_svg
from isolitmus.checker.render.page_parts import figure
from isolitmus.checker.render.run_panels import (
    against_the_log,
    column_rows,
    conclusion_words,
    panel_svg,
    side_by_side_svg,
)
from isolitmus.checker.render.timeline import WIDTH, timeline_svg
from isolitmus.model.litmus import Litmus
from isolitmus.model.reason import Edge
from isolitmus.model.schedule import Schedule
from isolitmus.model.verdict import Violation
from isolitmus.specs import litmus, protocol
from isolitmus.specs.files.catalogue import litmus_names
from isolitmus.specs.files.spec_catalogue import related_protocols

SVG = "{http://www.w3.org/2000/svg}"


def on_tables():
    """Return the names of the catalogue's litmus tests on tables that Spark can have."""
    every = [name for name in litmus_names() if isinstance(litmus(name), Litmus)]
    return [name for name in every if not unfit_table(litmus(name), protocol(PROTOCOLS[0]))]


def texts(svg):
    return [text.text for text in ET.fromstring(svg).iter(f"{SVG}text")]


def box_of(svg):
    return tuple(map(float, ET.fromstring(svg).get("viewBox").split()))


def rectangles(svg):
    """The nodes and what is behind the labels, as left, top, right, bottom."""
    for rect in ET.fromstring(svg).iter(f"{SVG}rect"):
        x, y, width, height = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
        yield x, y, x + width, y + height


def ring(n):
    names = [f"T{k}" for k in range(1, n + 1)]
    return names, [
        Edge(a, b, "rw", f"{a} missed {b}") for a, b in pairwise([*names, names[0]]) if a != b
    ]


def look_at_timelines(name):
    test = litmus(name)
    for spec in related_protocols():
        judged = predicted(name, spec)
        svg = timeline_svg(test.schedule, judged.run)
        shown = texts(svg)
        versions = [f"v{k}" for k in range(len(judged.run.versions))]
        words = {word for text in shown for word in text.split()}
        assert words >= {*test.transactions, *versions}
        refused = [t for t in judged.run.transactions.values() if "Exception" in t.outcome]
        assert svg.count('class="abort"') == len(refused)
        assert svg.count('class="commit"') == len(
            [t for t in judged.run.transactions.values() if t.outcome == "committed"]
        )


@pytest.mark.slow
def test_the_timeline_of_every_litmus_test_shows_each_transaction_and_version():
    assert len(check_cases(look_at_timelines, on_tables())) >= 250


def test_a_schedule_alone_has_neither_fates_nor_versions():
    svg = timeline_svg(Schedule.parse("a.start b a.commit", ["a", "b"]))
    assert texts(svg) == ["a", "b"]


PROTOCOLS = ("delta-serializable", "delta-write-serializable")


def inside(svg, width):
    """Texts end before the picture does, by the widths that they are drawn for; so do
    rectangles.
    """
    for text in ET.fromstring(svg).iter(f"{SVG}text"):
        names = text.get("class").split()
        size = 17 if "heading" in names else 13 if "conclusion" in names else 11
        if "middle" not in names and "version" not in names:
            assert float(text.get("x")) + 0.5 * size * len(text.text) <= width, text.text
    assert all(left >= 0 and right <= width for left, _, right, _ in rectangles(svg))


def beside(name):
    return [predicted(name, spec) for spec in PROTOCOLS]


def look_at_panel(name):
    """Check the panel of a litmus test, and return how many rows it shows."""
    judged = predicted(name, "delta-write-serializable")
    svg = panel_svg(judged)
    inside(svg, WIDTH)
    shown = {*texts(svg)}
    assert {*judged.litmus.transactions} <= {word for text in shown for word in text.split()}
    tables = against_the_log(judged)
    for table in tables:
        assert all(len(row.values) == len(table.columns) for row in table.rows)
        assert {*table.columns[:2]} <= shown
    return sum(len(table.rows) for table in tables)


@pytest.mark.slow
def test_every_litmus_test_has_its_panels():
    rows = check_cases(look_at_panel, on_tables())
    assert len(rows) >= 250
    assert sum(map(bool, rows)) > 150


def test_both_levels_stand_side_by_side():
    """One refuses, the other commits what no order gives; the row that is too much is marked."""
    runs = beside("hole-partitioned")
    svg = side_by_side_svg(runs)
    assert box_of(svg)[2] > 2 * WIDTH
    shown = texts(svg)
    assert {"Delta Lake, Serializable", "aborts delete with ConcurrentAppendException"} <= {*shown}
    assert {"Delta Lake, WriteSerializable", "commits all 3"} <= {*shown}
    assert {column.name for column in runs[0].litmus.tables["t"].columns} <= {*shown}
    assert {s.sql for s in runs[0].litmus.transactions.values()} <= {*shown}
    marked = re.findall(r'<text class="cell extra"[^>]*>(.*?)<', svg)
    assert marked == ["100", "7", "0"]
    assert svg.count("No serial order of the statements") == 2  # to see, and to be read aloud
    assert "append, then copy produces this table" in svg
    for judged in runs:
        inside(panel_svg(judged), WIDTH)


def test_rows_are_marked_where_the_order_of_the_log_gives_others():
    levels = beside("reorder")
    tables = [against_the_log(judged)[0] for judged in levels]
    assert [[(row.values[0], row.mark) for row in table.rows if row.mark] for table in tables] == [
        [],
        [("100", "extra")],
    ]
    assert conclusion_words(levels[1]) == (
        (
            "delete, then insert produces this table; insert, then delete, the order of the log,"
            " does not."
        ),
        "other",
    )
    twice = column_rows(
        "t", ["id", "part"], ((1, 0), (1, 0), (2, 0)), ((1, 0), (3, None), (3, None))
    )
    assert [(*row.values, row.mark) for row in twice.rows] == [
        ("1", "0", ""), ("1", "0", "extra"), ("2", "0", "extra"),
        ("3", "NULL", "missing"), ("3", "NULL", "missing"),
    ]  # fmt: skip


def missed(*pairs):
    return [Edge(f"T{a}", f"T{b}", "rw", "missed") for a, b in pairs]


@pytest.mark.parametrize(
    ("n", "cycle", "others"),
    [
        *((n, ring(n)[1], []) for n in range(2, 9)),
        (3, missed((1, 2), (2, 1)), missed((1, 3), (3, 2))),
        (3, missed((1, 2), (2, 3), (3, 1)), missed((2, 1))),
        (4, missed((1, 2), (2, 1)), missed((1, 3), (3, 2), (4, 1), (2, 4))),
        (4, missed((1, 2), (2, 3), (3, 4), (4, 1)), missed((1, 3))),
    ],
)
def test_graphs_are_drawn_without_overlaps(n, cycle, others):
    names = ring(n)[0]
    svg = graph_svg(dict.fromkeys(names, "r(x0) r(P: x0*, y0) w(x1)"), arrows(others, cycle))
    _, top, _, height = box_of(svg)
    found = list(rectangles(svg))
    assert len(found) == n + len(cycle) + len(others)
    for a, b in combinations(found, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], (a, b)
    for left, upper, right, lower in found:
        assert left >= 0
        assert right <= WIDTH
        assert upper >= top
        assert lower <= top + height
    assert texts(svg).count("does not see") >= len(cycle)


def test_there_and_back_are_two_arrows_and_one_pair_is_one():
    there = [Edge("a", "b", "wr", "b read it"), Edge("a", "b", "ww", "b overwrote it")]
    back = Edge("b", "a", "rw", "b missed it")
    drawn = arrows([*there, back], [back])
    assert [(a.number, a.source, a.kinds, a.thick) for a in drawn] == [
        (1, "b", ("rw",), True),
        (2, "a", ("wr", "ww"), False),
    ]
    svg = graph_svg({"a": "", "b": ""}, drawn)
    assert svg.count('<path class="edge cycle"') == 1
    assert svg.count('<path class="edge"') == 1
    assert {"wr ww", "rw", "1", "2"} <= set(texts(svg))


def test_what_is_too_long_is_broken_and_told_in_full():
    sql = "MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN DELETE"
    name = "a_transaction_with_quite_a_long_name"
    svg = graph_svg({name: sql, "b": ""}, arrows([Edge(name, "b", "wr", "why")]))
    assert "".join(t for t in texts(svg) if t in name and t != "b") == name
    assert f"{name}: {sql}" in svg
    assert all(left >= 0 and right <= WIDTH for left, _, right, _ in rectangles(svg))


@given(st.text(st.characters(exclude_categories=["C"]), min_size=1))
def test_any_text_is_escaped(text):
    name = f"x{text}"
    svg = graph_svg({name: text, "b": text}, arrows([Edge(name, "b", "wr", text)]))
    root = ET.fromstring(svg)
    assert root.find(f".//{SVG}g/{SVG}title").text == f"{name}: {text}"
    assert {e.tag.removeprefix(SVG) for e in root.iter()} <= {
        "svg", "title", "desc", "style", "g", "rect", "text", "path", "polygon", "circle",
    }  # fmt: skip


def test_the_reasons_of_an_axiom_that_wants_nothing_are_its_sentences():
    chain = (Edge("a", "b", "unseen", "b read version 0"), Edge("a", "b", "rw", "b missed it"))
    drawn = figure({}, [], Violation("Conflict", "empty", chain))
    assert [reason.text for reason in drawn.argument] == [
        "a leads to b, because b read version 0",
        "a leads to b, because b missed it",
    ]
    assert drawn.conclusion == "Conflict forbids a path from a to b"


def test_nothing_can_be_drawn():
    drawn = figure({}, [], Violation("Nobody", "empty", ()))
    assert texts(drawn.picture) == []
    assert drawn.argument == ()


def drawn_of_all_kinds():
    judged = predicted("hole-partitioned", "delta-serializable")
    yield timeline_svg(judged.litmus.schedule, judged.run)
    yield graph_svg({"T1": "w(x1)"}, arrows(missed((1, 3)), ring(3)[1]))
    yield side_by_side_svg(beside("hole-partitioned"))


@pytest.mark.parametrize("theme", ["auto", "light", "dark"])
def test_a_picture_stands_alone(theme):
    """A browser's style of a class reaches the page, others know no variables: so plain colours,
    and nothing but what is in the picture.
    """
    style = picture_style(theme)
    assert "var(" not in style
    assert "url(" not in style
    assert "@import" not in style
    colours = set(re.findall(r"#\w{6}", style))
    for palette, inside in ((LIGHT, theme != "dark"), (DARK, theme != "light")):
        assert ({palette["ink"], palette["page"]} <= colours) is inside
    rules = re.findall(r"([^{}@]+)\{[^{}]*\}", style.replace("@media", ""))
    for selector in (one for rule in rules for one in rule.split(",")):
        assert selector.strip().startswith(f".{PICTURE}"), selector


def test_every_shape_of_a_picture_has_its_colour():
    """What is painted black by default would not be seen in the dark."""
    for svg in drawn_of_all_kinds():
        root = ET.fromstring(svg)
        assert root.find(f"{SVG}style").text.strip() == picture_style()
        assert root.find(f"{SVG}title").text
        assert root.find(f"{SVG}desc").text
        for shape in root.iter():
            tag = shape.tag.removeprefix(SVG)
            if tag in ("path", "rect", "circle", "polygon"):
                names = set(shape.get("class").split())
                assert any(
                    names >= set(where.split(".")[1:]) and where.split(".")[0] in ("", tag)
                    for row, _, paint in RULES if paint
                    for where in row.split(", ") if "." in where
                ), shape.attrib  # fmt: skip
        assert not re.search(r"\b(fill|stroke|style|href|font-family)=", svg)
        assert " id=" not in svg


def test_one_theme_has_no_other():
    assert DARK["ink"] not in timeline_svg(litmus("reorder").schedule, theme="light")
    assert LIGHT["ink"] not in graph_svg({"a": ""}, [], "dark")
