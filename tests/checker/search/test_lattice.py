"""``compare``: what it finds is an order, its histories tell apart what they are said to, and a
wrong answer is caught.
"""

from dataclasses import replace
from itertools import permutations, product

import networkx as nx
import numpy as np
import pytest

from isolitmus.checker import compare, separate
from isolitmus.checker.execution.commit_loop import execute, judge_execution
from isolitmus.checker.execution.serial_orders import Disagreement
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.render.lattice import lattices_lines, standing_words
from isolitmus.checker.search import lattice_search as neighbours
from isolitmus.checker.universes.abstract import Variation, available_names
from isolitmus.checker.universes.abstract_enumeration import history_batches
from isolitmus.model.budget import Budget
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.litmus import HistoryTest
from isolitmus.model.operations import ItemRead
from isolitmus.specs import level, protocol
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.spec_catalogue import every_level, levels
from isolitmus.specs.files.spec_reader import read_spec

pytestmark = pytest.mark.slow


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(levels, id="main"),
        pytest.param(every_level, id="all", marks=pytest.mark.wide),
    ],
)
def every(request):
    """Levels in both universes: those that are asked where nobody names any, and all."""
    return compare([level(name) for name in request.param()])


@pytest.fixture(params=[0, 1], ids=["abstract", "table"])
def lattice(every, request):
    return every.lattices[request.param]


def admits(test, name):
    """What a level says of what a file holds."""
    again = read_litmus(str(test), test.name)
    if isinstance(again, HistoryTest):
        return str(check_history(again.history, level(name)))
    return str(judge_execution(execute(again, level(name)), level(name)))


def test_all_is_decided(every):
    assert every.decided
    assert all(level(name).given for name in every.apart)  # by sets that histories name


def test_implying_is_a_preorder(lattice):
    holds = {pair for pair, one in lattice.inclusions.items() if one.holds}
    for a, b, c in permutations(lattice.specs, 3):
        assert (a, c) in holds or not {(a, b), (b, c)} <= holds
    assert {*lattice.inclusions} == {*permutations(lattice.specs, 2)}


def test_neighbours_give_everything_back(lattice):
    """The closure of the reduction is the relation, and the reduction has nothing in vain."""
    graph = nx.DiGraph((edge.stronger, edge.weaker) for edge in lattice.edges)
    graph.add_nodes_from(lattice.nodes)
    closed = nx.transitive_closure(graph)
    strict = {
        (one, other)
        for one, other in permutations(lattice.nodes, 2)
        if lattice.relation(one[0], other[0]) == "stronger"
    }
    assert {*closed.edges} == strict
    assert nx.is_directed_acyclic_graph(graph)
    for edge in graph.edges:
        fewer = graph.copy()
        fewer.remove_edge(*edge)
        assert not nx.has_path(fewer, *edge)


def test_equal_levels_stand_together(lattice):
    assert sorted(name for node in lattice.nodes for name in node) == sorted(lattice.specs)
    for node in lattice.nodes:
        for a, b in product(node, lattice.specs):
            assert (lattice.relation(a, b) == "equal") == (b in node)


def test_what_tells_neighbours_apart_does_so_when_read_again(lattice):
    for edge in lattice.edges:
        assert edge.back.holds is False
        told = [admits(edge.back.test, name) for name in (edge.back.a, edge.back.b)]
        assert told == ["allowed", "forbidden"]
        assert edge.back.a in edge.weaker
        assert edge.back.b in edge.stronger


def test_each_pair_that_is_apart_has_a_history(lattice):
    for (a, b), one in lattice.inclusions.items():
        assert (one.test is None) == one.holds
        if one.test is not None:
            assert [admits(one.test, name) for name in (a, b)] == ["allowed", "forbidden"]


def test_what_is_shown_between_neighbours_is_the_smallest(every):
    for edge in every.lattices[0].edges:
        history = edge.back.test.history
        n = len(history.transactions)
        if not edge.back.smallest:
            # of the catalogue: it has what the search of that pair has not, and nothing smaller was
            # looked for
            halfway = any(one.writes != one.written for one in history.transactions)
            assert [*history.predicate_reads()] or history.order or halfway or again(history)
            continue
        if n > 1:
            a, b = level(edge.back.a), level(edge.back.b)
            for observed in (False, True):
                fewer = separate(
                    a, b, "abstract", transactions=range(1, n), observed=observed, shipped=False
                )
                assert fewer.found is False


def again(history):
    """Whether somebody reads an object twice."""
    items = [
        [op.version.object for op in t.operations if isinstance(op, ItemRead)]
        for t in history.transactions
    ]
    return any(len({*objects}) < len(objects) for objects in items)


def test_trying_every_history_says_the_same(every):
    """Of up to two transactions: whom a history of the enumeration tells apart, the lattice does.
    Who looks at the time of operations is left to test_phenomena.py: their orders are not listed.
    """
    lattice = every.lattices[0]
    specs = [level(name) for name in lattice.specs if "time" not in level(name).needs]
    assert all(spec.needs <= available_names(spec) for spec in specs)
    apart = {pair for pair, one in lattice.inclusions.items() if one.holds is False}
    found = {observed: np.zeros((len(specs), len(specs)), bool) for observed in (False, True)}
    for n in (1, 2):
        for batch in history_batches(n, Variation(sessions=True, aborts=True, times=True), *specs):
            assert not batch.more
            # A level by a history by a version order; unobserved, some version order is enough.
            said = np.stack([batch.admits(spec, observed=True)[batch.valid] for spec in specs])
            for observed, told in ((True, said.reshape(len(specs), -1)), (False, said.any(axis=2))):
                found[observed] |= told.astype(np.float32) @ (~told).T.astype(np.float32) > 0
    for observed, pairs in found.items():
        told_apart = {(specs[a].name, specs[b].name) for a, b in np.argwhere(pairs)}
        assert told_apart <= apart
        assert observed or ("snapshot-isolation", "serializable") in told_apart


def test_several_processes_say_the_same():
    names = ["serializable", "snapshot-isolation", "update-serializable", "causal", "read-atomic"]
    one, two = (
        compare([level(name) for name in names], "abstract", processes=n).lattices[0].to_json()
        for n in (1, 2)
    )
    assert {**one, "seconds": 0} == {**two, "seconds": 0}


def test_the_answer_that_depends_on_the_universe_is_one_sentence():
    every = compare([level(name) for name in levels()])
    said = standing_words(every, "write-serializable", "snapshot-isolation")
    assert (
        said
        == "write-serializable is incomparable with snapshot-isolation in search space 'abstract',"
        " and stronger than it in search space 'table' (proved for any statements on one Delta"
        " table, each of which reads one version, each in a session of its own, which have read"
        " what they change, none of them a RESTORE)."
    )
    assert said in list(lattices_lines(every))


THREE = ("serializable", "snapshot-isolation", "prefix-consistency")


def three():
    return [level(name) for name in THREE]


def test_a_verdict_that_is_turned_round_is_caught(monkeypatch):
    """Prefix consistency is said to forbid write skew, which snapshot isolation admits: and that
    implies it.
    """
    true = neighbours.check_history

    def turned(history, spec):
        verdict = true(history, spec)
        if spec.name == "prefix-consistency" and str(verdict) == "allowed":
            return true(history, level("write-serializable"))
        return verdict

    monkeypatch.setattr(neighbours, "check_history", turned)
    with pytest.raises(Disagreement, match="by their texts"):
        compare(three(), "abstract")


def test_a_history_against_a_proof_is_caught(monkeypatch):
    monkeypatch.setattr(neighbours, "derive_from_texts", lambda a, b, **_: f"{a.name} and {b.name}")
    with pytest.raises(Disagreement, match="by their texts"):
        compare(three(), "abstract")


def test_two_texts_of_one_level_are_equal():
    mine = read_spec(
        '"Mine" with ww from versions empty [Aborted] ; wr as no-aborted-read'
        " acyclic rw | so | ww | wr as order",
        "mine",
    )
    found = compare([mine, *three()], "abstract", focus=["mine"]).lattices[0]
    assert found.relation("mine", "serializable") == "equal"
    assert found.inclusions["mine", "serializable"].proof
    assert "mine is equal to serializable: proved equal" in list(lattices_lines(compare([mine, *three()], "abstract", focus=["mine"])))  # fmt: skip
    assert found.graph.chosen == {"mine = serializable"}


def test_a_level_that_needs_an_observer_is_compared_where_there_is_one():
    mine = read_spec('"Mine" acyclic ww as order', "mine")
    found = compare([mine, *three()], "abstract").lattices[0]
    assert "version orders observed" in found.where
    assert found.relation("mine", "prefix-consistency") == "weaker"
    assert all("<" in str(edge.back.test.history.to_table()) for edge in found.edges[2:])


def test_a_history_without_times_says_something_to_those_that_ask_for_them():
    """In a time in which nobody overlaps, which no phenomenon is in: a long fork, a lost update."""
    names = ["serializable-berenson", "read-committed-berenson", *THREE]
    lattice = compare([level(name) for name in names], "abstract").lattices[0]
    for weaker in THREE:
        one = lattice.inclusions["serializable-berenson", weaker]
        assert [admits(one.test, name) for name in (one.a, one.b)] == ["allowed", "forbidden"]
        assert lattice.relation("serializable-berenson", weaker) == "incomparable"
    assert lattice.relation(*names[:2]) == "stronger"


def test_what_has_no_time_leaves_no_question_open():
    """Who reads in a circle reads what is not written yet: x and y are told apart, and c by nothing
    from either.
    """
    texts = {
        "x": "acyclic ww as order",
        "c": "acyclic ww | time & so as order",
        "y": "acyclic wr as order",
        "z": "acyclic ww as order empty wr & so as none",
    }
    found = compare(
        [read_spec(f'"Mine" with ww from versions {text}', name) for name, text in texts.items()],
        "abstract",
    )
    assert found.decided
    assert found.lattices[0].relation("c", "x") == "stronger"


def test_a_limit_leaves_pairs_unknown():
    found = compare(three(), "abstract", budget=Budget(0))
    lattice = found.lattices[0]
    assert not lattice.edges or lattice.ended
    mine = read_spec('"Mine" acyclic so | wr | rival & (po ; rf^-1) as order', "mine")
    found = compare([mine, *three()], "abstract", budget=Budget(0)).lattices[0]
    assert not found.decided
    assert "the time limit of 0 s ended it" in found.ended
    assert "unknown" in {found.relation("mine", name) for name in THREE}


def test_protocols_of_one_format_are_compared_on_tables():
    """Neither implies the other: at Serializable Delta does not look at what changes no data."""
    names = ["delta-serializable", "delta-write-serializable"]
    found = compare([protocol(name) for name in names], transactions=2)
    (lattice,) = found.lattices
    assert lattice.universe == "table"
    assert lattice.relation(*names) == "incomparable"
    assert sum("admits, delta-" in line for line in lattices_lines(found)) == 2


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["serializable"], "1 level to compare; name at least two"),
        (["serializable", "serializable"], "two of the levels are named serializable; rename a file"),
        (["delta-serializable", "locking-serializable"], "of format locking: no history is of both"),
        (["databricks-serializable-newest", "serializable"], "is silent on some histories"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(names, message):
    from isolitmus.specs import spec

    with pytest.raises(IsolitmusError, match=message):
        compare([spec(name) for name in names])


def test_what_no_universe_has_is_said():
    strange = read_spec('"Strange" empty removes-meets-removes as none', "strange")
    found = compare([strange, *three()], "abstract")
    assert found.apart == {"strange": "search space 'abstract' does not have removes-meets-removes"}
    assert any("strange was not compared" in line for line in lattices_lines(found))
    with pytest.raises(
        IsolitmusError, match="no two of these levels can be compared in one search space"
    ):
        compare([strange, replace(strange, name="other")], "abstract")
