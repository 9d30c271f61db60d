"""Recheck of what a search found: written as a file, read back, judged by other means.

What a search has found, written as a litmus file, read back, and judged anew by other means.

The graph judges it from the file's text alone, with reasons; what is on a table is executed, and
explained serially by two executors. A search whose find does not stand this is broken:
Disagreement.

What is expected of a litmus test that was found: what the model predicts, for the file that
somebody saves.

A find is judged anew without it (``checker.universes.recheck``); to expect something of each
protocol of an engine and of every level takes longer than that.
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
from isolitmus.specs.files.catalogue import level, levels, protocol, related_protocols
from isolitmus.specs.files.litmus_file import read_litmus

if TYPE_CHECKING:
    from isolitmus.checker.universes.schedules import ScheduledCandidate
    from isolitmus.checker.universes.tables import Candidate
    from isolitmus.model.execution import Execution
    from isolitmus.model.history import History
    from isolitmus.model.spec import Spec
    from isolitmus.model.verdict import Verdict

__all__ = [
    "judge_candidate",
    "read_again",
    "recheck_candidate",
    "recheck_history",
    "with_expectations",
]


def recheck_candidate(
    candidate: Candidate | ScheduledCandidate, a: Spec, b: Spec, *, unexplained: bool
) -> tuple[Litmus, Forbidden, Execution, SerialOrders]:
    """A candidate as a litmus test, executed and judged anew from the file's text. Where ``a`` is a
    level, what ``b`` does not record is not recorded.
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
    """What a spec says of an execution; a protocol also forbids what it aborts when it carries the
    schedule out itself: what the other does not record, a no-op, it may check.
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
    """An abstract history as a litmus test, judged anew from the file's text; ``options`` are those
    of the command that finds it.
    """
    name, title, source = _head(a, b, options)
    test = read_again(HistoryTest(name, title, source, history))
    assert isinstance(test, HistoryTest)
    admitted, verdict = check_history(test.history, a), check_history(test.history, b)
    if not isinstance(admitted, Allowed) or not isinstance(verdict, Forbidden):
        raise Disagreement(_disagrees(test, a, b))
    return test, verdict


def _head(a: Spec, b: Spec, options: str) -> tuple[str, str, str]:
    return (
        f"{a.name}-not-{b.name}",
        f"Admitted by {a.name}, forbidden by {b.name}",
        f"isolitmus separate {a.name} {b.name}{options}",
    )


def _disagrees(test: Litmus | HistoryTest, a: Spec, b: Spec) -> str:
    return (
        f"{test.name}: the search finds it admitted by {a.name} and forbidden by {b.name}, but its"
        f" litmus file, judged anew, is not:\n{test.text}"
    )


def read_again(test: Litmus | HistoryTest) -> Litmus | HistoryTest:
    """The test as its file gives it back."""
    return read_litmus(str(test), test.name)


Test = TypeVar("Test", bound=Litmus | HistoryTest)


def with_expectations(test: Test, *names: str) -> Test:
    """The test with what the model predicts of it under the protocols of the engines that these
    specs are of; of an abstract history, what the levels say of it. A test that expects something
    already stays as it is.

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
    """Those that allow it, and those that forbid it."""
    allowed, forbidden = (
        tuple(name for name, verdict in verdicts.items() if verdict == wanted)
        for wanted in ("allowed", "forbidden")
    )
    return allowed, forbidden
