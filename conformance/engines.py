"""Engines by name: things that carry a litmus test out under a protocol and say what happened."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from isolitmus.model.errors import UnknownName, near

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import Run
    from isolitmus.model.spec import Spec

__all__ = ["ENGINES", "implements", "open_engine", "refuse_unable"]

ENGINES = {
    "model": "isolitmus's own executor: any protocol file, no JVM",
    "delta": "PySpark with Delta Lake: real writes, parked before their commits",
}


def refuse_unable(name: str, protocols: Iterable[str] = ()) -> None:
    """UnknownName for an engine that is none, or a protocol that it does not implement: before a
    start that takes seconds.

    >>> refuse_unable("dleta")
    Traceback (most recent call last):
    isolitmus.model.errors.UnknownName: no engine 'dleta'; did you mean 'delta'?
    """
    if name not in ENGINES:
        raise UnknownName(f"no engine '{name}'{near(name, ENGINES)}")
    if name == "delta":
        from isolitmus.conformance.tables import table_level

        for protocol in protocols:
            table_level(protocol)


def implements(name: str, protocol: str) -> bool:
    """Whether an engine implements a protocol.

    >>> implements("model", "delta-write-serializable-repaired")
    True
    >>> implements("delta", "delta-write-serializable-repaired")
    False
    """
    try:
        refuse_unable(name, [protocol])
    except UnknownName:
        return False
    return True


@contextmanager
def open_engine(name: str) -> Iterator[Callable[[Litmus, Spec], Run]]:
    """The engine as a function from a litmus test and a protocol to a run, while the block lasts.

    UnknownName for a name that is none; EngineUnavailable if it cannot be started.
    """
    refuse_unable(name)
    match name:
        case "model":
            from isolitmus.checker.running.execute import execute, observe

            yield lambda litmus, spec: observe(litmus, execute(litmus, spec), spec.name)
        case "delta":
            from isolitmus.conformance.delta import replay
            from isolitmus.conformance.session import open_session

            with open_session() as session:
                yield lambda litmus, spec: replay(litmus, spec.name, session)
