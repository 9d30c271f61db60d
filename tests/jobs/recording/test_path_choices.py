"""Choices of runs: every path that some numbers of rows take is taken, and no other one."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from isolitmus.jobs.recording.path_choices import SIGNS, NumberOfRows, PathChoices
from isolitmus.jobs.recording.traced_values import TokenTable, TracedRows, TracedValue

comparisons = st.tuples(st.integers(0, 1), st.sampled_from(sorted(SIGNS)), st.integers(-1, 4))
programs = st.recursive(st.none(), lambda inner: st.tuples(comparisons, inner, inner), max_leaves=7)
"""A comparison of one of two numbers, with what follows if it is true and if it is not."""


def path(program, compare):
    """The outcomes of a program's comparisons."""
    found = []
    while program is not None:
        (number, sign, bound), yes, no = program
        outcome = bool(compare(number, sign, bound))
        found.append(outcome)
        program = yes if outcome else no
    return tuple(found)


@given(programs, st.tuples(st.integers(0, 3), st.integers(0, 3)))
def test_the_paths_of_a_program_are_those_of_some_numbers(program, there):
    expected = {
        path(program, lambda number, sign, bound, of=of: SIGNS[sign](of[number], bound))
        for of in product(range(8), repeat=2)
    }
    choices, taken = PathChoices(), []
    while not taken or choices.advance():
        rows = [NumberOfRows(choices, n, lambda _: None) for n in there]
        taken.append(
            path(program, lambda number, sign, bound, of=rows: of[number].compare(sign, bound))
        )
        values = [row.value for row in rows]
        assert path(program, lambda n, s, b, of=values: SIGNS[s](of[n], b)) == taken[-1]
        assert len(taken) <= len(expected)
    assert taken[0] == path(program, lambda number, sign, bound: SIGNS[sign](there[number], bound))
    assert sorted(taken) == sorted(expected)


def test_a_run_that_compares_something_else_is_not_forced():
    choices = PathChoices()
    assert not NumberOfRows(choices, 3, lambda _: None).compare("<", 2)
    assert choices.advance()
    rows = NumberOfRows(choices, 3, lambda _: None)
    assert not rows.compare("<", 0)
    assert rows.value == 3
    assert not choices.advance()


def test_numbers_and_rows_are_compared_as_python_does():
    known, used = [], []
    choices = PathChoices()
    many = NumberOfRows(choices, 0, known.append)
    value = TracedValue(0, ":n", TokenTable(), lambda: used.append("n"), many)
    assert not value
    assert value == 0
    assert not value > 0
    assert (known, used) == (["= 0"], [])
    assert value != "0"
    assert used == ["n"]
    rows = TracedRows([], lambda: used.append("rows"), many=NumberOfRows(choices, 0, known.append))
    assert not rows
    assert (len(rows), rows == []) == (0, True)
    assert (known, used) == (["= 0", "<= 0"], ["n"])
    choices.advance()
    NumberOfRows(choices, 0, known.append).compare("<>", 0)
    rows = TracedRows([], lambda: used.append("rows"), many=NumberOfRows(choices, 0, known.append))
    assert rows
    assert len(rows) == 1
    assert (known[2:], used) == (["= 0", "> 0"], ["n", "rows"])


def test_null_and_a_number_make_a_number():
    tokens, notes = TokenTable(), []
    tokens.note = notes.append
    found = TracedValue(None, ":m_1", tokens, lambda: notes.append("used")) + 1
    assert (found.plain, found.text) == (None, "(:m_1 + 1)")
    assert [one.partition(",")[0] for one in notes] == [":m_1 is NULL on empty tables"]
