"""Records of functions from what their child told, also of one that did not return."""

from pathlib import Path

import pytest

from isolitmus.jobs.readers.function_targets import FunctionTarget
from isolitmus.jobs.recording.function_runs import _records
from isolitmus.model.errors import EngineUnavailable, IsolitmusError, LitmusError, TimeLimit

FIRST, SECOND, THIRD = (FunctionTarget(Path("job.py"), name, 1, "") for name in "fgh")
PATH = {"kind": "path", "line": 0, "path": 0}
BEGAN = {"kind": "began", "line": 0}
DELETE = {"kind": "statement", "line": 2, "sql": "DELETE FROM t"}
RAISED = {"kind": "raised", "line": 3, "problem": "it raised ValueError: {x}", "name": "ValueError"}
ENDED = {"kind": "ended", "line": 0, "more": False}
DIED = "ended with status 3", "{no} output"


def run_of(function, *steps):
    return [{**PATH, "function": function}, BEGAN, *steps]


def test_a_function_that_raises_does_not_end_the_others():
    told = [*run_of(0, DELETE, RAISED, ENDED), *run_of(1, DELETE, ENDED)]
    first, second = _records(told, [FIRST, SECOND], DIED, "")
    assert second.failure is None
    assert isinstance(first.failure, LitmusError)
    assert str(first.failure) == (
        "job.py:3: f did not return on empty tables: it raised ValueError: {x}; it had executed 1"
        " statement before"
    )
    assert [one.sql for one in first.statements] == ["DELETE FROM t"]


@pytest.mark.parametrize(
    ("late", "kind", "said"),
    [
        ("", IsolitmusError, "the process of g ended with status 3; it had executed 1 statement"),
        ("g did not return within 120 s", TimeLimit, "g did not return within 120 s"),
    ],
)
def test_a_function_that_ends_the_child_leaves_the_rest_to_another_child(late, kind, said):
    told = [*run_of(0, DELETE, ENDED), *run_of(1, DELETE)]
    first, second = _records(told, [FIRST, SECOND, THIRD], DIED, late)
    assert (first.target, second.target) == (FIRST, SECOND)
    assert type(second.failure) is kind
    assert str(second.failure).startswith(f"job.py:1: {said}")


def test_a_child_without_spark_is_an_error():
    told = [{"kind": "failed", "line": 0, "problem": "no Java", "status": EngineUnavailable.status}]
    with pytest.raises(EngineUnavailable, match="no Java"):
        _records(told, [FIRST], DIED, "")
    (one,) = _records([], [FIRST, SECOND], DIED, "")
    assert "the process of f ended with status 3" in str(one.failure)
