"""Z3: questions within a budget, and formulas that are built without its conversions.

Z3's Python layer looks for the context of each operand, converts it to a formula, and tests its
sort; that takes several times as long as the call of the solver. For `fast_z3` all operands are
formulas in the main context, or Python's True and False.
"""

from __future__ import annotations

import signal
from contextlib import nullcontext
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from isolitmus.model.errors import MemoryLimit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.model.budget import Budget

__all__ = ["ask_solver", "fast_z3"]


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
def fast_z3() -> Any:
    """Return the module z3 with fast connectives, and with fast comparisons of its own.

    ``And``, ``Or``, ``Not`` and ``Implies`` are those of z3. ``at_most``, ``below`` and ``equal``
    compare terms of one sort; ``integer`` and ``real`` are the terms of a number.

    Examples
    --------
    >>> z3 = fast_z3()
    >>> a, b = z3.Bools("a b")
    >>> z3.Implies(z3.And(a, True), z3.Or(z3.Not(b), a))
    Implies(And(a, True), Or(Not(b), a))
    >>> z3.at_most(z3.integer(0), z3.Int("n"))
    0 <= n
    """
    import z3

    core, context, formula, ast = z3.z3core, z3.main_ctx(), z3.BoolRef, z3.Ast
    ref = context.ref()
    constants = {True: z3.BoolVal(True), False: z3.BoolVal(False)}

    def operands(parts: tuple[Any, ...]) -> Any:
        found = [part.ast if isinstance(part, formula) else constants[part].ast for part in parts]
        return (ast * len(parts))(*found)

    def conjunction(*parts: Any) -> Any:
        return formula(core.Z3_mk_and(ref, len(parts), operands(parts)), context)

    def disjunction(*parts: Any) -> Any:
        return formula(core.Z3_mk_or(ref, len(parts), operands(parts)), context)

    def negation(part: Any) -> Any:
        return formula(core.Z3_mk_not(ref, operands((part,))[0]), context)

    def implication(premise: Any, conclusion: Any) -> Any:
        return formula(core.Z3_mk_implies(ref, *operands((premise, conclusion))), context)

    def at_most(low: Any, high: Any) -> Any:
        return formula(core.Z3_mk_le(ref, low.ast, high.ast), context)

    def below(low: Any, high: Any) -> Any:
        return formula(core.Z3_mk_lt(ref, low.ast, high.ast), context)

    def equal(a: Any, b: Any) -> Any:
        return formula(core.Z3_mk_eq(ref, a.ast, b.ast), context)

    compared = {"at_most": at_most, "below": below, "equal": equal}
    numerals = {"integer": cache(z3.IntVal), "real": cache(z3.RealVal)}
    fast = {"And": conjunction, "Or": disjunction, "Not": negation, "Implies": implication}
    return SimpleNamespace(**{**vars(z3), **fast, **compared, **numerals})
