"""Refutations and certificates: unsatisfiable questions as files that other programs can check."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from isolitmus.model.errors import Disagreement, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from isolitmus.checker.solver.circuits import Gates
    from isolitmus.model.spec import Spec


@dataclass(frozen=True, eq=False)
class Refutation:
    """Question without an answer, with its meaning and a proof.

    Examples
    --------
    >>> from isolitmus.checker.solver.circuits import Gates
    >>> gates = Gates()
    >>> a = gates.new()
    >>> gates.add(a), gates.add(-a)
    (None, None)
    >>> one = refute_clauses("contradiction", "a is not both", gates)
    >>> [name for name, text in one.files()], one.checked
    (['contradiction.cnf', 'contradiction.drat'], 'drat-trim contradiction.cnf contradiction.drat')
    """

    name: str
    """Base name of its files."""
    says: str
    """Meaning of the fact that there is no answer."""
    form: Literal["cnf", "smt2"]
    """Language: clauses in DIMACS with a proof in DRAT, or SMT-LIB."""
    _texts: Callable[[], tuple[str, ...]]

    @property
    def text(self) -> str:
        """Text of the question."""
        return self._texts()[0]

    @property
    def checked(self) -> str:
        """Command that checks it independently."""
        if self.form == "cnf":
            return f"drat-trim {self.name}.cnf {self.name}.drat"
        return f"cvc5 --full-saturate-quant {self.name}.smt2"

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield name and text of the question and, for clauses, of the proof.

        Raises
        ------
        Disagreement
            If a second solver, which is to prove it, finds an answer.
        """
        mark = "c" if self.form == "cnf" else ";"
        question, *proof = self._texts()
        yield f"{self.name}.{self.form}", f"{mark} {self.says}\n{question}"
        for text in proof:
            yield f"{self.name}.drat", text


def refute_clauses(
    name: str, says: str, gates: Gates, apart: Mapping[tuple[int, ...], str] | None = None
) -> Refutation:
    """Return the refutation of the current clauses of some gates.

    A solver must have found them, with ``apart``, unsatisfiable.

    Parameters
    ----------
    name : str
        Base name of the files.
    says : str
        Meaning of the refutation.
    gates : Gates
        Circuit with the clauses.
    apart : mapping of clause to str, optional
        Additional clauses that exclude known models, each with a description.
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
    """Return the clauses in DIMACS and a proof in DRAT.

    The proof is by Glucose. Z3, which shares no code with the solver that searched, agrees.
    """
    import z3
    from pysat.solvers import Solver

    lines = [f"p cnf {variables} {len(clauses)}"]
    lines += [f"{' '.join(map(str, clause))} 0" for clause in clauses]
    text = "\n".join(lines) + "\n"
    other: Any = z3.SolverFor("QF_FD")
    other.from_string(text)
    with Solver(name="glucose4", bootstrap_with=clauses, with_proof=True) as solver:
        if solver.solve() or str(other.check()) != "unsat":
            raise Disagreement(f"{name}: one solver finds no model of the clauses, another has one")
        proof = solver.get_proof()
    left_out = "".join(f"c left out: {printable(said)}\n" for said in words.values())
    return left_out + text, "\n".join(proof) + "\n"


CHECKS = {
    "cnf": (
        "A file that ends in .cnf has clauses (DIMACS) that no assignment makes true, the .drat"
        " beside it the proof: a checker of DRAT proofs says so, for example"
    ),
    "smt2": (
        "A file that ends in .smt2 is a question in SMT-LIB: any solver for quantifiers has to"
        " answer unsat, for example"
    ),
}


@dataclass(frozen=True, slots=True)
class Certificate:
    """Claim, the refutations that prove it, and what must be trusted besides."""

    name: str
    """Name of its folder."""
    claim: str
    """Claim, as a sentence."""
    refutations: tuple[Refutation, ...]
    """Refutations that prove it."""
    trusted: tuple[str, ...]
    """Premises that no other program can check from the files, a clause each."""
    specs: tuple[Spec, ...] = ()
    """Specs that the claim is about."""

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield name and text of each file of the folder; README.md explains the others."""
        yield "README.md", "\n".join(self._readme()) + "\n"
        for one in self.refutations:
            yield from one.files()

    def _readme(self) -> Iterator[str]:
        """Yield the lines of the README: claim, questions, checks, trusted parts and specs."""
        yield f"# {printable(self.name)}"
        yield ""
        yield f"{printable(self.claim)}."
        yield ""
        yield "| question | that it has no answer says |"
        yield "|---|---|"
        yield from (f"| {one.name}.{one.form} | {one.says} |" for one in self.refutations)
        for form, words in CHECKS.items():
            first = next((one for one in self.refutations if one.form == form), None)
            if first is not None:
                yield from ("", f"{words}:", "", f"    {first.checked}")
        yield from ("", "Beside these files it is to be trusted that")
        yield ""
        yield from (f"- {clause}" for clause in self.trusted)
        for spec in self.specs:
            fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", spec.text)), 0)
            yield from (
                "",
                f"## {printable(spec.name)}",
                "",
                f"{fence}cat",
                spec.text.rstrip("\n"),
                fence,
            )
