"""The answer to ``separate`` in lines for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.render.text_pictures import run_lines, timeline
from isolitmus.checker.render.verdicts import because, in_a_view, other_ways, serial_words
from isolitmus.checker.universes.abstract import NAMES
from isolitmus.model.litmus import Litmus
from isolitmus.model.number import many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.checker.prove.proof import Proof
    from isolitmus.checker.search.separation_result import Separation
    from isolitmus.model.litmus import HistoryTest

__all__ = ["beside_lines", "separation_lines"]

NAMED = 40
"""So many litmus tests are named, more are counted; ``--json`` has them all."""


def separation_lines(answer: Separation) -> Iterator[str]:
    """What was found, why the one spec forbids it, and how far was searched; or the proof."""
    question = f"admitted by {answer.a}, forbidden by {answer.b}"
    if answer.unexplained:
        question += ", explained by no serial order"
    if answer.proof is not None:
        yield from _proof(answer, answer.proof)
        if answer.proved or answer.proof.question.every_version_read:
            return
    if answer.litmus is None or answer.forbidden is None:
        verdict = "None" if answer.none else "Unknown"
        yield f"{verdict} {question}: {answer.bound}; {_effort(answer)}."
        yield from beside_lines(answer)
        return
    yield (
        f"{many(answer.transactions or 0, 'transaction')} {question} ({answer.bound}; {_effort(answer)})."
    )
    yield ""
    if isinstance(answer.litmus, Litmus):
        yield from run_lines(answer.litmus)
        yield ""
        yield from timeline(answer.litmus.schedule).split("\n")
    else:
        yield from _history(answer.litmus)
    yield ""
    for violation in answer.forbidden.violations:
        if violation.supposing:
            yield f"If {' and '.join(map(str, violation.supposing))}:"
        indent = "  " if violation.supposing else ""
        for line in because(violation):
            yield f"{indent}{line}"
    yield from other_ways(answer.forbidden)
    if answer.serial is not None:
        yield serial_words(answer.serial.orders, answer.serial.unexplained)
    beside = answer.explained
    if beside is not None and beside.reads:
        yield in_a_view(beside)


def beside_lines(answer: Separation) -> Iterator[str]:
    """Return the lines about the catalogue's test, which is no part of the answer."""
    if answer.beside is None:
        return
    test = answer.beside
    yield (
        f"Outside of that search, {answer.a} admits and {answer.b} forbids {test.test.name} of the catalogue"
        f" ({many(test.transactions, 'transaction')}):"
    )
    for line in because(test.forbidden.violations[0]):
        yield f"  {line}"


def _proof(answer: Separation, proof: Proof) -> Iterator[str]:
    for step in proof.steps:
        outcome = "" if step.outcome == "holds" else f"{step.outcome}: "
        yield f"  {step.lemma}: {outcome}{step.words} ({step.seconds:.1f} s)"
        for line in step.counterexample:
            yield f"    {line}"
    claim = f"{answer.a} admits nothing that {answer.b} forbids"
    if proof.holds:
        number, _, statements = answer.bound.partition(", ")
        yield (
            f"Proved in universe '{answer.universe}', for any {statements}: {claim}, with {number}."
        )
        if (proof.question.a.needs | proof.question.b.needs) <= NAMES:
            yield "Of universe 'abstract', which is asked without --unbounded, that says nothing."
        yield from _outside(answer)
        return
    last = proof.steps[-1]
    how = "fails" if last.outcome == "fails" else "is unknown"
    yield f"Not proved: that {claim}; lemma {last.lemma} {how}."


def _outside(answer: Separation) -> Iterator[str]:
    """The litmus tests that a theorem does not speak of; those where its claim fails by what is wrong."""
    failing: dict[str, list[str]] = {}
    for test in answer.outside:
        if test.fails:
            failing.setdefault(", ".join(test.why), []).append(test.litmus)
    if failing:
        yield "The claim fails in these litmus tests, which are outside of that:"
        yield from (f"  {', '.join(names)}: {why}" for why, names in failing.items())
    holding = [test.litmus for test in answer.outside if not test.fails]
    if holding:
        few = ": " + ", ".join(holding) if len(holding) <= NAMED else ""
        yield f"It holds in {many(len(holding), 'other litmus test')} outside of that{few}."


def _effort(answer: Separation) -> str:
    comma = "," if answer.found is None else ""
    return f"{answer.effort}{comma} in {answer.seconds:.1f} s"


def _history(test: HistoryTest) -> Iterator[str]:
    for transaction in test.history.transactions:
        yield f"{transaction.name}  {transaction}"
    for transaction in test.history.transactions:
        if transaction.status != "committed":
            yield f"{transaction.status}: {transaction.name}"
    for session in test.history.sessions:
        if len(session) > 1:
            yield f"one session: {' '.join(f'T{number}' for number in session)}"
    for first, second in test.history.order:
        yield f"observed: {first} < {second}"
    if test.history.schedule:
        yield f"in time: {test.history.to_table()['schedule']}"
    for name, members in test.history.sets:
        yield f"{name}: {' '.join(f'T{number}' for number in members) or 'nobody'}"
