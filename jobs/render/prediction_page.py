"""Predictions as an HTML page: a coloured matrix, and each answer once with executed examples.

Pairs of statements with the same answer are folded together: the answer is a sentence in which the
two statements are placeholders, and pairs are alike if their sentences are equal. The matrix has
one row for all statements whose rows are alike, and one column for all whose columns are alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from isolitmus.checker.render.page_parts import render_template
from isolitmus.jobs.questions.table_alterations import altering_statements
from isolitmus.jobs.render.job_examples import job_example, short_exception
from isolitmus.jobs.render.prediction import (
    ALTERS_NOTHING,
    CAN_ABORT,
    IN_BETWEEN,
    LISTED,
    OTHER_TABLES,
    alternatives,
    are_tables_apart,
    change_words,
    enumeration,
    meeting_sentence,
    named_winner,
    pair_sign,
    sign_meanings,
    summary_line,
    symbolic_condition,
    writers_by_table,
)
from isolitmus.model.display import capitalized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from isolitmus.checker.render.page_parts import PageOrigin
    from isolitmus.jobs.questions.pair_prediction import JobPrediction, PairPrediction
    from isolitmus.jobs.render.job_examples import JobExample
    from isolitmus.jobs.robust.repairs import JobChange

WORDS = {"apart": "never at the same time", "unknown": "unknown", "never": "never"}
ROW, COLUMN = "\x00row", "\x00column"
"""Names of the two statements in an answer that many pairs have."""
WIDE = 8
"""Maximum number of columns whose cells have words; more columns have the signs of the text."""
FEW = 3
"""Number of statements that the title of an answer names, if it has more than one more."""
OPEN = 3
"""Maximum number of answers whose examples are shown before they are asked for."""


@dataclass(frozen=True)
class AnswerFold:
    """Pairs of statements that have one answer: each of some with each of others."""

    number: int
    """Number on the page, from 1."""
    losers: tuple[str, ...]
    """Statements that start first and commit last."""
    winners: tuple[str, ...]
    """Statements that commit in between."""
    meetings: tuple[PairPrediction, ...]
    """Predictions of the pairs; the examples of the first one are shown."""

    @cached_property
    def title(self) -> str:
        """Names of the statements."""
        return f"{some_names(self.losers)} × {some_names(self.winners)}"

    @cached_property
    def is_cut(self) -> bool:
        """True if the title does not name all statements."""
        return any(some_names(names) != ", ".join(names) for names in (self.losers, self.winners))

    @cached_property
    def sentence(self) -> str:
        """When the statements abort, with which exceptions, and the outcome of a retry."""
        losers, winners = self.losers, self.winners
        lone = losers[0] if len(losers) == 1 else ""
        named = [named_winner(lone, one) for one in winners]
        said = meeting_sentence(neutral_pair(self.meetings[0]))
        said = said.format(_any_of(named), IN_BETWEEN)
        other = "the other run" if winners == (lone,) else winners[0]
        said = said.replace(f"{ROW}'s", f"{lone}'s" if lone else "the first one's")
        said = said.replace(f"{COLUMN}'s", f"{other}'s" if len(winners) == 1 else "the other one's")
        return said.replace(ROW, _any_of(losers))


@dataclass(frozen=True)
class ConflictMatrix:
    """Matrix of answers, in which statements with equal rows, or equal columns, stand together."""

    table: str
    """Table that the statements write to; empty if the matrix has all statements."""
    rows: tuple[tuple[str, ...], ...]
    """Statements that start first, by row."""
    columns: tuple[tuple[str, ...], ...]
    """Statements that commit in between, by column."""

    @property
    def is_wide(self) -> bool:
        """True if the cells have signs, because words would need too much room."""
        return len(self.columns) > WIDE

    @property
    def folded(self) -> tuple[tuple[str, ...], ...]:
        """Statements that share a row or a column and are not all named there."""
        every = dict.fromkeys((*self.rows, *self.columns))
        return tuple(names for names in every if some_names(names) != ", ".join(names))


def some_names(names: Sequence[str]) -> str:
    """Return some names, and the number of the others.

    Examples
    --------
    >>> some_names(["a", "b"]), some_names(["a", "b", "c", "d", "e"])
    ('a, b', 'a, b, c and 2 others')
    """
    if len(names) <= FEW + 1:
        return ", ".join(names)
    return f"{', '.join(names[:FEW])} and {len(names) - FEW} others"


def _any_of(names: Sequence[str]) -> str:
    """Return names as the subject of a sentence about any one of them."""
    return alternatives(names) if len(names) <= LISTED else f"any of {len(names)} statements"


def neutral_pair(meeting: PairPrediction) -> PairPrediction:
    """Return a prediction with placeholders for the names of its two statements.

    Examples
    --------
    >>> from isolitmus.jobs.questions.pair_prediction import PairPrediction
    >>> pair = PairPrediction("a", "a", "when", ("a's :x is below a_2's :y",))
    >>> neutral_pair(pair).condition[0].replace(chr(0), "")
    "row's :x is below column's :y"
    """
    loser, winner = meeting.loser, meeting.winner
    second = f"{loser}_2" if winner == loser else winner
    names = {f"{loser}'s ": f"{ROW}'s ", f"{second}'s ": f"{COLUMN}'s "}
    found = re.compile(rf"(?<!\S)(?:{'|'.join(map(re.escape, names))})")

    def renamed(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(found.sub(lambda one: names[one[0]], text) for text in texts)

    plain = meeting.not_null
    return replace(
        meeting,
        loser=ROW,
        winner=COLUMN,
        condition=renamed(meeting.condition),
        unless=renamed(meeting.unless),
        not_null=plain and plain._replace(condition=renamed(plain.condition)),
    )


def answer_key(meeting: PairPrediction) -> str:
    """Return a text that is equal for two pairs if their answers differ only in names."""
    if meeting.word in (*CAN_ABORT, "unknown"):
        return meeting_sentence(neutral_pair(meeting))
    return meeting.word


def answer_folds(meetings: Iterable[PairPrediction]) -> tuple[AnswerFold, ...]:
    """Return the answers about pairs that can abort, or are unknown, each for all its pairs.

    Statements that abort by the same answer after the same others stand together.

    Examples
    --------
    >>> from isolitmus.jobs.questions.pair_prediction import PairPrediction
    >>> names = [("a", "x"), ("b", "x"), ("b", "y"), ("a", "y"), ("c", "x")]
    >>> folds = answer_folds(PairPrediction(*pair, "unknown", why="late") for pair in names)
    >>> [(one.title, one.sentence) for one in folds][1]
    ('c × x', 'c perhaps aborts if x commits between its snapshot and its commit; unknown: late.')
    """
    by_answer: dict[str, dict[str, list[PairPrediction]]] = {}
    for one in meetings:
        if one.word in (*CAN_ABORT, "unknown"):
            by_answer.setdefault(answer_key(one), {}).setdefault(one.loser, []).append(one)
    folds: list[AnswerFold] = []
    for rows in by_answer.values():
        alike: dict[tuple[str, ...], list[PairPrediction]] = {}
        for row in rows.values():
            alike.setdefault(tuple(one.winner for one in row), []).extend(row)
        for winners, pairs in alike.items():
            losers = tuple(dict.fromkeys(one.loser for one in pairs))
            folds.append(AnswerFold(0, losers, winners, tuple(pairs)))
    place = {name: k for k, name in enumerate(dict.fromkeys(one.losers[0] for one in folds))}
    folds.sort(key=lambda one: place[one.losers[0]])
    return tuple(replace(one, number=k) for k, one in enumerate(folds, 1))


def conflict_matrix(
    names: Sequence[str], key: Callable[[str, str], str], table: str = ""
) -> ConflictMatrix:
    """Return the matrix of some statements; ``key`` returns the answer for two of them."""
    rows: dict[tuple[str, ...], list[str]] = {}
    columns: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        rows.setdefault(tuple(key(name, other) for other in names), []).append(name)
        columns.setdefault(tuple(key(other, name) for other in names), []).append(name)
    return ConflictMatrix(table, *(tuple(map(tuple, one.values())) for one in (rows, columns)))


def prediction_page(
    prediction: JobPrediction, made: PageOrigin, changes: Sequence[JobChange] | None = None
) -> str:
    """Return the HTML page, without scripts or external resources, and with every text escaped.

    ``changes`` are those that prevent conflicts, if they were asked for.
    """
    workload = prediction.workload
    keys = {(one.loser, one.winner): answer_key(one) for one in prediction.meetings}
    tables = writers_by_table(prediction) if workload.schedule else {"": list(prediction.rows)}
    folds = answer_folds(prediction.meetings)
    matrices = [
        conflict_matrix(names, lambda a, b: keys[a, b], table) for table, names in tables.items()
    ]
    holds = any(_is_conditional(one) for one in prediction.meetings)
    conditional = (
        {"*": "always aborts if a condition on parameters holds (proved)"} if holds else {}
    )
    return render_template(
        "prediction.html.j2",
        "isolitmus.jobs.render",
        prediction=prediction,
        workload=workload,
        made=made,
        matrices=matrices,
        is_wide=any(one.is_wide for one in matrices),
        has_unknown=any(one.word == "unknown" for one in prediction.meetings),
        cells={(m.loser, m.winner): m for m in prediction.meetings},
        numbers={(m.loser, m.winner): one.number for one in folds for m in one.meetings},
        others=OTHER_TABLES if workload.schedule and are_tables_apart(prediction) else "",
        folds=folds,
        is_open=len(folds) <= OPEN,
        examples=lambda fold: _examples(fold, prediction),
        word=_word,
        names=some_names,
        style=_style,
        sign=_sign,
        signs=sign_meanings(prediction.meetings) | conditional,
        short=short_exception,
        summary=summary_line(prediction),
        changes=changes,
        alters=ALTERS_NOTHING if altering_statements(workload) else "",
        change_words=change_words,
        capitalized=capitalized,
    )


def _examples(fold: AnswerFold, prediction: JobPrediction) -> dict[str, JobExample]:
    """Return the examples of the first pair, by exception."""
    return {
        name: job_example(test, prediction.protocol, prediction.workload)
        for name, test in fold.meetings[0].examples.items()
    }


def _is_conditional(meeting: PairPrediction) -> bool:
    plain = meeting.plain
    return plain.certain and plain.word == "when"


def _sign(meeting: PairPrediction) -> str:
    """Return the sign of a cell in a wide matrix."""
    return f"{pair_sign(meeting)}*" if _is_conditional(meeting) else pair_sign(meeting)


def _style(meeting: PairPrediction) -> str:
    """Return the class of a cell."""
    if meeting.word in WORDS:
        return meeting.word
    if meeting.not_null is not None:
        return "sometimes"
    return "always" if meeting.certain else "sometimes"


def _word(meeting: PairPrediction, row: Sequence[str], column: Sequence[str]) -> str:
    """Return the answer in a cell of the matrix, for all statements of its row and column."""
    plain, neutral = meeting.plain, neutral_pair(meeting).plain
    second = "the other run" if meeting.winner == meeting.loser else meeting.winner
    first = meeting.loser if len(row) == 1 else "the row"
    said = enumeration([symbolic_condition(one, ROW, COLUMN) for one in neutral.condition])
    word = WORDS.get(plain.word) or ("always" if plain.certain else "sometimes")
    said = f"{word} if {said}" if said and plain.word not in WORDS else word
    if neutral.unless:
        said += f" unless {alternatives(list(neutral.unless))} is NULL"
    said = said.replace(f"{ROW}'s", f"{first}'s")
    return said.replace(f"{COLUMN}'s", f"{second if len(column) == 1 else 'the column'}'s")
