"""Boolean circuits as clauses, and Z3 as the solver behind them.

A literal is a non-zero integer, negative if negated, as in DIMACS. Gates fold constants and are
hashed: the same conjunction asked for twice is the same literal.

This is the one module that knows Z3, which has no types. The circuits are propositional, so Z3's
solver for finite domains gets them as DIMACS text, which it reads many times faster than terms from
Python.
"""

from __future__ import annotations

import signal
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from isolitmus.model.budget import Budget
from isolitmus.model.errors import Limit, MemoryLimit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Gates", "Model", "Solver", "ask_solver"]


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


class Model:
    """Assignment of the variables, read on demand through Z3's C interface, which is faster."""

    def __init__(self, solver: Solver) -> None:
        self._model = solver.z3.model()
        self._solver = solver

    def __getitem__(self, literal: int) -> bool:
        if abs(literal) == 1:
            return literal == 1
        core, context = self._solver.core, self._solver.context
        declaration = self._solver.declaration(abs(literal))
        value = core.Z3_model_get_const_interp(context, self._model.model, declaration)
        true = bool(value) and core.Z3_get_bool_value(context, value) == core.Z3_L_TRUE
        return true == (literal > 0)


class Solver:
    """Incremental solver that follows the clauses of some gates.

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
        import z3

        self.z3: Any = z3.SolverFor("QF_FD")
        self.core: Any = z3.z3core
        self.context: Any = self.z3.ctx.ref()
        self._gates = gates
        self._loaded = 0
        self._budget = budget or Budget()
        self._api: Any = z3
        self._literals: dict[int, Any] = {}
        self._declarations: dict[int, Any] = {}

    def check(self, assumptions: Sequence[int] = ()) -> Model | None:
        """Return a model in which the assumptions hold, or None if there is none."""
        self._load()
        said = ask_solver(self.z3, [*map(self._literal, assumptions)], self._budget)
        if said == "unknown":
            raise Limit(f"the solver gave up: {self.z3.reason_unknown()}")
        return Model(self) if said == "sat" else None

    def declaration(self, variable: int) -> Any:
        """Return Z3's declaration of a variable."""
        if variable not in self._declarations:
            self._declarations[variable] = self._literal(variable).decl().ast
        return self._declarations[variable]

    def _literal(self, literal: int) -> Any:
        """Return a literal as a Z3 expression, created once."""
        if literal not in self._literals:
            variable = self._api.Bool(abs(literal))
            self._literals[literal] = variable if literal > 0 else self._api.Not(variable)
        return self._literals[literal]

    def _load(self) -> None:
        """Add the clauses that are new since the last call, as DIMACS text."""
        new = self._gates.clauses[self._loaded :]
        if not new:
            return
        self._loaded += len(new)
        lines = [f"p cnf {self._gates.variables} {len(new)}"]
        lines += [" ".join(map(str, clause)) + " 0" for clause in new]
        self.z3.from_string("\n".join(lines) + "\n")
