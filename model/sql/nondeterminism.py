"""Nondeterministic choice: all answers to questions that the model cannot compute are tried in
turn.

Code that reaches such a question calls ``choose`` with all possible answers; without
``TriedAnswers`` the result is undetermined. ``enumerate_choices`` tries all answers: for each
answer to the first open question, it runs the computation again from the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from isolitmus.model.errors import UndeterminedError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping

    from isolitmus.model.sql.values import Value

Done = TypeVar("Done")
MOST_TRIES = 2_000
"""Maximum number of runs."""


class OpenQuestion(UndeterminedError):
    """Question that has no answer yet, with its possible answers."""

    def __init__(self, text: str, question: Hashable, answers: tuple[Value, ...]) -> None:
        super().__init__(text)
        self.question, self.answers = question, answers


@dataclass(frozen=True, slots=True, eq=False)
class TriedAnswers:
    """Answers that are tried, by asking transaction and question; ``who`` is the next to ask."""

    tried: Mapping[Hashable, Value]
    who: str = ""
    rows_matter: bool = False
    """True if only rows matter: a question that changes none has its first answer, and others have
    none.
    """

    def of(self, who: str) -> TriedAnswers:
        """Return these answers with `who` as the transaction that asks."""
        return TriedAnswers(self.tried, who, self.rows_matter)


ABOUT_ROWS = TriedAnswers({}, rows_matter=True)
"""Answers where the outcome of each transaction is known, and only its rows are computed."""


def choose(
    choices: TriedAnswers | None,
    question: Hashable,
    answers: tuple[Value, ...],
    why: str,
    *,
    changes_rows: bool = True,
) -> Value:
    """Return the answer that is tried; a question of one transaction has one answer.

    Parameters
    ----------
    choices : TriedAnswers or None
        Answers that are tried.
    question : hashable
        Identity of the question.
    answers : tuple
        All possible answers.
    why : str
        Description of what is undetermined.
    changes_rows : bool
        Whether the answer decides which rows a transaction reads or writes.

    Raises
    ------
    UndeterminedError
        If `choices` is None.
    OpenQuestion
        If the question has no answer yet.

    Examples
    --------
    >>> choose(TriedAnswers({("a", "first"): True}, "a"), "first", (True, False), "unknown order")
    True
    """
    if choices is not None and choices.rows_matter and not changes_rows:
        return answers[0]
    if choices is None or choices.rows_matter:
        raise UndeterminedError(why)
    key = choices.who, question
    if key not in choices.tried:
        raise OpenQuestion(why, key, answers)
    return choices.tried[key]


def enumerate_choices(
    once: Callable[[TriedAnswers], Done], most: int = MOST_TRIES
) -> Iterator[Done]:
    """Yield the result of `once` for every answer to every question that it asks.

    Raises
    ------
    UndeterminedError
        If `once` runs more than `most` times, or if one run is undetermined for another reason.

    Examples
    --------
    >>> def once(choices):
    ...     return [choose(choices, k, (True, False), "who knows") for k in "ab"]
    >>> list(enumerate_choices(once))
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
