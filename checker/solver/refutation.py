"""Questions that a solver found to have no answer, as texts that other programs can see through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from isolitmus.model.errors import Disagreement, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from isolitmus.checker.solver.circuits import Gates

__all__ = ["Refutation", "refuted_clauses"]


@dataclass(frozen=True, eq=False)
class Refutation:
    """A question without an answer, and what that says.

    >>> from isolitmus.checker.solver.circuits import Gates
    >>> gates = Gates()
    >>> a = gates.new()
    >>> gates.add(a), gates.add(-a)
    (None, None)
    >>> one = refuted_clauses("contradiction", "a is not both", gates)
    >>> [name for name, text in one.files()], one.checked
    (['contradiction.cnf', 'contradiction.drat'], 'drat-trim contradiction.cnf contradiction.drat')
    """

    name: str
    """Of its files."""
    says: str
    """What it says that there is no answer."""
    form: Literal["cnf", "smt2"]
    """The language: clauses in DIMACS, with a proof in DRAT, or SMT-LIB."""
    _texts: Callable[[], tuple[str, ...]]

    @property
    def text(self) -> str:
        """The question."""
        return self._texts()[0]

    @property
    def checked(self) -> str:
        """A command that looks at it anew."""
        if self.form == "cnf":
            return f"drat-trim {self.name}.cnf {self.name}.drat"
        return f"cvc5 --full-saturate-quant {self.name}.smt2"

    def files(self) -> Iterator[tuple[str, str]]:
        """The question and, of clauses, the proof: a name and a text each. Disagreement if a second solver, which
        is to prove it, finds an answer.
        """
        mark = "c" if self.form == "cnf" else ";"
        question, *proof = self._texts()
        yield f"{self.name}.{self.form}", f"{mark} {self.says}\n{question}"
        for text in proof:
            yield f"{self.name}.drat", text


def refuted_clauses(
    name: str, says: str, gates: Gates, apart: Mapping[tuple[int, ...], str] | None = None
) -> Refutation:
    """The clauses of gates as they are now, of which a solver says that no model has them, but for those that are
    left out by a clause each, ``apart``, with what it is.
    """
    variables, clauses = gates.variables, tuple(gates.clauses)
    return Refutation(
        name, says, "cnf", lambda: _proved(name, variables, (*clauses, *(apart or {})), apart or {})
    )


def _proved(
    name: str,
    variables: int,
    clauses: tuple[tuple[int, ...], ...],
    words: Mapping[tuple[int, ...], str],
) -> tuple[str, str]:
    """The clauses in DIMACS and a proof in DRAT, by a solver that is not the one which said so."""
    from pysat.solvers import Solver

    with Solver(name="glucose4", bootstrap_with=clauses, with_proof=True) as solver:
        if solver.solve():
            raise Disagreement(f"{name}: one solver finds no model of the clauses, another has one")
        proof = solver.get_proof()
    lines = [
        *(f"c left out: {printable(said)}" for said in words.values()),
        f"p cnf {variables} {len(clauses)}",
    ]
    lines += [f"{' '.join(map(str, clause))} 0" for clause in clauses]
    return "\n".join(lines) + "\n", "\n".join(proof) + "\n"
