"""Named experiments on real engines that litmus tests cannot express, with expected facts.

A litmus test consists of statements and a schedule. What runs between the statements (a DataFrame
that is counted twice, a streaming query, a process that is killed) is a function here. It takes a
session of Delta and an empty folder, or a database, and returns facts. An observation can be cited
by its name and made again.
"""

from __future__ import annotations

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
    UNCOMMITTED,
    DatabaseObservation,
)
from isolitmus.databases.observations.killed_writers import COPIED, KILLED
from isolitmus.databases.observations.record import Observation, ObservationResult
from isolitmus.model.errors import UnknownName, near

__all__ = [
    "DatabaseObservation",
    "Observation",
    "ObservationResult",
    "observation_named",
    "observations",
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
