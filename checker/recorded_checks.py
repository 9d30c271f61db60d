"""``check`` of a history that another tool recorded: what levels say of it, each with its explanation."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.checks import Checked
from isolitmus.checker.recorded.explained import explained_record
from isolitmus.checker.recorded.judging import ORDERED, POLYNOMIAL, judge_recorded
from isolitmus.checker.strength import UNOBSERVED
from isolitmus.model.budget import Budget
from isolitmus.model.errors import UnknownName, near
from isolitmus.model.list_history import ListHistory
from isolitmus.model.register_history import UNKNOWN
from isolitmus.specs.catalogue import level, levels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.model.register_history import RegisterHistory

__all__ = ["ASKED", "check_recorded", "recorded_title"]

ASKED = POLYNOMIAL + ORDERED
"""The levels that recorded histories can be asked, from the weakest to the strongest."""
THEIRS = {"read-committed-biswas-enea": "Read committed, as Biswas and Enea have it,"}
"""The titles of levels that are no text of the catalogue."""
RECORDED_NAMES = {"so", "wr", "ww", "rw", "rf", "po", "in", "rival"}
"""The relations that a recorded history gives."""
ASSUMED = "versions came in an order that suits the level, if there is one"
ENDS = "a transaction of which nobody saw the end committed if somebody read from it"


def recorded_title(name: str) -> str:
    """What a level is called.

    >>> recorded_title("causal")
    'Causal consistency'
    """
    return level(name).title if name in levels() else THEIRS[name]


def check_recorded(
    name: str,
    history: RegisterHistory | ListHistory,
    asked: Sequence[str] = ASKED,
    *,
    budget: Budget | None = None,
) -> Checked:
    r"""Judge a recorded history at levels by their names; UnknownName for what it cannot be asked.

    >>> from pathlib import Path
    >>> from isolitmus.specs.recorded.finding import read_recorded
    >>> lost = read_recorded(b"r(0,0,0,0)\nw(0,1,0,0)\nr(0,0,1,1)\nw(0,2,1,1)\n", Path("lost.txt"))
    >>> checked = check_recorded("lost", lost)
    >>> checked.standing.strongest, checked.standing.weakest
    (('prefix-consistency',), ('snapshot-isolation',))
    """
    for one in asked:
        if one not in ASKED:
            raise UnknownName(_refusal(name, one))
    if isinstance(history, ListHistory):
        raise UnknownName(f"{name}: {history!r} are read, and not judged yet; registers are")
    start = monotonic()
    budget = budget or Budget()
    verdicts = {
        one: explained_record(judge_recorded(history, one, budget=budget), budget) for one in asked
    }
    assumed = (ASSUMED, ENDS) if np.any(history.status == UNKNOWN) else (ASSUMED,)
    return Checked(
        name,
        len(history.session),
        len(history.key),
        verdicts,
        monotonic() - start,
        assumed,
        implies=UNOBSERVED,
        titles={one: recorded_title(one) for one in asked},
    )


def _refusal(name: str, asked: str) -> str:
    """Why a level is not asked of a recorded history."""
    if asked in levels():
        lacking = [need for need in sorted(level(asked).needs) if need[:1].islower()]
        lacking = [need for need in lacking if need not in RECORDED_NAMES]
        if lacking:
            return f"{name}: {asked} needs {', '.join(lacking)}, which this history does not have"
        return f"{name}: {asked} is not asked of recorded histories yet; known: {', '.join(ASKED)}"
    return f"{name}: no level '{asked}' for recorded histories{near(asked, ASKED)}"
