"""Separation of two specs for any number of transactions: a proof, or else a bounded search."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from isolitmus.checker.search.separation import TABLE, same_format, search_shipped_scopes
from isolitmus.checker.search.separation import separate as bounded_separation
from isolitmus.checker.search.separation_result import Separation
from isolitmus.checker.search.space_searches import ABSTRACT
from isolitmus.checker.solver.refutation import Certificate
from isolitmus.checker.universes.exercised_names import Unexercised, always_empty
from isolitmus.model.budget import Budget
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.scope import LARGEST
from isolitmus.specs.files.catalogue import scope as named_scope
from isolitmus.specs.files.spec_catalogue import spec
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.checker.prove.arguments import Question
    from isolitmus.checker.prove.proof import ProofAttempt
    from isolitmus.model.format import Format
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike


def separate_unbounded(
    a: SpecLike,
    b: SpecLike,
    universe: Scope | NameOrPath | None = None,
    *,
    every_version_read: bool = False,
    transactions: Sequence[int] | None = None,
    certify: bool = False,
    budget: Budget | None = None,
    **search: Any,
) -> Separation:
    """Return a proof that no history over tables is admitted by ``a`` and forbidden by ``b``.

    The proof holds for any number of transactions. If no proof is found, the result is that of the
    bounded search; a search without a counterexample is then unknown.

    Parameters
    ----------
    a, b : Spec, str or path
        Specs, their names or their files.
    universe : Scope, str or path, optional
        Scope that is searched if there is no proof. Where statements are scans, it is also the
        scope whose keys the statements leave unchanged.
    every_version_read : bool
        Only histories in which some reader reads the whole table at every version; these are not
        searched.
    transactions : sequence of int, optional
        Numbers of transactions; the proof is then for at most the greatest of them, with arbitrary
        statements on a table.
    certify : bool
        Whether to keep the solver questions of a proof as ``certificate``.
    budget : Budget, optional
        Limit of the lemmas and the search together. Without a time limit, each lemma has SECONDS
        (of ``checker.prove.proof``).
    **search
        Further options of ``separate``.

    Raises
    ------
    IsolitmusError
        If a spec or an option does not apply to tables.

    Examples
    --------
    >>> answer = separate_unbounded("delta-serializable", "log-serializable")
    >>> number, _, scope = answer.bound.partition(", ")
    >>> answer.found, answer.proved, number
    (False, True, 'any number of transactions')
    >>> "with tracked reads only" in scope
    True
    >>> "set-from-subquery" in [test.litmus for test in answer.outside]
    True
    """
    from isolitmus.checker.prove.arguments import Question

    a, b = spec(a), spec(b)
    if universe == ABSTRACT:
        raise IsolitmusError(
            "--unbounded proves claims about tables, and search space 'abstract' has none; leave"
            " it out"
        )
    if search.get("unexplained"):
        raise IsolitmusError(
            "--unbounded proves what relations say, --unexplained asks for serial orders; leave"
            " out one"
        )
    if universe is not None:
        universe = named_scope(universe)
    for one in (a, b):
        lacking = sorted(one.needs & one.given.keys())
        if lacking:
            raise IsolitmusError(
                f"{one.name} needs {', '.join(lacking)}, which searches of tables do not have"
            )
    most = None if transactions is None else max(transactions)
    if most is not None and most > LARGEST:
        raise IsolitmusError(
            f"{count_of(most, 'transaction')} were asked for; --unbounded takes 1 to {LARGEST}, or"
            " any number without --transactions"
        )
    form = format_named(same_format(a, b))
    if form.unsearched:
        name = a.name if a.format == form.name else b.name
        raise IsolitmusError(f"{name} is of format {form.name}: {form.unsearched}")
    if form.carry_out is not None and every_version_read:
        raise IsolitmusError(
            f"--every-version-read is about versions of a log, which format {form.name} does not"
            " have; leave it out"
        )
    question = Question(a, b, most, every_version_read)
    budget = budget or Budget()
    if form.prove is not None:
        inside = universe or named_scope(form.universe)
        tried = form.prove(question, inside)
    else:
        inside = universe or named_scope(TABLE)
        tried = _of_tables(question, form, budget)
    proof = tried.proof
    if proof.holds or every_version_read:
        number = (
            "any number of transactions"
            if most is None
            else f"up to {count_of(most, 'transaction')}"
        )
        return Separation(
            a.name,
            b.name,
            tried.universe,
            found=False if proof.holds else None,
            bound=f"{number}, {tried.statements}",
            examined=0,
            seconds=proof.seconds,
            by="symbolic",
            assumptions=(*tried.assumed, *(_left_out(one) for one in (a, b) if one.silences)),
            proof=proof,
            outside=tried.outside() if proof.holds else (),
            certificate=_certificate(tried, number) if proof.holds and certify else None,
            unexercised=Unexercised(always_empty=always_empty(a, b)),
        )
    search |= {"transactions": transactions, "budget": budget}
    if universe is None and search.get("by") is None and form.prove is None and not certify:
        found = search_shipped_scopes(inside, a, b, **search)
    else:
        found = bounded_separation(a, b, inside, **search)
    return replace(
        found,
        found=found.found or None,
        searched=found.found is False,
        seconds=proof.seconds + found.seconds,
        proof=proof,
    )


def _left_out(spec: Spec) -> str:
    """Return the sentence that histories on which a spec is silent are no part of the claim."""
    names = ", ".join(silence.name for silence in spec.silences)
    return (
        f"histories on which {spec.name} is silent ({names}) are left out: it neither admits nor"
        " forbids them"
    )


def _certificate(tried: ProofAttempt, number: str) -> Certificate:
    """Return the certificate of a proof."""
    question, steps = tried.proof.question, tried.proof.steps
    refutations = tuple(step.refutation for step in steps if step.refutation is not None)
    if not refutations:
        raise IsolitmusError(
            f"a certificate is of what a solver refuted, and that {question.b.name} holds where"
            " scans emit each row once was seen by other means; leave out --certificate"
        )
    return Certificate(
        f"{question.a.name}-within-{question.b.name}",
        f"{question.a.name} admits nothing that {question.b.name} forbids: {number},"
        f" {tried.statements}",
        refutations,
        (
            "these lemmas give the claim: the induction is in checker/prove/arguments.py, in words",
            "the questions say what the texts below and the premises do",
            *tried.assumed,
        ),
        (question.a, question.b),
    )


def _of_tables(question: Question, form: Format, budget: Budget) -> ProofAttempt:
    """Return the attempt of a proof about tables, with its scope and premises."""
    from isolitmus.checker.prove.proof import (
        ProofAttempt,
        outside_tests,
        prove,
        scope_of_statements,
    )

    proof = prove(question, budget=budget)
    sentences = [premise.sentence for premise in proof.premises]
    # Without premises the claim follows from the texts, whatever a writer does.
    supposed = form.supposed(question.a) if sentences else ""
    return ProofAttempt(
        proof,
        TABLE,
        scope_of_statements(proof.premises),
        (*sentences, *filter(None, (supposed,))),
        lambda: outside_tests(question, proof.premises),
    )
