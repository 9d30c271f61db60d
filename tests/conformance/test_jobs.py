"""What is predicted of jobs happens on the engine, as the model says, in every respect."""

import tomllib
from pathlib import Path

import pytest
from small_jobs import witnesses

from isolitmus.checker.robustness.prediction import predict_workload
from isolitmus.conformance.agreement import digest, mismatches
from isolitmus.conformance.delta import DELTA, carries
from isolitmus.specs import protocol
from isolitmus.specs.job_files import workload


@pytest.mark.spark
@pytest.mark.parametrize("under", ["delta-serializable", "delta-write-serializable"])
def test_the_examples_of_the_shop_happen(session, under):
    """Every example of the workload that ships, at both levels."""
    spec = protocol(under)
    tests = predict_workload(workload("shop"), spec).examples
    assert len(tests) > 10
    asked = ((test, spec) for test in tests)
    assert [str(found) for found in mismatches(asked, carries(session), DELTA.at_once)] == []


EVIDENCE = Path(__file__).parents[2] / "conformance" / "evidence" / "jobs.toml"


@pytest.mark.spark
@pytest.mark.parametrize("many", [8, pytest.param(100, marks=pytest.mark.wide)])
def test_counterexamples_happen(session, many):
    """What breaks a promise of small jobs does so on the engine; the evidence says of which it was seen."""
    spec = protocol("delta-write-serializable")
    cases = [(test, spec) for test in witnesses(many)]
    assert len(cases) == many
    assert [str(found) for found in mismatches(cases, carries(session), DELTA.at_once)] == []
    evidence = tomllib.loads(EVIDENCE.read_text("utf-8"))
    if many == evidence["witnesses"]:
        assert digest(cases) == evidence["drawn"]
