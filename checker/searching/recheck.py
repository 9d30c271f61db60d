"""What a search has found, written as a litmus file, read back, and judged anew by other means.

The graph judges it from the file's text alone, with reasons; what is on a table is executed, and
explained serially by two executors. A search whose find does not stand this is broken: Disagreement.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.checker.reading.histories import check_history
from isolitmus.checker.running.execute import execute, judge_execution, observe
from isolitmus.checker.running.serial import Disagreement, Serial, explain_serially
from isolitmus.checker.runs import run
from isolitmus.model.litmus import Expectation, HistoryTest, Litmus
from isolitmus.model.verdict import Allowed, Forbidden
from isolitmus.specs.catalogue import level, levels, protocol, relatives
from isolitmus.specs.litmus_file import read_litmus
from isolitmus.specs.litmus_text import litmus_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolitmus.checker.searching.universe import Candidate
    from isolitmus.model.history import History
    from isolitmus.model.spec import Spec

__all__ = ["recheck_candidate", "recheck_history"]


def recheck_candidate(
    candidate: Candidate, a: Spec, b: Spec, *, unexplained: bool
) -> tuple[Litmus, Forbidden, Serial]:
    """A candidate as a litmus test, executed and judged anew from the file's text."""
    plain = candidate.litmus(*_head(a, b, " --unexplained" if unexplained else ""))
    litmus = _reread(plain)
    assert isinstance(litmus, Litmus)
    execution = execute(litmus, a)
    aborted = [event.name for event in execution.events if event.aborted]
    admitted = judge_execution(execution, a)
    verdict = judge_execution(execution, b)
    if aborted or not isinstance(admitted, Allowed) or not isinstance(verdict, Forbidden):
        raise Disagreement(_disagrees(litmus, a, b))
    serial = explain_serially(litmus, observe(litmus, execution, a.name))
    if unexplained and not serial.unexplained:
        raise Disagreement(f"{litmus.name}: the search finds it unexplained, its file is not")
    expected = _reread(_with_expectations(litmus, relatives(a.name, b.name)))
    assert isinstance(expected, Litmus)
    return expected, verdict, serial


def recheck_history(history: History, a: Spec, b: Spec) -> tuple[HistoryTest, Forbidden]:
    """An abstract history as a litmus test, judged anew from the file's text."""
    name, title, source = _head(a, b, "")
    test = _reread(HistoryTest(name, title, source, history))
    assert isinstance(test, HistoryTest)
    admitted, verdict = check_history(test.history, a), check_history(test.history, b)
    if not isinstance(admitted, Allowed) or not isinstance(verdict, Forbidden):
        raise Disagreement(_disagrees(test, a, b))
    judged = {name: str(check_history(history, level(name))) for name in levels()}
    holds = tuple(n for n, v in judged.items() if v == "allowed")
    fails = tuple(n for n, v in judged.items() if v == "forbidden")
    expected = _reread(replace(test, holds=holds, fails=fails))
    assert isinstance(expected, HistoryTest)
    return expected, verdict


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


def _reread(test: Litmus | HistoryTest) -> Litmus | HistoryTest:
    return read_litmus(litmus_text(test), test.name)


def _with_expectations(litmus: Litmus, names: Iterable[str]) -> Litmus:
    """The test with what the model predicts of it under these protocols."""
    expect: dict[str, Expectation] = {}
    for name in names:
        done = run(litmus, protocol(name))
        verdicts = {n: str(verdict) for n, verdict in done.levels.items()}
        expect[name] = Expectation(
            outcome={n: (t.outcome,) for n, t in done.run.transactions.items()},
            reads={n: t.rows for n, t in done.run.transactions.items() if t.rows is not None},
            tables=done.run.tables,
            serial=done.serial.orders,
            holds=tuple(n for n, v in verdicts.items() if v == "allowed"),
            fails=tuple(n for n, v in verdicts.items() if v == "forbidden"),
        )
    return replace(litmus, expect=expect)
