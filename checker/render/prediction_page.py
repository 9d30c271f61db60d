"""The page of a prediction: who stops whom, when, and the smallest example of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.render.page_parts import render_template
from isolitmus.checker.render.prediction import change_words, meeting_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.checker.render.page_parts import Made
    from isolitmus.checker.workloads.changes import JobChange
    from isolitmus.checker.workloads.prediction import JobPrediction, Meeting

__all__ = ["prediction_page"]

WORDS = {"apart": "never at a time", "unknown": "unknown", "never": "never"}


def prediction_page(
    prediction: JobPrediction, made: Made, changes: Sequence[JobChange] | None = None
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


def _word(meeting: Meeting) -> str:
    """What stands in a cell."""
    if meeting.word in WORDS:
        return WORDS[meeting.word]
    condition = " and ".join(meeting.condition)
    if meeting.certain:
        return f"whenever {condition}" if condition else "always"
    return f"only if {condition}" if condition else "sometimes"
