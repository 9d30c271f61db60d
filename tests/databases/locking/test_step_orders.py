"""Derby's threads: what depends on which of two is faster, all the ways in which it may end, and
what does not depend.
"""

from dataclasses import replace
from itertools import count

import pytest
from hypothesis.strategies import just

from isolitmus.checker import run
from isolitmus.checker.execution.run_diff import run_differences
from isolitmus.conformance.agreement import explore, find_differences
from isolitmus.conformance.engines import open_engine
from isolitmus.databases.locking import step_orders as threads
from isolitmus.databases.locking.simulation import Simulation
from isolitmus.model.errors import UndeterminedError, WaitsForEver
from isolitmus.model.run import SeveralRuns
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus

TABLE = """
title    = "A test of threads"
format   = "locking"
schedule = "{}"
[table]
columns = "id INT, k INT, v INT"
index   = {{ by_id = "unique id", by_k = "k{}" }}
init    = ["INSERT INTO t VALUES (1, 10, 1), (2, 20, 2), (3, 30, 3)"]
[transactions]
{}
"""
RC, RR, SERIALIZABLE = "derby-read-committed", "derby-repeatable-read", "derby-serializable"


def built(schedule, *transactions, down=""):
    return read_litmus(TABLE.format(schedule, down, "\n".join(transactions)), "built")


OVERTAKES = built(
    "c[1] a[1] a[2] b.scan[1] b c.commit a.commit",
    'a = { sql = ["SELECT v FROM t WHERE id = 1", "SELECT v FROM t WHERE id = 2"], scan ='
    ' "by_id" }',
    'b = { sql = "DELETE FROM t WHERE k > 0", scan = "by_k" }',
    'c = { sql = ["DELETE FROM t WHERE id = 1"], scan = "by_id" }',
)
"""The end of c lets both go on; b, which waits for what is before the first key, comes to the row
for which a waits.
"""
ILLUSION = built(
    "c[1] b[1] a[1] b[2] c.commit a.commit b.commit",
    'a = { sql = ["SELECT COUNT(*) FROM t WHERE k > 20"], scan = "by_k" }',
    'b = { sql = ["DELETE FROM t WHERE id = 3", "UPDATE t SET v = 5 WHERE v = 2"], scan = ["by_id",'
    ' "heap"] }',
    'c = ["INSERT INTO t VALUES (4, 25, 0)"]',
)
"""Both wait for the row of c; a then waits for b, and looks whether b waits for it while b has not
seen that it need not.
"""


def outcomes(test, under):
    """What each transaction may come to, and what those that commit read; no two of the runs are
    alike.
    """
    with pytest.raises(SeveralRuns) as several:
        run(test, protocol(under))
    assert "a and b go on at once, and who of them is faster makes a difference" in str(
        several.value
    )
    runs = several.value.runs
    assert all(run_differences(one, other) for one in runs for other in runs if one is not other)
    return {
        tuple(
            (t.outcome, t.rows if t.outcome == "committed" else None)
            for t in one.transactions.values()
        )
        for one in runs
    }


def test_who_wakes_later_may_be_overtaken_by_who_wakes_too():
    ended = ("committed", None)
    assert outcomes(OVERTAKES, SERIALIZABLE) == {
        (("committed", ((2,),)), ended, ended),
        (("committed", ()), ended, ended),
    }


def test_who_has_not_seen_that_he_need_not_wait_may_be_taken_for_part_of_a_deadlock():
    ended = ("committed", None)
    assert outcomes(ILLUSION, RR) == {
        (("committed", ((1,),)), ended, ended),
        (("Deadlock", None), ended, ended),
    }


def test_where_everybody_is_as_fast_as_he_likes_there_is_one_run():
    assert run(ILLUSION, protocol(RC)).run.transactions["a"].rows == ((1,),)


@pytest.mark.slow
@pytest.mark.parametrize(("test", "under"), [(OVERTAKES, SERIALIZABLE), (ILLUSION, RR)])
def test_what_is_left_out_since_it_was_come_to_before_has_no_other_end(test, under, monkeypatch):
    remembered = outcomes(test, under)
    numbers = count()
    monkeypatch.setattr(threads, "_state", lambda *_: next(numbers))
    assert outcomes(test, under) == remembered


@pytest.mark.slow
def test_a_transaction_that_need_not_wait_any_more_stops_at_the_row_that_it_was_asked_for():
    """b stands at its row when c begins its second statement, which has waited longer; then b moves
    the row.
    """
    test = built(
        "a[1] c[1] b.scan[1] c[2] b[1] a.commit b.commit c.commit",
        'a = { sql = ["SELECT v FROM t WHERE id <= 2"], scan = "by_id" }',
        'b = { sql = ["UPDATE t SET k = 35 WHERE id = 1"], scan = "by_id" }',
        'c = { sql = ["UPDATE t SET v = 35 WHERE id = 2", "DELETE FROM t WHERE k > 0"], scan ='
        ' ["by_id", "by_k"] }',
        down=" desc",
    )
    seen = run(test, protocol(RR)).run
    assert [row[0] for row in seen.transactions["c"].emitted] == [2, 3, 2]
    assert seen.tables["t"] == ((1, 35, 1),)


@pytest.mark.slow
@pytest.mark.parametrize("under", [RC, "postgresql-read-committed", "locking-read-committed"])
def test_who_deletes_what_he_inserted_has_written_and_changed_nothing(under):
    test = built(
        "a",
        'a = { sql = ["INSERT INTO t VALUES (4, 25, 0)", "DELETE FROM t WHERE k = 25"], scan ='
        ' "by_k" }',
    )
    seen = run(test, protocol(under))
    assert (seen.run.transactions["a"].version, len(seen.run.versions)) == (1, 2)
    assert seen.run.versions[0] == seen.run.versions[1]
    assert seen.serial.orders == ("a",)


def test_if_some_may_wait_for_ever_it_says_whose_being_faster_does_that(monkeypatch):
    def ever(running):
        if len(running.sessions["b"].waits) == 1:
            raise WaitsForEver("so")

    monkeypatch.setattr(Simulation, "none_waits_for_ever", ever)
    with pytest.raises(UndeterminedError, match="so, if b is the fastest of a and b"):
        run(OVERTAKES, protocol(SERIALIZABLE))


@pytest.mark.slow
def test_an_engine_s_run_is_one_of_them_or_differs():
    under = protocol(SERIALIZABLE)
    with pytest.raises(SeveralRuns) as several:
        run(OVERTAKES, under)
    for one in several.value.runs:
        found = explore(just(OVERTAKES), 1, 1, lambda *_, one=one: one, protocols=[under])
        assert (found.runs, found.several, found.unsaid, found.mismatch) == (1, 1, 0, None)
        assert found.batch("sessions").several == 1
        lie = replace(one, transactions={**one.transactions, "c": one.transactions["a"]})
        found = explore(just(OVERTAKES), 1, 1, lambda *_, lie=lie: lie, protocols=[under])
        assert any(said.startswith("c: emitted predicted") for said in found.mismatch.differences)


@pytest.mark.derby
@pytest.mark.parametrize(("test", "under"), [(OVERTAKES, SERIALIZABLE), (ILLUSION, RR)])
def test_derby_ends_in_one_of_the_ways(test, under):
    with open_engine("derby") as carry, pytest.raises(SeveralRuns):
        find_differences(test, protocol(under), carry)
