"""The verb ``explain``: why Delta refused a commit, by what its exception says, and by the table's log if it is there.

Where the catalogue has an example of it, a litmus test whose transaction ends in the same exception, that is carried out
on the model, and once more with that transaction after the others (``checker.auditing.diagnosis``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.auditing.diagnosis import Diagnosis, StoppedBy
from isolitmus.checker.auditing.stoppers import find_stopper, stopper_at, stoppers
from isolitmus.specs.delta_log import open_log
from isolitmus.specs.exceptions_file import exception_table
from isolitmus.specs.pasted import read_pasted

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["explain", "stopped_after", "stopped_at"]

LATER = 1_000
"""So many commits after the one that stopped a job are looked through for the job's next attempt."""


def explain(
    text: str,
    *,
    table: Path | None = None,
    version: int | None = None,
    failed_after: int | None = None,
    label: str = "the text",
) -> Diagnosis:
    """Why a commit was refused, by the text of its exception; with the path of the table also by its log, where
    ``version`` is the one that the other commit made, ``failed_after`` the one that the refused job had read.
    ``label``: what errors call the text.

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
    if table is None:
        return Diagnosis(pasted, known)
    log = open_log(table)
    stopped = find_stopper(log, pasted, version, failed_after)
    first = stopped.commit.version + 1
    later = map(log.commit, range(first, min(first + LATER, log.last + 1)))
    mine = pasted.mine
    next_one = next(
        (c for c in later if mine and (c.operation or "").upper().startswith(mine)), None
    )
    return Diagnosis(pasted, known, stopped, next_one)


def stopped_at(table: Path, version: int) -> StoppedBy:
    """Whom a version of a table can have stopped; LogError if its log does not have it."""
    log = open_log(table)
    return StoppedBy(str(table), version - 1, (stopper_at(log, version),))


def stopped_after(table: Path, read: int) -> StoppedBy:
    """Whom the commits after a version can have stopped, such as a job that had read it; LogError if the log does not
    have it.
    """
    log = open_log(table)
    return StoppedBy(str(table), read, tuple(stoppers(log, read)))
