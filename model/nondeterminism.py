"""What is supposed where nobody can compute what is so, while one way after another is tried.

Who comes to such a place asks a question, with all answers that there are. Where nothing is tried it is undetermined
at once. ``enumerate_choices`` tries all: it begins anew for each answer to the first question that has none yet.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from isolitmus.model.errors import UndeterminedError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from isolitmus.model.sql.values import Value

__all__ = ["MOST_TRIES", "OpenQuestion", "asked_by", "choose", "enumerate_choices"]

Done = TypeVar("Done")
MOST_TRIES = 2_000
"""So often it is begun anew."""


@dataclass(slots=True)
class _Supposed:
    """The answers that are tried, by who asks and what, and who asks next."""

    answers: dict[Hashable, Value]
    who: str = ""


_TRIED: ContextVar[_Supposed | None] = ContextVar("_TRIED", default=None)


class OpenQuestion(UndeterminedError):
    """A question that has no answer yet, and its answers."""

    def __init__(self, text: str, question: Hashable, answers: tuple[Value, ...]) -> None:
        super().__init__(text)
        self.question, self.answers = question, answers


def asked_by(who: str) -> None:
    """From here on it is this transaction whose statement and commit raise questions."""
    tried = _TRIED.get()
    if tried is not None:
        tried.who = who


def choose(question: Hashable, answers: tuple[Value, ...], why: str) -> Value:
    """The answer that is tried; one question of one transaction has one answer. UndeterminedError with ``why``
    if none is.
    """
    tried = _TRIED.get()
    if tried is None:
        raise UndeterminedError(why)
    key = tried.who, question
    if key not in tried.answers:
        raise OpenQuestion(why, key, answers)
    return tried.answers[key]


def enumerate_choices(once: Callable[[], Done], most: int = MOST_TRIES) -> Iterator[Done]:
    """What comes out with every answer to every question; UndeterminedError where that is begun more than ``most``
    times, or where one way is undetermined for another reason.

    >>> list(enumerate_choices(lambda: [choose(k, (True, False), "who knows") for k in "ab"]))
    [[True, True], [True, False], [False, True], [False, False]]
    """
    left: list[dict[Hashable, Value]] = [{}]
    tries = 0
    while left:
        answers = left.pop()
        tries += 1
        before = _TRIED.set(_Supposed(answers))
        try:
            done = once()
        except OpenQuestion as open_:
            if tries >= most:
                raise UndeterminedError(
                    f"{open_.problem}, and what may come of it was tried {most:,} times, which were not all"
                ) from None
            left += [{**answers, open_.question: each} for each in reversed(open_.answers)]
            continue
        finally:
            _TRIED.reset(before)
        yield done
