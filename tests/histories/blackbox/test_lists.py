"""Recorded lists at every level, against every order of whole transactions' appends tried by the
catalogue's levels.
"""

from itertools import pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from small_records import not_allowed

from isolitmus.checker.judge.anomalies import anomaly_names
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.histories.blackbox.check import ASKED, check_recorded
from isolitmus.histories.blackbox.explanation import explain_record, extract_part, shrink_core
from isolitmus.histories.blackbox.judgement import ORDERED, POLYNOMIAL, judge_recorded
from isolitmus.histories.blackbox.recheck import confirm_cycle
from isolitmus.histories.readers.blackbox_history import (
    ABORTED,
    COMMITTED,
    INITIAL,
    UNKNOWN,
    ListHistory,
    RegisterHistory,
)
from isolitmus.model.budget import Budget
from isolitmus.model.errors import HistoryError
from isolitmus.model.history import History
from isolitmus.model.operations import INITIAL as UNBORN
from isolitmus.model.operations import ItemRead, Transaction, Version, Write
from isolitmus.specs.files.spec_catalogue import level

LEVELS = POLYNOMIAL + ORDERED
KEYS = "xy"


def listed(sessions, transactions, status=None):
    """A history of transactions of operations: a key, and an element that is appended or a list
    that is read.
    """
    every = [step for steps in transactions for step in steps]
    last = [x if isinstance(x, int) else x[-1] if x else INITIAL for _, x in every]
    lists = [() if isinstance(x, int) else x for _, x in every]
    registers = RegisterHistory(
        KEYS,
        "stuvw",
        np.array(sessions),
        np.array(status or [COMMITTED] * len(transactions)),
        np.cumsum([0, *map(len, transactions)]),
        np.array([isinstance(x, int) for _, x in every], bool),
        np.array([key for key, _ in every], int),
        np.array(last, int),
        np.arange(1, len(every) + 1),
    )
    ends = np.cumsum([0, *map(len, lists)])
    return ListHistory(registers, ends, np.array([e for each in lists for e in each], int))


def appended(steps, key):
    return [x for k, x in steps if k == key and isinstance(x, int)]


def written_out(sessions, transactions, orders):
    """The history of some transactions in which versions came as whole transactions in these
    orders; None: it does not give the lists that were read.
    """
    version = [{(): Version(name, UNBORN)} for name in KEYS]
    for key, order in enumerate(orders):
        made = ()
        for number in order:
            own = appended(transactions[number], key)
            for part, x in enumerate(own, 1):
                made += (x,)
                version[key][made] = Version(KEYS[key], number + 1, part if part < len(own) else 0)
    done = []
    for number, steps in transactions.items():
        operations, parts = [], [0, 0]
        for place, (key, x) in enumerate(steps):
            if isinstance(x, int):
                parts[key] += 1
                last = parts[key] == len(appended(steps, key))
                own = Version(KEYS[key], number + 1, 0 if last else parts[key])
                operations.append(Write(own))
            elif x in version[key] and not {*x} & {*appended(steps[place:], key)}:
                operations.append(ItemRead(version[key][x]))
            else:
                return None
        done.append(Transaction(number + 1, tuple(operations)))
    order = tuple(
        (Version(KEYS[key], a + 1), Version(KEYS[key], b + 1))
        for key, numbers in enumerate(orders)
        for a, b in pairwise(numbers)
    )
    together = [
        tuple(n + 1 for n in transactions if sessions[n] == session) for session in {*sessions}
    ]
    try:
        return History(tuple(done), tuple(sorted(one for one in together if one)), order)
    except HistoryError:  # a read that does not find its own writes
        return None


def allowed_by_the_catalogue(sessions, transactions, status, names):
    """The levels at which it holds with some ends of those unknown and some order of the
    transactions' appends.
    """
    held = set()
    unclear = [n for n, end in enumerate(status) if end == UNKNOWN]
    for left_out in product((False, True), repeat=len(unclear)):
        gone = {n for n, out in zip(unclear, left_out, strict=True) if out}
        there = {
            n: steps
            for n, steps in enumerate(transactions)
            if status[n] != ABORTED and n not in gone
        }
        writers = [[n for n, steps in there.items() if appended(steps, key)] for key in (0, 1)]
        for orders in product(*map(permutations, writers)):
            history = written_out(sessions, there, orders)
            if history is not None:
                held |= {
                    one for one in names if str(check_history(history, level(one))) == "allowed"
                }
    return held


SELDOM = st.sampled_from([False] * 7 + [True])


@st.composite
def drawn(draw, ends=(COMMITTED, COMMITTED, COMMITTED, ABORTED, UNKNOWN), most=4):
    """Reads see what is there after some of the appends, after their own where they have any; some
    see anything.
    """
    count = draw(st.integers(1, most))
    sessions = sorted(draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)))
    status = draw(st.lists(st.sampled_from(ends), min_size=count, max_size=count))
    plan = st.tuples(st.sampled_from("aaarrrr"), st.integers(0, 1))
    plans = [draw(st.lists(plan, min_size=1, max_size=4)) for _ in sessions]
    elements = iter(range(40))
    shape = [[(key, next(elements) if word == "a" else None) for word, key in one] for one in plans]
    made = []
    for key in (0, 1):
        turn = draw(st.permutations(range(count)))
        dirty = draw(SELDOM)
        there = [n for n in turn if status[n] != ABORTED or dirty]
        order = [x for n in there for k, x in shape[n] if k == key and x is not None]
        if len(order) > 1 and draw(SELDOM):
            place = draw(st.integers(0, len(order) - 2))
            order[place : place + 2] = order[place + 1], order[place]
        made.append(order)
    last = {x for one in shape for x in {k: x for k, x in one if x is not None}.values()}
    transactions = []
    for one in shape:
        steps, own = [], {}
        for key, x in one:
            if x is not None:
                own[key] = x
                steps.append((key, x))
                continue
            cut, later = draw(st.integers(0, len(made[key]))), {*appended(one, key)}
            if not draw(SELDOM):
                if own.get(key) in made[key]:
                    cut = made[key].index(own[key]) + 1
                else:
                    whole = [at for at in range(cut + 1) if not {*made[key][:at]} & later]
                    cut = max(at for at in whole if at == 0 or made[key][at - 1] in last)
            steps.append((key, tuple(made[key][:cut])))
        transactions.append(steps)
    return sessions, transactions, status


@pytest.mark.slow
@given(drawn())
def test_the_levels_of_the_catalogue_say_the_same(made):
    held = allowed_by_the_catalogue(*made, LEVELS)
    found = {name: judge_recorded(listed(*made), name).verdict for name in LEVELS}
    assert found == {name: "allowed" if name in held else "forbidden" for name in LEVELS}


@given(drawn(most=6), st.sampled_from(LEVELS))
def test_each_cycle_is_confirmed(made, name):
    history = listed(*made)
    judged = judge_recorded(history, name)
    assert (judged.verdict == "allowed") == (
        not judged.flaws and not judged.cycle and not judged.reason
    )
    if judged.cycle:
        assert confirm_cycle(judged.lists or judged.history, name, judged.cycle)
        assert not confirm_cycle(judged.lists or judged.history, name, judged.cycle[:-1])


@pytest.mark.slow
@given(drawn(most=6), st.sampled_from(LEVELS))
@example(
    ([0] * 4, [[(0, 0)], [(0, 1)], [(0, 2)], [(0, (1, 0, 2))]], [COMMITTED] * 4),
    "prefix-consistency",
)
def test_every_verdict_is_explained(made, name):
    judged = judge_recorded(listed(*made), name)
    explained = explain_record(judged, Budget())
    assert str(explained) == judged.verdict
    assert bool(anomaly_names(explained)) == (judged.verdict == "forbidden")


@pytest.mark.slow
@given(not_allowed(drawn().map(lambda made: listed(*made)), st.sampled_from(LEVELS)))
def test_nothing_of_a_forbidden_part_can_be_left_out(judged):
    part = shrink_core(judged, Budget())
    size = len(part.history.key)
    assert judge_recorded(part.judged, judged.level).verdict == "forbidden"
    for out in range(size):
        less = extract_part(part.judged, np.arange(size) != out).judged
        assert judge_recorded(less, judged.level).verdict == "allowed"


@pytest.mark.slow
@given(drawn(ends=[COMMITTED], most=6))
def test_a_history_of_lists_stands_where_its_verdicts_say(made):
    history = listed(*made)
    checked = check_recorded("h", history)
    alone = {name: judge_recorded(history, name).verdict for name in ASKED}
    assert {name: str(verdict) for name, verdict in checked.levels.items()} == alone
    assert checked.standing.strongest or checked.standing.weakest


FLAWED = {
    "an aborted append in the middle": (
        [[(0, 1)], [(0, 2)], [(0, (1, 2))]],
        [ABORTED, COMMITTED, COMMITTED],
        "aborted read (G1a)",
        (
            "transaction 3 (session u, line 3) read x = 2 after 1, which an aborted transaction"
            " wrote: transaction 1 (session s, line 1) wrote x = 1"
        ),
    ),
    "an aborted append at the end": (
        [[(0, 1)], [(0, (1,))]],
        [ABORTED, COMMITTED],
        "aborted read (G1a)",
        (
            "transaction 2 (session t, line 2) read x = 1, which an aborted transaction wrote: "
            "transaction 1 (session s, line 1) wrote x = 1"
        ),
    ),
    "a list that ends between two appends": (
        [[(0, 1), (0, 2)], [(0, (1,))]],
        None,
        "intermediate read (G1b)",
        (
            "transaction 2 (session t, line 3) read x = 1, which its writer overwrote: "
            "transaction 1 (session s, line 1) wrote x = 1"
        ),
    ),
    "an append between two": (
        [[(0, 1), (0, 2)], [(0, 3)], [(0, (1, 3, 2))]],
        None,
        "dirty write (G0)",
        (
            "transaction 3 (session u, line 4) read x = 2 after 2, and between two writes of one"
            " transaction another's: transaction 1 (session s, line 1) wrote x = 1"
        ),
    ),
    "an append after the first of two": (
        [[(0, 1), (0, 2)], [(0, 3)], [(0, (1, 3))]],
        None,
        "dirty write (G0)",
        (
            "transaction 3 (session u, line 4) read x = 3 after 1, and between two writes of one"
            " transaction another's: transaction 1 (session s, line 2) wrote x = 2"
        ),
    ),
    "the second of two alone": (
        [[(0, 1), (0, 2)], [(0, (2,))]],
        None,
        "lost append",
        (
            "transaction 2 (session t, line 3) read x = 2 with 2 and without what its writer wrote"
            " before: transaction 1 (session s, line 1) wrote x = 1"
        ),
    ),
    "an element twice": (
        [[(0, 1)], [(0, (1, 1))]],
        None,
        "duplicate element",
        (
            "transaction 2 (session t, line 2) read x = 1 with 1 more often than somebody wrote it:"
            " transaction 1 (session s, line 1) wrote x = 1"
        ),
    ),
    "lists of which neither begins the other": (
        [[(0, 1)], [(0, 2)], [(0, (1, 2))], [(0, (2,))]],
        None,
        "incompatible orders",
        (
            "neither list begins the other: transaction 4 (session v, line 4) read x = 2, and"
            " transaction 3 (session u, line 3) read x = 2"
        ),
    ),
    "an element of nobody": (
        [[(0, 1)], [(0, (7, 1))]],
        None,
        "thin-air read",
        "transaction 2 (session t, line 2) read x = 1 after 7, which no transaction wrote",
    ),
    "an own append too early": (
        [[(0, (1, 2)), (0, 1)], [(0, 2)]],
        None,
        "future read",
        (
            "transaction 1 (session s, line 1) read x = 2 after 1 before its own write: "
            "transaction 1 (session s, line 2) wrote x = 1"
        ),
    ),
    "an own append that is not there": (
        [[(0, 1), (0, ())]],
        None,
        "own write missed",
        (
            "transaction 1 (session s, line 2) read x = nothing after its own write: "
            "transaction 1 (session s, line 1) wrote x = 1"
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", FLAWED)
def test_what_no_order_of_appends_gives_has_its_name_at_every_level(what):
    transactions, status, name, words = FLAWED[what]
    history = listed(range(len(transactions)), transactions, status)
    for one in LEVELS:
        judged = judge_recorded(history, one)
        assert name in anomaly_names(explain_record(judged, Budget()))
        assert words in map(repr, judged.flaws)


ORDERS = {
    "dirty write (G0)": ("read-committed", [[(0, 1), (1, 2)], [(0, 3), (1, 4)]], (1, 3), (4, 2)),
    "circular information flow (G1c)": (
        "read-committed",
        [[(0, 1), (1, (2,))], [(0, 3), (1, 2)]],
        (1, 3),
        (2,),
    ),
    "lost update": ("snapshot-isolation", [[(0, ()), (0, 1)], [(0, ()), (0, 3)]], (1, 3), ()),
}
"""By anomaly the weakest level that fails, two transactions, and which lists others read."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ORDERS)
def test_an_order_that_lists_show_is_looked_at(name):
    weakest, transactions, *seen = ORDERS[name]
    readers = [[(key, made)] for key, made in enumerate(seen) if made]
    steps = [*transactions, *readers]
    checked = check_recorded("h", listed(range(len(steps)), steps))
    assert checked.standing.weakest == (weakest,)
    assert anomaly_names(checked.levels[weakest]) == (name,)
    assert str(checked.levels["causal"]) == "allowed"


def test_a_list_is_the_reason_of_an_order():
    _, transactions, *seen = ORDERS["dirty write (G0)"]
    steps = [*transactions, *([(key, made)] for key, made in enumerate(seen))]
    judged = judge_recorded(listed(range(4), steps), "read-committed")
    lines = repr(explain_record(judged, Budget()))
    assert (
        "T3 (session u, line 5) read a list of x that has 1 of T1 (session s, line 1) before 3 of"
        " T2 (session t, line 3)" in lines
    )


def test_an_element_that_two_append_is_unknown_where_somebody_reads_it():
    twice = [[(0, 1)], [(0, 1)]]
    assert judge_recorded(listed([0, 1], twice), "serializable").verdict == "allowed"
    judged = judge_recorded(listed([0, 1, 2], [*twice, [(0, (1,))]]), "serializable")
    assert judged.verdict == "unknown"
    more = [*twice, [(0, 2)], [(0, (1, 2))]]
    judged = judge_recorded(listed([0, 1, 2, 3], more), "causal")
    assert (judged.verdict, judged.reason) == (
        "unknown",
        (
            "transaction 4 (session v, line 4) read x = 2, a list with 1, which is written twice: a"
            " list does not tell whose it is"
        ),
    )
    more = [*twice, [(0, 2)], [(0, (1, 2))], [(0, (2, 1))]]
    assert judge_recorded(listed(range(5), more), "read-committed").verdict == "forbidden"
