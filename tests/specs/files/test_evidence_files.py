"""Batches of random tests, and the file that tells which were carried out."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.conformance import agreement
from isolitmus.conformance.agreement import redraw_batch
from isolitmus.model.errors import LitmusError
from isolitmus.specs import protocol
from isolitmus.specs.files.evidence_files import (
    EACH,
    ExplorationEvidence,
    RandomBatch,
    split_batches,
)
from isolitmus.specs.registries import format_named

RANDOM = {each.name: each.strategy for each in format_named("delta").random}
KINDS = list(RANDOM)


@given(st.integers(0, 1000), st.integers(1, 1000))
def test_batches_draw_so_many_tests_from_one_seed_each(seed, count):
    asked = list(split_batches("raw", seed, count))
    assert sum(batch.count for batch in asked) == count
    assert [batch.seed for batch in asked] == list(range(seed, seed + len(asked)))
    assert all(batch.count == EACH for batch in asked[:-1])


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(KINDS)), st.integers(0, 99), st.integers(1, EACH)),
        unique=True,
    )
)
def test_what_was_written_is_read(tmp_path_factory, keys):
    path = tmp_path_factory.mktemp("random") / "random.toml"
    written = ExplorationEvidence("some engine 1")
    for key in keys:
        written.add(RandomBatch(*key, unsaid=key[2] // 2, several=key[2] // 3, drawn="these"))
    written.write(path)
    again = ExplorationEvidence.read(path, KINDS)
    assert again.engine_version == "some engine 1"
    for key in keys:
        assert again.of(RandomBatch(*key)) == written.of(RandomBatch(*key))
        assert RandomBatch(*key, drawn="these") in again
        assert RandomBatch(*key, drawn="others") not in again, "the seed draws others today"
    for kind in KINDS:
        assert again.runs(kind) == sum(n - n // 2 for k, _, n in keys if k == kind)
    assert RandomBatch("raw", 100, 1) not in again


def test_without_a_file_nothing_is_known(tmp_path):
    assert ExplorationEvidence.read(tmp_path / "none.toml", KINDS).engine_version is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("engine = 3\nbatches = []", "engine is 3; expected a string"),
        ('engine = "e"\nbatch = []', "no key 'batch'; did you mean 'batches'?"),
        ('engine = "e"\nbatches = [3]', "batches[1] is 3; expected a table"),
        ('engine = "e"\nbatches = [{ tests = "tabels" }]', "batches[1].tests is 'tabels'; expected tables or raw"),
        ('engine = "e"\nbatches = [{ tests = "raw", seed = "x" }]', "batches[1].seed is 'x'; expected an integer"),
        ('engine = "e"\nbatches = [{ tests = "raw", seed = 1, count = 9 }]', "[batches[1]] needs 'unsaid' (an integer)"),
        ('engine = "e"\nbatches = [{ tests = "raw", seed = 1, count = 9, unsaid = 0 }]', "[batches[1]] needs 'several' (an integer)"),
        ('engine = "e"\nbatches = [{ tests = "raw", seed = 1, count = 9, unsaid = 0, several = 0 }]', "[batches[1]] needs 'drawn' (a string)"),
    ],
)  # fmt: skip
def test_what_is_no_such_file_is_refused(tmp_path, text, message):
    path = tmp_path / "random.toml"
    path.write_text(text)
    with pytest.raises(LitmusError) as refused:
        ExplorationEvidence.read(path, KINDS)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tabels"], "no random tests 'tabels'; did you mean 'tables'?"),
        (["raw", "--count", "0"], "--count is 0; expected an integer of at least 1"),
        (["raw", "--seed", "-1"], "--seed is -1; expected an integer of at least 0"),
    ],
)
def test_the_command_refuses(call, words, message):
    status, out, err = call("explore", *words)
    assert (status, out) == (2, "")
    assert message in err


@pytest.mark.slow
def test_a_digest_is_of_what_is_drawn():
    def of(seed, under="delta-serializable"):
        return redraw_batch(RandomBatch("raw", seed, 2), RANDOM["raw"](), [protocol(under)])

    assert of(1) == of(1)
    assert of(1).drawn != of(2).drawn
    assert of(1).drawn != of(1, "delta-write-serializable").drawn


def test_what_is_known_is_not_asked_again(call, tmp_path, monkeypatch):
    path, known = tmp_path / "random.toml", ExplorationEvidence("some engine 1")
    monkeypatch.setattr(agreement, "redraw_batch", lambda batch, *_: replace(batch, drawn="these"))
    for batch in split_batches("tables", 1, 130):
        known.add(RandomBatch(*batch.key, unsaid=1, several=2, drawn="these"))
    known.write(path)
    words = ("explore", "tables", "--count", "130", "--evidence", path)
    status, out, _ = call(*words)
    assert status == 0
    assert "128 random tests (tables, seeds 1 to 2) on some engine 1: all as predicted." in out
    assert (
        "4 of these have several predicted runs, depending on thread timing: each observed run was"
        " one of them." in out
    )
    assert "2 more tests have no prediction" in out


@pytest.mark.parametrize(
    ("name", "kinds", "engine"),
    [
        ("random.toml", KINDS, "delta-spark 4.4.0, Spark 4.2.0"),
        ("derby.toml", ("sessions",), "10.16.1.1"),
        ("postgres.toml", ("sessions",), "15.18"),
    ],
)
def test_the_evidence_in_the_repository_reads(name, kinds, engine):
    path = Path(__file__).parents[3] / "conformance" / "evidence" / name
    assert ExplorationEvidence.read(path, kinds).engine_version == engine
