"""Named experiments on real engines that litmus tests cannot express, with expected facts.

A litmus test consists of statements and a schedule. What runs between the statements (a DataFrame
that is counted twice, a streaming query, a process that is killed) is a function here. It takes a
session of Delta and an empty folder, or a database, and returns facts. An observation can be cited
by its name and made again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isolitmus.conformance.delta.engine import ENGINE as DELTA
from isolitmus.conformance.delta.session import open_session
from isolitmus.databases.observations.concurrent_readers import JOB, STREAM, STREAM_PRINTED
from isolitmus.databases.observations.concurrent_writers import (
    CHECKPOINT,
    CONDITIONS,
    SEVERAL,
    UNMAPPED,
    UPGRADED,
)
from isolitmus.databases.observations.databases import (
    DECLARED,
    DEFAULT,
    GRANULARITY,
    SERVERS,
    UNCOMMITTED,
    DatabaseObservation,
)
from isolitmus.databases.observations.killed_writers import COPIED, KILLED
from isolitmus.databases.observations.record import Observation, ObservationResult
from isolitmus.databases.sessions.connections import StatementError
from isolitmus.model.errors import (
    EngineUnavailable,
    IsolitmusError,
    Refused,
    UnknownName,
    brief,
    near,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

__all__ = [
    "DatabaseObservation",
    "Observation",
    "ObservationResult",
    "observation_named",
    "observations",
    "observe",
]

SHIPPED: dict[str, Observation | DatabaseObservation] = {
    one.name: one
    for one in (
        DECLARED,
        DEFAULT,
        GRANULARITY,
        UNCOMMITTED,
        JOB,
        STREAM,
        STREAM_PRINTED,
        CHECKPOINT,
        CONDITIONS,
        SEVERAL,
        UNMAPPED,
        UPGRADED,
        COPIED,
        KILLED,
    )
}


def observations() -> tuple[str, ...]:
    """Return the names of the observations, sorted.

    Examples
    --------
    >>> "job-of-several-queries" in observations()
    True
    """
    return tuple(sorted(SHIPPED))


def observation_named(name: str) -> Observation | DatabaseObservation:
    """Return the observation of this name; raise UnknownName, with a suggestion, if there is none.

    Examples
    --------
    >>> observation_named("job-of-several-queries").expected["a view"]
    [2, 3]
    >>> observation_named("killed-write")
    Traceback (most recent call last):
    isolitmus.model.errors.UnknownName: no observation 'killed-write'; did you mean 'killed-writer'?
    """
    if name not in SHIPPED:
        raise UnknownName(f"no observation '{name}'{near(name, SHIPPED)}")
    return SHIPPED[name]


def observe(engine: str, names: Sequence[str]) -> dict[str, Mapping[str, object] | IsolitmusError]:
    """Make some observations on an engine.

    Parameters
    ----------
    engine : str
        Name of the engine: ``delta`` or a database.
    names : sequence of str
        Names of observations.

    Returns
    -------
    dict of str to mapping or IsolitmusError
        Facts of each observation, or why it could not be made.

    Examples
    --------
    >>> observe("postgres", ["job-of-several-queries"])
    {'job-of-several-queries': EngineUnavailable('postgres cannot make this observation')}
    """
    wanted = {name: observation_named(name) for name in names}
    able = {
        name: one
        for name, one in wanted.items()
        if engine in (one.engines if isinstance(one, DatabaseObservation) else (DELTA,))
    }
    reason = EngineUnavailable(f"{engine} cannot make this observation")
    found: dict[str, Mapping[str, object] | IsolitmusError] = dict.fromkeys(wanted, reason)
    if not able:
        return found
    try:
        serving: AbstractContextManager[Any] = (
            SERVERS[engine]() if engine in SERVERS else open_session()
        )
        with serving as opened:
            for name, one in able.items():
                try:
                    found[name] = one.made(opened).facts
                except IsolitmusError as error:
                    found[name] = error
                except StatementError as error:
                    found[name] = Refused(f"{name}: {engine}: {brief(str(error))}")
    except IsolitmusError as error:
        found |= {name: error for name in able if found[name] is reason}
    return found
