"""Proposed rules on the code of their pull requests, as it was observed.

Every record is what the text of the proposal predicts; no engine is needed for that. With
``--classes FOLDER`` the engine ``delta:FOLDER`` is asked about the litmus tests of proposals whose
pull requests the folder has, and with ``--record-runs`` its answers are recorded. Searched histories are
recorded by ``bench/replay_proposal.py``.
"""

from contextlib import closing
from dataclasses import replace

import pytest
from proposal_runs import (
    EVIDENCE,
    ProposalRun,
    add_proposal_runs,
    cases,
    is_code_of,
    proposal_digest,
    proposed_protocols,
    read_proposal_runs,
    write_proposal_runs,
)

from isolitmus.checker.execution.run_result import run
from isolitmus.conformance.class_folder import read_class_folder
from isolitmus.conformance.engines import run_cases
from isolitmus.model.errors import LitmusError
from isolitmus.specs import litmus, protocol

RECORDED = sorted(EVIDENCE.glob("*.jsonl"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_recorded_run_is_as_the_proposal_predicts(path, record_property):
    spec, runs = protocol(path.stem), read_proposal_runs(path)
    assert {each.observed.protocol for each in runs} == {spec.name}
    assert [line for each in runs for line in each.differences(spec)] == []
    old = sum(not each.is_current(spec) for each in runs)
    if old:
        record_property("note", f"{spec.name}: {old} of {len(runs)} runs recorded as asked before")


def test_each_proposal_that_is_recorded_is_shipped_and_each_case_is_recorded():
    assert {path.stem for path in RECORDED} <= {*proposed_protocols()}
    texts = {each.case: str(each.test) for path in RECORDED for each in read_proposal_runs(path)}
    missing = [case for case in cases() if texts.get(case) != str(litmus(case[0]))]
    assert missing == [], "pytest --classes FOLDER --record-runs, for each folder of classes"


@pytest.mark.spark
@pytest.mark.timeout(3600)
def test_the_code_of_the_pull_requests_does_what_the_proposal_predicts(pytestconfig):
    folder = pytestconfig.option.classes
    if folder is None:
        pytest.skip("no --classes FOLDER")
    code = read_class_folder(folder)
    asked = [case for case in cases() if is_code_of(code, protocol(case[1]))]
    assert asked, f"no proposal is of the pull requests of {folder} only"
    pairs = [(litmus(name), protocol(under)) for name, under in asked]
    found, runs = [], []
    with closing(run_cases(f"delta:{folder}", pairs)) as answers:
        for (test, spec), answer in zip(pairs, answers, strict=True):
            if isinstance(answer, Exception):
                raise answer
            runs.append(ProposalRun.record(test, spec, answer))
            found += runs[-1].differences(spec)
    if pytestconfig.option.record_runs:
        for name in {under for _, under in asked}:
            own = [each for each in runs if each.observed.protocol == name]
            add_proposal_runs(EVIDENCE / f"{name}.jsonl", own)
    assert found == []


# The record itself


@pytest.fixture(scope="module")
def recorded():
    """A run of the model in the place of an engine's."""
    test, spec = litmus("reorder"), protocol("delta-serializable")
    version = "delta-spark 4.4.0 with pull 1 at 12345678, Spark 4.2.0"
    seen = replace(run(test, spec).run, engine="delta:/x", engine_version=version)
    return ProposalRun.record(test, spec, seen)


def test_a_record_is_read_as_it_was_written_and_a_new_run_replaces_the_old_one(recorded, tmp_path):
    path = tmp_path / "runs.jsonl"
    write_proposal_runs(path, [recorded])
    add_proposal_runs(path, [recorded])
    (again,) = read_proposal_runs(path)
    assert (again.case, again.observed) == (recorded.case, recorded.observed)
    assert str(again.test) == str(recorded.test)
    assert again.is_current(protocol("delta-serializable"))
    assert "/x" not in path.read_text("utf-8")


def test_an_outcome_that_is_flipped_is_a_difference(recorded):
    spec = protocol("delta-serializable")
    assert recorded.differences(spec) == []
    seen = recorded.observed.run
    ended = {
        **seen.transactions,
        "delete": replace(seen.transactions["delete"], outcome="committed"),
    }
    wrong = replace(
        recorded, observed=replace(recorded.observed, run=replace(seen, transactions=ended))
    )
    assert any("ConcurrentAppendException" in each for each in wrong.differences(spec))


def test_a_digest_is_of_test_level_confs_and_version_but_not_of_axioms():
    test, spec = litmus("reorder"), protocol("delta-serializable")
    digest = proposal_digest(test, spec, "1")
    assert proposal_digest(test, replace(spec, axioms=()), "1") == digest
    assert proposal_digest(replace(test, title="Another", expect={}), spec, "1") == digest
    others = {
        proposal_digest(litmus("insert-last"), spec, "1"),
        proposal_digest(test, replace(spec, confs={"spark.x": "true"}), "1"),
        proposal_digest(test, replace(spec, setting="delta.isolationLevel = X"), "1"),
        proposal_digest(test, spec, "2"),
    }
    assert len(others | {digest}) == 5


def test_a_line_that_is_none_is_refused_with_its_number(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text('{"litmus":"reorder"}\n')
    with pytest.raises(LitmusError, match=r"^runs.jsonl:1: not a recorded run: KeyError"):
        read_proposal_runs(path)


def test_a_fork_that_has_the_flag_of_another_case_does_not_record_it(tmp_path):
    (tmp_path / "classes.toml").write_text(
        """release = "4.4.0"
confs = [
    "spark.databricks.delta.optimize.conflictReconciliation.enabled",
    "spark.databricks.delta.rowLevelConcurrency.enabled",
]
files = ["ConflictChecker.scala"]

[[pulls]]
number = 9
repository = "sezruby/delta"
head = "08bb237b0334a29bae103f789b45d6fe02531998"
date = "2026-07-21"
"""
    )
    code = read_class_folder(tmp_path)
    assert [name for name in proposed_protocols() if is_code_of(code, protocol(name))] == [
        "case-4-repaired-serializable", "case-4-repaired-write-serializable",
        "case-4-serializable", "case-4-write-serializable",
    ]  # fmt: skip
