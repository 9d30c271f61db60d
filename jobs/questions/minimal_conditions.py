"""Minimal conditions: comparisons in an example that imply given formulas.

Of a disjunction, one true part is enough; values that occur only in the other parts are irrelevant
for the example.

Z3's Python layer creates a new object for each access to a part of a formula. Here each part is
read once through the C interface, and is one object from then on.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.checker.solver.smt import c_function

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from isolitmus.jobs.questions.solver import Solution


class HeldComparison(NamedTuple):
    """A comparison and its truth value."""

    part: FormulaPart
    holds: bool

    @property
    def formula(self) -> Any:
        """Formula that states the comparison with this truth value."""
        import z3

        found = z3.BoolRef(self.part.term, z3.main_ctx())
        return found if self.holds else z3.Not(found)


def find_implicant(model: Solution, formulas: Iterable[FormulaPart]) -> list[HeldComparison]:
    """Return literals that hold in a model and together imply each of these formulas.

    An implication (``Implies``) contributes its consequence only if its premise is among the
    literals (or, by contraposition, the negated premise if the consequence is false).

    Examples
    --------
    >>> import z3
    >>> from isolitmus.jobs.questions.minimal_conditions import FormulaParts
    >>> from isolitmus.jobs.questions.solver import Solution
    >>> a, b, c, n = *z3.Bools("a b c"), z3.Int("n")
    >>> both = z3.And(z3.Or(a, b), z3.Not(z3.And(c, n > 3)))
    >>> solver = z3.Solver()
    >>> solver.add(b, z3.Not(a), z3.Not(c), n == 7)
    >>> str(solver.check())
    'sat'
    >>> [one.formula for one in find_implicant(Solution(solver.model()), [FormulaParts().of(both)])]
    [b, Not(c)]
    """
    return _Implicant(model).of(formulas)


class _Implicant:
    """Decomposition of formulas that hold in a model."""

    def __init__(self, model: Solution) -> None:
        import z3

        self.z3: Any = z3
        self.model = model
        self.found: dict[tuple[FormulaPart, bool], None] = {}
        self.done: set[tuple[FormulaPart, bool]] = set()
        self.held: dict[FormulaPart, bool] = {}

    def of(self, formulas: Iterable[FormulaPart]) -> list[HeldComparison]:
        """Return comparisons that hold in the model and imply the formulas."""
        later = []
        for formula in formulas:
            if formula.kind == self.z3.Z3_OP_IMPLIES:
                later.append(formula)
            else:
                self._need(formula, so=True)
        while True:
            left = [one for one in later if not self._followed(one)]
            if len(left) == len(later):
                return [HeldComparison(*one) for one in self.found]
            later = left

    def _followed(self, rule: FormulaPart) -> bool:
        """Return whether one side of an implication is known, so that the other one follows."""
        if_so, then = rule.parts
        if self._known(if_so, so=True):
            self._need(then, so=True)
            return True
        if self._known(then, so=False):
            self._need(if_so, so=False)
            return True
        return False

    def _known(self, formula: FormulaPart, *, so: bool) -> bool:
        while formula.kind == self.z3.Z3_OP_NOT:
            formula, so = formula.parts[0], not so
        return (formula, so) in self.found

    def _holds(self, formula: FormulaPart) -> bool:
        """Return whether a formula holds in the model, memoized."""
        said = self.held.get(formula)
        if said is None:
            z3, parts = self.z3, formula.parts
            match formula.kind:
                case z3.Z3_OP_NOT:
                    said = not self._holds(parts[0])
                case z3.Z3_OP_AND:
                    said = all(map(self._holds, parts))
                case z3.Z3_OP_OR:
                    said = any(map(self._holds, parts))
                case _:
                    said = self.model.says(formula.term)
            self.held[formula] = said
        return said

    def _need(self, formula: FormulaPart, *, so: bool) -> None:
        """Add the truth value of a formula in the model."""
        z3 = self.z3
        todo = [(formula, so)]
        while todo:
            one, said = todo.pop()
            if (one, said) in self.done:
                continue
            self.done.add((one, said))
            match one.kind:
                case z3.Z3_OP_TRUE | z3.Z3_OP_FALSE:
                    pass
                case z3.Z3_OP_NOT:
                    todo.append((one.parts[0], not said))
                case z3.Z3_OP_AND | z3.Z3_OP_OR:
                    parts = [(part, said) for part in one.parts]
                    every = (one.kind == z3.Z3_OP_AND) == said
                    todo += reversed(parts) if every else self._enough(parts)
                case z3.Z3_OP_IMPLIES:
                    parts = [(one.parts[0], not said), (one.parts[1], said)]
                    todo += self._enough(parts) if said else reversed(parts)
                case _:
                    self.found[one, said] = None

    def _enough(self, parts: list[tuple[FormulaPart, bool]]) -> Iterator[tuple[FormulaPart, bool]]:
        """Yield one part with this truth value; prefer one that is needed already."""
        for one in parts:
            if one in self.done:
                return
        yield next((part, said) for part, said in parts if self._holds(part) == said)


class FormulaPart:
    """Formula or term: its function and its parts. It lives as long as the whole formula."""

    def __init__(self, core: Any, kind: int, term: Any, parts: Sequence[FormulaPart]) -> None:
        self.kind = kind
        self.term = term
        self.parts = parts
        self._core = core

    @cached_property
    def unknowns(self) -> frozenset[FormulaPart]:
        """Uninterpreted constants in the formula."""
        if self.kind == self._core.Z3_OP_UNINTERPRETED and not self.parts:
            return frozenset((self,))
        return frozenset().union(*(part.unknowns for part in self.parts))


class FormulaParts:
    """Cache of the parts of formulas in the solver's main context.

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
        self._number = c_function("Z3_get_ast_id")
        self._kind, self._function, self._size, self._part_of = map(
            c_function,
            ("Z3_get_decl_kind", "Z3_get_app_decl", "Z3_get_app_num_args", "Z3_get_app_arg"),
        )
        self._context: Any = z3.main_ctx().ref()
        self._known: dict[int, FormulaPart] = {}
        self._kept: list[Any] = []

    def of(self, formula: Any) -> FormulaPart:
        """Return a formula as parts; it is kept alive, so that its identifier stays unique."""
        term = formula.as_ast()
        found = self._known.get(self._number(self._context, term))
        if found is None:
            self._kept.append(formula)
            found = self._part(term)
        return found

    def _part(self, term: Any) -> FormulaPart:
        """Return a term with its parts, one object for each term."""
        context = self._context
        key = self._number(context, term)
        found = self._known.get(key)
        if found is None:
            kind = self._kind(context, self._function(context, term))
            parts = [
                self._part(self._part_of(context, term, k))
                for k in range(self._size(context, term))
            ]
            found = self._known[key] = FormulaPart(self._core, kind, term, parts)
        return found
