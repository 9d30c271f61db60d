"""Execution of litmus tests on an engine chosen by its name.

Raises Refused for tests that an engine does not support.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.model.errors import EngineUnavailable, IsolitmusError, Refused, TimeLimit
from isolitmus.specs.registries import engine_named, engines, format_named

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from isolitmus.model.engine import Engine, RunsTests
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import Run
    from isolitmus.model.spec import Spec

STARTS = 3
"""Maximum number of starts of an engine that ends while it runs tests."""


def refuse_unable(name: str, protocols: Iterable[str] = ()) -> None:
    """Raise UnknownName for an unknown engine, or for a protocol that it does not implement.

    This is known before the engine is started, which takes seconds.
    """
    engine = engine_named(name)
    for protocol in protocols:
        engine.refuse_unable(protocol)


def is_implemented(name: str, protocol: str) -> bool:
    """Return whether an engine implements a protocol.

    Examples
    --------
    >>> is_implemented("model", "delta-write-serializable-repaired")
    True
    >>> is_implemented("delta", "delta-write-serializable-repaired")
    False
    """
    return engine_named(name).implements(protocol)


def _refusal(engine: Engine, litmus: Litmus) -> IsolitmusError | None:
    """Return why an engine cannot run a litmus test, before it is started; None if it can.

    The test may have another format, or a transaction of another writer, which the engine does not
    run beside its own transactions, or which is not installed.
    """
    if not _of_format(engine, litmus.format):
        return _other_format(engine, litmus.name, litmus.format)
    for name, client in litmus.clients.items():
        if client.protocol is None or engine.protocols is None:
            continue
        try:
            if not engine.hosts:
                raise Refused(
                    f"{litmus.name}: {name} belongs to another writer (protocol"
                    f" {client.protocol}), and {engine.product or engine.name} runs only its"
                    " own transactions; engines that run those of others too:"
                    f" {', '.join(n for n in engines() if engine_named(n).hosts)}"
                )
            joining = joinable_engine(client.protocol)
            if joining.ready is not None:
                joining.ready()
        except IsolitmusError as error:
            return error
    return None


def joinable_engine(protocol: str) -> Engine:
    """Return the engine that runs single transactions under a protocol; else raise Refused."""
    for name in engines():
        engine = engine_named(name)
        if engine.join is not None and engine.implements(protocol):
            return engine
    raise Refused(
        f"no engine runs single transactions under {protocol} beside those of another engine"
    )


def refuse_format(engine: Engine, name: str, form: str) -> None:
    """Raise Refused, with a list of other engines, if an engine does not support a format."""
    if not _of_format(engine, form):
        raise _other_format(engine, name, form)


def _other_format(engine: Engine, name: str, form: str) -> Refused:
    """Return the error for a test whose format the engine does not support."""
    able = [each for each in engines() if _of_format(engine_named(each), form)]
    return Refused(
        f"{name} has format {form}, which {engine.product or engine.name} does not support;"
        f" engines for that format: {', '.join(able)}"
    )


def _of_format(engine: Engine, name: str) -> bool:
    """Return whether an engine supports a format."""
    return engine.format is None or format_named(engine.format).log == format_named(name).log


@contextmanager
def open_engine(name: str) -> Iterator[RunsTests]:
    """Start an engine and yield a function that runs a litmus test under a protocol.

    Parameters
    ----------
    name : str
        The engine.

    Yields
    ------
    RunsTests
        Function that lasts as long as the block, and raises Refused for a test of another format.

    Raises
    ------
    UnknownName
        There is no engine of this name.
    EngineUnavailable
        The engine cannot be started.

    Examples
    --------
    >>> from isolitmus.specs import litmus, protocol
    >>> with open_engine("model") as execute:
    ...     run = execute(litmus("reorder"), protocol("delta-write-serializable"))
    >>> run.transactions["delete"].outcome
    'committed'
    """
    engine = engine_named(name)
    with engine.open() as carry:

        def carried(litmus: Litmus, spec: Spec) -> Run:
            refused = _refusal(engine, litmus)
            if refused is not None:
                raise refused
            return carry(litmus, spec)

        yield replace(carry, carry=carried)


def run_cases(
    name: str, cases: Sequence[tuple[Litmus, Spec]], at_once: int | None = None
) -> Generator[Run | IsolitmusError, None, None]:
    """Yield the run of each case, or the error, in their order and as soon as it is known.

    An engine that ends is started again for the remaining cases, at most ``STARTS`` times in all.
    It is not started if it supports no case.

    Parameters
    ----------
    name : str
        Name of the engine.
    cases : sequence of (Litmus, Spec)
        Litmus tests and their protocols.
    at_once : int, optional
        Number of cases that run at the same time; the engine has a default.
    """
    engine = engine_named(name)
    refused = [_refusal(engine, litmus) for litmus, _ in cases]
    left = [case for case, error in zip(cases, refused, strict=True) if error is None]
    with closing(_answers(engine, left, at_once)) as answers:
        for error in refused:
            yield next(answers) if error is None else error


def _answers(
    engine: Engine, left: list[tuple[Litmus, Spec]], at_once: int | None
) -> Generator[Run | IsolitmusError, None, None]:
    """Yield the run or error of each case; restart an engine that ends, up to ``STARTS`` starts."""
    from isolitmus.conformance.workers import run_together

    def attempt(case: tuple[Litmus, Spec]) -> Run | IsolitmusError:
        try:
            return carry(*case)
        except IsolitmusError as error:
            return error

    for start in range(1, STARTS + 1):
        ended: EngineUnavailable | TimeLimit | None = None
        try:
            with (
                open_engine(engine.name) as carry,
                closing(run_together(attempt, left, engine.most(at_once))) as answers,
            ):
                for answer in answers:
                    del left[0]
                    yield answer
                    if isinstance(answer, EngineUnavailable):
                        ended = answer
                        break
        except (EngineUnavailable, TimeLimit) as error:
            ended, start = error, STARTS  # noqa: PLW2901 - what does not start once does not start
        if ended is None or start == STARTS:
            yield from [ended for _ in left if ended is not None]
            return
