"""Isolation levels of a history or a litmus test (``check``).

A litmus test on a table is judged as the history that its schedule describes: every commit is taken
as it is, without a commit protocol. An abstract history is judged as it is.
"""

from __future__ import annotations

from os import PathLike
from time import monotonic
from typing import TYPE_CHECKING

from isolitmus.checker.checks.history_verdicts import HistoryVerdicts
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.judge.level_forms import NAMED_FORMS
from isolitmus.model.budget import Budget
from isolitmus.model.history import History
from isolitmus.model.litmus import HistoryTest, Litmus
from isolitmus.model.spec import Spec
from isolitmus.model.verdict import Forbidden, Needs, Unknown
from isolitmus.specs.files.catalogue import litmus
from isolitmus.specs.files.spec_catalogue import spec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.checker.execution.serial_orders import Explanation
    from isolitmus.model.execution import Execution
    from isolitmus.model.verdict import Verdict
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike


def check(
    test: Litmus | HistoryTest | History | NameOrPath,
    levels: Sequence[SpecLike] | SpecLike,
    *,
    forms: Sequence[str] = (),
    budget: Budget | None = None,
) -> HistoryVerdicts:
    """Judge a history, or the history of a litmus test, at each level.

    Parameters
    ----------
    test : Litmus, HistoryTest, History, str or path
        Test or history; a string is a test's name or the path of its file.
    levels : one or several of Spec, str or path
        Levels to judge.
    forms : sequence of str
        Names of view and state forms of levels (``checker.execution.serial_orders``); they need
        statements.
    budget : Budget, optional
        Limits; default: three quarters of the free memory. Levels not judged before it is spent are
        unknown.

    Returns
    -------
    HistoryVerdicts
        Verdict of each level, with its witness.

    Examples
    --------
    >>> checked = check("reorder", ["serializable", "log-serializable"])
    >>> {name: str(verdict) for name, verdict in checked.levels.items()}
    {'serializable': 'allowed', 'log-serializable': 'forbidden'}
    >>> form = "write-serializable-state"
    >>> str(check("reorder", [], forms=[form]).levels[form])
    'allowed'
    >>> from isolitmus.model import History
    >>> skew = History.parse("r1(x0) r1(y0) w1(x1) r2(x0) r2(y0) w2(y2) c1 c2")
    >>> str(check(skew, "serializable").levels["serializable"])
    'forbidden'
    """
    if isinstance(test, History):
        test = HistoryTest("history", "", "", test)
    test = litmus(test)
    if isinstance(levels, (Spec, str, PathLike)):
        levels = [levels]
    asked = [spec(level) for level in levels]
    start = monotonic()
    budget = budget or Budget()
    assumptions: tuple[str, ...] = ()
    explained: dict[str, Explanation] = {}
    if isinstance(test, HistoryTest):
        history = test.history
        verdicts = {each.name: check_history(history, each, budget=budget) for each in asked}
        verdicts |= dict.fromkeys(forms, Needs(("statements",)))
        transactions, operations = len(history.transactions), history.operations
        assumptions = history.assumptions()
    else:
        from isolitmus.checker.execution.commit_loop import execute
        from isolitmus.checker.execution.serial_orders import form_verdicts, strongest_explanations

        execution = execute(test)
        unread = Unknown("raw transactions have no rows")
        verdicts = {
            each.name: unread if test.raw else _judged(execution, each, budget) for each in asked
        }
        forbidden = [name for name, v in verdicts.items() if isinstance(v, Forbidden)]
        verdicts |= form_verdicts(test, execution, forms)
        if budget.spent() is None:
            explained = strongest_explanations(test, execution, forbidden)
        transactions = len(execution.events)
        operations = sum(
            len(e.effect.writes) + sum(len(read.matched) for read in e.effect.reads)
            for e in execution.events
        )
    took = monotonic() - start
    return HistoryVerdicts(
        test.name,
        transactions,
        operations,
        verdicts,
        took,
        assumptions,
        explained,
        test,
        titles={each.name: each.title for each in asked}
        | {name: NAMED_FORMS[name].title for name in forms},
    )


def _judged(execution: Execution, spec: Spec, budget: Budget) -> Verdict:
    from isolitmus.checker.execution.commit_loop import judge_execution

    limit = budget.spent()
    return judge_execution(execution, spec) if limit is None else Unknown(str(limit))
