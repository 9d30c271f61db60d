"""A schedule is carried out once for each protocol that is asked about: who needs the execution is
given it.
"""

import sys
from dataclasses import replace

import pytest

from isolitmus.checker import run, separate
from isolitmus.checker.execution import commit_loop as executing
from isolitmus.checker.execution.run_result import RunResult
from isolitmus.specs import litmus, protocol, scope, spec


@pytest.fixture
def executed(monkeypatch):
    """The protocols of the executions since then, and the names of the tests that were retraced."""
    asked = []

    def counted(module, name, said):
        plain = getattr(module, name)

        def counting(*args, **kwargs):
            asked.append(said(*args, **kwargs))
            return plain(*args, **kwargs)

        for known in [m for m in sys.modules.values() if m and m.__name__.startswith("isolitmus.")]:
            if vars(known).get(name) is plain:
                monkeypatch.setattr(known, name, counting)

    counted(executing, "execute", lambda _, under=None: under and under.name)
    counted(sys.modules[RunResult.__module__], "retrace", lambda test, _: f"retraced {test.name}")
    return asked


@pytest.mark.slow
def test_a_run_on_the_model_executes_once_for_each_protocol(call, executed):
    status, _, _ = call("run", "hole-partitioned")
    assert status == 0
    assert executed == [
        "delta-serializable", "delta-snapshot-isolation", "delta-write-serializable"
    ]  # fmt: skip


@pytest.mark.slow
def test_what_separate_finds_is_executed_once(call, executed):
    status, _, _ = call("separate", "delta-write-serializable", "log-serializable")
    assert status == 1
    assert executed == ["delta-write-serializable"]


@pytest.mark.slow
def test_expectations_are_filled_for_a_file_that_is_saved(call, executed, tmp_path):
    path = tmp_path / "found.toml"
    words = ("separate", "delta-write-serializable", "log-serializable", "--save", path)
    assert call(*words)[0] == 1
    assert len(executed) == 5
    assert litmus(str(path)).expect["delta-serializable"].outcome


@pytest.mark.slow
def test_a_sweep_expects_nothing_of_what_it_prints(call, executed):
    assert call("sweep", "two-partitions", "--transactions", "2", "--cores", "1")[0] == 1
    assert executed == ["delta-write-serializable"]


def test_an_abstract_history_is_judged_by_all_levels_when_it_is_saved():
    answer = separate(spec("snapshot-isolation"), spec("serializable"))
    assert not answer.litmus.holds
    assert "serializable" in answer.file.fails


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hole-partitioned", "compacted-twice", "restore-wins"])
@pytest.mark.parametrize("under", ["delta-write-serializable", "delta-rs-write-serializable"])
def test_the_model_s_own_execution_says_what_its_run_retraced_says(name, under):
    own = run(litmus(name), protocol(under))
    retraced = replace(own, execution=None)
    assert own.execution is not None
    assert own.to_json() == retraced.to_json()
    assert own.frame == retraced.frame


@pytest.mark.slow
def test_a_search_asks_nobody_what_a_run_is_called():
    """What is found is rechecked without the verb ``run`` and without words."""
    answer = separate(spec("delta-write-serializable"), spec("log-serializable"), scope("table"))
    assert answer.litmus.expect == {}
    assert answer.explained == replace(answer, litmus=answer.file).explained
