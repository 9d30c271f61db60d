"""Certificates of the inclusions that ``compare`` shows: solver questions without a solution.

A proof from the laws of histories, or by a theorem on tables, consists of SMT-LIB questions. A
bounded search consists of clauses with a refutation. A comparison of regular languages and an
enumeration have no certificate; the result says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from isolitmus.checker.prove.history_proof import derive_inclusion
from isolitmus.checker.search.lattice import BY_TEXT
from isolitmus.checker.search.separation import separate
from isolitmus.checker.search.space_searches import ABSTRACT
from isolitmus.checker.search.unbounded_separation import separate_unbounded
from isolitmus.checker.solver.refutation import Certificate
from isolitmus.checker.universes.abstract import uses_versions
from isolitmus.model.budget import Budget
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs.files.catalogue import scope as named_scope
from isolitmus.specs.files.spec_catalogue import spec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.checker.search.lattice import Inclusion, Lattice, Lattices
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec
    from isolitmus.specs.files.spec_catalogue import SpecLike

TRUSTED = (
    (
        "the laws in the questions hold in the frame of every history; the tests look for"
        " counterexamples"
    ),
    (
        "what the axioms below say of a frame, and from what each follows, is as"
        " checker/prove/history_proof.py has it, in words"
    ),
)


@dataclass(frozen=True, slots=True)
class CertifiedLattice:
    """Certificates of the inclusions of a comparison, and the inclusions without one."""

    certificates: tuple[Certificate, ...]
    """Certificates, each of which is written to a folder."""
    without: tuple[str, ...]
    """Sentence for each inclusion without a certificate."""

    @property
    def readme(self) -> str:
        """Index of the folders in Markdown."""
        lines = ["# Implications", "", "| folder | what holds |", "|---|---|"]
        lines += [
            f"| [{one.name}]({one.name}/README.md) | {one.claim} |" for one in self.certificates
        ]
        if self.without:
            lines += [
                "",
                "These have no certificate:",
                "",
                *(f"- {words}" for words in self.without),
            ]
        return "\n".join(lines) + "\n"


def certify_lattice(
    found: Lattices,
    specs: Sequence[SpecLike],
    universe: Scope | None = None,
    budget: Budget | None = None,
) -> CertifiedLattice:
    """Return the certificates of all inclusions between neighbours and between equal specs.

    Parameters
    ----------
    found : Lattices
        Result of ``compare``.
    specs : sequence of Spec, str or path
        The specs that were compared.
    universe : Scope, optional
        Scope over tables that was searched, if not the default one.
    budget : Budget, optional
        Limit of time and memory.

    Examples
    --------
    >>> from isolitmus.checker import compare
    >>> from isolitmus.specs import level
    >>> two = [level("serializable"), level("serializable-crooks")]
    >>> [one.name for one in certify_lattice(compare(two, "abstract"), two).certificates]
    ['serializable-within-serializable-crooks']
    """
    by_name = {one.name: one for one in map(spec, specs)}
    certificates: list[Certificate] = []
    without: list[str] = []
    for lattice in found.lattices:
        inside = universe if universe is not None and universe.name == lattice.universe else None
        for one in _shown(lattice):
            specs_of = by_name[one.a], by_name[one.b]
            made = _certificate(lattice, one, specs_of, inside, budget or Budget())
            if isinstance(made, str):
                without.append(
                    f"{one.a} implies {one.b} in search space '{lattice.universe}': {made}"
                )
            else:
                alone = lattice.universe == ABSTRACT
                name = made.name if alone else f"{made.name}-in-{lattice.universe}"
                certificates.append(replace(made, name=name))
    return CertifiedLattice(tuple(certificates), tuple(without))


def _shown(lattice: Lattice) -> Iterator[Inclusion]:
    """Yield the inclusions between neighbours, and a cycle through each class of equal specs."""
    focus = {*lattice.focus}
    for node in lattice.nodes:
        if len(node) > 1 and (not focus or focus & {*node}):
            for pair in (*pairwise(node), (node[-1], node[0])):
                yield lattice.inclusions[pair]
    for edge in lattice.edges:
        if not focus or focus & {*edge.stronger, *edge.weaker}:
            yield edge.forward


def _certificate(
    lattice: Lattice,
    one: Inclusion,
    specs: tuple[Spec, Spec],
    inside: Scope | None,
    budget: Budget,
) -> Certificate | str:
    """Return the certificate of an inclusion, or the reason why there is none."""
    a, b = specs
    if one.holds is None:
        return f"it is unknown: {one.bound}"
    if one.proof.startswith(BY_TEXT):
        return _by_texts(a, b, one, budget, of_histories=lattice.universe == ABSTRACT)
    if one.proof:
        answer = separate_unbounded(a, b, inside, certify=True, budget=budget)
        return answer.certificate or f"it was not proved again within the limits: {answer.bound}"
    return _searched(lattice, specs, one, inside, budget)


def _by_texts(
    a: Spec, b: Spec, one: Inclusion, budget: Budget, *, of_histories: bool
) -> Certificate | str:
    """Return the certificate of a derivation from the laws, or the reason that there is none."""
    derived = derive_inclusion(a, b, budget) if of_histories else None
    if derived is None:
        return (
            f"proved {one.proof}; what a comparison of regular languages shows"
            " (checker/prove/structural_implication.py), and what follows step by step, no other"
            " program looks at"
        )
    claim = (
        f"{a.name} admits nothing that {b.name} forbids: any number of transactions, in any history"
    )
    return Certificate(f"{a.name}-within-{b.name}", claim, derived.steps, TRUSTED, (a, b))


def _searched(
    lattice: Lattice, specs: tuple[Spec, Spec], one: Inclusion, inside: Scope | None, budget: Budget
) -> Certificate | str:
    """Return the solver's refutations, with version orders open and, if they matter, observed."""
    a, b = specs
    where = ABSTRACT if lattice.universe == ABSTRACT else inside or named_scope(lattice.universe)
    looks = where == ABSTRACT and (uses_versions(a) or uses_versions(b))
    parts: list[Certificate] = []
    try:
        for observed in (False, True) if looks else (False,):
            answer = separate(
                a, b, where, transactions=lattice.sizes, observed=observed,
                shipped=False, certify=True, exercise=False, budget=budget,
            )  # fmt: skip
            if answer.certificate is None:
                return f"it was not refuted again within the limits: {answer.bound}"
            parts.append(answer.certificate)
    except IsolitmusError as error:
        return f"no counterexample with {one.bound}; {error}"
    first, *more = parts
    steps = [*first.refutations]
    for part in more:
        steps += (replace(each, name=f"observed-{each.name}") for each in part.refutations)
    trusted = dict.fromkeys(clause for part in parts for clause in part.trusted)
    return replace(first, refutations=tuple(steps), trusted=tuple(trusted))
