"""Why transactions did not commit: the conflict of each, or the silence on it, as the violation that its commit
would have been.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import attempted
from isolitmus.checker.judge.graph_semantics import conflict
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from isolitmus.model.execution import Event, Execution
    from isolitmus.model.spec import Spec
    from isolitmus.model.verdict import Violation

__all__ = ["refusals"]


def refusals(execution: Execution, protocol: Spec) -> dict[str, Violation]:
    """The violation of every transaction that the protocol refused in an execution under it, by name; and of the
    one that it is silent on, with which the run ended; of a format that
    carries its tests out in its own way, none.

    >>> from isolitmus.checker.execution.commit_loop import execute
    >>> from isolitmus.specs import litmus, protocol
    >>> spec = protocol("delta-serializable")
    >>> found = refusals(execute(litmus("reorder"), spec), spec)
    >>> found["delete"].axiom, found["delete"].cycle[0].source
    ('ConcurrentAppendException', 'insert')
    """
    form = format_named(execution.format)
    if form.carry_out is not None:
        return {}
    found: dict[str, Violation] = {}
    before: list[Event] = []
    version = 0
    for event in execution.events:
        if event.conflict is not None or event.silence is not None:
            attempt = attempted(form, replace(event, version=version + 1), before)
            violation = conflict(attempt, event.under or protocol, len(before))
            assert violation is not None, "the commit loop found it, too"
            found[event.name] = violation
        if event.silence is not None:
            break
        if not event.aborted:
            before.append(event)
            version = version if event.version is None else event.version
    return found
