"""What texts imply is so in every frame: random specs, random frames; and what ships agrees with its histories."""

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from isolitmus.checker.proving.implication import included, structural
from isolitmus.checker.reading.admission import admission
from isolitmus.checker.reading.histories import check_history
from isolitmus.checker.searching.shipped import shipped_histories
from isolitmus.model.frame import Frame
from isolitmus.model.relation import Relation
from isolitmus.model.spec import Axiom, Binary, Bracket, Name, Unary
from isolitmus.specs.cat import read
from isolitmus.specs.catalogue import level, levels

NAMES, SETS, NODES = ("so", "wr", "rw"), ("Writer", "Reader"), 3

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
frames = st.builds(
    lambda some, members: Frame(
        tuple("abc"), dict(zip(NAMES, some, strict=True)), dict(zip(SETS, members, strict=True))
    ),
    st.tuples(*[pairs] * len(NAMES)),
    st.tuples(*[st.integers(0, 2**NODES - 1)] * len(SETS)),
)


def spec_of(*some):
    plain = read('"Mine" empty so as none', "mine")
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


@settings(max_examples=400, suppress_health_check=[HealthCheck.filter_too_much])
@given(data=st.data())
def test_what_is_implied_by_its_text_is_implied_in_every_frame(data):
    first = data.draw(axioms)
    a, b = spec_of(first), spec_of(data.draw(near(first)))
    if data.draw(st.booleans()):
        a, b = b, a
    assume(structural(a, b) is not None)
    for _ in range(8):
        frame = data.draw(frames)
        if admission(a)(frame):
            assert admission(b)(frame), structural(a, b)


def relation(text):
    return read(f'"A" empty {text} as none', "a").axioms[0].expr


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
    assert included(relation(inner), [relation(outer)])


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
    assert not included(relation(inner), [relation(outer)])


def test_a_circle_may_begin_anywhere():
    a = read('"A" irreflexive wr ; rw as one', "a")
    b = read('"B" irreflexive rw ; wr as other', "b")
    assert structural(a, b)
    assert structural(a, read('"C" acyclic rw ; wr as other', "c")) is None


def test_several_axioms_together_imply_one():
    a = read('"A" acyclic so as one irreflexive wr ; rw as two', "a")
    b = read('"B" irreflexive so ; so | rw ; wr as other', "b")
    assert structural(a, b).grounds == (("other", ("one", "two")),)


def test_a_level_that_looks_at_reads_is_not_implied_by_one_that_does_not():
    """Where reads are nodes so leads from the initial transaction, too: what is empty without need not be with."""
    a = read('"A" empty so as one', "a")
    b = read('"B" empty so as one empty rf & po as two', "b")
    assert structural(a, b) is None


def test_no_history_of_the_catalogue_speaks_against_what_texts_imply():
    known = {name: level(name) for name in levels()}
    said = [
        {name: str(check_history(test.history, one)) for name, one in known.items()}
        for test in shipped_histories()
    ]
    proved = [(a, b) for a, b in permutations(known, 2) if structural(known[a], known[b])]
    assert ("serializable", "snapshot-isolation") in proved
    assert [
        (a, b) for a, b in proved for each in said if (each[a], each[b]) == ("allowed", "forbidden")
    ] == []
