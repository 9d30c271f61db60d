"""Recorded histories of a few registers: from texts, and drawn ones that a level does not allow."""

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st

from isolitmus.histories.blackbox.judgement import judge_recorded
from isolitmus.histories.readers.blackbox_history import COMMITTED, INITIAL, RegisterHistory

KEYS = "xyz"


def recorded(*sessions, ends=None):
    """A history from texts: sessions of transactions between bars, ``w(x1) r(y2) | r(x-)``; a dash
    is INITIAL.
    """
    columns = {name: [] for name in ("session", "is_write", "key", "value")}
    first = [0]
    for number, session in enumerate(sessions):
        for part in session.split("|"):
            for word in part.split():
                columns["is_write"].append(word[0] == "w")
                columns["key"].append(KEYS.index(word[2]))
                columns["value"].append(INITIAL if word[3] == "-" else int(word[3:-1]))
            first.append(len(columns["key"]))
            columns["session"].append(number)
    found = {name: np.array(column, int) for name, column in columns.items()}
    return RegisterHistory(
        tuple(KEYS),
        tuple("stuv"[: len(sessions)]),
        found["session"],
        np.array(ends or [COMMITTED] * (len(first) - 1)),
        np.array(first),
        found["is_write"].astype(bool),
        found["key"],
        found["value"],
        np.arange(1, first[-1] + 1),
    )


@st.composite
def not_allowed(draw, histories, levels, tries=12):
    """Draw a history and a level that does not allow it, though each read has an explanation: the
    first of some tries.

    Returns the judgement.
    """
    for _ in range(tries):
        judged = judge_recorded(draw(histories), draw(levels))
        if judged.verdict != "allowed" and not judged.flaws:
            return judged
    return reject()
