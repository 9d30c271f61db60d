"""What the search finds by itself, what it does not find, and that a scan that is written once more
gives the same.
"""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker.execution.commit_loop import execute
from isolitmus.checker.execution.run_result import run
from isolitmus.checker.search.separation import separate
from isolitmus.checker.sweeps.table_sweep import candidates_in, sweep
from isolitmus.checker.universes.schedules import ScheduledCandidate, casts, judged_orders
from isolitmus.databases.locking.scan_proof import prove_each_row_once
from isolitmus.model.errors import IsolitmusError, StepBeyond
from isolitmus.model.verdict import Forbidden
from isolitmus.specs import level, protocol, scope
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.registries import format_named

RC = "locking-read-committed"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("a", "b", "universe", "axiom"),
    [
        (RC, "row-once", "scans", "row-twice"),
        ("locking-repeatable-read", "row-once", "scans", "row-missed"),
        ("locking-read-uncommitted", "no-dirty-read", "scans", "dirty-read"),
        (RC, "one-moment", "fixed-keys", "no-one-moment"),
        ("no-dirty-read", "row-once", "scans", "row-twice"),
    ],
)  # fmt: skip
def test_what_is_found_by_itself(a, b, universe, axiom):
    specs = (protocol(a) if "locking" in a else level(a), level(b))
    answer = separate(*specs, scope(universe))
    assert answer.found and answer.transactions == 2
    again = read_litmus(answer.litmus.text, answer.litmus.name)
    assert [violation.axiom for violation in answer.forbidden.violations] == [axiom]
    if "locking" in a:
        assert isinstance(run(again, specs[0]).verdict(specs[1]), Forbidden)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("a", "b", "universe"),
    [
        (RC, "row-once", "fixed-keys"),
        (RC, "no-dirty-read", "scans"),
        ("locking-read-committed-page", "no-dirty-read", "scans"),
        ("locking-oldest-committed", "no-dirty-read", "scans"),
        ("locking-read-committed-table", "row-once", "scans"),
        ("locking-read-committed-snapshot", "statement-snapshot", "scans"),
        ("locking-serializable", "serializable", "scans"),
        ("postgresql-serializable", "serializable", "scans"),
        ("locking-snapshot", "snapshot-isolation", "scans"),
    ],
)
def test_what_is_not_there_up_to_a_bound(a, b, universe):
    answer = separate(protocol(a), level(b), scope(universe), shipped=False)
    assert answer.found is False and answer.examined > 200
    assert "up to 2 transactions" in answer.bound


def test_protocols_are_compared_with_levels():
    with pytest.raises(IsolitmusError, match="says what an engine does, not which runs it forbids"):
        separate(protocol(RC), protocol("locking-serializable"), scope("scans"))


@pytest.mark.slow
def test_a_sweep_counts_every_schedule():
    done = sweep(scope("scans"), 2)
    counts = {name: (t.admitted, t.forbidden["row-once"]) for name, t in done.protocols.items()}
    assert done.candidates == done.counted == 225
    assert counts == {
        RC: (225, 8),
        "locking-repeatable-read": (225, 4),
        "locking-serializable": (221, 0),
        "locking-read-committed-snapshot": (225, 0),
    }
    for (name, asked), test in done.smallest.items():
        assert isinstance(run(test, protocol(name)).verdict(level(asked)), Forbidden)


@pytest.mark.slow
@pytest.mark.wide
def test_a_row_is_read_three_times_by_two_moves_and_no_fewer():
    found = separate(protocol(RC), level("row-at-most-twice"), scope("moving-keys"))
    (reader,) = (name for name in found.litmus.transactions if name.startswith("read"))
    keys = [k for i, k in run(found.litmus, protocol(RC)).run.transactions[reader].rows if i == 1]
    assert keys == [10, 30, 50]
    assert len(found.litmus.transactions) == 3


@pytest.mark.slow
def test_a_reader_that_is_over_is_stopped_no_more(tmp_path):
    """A row that goes leaves fewer steps: such a schedule is none, whatever it was reckoned to
    have.
    """
    text = scope("moving-keys").path.read_text().replace("k + 20 WHERE id = 1", "k - 90")
    file = tmp_path / "gone.toml"
    file.write_text(text.replace("[2, 3]", "[2]"))
    done = sweep(scope(str(file)), 2)
    assert 0 < done.candidates == done.counted < candidates_in(scope(str(file)), 2)
    assert separate(protocol(RC), level("row-at-most-twice"), scope(str(file))).litmus is None


def all_orders(stops):
    """All orders of so many steps of each, one by one."""
    if not any(stops):
        yield ()
    for k, left in enumerate(stops):
        if left:
            rest = [n - (i == k) for i, n in enumerate(stops)]
            yield from ((k, *more) for more in all_orders(rest))


def look(_litmus, executions):
    """All that a spec can see of executions, and the tables after each commit."""
    seen = []
    for done in executions:
        frame = format_named(done.format).frame(done.events, reasons=False)
        tables = [sorted((n, t.rows()) for n, t in state.items()) for state in done.states]
        ended = [(event.name, event.conflict) for event in done.events]
        seen.append(repr((frame.nodes, frame.relations, frame.sets, tables, ended)))
    return tuple(seen)


def one_by_one(cast, protocols):
    """The same by carrying every schedule out from its start."""
    for order in all_orders(cast.stops):
        litmus = ScheduledCandidate(cast, order).litmus()
        try:
            yield order, look(litmus, [execute(litmus, under) for under in protocols])
        except StepBeyond:
            yield order, None


KINDS = (None, RC, "locking-repeatable-read", "locking-serializable", "locking-read-committed-snapshot",
         "locking-latest-committed", "locking-read-uncommitted", "locking-read-committed-table")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("under", KINDS)
@pytest.mark.parametrize(
    ("universe", "transactions", "only"),
    [
        ("scans", 2, slice(None, None, 4)),
        ("scans", 2, slice(None)),
        ("fixed-keys", 2, slice(None)),
        ("moving-keys", 2, slice(None)),
        pytest.param("scans", 3, slice(9, None, 10), marks=pytest.mark.wide),
        pytest.param("fixed-keys", 3, slice(7, None, 30), marks=pytest.mark.wide),
    ],
)
def test_orders_that_lead_to_one_state_come_to_one_frame(universe, transactions, only, under):
    """Followed once, they are as many, come to the same, and the first of each is the first."""
    protocols = [None if under is None else protocol(under)]
    for cast in list(casts(scope(universe), transactions))[only]:
        every = list(one_by_one(cast, protocols))
        merged = judged_orders(cast, protocols, look, lambda: None)
        assert len(every) == cast.size
        assert {end: ways.number for end, ways in merged.items()} == Counter(e for _, e in every)
        first = {end: order for order, end in reversed(every)}
        assert {end: ways.path for end, ways in merged.items()} == first
        assert [cast.place(order) for order, _ in every] == list(range(1, cast.size + 1))


@pytest.mark.slow
@pytest.mark.wide
def test_under_several_protocols_at_a_time_orders_come_to_the_same():
    protocols = [protocol(name) for name in scope("scans").protocols]
    for cast in list(casts(scope("scans"), 3))[3::25]:
        merged = judged_orders(cast, protocols, look, lambda: None)
        every = Counter(end for _, end in one_by_one(cast, protocols))
        assert {end: ways.number for end, ways in merged.items()} == every


def test_a_key_that_stays_is_emitted_once_whatever_happens():
    assert all(step.holds for step in prove_each_row_once())
    assert all(step.holds for step in prove_each_row_once(stays=False))
    (broken,) = (step for step in prove_each_row_once(moves=True) if not step.holds)
    assert "moved" in broken.counterexample


# A scan written once more, without locks: a dictionary, and the least key beyond the last

MOVES = {
    "UPDATE t SET k = 25 WHERE id = 1": lambda rows: rows | {1: 25} if 1 in rows else rows,
    "UPDATE t SET k = 5 WHERE id = 3": lambda rows: rows | {3: 5} if 3 in rows else rows,
    "UPDATE t SET k = k + 12": lambda rows: {i: k + 12 for i, k in rows.items()},
    "DELETE FROM t WHERE id = 2": lambda rows: {i: k for i, k in rows.items() if i != 2},
    "INSERT INTO t VALUES (4, 22)": lambda rows: rows | {4: 22},
}
START = {1: 10, 2: 20, 3: 30}


def naive(order, texts, *, snapshot):
    """The rows that a scan by k gives that takes a step at each R of an order, and a write is made
    at each number.
    """
    rows, cursor, gave, begun = dict(START), None, [], None
    for step in (*order, *"R" * 9):
        if step != "R":
            rows = MOVES[texts[step]](rows)
            continue
        begun = begun or dict(rows)
        seen = begun if snapshot else rows
        ahead = sorted((k, i) for i, k in seen.items() if cursor is None or (k, i) > cursor)
        if not ahead:  # the scan is over, and sees nothing that comes later
            break
        cursor = ahead[0]
        gave.append((cursor[1], cursor[0]))
    return tuple(gave)


@pytest.mark.slow
@given(
    st.lists(st.sampled_from(sorted(MOVES)), min_size=1, max_size=3, unique=True),
    st.sampled_from([("locking-latest-committed", False), ("locking-read-committed-snapshot", True)]),
    st.data(),
)  # fmt: skip
def test_a_scan_that_is_written_once_more_gives_the_same(texts, under, data):
    order = data.draw(st.permutations([*range(len(texts)), "R", "R", "R"]))
    steps, came = [], 0
    for step in order:
        came += step == "R"
        steps.append(f"audit.step[{came}]" if step == "R" else f"w{step}")
    writers = "".join(f'w{k} = "{text}"\n' for k, text in enumerate(texts))
    text = f"""
title = "Drawn"
format = "locking"
schedule = "{" ".join(steps)} audit"
[table]
columns = "id INT, k INT"
index = {{ by_k = "k" }}
init = ["INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)"]
[transactions]
audit = {{ sql = "SELECT id, k FROM t WHERE k > 0", scan = "by_k" }}
{writers}"""
    name, snapshot = under
    done = run(read_litmus(text, "drawn"), protocol(name))
    assert done.run.transactions["audit"].emitted == naive(order, texts, snapshot=snapshot)
    assert str(done.verdict(level("no-dirty-read"))) == "allowed"
    assert not snapshot or str(done.verdict(level("one-moment"))) == "allowed"
