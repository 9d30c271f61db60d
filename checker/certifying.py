"""Certificates: what a solver refuted, in files that any other solver reads.

Of a search of abstract histories, for each number of transactions: the clauses that no history satisfies, in DIMACS, and
a refutation by another solver than the one that searched (Glucose), step by step as in DRAT, which a checker of proofs
follows. Of a proof, for each lemma: its denial with what it was refuted from, in SMT-LIB.

What they show is that these clauses and formulas cannot be satisfied. That the clauses say what "admitted by A and forbidden
by B" says, and the formulas what the lemma's words say, is this program's: trusted, and tested by enumeration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.model.number import many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.checker.answer import Separation
    from isolitmus.checker.reading.gates import Gates

__all__ = ["Certificate", "of_proof", "of_search"]


@dataclass(frozen=True, slots=True)
class Certificate:
    """One file of a certificate."""

    name: str
    """How it is called."""
    text: str
    """What it holds."""


def of_search(a: str, b: str, n: int, gates: Gates) -> Iterator[Certificate]:
    """The clauses of the histories of n transactions that ``a`` admits and ``b`` forbids, which nothing satisfies, and
    how they are refuted.
    """
    from pysat.solvers import Solver

    about = f"{many(n, 'transaction')} admitted by {a}, forbidden by {b}, in universe 'abstract'"
    lines = [f"c {about}", "c to be refuted: unsatisfiable"]
    lines.append(f"p cnf {gates.variables} {len(gates.clauses)}")
    lines += [" ".join(map(str, clause)) + " 0" for clause in gates.clauses]
    name = f"{a}-{b}-{n}"
    yield Certificate(f"{name}.cnf", "\n".join(lines) + "\n")
    with Solver("glucose4", bootstrap_with=map(list, gates.clauses), with_proof=True) as solver:
        assert not solver.solve(), f"two solvers disagree on {about}"
        steps = solver.get_proof()
    yield Certificate(f"{name}.drat", "\n".join(steps or ["0"]) + "\n")


def of_proof(answer: Separation) -> Iterator[Certificate]:
    """What the lemmas of a proof were refuted from; nothing if it is none."""
    if answer.proof is None or not answer.proved:
        return
    for k, step in enumerate(answer.proof.steps, 1):
        about = f"; {step.lemma}: {step.words}\n; to be refuted: unsat\n"
        yield Certificate(f"{answer.a}-{answer.b}-{k:03}.smt2", about + step.refuted)
