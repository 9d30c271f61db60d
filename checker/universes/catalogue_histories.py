"""Histories of the catalogue that separate two specs.

A search space is narrow: few keys, few statements, no predicate reads. The shipped tests were
collected because they tell levels apart. So they are tried before an answer is "none", whether a
search could have found them or not; fewest transactions first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import (
    execute,
    judge_execution,
    observed_run,
    unfit_table,
)
from isolitmus.checker.execution.serial_orders import explain_serially
from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.judge.read_nodes import needs_reads
from isolitmus.model.errors import Refused, UndeterminedError
from isolitmus.model.litmus import HistoryTest, Litmus
from isolitmus.model.spec_algebra import without_silences
from isolitmus.model.verdict import Allowed, Forbidden
from isolitmus.specs.files.catalogue import history_names, litmus, litmus_names
from isolitmus.specs.files.spec_catalogue import is_designed, protocol
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from isolitmus.checker.execution.serial_orders import SerialOrders
    from isolitmus.model.execution import Execution
    from isolitmus.model.spec import Spec


@dataclass(frozen=True, slots=True)
class ShippedTest:
    """Test of the catalogue with the verdict that forbids it; a table test also has its execution.

    ``serial`` are the serial orders that explain the execution.
    """

    test: Litmus | HistoryTest
    forbidden: Forbidden
    execution: Execution | None = None
    serial: SerialOrders | None = None
    released: str = ""
    """Protocol of the engine that admits the execution, too; empty if none does, or none was asked.
    """

    @property
    def transactions(self) -> int:
        """Number of transactions."""
        return _size(self.test)[0]


def shipped_history(
    a: Spec, b: Spec, *, sessions: bool = True, aborts: bool = True
) -> ShippedTest | None:
    """Return the smallest abstract history of the catalogue that ``a`` admits and ``b`` forbids.

    Without ``sessions`` or ``aborts``, only histories that have none are considered. None if there
    is no such history.

    Examples
    --------
    >>> from isolitmus.specs import level
    >>> shipped_history(level("causal"), level("read-committed")).test.name
    'history-write-cycle'
    """
    for test in shipped_histories():
        alone = all(len(session) == 1 for session in test.history.sessions)
        done = all(t.status == "committed" for t in test.history.transactions)
        if (sessions or alone) and (aborts or done):
            verdict = check_history(test.history, b)
            if isinstance(verdict, Forbidden) and isinstance(
                check_history(test.history, a), Allowed
            ):
                return ShippedTest(test, verdict)
    return None


@cache
def shipped_histories() -> tuple[HistoryTest, ...]:
    """Return the abstract histories of the catalogue, smallest first."""
    found = (test for test in map(litmus, history_names()) if isinstance(test, HistoryTest))
    return tuple(sorted(found, key=_size))


def shipped_run(
    a: Spec,
    b: Spec,
    *,
    unexplained: bool = False,
    sessions: bool = True,
    format: str,  # noqa: A002 as in a protocol's text
) -> ShippedTest | None:
    """Return the smallest table test whose run ``a`` admits, with every commit, and ``b`` forbids.

    Raw transactions are not considered; they have no rows to judge. For a rule that is being
    designed, those come last that the engine's own rule admits, too.

    Parameters
    ----------
    a, b : Spec
        Specs to separate.
    unexplained : bool
        Only runs that no serial order explains.
    sessions : bool
        False considers only tests without sessions.
    format : str
        Table format.

    Returns
    -------
    ShippedTest or None
        None if there is no such test.

    Examples
    --------
    >>> from isolitmus.specs import level, protocol
    >>> a, b = protocol("delta-serializable"), level("log-serializable")
    >>> shipped_run(a, b, format="delta").transactions
    2
    """
    admits, permits = compile_spec(a), compile_spec(without_silences(b))
    reads = needs_reads(a) or needs_reads(b)
    # With a level, an execution in which all commit equals one without checks.
    is_level = a.format is None and not a.labels
    frame = partial(format_named(format).frame, reasons=False, reads=reads)
    released = _released(a, b, format) if is_designed(a) else ()
    known: ShippedTest | None = None
    for k, test in enumerate(_on_tables(format)):
        if not sessions and any(client.session for client in test.clients.values()):
            continue
        if is_level:
            seen = frame(_unchecked(format)[k].events)
            if permits(seen) or not admits(seen):
                continue
        if unfit_table(test, a):
            continue
        try:
            execution = execute(test, a)
            seen = frame(execution.events)
            refused = any(event.aborted for event in execution.events) or not admits(seen)
        # For example for table hints, or where a relation is not determined.
        except (Refused, UndeterminedError):
            continue
        if not refused and not permits(seen):
            verdict = judge_execution(execution, b)
            serial = explain_serially(test, observed_run(test, execution, a.name))
            if isinstance(verdict, Forbidden) and (serial.unexplained or not unexplained):
                found = ShippedTest(test, verdict, execution, serial)
                too = next((one.name for one in released if _commits(test, one)), "")
                if not too:
                    return found
                known = known or replace(found, released=too)
    return known


def _released(a: Spec, b: Spec, form: str) -> list[Spec]:
    """Return the engine's own protocols that promise the level ``b``, or what ``a`` promises; else
    all of them.
    """
    engine = [*map(protocol, format_named(form).protocols)]
    return [one for one in engine if {*one.promises} & {b.name, *a.promises}] or engine


def _commits(test: Litmus, rule: Spec) -> bool:
    """Return whether every transaction of a test commits under a protocol."""
    try:
        return not any(event.aborted for event in execute(test, rule).events)
    except (Refused, UndeterminedError):
        return False


@cache
def _on_tables(form: str) -> tuple[Litmus, ...]:
    """Return the shipped table tests of a format, except raw ones, fewest transactions first."""
    tests = map(litmus, litmus_names(format_named(form).log))
    on_tables = (test for test in tests if isinstance(test, Litmus) and not test.raw)
    return tuple(sorted((test for test in on_tables if test.format == form), key=_size))


@cache
def _unchecked(form: str) -> tuple[Execution, ...]:
    """Return the executions of these tests with every commit succeeding."""
    return tuple(map(execute, _on_tables(form)))


def _size(test: HistoryTest | Litmus) -> tuple[int, ...]:
    """Return a sort key: number of transactions, then tables, clients, placeholders, steps."""
    if isinstance(test, HistoryTest):
        return len(test.history.transactions), test.history.operations
    places = [s for s in test.transactions.values() if "{" in s.sql]
    parts = (test.transactions, test.tables, test.clients, places, test.schedule.steps)
    return tuple(map(len, parts))
