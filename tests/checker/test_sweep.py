"""``sweep``: exact counts, by bits as by execution, and what they say of Delta's promises."""

import json

import pytest

from isolitmus.checker.reading.admission import admission
from isolitmus.checker.searching.table_bits import uncountable
from isolitmus.checker.searching.universe import candidates
from isolitmus.checker.sweep import EXPLAINED, IN_LOG_ORDER, log_order_gives, sweep
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs import scope, spec

PROTOCOLS = ("delta-serializable", "delta-write-serializable", "delta-write-serializable-repaired")


def counts(done):
    return {
        name: (c.admitted, c.forbidden, c.unexplained, c.not_log_order)
        for name, c in done.protocols.items()
    }


@pytest.fixture
def small():
    return scope("two-partitions")


@pytest.mark.parametrize(
    "n", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)]
)
def test_counting_by_bits_is_counting_one_by_one(small, n, monkeypatch):
    asked = [spec(name) for name in PROTOCOLS]
    judged = [spec(name) for name in ("log-serializable", "serializable", "write-serializable", "snapshot-isolation", "prefix-consistency")]  # fmt: skip
    by_bits = sweep(small, n, protocols=asked, levels=judged)
    monkeypatch.setattr("isolitmus.checker.sweep.uncountable", lambda _: "not by bits")
    one_by_one = sweep(small, n, protocols=asked, levels=judged)
    assert counts(by_bits) == counts(one_by_one)
    for name in PROTOCOLS:
        first, second = (done.protocols[name].smallest for done in (by_bits, one_by_one))
        assert {k: v.text for k, v in first.items()} == {k: v.text for k, v in second.items()}


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (2, {"delta-serializable": (94, 0, 0), "delta-write-serializable": (102, 8, 0), "delta-write-serializable-repaired": (102, 8, 0)}),
        (3, {"delta-serializable": (953, 0, 0), "delta-write-serializable": (1155, 202, 4), "delta-write-serializable-repaired": (1149, 196, 0)}),
        pytest.param(4, {"delta-serializable": (11596, 0, 0), "delta-write-serializable": (15959, 4363, 139), "delta-write-serializable-repaired": (15720, 4124, 0)}, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_the_zeros_are_zeros_and_the_other_counts_do_not_change(small, n, expected):
    done = sweep(small, n, protocols=[spec(name) for name in PROTOCOLS])
    found = {
        name: (c.admitted, c.forbidden["log-serializable"], c.forbidden["write-serializable"])
        for name, c in done.protocols.items()
    }
    assert found == expected


@pytest.mark.parametrize("n", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_what_is_not_executed_would_be_explained(small, n):
    """Theorems 1 and 3, candidate by candidate: without a cycle some order explains every version,
    along the log the log's order gives the table.
    """
    acyclic, along = admission(EXPLAINED), admission(IN_LOG_ORDER)
    executed = 0
    for found in candidates(small, n, lambda _: True):
        if acyclic(found.frame):
            assert not found.unexplained()
            executed += 1
        if along(found.frame):
            assert log_order_gives(found)
    assert executed > 100


def test_batches_do_not_change_the_counts(small, monkeypatch):
    whole = counts(sweep(small, 2))
    monkeypatch.setattr("isolitmus.checker.searching.table_bits.LARGEST", 50)
    assert counts(sweep(small, 2)) == whole


@pytest.mark.slow
def test_a_scope_that_looks_at_values_is_executed_one_by_one():
    table = scope("table")
    assert uncountable(table).startswith("'MERGE INTO t USING")
    done = sweep(table, 2)
    assert done.candidates == 288
    assert done.protocols["delta-serializable"].forbidden == {"log-serializable": 0, "write-serializable": 0}  # fmt: skip
    assert done.protocols["delta-write-serializable"].forbidden["log-serializable"] > 0
    with pytest.raises(IsolitmusError, match="executed one by one, about 6 s"):
        sweep(table, 3, limit=10)


def test_more_candidates_than_the_limit_are_refused_with_how_long_it_would_take(small):
    with pytest.raises(IsolitmusError) as error:
        sweep(small, 5, limit=100_000)
    assert "has 4,033,680 candidates with 5 transactions, more than the limit of 100,000" in str(error.value)  # fmt: skip
    assert "--limit 4033680 lets it run" in str(error.value)


def test_what_a_sweep_finds_is_in_its_json(small):
    document = json.loads(json.dumps(sweep(small, 2).to_json()))
    levels = document["protocols"]["delta-write-serializable"]["levels"]
    assert document["candidates"] == 196
    assert levels["write-serializable"] == {"forbidden": 0, "smallest": None}
    assert "[transactions]" in levels["log-serializable"]["smallest"]
