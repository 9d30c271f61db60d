"""Results that must agree and differ make one answer unknown; the others are given."""

import pytest

from isolitmus.checker.execution.duckdb_executor import DuckExecutor
from isolitmus.jobs.predict import prediction
from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.robust.robustness import decide_robustness
from isolitmus.model.errors import Disagreement
from isolitmus.specs import protocol

JOBS = """
ddl = ["CREATE TABLE a (id INT, x INT) USING delta", "CREATE TABLE b (id INT) USING delta"]
[jobs.change]
sql = "UPDATE a SET x = 1 WHERE id = 1"
[jobs.copy]
sql = "INSERT INTO b SELECT x FROM a"
"""
SPEC = protocol("delta-serializable")


def test_predict_answers_the_other_pairs(monkeypatch):
    class Failing(prediction._Pair):
        def prediction(self, *, examples):
            if self.names == ("change", "change"):
                raise Disagreement("two executors differ")
            return super().prediction(examples=examples)

    monkeypatch.setattr(prediction, "_Pair", Failing)
    found = predict_workload(read_workload(JOBS, "jobs"), SPEC)
    assert [one.word for one in found.meetings] == ["unknown", "never", "never", "never"]
    assert found.meetings[0].why == (
        "a defect of isolitmus: two executors differ; please report it with change"
    )


@pytest.mark.slow
def test_robust_names_the_defect(monkeypatch):
    """DuckDB's executor loses the rows of b, so that no counterexample is confirmed."""
    work = read_workload(JOBS, "jobs")
    assert decide_robustness(work, SPEC, "log-serializable").word == "unsafe"
    whole = DuckExecutor.after

    def lossy(self, order):
        tables = whole(self, order)
        return tables and {**tables, "b": ()} if "b" in (tables or {}) else tables

    monkeypatch.setattr(DuckExecutor, "after", lossy)
    found = decide_robustness(work, SPEC, "log-serializable")
    assert found.word == "unknown"
    assert "a defect of isolitmus" in found.why[0]
    assert "please report it with change and copy" in found.why[0]
