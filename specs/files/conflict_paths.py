"""Paths of recorded functions that are taken only after a conflict.

Such a path exists only if its statement can abort. Where that statement commits, on another path,
it is a statement of a job, and the prediction of its conflicts decides about the path.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from isolitmus.model.sql.statement import Read
from isolitmus.model.workload import AbortedStatement, ConflictPath

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.model.workload import JobStatement, UnreadStatement, Workload
    from isolitmus.specs.files.recorded_functions import FunctionRecord

__all__ = ["conflict_paths", "has_conflict_only"]


def has_conflict_only(record: FunctionRecord) -> bool:
    """Return whether all that a record tells is about a path that follows a conflict.

    The last record of a function also tells about paths that were not taken.
    """
    return bool(record.aborted) and not record.more and record.failure is None


def conflict_paths(
    work: Workload,
    records: Sequence[FunctionRecord],
    unread: Mapping[FunctionRecord, Sequence[str]],
) -> Iterator[ConflictPath]:
    """Yield the paths of functions that follow a conflict of statements that are understood.

    Parameters
    ----------
    work : Workload
        Workload with the jobs of the functions.
    records : sequence of FunctionRecord
        All paths of the functions.
    unread : mapping of FunctionRecord to sequence of str
        Names of what is not understood of each path.
    """
    for record in records:
        if not has_conflict_only(record):
            continue
        own = [one for one in records if one.target == record.target]
        places = dict.fromkeys(map(record.place, record.aborted))
        aborted = [
            AbortedStatement(place, names)
            for place in places
            if (names := _statements_at(work, own, place))
        ]
        if aborted:
            yield ConflictPath(
                record.target.name, tuple(aborted), record.job_names, tuple(unread[record])
            )


def _statements_at(
    work: Workload, records: Sequence[FunctionRecord], place: str
) -> tuple[str, ...]:
    """Return the names of all statements that a function executes in a line; none if it may execute
    something else there.
    """
    recorded: Counter[str] = Counter()
    for record in records:
        if any(record.place(step) == place for step in record.gaps):
            return ()
        steps = [step for step in record.statements if record.place(step) == place]
        recorded.update(record.job_name(step.stream) for step in steps)
    names: list[str] = []
    writers = [one for one in work.statements if not isinstance(one.statement, Read)]
    every: list[JobStatement | UnreadStatement] = [*writers, *work.unread]
    for one in every:
        at = one.location
        if one.job in recorded and at is not None and f"{at.file}:{at.line}" == place:
            recorded[one.job] -= 1
            names.append(one.name)
    return () if any(recorded.values()) else tuple(names)
