"""Formulas that are built fast are the terms that z3 builds; what Z3 refuses is an error."""

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker.solver.smt import c_function, fast_z3
from isolitmus.jobs.questions.solver import LimitedSolver

NAMES = st.sampled_from(["a", "b", "é is NULL"])
NUMBERS = st.integers(-3, 3) | st.sampled_from(["n", "m"])
COMPARED = st.tuples(st.sampled_from(["at_most", "below", "equal"]), NUMBERS, NUMBERS)
FORMULAS = st.recursive(
    NAMES | st.booleans() | COMPARED,
    lambda inner: (
        st.tuples(st.just("Not"), inner)
        | st.tuples(st.just("Implies"), inner, inner)
        | st.tuples(st.sampled_from(["And", "Or"]), st.lists(inner, min_size=2, max_size=4))
    ),
    max_leaves=12,
)
PLAIN = {"at_most": "Z3_mk_le", "below": "Z3_mk_lt", "equal": "Z3_mk_eq"}


def compared(name, a, b):
    """A comparison in its order; for ``n <= 0`` Python asks z3's number for ``0 >= n``."""
    return z3.BoolRef(getattr(z3.z3core, PLAIN[name])(z3.main_ctx().ref(), a.ast, b.ast))


def number(value, fast):
    if isinstance(value, int):
        return fast.integer(value) if fast else z3.IntVal(value)
    return fast.unknown(value, z3.IntSort()) if fast else z3.Int(value)


def built(formula, fast=None):
    match formula:
        case bool():
            return fast.BoolVal(formula) if fast else z3.BoolVal(formula)
        case str():
            return fast.Bool(formula) if fast else z3.Bool(formula)
        case (name, a, b) if name in PLAIN:
            parts = number(a, fast), number(b, fast)
            return getattr(fast, name)(*parts) if fast else compared(name, *parts)
        case (name, list() as parts):
            return getattr(fast or z3, name)(*(built(one, fast) for one in parts))
        case (name, *parts):
            return getattr(fast or z3, name)(*(built(one, fast) for one in parts))


@given(FORMULAS)
def test_fast_formulas_are_those_of_z3(formula):
    assert built(formula, fast_z3()).eq(built(formula))


@given(st.lists(FORMULAS, min_size=1, max_size=4), st.booleans())
def test_a_solver_answers_as_z3_does(formulas, main):
    fast = fast_z3()
    solver, plain = LimitedSolver(main=main), z3.Solver()
    solver.tell(*(built(one, fast) for one in formulas))
    plain.add(*(built(one) for one in formulas))
    assert solver.possible() == (plain.check() == z3.sat)
    if solver.possible():
        assert all(solver.model.has(built(one, fast)) for one in formulas)


def test_what_z3_refuses_is_an_error():
    fast = fast_z3()
    with pytest.raises(z3.Z3Exception, match="Sort mismatch"):
        fast.And(fast.Bool("a"), z3.BoolRef(fast.integer(1).ast))
    assert fast.And(fast.Bool("a"), True).eq(z3.And(z3.Bool("a"), True))


def test_a_release_of_z3_with_other_functions_is_used_as_it_is(monkeypatch):
    monkeypatch.setattr(z3.z3core, "Z3_get_version", lambda *_: "other", raising=False)
    c_function.cache_clear()
    assert c_function("Z3_get_version")() == "other"
    c_function.cache_clear()
