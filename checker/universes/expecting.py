"""What is expected of a litmus test that was found: what the model predicts, for the file that somebody saves.

A find is judged anew without it (``checker.universes.recheck``); to expect something of each protocol of an engine
and of every level takes longer than that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from isolitmus.checker.execution.run_result import run
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.universes.recheck import reread
from isolitmus.model.litmus import Expectation, HistoryTest, Litmus
from isolitmus.specs.files.catalogue import level, levels, protocol, relatives

__all__ = ["expecting"]

Test = TypeVar("Test", bound=Litmus | HistoryTest)


def expecting(test: Test, *names: str) -> Test:
    """The test with what the model predicts of it under the protocols of the engines that these specs are of;
    of an abstract history, what the levels say of it. A test that expects something already stays as it is.

    >>> from isolitmus.specs import litmus
    >>> bare = replace(litmus("reorder"), expect={})
    >>> expecting(bare, "log-serializable").expect["delta-serializable"].outcome["delete"]
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
            expect={name: _expected(test, name) for name in relatives(*names, form=test.format)},
        )
    again = reread(filled)
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
