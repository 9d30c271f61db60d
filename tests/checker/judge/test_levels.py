"""Levels against second definitions of them, and the lattice: laws over random abstract histories.

The levels are dependency graphs, or axioms over single reads. Here they are compared with what is
no graph: orders of the transactions, and what each of them saw (Cerone, Bernardi and Gotsman,
CONCUR 2015), and with dependency graphs that follow from those.
"""

from functools import cache
from itertools import combinations, pairwise, permutations, product

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from isolitmus.checker.judge.completion import frames
from isolitmus.checker.judge.graph_semantics import BitsetAlgebra
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.strategies import histories
from isolitmus.model.history import History
from isolitmus.model.operations import ItemRead
from isolitmus.model.spec import Fold
from isolitmus.model.verdict import Allowed, Forbidden
from isolitmus.specs.files.catalogue import litmus
from isolitmus.specs.files.spec_catalogue import level
from isolitmus.specs.files.spec_reader import read_spec

WEAK = ["read-committed", "read-atomic", "causal", "prefix-consistency", "update-serializable"]
SER, SI = "serializable", "snapshot-isolation"


def holds(history, name):
    return bool(check_history(history, level(name)))


# Definitions that are no graphs


def reads_of(transaction):
    """What it read of others; an own write is read as it was written."""
    return [
        op.version
        for op in transaction.operations
        if isinstance(op, ItemRead) and op.version.writer != transaction.number
    ]


def last_writer(name, before):
    return next((t.number for t in reversed(before) if any(v.object == name for v in t.writes)), 0)


def in_session_order(history, order):
    place = {t.number: k for k, t in enumerate(order)}
    return all(place[a] < place[b] for s in history.sessions for a, b in pairwise(s))


def some_serial_order(history):
    """Every read returns the last version before it in one order of the transactions."""
    return any(
        in_session_order(history, order)
        and all(
            last_writer(v.object, order[:k]) == v.writer
            for k, t in enumerate(order)
            for v in reads_of(t)
        )
        for order in permutations(history.transactions)
    )


def some_prefixes(history, *, conflicts):
    """Everyone reads a prefix of one order, sessions their own transactions; unless ``conflicts``,
    who writes what another one wrote has seen it."""
    writes = {t.number: {v.object for v in t.writes} for t in history.transactions}
    together = [pair for s in history.sessions for pair in combinations(s, 2)]
    for order in permutations(history.transactions):
        if not in_session_order(history, order):
            continue
        place = {t.number: k for k, t in enumerate(order)}
        for snapshots in product(*(range(k + 1) for k in range(len(order)))):
            if (
                all(place[a] < snapshots[place[b]] for a, b in together)
                and all(
                    last_writer(v.object, order[:s]) == v.writer
                    for t, s in zip(order, snapshots, strict=True)
                    for v in reads_of(t)
                )
                and (
                    conflicts
                    or not any(
                        writes[t.number] & writes[missed.number]
                        for k, (t, s) in enumerate(zip(order, snapshots, strict=True))
                        for missed in order[s:k]
                    )
                )
            ):
                return True
    return False


def some_arbitration(history, *, transitive):
    """An order that contains what everyone saw, in which each read returns the last version seen.

    To see is to come later in the session or to read from; if ``transitive``, by way of others too.
    To see less than that is no abstract execution, to see more changes no read for the better.
    """
    saw = {t.number: {v.writer for v in reads_of(t)} - {0} for t in history.transactions}
    for session in history.sessions:
        for a, b in combinations(session, 2):
            saw[b].add(a)
    while transitive:
        more = {b: seen.union(*(saw[a] for a in seen)) for b, seen in saw.items()}
        if more == saw:
            break
        saw = more
    return any(
        all(saw[t.number] <= {u.number for u in order[:k]} for k, t in enumerate(order))
        and all(
            last_writer(v.object, [u for u in order if u.number in saw[t.number]]) == v.writer
            for t in order
            for v in reads_of(t)
        )
        for order in permutations(history.transactions)
    )


READ_BEFORE_SEVERAL = [
    History.from_table(table)
    for table in (
        {"T1": "w(x1) w(y1)", "T2": "w(x2) w(y2)", "T3": "r(x0) w(x3) w(y3)", "T4": "r(x1) w(x4) w(y4)"},
        {"T1": "r(x3) w(x1) w(y1)", "T2": "w(x2) w(y2)", "T3": "w(x3) w(y3)", "T4": "r(x1) w(x4) w(y4)"},
    )
]  # fmt: skip
"""T3 T1 T4 T2 explains both; versions have so many orders that a solver proposes them, and reads
miss several.
"""
SECOND = {
    SER: some_serial_order,
    SI: lambda h: some_prefixes(h, conflicts=False),
    "prefix-consistency": lambda h: some_prefixes(h, conflicts=True),
    "causal": lambda h: some_arbitration(h, transitive=True),
    "read-atomic": lambda h: some_arbitration(h, transitive=False),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SECOND)
@settings(max_examples=4 * settings.default.max_examples)
@given(history=histories(keys="xy"))
@example(history=READ_BEFORE_SEVERAL[0])
@example(history=READ_BEFORE_SEVERAL[1])
def test_levels_are_those_of_abstract_executions(name, history):
    assert holds(history, name) == SECOND[name](history)


# Dependency graphs, as a second text

MISSED = """
let later = (so | ww)+
let missed = in^-1 ; (rival^-1 & (rf^-1 ; later))
"""
GRAPHS = {
    "read-atomic": "irreflexive (so | wr) ; missed as fractured",
    "causal": "irreflexive (so | wr)+ ; missed as stale",
    "prefix-consistency": "acyclic ((so | wr) ; missed?) | ww as prefix",
}


@cache
def graph(name):
    """Cerone and Gotsman's form: some version order that agrees with sessions and reads, and no one
    missed what they saw. ``missed`` leads from a reader to each who wrote what it read later, next
    or not: with Adya's ``rw``, which leads to the next one only, these would not be the levels.
    """
    acyclic = "acyclic so | wr | ww as order"
    return read_spec(f'"Graph" with ww from versions {MISSED} {acyclic} {GRAPHS[name]}', "graph")


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
@given(history=histories(keys="xyz"))
def test_levels_are_those_of_dependency_graphs(name, history):
    assert holds(history, name) == bool(check_history(history, graph(name)))


APART = [("", ""), ("", "x"), ("", "xy"), ("x", "x"), ("x", "y"), ("x", "xy"), ("xy", "xy")]
"""What two transactions write, up to the names of keys and of transactions."""
IN_TURN = [*APART, ("x", ""), ("xy", ""), ("xy", "x")]
"""The same of two of one session."""
SHAPES = [*((*wrote, []) for wrote in APART), *((*wrote, ["T1 T2"]) for wrote in IN_TURN)]


def small():
    """Every history of two transactions and two keys: reads of each key, or none, before writes; of
    those that differ by the names of keys, and without a session of transactions, one.
    """
    for mine, theirs, sessions in SHAPES:
        texts = []
        for n, own, other in ((1, mine, theirs), (2, theirs, mine)):
            choices = [
                ["", f"r({key}0)", *([f"r({key}{3 - n})"] if key in other else [])] for key in "xy"
            ]
            tail = [f"w({key}{n})" for key in own]
            texts.append([" ".join([*filter(None, reads), *tail]) for reads in product(*choices)])
        for first, second in product(*texts):
            yield History.from_table({"T1": first, "T2": second, "sessions": sessions})


@pytest.mark.slow
def test_two_transactions_and_two_keys_exhaustively():
    found = list(small())
    assert len(found) == 283 + 397
    allowed = dict.fromkeys(SECOND, 0)
    for history in found:
        for name, second in SECOND.items():
            verdict = holds(history, name)
            assert verdict == second(history), (name, history)
            if name in GRAPHS:
                assert verdict == bool(check_history(history, graph(name))), (name, history)
            allowed[name] += verdict
    assert list(allowed.values()) == sorted(allowed.values())
    assert allowed[SER] < allowed[SI] < allowed["prefix-consistency"]


# The lattice

LATTICE = [
    (SER, SI),
    (SI, "prefix-consistency"),
    ("prefix-consistency", "causal"),
    ("causal", "read-atomic"),
    (SER, "update-serializable"),
    ("prefix-consistency", "read-committed"),
    ("update-serializable", "read-committed"),
    ("update-serializable", "write-serializable"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("stronger", "weaker"), LATTICE)
@given(history=histories(keys="xyz", predicates=True, observed=True))
def test_the_lattice(stronger, weaker, history):
    if holds(history, stronger):
        assert holds(history, weaker)


PER_READ = read_spec(
    '"Read committed, read by read" with ww from versions empty [Aborted] ; wr as g1a'
    " acyclic so | wr | (rival & (rf ; po)) ; rf^-1 as monotonic",
    "biswas-enea",
)


@pytest.mark.slow
@given(histories(keys="xyz"))
def test_read_committed_of_items_follows_from_orders_of_what_was_read(history):
    """Biswas and Enea's levels order who was read from, and that order is a version order of which
    nobody observed another one. Where one was observed they do not look at it (the write cycle of
    the catalogue is atomic and not read committed), and what a predicate read depends on differs
    from one version order to the other."""
    if holds(history, "read-atomic"):
        assert check_history(history, PER_READ)
    if check_history(history, PER_READ):
        assert holds(history, "read-committed")


@pytest.mark.slow
@given(histories(keys="xyz", predicates=True, observed=True))
def test_without_sessions_update_serializable_is_causal(history):
    alone = History(history.transactions, (), history.order)
    if holds(alone, "update-serializable"):
        assert holds(alone, "causal")


NOT = {  # weaker, stronger, a history of the former that is none of the latter
    ("read-atomic", "read-committed"): "w1(x1) w1(y1) w2(x2) w2(y2) [x1 < x2, y2 < y1]",
    ("causal", "read-committed"): "w3(z3) r1(z3) w1(x1) w1(y1) r2(x1) w2(y2) r3(P: y2 | y0, y1*)",
    ("read-committed", "read-atomic"): "w1(x1) r2(x0) r2(x1)",
    ("update-serializable", "prefix-consistency"): "w1(x1) w2(y2) r3(x1) r3(y0) r4(x0) r4(y2)",
    (SI, "update-serializable"): "r1(x0) r1(y0) r2(x0) r2(y0) w1(x1) w2(y2)",
    ("write-serializable", "read-committed"): "w1(x1) r2(x1) a1 c2",
}


@pytest.mark.parametrize(("first", "second"), NOT)
def test_what_does_not_follow(first, second):
    history = History.parse(NOT[first, second])
    assert holds(history, first)
    assert not holds(history, second)


def test_read_committed_read_by_read_is_stronger():
    """Adya's lets a transaction read an older version after a newer one; Biswas and Enea's does
    not.
    """
    backwards = History.parse("w1(x1) r2(x1) r2(x0)")
    assert holds(backwards, "read-committed")
    assert not check_history(backwards, PER_READ)


@given(histories())
def test_a_witness_explains_every_read(history):
    verdict = check_history(history, level(SER))
    if isinstance(verdict, Allowed):
        by_name = {t.name: t for t in history.transactions}
        order = [by_name[name] for name in verdict.witness]
        assert in_session_order(history, order)
        for k, transaction in enumerate(order):
            for version in reads_of(transaction):
                assert last_writer(version.object, order[:k]) == version.writer


@pytest.mark.slow
@pytest.mark.parametrize("name", WEAK)
@given(history=histories(predicates=True))
def test_a_witness_lists_the_transactions(name, history):
    verdict = check_history(history, level(name))
    if isinstance(verdict, Allowed):
        writers = [t.name for t in history.transactions if t.writes]
        everyone = [t.name for t in history.transactions]
        assert sorted(verdict.witness) == (writers if name == "update-serializable" else everyone)


@given(history=histories(keys="xyz"))
def test_each_reader_of_update_serializable_has_an_order_of_its_own_that_explains_it(history):
    """An order of the writers by which what they read is the last write; and for each reader such
    an order, perhaps another one, in which it has a place."""
    verdict = check_history(history, level("update-serializable"))
    if isinstance(verdict, Allowed):
        by_name = {t.name: t for t in history.transactions}
        readers = [t.name for t in history.transactions if not t.writes]
        assert [[n for n in order if n in readers] for order in verdict.alone] == [
            [n] for n in readers
        ]
        for names in (verdict.witness, *verdict.alone):
            order = [by_name[name] for name in names]
            for k, transaction in enumerate(order):
                for version in reads_of(transaction):
                    assert last_writer(version.object, order[:k]) == version.writer


def test_readers_of_a_long_fork_have_orders_that_differ():
    verdict = check_history(litmus("history-long-fork").history, level("update-serializable"))
    assert verdict.witness == ("T1", "T2")
    assert verdict.alone == (("T1", "T3", "T2"), ("T2", "T4", "T1"))


def test_an_order_of_the_writers_gives_no_reader_a_place():
    verdict = check_history(litmus("history-fractured-read").history, level("write-serializable"))
    assert verdict == Allowed(("T1",))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("weaker", "name"), [("read-committed", "read-atomic"), ("read-atomic", "causal")]
)
@given(data=st.data())
def test_a_way_through_reads_is_one_edge_whose_kind_is_an_expression(weaker, name, data):
    any_, known = histories(keys="xyz"), histories(level=weaker, forbidden_by=name, keys="xyz")
    history = data.draw(any_ | known)
    verdict = check_history(history, level(name))
    assume(isinstance(verdict, Forbidden))
    frame = next(frames(history, reads=True))
    (violation,) = verdict.violations
    place = {node: i for i, node in enumerate(frame.nodes[: frame.transactions + 1])}
    for edge, following in pairwise([*violation.cycle, violation.cycle[0]]):
        assert edge.target == following.source
        assert edge.source in edge.why
        assert edge.target in edge.why
        kind = read_spec(f'"Kind" empty {edge.kind} as kind', "kind").axioms[0].expr
        relation = Fold(BitsetAlgebra(frame), {}).relation(kind)
        assert (place[edge.source], place[edge.target]) in relation
