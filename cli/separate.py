"""``isolitmus separate``: ask, and print the answer with its bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.draw import timeline
from isolitmus.checker.separation import ASSUMPTIONS
from isolitmus.checker.separation import separate as ask
from isolitmus.checker.words import because, serial_words
from isolitmus.cli.output import print_json, progress, say
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs import scope, spec
from isolitmus.specs.scope_file import LARGEST

if TYPE_CHECKING:
    from pathlib import Path

    from isolitmus.checker.separation import Separation

__all__ = ["separate"]

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
    universe: str,
    transactions: str | None,
    seconds: float | None,
    save: Path | None,
    as_json: bool,
) -> int:
    """Exit status 1 if something was found, 3 if a time limit ended the search, else 0."""
    specs = spec(a), spec(b)
    inside = scope(universe)
    sizes = None if transactions is None else _sizes(transactions)
    answers = []
    for first, second in [specs, specs[::-1]] if both else [specs]:
        with progress(f"separate {first.name} {second.name}") as tell:
            answers.append(
                ask(
                    first,
                    second,
                    inside,
                    transactions=sizes,
                    unexplained=unexplained,
                    seconds=seconds,
                    progress=lambda n, k: tell(f"{n} transactions, {k:,} candidates"),
                )
            )
    relation = _relation(answers) if both else None
    if save is not None:
        _save(answers[0], save)
    if as_json:
        documents = [answer.to_json() for answer in answers]
        if both:
            documents = [{**document, "relation": relation} for document in documents]
        print_json(documents if both else documents[0])
    else:
        for answer in answers:
            _print(answer)
        if relation is not None:
            say(f"{specs[0].name} is {RELATIONS[relation]} {specs[1].name}, within that bound.")
        say("Assumed: " + "; ".join(ASSUMPTIONS) + ".")
    if any(answer.found for answer in answers):
        return 1
    return 3 if any(answer.found is None for answer in answers) else 0


def _sizes(text: str) -> range:
    """``N`` or ``N..M`` as the sizes to try."""
    low, dots, high = text.partition("..")
    try:
        first, last = int(low), int(high) if dots else int(low)
    except ValueError:
        raise IsolitmusError(
            f"--transactions is '{text}'; write N or N..M, for example 2..3"
        ) from None
    if not 1 <= first <= last <= LARGEST:
        raise IsolitmusError(f"--transactions is '{text}'; 1 to {LARGEST} can be searched")
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
        raise IsolitmusError(f"nothing was found, so there is nothing to save in {path}")
    try:
        path.write_text(answer.litmus.text, "utf-8")
    except OSError as error:
        raise IsolitmusError(f"cannot write {path}: {error.strerror}") from None


def _print(answer: Separation) -> None:
    question = f"admitted by {answer.a}, forbidden by {answer.b}"
    if answer.unexplained:
        question += ", explained by no serial order"
    if answer.litmus is None or answer.violation is None or answer.serial is None:
        verdict = "None" if answer.found is False else "Unknown"
        say(
            f"{verdict} {question}: {answer.bound}; {answer.examined:,} candidates examined in {answer.seconds:.1f} s."
        )
        return
    say(
        f"{answer.transactions} transactions {question} ({answer.bound}; {answer.examined:,} candidates examined in {answer.seconds:.1f} s)."
    )
    say()
    for schema in answer.litmus.tables.values():
        partitioned = (
            f", partitioned by {', '.join(schema.partitioned_by)}" if schema.partitioned_by else ""
        )
        say(f"{schema.name}({schema.ddl()}){partitioned}")
    for statement in answer.litmus.init:
        say(f"  {statement.sql}")
    say()
    width = max(map(len, answer.litmus.transactions))
    for name, statement in answer.litmus.transactions.items():
        say(f"{name:<{width}}  {statement.sql}")
    say()
    say(timeline(answer.litmus.schedule))
    say()
    for line in because(answer.violation):
        say(line)
    say(serial_words(answer.serial.orders, answer.serial.unexplained))
