"""``isolitmus separate``: ask, and print the answer with its bound."""

from __future__ import annotations

from functools import partial
from math import inf
from typing import TYPE_CHECKING

from isolitmus.checker.separation import ABSTRACT, TABLE, separate_unbounded
from isolitmus.checker.separation import separate as ask
from isolitmus.checker.telling.draw import run_lines, timeline
from isolitmus.checker.telling.words import because, other_ways, serial_words
from isolitmus.cli.carrying import carry_found, refuse
from isolitmus.cli.output import named, print_json, progress, say, warn
from isolitmus.model.errors import IsolitmusError, near
from isolitmus.model.litmus import Litmus
from isolitmus.specs import scope, spec

if TYPE_CHECKING:
    from pathlib import Path

    from isolitmus.checker.proving.proof import Proof
    from isolitmus.checker.separation import By, Separation
    from isolitmus.model.litmus import HistoryTest

__all__ = ["separate", "sizes"]

RELATIONS = {
    "equal": "equal to",
    "stronger": "stronger than",
    "weaker": "weaker than",
    "incomparable": "incomparable with",
    "unknown": "in an unknown relation to",
}


def separate(
    a: str,
    b: str,
    *,
    both: bool,
    unexplained: bool,
    unbounded: bool,
    every_version_read: bool,
    universe: str | None,
    by: str | None,
    transactions: str | None,
    seconds: float | None,
    save: Path | None,
    engine: str | None,
    as_json: bool,
) -> int:
    """Exit status 1 if something was found, 3 if a time limit ended the search, else 0."""
    specs = spec(a), spec(b)
    carriers = [] if engine is None else named("engine", engine)
    refuse(carriers)
    if carriers and universe == ABSTRACT:
        raise IsolitmusError(
            "--engine carries out statements, which universe 'abstract' does not have; try --universe table"
        )
    if carriers and universe is None:
        universe = TABLE
    inside = None if universe is None else ABSTRACT if universe == ABSTRACT else scope(universe)
    way = _way(by)
    if seconds is not None and not 0 <= seconds < inf:
        raise IsolitmusError(f"--time is {seconds:g}; a number of seconds from 0 is wanted")
    if save is not None and not save.parent.is_dir():
        raise IsolitmusError(f"cannot write {save}: there is no folder {save.parent}")
    asked = None if transactions is None else sizes(transactions)
    if every_version_read and not unbounded:
        raise IsolitmusError("--every-version-read is a premise of proofs; add --unbounded")
    verb = partial(separate_unbounded, every_version_read=every_version_read) if unbounded else ask
    answers = []
    for first, second in [specs, specs[::-1]] if both else [specs]:
        with progress(f"separate {first.name} {second.name}") as tell:
            answers.append(
                verb(
                    first,
                    second,
                    inside,
                    by=way,
                    transactions=asked,
                    unexplained=unexplained,
                    seconds=seconds,
                    progress=lambda n, k: tell(f"{n} transactions, {k:,} examined"),
                )
            )
    if save is not None:
        _save(answers[0], save)
    relation = _relation(answers) if both else None
    if as_json:
        documents = [
            {**answer.to_json(), **_carried(answer, carriers, quiet=True)} for answer in answers
        ]
        if both:
            documents = [{**document, "relation": relation} for document in documents]
        print_json(documents if both else documents[0])
    else:
        for answer in answers:
            _print(answer)
            _carried(answer, carriers, quiet=False)
        if relation is not None:
            bound = "" if all(answer.proved for answer in answers) else ", within that bound"
            say(f"{specs[0].name} is {RELATIONS[relation]} {specs[1].name}{bound}.")
        assumed = dict.fromkeys(sentence for answer in answers for sentence in answer.assumptions)
        say("Assumed: " + "; ".join(assumed) + ".")
    if any(answer.found for answer in answers):
        return 1
    return 3 if any(answer.found is None for answer in answers) else 0


def _way(by: str | None) -> By | None:
    ways: dict[str, By] = {"symbolic": "symbolic", "exhaustive": "exhaustive"}
    if by is None or by in ways:
        return ways.get(by or "")
    raise IsolitmusError(f"--by is '{by}'{near(by, ways)}")


def sizes(text: str) -> range:
    """``N`` or ``N..M`` as the sizes to try."""
    low, dots, high = text.partition("..")
    try:
        first, last = int(low), int(high) if dots else int(low)
    except ValueError:
        raise IsolitmusError(
            f"--transactions is '{text}'; write N or N..M, for example 2..3"
        ) from None
    if not 1 <= first <= last:
        raise IsolitmusError(f"--transactions is '{text}'; write N or N..M, from 1 and ascending")
    return range(first, last + 1)


def _relation(answers: list[Separation]) -> str:
    """How the first spec stands to the second, as far as was searched."""
    match [answer.found for answer in answers]:
        case [False, False]:
            return "equal"
        case [False, True]:
            return "stronger"
        case [True, False]:
            return "weaker"
        case [True, True]:
            return "incomparable"
        case _:
            return "unknown"


def _save(answer: Separation, path: Path) -> None:
    if answer.litmus is None:
        warn(f"nothing was found, so {path} was not written")
        return
    try:
        path.write_text(answer.litmus.text, "utf-8")
    except OSError as error:
        raise IsolitmusError(f"cannot write {path}: {error.strerror}") from None


def _carried(answer: Separation, carriers: list[str], *, quiet: bool) -> dict[str, object]:
    """What was found carried out on the engines, and printed unless quiet: the runs for JSON."""
    if not carriers:
        return {}
    if not isinstance(answer.litmus, Litmus):
        return {"runs": []}
    done = carry_found([answer.litmus], carriers, quiet=quiet)
    if not quiet:
        say()
    return {"runs": done.documents[0]["runs"]}


def _print(answer: Separation) -> None:
    question = f"admitted by {answer.a}, forbidden by {answer.b}"
    if answer.unexplained:
        question += ", explained by no serial order"
    if answer.proof is not None:
        _print_proof(answer, answer.proof)
        if answer.proved or answer.proof.question.every_version_read:
            return
    if answer.litmus is None or answer.forbidden is None:
        verdict = "None" if answer.none else "Unknown"
        say(f"{verdict} {question}: {answer.bound}; {_effort(answer)}.")
        return
    say(f"{answer.transactions} transactions {question} ({answer.bound}; {_effort(answer)}).")
    say()
    if isinstance(answer.litmus, Litmus):
        for line in run_lines(answer.litmus):
            say(line)
        say()
        say(timeline(answer.litmus.schedule))
    else:
        _print_history(answer.litmus)
    say()
    for violation in answer.forbidden.violations:
        if violation.supposing:
            say(f"If {' and '.join(violation.supposing)}:")
        indent = "  " if violation.supposing else ""
        for line in because(violation):
            say(f"{indent}{line}")
    for line in other_ways(answer.forbidden):
        say(line)
    if answer.serial is not None:
        say(serial_words(answer.serial.orders, answer.serial.unexplained))


def _print_proof(answer: Separation, proof: Proof) -> None:
    for step in proof.steps:
        outcome = "" if step.outcome == "holds" else f"{step.outcome}: "
        say(f"  {step.lemma}: {outcome}{step.words} ({step.seconds:.1f} s)")
        for line in step.counterexample:
            say(f"    {line}")
    claim = f"{answer.a} admits nothing that {answer.b} forbids"
    if proof.holds:
        say(f"Proved: {claim}, with {answer.bound}.")
        return
    last = proof.steps[-1]
    how = "fails" if last.outcome == "fails" else "is unknown"
    say(f"Not proved: that {claim}; lemma {last.lemma} {how}.")


def _effort(answer: Separation) -> str:
    return f"{answer.effort} in {answer.seconds:.1f} s"


def _print_history(test: HistoryTest) -> None:
    for transaction in test.history.transactions:
        say(f"{transaction.name}  {transaction}")
    for session in test.history.sessions:
        if len(session) > 1:
            say(f"one session: {' '.join(f'T{number}' for number in session)}")
    for first, second in test.history.order:
        say(f"observed: {first} < {second}")
