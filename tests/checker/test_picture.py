"""Pictures: well-formed, complete, nothing over the edge or over something else, deterministic."""

import re
from itertools import combinations, pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker import run
from isolitmus.checker.telling.diagram import VERBS, arrows, graph_svg
from isolitmus.checker.telling.figures import graph
from isolitmus.checker.telling.picture import WIDTH, timeline_svg
from isolitmus.model.frame import Edge
from isolitmus.model.litmus import Litmus
from isolitmus.model.schedule import Schedule
from isolitmus.model.verdict import Violation
from isolitmus.model.vocabulary import RELATIONS
from isolitmus.specs import litmus, protocol
from isolitmus.specs.catalogue import litmus_tests, relatives

SVG = "{http://www.w3.org/2000/svg}"
LITMUS = [name for name in litmus_tests() if isinstance(litmus(name), Litmus)]


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


@pytest.mark.slow
@pytest.mark.parametrize("name", LITMUS)
def test_the_timeline_of_every_litmus_test_shows_each_transaction_and_version(name):
    test = litmus(name)
    for spec in relatives():
        judged = run(test, protocol(spec))
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


def test_a_schedule_alone_has_neither_fates_nor_versions():
    svg = timeline_svg(Schedule.parse("a.start b a.commit", ["a", "b"]))
    assert texts(svg) == ["a", "b"]


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
        "svg", "title", "g", "rect", "text", "path", "polygon", "circle",
    }  # fmt: skip


def test_the_reasons_of_an_axiom_that_wants_nothing_are_its_sentences():
    chain = (Edge("a", "b", "unseen", "b read version 0"), Edge("a", "b", "rw", "b missed it"))
    drawn = graph({}, [], Violation("Conflict", "empty", chain))
    assert [reason.text for reason in drawn.argument] == [
        "a leads to b, because b read version 0",
        "a leads to b, because b missed it",
    ]
    assert drawn.conclusion == "so a and b cannot both be there: Conflict refuses that"


def test_nothing_can_be_drawn():
    drawn = graph({}, [], Violation("Nobody", "empty", ()))
    assert texts(drawn.picture) == []
    assert drawn.argument == ()


def test_every_relation_reads_aloud():
    assert set(VERBS) == set(RELATIONS)


def test_pictures_have_no_colours_of_their_own():
    """They come from the style sheet, or dark mode would not reach them."""
    svg = graph_svg({}, arrows(ring(3)[1])) + timeline_svg(litmus("reorder").schedule)
    assert not re.search(r"\b(fill|stroke|style|href|font-family)=", svg)
    assert " id=" not in svg
