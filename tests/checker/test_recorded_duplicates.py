"""Recorded histories in which several wrote a value, against every choice of the write that each read saw."""

from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from isolitmus.checker.recorded.judging import ORDERED, POLYNOMIAL, judge_recorded
from isolitmus.model.register_history import ABORTED, COMMITTED, INITIAL, UNKNOWN, RegisterHistory

LEVELS = POLYNOMIAL + ORDERED
CHOICES = 150
"""A history with more choices than that is not tried."""


@st.composite
def drawn(draw, ends=(COMMITTED, COMMITTED, COMMITTED, ABORTED, UNKNOWN), transactions=6):
    """A history with few values, the initial one among them, in which a read sees, but for a few, its own write, or
    what some transaction left, or nothing.
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
    """The same with another value for each write, in each way in which reads may have seen writes of their value."""
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
    assume(prod(map(len, seen)) <= CHOICES)
    for choice in product(*seen):
        value = np.arange(len(history.key))
        value[reads] = choice
        yield replace(history, value=value)


def by_choices(history, name):
    """What the level says of the choices, of which each has an own value for each write."""
    some = any(judge_recorded(one, name).verdict == "allowed" for one in choices(history))
    return "allowed" if some else "forbidden"


@given(drawn(), st.sampled_from(LEVELS))
def test_some_choice_of_writers_is_allowed_if_and_only_if_the_history_is(history, name):
    assert judge_recorded(history, name).verdict == by_choices(history, name)
