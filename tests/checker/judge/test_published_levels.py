"""The levels that are asked only by their names, against second definitions of them, and where they
stand among the others.
"""

import re
from itertools import permutations

import pytest
from case_checks import check_cases, sample, sampled
from hypothesis import given

from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.search.separation import separate
from isolitmus.checker.strategies import histories
from isolitmus.model.history import History
from isolitmus.model.operations import ItemRead
from isolitmus.specs import level
from isolitmus.specs.disk.input_files import shipped_files
from isolitmus.specs.files.spec_catalogue import every_level, levels

BY = ("symbolic", "exhaustive")


def holds(history, name):
    return bool(check_history(history, level(name)))


def test_a_level_says_which_published_one_it_is_not():
    texts = {name: shipped_files("levels")[name].read_text("utf-8") for name in every_level()}
    assert [n for n, text in texts.items() if not re.search(r"\bnot\b", text, re.IGNORECASE)] == []
    assert len(texts) > 50


# What a session is promised, read by read, by one order of the transactions


def reads_of(transaction):
    return [
        op.version
        for op in transaction.operations
        if isinstance(op, ItemRead) and op.version.writer != transaction.number
    ]


def some_order(history, *, sees, first):
    """One order of the transactions in which those pairs that ``first`` names come so, and each
    read returns no older version than those which, as ``sees`` has it, its transaction sees. T0
    comes first of all.
    """
    so = {(a, b) for s in history.sessions for k, a in enumerate(s) for b in s[k + 1 :]}
    wr = {(v.writer, t.number) for t in history.transactions for v in reads_of(t)}
    wrote = {t.number: {v.object for v in t.writes} for t in history.transactions}
    writes = {n for n, objects in wrote.items() if objects}
    for order in permutations(wrote):
        place = {0: -1} | {n: k for k, n in enumerate(order)}
        versions = [(a.writer, b.writer) for a, b in history.order]
        if all(place[a] < place[b] for a, b in [*versions, *first(so, wr, writes)]) and not any(
            (w, t.number) in sees(so, wr, writes)
            and w != t.number
            and v.object in wrote.get(w, ())
            and place[v.writer] < place[w]
            for t in history.transactions
            for v in reads_of(t)
            for w in wrote
        ):
            return True
    return False


def then(a, b):
    return {(i, k) for i, j in a for h, k in b if j == h}


def own(so, _wr, writes):
    return {(a, b) for a, b in so if {a, b} <= writes}


def had_seen(so, wr, writes):
    return {(a, b) for a, b in wr | then(wr, so) if b in writes and a}


def nothing(*_):
    return set()


PROMISED = {
    "read-your-writes": (lambda so, _wr, _writes: so, nothing),
    "monotonic-reads": (lambda so, wr, _writes: then(wr, so), nothing),
    "monotonic-writes": (lambda so, wr, writes: then(own(so, wr, writes), wr), own),
    "monotonic-writes-viotti": (nothing, own),
    "writes-follow-reads": (lambda so, wr, writes: then(had_seen(so, wr, writes), wr), had_seen),
    "writes-follow-reads-viotti": (nothing, had_seen),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROMISED)
@given(history=histories(keys="xy", observed=True))
def test_session_guarantees_are_those_of_one_order_of_the_writes(name, history):
    sees, first = PROMISED[name]
    assert holds(history, name) == some_order(history, sees=sees, first=first)


# Where they stand

STRONGER = [
    ("serializable", "pl-3"),
    ("pl-3", "update-serializable"),
    ("update-serializable", "pl-2-plus"),
    ("pl-2-plus", "read-committed"),
    ("read-committed", "pl-1"),
    ("snapshot-isolation", "parallel-snapshot-isolation"),
    ("snapshot-isolation", "generalized-snapshot-isolation"),
    ("generalized-snapshot-isolation", "pl-2-plus"),
    ("parallel-snapshot-isolation", "pl-2-plus"),
    ("parallel-snapshot-isolation", "causal"),
    ("parallel-snapshot-isolation", "monotonic-writes"),
    ("parallel-snapshot-isolation", "writes-follow-reads"),
    ("monotonic-writes", "monotonic-writes-viotti"),
    ("writes-follow-reads", "writes-follow-reads-viotti"),
]
UNOBSERVED = [
    ("causal", "read-your-writes"),
    ("causal", "monotonic-reads"),
    ("causal", "monotonic-writes"),
    ("causal", "writes-follow-reads"),
    ("read-atomic", "read-your-writes"),
    ("read-atomic", "read-committed-biswas-enea"),
    ("read-committed-biswas-enea", "read-committed"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("stronger", "weaker"), STRONGER)
@given(history=histories(keys="xyz", predicates=True, observed=True))
def test_what_is_stronger(stronger, weaker, history):
    assert not holds(history, stronger) or holds(history, weaker)


@pytest.mark.slow
@pytest.mark.parametrize(("stronger", "weaker"), UNOBSERVED)
@given(history=histories(keys="xyz"))
def test_what_is_stronger_where_nobody_observed_an_order(stronger, weaker, history):
    assert not holds(history, stronger) or holds(history, weaker)


@pytest.mark.slow
@given(histories(keys="xyz", predicates=True, observed=True))
def test_without_sessions_they_are_the_same(history):
    alone = History(history.transactions, (), history.order)
    for one, other in (
        ("pl-3", "serializable"),
        ("generalized-snapshot-isolation", "snapshot-isolation"),
        ("pl-2-plus", "parallel-snapshot-isolation"),
    ):
        assert holds(alone, one) == holds(alone, other)


APART = {  # weaker, stronger
    ("pl-2-plus", "pl-3"): "r1(x0) r1(y0) r2(x0) r2(y0) w1(x1) w2(y2)",
    ("pl-1", "read-committed"): "w1(x1) r2(x1) w2(y2) a1 c2",
    ("read-committed", "pl-2-plus"): "w1(x1) w1(y1) r2(x1) r2(y0)",
    (
        "parallel-snapshot-isolation",
        "snapshot-isolation",
    ): "w1(x1) w2(y2) r3(x1) r3(y0) r4(x0) r4(y2)",
    ("read-committed", "read-committed-biswas-enea"): "w1(x1) r2(x1) r2(x0)",
    (
        "read-committed-biswas-enea",
        "read-committed",
    ): "w1(x1) w1(y1) w2(x2) w2(y2) [x1 < x2, y2 < y1]",
}


@pytest.mark.parametrize(("weaker", "stronger"), APART)
def test_what_tells_them_apart(weaker, stronger):
    history = History.parse(APART[weaker, stronger])
    assert holds(history, weaker)
    assert not holds(history, stronger)


PUBLISHED = sorted({*every_level()} - {*levels()})
LISTED = [name for name in PUBLISHED if "time" not in level(name).needs and not level(name).given]
"""Without those that look at time, which test_phenomena.py enumerates, and that of named sets:
test_mixed_levels.py.
"""


@pytest.mark.slow
@sampled
def test_solver_and_enumeration_agree_on_what_is_published(seed, whole):
    def agree(a, b):
        found = [separate(level(a), level(b), transactions=[1, 2], by=by).found for by in BY]
        assert found[0] == found[1]

    pairs = [pair for name in LISTED for pair in ((name, "pl-3"), ("pl-3", name))]
    check_cases(agree, sample(pairs, seed, whole))
    assert len(pairs) >= 60
