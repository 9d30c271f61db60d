"""Certificates: what a solver has refuted, written out for programs that are not ours to look at anew."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.model.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.checker.solver.refutation import Refutation
    from isolitmus.model.spec import Spec

__all__ = ["Certificate"]

CHECKS = {
    "cnf": (
        "A file that ends in .cnf has clauses (DIMACS) that no assignment makes true, the .drat beside it the"
        " proof: a checker of DRAT proofs says so, for example"
    ),
    "smt2": (
        "A file that ends in .smt2 is a question in SMT-LIB: any solver for quantifiers has to answer unsat, for"
        " example"
    ),
}


@dataclass(frozen=True, slots=True)
class Certificate:
    """A claim, the questions by whose having no answer it holds, and what there is to trust besides."""

    name: str
    """Of its folder."""
    claim: str
    """What holds, in a sentence."""
    refutations: tuple[Refutation, ...]
    """The questions."""
    trusted: tuple[str, ...]
    """What no other program sees from the files, a clause each."""
    specs: tuple[Spec, ...] = ()
    """Whose texts the claim is about."""

    def files(self) -> Iterator[tuple[str, str]]:
        """All files of the folder, a name and a text each; README.md says what the others mean."""
        yield "README.md", "\n".join(self._readme()) + "\n"
        for one in self.refutations:
            yield from one.files()

    def _readme(self) -> Iterator[str]:
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
