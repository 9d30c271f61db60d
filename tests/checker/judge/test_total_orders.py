"""Orders of commits that binders suppose: what levels by them say against what levels by
dependencies say.
"""

from itertools import pairwise

import pytest
from hypothesis import given

from isolitmus.checker import compare
from isolitmus.checker.execution.denotation import denote
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.judge.total_orders import linear_completions
from isolitmus.checker.search.separation import separate
from isolitmus.checker.strategies import histories
from isolitmus.checker.universes import abstract_enumeration as abstract_exhaustive
from isolitmus.checker.universes.abstract import Variation
from isolitmus.model.history import History
from isolitmus.model.verdict import Forbidden, Needs
from isolitmus.specs import level, litmus
from isolitmus.specs.files.spec_reader import read_spec

IN_ORDER = {  # with ww from co: they keep an order of versions that was observed
    "parallel-snapshot-isolation-cerone": "parallel-snapshot-isolation",
    "snapshot-isolation-biswas-enea": "snapshot-isolation",
    "snapshot-isolation-cerone": "snapshot-isolation",
    "snapshot-isolation-crooks": "generalized-snapshot-isolation",
}
EQUAL = IN_ORDER | {
    "causal-cerone": "causal",
    "causal-in-version-order": "causal",
    "read-atomic-in-version-order": "read-atomic",
    "prefix-consistency-biswas-enea": "prefix-consistency",
    "prefix-consistency-cerone": "prefix-consistency",
    "read-atomic-cerone": "read-atomic",
    "read-committed-crooks": "read-committed",
    "serializable-biswas-enea": "serializable",
    "serializable-cerone": "serializable",
    "serializable-crooks": "pl-3",
}
PREFIXES = """"Prefixes" with co from linearisations of so with vis from snapshots with ww from co
    empty wr \\ vis as reads-from-what-it-sees"""


def holds(history, name):
    return bool(check_history(history, level(name)))


@pytest.mark.slow
@pytest.mark.parametrize("name", EQUAL)
@given(history=histories(keys="xy"))
def test_by_orders_of_commits_a_level_is_that_of_dependencies(name, history):
    assert holds(history, name) == holds(history, EQUAL[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_ORDER)
@given(history=histories(keys="xy", observed=True))
def test_an_order_of_versions_that_was_observed_is_kept(name, history):
    assert holds(history, name) == holds(history, EQUAL[name])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stronger", "weaker"),
    [
        ("prefix-consistency", "causal-in-version-order"),
        ("parallel-snapshot-isolation", "causal-in-version-order"),
        ("causal-in-version-order", "read-atomic-in-version-order"),
        ("causal-in-version-order", "causal"),
        ("read-atomic-in-version-order", "read-atomic"),
        ("read-atomic-in-version-order", "read-committed"),
        ("causal-in-version-order", "monotonic-writes"),
        ("causal-in-version-order", "writes-follow-reads"),
    ],
)
@given(history=histories(keys="xy", observed=True))
def test_with_an_order_of_versions_weak_levels_stand_in_one_line(stronger, weaker, history):
    assert not holds(history, stronger) or holds(history, weaker)


@pytest.mark.slow
@given(histories(keys="xy"))
def test_crooks_s_read_atomic_is_that_without_sessions(history):
    alone = History(history.transactions, (), history.order)
    assert holds(history, "read-atomic-crooks") == holds(alone, "read-atomic")


def none_up_to(n, stronger, weaker, by):
    found = separate(level(stronger), level(weaker), transactions=range(1, n + 1), by=by)
    return not found.found or found.ships is not None  # one that ships has an observed order


@pytest.mark.slow
@pytest.mark.parametrize("by", ["symbolic", "exhaustive"])
@pytest.mark.parametrize("name", EQUAL)
def test_no_small_history_tells_them_apart(name, by):
    n = 3 if by == "symbolic" else 2
    assert none_up_to(n, name, EQUAL[name], by)
    assert none_up_to(n, EQUAL[name], name, by)


@pytest.mark.slow
@pytest.mark.wide
def test_no_history_of_three_tells_them_apart():
    name = "serializable-biswas-enea"
    for a, b in ((name, EQUAL[name]), (EQUAL[name], name)):
        assert not abstract_exhaustive.search(
            level(a), level(b), 3, Variation(sessions=True, aborts=False)
        )[0]


@pytest.mark.slow
@pytest.mark.parametrize("by", ["symbolic", "exhaustive"])
@pytest.mark.parametrize(
    ("weaker", "stronger"),
    [
        ("snapshot-isolation-cerone", "serializable-biswas-enea"),
        ("prefix-consistency-biswas-enea", "snapshot-isolation-cerone"),
        ("read-atomic-crooks", "read-atomic-cerone"),
        ("read-committed-crooks", "read-atomic-crooks"),
        ("observed", "snapshot-isolation-cerone"),
        ("snapshot-isolation-cerone", "observed"),
    ],
)
def test_what_tells_levels_by_orders_apart_is_found(weaker, stronger, by):
    observed = read_spec('"Observed" acyclic ww | wr | rw as order', "observed")
    a, b = (observed if name == "observed" else level(name) for name in (weaker, stronger))
    answer = separate(a, b, by=by)
    assert answer.found
    assert answer.transactions == 2


@pytest.mark.slow
@given(histories(keys="xy", observed=True))
def test_an_order_is_total_and_what_is_seen_a_prefix_of_it(history):
    spec = read_spec(PREFIXES, "prefixes")
    for one in list(linear_completions(history, spec))[:50]:
        frame = one.frame(reads=True)
        co, vis = frame.relations["co"], frame.relations["vis"]
        nodes = range(frame.transactions + 1)
        assert all(((i, j) in co) != ((j, i) in co) for i in nodes for j in nodes if i != j)
        assert co.acyclic()
        assert not vis - co
        assert not (co @ vis) - vis


@pytest.mark.slow
@given(histories(keys="xy", observed=True))
def test_what_is_not_tried_would_have_been_forbidden(history):
    all_tried = PREFIXES.replace(" of so", "").replace("empty wr \\ vis", "empty (wr ; wr*) \\ vis")
    tried = [
        read_spec(PREFIXES, "prefixes"),
        read_spec(all_tried + " empty so \\ co as sessions", "all"),
    ]
    assert bool(check_history(history, tried[0])) == bool(check_history(history, tried[1]))


@pytest.mark.slow
def test_levels_by_orders_are_placed_among_the_others():
    names = ["serializable-cerone", "snapshot-isolation", "snapshot-isolation-cerone"]
    found = compare([level(name) for name in names], "abstract", transactions=2)
    (lattice,) = found.lattices
    assert not found.apart
    assert lattice.relation("snapshot-isolation-cerone", "snapshot-isolation") == "equal"
    assert lattice.relation("serializable-cerone", "snapshot-isolation") == "incomparable"


def test_a_verdict_says_what_is_supposed():
    verdict = check_history(litmus("history-write-skew").history, level("serializable-biswas-enea"))
    assert isinstance(verdict, Forbidden)
    assert [str(*v.supposing) for v in verdict.violations] == [
        "T1 T2 commit in this order",
        "T2 T1 commit in this order",
    ]
    assert [edge.why for edge in verdict.violations[0].cycle] == [
        "T1 wrote x1, and T1 commits before T2, by assumption, but T2 read x0, which T0 wrote",
        "T0 commits before T1, by assumption",
    ]


def test_where_no_order_agrees_the_cycle_is_shown():
    cycle = litmus("history-circular-information-flow").history
    verdict = check_history(cycle, level("serializable-biswas-enea"))
    assert verdict.violations[0].axiom == "linearisation"
    assert {edge.kind for edge in verdict.violations[0].cycle} == {"wr"}
    written = check_history(
        litmus("history-write-cycle").history, level("snapshot-isolation-cerone")
    )
    assert written.violations[0].axiom == "order-of-versions"


def test_the_witness_is_the_order():
    history = History.parse("r1(x0) w2(x2) w3(y3) r1(y3)")
    verdict = check_history(history, level("serializable-biswas-enea"))
    assert [*pairwise(verdict.witness)] == [("T3", "T1"), ("T1", "T2")]


def test_a_table_has_no_order_of_commits_to_suppose():
    from isolitmus.checker import check

    verdict = check(litmus("reorder"), [level("snapshot-isolation-cerone")]).levels
    assert verdict["snapshot-isolation-cerone"] == Needs(("co",))


def test_an_order_agrees_with_nothing_that_is_not_there():
    spec = read_spec('"Logged" with co from linearisations of log', "logged")
    assert check_history(History.parse("w1(x1)"), spec) == Needs(("log",))


def test_an_order_that_nothing_binds_is_needed():
    spec = read_spec('"Unbound" acyclic co | wr as order', "unbound")
    assert check_history(History.parse("w1(x1)"), spec) == Needs(("co",))


def test_show_has_one_order():
    seen = denote(litmus("history-write-skew"), level("serializable-cerone"))
    assert "the order of their commits was not observed" in seen.unknown
    assert [v.items for v in seen.values if v.name == "TOTALVIS"] == [(("T1", "T2"),)]
