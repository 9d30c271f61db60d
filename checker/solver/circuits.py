"""Boolean circuits as clauses, and Z3 as the solver behind them.

A literal is a non-zero integer, negative if negated, as in DIMACS. Gates fold constants and are
hashed: the same conjunction asked for twice is the same literal.

The circuits are propositional, and most questions about them are small: a SAT solver answers one in
a few microseconds, where Z3 takes a millisecond.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CONFLICTS = 2_000
"""Conflicts of the solver between two looks at the budget: at most about a second."""


class Gates:
    """Growing set of clauses over numbered variables; literal 1 is true.

    Examples
    --------
    >>> gates = Gates()
    >>> a, b = gates.new(), gates.new()
    >>> gates.conj([a, gates.true]) == a, gates.conj([a, -a]) == gates.false
    (True, True)
    >>> gates.conj([a, b]) == gates.conj([b, a])
    True
    """

    true = 1
    false = -1

    def __init__(self) -> None:
        self.variables = 1
        self.clauses: list[tuple[int, ...]] = [(1,)]
        self._made: dict[tuple[int, ...], int] = {}

    def new(self) -> int:
        """Return a fresh variable."""
        self.variables += 1
        return self.variables

    def add(self, *clause: int) -> None:
        """Add the clause that one of these literals holds."""
        if 1 not in clause:
            self.clauses.append(clause or (self.false,))

    def neg(self, a: int) -> int:
        return -a

    def both(self, a: int, b: int) -> int:
        """Return the conjunction of two literals."""
        if a in {b, 1}:
            return b
        if b == 1:
            return a
        if a == -1 or b == -1 or a == -b:
            return -1
        key = (a, b) if a < b else (b, a)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self.new()
            self.clauses += ((-made, a), (-made, b), (made, -a, -b))
        return made

    def conj(self, literals: Iterable[int]) -> int:
        """Return the conjunction of any number of literals."""
        parts = set(literals)
        parts.discard(1)
        if len(parts) < 2:
            return parts.pop() if parts else 1
        if -1 in parts or any(-part in parts for part in parts):
            return -1
        key = tuple(sorted(parts))
        if len(key) == 2:
            return self.both(*key)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self.new()
            self.clauses += ((-made, part) for part in key)
            self.clauses.append((made, *(-part for part in key)))
        return made

    def disj(self, literals: Iterable[int]) -> int:
        """Return the disjunction of any number of literals."""
        return -self.conj([-literal for literal in literals])

    def one_of(self, literals: list[int]) -> None:
        """Add clauses: exactly one of these literals holds."""
        self.add(*literals)
        for k, a in enumerate(literals):
            for b in literals[k + 1 :]:
                self.add(-a, -b)

    def order(self, n: int) -> list[list[int]]:
        """Return literals of a total order of n things, chosen by the solver.

        ``order[i][j]`` is true if i precedes j.
        """
        before = [[self.false] * n for _ in range(n)]
        for i in range(n):
            for j in range(i + 1, n):
                before[i][j] = self.new()
                before[j][i] = -before[i][j]
        for i in range(n):
            for j in range(n):
                for k in range(n):
                    if i < j and i < k and j != k:
                        self.add(-before[i][j], -before[j][k], before[i][k])
        return before

    def at_least(self, literals: list[int], most: int) -> list[int]:
        """Return counter literals: ``result[c]`` says that at least c + 1 of the literals hold.

        For c + 1 up to ``most``. The counter is a function of the literals (Sinz, Towards an
        optimal CNF encoding, CP 2005).

        Examples
        --------
        >>> gates = Gates()
        >>> gates.at_least([gates.true, gates.false, gates.true], 3)
        [1, 1, -1]
        """
        count = [self.false] * most
        for literal in literals:
            count = [
                self.disj([count[c], self.both(literal, count[c - 1] if c else self.true)])
                for c in range(most)
            ]
        return count


class Model:
    """Assignment of the variables; a variable that is in no clause is false."""

    def __init__(self, literals: Sequence[int]) -> None:
        self._true = [False, *(literal > 0 for literal in literals)]

    def __getitem__(self, literal: int) -> bool:
        variable = abs(literal)
        return (variable < len(self._true) and self._true[variable]) == (literal > 0)


class Solver:
    """Incremental solver that follows the clauses of some gates: MiniSat, through PySAT.

    A check raises a Limit if the ``budget`` is spent.

    Examples
    --------
    >>> from isolitmus.checker.solver.circuits import Gates
    >>> gates = Gates()
    >>> a, b = gates.new(), gates.new()
    >>> gates.add(a, b)
    >>> solver = Solver(gates)
    >>> solver.check([-a])[b], solver.check([-a, -b])
    (True, None)
    """

    def __init__(self, gates: Gates, budget: Budget | None = None) -> None:
        from pysat.solvers import Solver as Incremental

        self._solver = Incremental(name="minisat22")
        self._gates = gates
        self._loaded = 0
        self._budget = budget or Budget()

    def check(self, assumptions: Sequence[int] = ()) -> Model | None:
        """Return a model in which the assumptions hold, or None if there is none."""
        self._solver.append_formula(self._gates.clauses[self._loaded :])
        self._loaded = len(self._gates.clauses)
        found = None
        while found is None:
            self._budget.check()
            self._solver.conf_budget(CONFLICTS)
            found = self._solver.solve_limited(assumptions=assumptions, expect_interrupt=True)
        return Model(self._solver.get_model()) if found else None
