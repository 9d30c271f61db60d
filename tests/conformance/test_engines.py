"""Engines as records: what is offered is carried out, and what is of another format is refused."""

from contextlib import contextmanager
from dataclasses import replace

import pytest

from isolitmus.checker import run
from isolitmus.conformance import engines
from isolitmus.model.engine import Engine, RunsTests
from isolitmus.model.errors import Refused
from isolitmus.specs import litmus, protocol
from isolitmus.specs import registries as known
from isolitmus.specs.registries import ENGINES, FORMATS, format_named

REORDER, UNDER = litmus("reorder"), protocol("delta-serializable")


@pytest.fixture
def other():
    """A litmus test of a format of its own, and an engine of that format; ``starts`` are its
    starts.
    """
    paper = replace(format_named("delta"), name="paper", log="paper")
    starts = []

    @contextmanager
    def started():
        starts.append("scribe")
        yield RunsTests("1", lambda litmus, spec: replace(run(litmus, spec).run, engine="scribe"))

    scribe = Engine("scribe", "writes by hand", started, format="paper")
    with FORMATS.offered(paper), ENGINES.offered(scribe):
        yield replace(REORDER, format="paper"), scribe, starts


def test_an_offered_engine_carries_out_what_is_of_its_format(other):
    test, _, starts = other
    under = replace(UNDER, format="paper")
    (seen,) = engines.run_cases("scribe", [(test, under)])
    assert (seen.engine, starts) == ("scribe", ["scribe"])
    assert "scribe" in known.engines()


def test_a_test_of_another_format_is_refused_with_the_engines_of_its_own(other):
    """Nothing is started for it."""
    test, _, starts = other
    (there,) = engines.run_cases("delta", [(test, UNDER)])
    (here,) = engines.run_cases("scribe", [(REORDER, UNDER)])
    assert isinstance(there, Refused)
    assert str(there) == (
        "reorder has format paper, which PySpark with Delta does not support; engines for that"
        " format: model, scribe"
    )
    assert str(here).endswith("engines for that format: delta, deltalake, deltalake-1.6.3, model")
    assert starts == []
    with engines.open_engine("scribe") as carry, pytest.raises(Refused, match="format delta"):
        carry(REORDER, UNDER)


def test_a_name_is_taken_once(other):
    _, scribe, _ = other
    assert known.ENGINES.offer(scribe) is scribe
    for name in ("scribe", "delta", "deltalake-1.6.6"):
        with pytest.raises(ValueError, match=f"another engine '{name}' already"):
            known.ENGINES.offer(replace(scribe, name=name))


@pytest.mark.slow
@pytest.mark.parametrize("test", ["deleted-during-spark-optimize", "delta-rs-appends-not-blind"])
def test_another_writer_that_is_not_installed_is_told_before_anything_starts(
    call, monkeypatch, tmp_path, test
):
    monkeypatch.setenv("ISOLITMUS_ENGINES", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))  # no Java there
    status, out, err = call("run", test, "--engine", "delta")
    assert (status, out) == (4, "")
    assert "deltalake 1.6.6 is not installed; `isolitmus install deltalake-1.6.6`" in err
    status, _, err = call("run", test, "--engine", "deltalake")
    assert status == 2
    assert "belongs to another writer (protocol delta-rs-serializable)" in err
    assert "engines that run those of others too: delta, model" in err


def test_every_engine_implements_protocols_of_its_own_format():
    for name in known.engines():
        engine = known.engine_named(name)
        for under in engine.protocols or ():
            assert protocol(under).format == engine.format


def test_what_needs_nothing_is_not_installed(call):
    status, _, err = call("install", "model")
    assert status == 2
    assert "model needs nothing to be installed" in err


@pytest.mark.slow
def test_a_matrix_of_another_format_is_refused(other, call):
    _, _, starts = other
    status, _, err = call("matrix", "--engine", "scribe", "--protocol", "delta-serializable")
    assert (status, starts) == (2, [])
    assert "pairs has format delta, which scribe does not support; engines for that format" in err
