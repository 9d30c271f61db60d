"""Choices where nobody can compute what is so: one answer after another is tried.

Who comes to such a place has ``TriedAnswers`` at hand and asks a question, with all answers that
there are; without choices it is undetermined at once. ``enumerate_choices`` tries all: it begins
anew for each answer to the first question that has none yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from isolitmus.model.errors import UndeterminedError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping

    from isolitmus.model.sql.values import Value

__all__ = ["MOST_TRIES", "OpenQuestion", "TriedAnswers", "choose", "enumerate_choices"]

Done = TypeVar("Done")
MOST_TRIES = 2_000
"""So often it is begun anew."""


class OpenQuestion(UndeterminedError):
    """A question that has no answer yet, and its answers."""

    def __init__(self, text: str, question: Hashable, answers: tuple[Value, ...]) -> None:
        super().__init__(text)
        self.question, self.answers = question, answers


@dataclass(frozen=True, slots=True, eq=False)
class TriedAnswers:
    """The answers that are tried, by who asks and what; ``who`` asks next."""

    tried: Mapping[Hashable, Value]
    who: str = ""

    def of(self, who: str) -> TriedAnswers:
        """The same, where it is this transaction whose statement and commit raise questions."""
        return TriedAnswers(self.tried, who)


def choose(
    choices: TriedAnswers | None, question: Hashable, answers: tuple[Value, ...], why: str
) -> Value:
    """The answer that is tried; one question of one transaction has one answer. UndeterminedError
    with ``why`` if there are no choices.
    """
    if choices is None:
        raise UndeterminedError(why)
    key = choices.who, question
    if key not in choices.tried:
        raise OpenQuestion(why, key, answers)
    return choices.tried[key]


def enumerate_choices(
    once: Callable[[TriedAnswers], Done], most: int = MOST_TRIES
) -> Iterator[Done]:
    """What comes out with every answer to every question; UndeterminedError where that is begun
    more than ``most`` times, or where one way is undetermined for another reason.

    >>> list(enumerate_choices(lambda choices: [choose(choices, k, (True, False), "who knows") for k in "ab"]))
    [[True, True], [True, False], [False, True], [False, False]]
    """
    left: list[dict[Hashable, Value]] = [{}]
    tries = 0
    while left:
        answers = left.pop()
        tries += 1
        try:
            done = once(TriedAnswers(answers))
        except OpenQuestion as open_:
            if tries >= most:
                raise UndeterminedError(
                    f"{open_.problem}, and what may come of it was tried {most:,} times, which were"
                    " not all"
                ) from None
            left += [{**answers, open_.question: each} for each in reversed(open_.answers)]
            continue
        yield done
