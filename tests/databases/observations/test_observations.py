"""What no litmus test can say, on real Delta: each observation shows what it is expected to
show.
"""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from isolitmus.databases.observations import (
    DatabaseObservation,
    Observation,
    ObservationResult,
    observation_named,
    observations,
)
from isolitmus.databases.observations.databases import SERVERS
from isolitmus.model.errors import EngineFailed, EngineUnavailable

Py4JError = pytest.importorskip(
    "py4j.protocol", reason="the extra spark is not installed"
).Py4JError

EVERY = [observation_named(name) for name in observations()]
NAMES = [
    pytest.param(one.name, marks=pytest.mark.wide) if one.wide else one.name
    for one in EVERY
    if isinstance(one, Observation)
]
ON_DATABASES = [
    pytest.param(one, engine, marks=getattr(pytest.mark, engine))
    for one in EVERY
    if isinstance(one, DatabaseObservation)
    for engine in one.engines
]


@pytest.mark.spark
@pytest.mark.parametrize("name", NAMES)
def test_it_shows_what_is_expected(session, name):
    seen = observation_named(name).made(session)
    assert seen.as_expected, str(seen)


@pytest.mark.parametrize(("one", "engine"), ON_DATABASES)
def test_databases_show_what_is_expected(one, engine):
    """Twice on one server: nothing of it stays."""
    try:
        with SERVERS[engine]() as server:
            seen = [one.made(server) for _ in range(2)]
        assert seen == [ObservationResult(one.name, one.expected, one.expected)] * 2
    except EngineUnavailable as error:
        pytest.skip(str(error))


def test_what_was_not_expected_stands_beside_what_was(tmp_path):
    one = observation_named("job-of-several-queries")
    found = {"a DataFrame": [2, 3], "a view": [2, 2], "more": 1}
    session = SimpleNamespace(directory=tmp_path, jvm=None)
    seen = replace(one, observe=lambda *_: found).made(session)
    assert not seen.as_expected
    assert str(seen) == (
        "job-of-several-queries: FAILED\n"
        "  a DataFrame: [2, 3]\n"
        "  a view: [2, 2] (expected [2, 3])\n"
        "  a version: None (expected [2, 2])\n"
        "  more: 1 (expected None)"
    )


def test_what_delta_fails_at_is_one_sentence(tmp_path):
    def fails(*_):
        raise Py4JError("no such thing")

    one = replace(observation_named("job-of-several-queries"), observe=fails)
    with pytest.raises(
        EngineFailed, match=r"^job-of-several-queries: Delta fails outside the observed steps"
    ):
        one.made(SimpleNamespace(directory=tmp_path, jvm=None))
