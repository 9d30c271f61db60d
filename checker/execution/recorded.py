"""Which commits are recorded: a protocol may drop one that finds nothing to do, and shows it as a no-op."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import NO_OP
from isolitmus.checker.judge.graph_semantics import labels
from isolitmus.model.execution import Event

if TYPE_CHECKING:
    from isolitmus.model.execution import Effect
    from isolitmus.model.format import Format
    from isolitmus.model.spec import Label, Spec

__all__ = ["recorder", "unchecked", "unrecorded"]


def recorder(a: Spec, b: Spec) -> Spec | None:
    """Which of two specs says what is not recorded: the protocol, if the other is a level; None if neither does.
    Of two protocols each checks what it would record itself.

    >>> from isolitmus.specs import level, protocol
    >>> delta = protocol("delta-serializable")
    >>> recorder(level("serializable"), delta) is delta, recorder(delta, delta)
    (True, None)
    """
    protocols = [spec for spec in (a, b) if spec.format is not None or _drops(spec)]
    return protocols[0] if len(protocols) == 1 and _drops(protocols[0]) else None


def unchecked(protocol: Spec) -> Spec:
    """A protocol that records what this one does, and checks nothing.

    >>> from isolitmus.specs import protocol
    >>> [label.name for label in unchecked(protocol("delta-serializable")).labels]
    ['no-op']
    """
    return replace(protocol, axioms=(), silences=(), labels=_drops(protocol))


def unrecorded(form: Format, done: Effect, protocol: Spec) -> bool:
    """Whether a protocol does not record a commit (which is a matter of its sets alone).

    >>> from isolitmus.checker.execution.commit_loop import execute
    >>> from isolitmus.specs import litmus, protocol
    >>> from isolitmus.specs.registries.formats import format_named
    >>> done = execute(litmus("noop-delete-recorded")).events[-1].effect
    >>> delta = "delta-serializable", "delta-write-serializable"
    >>> [unrecorded(format_named("delta"), done, protocol(name)) for name in delta]
    [True, False]
    """
    alone = form.frame([Event("T", done, 0, 1)], reasons=False)
    return bool(labels(alone, protocol).get(NO_OP))


def _drops(spec: Spec) -> tuple[Label, ...]:
    return tuple(label for label in spec.labels if label.name == NO_OP)
