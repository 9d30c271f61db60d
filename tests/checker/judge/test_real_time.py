"""Levels that ask for real time, and for items and predicates apart."""

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker import check, compare, run, separate
from isolitmus.checker.execution.commit_loop import (
    execute,
    execution_frame,
    frame_for_spec,
    judge_execution,
)
from isolitmus.checker.execution.denotation import denote
from isolitmus.checker.judge.completion import frames
from isolitmus.checker.strategies import litmus_tests
from isolitmus.checker.sweeps.abstract_sweep import sweep_abstract
from isolitmus.checker.universes.abstract import interval_orders, with_schedule
from isolitmus.model.errors import HistoryError, IsolitmusError, UndeterminedError
from isolitmus.model.history import History
from isolitmus.model.operations import Transaction
from isolitmus.specs import level, litmus, protocol
from isolitmus.specs import scope as named_scope
from isolitmus.specs.files.catalogue import litmus_names

STRICT, PLAIN = level("strict-serializable"), level("serializable")
STRONG, SNAPSHOT = level("strong-snapshot-isolation"), level("snapshot-isolation")


def verdict(history, spec):
    return str(check(history, spec).levels[spec.name])


@st.composite
def timed(draw):
    """Histories of up to four transactions over two objects, and when they began and ended."""
    count = draw(st.integers(1, 4))
    numbers = range(1, count + 1)
    writes = {n: draw(st.sets(st.sampled_from("xy"))) for n in numbers}
    table = {}
    for n in numbers:
        reads = [
            f"r({x}{draw(st.sampled_from([0, *(m for m in numbers if m != n and x in writes[m])]))})"
            for x in sorted(draw(st.sets(st.sampled_from("xy"))))
        ]
        table[f"T{n}"] = " ".join([*reads, *(f"w({x}{n})" for x in sorted(writes[n]))])
    moments = draw(st.permutations([n for n in numbers for _ in range(2)]))
    seen = set()
    words = []
    for n in moments:
        words.append(f"T{n}.{'end' if n in seen else 'start'}")
        seen.add(n)
    table["schedule"] = " ".join(words)
    return table


def in_some_order(table):
    """Whether the transactions, one after another in an order that keeps real time, read what they
    read: executed.
    """
    names = [name for name in table if name != "schedule"]
    words = table["schedule"].split()
    place = {word: k for k, word in enumerate(words)}

    def explains(order):
        state = {"x": "x0", "y": "y0"}
        for name in order:
            for operation in table[name].split():
                version = operation[2:-1]
                if operation[0] == "w":
                    state[version[0]] = version
                elif state[version[0]] != version:
                    return False
        return True

    def late(order):
        return any(
            place[f"{later}.end"] < place[f"{earlier}.start"]
            for k, earlier in enumerate(order)
            for later in order[k + 1 :]
        )

    return any(explains(order) and not late(order) for order in permutations(names))


@pytest.mark.slow
@given(timed())
def test_strict_is_some_order_in_time(table):
    history = History.from_table(table)
    assert (verdict(history, STRICT) == "allowed") == in_some_order(table)


@pytest.mark.slow
@given(timed())
def test_time_only_adds(table):
    history = History.from_table(table)
    for strong, weak in ((STRICT, PLAIN), (STRONG, SNAPSHOT), (STRICT, STRONG)):
        assert verdict(history, strong) == "forbidden" or verdict(history, weak) == "allowed"


@given(timed())
def test_real_time_is_an_order_of_intervals(table):
    relation = frames(History.from_table(table)).__next__().relations["rt"]
    assert relation.acyclic()
    pairs = set(relation.pairs())
    for a, b in pairs:
        for c, d in pairs:
            assert (a, d) in pairs or (c, b) in pairs


def by_snapshots(table):
    """Whether each reads the state in which it begins, and nobody wrote, while it ran, what it
    writes: executed.
    """
    state, at_start = {"x": "x0", "y": "y0"}, {}
    for moment in table["schedule"].split():
        name, what = moment.split(".")
        if what == "start":
            at_start[name] = dict(state)
            continue
        for operation in table[name].split():
            version = operation[2:-1]
            if at_start[name][version[0]] != (
                version if operation[0] == "r" else state[version[0]]
            ):
                return False
        state |= {op[2]: op[2:-1] for op in table[name].split() if op[0] == "w"}
    return True


@pytest.mark.slow
@given(timed())
def test_pl_si_reads_the_state_of_its_start(table):
    found = verdict(History.from_table(table), level("pl-si")) == "allowed"
    assert found == by_snapshots(table)


@pytest.mark.slow
@given(timed())
def test_pl_si_is_strong(table):
    history = History.from_table(table)
    for weak in ("strong-snapshot-isolation", "generalized-snapshot-isolation", "pl-2-plus"):
        assert (
            verdict(history, level("pl-si")) == "forbidden"
            or verdict(history, level(weak)) == "allowed"
        )


@pytest.mark.slow
@given(timed())
def test_of_items_alone_the_parts_are_the_whole(table):
    history = History.from_table(table)
    assert verdict(history, level("pl-2-99")) == verdict(history, level("pl-3"))
    frame = next(frames(history))
    assert frame.relations["rw-item"] == frame.relations["rw"]
    assert not frame.relations["rw-predicate"].pairs()


def test_without_a_schedule_there_is_no_time():
    history = History.parse("w1(x1) r2(x0)")
    assert str(check(history, STRICT).levels[STRICT.name]) == "needs rt"


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("T1.end T1.start", "T1.end, which is number 1, comes before T1.start, number 2"),
        ("T2", "T2.start is of T2, which does nothing here; known: T1"),
        ("T1 T1.end", "T1.end stands twice"),
        ("T1.begin", "'T1.begin' is not a moment; write T1.start, T1[1] for its first operation"),
        ("T1[0]", "'T1[0]' is not a moment"),
        ("T1[1] T1", "T1[1], which is number 1, comes before T1.start, number 2"),
        ("T1.start T1[2] T1.end", "T1[2] is none; T1 has 1 operation"),
        ("T1.start T1.end T1[1]", "T1.end, which is number 2, comes before T1[1], number 3"),
        ("T1.start T1[1] T1[1]", "T1[1] stands twice"),
    ],
)
def test_what_is_wrong_with_a_schedule(schedule, message):
    with pytest.raises(HistoryError, match="schedule: ") as error:
        History.from_table({"T1": "w(x1)", "schedule": schedule})
    assert message in str(error.value)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_every_order_of_intervals_has_its_schedule(n):
    """What is said of who had ended is what a history with that schedule says."""
    seen = set()
    for ended in interval_orders(n):
        transactions = tuple(Transaction(t + 1, ()) for t in range(n))
        history = History(transactions, schedule=with_schedule(ended))
        found = set(next(frames(history)).relations["rt"].pairs())
        assert found == {(i, j) for i in range(n) for j in range(n) if ended[i][j]}
        seen.add(frozenset(found))
    assert seen == {frozenset(overtaken(moments)) for moments in permutations([*range(n)] * 2)}


def overtaken(moments):
    """Of places at which each first begins, then ends: who had ended when another one began."""
    ends = {t: len(moments) - 1 - moments[::-1].index(t) for t in moments}
    return [(i, j) for i in ends for j in ends if ends[i] < moments.index(j)]


TIMED = [
    ("serializable", "strict-serializable"),
    ("strict-serializable", "serializable"),
    ("strong-snapshot-isolation", "strict-serializable"),
    ("strict-serializable", "strong-snapshot-isolation"),
    ("snapshot-isolation", "strong-snapshot-isolation"),
    ("strong-snapshot-isolation", "serializable"),
    ("serializable", "strong-snapshot-isolation"),
    ("pl-si", "strong-snapshot-isolation"),
    ("strong-snapshot-isolation", "pl-si"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), TIMED, ids="/".join)
def test_both_searches_agree_on_what_time_tells(a, b):
    """What they find is judged anew from its text; the smallest has as many links, operations and
    keys.
    """
    found = [
        separate(level(a), level(b), "abstract", transactions=[1, 2], by=by, shipped=False)
        for by in ("symbolic", "exhaustive")
    ]
    assert found[0].found == found[1].found
    if found[0].found:
        sizes = [
            (
                len(one.litmus.history.transactions),
                len(one.litmus.history.sessions),
                one.litmus.history.operations,
            )
            for one in found
        ]
        assert sizes[0] == sizes[1]


def test_histories_without_times_are_counted_and_drawn():
    with pytest.raises(IsolitmusError, match="needs rt, which the counted histories do not have"):
        sweep_abstract([STRICT], 2, 1)


# On tables: a schedule says what was when


def by_places(test):
    """Who had ended when somebody else began, from the words of the schedule."""
    words = [word.partition(".")[0].partition("[")[0] for word in str(test.schedule).split()]
    return {
        (a, b)
        for a in set(words)
        for b in set(words)
        if len(words) - 1 - words[::-1].index(a) < words.index(b)
    }


def pairs_of(frame, name):
    return {(frame.nodes[i], frame.nodes[j]) for i, j in frame.relations[name].pairs()}


@pytest.mark.slow
@given(litmus_tests(sessions=True))
def test_a_schedule_says_what_was_when(test):
    """Readers, too; and on one table what had ended before somebody began is what that sees, and
    comes first in the log.
    """
    try:
        execution = execute(test)
    except UndeterminedError:
        return
    timed = execution_frame(execution, times=True)
    there = {event.name for event in execution.events if not event.aborted}
    real = pairs_of(timed, "rt")
    assert real == {pair for pair in by_places(test) if {*pair} <= there}
    writers = {e.name for e in execution.events if e.version is not None}
    assert {(a, b) for a, b in real if a in writers} <= pairs_of(timed, "vis")
    assert {pair for pair in real if {*pair} <= writers} <= pairs_of(timed, "log")
    assert {str(why) for (name, _, _), why in timed.reasons.items() if name == "rt"} == {
        f"{a} had ended when {b} started" for a, b in real
    }


@pytest.mark.slow
@given(litmus_tests())
def test_on_tables_time_only_adds(test):
    try:
        execution = execute(test)
    except UndeterminedError:
        return
    for plain, strict in ((PLAIN, STRICT), (SNAPSHOT, STRONG)):
        verdict = judge_execution(execution, strict)
        assert str(verdict) in ("allowed", "forbidden")
        assert judge_execution(execution, plain) or not verdict


def test_a_frame_has_times_only_for_who_asks():
    execution = execute(litmus("reorder-reader-in-time"))
    assert "rt" not in execution_frame(execution, reads=True).relations
    assert "rt" not in frame_for_spec(PLAIN, execution).relations
    assert pairs_of(frame_for_spec(STRICT, execution), "rt") == {("insert", "reader")}
    assert "rt" not in denote(litmus("reorder-reader-in-time")).frame.relations
    assert denote(litmus("reorder-reader-in-time"), STRICT).values[-1].items == (
        ("insert", "reader"),
        ("reader", "delete"),
        ("delete", "insert"),
    )


def test_what_a_client_reads_before_it_starts_is_within_its_time():
    """It read before the other ended, though its transaction began afterwards."""
    name = "collect-then-append"
    frame = frame_for_spec(STRICT, execute(litmus(name)))
    first = str(litmus(name).schedule).split()[0].partition(".")[0]
    assert all(later != first for _, later in pairs_of(frame, "rt"))


@pytest.mark.parametrize("name", ["reorder-reader-in-time", "reorder", "write-skew-two-tables"])
def test_an_observed_run_has_the_times_of_its_schedule(name):
    test = litmus(name)
    own = run(test, protocol("delta-write-serializable"))
    observed = replace(own, execution=None)  # as of an engine, from what it shows
    assert str(observed.verdict(STRICT)) == str(own.verdict(STRICT)) in ("allowed", "forbidden")


@pytest.mark.slow
def test_where_transactions_wait_nobody_knows_when_they_ended():
    name, *_ = [n for n in litmus_names("locking") if litmus(n).format == "locking"]
    assert str(judge_execution(execute(litmus(name)), STRICT)) == "needs rt"


@pytest.mark.slow
def test_a_search_of_tables_has_no_times():
    message = "strict-serializable needs rt, which searches of tables do not have"
    for a, b in ((PLAIN, STRICT), (STRICT, PLAIN)):
        with pytest.raises(IsolitmusError, match=message):
            separate(a, b, named_scope("table"))
    found = compare([PLAIN, SNAPSHOT, STRICT], named_scope("table"))
    assert found.apart == {STRICT.name: "search space 'table' does not have rt"}
