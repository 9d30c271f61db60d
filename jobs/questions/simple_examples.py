"""Simple examples from a solver, and the solver for questions about workloads.

An example has only the values that its formulas need, and simple ones if possible.
"""

from __future__ import annotations

from contextlib import contextmanager
from copy import copy
from functools import cache
from itertools import combinations, islice, product
from typing import TYPE_CHECKING, Any

from isolitmus.checker.solver.smt import fast_z3
from isolitmus.jobs.questions.instances import value_bounds
from isolitmus.jobs.questions.minimal_conditions import FormulaParts, find_implicant
from isolitmus.jobs.questions.solver import LimitedSolver, Solution

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from isolitmus.jobs.questions.instances import Participant
    from isolitmus.jobs.questions.minimal_conditions import HeldComparison
    from isolitmus.jobs.templates.expression_formulas import FreeValue, RowTerm, ValueTerm

SPREAD = 30
"""Maximum number of soft constraints, per kind, that make the values of an example differ."""


class Examples:
    """Examples of some participants; each depends only on its own formulas, not on earlier
    questions.
    """

    def __init__(self, roles: Sequence[Participant]) -> None:
        self.roles = roles
        self.formulas = FormulaParts()

    def of(self, told: Sequence[Any], *, apart: bool = False) -> Solution | None:
        """Return an example of formulas, or None; with ``apart``, values differ where possible."""
        solver = LimitedSolver()
        solver.tell(*told)
        solver.tell(*value_bounds(self.roles))
        if not solver.possible():
            return None
        formulas = [self.formulas.of(one) for one in told if one is not True]
        first = solver.model
        parts = _Parts(self, find_implicant(first, formulas))
        parts.wish(solver, apart=apart)
        if not solver.possible():  # the solver gave up
            return parts.solution(first)
        model, wished = solver.model, parts.unknowns
        reasons = find_implicant(model, formulas)
        parts = _Parts(self, reasons)
        if parts.unknowns <= wished:
            return parts.solution(model)
        solver.begin()
        solver.tell(*(one.formula for one in reasons), *parts.bounds)
        parts.wish(solver, apart=apart)
        return parts.solution(solver.model if solver.possible() else model)


class _Parts:
    """Relevant values of an example, and soft constraints on them."""

    def __init__(self, examples: Examples, reasons: Sequence[HeldComparison]) -> None:
        self.z3: Any = fast_z3()
        self.formulas = examples.formulas
        self.unknowns = frozenset(one for reason in reasons for one in reason.part.unknowns)
        roles = examples.roles
        self.samples = list(self._samples(roles))
        self.parameters = [list(role.terms.parameters.values()) for role in roles]
        self.constants = [list(role.terms.constants.values()) for role in roles]
        self.rows = [list(self._rows_of(role)) for role in roles]
        own = {
            self.formulas.of(term.value)
            for terms, rows in zip(self.parameters, self.rows, strict=True)
            for term in (*terms, *(t for _, row in rows for t in row))
        }
        self.values = [
            one
            for role in roles
            for one in role.terms.values
            if self.formulas.of(one.value) in own or self._plays((one,))
        ]

    def _plays(self, values: Iterable[ValueTerm | FreeValue]) -> bool:
        """Return whether the formulas depend on one of these values."""
        return any(
            self.formulas.of(term) in self.unknowns
            for one in values
            for term in (one.value, one.null)
        )

    def _samples(self, roles: Sequence[Participant]) -> Iterator[Any]:
        """Yield the samples of relevant values without a formula, which make their operands
        relevant.
        """
        for role in roles:
            for one in role.terms.applications:
                if self._plays((one.found,)) and (sampled := role.sampled(one)) is not None:
                    self.unknowns |= {
                        self.formulas.of(term) for part in one.operands for term in part
                    }
                    yield sampled

    def _rows_of(self, role: Participant) -> Iterator[tuple[str, RowTerm]]:
        """Yield the relevant rows; for a table without any, its first row."""
        tables: dict[str, list[RowTerm]] = {}
        for name, row in role.terms.rows:
            tables.setdefault(name, []).append(row)
        for name, some in tables.items():
            yield from ((name, row) for row in [r for r in some if self._plays(r)] or some[:1])

    @property
    def bounds(self) -> list[Any]:
        """Formulas of the domains of values."""
        return [formula for one in self.values for formula in one.bounds]

    def solution(self, model: Solution) -> Solution:
        """Return a model with its relevant rows."""
        return Solution(model.model, [row for some in self.rows for row in some])

    def wish(self, solver: LimitedSolver, *, apart: bool) -> None:
        """Assert soft constraints as far as they are satisfiable together."""
        rows = [row for rows in self.rows for _, row in rows]
        given, nulls = (
            [self.z3.Not(term.null) for some in terms for term in some if self._may_be_null(term)]
            for terms in (self.parameters, rows)
        )
        wishes = [*(formula for one in self.values for formula in one.usual), *nulls]
        differ = (*islice(self._different(), SPREAD), *islice(self._from_constants(), SPREAD))
        alike = () if apart else self._one_row()
        assert_softly(solver, [*given, *self.samples, *alike, *wishes, *(differ if apart else ())])

    def _may_be_null(self, term: ValueTerm) -> bool:
        return not self.z3.is_false(term.null)

    def _one_row(self) -> Iterator[Any]:
        """Yield formulas: all rows of a table are equal."""
        first: dict[str, Any] = {}
        for table, row in (one for rows in self.rows for one in rows):
            other = first.setdefault(table, row)
            if other is not row:
                equal = self.z3.equal
                same = [
                    (equal(a.null, b.null), equal(a.value, b.value))
                    for a, b in zip(row, other, strict=True)
                ]
                yield self.z3.And(*(part for pair in same for part in pair))

    def _different(self) -> Iterator[Any]:
        """Yield formulas: values of different statements differ."""
        for some, other in combinations(self._own, 2):
            yield from _apart(some, other)

    def _from_constants(self) -> Iterator[Any]:
        """Yield formulas: values of a statement differ from constants of another one."""
        for (some, named), (other, called) in combinations(
            zip(self._own, self.constants, strict=True), 2
        ):
            yield from _apart(some, called)
            yield from _apart(other, named)

    @property
    def _own(self) -> list[list[Any]]:
        """Values of each statement."""
        return [
            [t.value for t in terms] + [t.value for _, row in rows for t in row]
            for terms, rows in zip(self.parameters, self.rows, strict=True)
        ]


def _apart(some: Iterable[Any], other: Iterable[Any]) -> Iterator[Any]:
    """Yield formulas: comparable values differ."""
    kinds = [[(x, x.sort().kind()) for x in values] for values in (some, other)]
    yield from (x != y for (x, kind), (y, other) in product(*kinds) if kind == other)


def assert_softly(solver: LimitedSolver, wishes: Sequence[Any]) -> None:
    """Assert formulas as far as they are satisfiable together; drop the last conflicting one."""
    z3 = fast_z3()
    left = {f"wish {k}": (_name(f"wish {k}"), wish) for k, wish in enumerate(wishes)}
    solver.tell(*(z3.Implies(*pair) for pair in left.values()))
    while left and solver.possible(*(name for name, _ in left.values())) is False:
        against = solver.against
        del left[next(name for name in reversed(left) if name in against)]
    solver.tell(*(formula for _, formula in left.values()))


@cache
def _name(name: str) -> Any:
    """Return the Boolean unknown with this name."""
    import z3

    return z3.Bool(name)


class QuestionSolver:
    """Solver for questions about some participants.

    Formulas common to all questions are asserted once, those of some questions ``within`` a block.
    The literals of the participants have their values, or any values if they are ``free``.
    """

    def __init__(
        self, roles: Iterable[Participant], given: Iterable[Any] = (), *, free: bool = False
    ) -> None:
        self.z3: Any = fast_z3()
        self.roles = tuple(roles)
        self.told = [*(role.domain for role in self.roles), *given]
        self.fixed: list[Any] = []
        self._examples = Examples(self.roles)
        if not free:
            self.told += _fixed(self.roles)
        self._solver: LimitedSolver | None = self._begin()

    def _begin(self) -> LimitedSolver:
        """Return a solver with the formulas that are common to all questions."""
        solver = LimitedSolver(main=True)
        solver.tell(*value_bounds(self.roles), *self.told)
        return solver

    def rest(self) -> None:
        """Free the solver's memory until the next question."""
        self._solver = None

    def about(self, roles: Iterable[Participant]) -> QuestionSolver:
        """Return a solver for these participants, which play the roles of those with free literals.

        It shares the formulas, and neither is used within a block of the other.
        """
        found = copy(self)
        found.roles = tuple(roles)
        found.fixed = _fixed(found.roles)
        found.told = [*self.told, *found.fixed]
        return found

    @contextmanager
    def within(self, *formulas: Any) -> Iterator[LimitedSolver]:
        """Assert formulas for all questions of a block."""
        if self._solver is None:
            self._solver = self._begin()
        with self._solver.within(*formulas):
            yield self._solver

    def possible(self, *parts: Any) -> bool | None:
        """Return whether formulas are satisfiable; None if the solver gives up."""
        with self.within(*self.fixed, *parts) as solver:
            return solver.possible()

    def model_of(self, *parts: Any) -> tuple[bool | None, Solution | None]:
        """Return whether formulas are satisfiable, and a model if they are."""
        with self.within(*self.fixed, *parts) as solver:
            said = solver.possible()
            return said, solver.model if said else None

    def example(self, *parts: Any, wanted: Any = None, apart: bool = False) -> Solution | None:
        """Return a model of formulas with simple values, or None.

        If possible, the model satisfies ``wanted`` as well. With ``apart``, values differ where
        possible. The model depends only on the question, not on earlier ones.
        """
        for more in ((wanted,), ()) if wanted is not None else ((),):
            found = self._examples.of((*self.told, *parts, *more), apart=apart)
            if found is not None:
                return found
        return None

    def text(self, *parts: Any) -> str:
        """Return a question in SMT-LIB."""
        with self.within(*self.fixed, *parts) as solver:
            return str(solver.solver.to_smt2())


def _fixed(roles: Iterable[Participant]) -> list[Any]:
    """Return the formulas that the literals of participants have their values, and with them what
    has no formula.
    """
    roles = tuple(roles)
    literals = [literal for role in roles for literal in role.shape.literals]
    facts = [
        fact
        for role in roles
        for one in role.terms.applications
        for fact in role.terms.facts(one, literals)
    ]
    return [*(formula for role in roles for formula in role.fixed), *facts]
