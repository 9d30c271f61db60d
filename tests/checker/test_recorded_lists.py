"""Recorded lists at serializable and snapshot isolation, against every order of events tried by the definitions."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker.recorded.listing import LISTED, judge_lists
from isolitmus.model.errors import UnknownName
from isolitmus.model.list_history import ListHistory
from isolitmus.model.register_history import INITIAL, RegisterHistory


def listed(sessions, transactions):
    """A history of transactions of operations: a key, and an element that is appended or a list that is read."""
    every = [step for steps in transactions for step in steps]
    last = [x if isinstance(x, int) else x[-1] if x else INITIAL for _, x in every]
    lists = [() if isinstance(x, int) else x for _, x in every]
    registers = RegisterHistory(
        ("x", "y"),
        ("s", "t", "u"),
        np.array(sessions),
        np.zeros(len(transactions), int),
        np.cumsum([0, *map(len, transactions)]),
        np.array([isinstance(x, int) for _, x in every], bool),
        np.array([key for key, _ in every], int),
        np.array(last, int),
        np.arange(1, len(every) + 1),
    )
    ends = np.cumsum([0, *map(len, lists)])
    return ListHistory(registers, ends, np.array([e for each in lists for e in each], int))


def explained(sessions, transactions, events, level):
    there, began, wrote = {0: [], 1: []}, {}, {}
    for moment, one in enumerate(events):
        steps = transactions[one]
        if one not in began:
            if any(sessions[n] == sessions[one] and n > one for n in began):
                return False
            if any(sessions[n] == sessions[one] and n < one and n not in wrote for n in range(one)):
                return False
            began[one] = moment
            mine = {key: [*found] for key, found in there.items()}
            for key, x in steps:
                if isinstance(x, int):
                    mine[key].append(x)
                elif mine[key] != [*x]:
                    return False
            if level != "serializable":
                continue
        keys = {key for key, x in steps if isinstance(x, int)}
        for other, (moment_of, others) in wrote.items():
            if other != one and moment_of > began[one] and keys & others:
                return False
        wrote[one] = moment, keys
        for key, x in steps:
            if isinstance(x, int):
                there[key].append(x)
    return True


@st.composite
def drawn(draw):
    count = draw(st.integers(1, 3))
    sessions = sorted(draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)))
    elements = iter(range(20))
    kinds = [
        draw(st.lists(st.tuples(st.booleans(), st.integers(0, 1)), min_size=1, max_size=3))
        for _ in sessions
    ]
    shape = [[(key, next(elements) if append else None) for append, key in one] for one in kinds]
    chosen = {}
    for key in (0, 1):
        chosen[key] = draw(
            st.permutations([x for one in shape for k, x in one if k == key and x is not None])
        )
    transactions = []
    for one in shape:
        steps = []
        for key, x in one:
            cut = draw(st.integers(0, len(chosen[key])))
            steps.append((key, tuple(chosen[key][:cut]) if x is None else x))
        transactions.append(steps)
    return sessions, transactions


@pytest.mark.parametrize("level", LISTED)
@given(made=drawn())
def test_every_order_tried_says_the_same(level, made):
    sessions, transactions = made
    each = 1 if level == "serializable" else 2
    orders = {*permutations([*range(len(sessions))] * each)}
    allowed = any(explained(sessions, transactions, events, level) for events in orders)
    assert judge_lists(listed(*made), level).verdict == ("allowed" if allowed else "forbidden")


@pytest.mark.parametrize("level", LISTED)
def test_lists_of_which_neither_begins_the_other_are_named(level):
    made = [[(0, 1)], [(0, 2)], [(0, (1, 2)), (0, (2, 1, 3)), (0, 3)]]
    assert judge_lists(listed([0, 1, 2], made), level).verdict == "forbidden"


def test_an_element_that_two_append_leaves_it_unknown():
    assert judge_lists(listed([0, 1], [[(0, 1)], [(0, 1)]]), "serializable").verdict == "unknown"


def test_other_levels_are_refused():
    with pytest.raises(UnknownName, match="no level 'causal' for recorded lists"):
        judge_lists(listed([0], [[(0, 1)]]), "causal")
