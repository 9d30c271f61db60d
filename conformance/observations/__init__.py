"""What real engines were asked that no litmus test can say: by name, each with what it is expected
to show.

A litmus test is statements and a schedule. What has a life of its own between them (a DataFrame
that is counted twice, a streaming query, a process that is killed) is a function here, from a
session of Delta and an empty folder, or from a database, to facts. Whoever cites one by its name
can have it made again.
"""

from __future__ import annotations

from isolitmus.conformance.observations.concurrent_readers import JOB, STREAM, STREAM_PRINTED
from isolitmus.conformance.observations.concurrent_writers import (
    CHECKPOINT,
    CONDITIONS,
    SEVERAL,
    UNMAPPED,
    UPGRADED,
)
from isolitmus.conformance.observations.databases import DECLARED, UNCOMMITTED, DatabaseObservation
from isolitmus.conformance.observations.killed_writers import COPIED, KILLED
from isolitmus.conformance.observations.record import Observation, ObservationResult
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
    """The names of the observations, sorted.

    >>> "job-of-several-queries" in observations()
    True
    """
    return tuple(sorted(SHIPPED))


def observation_named(name: str) -> Observation | DatabaseObservation:
    """The observation of a name; UnknownName with the near miss if there is none.

    >>> observation_named("job-of-several-queries").expected["a view"]
    [2, 3]
    >>> observation_named("job-of-queries")
    Traceback (most recent call last):
    isolitmus.model.errors.UnknownName: no observation 'job-of-queries'; did you mean 'job-of-several-queries'?
    """
    if name not in SHIPPED:
        raise UnknownName(f"no observation '{name}'{near(name, SHIPPED)}")
    return SHIPPED[name]
