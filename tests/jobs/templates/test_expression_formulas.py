"""What a formula says of a condition is what the model computes, for every row."""

from __future__ import annotations

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.jobs.templates.expression_formulas import Codes, Terms
from isolitmus.model.sql.conditions import holds
from isolitmus.model.sql.expression import Not
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.model.sql.types import type_named
from isolitmus.specs.sql.statements import resolve
from isolitmus.specs.sql.syntax import Syntax

TYPES = {"id": "INT", "k": "INT", "s": "STRING"}
SCHEMA = Schema("t", tuple(Column(name, type_named(word)) for name, word in TYPES.items()))
NUMBERS = st.none() | st.integers(-4, 4)
TEXTS = st.none() | st.text("ab\uffff", max_size=3)
EXACT = (
    "s LIKE 'ab%'",
    "s NOT LIKE 'a%' AND id > 0",
    "s LIKE 'b%' OR s IS NULL",
    "id % 3 = 1",
    "id % -2 = -1 OR k % 2 < 1",
    "CASE WHEN id > 1 THEN s = 'a' WHEN s IS NULL THEN true ELSE id < 0 END",
    "CASE WHEN id % 2 = 0 THEN k WHEN id IS NOT NULL THEN 2 ELSE id END > 1",
    "CASE WHEN s LIKE 'a%' THEN 'b' ELSE s END = 'b'",
    "coalesce(id, k, 0) <= 2",
    "NOT (id BETWEEN k AND 3)",
    "s IN ('a', 'b') OR -id > k",
)
ROUGH = ("s LIKE 'a%b'", "s LIKE '%'", "s LIKE '_a%'", "id % k = 0", "s LIKE '\uffff%'")


def condition(text):
    return resolve(Syntax(f"DELETE FROM t WHERE {text}"), {"t": SCHEMA}).where


def said(text, row):
    """When a formula says that the condition is TRUE of a row of constants, and when FALSE; and
    whether it is exact.
    """
    terms = Terms("x", Codes())
    values = tuple(
        terms.constant(value, type_named(word))
        for value, word in zip(row, TYPES.values(), strict=True)
    )
    truth = terms.truth(condition(text), (values,))
    return *map(z3.simplify, truth), terms.exact


@pytest.mark.slow
@pytest.mark.parametrize("text", EXACT)
@given(row=st.tuples(NUMBERS, NUMBERS, TEXTS))
def test_a_formula_is_true_and_false_where_the_condition_is(text, row):
    where = condition(text)
    true, false, exact = said(text, row)
    assert exact or None in row  # a NULL has a value that may be any
    assert (z3.is_true(true), z3.is_true(false)) == (
        holds(where, (row,)),
        holds(Not(where), (row,)),
    )
    assert z3.is_true(true) or z3.is_false(true)


@pytest.mark.parametrize("text", ROUGH)
def test_what_has_no_formula_may_be_anything(text):
    terms = Terms("x", Codes())
    row = terms.row(SCHEMA, "t")
    truth = terms.truth(condition(text), (row,))
    solver = z3.Solver()
    solver.add(row[0].value == 1, *(z3.Not(value.null) for value in row))
    assert not terms.exact
    assert all(str(solver.check(one)) == "sat" for one in truth)
