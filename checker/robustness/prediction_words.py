"""A prediction in lines for a person: a grid of all pairs, and sentences by who is stopped."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from isolitmus.model.conflict import CONFLICTS
from isolitmus.model.number import many

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.checker.robustness.changes import JobChange
    from isolitmus.checker.robustness.prediction import JobPrediction, Meeting

__all__ = ["change_lines", "change_words", "grid_lines", "meeting_words", "prediction_lines"]

SIGNS = {"never": ".", "apart": "-", "unknown": "?"}


def prediction_lines(prediction: JobPrediction) -> Iterator[str]:
    """What the jobs are, the grid, and what is said of each pair."""
    work = prediction.workload
    statements = len({meeting.loser for meeting in prediction.meetings})
    counts = f"{many(len(work.jobs), 'job')}, {many(statements, 'statement that writes', 'statements that write')}"
    yield f"{work.title}: {counts}, under {prediction.protocol}"
    yield ""
    yield from grid_lines(prediction.meetings)
    yield ""
    for loser in dict.fromkeys(meeting.loser for meeting in prediction.meetings):
        yield from _of(loser, [m for m in prediction.meetings if m.loser == loser])
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


def grid_lines(meetings: Sequence[Meeting]) -> Iterator[str]:
    """A row for each statement that begins first and commits last, a column for each that commits meanwhile."""
    names = list(dict.fromkeys(meeting.loser for meeting in meetings))
    width = max(map(len, names))
    said = {(m.loser, m.winner): _sign(m) for m in meetings}
    widths = [max(len(n), *(len(said[row, n]) for row in names)) for n in names]
    head = "  ".join(f"{n:<{w}}" for n, w in zip(names, widths, strict=True))
    yield f"{'':<{width}}  {head}".rstrip()
    for row in names:
        cells = "  ".join(f"{said[row, n]:<{w}}" for n, w in zip(names, widths, strict=True))
        yield f"{row:<{width}}  {cells}".rstrip()
    letters = {sign for text in said.values() for sign in text}
    words = [f"{c.letter} {name}" for name, c in CONFLICTS.items() if c.letter in letters]
    meaning = {
        ".": "never stopped",
        "!": "always, if both write",
        "-": "never at a time",
        "?": "unknown",
    }
    words += [f"{sign} {meant}" for sign, meant in meaning.items() if sign in letters]
    yield "Rows begin first and commit last, columns commit meanwhile: " + ", ".join(words) + "."


def _sign(meeting: Meeting) -> str:
    if meeting.word in SIGNS:
        return SIGNS[meeting.word]
    letters = (CONFLICTS[name].letter if name in CONFLICTS else "x" for name in meeting.examples)
    perhaps = "?" if meeting.perhaps else ""
    return "".join(letters) + perhaps + ("!" if meeting.word == "always" else "")


def _of(loser: str, meetings: Sequence[Meeting]) -> Iterator[str]:
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


def meeting_words(meeting: Meeting) -> str:
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
