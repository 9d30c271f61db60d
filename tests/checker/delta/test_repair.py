"""The repair of WriteSerializable: what it keeps, what it costs (docs/semantics.md, Corollary
6b).
"""

import pytest

from isolitmus.checker import run, separate
from isolitmus.specs import litmus, protocol, scope, spec

REPAIRED, PLAIN = "delta-write-serializable-repaired", "delta-write-serializable"


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_the_repaired_checks_keep_the_promise_up_to_the_bound(n):
    answer = separate(
        spec(REPAIRED), spec("write-serializable"), scope("table"), transactions=[n], shipped=False
    )
    assert (answer.by, answer.found) == ("symbolic", False)


@pytest.mark.slow
def test_the_plain_checks_do_not():
    answer = separate(spec(PLAIN), spec("write-serializable"), scope("table"))
    assert answer.transactions == 3
    repaired = run(answer.litmus, protocol(REPAIRED)).run.transactions["delete"]
    assert repaired.outcome == "ConcurrentAppendException"


@pytest.mark.slow
def test_the_repair_refuses_more_and_never_less():
    assert separate(spec(REPAIRED), spec(PLAIN), scope("table")).found is False
    assert separate(spec(PLAIN), spec(REPAIRED), scope("table")).transactions == 3


@pytest.mark.slow
def test_it_still_allows_the_reorder():
    kept = run(litmus("reorder"), protocol(REPAIRED)).run.transactions
    assert {t.outcome for t in kept.values()} == {"committed"}
    assert separate(spec(REPAIRED), spec("log-serializable"), scope("table")).transactions == 2


@pytest.mark.slow
def test_its_cost_has_a_smallest_example():
    """A history that is write-serializable, that the plain checks admit, and that it refuses."""
    text = separate(spec(PLAIN), spec(REPAIRED), scope("table")).litmus
    plain = run(text, protocol(PLAIN))
    assert plain.verdict(spec("write-serializable"))
    assert len(plain.serial.orders) > 0


# What would not be a repair: compactions that fail nobody (delta-io/delta 1305, 7331)


@pytest.mark.slow
def test_removals_without_data_change_may_not_be_ignored():
    """A compaction moves what was read to another file, whose removal then tells nobody
    anything.
    """
    ignoring, level = spec("delta-serializable-1305"), spec("log-serializable")
    table = scope("table")
    assert separate(ignoring, level, table).bound.startswith("up to 3 transactions")
    answer = separate(ignoring, level, table, transactions=[4], unexplained=True)
    assert answer.transactions == 4
    assert not answer.serial.orders
    kinds = sorted(type(s).__name__ for s in answer.litmus.transactions.values())
    assert kinds == ["Delete", "Insert", "Insert", "Optimize"]
    assert "Exception" in str(run(answer.litmus, protocol("delta-serializable")).run)
