"""What a command reads of the house: nothing that its answer does not need."""

import subprocess
import sys
from pathlib import Path

import pytest

WALKS = Path(__file__).parents[1] / "bench" / "walks.py"


def walked(*words):
    """How often a command carries a schedule out and parses SQL, and what it imports."""
    done = subprocess.run(
        [sys.executable, WALKS, *words], capture_output=True, text=True, check=True
    )
    row, *names = done.stdout.splitlines()
    return list(map(int, row.removesuffix(" |").split(" | ")[-2:])), names


@pytest.mark.slow
def test_a_run_on_the_model_reads_no_more_of_the_engines_than_their_names():
    figures, names = walked("run", "hole-partitioned", "--protocol", "delta-write-serializable")
    engines = {
        name for name in names if name.startswith(("isolitmus.conformance", "isolitmus.pip"))
    }
    assert engines == {"isolitmus.conformance", "isolitmus.conformance.engines"}
    assert figures == [1, 4]  # each of its four statements is parsed once
    assert "pydantic" not in names


@pytest.mark.slow
def test_separate_reads_no_verb_but_its_own():
    (executions, _), names = walked("separate", "delta-write-serializable", "log-serializable")
    others = {"runs", "comparing", "expecting", "sweeps", "checks"}
    assert not {f"isolitmus.checker.{name}" for name in others} & set(names)
    assert not [name for name in names if name.startswith("isolitmus.conformance")]
    assert executions == 1
    assert "pydantic" not in names


@pytest.mark.slow
def test_check_needs_no_search():
    _, names = walked("check", "reorder", "--level", "serializable")
    assert not {"isolitmus.checker.search.separation", "z3"} & set(names)
