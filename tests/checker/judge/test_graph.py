"""The graph reading: verdicts, witnesses that re-check, and networkx as a second opinion."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.judge.graph_semantics import (
    admits,
    find_violations,
    first_conflict,
    judge,
    label_members,
)
from isolitmus.checker.judge.spec_properties import is_monotone
from isolitmus.model import vocabulary
from isolitmus.model.frame import Frame
from isolitmus.model.reason import Reason
from isolitmus.model.relation import Relation, bits
from isolitmus.model.verdict import Allowed, Forbidden, Needs
from isolitmus.specs.files.spec_catalogue import every_level, proposals, protocols, spec
from isolitmus.specs.files.spec_reader import read_spec

RELATIONS = [name for name in vocabulary.RELATIONS if name != "co"]
SETS = list(vocabulary.SETS)
SHIPPED = [
    name
    for name in every_level() + protocols() + proposals()
    if "co" not in spec(name).bound and not spec(name).given
]
"""Those that need no order of commits and no set that a history names, which a frame alone does not
have.
"""


@st.composite
def frames(draw, least=1, thinnings=1, ordered=()):
    """Frames of any relations: of all pairs a half for each thinning and once more; those
    ``ordered`` lead forward in one order of the nodes, which is drawn.
    """
    n = draw(st.integers(least, 5))
    every = st.integers(0, 2 ** (n * n) - 1)
    place = draw(st.permutations(range(n)))
    forward = sum(1 << n * i + j for i in range(n) for j in range(n) if place[i] < place[j])

    def matrix(name):
        pairs = draw(every) & (forward if name in ordered else -1)
        for _ in range(thinnings):
            pairs &= draw(every)
        return Relation(tuple(pairs >> n * i & 2**n - 1 for i in range(n)))

    return Frame(
        tuple(f"T{i + 1}" for i in range(n)),
        {name: matrix(name) for name in RELATIONS},
        {name: draw(st.integers(0, 2**n - 1)) for name in SETS},
    )


AXIOMS = [
    "acyclic so | wr | ww | rw as a",
    "acyclic (so | wr | ww) ; rw? as b",
    "acyclic [Writer] ; (wr | ww | rw) ; [Writer] as c",
    "irreflexive (so | wr | ww)+ ; rw as d",
    "irreflexive (wr \\ ww) ; (rw & so^-1)? as e",
    "empty (unseen & adds-meets-reads) ; [~NoData] as f",
    "empty (wr^-1 ; ww) & (rw* \\ so) as g",
    "acyclic ((wr ; rw^-1)^-1 | [Writer & ~Blind] ; ww)+ as h",
]
axioms = st.lists(st.sampled_from(AXIOMS), min_size=1, max_size=4, unique=True)


def spec_of(lines):
    return _read('"Some"\n' + "\n".join(lines))


@cache
def _read(text):
    return read_spec(text, "some")


def has(frame, edge):
    i, j = frame.nodes.index(edge.source), frame.nodes.index(edge.target)
    for kind in edge.kind.split(" & "):
        pair = (j, i) if kind.endswith("^-1") else (i, j)
        if pair not in frame.relations[kind.removesuffix("^-1")]:
            return False
    return True


@pytest.mark.slow
@given(frames(), axioms)
def test_a_violation_rechecks(frame, lines):
    for violation in find_violations(frame, spec_of(lines)):
        edges = violation.cycle
        assert edges
        if edges[0].kind.startswith(("(", "[")):  # a pair that needs no base edge
            continue
        assert all(has(frame, edge) for edge in edges)
        assert all(a.target == b.source for a, b in pairwise(edges))
        if violation.kind != "empty":
            assert edges[-1].target == edges[0].source


@pytest.mark.slow
@given(frames(), axioms)
def test_three_readings_of_one_tree_agree(frame, lines):
    some = spec_of(lines)
    verdict = judge(frame, some)
    assert bool(verdict) == admits(frame, some) == compile_spec(some)(frame)
    assert bool(verdict) == (not find_violations(frame, some))


@pytest.mark.slow
@given(frames())
def test_the_compiled_reading_of_shipped_specs(frame):
    compiled = {name: compile_spec(spec(name))(frame) for name in SHIPPED}
    assert compiled == {name: admits(frame, spec(name)) for name in SHIPPED}


@pytest.mark.slow
@given(frames())
def test_a_cycle_is_shortest_and_verdicts_agree_with_networkx(frame):
    union = nx.DiGraph(frame.to_networkx("so", "wr", "ww", "rw"))
    verdict = judge(frame, spec_of(AXIOMS[:1]))
    assert bool(verdict) == nx.is_directed_acyclic_graph(union)
    if isinstance(verdict, Forbidden):
        (violation,) = verdict.violations
        assert len(violation.cycle) == min(map(len, nx.simple_cycles(union)))
        nodes = [edge.source for edge in violation.cycle]
        assert len(set(nodes)) == len(nodes)
        assert nodes[0] == min(nodes)


@pytest.mark.slow
@given(frames(ordered=("wr", "rw")))
def test_a_witness_is_an_order_of_all_nodes_that_respects_the_axioms(frame):
    verdict = judge(frame, spec_of(["acyclic wr as x", "acyclic wr | rw as y"]))
    assert isinstance(verdict, Allowed)
    assert sorted(verdict.witness) == sorted(frame.nodes)
    place = {name: k for k, name in enumerate(verdict.witness)}
    for kind in ("wr", "rw"):
        for i, j in frame.relations[kind].pairs():
            assert place[frame.nodes[i]] < place[frame.nodes[j]]


def test_a_witness_respects_the_first_axiom_where_not_all_can_be():
    one, two = Relation.of(2, [(1, 0)]), Relation.of(2, [(0, 1)])
    frame = Frame(("a", "b"), {"wr": one, "rw": two}, {})
    assert judge(frame, spec_of(["acyclic wr as x", "acyclic rw as y"])) == Allowed(("b", "a"))
    assert judge(frame, spec_of(["empty wr & rw as x"])) == Allowed(("a", "b"))


@pytest.mark.slow
@given(frames(), axioms, st.randoms())
def test_renaming_nodes_changes_no_verdict(frame, lines, random):
    n = len(frame.nodes)
    places = list(range(n))
    random.shuffle(places)
    moved = Frame(
        frame.nodes,
        {
            name: Relation.of(n, [(places[i], places[j]) for i, j in r.pairs()])
            for name, r in frame.relations.items()
        },
        {name: sum(1 << places[i] for i in bits(s)) for name, s in frame.sets.items()},
    )
    some = spec_of(lines)
    assert [v.axiom for v in find_violations(moved, some)] == [
        v.axiom for v in find_violations(frame, some)
    ]


@pytest.mark.slow
@given(st.integers(1, 4).flatmap(lambda thinnings: frames(thinnings=thinnings)), axioms)
def test_several_axioms_allow_what_each_allows(frame, lines):
    """So more axioms never allow more."""
    alone = [admits(frame, spec_of([line])) for line in lines]
    assert admits(frame, spec_of(lines)) == all(alone)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        *((line, True) for line in AXIOMS if "rw*" not in line),
        ("acyclic wr \\ (rw & ww^-1 | [Writer] ; so? ; [Blind]) as x", True),
        ("acyclic wr \\ (ww ; rw) as x", False),
        ("acyclic wr \\ ww+ as x", False),
        ("let path = ww ; rw acyclic wr \\ path as x", False),
        ("let pair = ww | rw let less = wr \\ pair acyclic less ; so as x", True),
    ],
)
def test_which_specs_are_monotone(line, answer):
    assert is_monotone(spec_of([line])) is answer


def test_shipped_specs_are_monotone():
    assert [name for name in SHIPPED if not is_monotone(spec(name))] == []
    assert len(SHIPPED) >= 60


@pytest.mark.slow
@given(frames(least=2), st.sampled_from(AXIOMS))
def test_monotone_specs_stay_broken_as_frames_grow(frame, line):
    n = len(frame.nodes) - 1
    old = (1 << n) - 1
    smaller = Frame(
        frame.nodes[:n],
        {k: Relation(tuple(row & old for row in r.rows[:n])) for k, r in frame.relations.items()},
        {k: s & old for k, s in frame.sets.items()},
    )
    some = spec_of([line])
    assume(is_monotone(some) and not admits(smaller, some))
    assert not admits(frame, some)


def test_a_frame_without_a_name_gives_no_verdict():
    verdict = judge(Frame(("a",), {"wr": Relation.empty(1)}, {}), spec("write-serializable"))
    assert verdict == Needs(("Aborted", "Writer", "rw", "ww"))
    assert str(verdict) == "needs Aborted, Writer, rw, ww"
    with pytest.raises(TypeError, match="is not a verdict"):
        bool(verdict)


def test_edges_carry_their_reasons():
    pair, back = Relation.of(2, [(0, 1)]), Relation.of(2, [(1, 0)])
    frame = Frame(
        ("a", "b"),
        {"unseen": pair, "adds-meets-reads": pair, "rw": back},
        {},
        {("unseen", 0, 1): Reason("b missed a"), ("adds-meets-reads", 0, 1): Reason("f1 matches"), ("rw", 1, 0): Reason("why")},
    )  # fmt: skip

    def parts(cycle):
        (edge,) = cycle
        return edge.source, edge.target, edge.kind, edge.why

    (violation,) = find_violations(frame, spec_of(["empty unseen & adds-meets-reads as x"]))
    both = "unseen & adds-meets-reads"
    assert parts(violation.cycle) == ("a", "b", both, "b missed a, and f1 matches")
    (violation,) = find_violations(frame, spec_of(["empty unseen & rw^-1 as x"]))
    assert parts(violation.cycle) == ("a", "b", "unseen & rw^-1", "b missed a, and why")
    (violation,) = find_violations(frame, spec_of(["empty (unseen & rw^-1)^-1 as x"]))
    assert parts(violation.cycle) == ("b", "a", "unseen^-1 & rw", "b missed a, and why")
    (violation,) = find_violations(frame, spec_of(["acyclic unseen ; rw as x"]))
    assert [(e.source, e.kind) for e in violation.cycle] == [("a", "unseen"), ("b", "rw")]
    blind = replace(frame, sets={"Blind": 0b01})
    (violation,) = find_violations(blind, spec_of(["irreflexive [~Blind] as x"]))
    assert parts(violation.cycle) == ("b", "b", "[~Blind]", "")


def test_the_earliest_winner_decides_then_the_order_of_the_text():
    some = spec_of(["empty unseen & removes-meets-reads as One", "empty unseen & adds-meets-reads as Two"])  # fmt: skip
    every = Relation.of(4, [(0, 3), (1, 3), (2, 3), (0, 1)])
    late = Relation.of(4, [(2, 3), (1, 3)])
    frame = Frame(
        tuple("abcd"),
        {"unseen": every, "removes-meets-reads": late, "adds-meets-reads": every},
        {},
    )
    assert first_conflict(frame, some, 3) == (0, "Two")
    both = replace(frame, relations={**frame.relations, "adds-meets-reads": late})
    assert first_conflict(both, some, 3) == (1, "One")
    assert first_conflict(both, some, 1) is None
    assert first_conflict(both, spec_of(["acyclic unseen as x"]), 3) is None


def test_labels_of_the_shipped_protocols():
    n = 4  # a blind insert, an OPTIMIZE, a DELETE that matched nothing, an empty OPTIMIZE
    none = Relation.empty(n)
    frame = Frame(
        ("insert", "optimize", "nothing", "idle"),
        dict.fromkeys(RELATIONS, none),
        dict.fromkeys(SETS, 0)
        | {
            "Blind": 0b0001,
            "NoData": 0b1110,
            "ChangesData": 0b0101,
            "Empty": 0b1100,
        },
    )
    assert label_members(frame, spec("delta-serializable")) == {
        "no-op": 0b1100,
        "SnapshotIsolation": 0b1110,
        "Serializable": 0b0001,
    }
    assert label_members(frame, spec("delta-write-serializable")) == {
        "no-op": 0b1000,
        "SnapshotIsolation": 0b1010,
        "WriteSerializable": 0b0101,
        "Serializable": 0,
    }
    assert label_members(frame, spec("delta-snapshot-isolation")) == {
        "no-op": 0b1100,
        "SnapshotIsolation": 0b1111,
        "Serializable": 0,
    }


def test_protocols_differ_where_delta_does():
    pair = Relation.of(2, [(0, 1)])
    none = Relation.empty(2)
    met = dict.fromkeys(RELATIONS, none) | {"unseen": pair, "adds-meets-reads": pair}
    sets = dict.fromkeys(SETS, 0) | {"ChangesData": 0b11}
    append = "ConcurrentAppendException"

    def conflict(protocol, relations=met, **changed):
        return first_conflict(Frame(("w", "l"), relations, sets | changed), spec(protocol), 1)

    assert conflict("delta-serializable") == conflict("delta-write-serializable") == (0, append)
    assert conflict("delta-snapshot-isolation") is None
    assert conflict("delta-serializable", Blind=0b01) == (0, append)
    assert conflict("delta-write-serializable", Blind=0b01) is None
    assert conflict("delta-serializable", NoData=0b10) is None
    assert conflict("delta-write-serializable", NoData=0b10) == (0, append)
    assert conflict("delta-write-serializable", NoData=0b10, ChangesData=0b01) is None
    deleted = met | {"removes-meets-reads": pair, "removes-meets-removes": pair}
    read_exception = (0, "ConcurrentDeleteReadException")
    assert conflict("delta-serializable", deleted, NoData=0b10) == read_exception
    assert conflict("delta-serializable", deleted, NoData=0b10, Empty=0b10) is None
    assert conflict("delta-write-serializable", deleted, NoData=0b10, Empty=0b10) == (0, append)
    assert conflict("delta-snapshot-isolation", deleted) == read_exception
    assert conflict("delta-serializable", met | {"unseen": none}) is None
    assert conflict("delta-write-serializable", Blind=0b01, Meta=0b10, Marked=0b10) == (0, append)
    assert conflict("delta-write-serializable", Blind=0b01, Default=0b10) == (0, append)
    assert conflict("delta-serializable", NoData=0b10, Marked=0b10) == (0, append)
    assert conflict("delta-serializable", Backfill=0b01) is None


def test_what_is_about_no_file_is_checked_before_the_files_in_the_order_of_delta():
    pair = Relation.of(2, [(0, 1)])
    relations = dict.fromkeys(RELATIONS, pair)
    sets = dict.fromkeys(SETS, 0) | {"Large": 0b10, "Protocol": 0b11, "Meta": 0b11}
    steps = [
        ("ConcurrentWriteException", "Large", ()),
        ("ProtocolChangedException", "Protocol", ("protocol-clashes",)),
        ("MetadataChangedException", "Meta", ("metadata-clashes",)),
        ("ConcurrentTransactionException", "", ("same-domain", "writes-read-app")),
        ("ConcurrentAppendException", "", ("adds-meets-reads",)),
        ("ConcurrentDeleteReadException", "", ("removes-meets-reads",)),
        ("ConcurrentDeleteDeleteException", "", ("removes-meets-removes",)),
    ]
    for exception, members, names in steps:
        frame = Frame(("w", "l"), dict(relations), dict(sets))
        for protocol in ("delta-serializable", "delta-write-serializable"):
            assert first_conflict(frame, spec(protocol), 1) == (0, exception)
        sets |= {members: 0} if members else {}
        relations |= dict.fromkeys(names, Relation.empty(2))
    assert first_conflict(Frame(("w", "l"), relations, sets), spec("delta-serializable"), 1) is None
