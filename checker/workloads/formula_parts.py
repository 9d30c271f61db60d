"""Formulas taken apart, once for all questions about them.

The solver's Python layer makes a new object of a part whenever one looks at it. Here each part of the formulas of
some questions is looked at once, through the solver's C interface, and is one object from then on.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FormulaPart", "FormulaParts"]


class FormulaPart:
    """A formula or a term: which function it is of which parts. It lives as long as the formulas that it is of."""

    def __init__(self, core: Any, kind: int, term: Any, parts: Sequence[FormulaPart]) -> None:
        self.kind = kind
        self.term = term
        self.parts = parts
        self._core = core

    @cached_property
    def unknowns(self) -> frozenset[FormulaPart]:
        """The unknowns in it."""
        if self.kind == self._core.Z3_OP_UNINTERPRETED and not self.parts:
            return frozenset((self,))
        return frozenset().union(*(part.unknowns for part in self.parts))


class FormulaParts:
    """The parts of some formulas of the solver's main context.

    >>> import z3
    >>> a, b, n = *z3.Bools("a b"), z3.Int("n")
    >>> formulas = FormulaParts()
    >>> both = formulas.of(z3.And(a, z3.Or(b, n > 3)))
    >>> both.parts[0] is formulas.of(a), both.unknowns == {formulas.of(one) for one in (a, b, n)}
    (True, True)
    """

    def __init__(self) -> None:
        import z3

        self._core: Any = z3.z3core
        self._context: Any = z3.main_ctx().ref()
        self._known: dict[int, FormulaPart] = {}
        self._kept: list[Any] = []

    def of(self, formula: Any) -> FormulaPart:
        """A formula; it is kept, so that no other one takes its place."""
        term = formula.as_ast()
        found = self._known.get(self._core.Z3_get_ast_id(self._context, term))
        if found is None:
            self._kept.append(formula)
            found = self._part(term)
        return found

    def _part(self, term: Any) -> FormulaPart:
        core, context = self._core, self._context
        key = core.Z3_get_ast_id(context, term)
        found = self._known.get(key)
        if found is None:
            kind = core.Z3_get_decl_kind(context, core.Z3_get_app_decl(context, term))
            many = core.Z3_get_app_num_args(context, term)
            parts = [self._part(core.Z3_get_app_arg(context, term, k)) for k in range(many)]
            found = self._known[key] = FormulaPart(core, kind, term, parts)
        return found
