"""What texts imply is so in every frame: random specs, random frames; and what ships agrees with
its histories.
"""

from dataclasses import replace
from itertools import chain, islice, permutations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from isolitmus.checker.execution.commit_loop import execute, execution_frame
from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.judge.completion import frames as frames_of
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.prove.structural_implication import ENDS, derive_from_texts, is_included
from isolitmus.checker.strategies import histories
from isolitmus.checker.universes.catalogue_histories import shipped_histories
from isolitmus.model.frame import Frame
from isolitmus.model.litmus import HistoryTest
from isolitmus.model.relation import Relation
from isolitmus.model.spec import Axiom, Binary, Bracket, Name, Unary
from isolitmus.specs.files.catalogue import litmus, litmus_names
from isolitmus.specs.files.spec_catalogue import every_level, level
from isolitmus.specs.files.spec_reader import read_spec

NAMES, SETS, NODES = ("so", "wr", "rw"), ("Writer", "Reader"), 3
WRITES = {"wr": (True, False), "rw": (False, True)}
"""Of which relations the first, or the second, is a writer."""

sets = st.recursive(
    st.sampled_from(SETS).map(Name),
    lambda inner: st.one_of(
        st.builds(Binary, st.sampled_from("|&\\"), inner, inner),
        st.builds(Unary, st.just("~"), inner),
    ),
    max_leaves=2,
)
relations = st.recursive(
    st.one_of(st.sampled_from(NAMES).map(Name), sets.map(Bracket)),
    lambda inner: st.one_of(
        st.builds(Binary, st.sampled_from("|;|;&\\"), inner, inner),
        st.builds(Unary, st.sampled_from(["+", "*", "?", "^-1"]), inner),
    ),
    max_leaves=5,
)
axioms = st.builds(
    Axiom, st.sampled_from(["acyclic", "irreflexive", "empty"]), relations, st.just("one")
)
pairs = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=5).map(
    lambda some: Relation.of(NODES, some)
)


def frame_of(some, members):
    """A frame whose writers are those in the set, and those who must be."""
    relations = dict(zip(NAMES, some, strict=True))
    sets = dict(zip(SETS, members, strict=True))
    for name, ends in WRITES.items():
        for pair in relations[name].pairs():
            for node, writes in zip(pair, ends, strict=True):
                sets["Writer"] |= writes << node
    sets["Reader"] = sets["Writer"] ^ (1 << NODES) - 1
    return Frame(tuple("abc"), relations, sets)


frames = st.builds(
    frame_of,
    st.tuples(*[pairs] * len(NAMES)),
    st.tuples(*[st.integers(0, 2**NODES - 1)] * len(SETS)),
)


def spec_of(*some):
    plain = read_spec('"Mine" empty so as none', "mine")
    return replace(plain, axioms=some, needs=frozenset((*NAMES, *SETS)))


def near(axiom):
    """Axioms that are like another one, so that one often implies the other."""
    expr = axiom.expr
    shapes = [expr, Unary("+", expr), Unary("?", expr), Binary(";", expr, expr)]
    shapes += [Binary("|", expr, Name(name)) for name in NAMES]
    shapes += [Binary("&", expr, Name(name)) for name in NAMES]
    shapes += [Binary(";", Bracket(Name(name)), expr) for name in SETS]
    if isinstance(expr, Binary):
        shapes += [expr.left, expr.right, Binary(expr.op, expr.right, expr.left)]
    tests = st.sampled_from(["acyclic", "irreflexive", "empty"])
    return st.builds(Axiom, tests, st.sampled_from(shapes), st.just("other"))


@pytest.mark.slow
@settings(
    max_examples=4 * settings.default.max_examples,
    suppress_health_check=[HealthCheck.filter_too_much],
)
@given(data=st.data())
def test_what_is_implied_by_its_text_is_implied_in_every_frame(data):
    first = data.draw(axioms)
    a, b = spec_of(first), spec_of(data.draw(near(first)))
    if data.draw(st.booleans()):
        a, b = b, a
    assume(derive_from_texts(a, b) is not None)
    for _ in range(8):
        frame = data.draw(frames)
        if compile_spec(a)(frame):
            assert compile_spec(b)(frame), derive_from_texts(a, b)


def relation(text):
    return read_spec(f'"A" empty {text} as none', "a").axioms[0].expr


@pytest.mark.parametrize(
    ("inner", "outer"),
    [
        ("wr ; so", "(so | wr)+"),
        ("(so | wr) ; rw?", "(so | wr | rw)+"),
        ("(wr+)*", "wr*"),
        ("[Writer] ; wr ; [Writer]", "wr ; [Writer]"),
        (r"[Writer \ Reader] ; wr", "[Writer] ; wr"),
        (r"(wr \ so) ; rw", "wr ; rw"),
        ("(wr ; rw)^-1", "rw^-1 ; wr^-1"),
        ("so & (wr ; rw)", "wr ; rw"),
    ],
)
def test_what_lies_within_what(inner, outer):
    assert is_included(relation(inner), [relation(outer)])


@pytest.mark.parametrize(
    ("inner", "outer"),
    [
        ("so+", "so"),
        ("wr ; [Writer]", "[Writer] ; wr"),
        (r"wr \ so", "so"),
        ("wr?", "wr+"),
        ("[~Writer] ; wr", "[Writer] ; wr"),
        ("so", "so & wr"),
        (r"wr", r"wr \ so"),
        ("wr^-1", "wr"),
    ],
)
def test_what_does_not_lie_within_it(inner, outer):
    assert not is_included(relation(inner), [relation(outer)])


def test_a_circle_may_begin_anywhere():
    a = read_spec('"A" irreflexive wr ; rw as one', "a")
    b = read_spec('"B" irreflexive rw ; wr as other', "b")
    assert derive_from_texts(a, b)
    assert derive_from_texts(a, read_spec('"C" acyclic rw ; wr as other', "c")) is None


def test_several_axioms_together_imply_one():
    a = read_spec('"A" acyclic so as one irreflexive wr ; rw as two', "a")
    b = read_spec('"B" irreflexive so ; so | rw ; wr as other', "b")
    assert derive_from_texts(a, b).grounds == (("other", ("one", "two")),)


def test_a_level_that_looks_at_reads_is_not_implied_by_one_that_does_not():
    """Where reads are nodes so leads from the initial transaction, too: what is empty without need
    not be with.
    """
    a = read_spec('"A" empty so as one', "a")
    b = read_spec('"B" empty so as one empty rf & po as two', "b")
    assert derive_from_texts(a, b) is None


def frames_that_ship():
    """Those of the catalogue's histories, under some version order, and of its runs on tables."""
    for name in litmus_names():
        test = litmus(name)
        if isinstance(test, HistoryTest):
            yield frames_of(test.history)
        elif not test.raw:
            yield [execution_frame(execute(test))]


@pytest.mark.slow
def test_relations_come_from_whom_they_are_said_to():
    """The premise of ENDS, in whatever frame there is without reads."""
    counted = 0
    for frame in chain.from_iterable(frames_that_ship()):
        writers = frame.sets["Writer"]
        assert writers ^ frame.sets["Reader"] == (1 << len(frame.nodes)) - 1
        for name, ends in ENDS.items():
            found = frame.relations.get(name)
            for pair in found.pairs() if found else ():
                assert all(
                    end is None or writers >> node & 1 for node, end in zip(pair, ends, strict=True)
                )
                counted += 1
    assert counted > 300


@pytest.mark.slow
@given(histories())
def test_relations_of_random_histories_come_from_whom_they_are_said_to(history):
    for frame in islice(frames_of(history), 4):
        writers = frame.sets["Writer"]
        for name, ends in ENDS.items():
            for pair in frame.relations[name].pairs():
                assert all(
                    end is None or writers >> node & 1 for node, end in zip(pair, ends, strict=True)
                )


def test_writers_alone_lead_back_to_writers():
    weaker, stronger = level("write-serializable"), level("update-serializable")
    cycles = read_spec('"A" acyclic wr | ww as one', "a")
    assert derive_from_texts(weaker, cycles)
    assert derive_from_texts(stronger, cycles)
    assert derive_from_texts(weaker, read_spec('"B" acyclic wr | ww | so as one', "b")) is None
    assert derive_from_texts(weaker, read_spec('"C" acyclic wr | ww | rw as one', "c")) is None


def test_who_only_reads_is_no_writer():
    """PL-3U allows no circle without two anti-dependencies: if a reader is on it, it is the only
    one.
    """
    assert derive_from_texts(level("update-serializable"), level("pl-2-plus"))
    alone = "with ww from versions irreflexive [Reader] ; rw ; [Writer] ; wr as alone"
    a, b = (
        read_spec(f'"A" {alone}', "a"),
        read_spec('"B" with ww from versions irreflexive wr ; rw as b', "b"),
    )
    assert derive_from_texts(a, b) is None


def test_orders_that_are_supposed_in_other_ways_show_nothing():
    text = "acyclic ww | wr as order"
    versions = read_spec(f'"A" with ww from versions {text}', "a")
    linear = read_spec(f'"B" with co from linearisations with ww from co {text}', "b")
    assert derive_from_texts(versions, versions)
    assert derive_from_texts(linear, linear)
    assert derive_from_texts(versions, read_spec(f'"C" {text}', "c"))
    assert derive_from_texts(versions, linear) is None
    assert derive_from_texts(linear, versions) is None


@pytest.mark.slow
def test_no_history_of_the_catalogue_speaks_against_what_texts_imply():
    known = {name: level(name) for name in every_level()}
    said = [
        {name: str(check_history(test.history, one)) for name, one in known.items()}
        for test in shipped_histories()
    ]
    proved = [(a, b) for a, b in permutations(known, 2) if derive_from_texts(known[a], known[b])]
    assert ("serializable", "snapshot-isolation") in proved
    assert [
        (a, b) for a, b in proved for each in said if (each[a], each[b]) == ("allowed", "forbidden")
    ] == []
