"""The catalogue on engines as it was observed: every record is what the model predicts and the
tests expect.

No engine is needed for that. Afterwards delta-rs, Derby and PostgreSQL are asked again about a
sample; for Delta that is ``test_catalogue``.
"""

from contextlib import closing
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

import pytest
from case_checks import PARTS, sample
from catalogue_runs import ENGINES, EVIDENCE, RecordedRuns, cases
from observed_runs import ObservedRun, case_digest, harness_digest, read_runs, write_runs

from isolitmus.checker.execution.conflict_matrix import predict_case
from isolitmus.conformance.engines import run_cases
from isolitmus.databases import derby
from isolitmus.model.errors import EngineUnavailable, LitmusError, Refused, UndeterminedError
from isolitmus.model.matrix import outcome_letter
from isolitmus.specs import litmus, protocol
from isolitmus.specs.files.catalogue import matrix
from isolitmus.specs.files.evidence_files import MatrixEvidence
from isolitmus.specs.files.spec_catalogue import protocols

NOT_EXECUTED = (Refused, UndeterminedError)
"""A statement that the engine does not have, or for which it takes another index than the test
says.
"""
OTHERS = [
    pytest.param("deltalake", marks=pytest.mark.deltalake),
    pytest.param("deltalake-1.6.3", marks=pytest.mark.deltalake),
    pytest.param("derby", marks=pytest.mark.derby),
    pytest.param("postgres", marks=pytest.mark.postgres),
]


@pytest.mark.slow
@pytest.mark.parametrize("engine", [*ENGINES, "conditions on delta"])
def test_every_recorded_run_is_as_predicted_and_expected(engine):
    conditions = engine not in ENGINES
    known = RecordedRuns.of_conditions() if conditions else RecordedRuns.of_catalogue(engine)
    assert sorted(known.recorded) == sorted(known.tests), "pytest --whole --record-runs"
    assert known.recorded_differences == []
    executed = sum(one.run is not None for one in known.recorded.values())
    assert executed > len(known.recorded) // 3


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("engine", OTHERS)
def test_the_engine_does_what_is_predicted_expected_and_recorded(
    engine, seed, pytestconfig, record_property
):
    known = RecordedRuns.of_catalogue(engine)
    try:
        asked, why = known.to_ask(seed, whole=pytestconfig.option.whole)
    except EngineUnavailable as error:
        pytest.skip(str(error))
    record_property("note", why)
    observed, found = {}, []
    pairs = [(litmus(name), protocol(under)) for name, under in asked]
    with closing(run_cases(engine, pairs)) as answers:
        for case, answer in zip(asked, answers, strict=True):
            if isinstance(answer, EngineUnavailable):
                pytest.skip(str(answer))
            if isinstance(answer, Exception) and not isinstance(answer, NOT_EXECUTED):
                raise answer
            observed[case] = None if isinstance(answer, NOT_EXECUTED) else answer
            found += known.compare(case, observed[case])
    if pytestconfig.option.record_runs:
        known.record(observed)
    assert found == []


@pytest.mark.slow
def test_the_recorded_matrix_is_as_predicted(seed, pytestconfig):
    """A fifth of the cases that Delta was asked about, drawn by the seed; with ``--whole`` all."""
    pairs = matrix("pairs")
    known = MatrixEvidence.read(EVIDENCE / "pairs.toml", pairs, protocols())
    assert known.differences == {}
    asked = sample(known.letters, seed, pytestconfig.option.whole)
    assert len(asked) > 1_500
    predicted = {
        (under, place): outcome_letter(predict_case(pairs, place, protocol(under)).predicted)
        for under, place in asked
    }
    assert predicted == {key: known.letters[key] for key in asked}


# The comparison itself

CASE = ("reorder", "delta-serializable")


@pytest.fixture(scope="module")
def known():
    return RecordedRuns.of_catalogue("delta")


def test_an_outcome_that_is_flipped_is_a_difference(known):
    right = known.recorded[CASE].run
    assert known.differences(CASE, right) == []
    ended = dict(right.transactions)
    ended["delete"] = replace(ended["delete"], outcome="committed")
    wrong = replace(right, transactions=ended)
    assert any("ConcurrentAppendException" in each for each in known.differences(CASE, wrong))
    assert known.differences(CASE, right, ObservedRun(*CASE, "", wrong)) != []
    assert known.differences(CASE, right, ObservedRun(*CASE, "", None)) != []


def test_a_row_that_is_gone_is_a_difference(known):
    right = known.recorded[CASE].run
    wrong = replace(right, versions=(*right.versions[:-1], {"t": right.versions[-1]["t"][1:]}))
    assert known.differences(CASE, wrong) != []


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_written_is_read_again(engine, tmp_path):
    recorded = RecordedRuns.of_catalogue(engine).recorded
    write_runs(tmp_path / "runs.jsonl", recorded.values())
    assert read_runs(tmp_path / "runs.jsonl") == recorded


def test_tables_that_are_not_there_at_a_version_are_read_so(known, tmp_path):
    one, other = (
        ((1, None, Decimal("2.50")),),
        ((date(2026, 1, 2), datetime.fromisoformat("2026-01-02T03:00:00")), (True,)),
    )
    versions = ({"t": one, "u": other}, {}, {"t": one}, {"t": one, "u": ()})
    ran = replace(known.recorded[CASE].run, versions=versions, unread=frozenset({1}))
    write_runs(tmp_path / "runs.jsonl", [ObservedRun(*CASE, "", ran)])
    (again,) = read_runs(tmp_path / "runs.jsonl").values()
    assert again.run.versions == versions
    assert repr(again.run.versions) == repr(versions)


def test_a_line_that_is_none_is_refused_with_its_number(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text('{"litmus":"reorder"}\n')
    with pytest.raises(LitmusError, match=r"^runs.jsonl:1: not an observed run: KeyError"):
        read_runs(path)


def test_a_digest_is_of_test_protocol_release_engine_and_harness(monkeypatch):
    test = litmus("reorder")
    asked = ("delta", "4.4.0", test, "delta-serializable")
    others = [
        ("deltalake", *asked[1:]),
        ("delta", "4.4.1", *asked[2:]),
        (*asked[:2], litmus("insert-last"), asked[3]),
        (*asked[:3], "delta-write-serializable"),
    ]
    digests = {case_digest(*one) for one in [asked, *others]}
    renamed = replace(test, title="Another", source="Elsewhere", tags=("new",))
    assert case_digest(*asked[:2], renamed, asked[3]) == case_digest(*asked)
    monkeypatch.setattr("observed_runs.harness_digest", lambda _: "other")
    assert len(digests | {case_digest(*asked)}) == 6


def test_the_harness_is_the_code_that_executes_and_no_docstring(monkeypatch, tmp_path):
    def digest(text):
        (tmp_path / "own_harness.py").write_text(text)
        harness_digest.cache_clear()
        return harness_digest("own_harness")

    monkeypatch.syspath_prepend(tmp_path)
    plain = digest("X = 1\n")
    assert digest('"""About."""\n\nX = 1  # one\n') == plain
    assert digest("X = 2\n") != plain
    assert digest("from isolitmus.conformance import derby\nX = 1\n") != plain
    assert derby.__name__ == "isolitmus.databases.derby"


def test_seeds_in_a_row_draw_every_case():
    for engine in ENGINES:
        every = cases(engine)
        drawn = [sample(every, seed) for seed in range(5, 10)]
        assert sorted(case for part in drawn for case in part) == sorted(every)
        assert {len(part) - len(every) // PARTS for part in drawn} <= {0, 1}
        assert drawn != [sample(every, seed) for seed in range(10, 15)]
        assert sample(every, 7, whole=True) == every
