"""Paths of functions after a conflict that no run takes, because their statement never aborts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.jobs.predict.prediction import PairPredictor
from isolitmus.model.assumption import Assumption, AssumptionKind
from isolitmus.model.errors import Limit

if TYPE_CHECKING:
    from isolitmus.jobs.workload import AbortedStatement, ConflictPath, Workload
    from isolitmus.model.budget import Budget
    from isolitmus.model.spec import Spec

NEVER = ("never", "apart")


def without_untaken_paths(workload: Workload, protocol: Spec, budget: Budget) -> Workload:
    """Return a workload without the paths that follow a conflict of a statement that never aborts.

    The paths that a run may take are found from below: the first conflict of all is with a
    statement of a path without conflicts, so a path is added only if each of its statements may
    abort beside those of the paths before. With a spent budget, all paths stay.

    Examples
    --------
    >>> from math import inf
    >>> from isolitmus.model.budget import Budget
    >>> from isolitmus.jobs.workload import AbortedStatement, ConflictPath
    >>> from isolitmus.specs import protocol
    >>> from isolitmus.jobs.readers.workload_file import read_workload
    >>> work = read_workload('''
    ... ddl = "CREATE TABLE t (id INT) USING delta"
    ... [jobs]
    ... load = "INSERT INTO t VALUES (:id)"
    ... load_path2 = "INSERT INTO t VALUES (NULL)"
    ... ''', "jobs")
    >>> aborted = AbortedStatement("job.py:5", ("load",))
    >>> path = ConflictPath("load", (aborted,), ("load_path2",), ())
    >>> work = replace(work, conflict_paths=(path,))
    >>> found = without_untaken_paths(work, protocol("delta-serializable"), Budget(memory=inf))
    >>> [*found.jobs]
    ['load']
    >>> found.left_out[-1].partition(" (")[0]
    'load: no handler runs for a conflict in job.py:5, because the INSERT there never aborts'
    """
    left = list(workload.conflict_paths)
    if not left:
        return workload
    predictor = PairPredictor(workload, protocol, examples=False)
    try:
        with budget.interrupting():
            taken = workload.without_paths(left)
            while more := [path for path in left if _may_be_taken(path, taken, predictor)]:
                left = [path for path in left if path not in more]
                taken = workload.without_paths(left)
            reasons = [
                _sentence(path, one, workload, protocol)
                for path in left
                for one in path.aborted
                if not _may_abort(one, taken, predictor)
            ]
    except Limit:
        return workload
    return replace(taken, left_out=(*taken.left_out, *dict.fromkeys(reasons)))


def _may_be_taken(path: ConflictPath, taken: Workload, predictor: PairPredictor) -> bool:
    """Return whether each statement that aborts on a path may do so."""
    return all(_may_abort(one, taken, predictor) for one in path.aborted)


def _may_abort(aborted: AbortedStatement, taken: Workload, predictor: PairPredictor) -> bool:
    """Return whether a statement may abort beside the statements of the paths that are taken."""
    winners = [*(one.name for one in taken.statements), *(one.name for one in taken.unread)]
    return any(
        loser not in predictor.every
        or predictor.pair(predictor.every[loser], predictor.every[winner]).word not in NEVER
        for loser in aborted.names
        for winner in winners
        if winner in predictor.every
    )


def _sentence(
    path: ConflictPath, aborted: AbortedStatement, workload: Workload, protocol: Spec
) -> Assumption:
    """Return the assumption that a handler never runs."""
    texts = [one.sql for one in workload.statements if one.name in aborted.names]
    verbs = " or ".join(dict.fromkeys(text.split()[0].upper() for text in texts))
    return AssumptionKind.NO_HANDLER.says(
        f"{path.function}: no handler runs for a conflict in {aborted.place}, because the {verbs}"
        f" there never aborts (proved under {protocol.name})."
    )
