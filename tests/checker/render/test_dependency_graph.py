"""What results convert to has the same nodes and edges as they have, whatever is written in
them.
"""

import csv
import re
import sys
from collections import Counter
from io import BytesIO, StringIO
from xml.etree import ElementTree as ET

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker import check, graph, run, separate, sweep
from isolitmus.checker.execution.conflict_matrix import predict_cells
from isolitmus.checker.judge.completion import frames
from isolitmus.checker.strategies import histories, litmus_tests
from isolitmus.model.audit import Audit, Finding
from isolitmus.model.dependency_graph import DependencyGraph
from isolitmus.model.errors import IsolitmusError, printable
from isolitmus.model.matrix import MatrixPlace
from isolitmus.model.reason import Edge, Reason
from isolitmus.model.run import Timeline
from isolitmus.specs import level, litmus, protocol, scope
from isolitmus.specs.files.catalogue import matrix

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
SIGNS = st.lists(
    st.sampled_from(
        [
            '"',
            "\\",
            "|",
            ";",
            "#",
            "%",
            "{",
            "}",
            "]",
            "<",
            "&",
            "a\n",
            "`",
            "%%{",
            "\x1b[",
            "\u2028",
        ]
    )
)
WORDS = TEXT | SIGNS.map("".join)
STRING = r'"((?:[^"\\]|\\.)*)"'
DOT_NODE = re.compile(rf"  {STRING} \[label={STRING}\];")
DOT_EDGE = re.compile(
    rf"  {STRING} -> {STRING} \[label={STRING}, tooltip={STRING}(, penwidth=3)?\];"
)


@st.composite
def drawn(draw):
    """A graph with any text in it, and some of its edges as the cycle."""
    nodes = {f"t{k}": draw(WORDS) for k in range(draw(st.integers(1, 4)))}
    names = st.sampled_from([*nodes])
    kinds = st.sampled_from(["so", "wr", "ww", "rw"])
    edges = draw(st.lists(st.tuples(names, names, kinds), unique=True, max_size=5))
    every = tuple(Edge(*edge, Reason.of("{words}", words=draw(WORDS))) for edge in edges)
    return DependencyGraph(nodes, every, every[: draw(st.integers(0, len(every)))])


def ends(edges):
    return Counter((e.source, e.target, e.kind) for e in edges)


@pytest.mark.slow
@given(histories())
def test_a_frame_for_networkx_has_its_edges(history):
    frame = next(frames(history))
    there = Counter(list(frame.to_networkx().edges(keys=True)))
    assert there == ends(frame.edges()) == ends(graph(frame).every)
    file = BytesIO()
    nx.write_graphml(frame.to_networkx(), file)
    file.seek(0)
    again = nx.read_graphml(file, force_multigraph=True)
    assert dict(again.nodes(data="sets")) == {
        node: ", ".join(frame.member_of(node)) for node in frame.nodes
    }


@pytest.mark.slow
@given(drawn())
def test_graphml_gives_the_graph_back(of):
    again = nx.parse_graphml(of.to_graphml(), force_multigraph=True)
    assert dict(again.nodes(data="text")) == {n: printable(t) for n, t in of.nodes.items()}
    there = [(a, b, about["kind"], about["why"]) for a, b, about in again.edges(data=True)]
    assert Counter(there) == Counter(
        (e.source, e.target, e.kind, printable(e.why)) for e in of.every
    )
    assert len({key for *_, key in again.edges(keys=True)}) == len(of.every)


@pytest.mark.slow
@given(drawn())
def test_dot_parses_and_has_every_node_and_edge_once(of):
    head, *lines, end = of.to_dot().split("\n")
    assert (head, end) == ("digraph {", "}")
    nodes, edges = lines[: len(of.nodes)], lines[len(of.nodes) :]
    assert [DOT_NODE.fullmatch(line)[1] for line in nodes] == [*of.nodes]
    seen = [DOT_EDGE.fullmatch(line) for line in edges]
    assert Counter((e[1], e[2], e[3]) for e in seen) == ends(of.every)
    unquoted = [re.sub(r"\\(.)", r"\1", e[4]) for e in seen]
    assert unquoted == [printable(" ".join(e.why.split())) for e in of.every]
    assert [bool(e[5]) for e in seen] == [e in of.cycle for e in of.every]


@given(drawn())
def test_mermaid_has_every_node_and_edge_once(of):
    text = of.to_mermaid()
    lines = text.splitlines()
    assert not re.search("%%|`|\x1b", text)
    assert len(lines) == len(set(lines)) > 0
    ids = {name: f"n{k}" for k, name in enumerate(of.nodes)}
    for name, place in ids.items():
        assert sum(line.startswith(f'    {place}["{name}') for line in lines) == 1
    arrows = [re.fullmatch(r'    (n\d) (==|--)>\|"([^"]*)"\| (n\d)', line) for line in lines]
    labels = Counter((a[1], a[4], part[:2]) for a in arrows if a for part in a[3].split("<br/>"))
    assert labels == Counter((ids[e.source], ids[e.target], e.kind) for e in of.every)


@pytest.mark.slow
@given(drawn())
def test_tikz_has_every_node_and_edge_once_and_closes_every_group(of):
    text = of.to_tikz()
    code = "".join(line for line in text.splitlines() if not line.startswith("  %"))
    assert code.count(r"\node[") == len(of.nodes)
    assert code.count(r"\draw[") == len(of.every)
    bare = code.replace("\\{", "").replace("\\}", "")
    assert bare.count("{") == bare.count("}")
    assert not re.search(r"(?<!\\)[%#&^~]", code)


@given(drawn())
def test_svg_is_well_formed_and_names_every_node(of):
    tree = ET.fromstring(printable(of.to_svg().replace("\n", " ")))
    named = {text.text for text in tree.iter("{http://www.w3.org/2000/svg}text")}
    assert named >= {*of.nodes}


@pytest.mark.slow
@given(litmus_tests())
def test_a_timeline_has_every_step_and_transaction_once(test):
    timeline = Timeline(test.schedule)
    (_, *lines) = timeline.to_mermaid().splitlines()
    steps = [line.partition(": ")[2] for line in lines if ": " in line]
    assert steps == [str(step) for step in test.schedule.steps]
    tikz = timeline.to_tikz()
    assert tikz.count(r"\node[left]") == len(test.transactions)
    assert ET.fromstring(timeline.to_svg()) is not None


def test_a_run_draws_what_became_of_each_transaction():
    done = run(litmus("reorder"), protocol("delta-serializable"))
    for drawn in (done.timeline.to_mermaid(), done.timeline.to_tikz(), done.timeline.to_svg()):
        assert "reads version 0, aborts with ConcurrentAppendException" in drawn
    assert "-xlog: delete.commit" in done.timeline.to_mermaid()


@pytest.mark.slow
def test_the_cycle_stands_out():
    found = separate(level("snapshot-isolation"), level("serializable"), transactions=range(2, 3))
    assert found.graph.cycle == found.violation.cycle
    assert found.to_dot().count("penwidth") == len(found.graph.cycle) == 2
    levels = [level("serializable"), level("log-serializable")]
    judged = check(litmus("reorder"), levels)
    assert judged.to_mermaid().count("==>") == 2
    assert graph(judged.levels["log-serializable"].violations[0]).cycle == judged.graph.cycle


@pytest.mark.slow
def test_nothing_found_draws_nothing():
    none = separate(level("serializable"), level("causal"), transactions=range(1, 2))
    assert (none.found, none.graph) == (False, DependencyGraph({}))


def counts(done):
    for name, of in done.protocols.items():
        for level_, number in of.forbidden.items():
            yield name, of.admitted, level_, number


def read(table):
    return list(csv.DictReader(StringIO(table.to_csv())))


@pytest.mark.slow
def test_the_csv_of_a_sweep_read_back_has_its_counts():
    done = sweep(scope("two-partitions"), 2)
    rows = read(done)
    keys = ("protocol", "admitted", "level", "forbidden")
    assert [tuple(row[key] for key in keys) for row in rows] == [
        tuple(map(str, row)) for row in counts(done)
    ]
    assert {row["candidates"] for row in rows} == {str(done.candidates)}
    frame = done.to_pandas()
    assert [*frame[[*keys]].itertuples(index=False, name=None)] == [*counts(done)]


@pytest.mark.slow
def test_other_tables_have_a_row_for_each():
    done = run(litmus("reorder"), protocol("delta-serializable"))
    assert {row["transaction"]: row["outcome"] for row in read(done)} == {
        "delete": "ConcurrentAppendException", "insert": "committed"
    }  # fmt: skip
    place = MatrixPlace("delete-row", "insert", "same partition")
    (row,) = read(predict_cells(matrix("pairs"), [protocol("delta-serializable")], [place]))
    assert (row["a"], row["predicted"]) == ("delete-row", "ConcurrentAppendException")
    (row,) = read(Audit("t", 0, 2, (Finding("bridge", (1, 2), "certain", "so, so"),)))
    assert (row["kind"], row["versions"], row["why"]) == ("bridge", "1 2", "so, so")
    judged = check(litmus("reorder"), [level("serializable"), level("log-serializable")])
    assert [row["verdict"] for row in read(judged)] == ["allowed", "forbidden"]


def test_without_pandas_there_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(IsolitmusError, match="pandas is not installed"):
        Audit("t", 0, 0, ()).to_pandas()
