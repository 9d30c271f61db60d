"""The verb ``explain``: why Delta refused a commit, by what its exception says, and by the table's log if it is there.

Where the catalogue has an example of it, a litmus test whose transaction ends in the same exception, that is carried out
on the model, and once more with that transaction after the others (``checker.auditing.diagnosis``).
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from isolitmus.checker.auditing.diagnosis import Diagnosis, StoppedBy
from isolitmus.checker.auditing.winning_commits import find_stopper, stopper_at, stoppers
from isolitmus.model.errors import Limit
from isolitmus.specs.files.exception_text import read_pasted
from isolitmus.specs.files.exceptions_file import exception_table
from isolitmus.specs.logs.delta_log import open_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from isolitmus.checker.auditing.winning_commits import Stopper
    from isolitmus.model.budget import Budget
    from isolitmus.specs.logs.delta_log import DeltaLog

__all__ = ["explain", "stopped_after", "stopped_at"]

LATER = 1_000
"""So many commits after the one that stopped a job are looked through for the job's next attempt."""


def explain(
    text: str,
    *,
    table: Path | str | None = None,
    version: int | None = None,
    failed_after: int | None = None,
    label: str = "the text",
    budget: Budget | None = None,
) -> Diagnosis:
    """Why a commit was refused, by the text of its exception; with the path of the table also by its log, where
    ``version`` is the one that the other commit made, ``failed_after`` the one that the refused job had read.
    ``label``: what errors call the text. Once the ``budget`` is spent, what was found until then.

    NoConflict if no conflict is known in the text, LogError if the log does not read, or does not fit.

    >>> found = explain("DELTA_CONCURRENT_DELETE_READ.WITH_PARTITION_HINT")
    >>> found.known.name, found.known.retry, found.example.again
    ('ConcurrentDeleteReadException', 'yes', 'no-op')
    """
    pasted = read_pasted(text, label)
    table_of = exception_table()
    known = table_of.every[pasted.name]
    if pasted.condition is not None:
        known = table_of.conditions[pasted.condition].of_exception(known)
    found = Diagnosis(pasted, known)
    try:
        with _within(budget):
            if table is not None:
                found = _with_log(found, Path(table), version, failed_after)
            if budget is not None:
                found.example  # noqa: B018 - carried out now, within the budget
    except Limit as limit:
        return replace(found, ended=str(limit))
    return found


def _within(budget: Budget | None) -> AbstractContextManager[None]:
    return nullcontext() if budget is None else budget.interrupting()


def _with_log(
    found: Diagnosis, table: Path, version: int | None, failed_after: int | None
) -> Diagnosis:
    """The diagnosis with the commit in the table's log that the text speaks of."""
    log = open_log(table)
    stopped = find_stopper(log, found.pasted, version, failed_after)
    first = stopped.commit.version + 1
    later = map(log.commit, range(first, min(first + LATER, log.last + 1)))
    mine = found.pasted.mine
    next_one = next(
        (c for c in later if mine and (c.operation or "").upper().startswith(mine)), None
    )
    return replace(found, stopped=stopped, later=next_one)


def stopped_at(table: Path, version: int, budget: Budget | None = None) -> StoppedBy:
    """Whom a version of a table can have stopped; LogError if its log does not have it."""
    return _stopped(table, version - 1, lambda log: iter([stopper_at(log, version)]), budget)


def stopped_after(table: Path, read: int, budget: Budget | None = None) -> StoppedBy:
    """Whom the commits after a version can have stopped, such as a job that had read it; LogError if the log does not
    have it.
    """
    return _stopped(table, read, lambda log: stoppers(log, read), budget)


def _stopped(
    table: Path,
    after: int,
    looked_at: Callable[[DeltaLog], Iterator[Stopper]],
    budget: Budget | None,
) -> StoppedBy:
    """Whom commits can have stopped; if the budget is spent, those that were looked at until then."""
    found: list[Stopper] = []
    ended = None
    try:
        with _within(budget):
            found.extend(looked_at(open_log(table)))  # what has come stays when it is interrupted
    except Limit as limit:
        ended = str(limit)
    return StoppedBy(str(table), after, tuple(found), ended)
