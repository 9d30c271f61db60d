"""What is predicted of jobs happens on the engine, as the model says, in every respect."""

import pytest

from isolitmus.checker.robustness.prediction import predict_workload
from isolitmus.conformance.agreement import mismatches
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
