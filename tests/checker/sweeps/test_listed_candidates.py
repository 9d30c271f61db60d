"""``sweep --list N``: the first candidates of each count, as many as were counted."""

import json

import pytest

from isolitmus.checker.execution.run_result import run
from isolitmus.checker.sweeps.abstract_sweep import sweep_abstract
from isolitmus.checker.sweeps.listed_candidates import NOT_LOG_ORDER, UNEXPLAINED, list_candidates
from isolitmus.checker.sweeps.table_sweep import sweep, sweep_work
from isolitmus.model.budget import Budget
from isolitmus.model.history import History
from isolitmus.specs import protocol, scope


def listed(name, size, most, budget=None):
    inside = scope(name)
    done = sweep(inside, size)
    return done, list_candidates(sweep_work(inside, size), done, most, budget or Budget())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size"), [("two-partitions", 2), ("two-partitions", 3), ("no-ops", 3), ("by-day", 2)]
)
def test_each_counted_candidate_is_listed_once(name, size):
    done, lists = listed(name, size, 10_000)
    counted = {
        (name, what): number
        for name, tally in done.protocols.items()
        for what, number in (
            *((f"forbidden by {level}", n) for level, n in tally.forbidden.items()),
            (NOT_LOG_ORDER, tally.not_log_order),
            (UNEXPLAINED, tally.unexplained),
        )
        if number
    }
    assert {(one.protocol, one.what): one.number for one in lists} == counted
    for one in lists:
        assert len({str(test) for test in one.tests}) == len(one.tests) == one.number


def test_a_listed_candidate_is_admitted_and_forbidden():
    _, lists = listed("two-partitions", 3, 5)
    assert {len(one.tests) for one in lists} == {4, 5}
    for one in lists:
        for test in one.tests:
            judged = run(test, protocol(one.protocol))
            outcomes = {t.outcome for t in judged.run.transactions.values()}
            assert outcomes == {"committed"}
            level = one.what.removeprefix("forbidden by ")
            if level != one.what:
                assert str(judged.levels[level]) == "forbidden"


def test_schedules_are_listed(call):
    status, out, err = call("sweep", "scans", "--transactions", "2", "--list", "1", "--json")
    document = json.loads(out)
    assert (status, err) == (1, "")
    whats = {(one["protocol"], one["what"]) for one in document["listed"]}
    assert ("locking-repeatable-read", "forbidden by row-once") in whats
    assert all(len(one["litmus"]) == 1 for one in document["listed"])


def test_the_list_as_text(call):
    _, out, _ = call("sweep", "two-partitions", "--transactions", "2", "--list", "2")
    assert (
        "delta-write-serializable admits, forbidden by log-serializable: 2 of 8 candidates" in out
    )
    assert "    1. delete.start insert delete.commit\n" in out
    assert "       delete: DELETE FROM t WHERE part = 0\n" in out
    plain = call("sweep", "two-partitions", "--transactions", "2", "--json")[1]
    assert "listed" not in json.loads(plain)


def test_histories_of_each_level_are_listed(call):
    done = sweep_abstract(["serializable", "snapshot-isolation"], 2, aborts=False, most_listed=700)
    for level, histories in done.listed.items():
        assert len(histories) == len({str(one.to_table()) for one in histories}) <= 700
        assert len(histories) > 100, level
    _, out, _ = call("sweep", "abstract", "--level", "serializable", "--list", "2", "--json")
    found = json.loads(out)["listed"]
    assert [one["level"] for one in found] == ["serializable"] * 2
    assert all(History.from_table(one["history"]) for one in found)
    _, out, _ = call("sweep", "abstract", "--level", "serializable", "--list", "2")
    assert "Admitted by serializable, the first 2:\n    T1: r(x0); T2: " in out


def test_a_limit_ends_the_list_and_not_the_counts():
    spent = Budget(seconds=0)
    _, lists = listed("two-partitions", 2, 5, spent)
    assert [one.tests for one in lists] == [()] * len(lists)
    assert all("time limit" in one.ended for one in lists)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--list", "0"), "--list is 0; expected a number from 1"),
        (("--list", "2", "--as", "csv"), "--list does not apply with --as csv; leave it out"),
    ],
)
def test_bad_input(call, words, said):
    status, _, err = call("sweep", "two-partitions", *words)
    assert (status, said in err) == (2, True)
