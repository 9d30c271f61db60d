"""Proofs by the laws of histories: the laws hold in every frame, what is derived no history speaks
against, another solver says the same, and a law that is wrong, or missing, is noticed.
"""

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker.judge.completion import completions
from isolitmus.checker.judge.graph_semantics import BitsetAlgebra
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.prove import history_proof as theory
from isolitmus.checker.prove.history_laws import LAWS, TIMED, Law, relation
from isolitmus.checker.prove.history_proof import derive_inclusion
from isolitmus.checker.prove.sentences import restrict, union_branches
from isolitmus.checker.strategies import histories
from isolitmus.checker.universes.catalogue_histories import shipped_histories
from isolitmus.model.budget import Budget
from isolitmus.model.history import History
from isolitmus.model.spec import Fold
from isolitmus.model.spec_algebra import unfold
from isolitmus.specs import level
from isolitmus.specs.files.spec_catalogue import every_level


def broken(law, frame):
    """Nodes of which the law is not so; None if there are none. And how often it was asked."""
    fold = Fold(BitsetAlgebra(frame), {})
    found = [{}]
    for i, text, j in law.given:
        pairs = [*fold.relation(relation(text)).pairs()]
        found = [
            {**one, i: x, j: y}
            for one in found
            for x, y in pairs
            if one.get(i, x) == x and one.get(j, y) == y and (i != j or x == y)
        ]
    then = [({*fold.relation(relation(text)).pairs()}, i, j) for i, text, j in law.then]
    wrong = (one for one in found if not any((one[i], one[j]) in pairs for pairs, i, j in then))
    return next(wrong, None), len(found)


def laws_of(frame):
    return (*LAWS, *(TIMED if "time" in frame.relations else ()))


@pytest.mark.slow
def test_laws_hold_in_the_histories_of_the_catalogue():
    asked = dict.fromkeys((law.sentence for law in (*LAWS, *TIMED)), 0)
    for test in shipped_histories():
        for completion in islice(completions(test.history), 6):
            frame = completion.frame(reasons=False, operations=True)
            for law in laws_of(frame):
                wrong, count = broken(law, frame)
                assert wrong is None, (law.sentence, test.name)
                asked[law.sentence] += count
    never = [law.sentence for law in (*LAWS, *TIMED) if law.then and not asked[law.sentence]]
    assert never == []


@pytest.mark.slow
@given(histories(most=4, predicates=True, observed=True))
def test_laws_hold_in_random_histories(history):
    for completion in islice(completions(history), 3):
        frame = completion.frame(reasons=False, operations=True)
        for law in laws_of(frame):
            assert broken(law, frame)[0] is None, law.sentence


@pytest.mark.parametrize(
    ("law", "history"),
    [
        # A rival comes before the source, whatever the reader misses.
        (
            Law("", (("u", "[~Initial] ; rival", "r"), ("s", "rf", "r")), (("u", "ww+", "s"),)),
            {"T1": "r(x0)", "T2": "w(x2)"},
        ),
        # A read by predicate depends on whoever wrote what it saw, whether that matched or not.
        (
            Law("", (("s", "[~Initial] ; rf", "r"), ("r", "in", "t")), (("s", "wr", "t"),)),
            {"T1": "w(x1)", "T2": "r(P: x1)"},
        ),
    ],
)
def test_a_law_that_is_wrong_is_caught(law, history):
    frame = next(completions(History.from_table(history))).frame(operations=True)
    wrong, count = broken(law, frame)
    assert wrong is not None
    assert count > 0


KINDS = ("transactions", "reads")
NAMED = set().union(
    *(
        next(completions(History.parse("w1(x1)"))).frame(reads=kind == "reads").names()
        for kind in KINDS
    )
)
OF_FRAMES = [n for n in every_level() if level(n).demands and level(n).needs <= NAMED]
"""Levels of which a frame with fewer nodes has all names."""


@pytest.mark.slow
@given(histories(most=3, predicates=True), st.sampled_from(OF_FRAMES))
def test_frames_with_fewer_nodes_are_parts_of_those_with_all(history, name):
    """What an axiom relates there, it relates here."""
    spec = level(name)
    completion = next(completions(history))
    whole = completion.frame(reasons=False, operations=True)
    served = {read for _, read in whole.relations["rf"].pairs()}
    own = sum(1 << node for node in served)
    whole = whole.__class__(
        whole.nodes, dict(whole.relations), {**whole.sets, "Served": own, "External": own}
    )
    for kind in KINDS:
        frame = completion.frame(reasons=False, reads=kind == "reads")
        if not spec.needs <= {*frame.names()}:
            continue
        for axiom in spec.demands:
            expr = unfold(axiom.expr, spec.definitions)
            there = named(frame, Fold(BitsetAlgebra(frame), {}).relation(expr))
            here = named(whole, Fold(BitsetAlgebra(whole), {}).relation(restrict(expr, kind)))
            alone = {(a, b) for a, b in there ^ here if a != b}
            assert alone == set(), (kind, str(expr))


def named(frame, found):
    return {(frame.nodes[i], frame.nodes[j]) for i, j in found.pairs()}


DERIVED = [
    ("serializable", "serializable-biswas-enea"),
    ("serializable", "serializable-cerone"),
    ("pl-3", "serializable-crooks"),
    ("prefix-consistency", "causal-in-version-order"),
    ("causal", "causal-cerone"),
    ("causal-cerone", "causal"),
    ("generalized-snapshot-isolation", "snapshot-isolation-crooks"),
    ("pl-2-plus", "pl-2l"),
    ("pl-2-99", "pl-cs"),
    ("read-atomic-in-version-order", "read-committed"),
    ("repeatable-read-berenson", "no-read-skew"),
    ("repeatable-read-berenson", "no-write-skew"),
    ("serializable-berenson", "anomaly-serializable"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), DERIVED)
def test_what_is_derived_no_history_of_the_catalogue_speaks_against(a, b):
    derived = derive_inclusion(level(a), level(b))
    assert derived is not None
    for test in shipped_histories():
        said = [str(check_history(test.history, level(name))) for name in (a, b)]
        assert said != ["allowed", "forbidden"], test.name


NOT = [
    ("no-write-skew", "repeatable-read-berenson"),
    ("pl-2l", "pl-2-plus"),
    *(
        pytest.param(*pair, marks=pytest.mark.wide)
        for pair in (
            ("serializable-crooks", "serializable"),
            ("serializable-biswas-enea", "serializable"),
            ("read-committed", "read-committed-biswas-enea"),
            ("read-atomic", "causal-cerone"),
        )
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), NOT)
def test_what_a_history_tells_apart_is_not_derived(a, b):
    assert derive_inclusion(level(a), level(b)) is None


def test_what_looks_at_real_time_or_logs_is_not_derived():
    assert derive_inclusion(level("strict-serializable"), level("serializable-crooks")) is None
    assert derive_inclusion(level("log-serializable"), level("serializable-crooks")) is None


@pytest.mark.slow
def test_without_the_law_of_versions_nothing_is_derived_from_dependencies(monkeypatch):
    without = tuple(
        law for law in LAWS if not law.sentence.startswith("a rival precedes the source")
    )
    assert len(without) == len(LAWS) - 1
    monkeypatch.setattr(theory, "LAWS", without)
    assert derive_inclusion(level("pl-3"), level("serializable-crooks")) is None


@pytest.mark.slow
def test_a_law_that_is_false_would_derive_what_is_not_so(monkeypatch):
    """The laws are what keeps it honest: with a false one a level implies what a history tells from
    it.
    """
    false = Law("", (("u", "[~Initial] ; rival", "r"), ("s", "rf", "r")), (("u", "ww+", "s"),))
    monkeypatch.setattr(theory, "LAWS", (*LAWS, false))
    assert (
        derive_inclusion(level("causal-in-version-order"), level("serializable-crooks")) is not None
    )


def test_once_the_budget_is_spent_nothing_is_derived():
    assert derive_inclusion(level("causal"), level("causal-cerone"), Budget(0)) is None


def test_cases_of_a_relation_are_its_parts():
    assert [str(one) for one in union_branches(relation("(so | wr) ; (ww | rw)"))] == [
        "(so ; ww)", "(so ; rw)", "(wr ; ww)", "(wr ; rw)"
    ]  # fmt: skip
