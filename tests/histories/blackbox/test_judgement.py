"""Recorded histories of registers: verdicts against the definitions, tried order by order, and
against the levels.
"""

from dataclasses import replace
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_records import KEYS, recorded

from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.histories.blackbox.check import check_recorded
from isolitmus.histories.blackbox.columnar_graph import vector_clocks
from isolitmus.histories.blackbox.events import TIMED, Events
from isolitmus.histories.blackbox.explanation import explain_record
from isolitmus.histories.blackbox.judgement import ORDERED, POLYNOMIAL, judge_recorded
from isolitmus.histories.blackbox.read_from import attribute_reads
from isolitmus.histories.blackbox.recheck import confirm_cycle, find_misread
from isolitmus.histories.blackbox.version_order import VersionOrderConstraints, solve_version_order
from isolitmus.histories.readers.blackbox_history import (
    ABORTED,
    COMMITTED,
    INITIAL,
    UNKNOWN,
    RegisterHistory,
)
from isolitmus.model.budget import Budget
from isolitmus.model.errors import UnknownName
from isolitmus.model.history import History
from isolitmus.model.operations import ItemRead, Transaction, Version, Write
from isolitmus.specs.files.spec_catalogue import level

AWDIT = Path(__file__).parents[4] / "shared" / "datasets" / "awdit-tests"
FILES = sorted(path.relative_to(AWDIT).as_posix() for path in AWDIT.rglob("*.txt"))
ABSENT = pytest.param("", marks=pytest.mark.skip("no ../shared/datasets/awdit-tests here"))
LEVELS = POLYNOMIAL + ORDERED
ENDS = {COMMITTED: "committed", ABORTED: "aborted", UNKNOWN: "unknown"}


def verdicts(history):
    return {name: judge_recorded(history, name).verdict for name in LEVELS}


@st.composite
def drawn(draw, transactions=5, ends=(COMMITTED, COMMITTED, COMMITTED, ABORTED, UNKNOWN), keys=2):
    """A history in which each read sees what some transaction left, or nothing, or its own
    write.
    """
    many = draw(st.integers(1, transactions))
    sessions = sorted(draw(st.lists(st.integers(0, 2), min_size=many, max_size=many)))
    ops = st.tuples(st.booleans(), st.integers(0, keys - 1), st.integers(0, many))
    plans = [draw(st.lists(ops, max_size=4)) for _ in range(many)]
    values, left, value = {}, {}, 0
    for number, plan in enumerate(plans):
        for place, (is_write, key, _) in enumerate(plan):
            if is_write:
                values[number, place] = left[number, key] = value
                value += 1
    columns, first = [], [0]
    for number, plan in enumerate(plans):
        own = {}
        for place, (is_write, key, other) in enumerate(plan):
            if is_write:
                own[key] = values[number, place]
                columns.append((True, key, own[key]))
            else:
                there = INITIAL if other == number else left.get((other, key), INITIAL)
                columns.append((False, key, own.get(key, there)))
        first.append(len(columns))
    table = np.array(columns, int).reshape(-1, 3)
    status = draw(st.lists(st.sampled_from(ends), min_size=many, max_size=many))
    return RegisterHistory(
        tuple(KEYS[:keys]),
        ("s", "t", "u"),
        np.array(sessions),
        np.array(status),
        np.array(first),
        table[:, 0].astype(bool),
        table[:, 1],
        table[:, 2],
        np.arange(1, len(table) + 1),
    )


def abstract(history):
    """The same as versions: what the levels of the catalogue read."""
    final, done = {}, []
    for number in range(len(history.session)):
        ops = range(history.first[number], history.first[number + 1])
        for op in ops:
            if history.is_write[op]:
                final[number, history.key[op]] = history.value[op]
    by_value = {(key, value): number + 1 for (number, key), value in final.items()}
    for number, status in enumerate(history.status):
        operations = []
        for op in range(history.first[number], history.first[number + 1]):
            key, value = history.key[op], history.value[op]
            name, own = KEYS[key], Version(KEYS[key], number + 1)
            written = any(o == Write(own) for o in operations)
            if history.is_write[op]:
                operations = [o for o in operations if o != Write(own)]
                operations.append(Write(own))
            elif not written and not any(
                history.is_write[o] and history.key[o] == key
                for o in range(history.first[number], op)
            ):
                writer = 0 if value == INITIAL else by_value[key, value]
                operations.append(ItemRead(Version(name, writer)))
        done.append(Transaction(number + 1, tuple(operations), ENDS[status]))
    sessions = [
        tuple(n + 1 for n in np.flatnonzero(history.session == s).tolist()) for s in range(3)
    ]
    return History(tuple(done), tuple(s for s in sessions if s))


@pytest.mark.slow
@given(drawn())
def test_the_levels_of_the_catalogue_say_the_same(history):
    found = verdicts(history)
    as_versions = abstract(history)
    assert {name: str(check_history(as_versions, level(name))) for name in LEVELS} == found


@st.composite
def drawn_in_time(draw):
    """A history with times: those of one session one after another; nobody saw the end of one that
    may have aborted.
    """
    history = draw(drawn())
    many = len(history.session)
    slots = draw(st.permutations(range(2 * many)))
    started, ended = np.zeros(many, int), np.zeros(many, int)
    for session in range(3):
        (own,) = np.nonzero(history.session == session)
        moments = sorted(slots[2 * n + k] for n in own.tolist() for k in (0, 1))
        started[own], ended[own] = moments[::2], moments[1::2]
    ended[history.status == UNKNOWN] = 10_000
    return replace(history, started=started, ended=ended)


@pytest.mark.slow
@given(drawn_in_time(), st.sampled_from([*TIMED]))
def test_in_real_time_the_levels_of_the_catalogue_say_the_same(history, name):
    moments = [(int(t), n + 1, "start") for n, t in enumerate(history.started)]
    moments += [(int(t), n + 1, "end") for n, t in enumerate(history.ended)]
    schedule = tuple((n, moment) for _, n, moment in sorted(moments))
    as_versions = replace(abstract(history), schedule=schedule)
    judged = judge_recorded(history, name)
    assert str(check_history(as_versions, level(name))) == judged.verdict
    if judged.verdict == "forbidden" and judge_recorded(history, TIMED[name]).verdict == "allowed":
        assert not judged.cycle or "rt" in str(judged.cycle)
        shown = explain_record(judged, Budget())
        assert any(edge.kind == "rt" for one in shown.violations for edge in one.cycle)


def test_who_asks_for_real_time_needs_it():
    """The same history holds without the times, and is refused where there are none."""
    stale = recorded("w(x1)", "r(x-)")
    timely = replace(stale, started=np.array([0, 2]), ended=np.array([1, 3]))
    for name, base in TIMED.items():
        assert judge_recorded(timely, base).verdict == "allowed"
        miss, time = judge_recorded(timely, name).cycle
        assert {miss.kind, time.kind} == {"rw", "rt"}
        late = replace(timely, started=np.array([0, 1]))  # not after, but at the same moment
        assert judge_recorded(late, name).verdict == "allowed"
        with pytest.raises(UnknownName, match="needs rt, which this history does not have"):
            judge_recorded(stale, name)
    checked = check_recorded("stale", timely)
    assert checked.standing.strongest == ("serializable",)
    assert checked.standing.weakest == ("strong-snapshot-isolation",)
    assert "stale read in real time (G-single)" in repr(checked.levels["strict-serializable"])


def by_definition(history, name):
    """Whether some commit order has what Biswas and Enea's axiom says, or is serial; all have
    committed.
    """
    many = len(history.session)
    owner = np.repeat(np.arange(many), np.diff(history.first)).tolist()
    wrote = {(owner[o], history.key[o]): history.value[o] for o in np.flatnonzero(history.is_write)}
    left = {(k, v): n for (n, k), v in wrote.items()} | {(k, INITIAL): -1 for k in range(3)}
    reads = []
    for o in np.flatnonzero(~history.is_write).tolist():
        before = range(history.first[owner[o]], o)
        if not any(history.is_write[p] and history.key[p] == history.key[o] for p in before):
            reads.append((o, owner[o], history.key[o], left[history.key[o], history.value[o]]))
    so = {
        (a, b)
        for a in range(many)
        for b in range(a + 1, many)
        if history.session[a] == history.session[b]
    }
    so |= {(-1, n) for n in range(many)}
    wr = {(t1, t3) for _, t3, _, t1 in reads}
    hb = so | wr
    for _ in range(many):
        hb |= {(a, d) for a, b in hb for c, d in hb if b == c}
    if any((n, n) in hb for n in range(-1, many)):
        return False
    sees = {"read-atomic": so | wr, "causal": hb}
    for order in permutations(range(many)):
        place = {-1: -1} | {n: i for i, n in enumerate(order)}
        if any(place[a] >= place[b] for a, b in so | wr):
            continue

        def seen(t2, o, t3, place=place):
            if name == "serializable":
                return place[t2] < place[t3]
            if name == "read-committed-biswas-enea":
                return any(p < o and (w, r) == (t2, t3) for p, r, _, w in reads)
            return (t2, t3) in sees[name]

        if all(
            place[t2] < place[t1]
            for o, t3, key, t1 in reads
            for t2 in range(many)
            if (t2, key) in wrote and t2 not in (t1, t3) and seen(t2, o, t3)
        ):
            return True
    return False


@given(drawn(ends=[COMMITTED]), st.sampled_from([*POLYNOMIAL[1:], "serializable"]))
def test_the_definitions_tried_order_by_order_say_the_same(history, name):
    allowed = judge_recorded(history, name).verdict == "allowed"
    assert allowed == by_definition(history, name)


@pytest.mark.slow
@given(drawn(transactions=6, ends=[COMMITTED], keys=3), st.sampled_from(ORDERED))
def test_the_solver_alone_says_the_same(history, name):
    choosing = VersionOrderConstraints(attribute_reads(history), Events(name))
    found = None
    if vector_clocks(choosing.graph, choosing.chain) is not None:
        found = solve_version_order(choosing, Budget())
    judged = judge_recorded(history, name)
    assert (found is not None) == (judged.verdict == "allowed")
    assert found is None or not find_misread(choosing.seen, name, found)


@given(drawn(transactions=6), st.sampled_from(LEVELS))
def test_each_cycle_is_confirmed_and_at_no_weaker_level(history, name):
    judged = judge_recorded(history, name)
    assert judged.verdict != "unknown"
    assert (judged.verdict == "allowed") == (
        not judged.flaws and not judged.cycle and not judged.reason
    )
    if judged.cycle:
        assert confirm_cycle(history, name, judged.cycle)
        assert not confirm_cycle(history, name, judged.cycle[:-1])
        assert not confirm_cycle(history, name, [])


WEAKER = [
    *pairwise(POLYNOMIAL),
    ("causal", "prefix-consistency"),
    *pairwise(ORDERED),
]


@pytest.mark.slow
@given(drawn(transactions=8, keys=3))
def test_what_a_level_allows_a_weaker_one_allows(history):
    found = verdicts(history)
    for weak, strong in WEAKER:
        assert found[weak] == "allowed" or found[strong] != "allowed", (weak, strong)


FLAWED = {
    "thin-air-read": (["r(x7)"], None, (1, None)),
    "aborted-read": (["w(x7)", "r(x7)"], [ABORTED, COMMITTED], (2, 1)),
    "intermediate-read": (["w(x7) w(x8)", "r(x7)"], None, (3, 1)),
    "future-read": (["r(x7) w(x7)"], None, (1, 2)),
    "lost-own-write": (["w(x7)", "w(x8) r(x7)"], None, (3, 2)),
}


@pytest.mark.parametrize("kind", FLAWED)
def test_what_no_order_explains_is_a_violation_that_names_both_operations(kind):
    sessions, ends, (read, write) = FLAWED[kind]
    history = recorded(*sessions, ends=ends)
    assert set(verdicts(history).values()) == {"forbidden"}
    (flaw,) = judge_recorded(history, "read-committed").flaws
    assert (flaw.kind, flaw.read + 1) == (kind, read)
    assert (None if flaw.write is None else flaw.write + 1) == write
    assert f"line {read})" in repr(flaw)
    assert write is None or f"line {write})" in repr(flaw)


def test_flaws_of_what_does_not_count_are_none():
    history = recorded("r(x7)", "w(y1) r(y2)", ends=[ABORTED, UNKNOWN])
    assert set(verdicts(history).values()) == {"allowed"}


def test_who_is_read_from_has_committed():
    history = recorded("w(x1) r(y9)", "r(x1)", ends=[UNKNOWN, COMMITTED])
    (flaw,) = judge_recorded(history, "causal").flaws
    assert repr(flaw) == "transaction 1 (session s, line 2) read y = 9, which no transaction wrote"


@pytest.mark.parametrize(
    "sessions",
    [
        ("w(x1) w(x2)", "w(x1)", "r(x1)"),  # one of them overwrote it
        ("w(x1)", "r(x1) w(x1)"),  # the other one is the reader
        ("w(x1)", "w(x1)", "r(y-)"),  # nobody read it
    ],
)
def test_a_value_that_two_wrote_is_clear_where_one_of_them_is_out_of_the_question(sessions):
    assert set(verdicts(recorded(*sessions)).values()) == {"allowed"}


def test_what_is_forbidden_without_the_ambiguous_read_is_forbidden():
    history = recorded("w(x1)", "w(x1)", "r(x1)", "r(y-) w(y1) | r(y-)")
    assert verdicts(history)["read-atomic"] == "forbidden"
    assert verdicts(history)["read-committed-biswas-enea"] == "allowed"


def test_a_budget_that_is_spent_leaves_it_unknown():
    for name in LEVELS:
        judged = judge_recorded(recorded("w(x1)"), name, budget=Budget(seconds=0))
        assert judged.reason == "the time limit of 0 s ended it"


def test_an_unknown_level_is_named():
    with pytest.raises(UnknownName, match="did you mean 'causal'"):
        judge_recorded(recorded("w(x1)"), "casual")


def test_nothing_is_allowed():
    assert set(verdicts(recorded("")).values()) == {"allowed"}


def test_a_cycle_reads_as_a_chain():
    history = recorded("w(x1) w(y1)", "r(x1) r(y-)")
    chain = [
        "read-atomic: forbidden",
        (
            "transaction 1 (session s) before the initial transaction (co): transaction 2 (session"
            " t, line 4) read y = nothing, and sees who wrote the key, too (transaction 1 (session"
            " s) before transaction 2 (session t) (wr): transaction 2 (session t, line 3) read x"
            " = 1)"
        ),
        "the initial transaction before transaction 1 (session s) (so): session order",
    ]
    assert repr(judge_recorded(history, "read-atomic")) == "\n  ".join(chain)


def awdit(text):
    """AWDIT's text (test_datasets.py); every session is one like the others, the one that writes 0,
    too.
    """
    sessions = [session.split("-----") for session in text.split("=====")]
    rows = [[line.split() for line in t.split("\n") if line.strip()] for s in sessions for t in s]
    done = [row for each in rows for row in each]
    names = sorted({key for _, key, _ in done})
    return RegisterHistory(
        tuple(names),
        tuple(map(str, range(len(sessions)))),
        np.repeat(np.arange(len(sessions)), [len(s) for s in sessions]),
        np.zeros(len(rows), int),
        np.cumsum([0, *map(len, rows)]),
        np.array([kind == "w" for kind, _, _ in done]),
        np.array([names.index(key) for _, key, _ in done]),
        np.array([int(value) for _, _, value in done]),
        np.arange(1, len(done) + 1),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES or [ABSENT])
def test_awdit_s_histories(name):
    """The folder says which of three levels hold; of these files one is serializable, or reads
    snapshots.
    """
    found = verdicts(awdit((AWDIT / name).read_text("utf-8")))
    holds = ("none", "read-committed", "read-atomic", "causal").index(name.split("/")[0])
    asked = [found[name] == "allowed" for name in POLYNOMIAL[1:]]
    assert asked == [k < holds for k in range(3)]
    strong = {found["snapshot-isolation"], found["serializable"]}
    assert strong == {"allowed" if name == "causal/fully-ser.txt" else "forbidden"}
