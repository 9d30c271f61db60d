"""Isolation levels of a black-box history that another tool recorded, each verdict with its
explanation.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.checks.history_verdicts import (
    LISTED,
    UNOBSERVED,
    HistoryVerdicts,
    implied_levels,
)
from isolitmus.histories.blackbox.events import TIMED, has_times
from isolitmus.histories.blackbox.explanation import explain_record
from isolitmus.histories.blackbox.judgement import (
    ORDERED,
    POLYNOMIAL,
    RecordVerdict,
    judge_recorded,
)
from isolitmus.histories.readers.blackbox_history import UNKNOWN, ListHistory
from isolitmus.model.budget import Budget
from isolitmus.model.errors import Limit, UnknownName, near
from isolitmus.model.verdict import Forbidden
from isolitmus.specs.files.catalogue_titles import titles_of_kind

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from isolitmus.histories.readers.blackbox_history import RegisterHistory
    from isolitmus.model.verdict import Verdict

ASKED = POLYNOMIAL + ORDERED
"""Levels that can be checked on every recorded history, from weakest to strongest."""
EVERY = (*ASKED, *TIMED)
"""`ASKED` and the levels that need recorded start and end times."""
RECORDED_NAMES = {"so", "wr", "ww", "rw", "rf", "po", "in", "rival"}
"""Relations that every recorded history provides."""
ASSUMED = "the version order is one that the level allows, if there is one"
UNREAD = (
    "appends that no transaction read came after the others, in an order that the level allows,"
    " if there is one"
)
ENDS = "a transaction whose end was not observed committed if another transaction read from it"


def check_recorded(
    name: str,
    history: RegisterHistory | ListHistory,
    asked: Sequence[str] | None = None,
    *,
    budget: Budget | None = None,
) -> HistoryVerdicts:
    r"""Judge a recorded history at isolation levels.

    A violation of one level is reused for every stronger level.

    Parameters
    ----------
    name : str
        Name of the history in the result and in errors.
    history : RegisterHistory or ListHistory
        The recorded history.
    asked : sequence of str, optional
        Names of the levels; default: all for which the history has the needed relations.
    budget : Budget, optional
        Limits of time and memory.

    Raises
    ------
    UnknownName
        If a level is unknown, or cannot be checked on this history.

    Examples
    --------
    >>> from pathlib import Path
    >>> from isolitmus.histories.readers.recorded_history import read_recorded
    >>> lost = read_recorded(b"r(0,0,0,0)\nw(0,1,0,0)\nr(0,0,1,1)\nw(0,2,1,1)\n", Path("lost.txt"))
    >>> checked = check_recorded("lost", lost)
    >>> checked.standing.strongest, checked.standing.weakest
    (('prefix-consistency',), ('snapshot-isolation',))
    """
    lists = isinstance(history, ListHistory)
    registers = history.registers
    in_time = has_times(registers)
    known = EVERY if in_time else ASKED
    there = RECORDED_NAMES | ({"rt"} if in_time else set())
    asked = asked or known
    refuse_unknown_levels(name, asked)
    for one in asked:
        if one not in known:
            raise UnknownName(_refusal(name, one, known, there))
    implies = LISTED if lists else UNOBSERVED
    start = monotonic()
    budget = budget or Budget()
    verdicts: dict[str, Verdict] = {}
    for one in sorted(asked, key=EVERY.index):
        weaker = implied_levels(one, implies)
        said = (verdict for name, verdict in verdicts.items() if name in weaker)
        broken = next((verdict for verdict in said if isinstance(verdict, Forbidden)), None)
        verdicts[one] = broken or explain_record(_judged(history, one, budget), budget)
    assumed: tuple[str, ...] = (UNREAD if lists else ASSUMED, *registers.assumptions)
    assumed += (ENDS,) if np.any(registers.status == UNKNOWN) else ()
    return HistoryVerdicts(
        name,
        len(registers.session),
        len(registers.key),
        {one: verdicts[one] for one in asked},
        monotonic() - start,
        assumed,
        implies=implies,
        titles=dict(titles_of_kind("levels", asked)),
    )


def _judged(history: RegisterHistory | ListHistory, level: str, budget: Budget) -> RecordVerdict:
    """Return the verdict of a level; unknown if a limit ends it, also in a long call of NumPy."""
    try:
        with budget.interrupting():
            return judge_recorded(history, level, budget=budget)
    except Limit as limit:
        return RecordVerdict(history.registers, level, "unknown", reason=str(limit))


def refuse_unknown_levels(name: str, asked: Sequence[str]) -> None:
    """Raise UnknownName for a level that does not exist, before a history is read.

    Examples
    --------
    >>> refuse_unknown_levels("h.txt", ["serialisable"])
    Traceback (most recent call last):
    isolitmus.model.errors.UnknownName: h.txt: unknown level 'serialisable' for recorded ...
    """
    for one in asked:
        if one not in EVERY:
            from isolitmus.specs.files.spec_catalogue import spec

            try:
                spec(one)
            except UnknownName:
                why = f"{name}: unknown level '{one}' for recorded histories{near(one, EVERY)}"
                raise UnknownName(why) from None


def _refusal(name: str, asked: str, levels: Sequence[str], there: Collection[str]) -> str:
    """Return the reason why a level cannot be checked on a recorded history."""
    from isolitmus.specs.files.spec_catalogue import spec

    known = spec(asked)
    relations = {need for need in known.needs if need[:1].islower()}
    lacking = sorted(relations.difference(there) | (known.needs & known.given.keys()))
    if lacking:
        return f"{name}: {asked} needs {', '.join(lacking)}, which this history does not have"
    return f"{name}: {asked} is not asked of recorded histories yet; known: {', '.join(levels)}"
