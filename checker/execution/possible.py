"""What may become of a test that has parts which the model cannot compute: every run, whatever these give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import execute, observed_run
from isolitmus.checker.execution.run_diff import run_differences
from isolitmus.model.errors import UndeterminedError
from isolitmus.model.nondeterminism import every_way
from isolitmus.model.run import SeveralRuns

if TYPE_CHECKING:
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import Run
    from isolitmus.model.spec import Spec

__all__ = ["possible"]


def possible(litmus: Litmus, protocol: Spec, undecided: UndeterminedError) -> UndeterminedError:
    """All runs that a test may end in that ends ``undecided``; why these are not known, if they are not.

    >>> from isolitmus.specs import protocol
    >>> from isolitmus.specs.files.litmus_file import read_litmus
    >>> test = read_litmus('''
    ... title = "A condition that the model does not know"
    ... schedule = "a.start b a.commit"
    ... [table]
    ... columns = "id INT"
    ... init = ["INSERT INTO t VALUES (1)"]
    ... [transactions]
    ... a = "DELETE FROM t WHERE mine(id)"
    ... b = "INSERT INTO t VALUES (2)"
    ... ''', "opaque")
    >>> found = possible(test, protocol("delta-serializable"), UndeterminedError("who knows"))
    >>> sorted({run.transactions["a"].outcome for run in found.runs})
    ['ConcurrentAppendException', 'error:its own', 'no-op']
    """
    runs: list[Run] = []
    try:
        for done in every_way(lambda: execute(litmus, protocol)):
            run = observed_run(litmus, done, protocol.name)
            if all(run_differences(one, run) for one in runs):
                runs.append(run)
    except UndeterminedError as also:
        return undecided if also.problem == undecided.problem else also
    return SeveralRuns(f"{undecided.problem}: {len(runs)} runs are possible", tuple(runs))
