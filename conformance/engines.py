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

__all__ = ["ENGINES", "UNSAID", "implements", "native", "open_engine", "refuse_unable"]

ENGINES = {
    "model": "isolitmus's own executor: any protocol file, no JVM",
    "delta": "PySpark with Delta Lake: real writes, parked before their commits",
    "deltalake": "delta-rs by its Python package, the newest release known here: handles at one version",
    "deltalake-1.6.3": "delta-rs, an older release",
}

UNSAID = {
    "model": (),
    "delta": (),
    "deltalake": ("blind", "error_class", "isolation_level", "operation"),
    "deltalake-1.6.3": ("blind", "error_class", "isolation_level", "operation"),
}
"""What each engine does not log, or not as Delta does, so that nobody can compare it."""


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
    if name.startswith("deltalake"):
        from isolitmus.conformance import deltalake

        for protocol in protocols:
            deltalake.table_level(deltalake.release_of(name), protocol)


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


def native(name: str) -> list[str]:
    """The protocols that only this engine has, sorted: it is asked for them where nobody says which.

    >>> native("deltalake-1.6.3"), native("delta")
    (['delta-rs-1.6.3-serializable'], [])
    """
    if not name.startswith("deltalake"):
        return []
    from isolitmus.conformance.deltalake import PROTOCOLS, release_of

    return sorted(PROTOCOLS[release_of(name)])


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
        case _:
            from isolitmus.conformance import deltalake

            with deltalake.talking(deltalake.release_of(name)) as worker:
                yield lambda litmus, spec: deltalake.replay(litmus, spec.name, worker)
