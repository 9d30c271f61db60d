"""Recheck of search results: write as a litmus file, read back, judge by other means.

The dependency graph is judged from the text of the file alone, with reasons. Table tests are
executed, and explained serially by two executors. A result that does not pass raises Disagreement:
the search is broken.

`with_expectations` adds what the model predicts, for a file that is saved. This takes longer than
the recheck, which does without it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from isolitmus.checker.execution.commit_loop import (
    abort_violations,
    execute,
    judge_execution,
    observed_run,
    recording_spec,
    without_checks,
)
from isolitmus.checker.execution.run_result import run
from isolitmus.checker.execution.serial_orders import SerialOrders, explain_serially
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.model.errors import Disagreement
from isolitmus.model.litmus import Expectation, HistoryTest, Litmus
from isolitmus.model.verdict import Allowed, Forbidden
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.spec_catalogue import level, levels, protocol, related_protocols

if TYPE_CHECKING:
    from isolitmus.checker.universes.schedules import ScheduledCandidate
    from isolitmus.checker.universes.tables import Candidate
    from isolitmus.model.execution import Execution
    from isolitmus.model.history import History
    from isolitmus.model.spec import Spec
    from isolitmus.model.verdict import Verdict


def recheck_candidate(
    candidate: Candidate | ScheduledCandidate, a: Spec, b: Spec, *, unexplained: bool
) -> tuple[Litmus, Forbidden, Execution, SerialOrders]:
    """Return a candidate as a litmus test, executed and judged again from the text of its file.

    If ``a`` is a level, commits that ``b`` does not record are not recorded.

    Raises
    ------
    Disagreement
        If ``a`` does not admit it, ``b`` does not forbid it, or, with ``unexplained``, a serial
        order explains it.
    """
    plain = candidate.litmus(*_head(a, b, " --unexplained" if unexplained else ""))
    litmus = read_again(plain)
    assert isinstance(litmus, Litmus)
    execution = execute(litmus, without_checks(b) if recording_spec(a, b) is b else a)
    aborted = [event.name for event in execution.events if event.aborted]
    admitted = judge_execution(execution, a)
    verdict = judge_candidate(litmus, execution, b)
    if aborted or not isinstance(admitted, Allowed) or not isinstance(verdict, Forbidden):
        raise Disagreement(_disagrees(litmus, a, b))
    serial = explain_serially(litmus, observed_run(litmus, execution, a.name))
    if unexplained and not serial.unexplained:
        raise Disagreement(f"{litmus.name}: the search finds it unexplained, its file is not")
    return litmus, verdict, execution, serial


def judge_candidate(litmus: Litmus, execution: Execution, spec: Spec) -> Verdict:
    """Return the verdict of a spec on an execution.

    A protocol also forbids what it aborts when it executes the schedule itself: it may check a
    no-op that the other protocol does not record.
    """
    verdict = judge_execution(execution, spec)
    if isinstance(verdict, Forbidden) or any(axiom.test != "empty" for axiom in spec.axioms):
        return verdict
    stopped = abort_violations(execute(litmus, spec), spec).values()
    refused = tuple(violation for violation in stopped if violation.kind != "silent")
    return Forbidden(refused) if refused else verdict


def recheck_history(
    history: History, a: Spec, b: Spec, options: str = ""
) -> tuple[HistoryTest, Forbidden]:
    """Return an abstract history as a litmus test, judged again from the text of its file.

    ``options`` are those of the command that finds it.

    Raises
    ------
    Disagreement
        If ``a`` does not admit it, or ``b`` does not forbid it.
    """
    name, title, source = _head(a, b, options)
    test = read_again(HistoryTest(name, title, source, history))
    assert isinstance(test, HistoryTest)
    admitted, verdict = check_history(test.history, a), check_history(test.history, b)
    if not isinstance(admitted, Allowed) or not isinstance(verdict, Forbidden):
        raise Disagreement(_disagrees(test, a, b))
    return test, verdict


def _head(a: Spec, b: Spec, options: str) -> tuple[str, str, str]:
    """Return name, title and command of a counterexample's litmus file."""
    return (
        f"{a.name}-not-{b.name}",
        f"Admitted by {a.name}, forbidden by {b.name}",
        f"isolitmus separate {a.name} {b.name}{options}",
    )


def _disagrees(test: Litmus | HistoryTest, a: Spec, b: Spec) -> str:
    """Return the message that a recheck contradicts the search."""
    return (
        f"{test.name}: the search finds it admitted by {a.name} and forbidden by {b.name}, but its"
        f" litmus file, judged anew, is not:\n{test.text}"
    )


def read_again(test: Litmus | HistoryTest) -> Litmus | HistoryTest:
    """Return the test as read back from its file."""
    return read_litmus(str(test), test.name)


Test = TypeVar("Test", bound=Litmus | HistoryTest)


def with_expectations(test: Test, *names: str) -> Test:
    """Return the test with the predictions of the model.

    These are under the related protocols of the named specs; for an abstract history, the verdicts
    of all levels. A test that already has expectations is returned as it is.

    Examples
    --------
    >>> from isolitmus.specs import litmus
    >>> bare = replace(litmus("reorder"), expect={})
    >>> with_expectations(bare, "log-serializable").expect["delta-serializable"].outcome["delete"]
    ('ConcurrentAppendException',)
    """
    if isinstance(test, HistoryTest):
        if test.holds or test.fails:
            return test
        holds, fails = _levels({n: str(check_history(test.history, level(n))) for n in levels()})
        filled: Litmus | HistoryTest = replace(test, holds=holds, fails=fails)
    else:
        if test.expect:
            return test
        filled = replace(
            test,
            expect={
                name: _expected(test, name) for name in related_protocols(*names, form=test.format)
            },
        )
    again = read_again(filled)
    assert isinstance(again, type(test))
    return again


def _expected(test: Litmus, under: str) -> Expectation:
    """Return the expectation of a test under a protocol, as the model predicts it."""
    done = run(test, protocol(under))
    holds, fails = _levels({name: str(verdict) for name, verdict in done.levels.items()})
    seen = done.run.transactions
    return Expectation(
        outcome={name: (t.outcome,) for name, t in seen.items()},
        reads={name: t.rows for name, t in seen.items() if t.rows is not None},
        tables=done.run.tables,
        serial=done.serial.orders,
        holds=holds,
        fails=fails,
    )


def _levels(verdicts: dict[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the levels that allow it, and those that forbid it."""
    allowed, forbidden = (
        tuple(name for name, verdict in verdicts.items() if verdict == wanted)
        for wanted in ("allowed", "forbidden")
    )
    return allowed, forbidden
