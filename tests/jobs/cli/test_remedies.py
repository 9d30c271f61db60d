"""What the demo advises: each remedy is asked of the same search, and tried on the history that was
found.
"""

import pytest

from isolitmus.checker import separate
from isolitmus.cli import demo as remedies
from isolitmus.cli.demo import QUESTIONS, REMEDIES, UNIVERSE, Remedy, advise, follow_remedy
from isolitmus.specs import scope, spec


@pytest.fixture(scope="module")
def inside():
    return scope(UNIVERSE)


@pytest.fixture(scope="module")
def found(inside):
    return [separate(spec(q.a), spec(q.b), inside, unexplained=q.unexplained) for q in QUESTIONS]


@pytest.mark.slow
def test_all_that_is_advised_helps(found, inside):
    for answer in found:
        given = list(advise(answer, inside))
        assert len(given) == len(REMEDIES) + 1
        for one in given:
            assert one.helps, one
        serializable, merge, apart, alone = given
        for one in (serializable, merge):
            assert "search then finds no counterexample (up to 3 transactions" in one.checked
            assert one.cost.startswith(
                "With the same schedule the protocol aborts cleanup with Conc"
            )
            assert "Retry: cleanup commits. late_order, then " in one.cost
        assert "commits" in apart.cost
        assert "aborts" not in apart.cost
        assert alone.checked.endswith("produces this table.")


@pytest.mark.slow
def test_what_does_not_help_is_said(found, inside, monkeypatch):
    fewer = Remedy("Compact less", "So.", "", jobs={"compaction": None})
    monkeypatch.setattr(remedies, "REMEDIES", (fewer,))
    one, _ = advise(found[0], inside)
    assert not one.helps
    assert "search then finds a counterexample with 2" in one.checked


@pytest.mark.slow
def test_the_history_gets_the_statements_of_the_remedy(found, inside):
    _, merge, apart = REMEDIES
    for answer in found:
        merged, other = (follow_remedy(answer.litmus, inside, remedy) for remedy in (merge, apart))
        assert merged.transactions["late_order"].sql == merge.sql
        assert other.transactions["late_order"].sql == apart.sql
        for test in (merged, other):
            assert test.schedule == answer.litmus.schedule
            assert test.transactions["cleanup"] == answer.litmus.transactions["cleanup"]
