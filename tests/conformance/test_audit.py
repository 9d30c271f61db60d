"""Audits of the tables that litmus tests leave on real Delta: what is found at which level."""

import pytest

from isolitmus.checker.auditing.log_audit import audit
from isolitmus.conformance import replay
from isolitmus.specs import litmus

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("reorder", {("reorder", "certain")}),
        ("hole-partitioned", {("reorder", "certain"), ("bridge", "possible")}),
        ("merge-insert-beside-append", {("reorder", "possible")}),
    ],
)
def test_what_write_serializable_lets_through_is_found(session, tmp_path, name, found):
    replay(litmus(name), "delta-write-serializable", session, logs=tmp_path)
    findings = audit(tmp_path / "t").findings
    level = {("level-change", "certain")}  # the level is set by a commit of its own
    assert {(f.kind, f.certainty) for f in findings} == found | level


@pytest.mark.parametrize("name", ["reorder", "hole-partitioned", "merge-insert-beside-append"])
def test_at_serializable_nothing_is_found(session, tmp_path, name):
    replay(litmus(name), "delta-serializable", session, logs=tmp_path)
    done = audit(tmp_path / "t")
    assert done.commits > 1
    assert done.findings == ()
