"""Z3: questions within a budget, and formulas that are built without its conversions.

Z3's Python layer looks for the context of each operand, converts it to a formula, and tests its
sort; that takes several times as long as the call of the solver. For `fast_z3` all operands are
formulas in the main context, or Python's True and False. Its functions of the C interface convert
each argument in Python as well, which `c_function` does not.
"""

from __future__ import annotations

import ctypes
import signal
from contextlib import nullcontext
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

from isolitmus.model.errors import MemoryLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isolitmus.model.budget import Budget


def ask_solver(solver: Any, assumptions: Sequence[Any] = (), budget: Budget | None = None) -> str:
    """Return the answer of a Z3 solver: sat, unsat, or unknown if it has a limit of its own.

    Raises
    ------
    KeyboardInterrupt
        At a Ctrl-C, which Z3 catches itself and reports as unknown.
    Limit
        If the budget is spent, also while the solver runs.
    """
    import z3

    try:
        with nullcontext() if budget is None else budget.stopping(solver.ctx.interrupt):
            said = str(solver.check(*assumptions))
    except z3.Z3Exception as problem:
        if "memory" in str(problem):
            raise MemoryLimit("memory was used up") from None
        if "cancel" in str(problem) or "interrupt" in str(problem):
            raise KeyboardInterrupt from None
        raise
    finally:
        # Z3 restores Python's handler with signal(), which makes later waits ignore a Ctrl-C.
        signal.siginterrupt(signal.SIGINT, True)
    if said == "unknown" and "interrupt" in solver.reason_unknown():
        raise KeyboardInterrupt
    return said


@cache
def c_function(name: str) -> Callable[..., Any]:
    """Return a function of Z3's C interface that converts no argument in Python.

    Arguments are objects of z3's types. It does not ask whether an error occurred: use it for what
    cannot fail, or returns a null pointer then (`raise_failure`).

    Examples
    --------
    >>> import z3
    >>> both = z3.And(*z3.Bools("a b"))
    >>> c_function("Z3_get_app_num_args")(z3.main_ctx().ref(), both.as_ast())
    2
    """
    import z3

    converting: Callable[..., Any] = getattr(z3.z3core, name)
    # the function of the library is kept in a default argument of z3's
    known = next(iter(getattr(converting, "__defaults__", None) or ()), None)
    try:
        function: Any = known.f  # type: ignore[union-attr]
        plain = (ctypes.c_uint, ctypes.c_int, ctypes.c_bool, ctypes.c_char_p)
        kinds = [one if one in plain else ctypes.c_void_p for one in function.argtypes]
        address = ctypes.cast(function, ctypes.c_void_p).value
        return ctypes.CFUNCTYPE(function.restype, *kinds)(address or 0)
    except (AttributeError, TypeError):  # another release of z3
        return converting


def raise_failure() -> NoReturn:
    """Raise the last error of Z3's main context, after a function that failed."""
    import z3

    ref = z3.main_ctx().ref()
    raise z3.Z3Exception(z3.z3core.Z3_get_error_msg(ref, z3.z3core.Z3_get_error_code(ref)))


@cache
def fast_z3() -> Any:
    """Return the module z3 with fast connectives, and with fast comparisons of its own.

    The connectives, ``Bool``, ``BoolVal`` and the sorts are those of z3. ``at_most``, ``below``
    and ``equal`` compare terms of one sort; ``integer`` and ``real`` are the terms of a number, and
    ``unknown`` is the constant with a name and a sort.

    Examples
    --------
    >>> z3 = fast_z3()
    >>> a, b = z3.Bools("a b")
    >>> z3.Implies(z3.And(a, True), z3.Or(z3.Not(b), a))
    Implies(And(a, True), Or(Not(b), a))
    >>> z3.at_most(z3.integer(0), z3.unknown("n", z3.IntSort()))
    0 <= n
    """
    import z3

    context, formula, ast = z3.main_ctx(), z3.BoolRef, z3.Ast
    ref = context.ref()
    constants = {True: z3.BoolVal(True), False: z3.BoolVal(False)}
    truths, integers, reals = z3.BoolSort(), z3.IntSort(), z3.RealSort()
    conjoin, disjoin, negate, imply, less, strictly, equate, keep = map(
        c_function,
        (
            "Z3_mk_and", "Z3_mk_or", "Z3_mk_not", "Z3_mk_implies", "Z3_mk_le", "Z3_mk_lt",
            "Z3_mk_eq", "Z3_inc_ref",
        ),
    )  # fmt: skip
    name_symbol, make_constant = c_function("Z3_mk_string_symbol"), c_function("Z3_mk_const")

    def made(kind: Any, found: Any) -> Any:
        """Return a term as an object of z3's class for it, which frees it."""
        if not found:
            raise_failure()
        one = kind.__new__(kind)
        one.ast, one.ctx = found, context
        keep(ref, found)
        return one

    def operands(parts: tuple[Any, ...]) -> Any:
        found = [part.ast if isinstance(part, formula) else constants[part].ast for part in parts]
        return (ast * len(parts))(*found)

    def conjunction(*parts: Any) -> Any:
        return made(formula, conjoin(ref, len(parts), operands(parts)))

    def disjunction(*parts: Any) -> Any:
        return made(formula, disjoin(ref, len(parts), operands(parts)))

    def negation(part: Any) -> Any:
        return made(formula, negate(ref, operands((part,))[0]))

    def implication(premise: Any, conclusion: Any) -> Any:
        return made(formula, imply(ref, *operands((premise, conclusion))))

    def at_most(low: Any, high: Any) -> Any:
        return made(formula, less(ref, low.ast, high.ast))

    def below(low: Any, high: Any) -> Any:
        return made(formula, strictly(ref, low.ast, high.ast))

    def equal(a: Any, b: Any) -> Any:
        return made(formula, equate(ref, a.ast, b.ast))

    def unknown(name: str, sort: Any) -> Any:
        found = make_constant(ref, name_symbol(ref, name.encode()), sort.ast)
        return made(formula if isinstance(sort, z3.BoolSortRef) else z3.ArithRef, found)

    compared = {"at_most": at_most, "below": below, "equal": equal}
    numerals = {"integer": cache(z3.IntVal), "real": cache(z3.RealVal)}
    fast = {"And": conjunction, "Or": disjunction, "Not": negation, "Implies": implication}
    other = {
        "unknown": unknown,
        "Bool": lambda name: unknown(name, truths),
        "BoolVal": lambda value: constants[value],
        "BoolSort": lambda: truths,
        "IntSort": lambda: integers,
        "RealSort": lambda: reals,
    }
    return SimpleNamespace(**{**vars(z3), **fast, **compared, **numerals, **other})
