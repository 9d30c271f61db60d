"""Predictions in lines and as a page.

A prediction in lines for a person: a grid of all pairs, and sentences by who is stopped.

The page of a prediction: who stops whom, when, and the smallest example of each.
"""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from isolitmus.checker.render.page_parts import render_template
from isolitmus.model.delta.conflict import CONFLICTS
from isolitmus.model.display import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.checker.render.page_parts import PageOrigin
    from isolitmus.checker.workloads.prediction import JobPrediction, PairPrediction
    from isolitmus.checker.workloads.repairs import JobChange
    from isolitmus.model.workload import Workload

__all__ = [
    "change_lines",
    "change_words",
    "grid_row",
    "meeting_words",
    "prediction_head",
    "prediction_lines",
    "prediction_page",
    "prediction_rest",
]

SIGNS = {"never": ".", "apart": "-", "unknown": "?"}
CELL = 4
"""The signs of the longest cell of the grid: two letters, ? and !."""


def prediction_lines(prediction: JobPrediction) -> Iterator[str]:
    """What the jobs are, the grid, and what is said of each pair."""
    rows = prediction.rows
    yield from prediction_head(prediction.workload, list(rows), prediction.protocol)
    yield from map(grid_row, rows.values())
    yield from prediction_rest(prediction)


def prediction_head(workload: Workload, names: Sequence[str], protocol: str) -> Iterator[str]:
    """What the jobs are, and the head of the grid of the statements of these names."""
    many_statements = count_of(len(names), "statement that writes", "statements that write")
    yield f"{workload.title}: {count_of(len(workload.jobs), 'job')}, {many_statements}, under {protocol}"
    yield ""
    cells = "  ".join(f"{name:<{_width(name)}}" for name in names)
    yield f"{'':<{max(map(len, names))}}  {cells}".rstrip()


def grid_row(row: Sequence[PairPrediction]) -> str:
    """One row of the grid: a statement that begins first and commits last, by each that commits meanwhile."""
    cells = "  ".join(f"{_sign(one):<{_width(one.winner)}}" for one in row)
    return f"{row[0].loser:<{max(len(one.winner) for one in row)}}  {cells}".rstrip()


def _width(name: str) -> int:
    return max(len(name), CELL)


def prediction_rest(prediction: JobPrediction) -> Iterator[str]:
    """What the signs of the grid mean, and what is said of each pair."""
    work = prediction.workload
    yield _legend(prediction.meetings)
    yield ""
    for loser, row in prediction.rows.items():
        yield from _of(loser, row)
    yield ""
    yield from wrap(f"This is for {prediction.engine}.", 100)
    if work.assumptions:
        yield f"Assumed: {'; '.join(work.assumptions)}."


def change_lines(changes: Sequence[JobChange]) -> Iterator[str]:
    """What would end conflicts, and which."""
    yield ""
    yield (
        "What would end some of it, each asked anew:"
        if changes
        else "Nothing that was tried ends any of it."
    )
    for change in changes:
        yield f"  {change.title}"
        yield from (f"    {line}" for line in change_words(change))


def change_words(change: JobChange) -> Iterator[str]:
    """What a change ends, brings, leaves to fewer parameters, and costs."""
    said: dict[tuple[str, str], list[str]] = {}
    for words, pairs in ((change.ended, change.ends), ("but now", change.brings)):
        for loser, winner in pairs:
            said.setdefault((f"{words} {loser}", ""), []).append(_named(loser, winner))
    for loser, winner, when in change.narrows:
        condition = f" only if {' and '.join(when)}"
        said.setdefault((loser, condition), []).append(_named(loser, winner))
    for (who, condition), winners in said.items():
        yield f"{who} by {_listed(winners)}{condition}"
    yield from (f"costs: {cost}" for cost in change.costs)


def _named(loser: str, winner: str) -> str:
    return "another run of itself" if winner == loser else winner


def _legend(meetings: Sequence[PairPrediction]) -> str:
    """What the signs of a grid mean."""
    letters = {sign for one in meetings for sign in _sign(one)}
    words = [f"{c.letter} {name}" for name, c in CONFLICTS.items() if c.letter in letters]
    meaning = {
        ".": "never stopped",
        "!": "always, if both write",
        "-": "never at a time",
        "?": "unknown",
    }
    words += [f"{sign} {meant}" for sign, meant in meaning.items() if sign in letters]
    return "Rows begin first and commit last, columns commit meanwhile: " + ", ".join(words) + "."


def _sign(meeting: PairPrediction) -> str:
    if meeting.word in SIGNS:
        return SIGNS[meeting.word]
    letters = (CONFLICTS[name].letter if name in CONFLICTS else "x" for name in meeting.examples)
    perhaps = "?" if meeting.perhaps else ""
    return "".join(letters) + perhaps + ("!" if meeting.word == "always" else "")


def _of(loser: str, meetings: Sequence[PairPrediction]) -> Iterator[str]:
    stopped = [m for m in meetings if m.word in ("always", "when", "unknown")]
    if not stopped:
        yield f"{loser} is never stopped."
        return
    yield f"{loser} is stopped"
    alike: dict[str, list[str]] = {}
    for meeting in stopped:
        alike.setdefault(meeting_words(meeting), []).append(_named(loser, meeting.winner))
    for words, winners in alike.items():
        yield f"  by {_listed(winners)} {words}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def meeting_words(meeting: PairPrediction) -> str:
    """When the loser is stopped, how, and what becomes of a retry."""
    condition = " and ".join(meeting.condition)
    if meeting.word == "unknown":
        return f"perhaps{f', and only if {condition}' if condition else ''}: {meeting.why}"
    if meeting.certain:
        when = f"whenever {condition}" if condition else "always"
    elif condition:
        when = f"only if {condition}, depending on the rows"
    else:
        when = "with some parameters and rows"
    perhaps = f", perhaps {' or '.join(meeting.perhaps)}" if meeting.perhaps else ""
    ends = dict.fromkeys(end for said in meeting.retries.values() for end in said)
    again = f" Run again, it {' or '.join(ends)}." if ends else ""
    return f"{when}: {' or '.join(meeting.examples)}{perhaps}.{again}"


WORDS = {"apart": "never at a time", "unknown": "unknown", "never": "never"}


def prediction_page(
    prediction: JobPrediction, made: PageOrigin, changes: Sequence[JobChange] | None = None
) -> str:
    """The page: no script, nothing loaded from anywhere, every text escaped. ``changes``: what would end conflicts, if
    it was asked.
    """
    names = list(dict.fromkeys(meeting.loser for meeting in prediction.meetings))
    return render_template(
        "prediction.html.j2",
        prediction=prediction,
        workload=prediction.workload,
        made=made,
        names=names,
        cells={(m.loser, m.winner): m for m in prediction.meetings},
        word=_word,
        changes=changes,
        change_words=change_words,
        words=meeting_words,
    )


def _word(meeting: PairPrediction) -> str:
    """What stands in a cell."""
    if meeting.word in WORDS:
        return WORDS[meeting.word]
    condition = " and ".join(meeting.condition)
    if meeting.certain:
        return f"whenever {condition}" if condition else "always"
    return f"only if {condition}" if condition else "sometimes"
