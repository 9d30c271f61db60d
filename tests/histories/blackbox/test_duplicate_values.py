"""Recorded histories in which several wrote a value, against every choice of the write that each
read saw.
"""

from dataclasses import replace
from itertools import product
from math import prod
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st
from small_records import not_allowed, recorded

from isolitmus.checker.judge.anomalies import anomaly_names
from isolitmus.histories.blackbox.explanation import (
    attributions,
    explain_record,
    extract_part,
    shrink_core,
)
from isolitmus.histories.blackbox.judgement import ORDERED, POLYNOMIAL, judge_recorded
from isolitmus.histories.blackbox.precedence import Precedence
from isolitmus.histories.blackbox.read_from import attribute_reads
from isolitmus.histories.blackbox.recheck import (
    confirm_cycle,
    find_misattributed_read,
    find_misread,
)
from isolitmus.histories.readers.blackbox_history import (
    ABORTED,
    COMMITTED,
    INITIAL,
    UNKNOWN,
    RegisterHistory,
)
from isolitmus.model.budget import Budget

LEVELS = POLYNOMIAL + ORDERED
CHOICES = 150
"""A history with more choices than that is not tried."""


@st.composite
def drawn(draw, ends=(COMMITTED, COMMITTED, COMMITTED, ABORTED, UNKNOWN), transactions=6):
    """A history with few values, the initial one among them, in which a read sees, but for a few,
    its own write, or what some transaction left, or nothing.
    """
    many = draw(st.integers(2, transactions))
    values = st.sampled_from([0, 0, 0, 1, 1, INITIAL])
    ops = st.tuples(st.booleans(), st.integers(0, 1), st.integers(-1, many - 1), values)
    plans = [draw(st.lists(ops, min_size=1, max_size=3)) for _ in range(many)]
    left = {(n, key): v for n, plan in enumerate(plans) for is_write, key, _, v in plan if is_write}
    rows = []
    for number, plan in enumerate(plans):
        own = {}
        for is_write, key, other, value in plan:
            if is_write:
                own[key] = value
                rows.append((True, key, value))
            else:
                there = value if other == number else left.get((other, key), INITIAL)
                rows.append((False, key, own.get(key, there)))
    table = np.array(rows, int)
    return RegisterHistory(
        ("x", "y"),
        ("s", "t", "u"),
        np.array(sorted(draw(st.lists(st.integers(0, 2), min_size=many, max_size=many)))),
        np.array(draw(st.lists(st.sampled_from(ends), min_size=many, max_size=many))),
        np.cumsum([0, *map(len, plans)]),
        table[:, 0].astype(bool),
        table[:, 1],
        table[:, 2],
        np.arange(1, len(table) + 1),
    )


def choices(history):
    """The same with another value for each write, in each way in which reads may have seen writes
    of their value.
    """
    of = {}
    for one in np.flatnonzero(history.is_write).tolist():
        of.setdefault((history.key[one], history.value[one]), []).append(one)
    owner = np.repeat(np.arange(len(history.session)), np.diff(history.first))
    reads = np.flatnonzero(~history.is_write).tolist()
    seen = []
    for one in reads:
        key, value = history.key[one], history.value[one]
        found = of.get((key, value), []) + [INITIAL] * int(value == INITIAL)
        found = found or [len(history.key)]  # a value that nobody wrote
        seen.append(found[:1] if history.status[owner[one]] == ABORTED else found)
    if prod(map(len, seen)) > CHOICES:
        reject()
    for choice in product(*seen):
        value = np.arange(len(history.key))
        value[reads] = choice
        yield replace(history, value=value)


def by_choices(history, name):
    """What the level says of the choices, of which each has an own value for each write."""
    some = any(judge_recorded(one, name).verdict == "allowed" for one in choices(history))
    return "allowed" if some else "forbidden"


@pytest.mark.slow
@given(drawn(), st.sampled_from(LEVELS))
def test_a_history_is_allowed_if_and_only_if_some_choice_of_writers_is(history, name):
    assert judge_recorded(history, name).verdict == by_choices(history, name)


@pytest.mark.slow
@given(drawn(), st.sampled_from(POLYNOMIAL))
def test_so_it_is_where_no_stronger_level_is_tried(history, name):
    with patch("isolitmus.histories.blackbox.read_from_sat.SECONDS", 0.0):
        found = judge_recorded(history, name).verdict
    assert found == by_choices(history, name)


@pytest.mark.slow
@given(drawn(ends=(COMMITTED, UNKNOWN)), st.sampled_from(LEVELS))
def test_whatever_several_wrote_is_explained(history, name):
    judged = judge_recorded(history, name)
    explained = explain_record(judged, Budget())
    assert str(explained) == judged.verdict
    assert bool(anomaly_names(explained)) == (judged.verdict == "forbidden")


@pytest.mark.slow
@given(not_allowed(drawn(), st.sampled_from(LEVELS)))
def test_nothing_of_a_forbidden_part_can_be_left_out(judged):
    part, name = shrink_core(judged, Budget()).history, judged.level
    assert judge_recorded(part, name).verdict == by_choices(part, name) == "forbidden"
    size = len(part.key)
    for out in range(size):
        less = extract_part(part, np.arange(size) != out).history
        assert judge_recorded(less, name).verdict == "allowed"


def settled(history, given=()):
    """Each choice of writers, as a set of reads with their writers, of reads that count."""
    chosen = np.full(len(history.key), -1)
    for read, writer in given:
        chosen[read] = writer
    seen = attribute_reads(history, chosen)
    if not len(seen.unclear):
        yield {*given}
        return
    read, many = int(seen.unclear[0]), len(history.session)
    for writer in range(many + 1):
        ops = range(history.first[writer], history.first[writer + 1]) if writer < many else ()
        writes = [o for o in ops if history.is_write[o] and history.key[o] == history.key[read]]
        left = INITIAL if writer == many else history.value[writes[-1]] if writes else None
        aborted = writer < many and history.status[writer] == ABORTED
        if left == history.value[read] and not aborted and writer != seen.owner[read]:
            yield from settled(history, (*given, (read, writer)))


@given(not_allowed(drawn(ends=(COMMITTED, UNKNOWN)), st.sampled_from(LEVELS)))
def test_each_choice_of_writers_is_in_a_case(judged):
    found = [{*case.supposing} for case in attributions(judged, Budget())]
    choices = [*settled(judged.history)]
    assume(choices)
    assert all(any(case <= choice for case in found) for choice in choices)


C, U = COMMITTED, UNKNOWN
HARD = [
    (("r(x1) w(x0) r(x0)", "r(x0) w(x1) r(x1)", "w(x1)"), (C, U, C)),
    (("w(x1) | r(x0) r(x1) w(x0)", "r(x0) w(x1)", "r(x1) w(x0)"), (U, C, U, C)),
    (("r(x2) | r(x2) r(x-) w(x2) | w(x2)", "w(x2) w(x0) | w(x0) r(x0) w(x2)", "w(x2)"), (U, C, C, U, U, U)),
    (
        ("w(y1)", "r(x1) | r(y-) w(y1) | r(y-) r(x-) | r(y1) w(x1)", "r(x-) w(x-) w(x1)", "r(x1)"),
        (U, U, U, C, C, U, U),
    ),
    (("r(y1) w(y1) | w(y0) r(x-) | r(y0)", "r(x-) | w(y1) r(x-)", "w(y0) r(y0)"), (C, U, C, U, C, C)),
    (
        ("r(y-) w(x0) r(x0) | w(x1) | r(y-) | r(x0)", "w(x0)", "w(y-) w(x-) r(y-) | r(x-)"),
        (C, U, C, C, U, U, C),
    ),
    (("w(y1) r(y2) w(x1)", "w(y1) r(y2) w(x1)", "r(x1)"), (U, U, C)),
    (("w(x1) | w(x2) w(y1) | r(x1) w(z1)", "r(z1) w(x1)", "w(y1)", "r(y1)"), (C, U, C, C, U, C)),
    (("w(y1)", "w(x1) | w(x2) w(y1) | r(x1) w(z1)", "r(z1) w(x1)", "r(y1)"), (U, C, U, C, C, C)),
]  # fmt: skip
"""Histories that tell a checker from one that is wrong about transactions that may have committed,
or about what follows from two things together; most were found by breaking it.
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", LEVELS)
@pytest.mark.parametrize("case", range(len(HARD)))
def test_what_tells_a_wrong_checker_from_a_right_one(case, name):
    sessions, ends = HARD[case]
    history = recorded(*sessions, ends=ends)
    assert judge_recorded(history, name).verdict == by_choices(history, name)
    with patch("isolitmus.histories.blackbox.read_from_sat.SECONDS", 0.0):
        assert judge_recorded(history, name).verdict == by_choices(history, name)


SMALL = {
    "the one that overwrote it is out of the question": ("w(x1) w(x2)", "w(x1)", "r(x1)"),
    "so is the reader": ("w(x1)", "r(x1) w(x1)"),
    "nobody read it": ("w(x1)", "w(x1)", "r(y-)"),
    "either will do": ("w(x1)", "w(x1)", "r(x1)"),
    "one of them overwrote the other": ("w(x1) | w(x2) | w(x1)", "r(x1) | r(x2) | r(x1)"),
    "somebody wrote what was there before": ("w(x1) | w(x-)", "r(x1) | r(x-)"),
    "it was there before": ("r(x-) w(x-)", "r(x-) w(x1)"),
}
"""Sessions that are serializable."""


@pytest.mark.slow
@pytest.mark.parametrize("what", SMALL)
def test_what_several_wrote_is_allowed_where_one_of_them_may_be_the_one(what):
    history = recorded(*SMALL[what])
    assert {judge_recorded(history, name).verdict for name in LEVELS} == {"allowed"}


def test_a_transaction_that_may_have_committed_must_be_explained_if_it_is_read_from():
    """Both wrote x, and each read what nobody wrote."""
    sessions = "w(x1) r(y8)", "w(x1) r(y9)", "r(x1)"
    ends = [UNKNOWN, UNKNOWN, COMMITTED]
    judged = judge_recorded(recorded(*sessions, ends=ends), "read-committed")
    assert (
        judged.reason
        == "none of those who wrote it can have been read from: transaction 3 (session u, line 5)"
        " read x = 1"
    )
    lines = repr(explain_record(judged, Budget()))
    assert lines.count("not thin-air read, if T3 (session u, line 5) read x = 1 of T") == 2
    assert "read y = 9, which no transaction wrote" in lines
    ends[0] = ABORTED
    assert judge_recorded(recorded(*sessions, ends=ends), "read-committed").flaws
    sessions = sessions[0].replace(" r(y8)", ""), *sessions[1:]
    assert (
        judge_recorded(recorded(*sessions, ends=[UNKNOWN] * 3), "read-committed").verdict
        == "allowed"
    )


def test_who_is_read_from_is_told_for_each_way():
    history = recorded("w(x1) w(y1)", "w(x1) w(y1)", "r(x1) r(y-)")
    judged = judge_recorded(history, "read-atomic")
    assert repr(explain_record(judged, Budget())).splitlines()[1:4] == [
        "  not fractured read, if T3 (session u, line 5) read x = 1 of T1 (session s, line 1):",
        (
            "    co  T1 → T0  T3 (session u, line 6) read y = nothing although T3 sees T1, and T1"
            " (session s, line 2) wrote y = 1: T3 (session u, line 5) read x = 1, which T1 (session"
            " s, line 1) wrote"
        ),
        "    so  T0 → T1  T0 is the state before T1",
    ]
    assert judge_recorded(history, "read-committed").verdict == "allowed"


@pytest.mark.slow
def test_what_was_there_before_may_have_been_read():
    history = recorded("w(x1) w(y1) | w(x-) w(y2)", "r(x-) r(y1)")
    lines = repr(explain_record(judge_recorded(history, "read-atomic"), Budget()))
    assert "if T3 (session t, line 5) read x before any transaction wrote it:" in lines
    assert "if T3 (session t, line 5) read x = nothing of T2 (session s, line 3):" in lines


@pytest.mark.parametrize("name", LEVELS)
def test_a_budget_that_is_spent_leaves_it_unknown(name):
    history = recorded("w(x1)", "w(x1)", "r(x1)")
    assert judge_recorded(history, name, budget=Budget(seconds=0)).verdict == "unknown"


def test_a_step_from_one_of_several_writers_is_confirmed_where_it_is_supposed_alone():
    history = recorded("w(x1) r(y1)", "w(x1)", "r(x1) w(y1)")
    cycle = (
        Precedence(history, 0, 2, "wr", 3),
        Precedence(history, 2, 0, "wr", 1),
    )
    assert confirm_cycle(history, "read-committed", cycle, {3: 0})
    assert not confirm_cycle(history, "read-committed", cycle, {3: 1})
    assert not confirm_cycle(history, "read-committed", cycle)


def test_orders_and_writers_that_do_not_explain_what_was_read_are_refused():
    history = recorded("w(x1)", "w(x2)", "r(x1)", "w(x1)")
    seen = attribute_reads(history, np.array([-1, -1, 3, -1]))
    assert not find_misread(seen, "serializable", np.array([1, 3, 2, 0]))
    assert not find_misread(seen, "serializable", np.array([1, 0, 2, 3]))
    assert "read x = 1" in find_misread(seen, "serializable", np.array([0, 1, 2, 3]))
    assert (
        find_misread(seen, "serializable", np.array([0, 2, 3])) == "a transaction that is missing"
    )
    assert not find_misattributed_read(seen)
    assert "read x = 1" in find_misattributed_read(replace(seen, writer=np.array([1])))
    assert "read x = 1" in find_misattributed_read(attribute_reads(history))


NEVER = 1_000
"""End of a transaction whose answer was lost."""


@st.composite
def timed(draw):
    """A history with times, in which the answers of some transactions of unknown end were lost."""
    history = draw(drawn(ends=(COMMITTED, COMMITTED, UNKNOWN, UNKNOWN, ABORTED)))
    clock, spans = {}, []
    for session, status in zip(history.session.tolist(), history.status.tolist(), strict=True):
        began = clock.get(session, 0) + draw(st.integers(0, 4))
        clock[session] = began + draw(st.integers(1, 6))
        lost = status == UNKNOWN and draw(st.integers(0, 3)) > 0
        spans.append((began, NEVER if lost else clock[session]))
    started, ended = np.array(spans).T
    return replace(history, started=2 * started, ended=2 * ended + 1)


def some_order(history, *, in_time):
    """Whether an order of the committed and some unknown transactions gives every read."""
    status = history.status.tolist()
    plans = [
        [(history.is_write[o], history.key[o], history.value[o]) for o in range(first, last)]
        for first, last in zip(history.first[:-1], history.first[1:], strict=True)
    ]

    def comes_before(one, other):
        timely = in_time and history.ended[one] < history.started[other]
        return timely or (one < other and history.session[one] == history.session[other])

    def after(number, state):
        state = dict(state)
        for is_write, key, value in plans[number]:
            if is_write:
                state[key] = value
            elif state.get(key, INITIAL) != value:
                return None
        return state

    def extends(state, left):
        return not left or any(
            (later := after(number, state)) is not None and extends(later, left - {number})
            for number in left
            if not any(comes_before(other, number) for other in left - {number})
        )

    lost = [number for number, end in enumerate(status) if end == UNKNOWN]
    sure = {number for number, end in enumerate(status) if end == COMMITTED}
    return any(
        extends({}, frozenset(sure | {n for n, counts in zip(lost, some, strict=True) if counts}))
        for some in product([False, True], repeat=len(lost))
    )


@given(timed(), st.booleans())
def test_an_order_of_all_is_found_if_there_is_one(history, in_time):
    """Values written again, unknown ends and lost answers, against every order in real time."""
    judged = judge_recorded(history, "strict-serializable" if in_time else "serializable")
    expected = "allowed" if some_order(history, in_time=in_time) else "forbidden"
    assert judged.verdict == expected
    assert str(explain_record(judged, Budget())) == expected


def test_a_writer_whose_answer_was_lost_keeps_to_real_time():
    """Three wrote 0, two of them after the reader had ended, and the third one had to read it."""
    history = RegisterHistory(
        ("x",), ("s", "t", "u"), np.array([0, 1, 2]), np.array([UNKNOWN, UNKNOWN, COMMITTED]),
        np.array([0, 1, 3, 4]), np.array([True, False, True, False]), np.zeros(4, int),
        np.zeros(4, int), np.arange(1, 5), np.array([6, 4, 0]), np.array([NEVER, NEVER, 5]),
    )  # fmt: skip
    assert judge_recorded(history, "strict-serializable").verdict == "forbidden"
    assert judge_recorded(history, "serializable").verdict == "allowed"
