"""The seam holds: a second format, and run, check, separate and sweep as they are."""

from itertools import product

import pytest
from formats.store import STORE

from isolitmus.checker.checks.history_check import check
from isolitmus.checker.execution.conflict_matrix import predict_cells
from isolitmus.checker.execution.run_result import run
from isolitmus.checker.search.separation import separate
from isolitmus.checker.sweeps.table_sweep import sweep
from isolitmus.model.errors import IsolitmusError, LitmusError, SpecError
from isolitmus.specs import level, litmus, protocol
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.matrix_file import read_matrix
from isolitmus.specs.files.scope_file import read_scope
from isolitmus.specs.files.spec_reader import read_spec
from isolitmus.specs.registries import FORMATS, format_named

FIRST = read_spec('"First committer wins" format store empty unseen & ww as WriteConflict', "first")
ANY = read_spec('"Anything goes" format store empty ww & ww^-1 as Never', "any")
SKEW = """
title    = "Write skew"
format   = "store"
schedule = "a.start b.start a[1] b[1] a[2] b[2] a.commit b.commit"
[table]
columns = "key STRING, value INT"
init    = ["PUT x 0", "PUT y 0"]
[transactions]
a = ["GET x", "PUT y x + 1"]
b = ["GET y", "PUT x y + 1"]
"""
SCOPE = """
title  = "Two keys"
format = "store"
[table]
columns = "key STRING, value INT"
init    = ["PUT x 0", "PUT y 0"]
[scope]
transactions = [2]
statements = [["GET x", "PUT y {fresh}"], ["GET y", "PUT x {fresh}"], ["GET x", "PUT x x + 1"], "DEL x"]
readers = [["GET x", "GET y"]]
"""


def test_run_carries_sequences_out():
    test = read_litmus(SKEW, "skew")
    done = run(test, FIRST)
    assert [t.outcome for t in done.run.transactions.values()] == ["committed", "committed"]
    assert done.run.tables == {"t": (("x", 1), ("y", 1))}
    assert done.serial.orders == () and done.serial.unexplained == (2,)
    assert str(done.levels["snapshot-isolation"]) == "allowed"
    assert str(done.levels["serializable"]) == "forbidden"


def test_the_first_committer_wins():
    lost = SKEW.replace('"GET y", "PUT x y + 1"', '"GET y", "PUT y y + 5"')
    done = run(read_litmus(lost, "lost"), FIRST)
    assert [t.outcome for t in done.run.transactions.values()] == ["committed", "WriteConflict"]
    assert done.run.tables == {"t": (("x", 0), ("y", 1))}


@pytest.mark.parametrize(
    ("schedule", "y"),
    [("a b", 1), ("a[1] b a[2] a.commit", 1), ("b a.start a[1] a[2] a.commit", 2)],
)
def test_a_transaction_reads_the_version_of_its_start(schedule, y):
    text = SKEW.replace("a.start b.start a[1] b[1] a[2] b[2] a.commit b.commit", schedule)
    assert dict(run(read_litmus(text, "s"), FIRST).run.tables["t"])["y"] == y


def test_what_is_rolled_back_leaves_nothing():
    text = SKEW.replace("a.commit b.commit", "a.rollback b.commit")
    done = run(read_litmus(text, "back"), FIRST)
    assert [t.outcome for t in done.run.transactions.values()] == ["rolled back", "committed"]
    assert done.run.tables == {"t": (("x", 1), ("y", 0))}


def test_check_judges_it():
    found = check(read_litmus(SKEW, "skew"), [level("serializable"), level("snapshot-isolation")])
    assert [str(v) for v in found.levels.values()] == ["forbidden", "allowed"]


def test_separate_finds_write_skew_and_lost_update():
    scope = read_scope(SCOPE, "two-keys")
    skew = separate(FIRST, level("serializable"), scope)
    assert skew.found and skew.transactions == 2 and skew.by == "exhaustive"
    assert "GET x" in skew.litmus.text and "GET y" in skew.litmus.text
    lost = separate(ANY, level("snapshot-isolation"), scope)
    assert lost.found and "PUT x x + 1" in lost.litmus.text
    assert read_litmus(skew.litmus.text, skew.litmus.name).transactions == skew.litmus.transactions
    assert separate(FIRST, level("snapshot-isolation"), scope).found is False


def test_sweep_counts_what_separate_finds():
    counts = sweep(
        read_scope(SCOPE, "two-keys"), 2, protocols=[FIRST, ANY], levels=[level("serializable")]
    )
    first, anything = counts.protocols["first"], counts.protocols["any"]
    assert counts.candidates == 4 * 4 * 2
    assert (first.admitted, anything.admitted) == (brute(FIRST), 32)
    assert 0 < first.forbidden["serializable"] < anything.forbidden["serializable"]


def brute(spec):
    """How many candidates a protocol admits, each carried out as a litmus test."""
    names = ('["GET x", "PUT y 1"]', '["GET y", "PUT x 2"]', '["GET x", "PUT x x + 1"]', '"DEL x"')
    count = 0
    for a in names:
        for b in names:
            text = SKEW.replace('["GET x", "PUT y x + 1"]', a).replace(
                '["GET y", "PUT x y + 1"]', b
            )
            for schedule in ("a b", "b.start a b.commit"):
                if b[0] == '"' or schedule == "a b":
                    steps = schedule
                else:
                    steps = "b.start a b[1] b[2] b.commit"
                old = "a.start b.start a[1] b[1] a[2] b[2] a.commit b.commit"
                done = run(read_litmus(text.replace(old, steps), "c"), spec)
                count += all(t.outcome == "committed" for t in done.run.transactions.values())
    return count


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("b[1] a[2]", "b[2] a[2]", "schedule step 'b[2]' comes where b[1] is due"),
        ("b[2] a.commit b.commit", "a.commit b.commit", "schedule step 'b.commit' comes before b[2]"),
        ("a[1]", "a[3]", "schedule step 'a[3]' is not one of a sequence of 2 statements; use a.start, a[1] to a[2], a.commit, a.rollback or a"),
        ("a.start b.start", "a.park-commit b.start", "use a.start, a[1] to a[2]"),
        ('"store"', '"stroe"', "unknown format 'stroe'; did you mean 'store'?"),
        ("GET x", "GRAB x", "'GRAB x' is not one of GET k"),
        ('["GET x", "PUT y x + 1"]', "[1]", "transactions.a is [1]; expected a string or a list of strings"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence(old, new, message):
    with pytest.raises(IsolitmusError) as refused:
        read_litmus(SKEW.replace(old, new), "skew")
    assert message in str(refused.value) and "\n" not in str(refused.value).partition("\n  ")[0]


def test_formats_do_not_mix():
    with pytest.raises(
        SpecError, match="delta-serializable is of format delta, and skew of format store"
    ):
        run(read_litmus(SKEW, "skew"), protocol("delta-serializable"))
    with pytest.raises(SpecError, match="first is of format store, and reorder of format delta"):
        run(litmus("reorder"), FIRST)
    with pytest.raises(
        IsolitmusError,
        match="first of format store and delta-serializable of format delta: no history is of both",
    ):
        separate(FIRST, protocol("delta-serializable"))
    with pytest.raises(IsolitmusError, match="format store has no universe that ships"):
        separate(FIRST, level("log-serializable"))
    with pytest.raises(
        SpecError, match="'Blind' is one of format delta, and this is of format store"
    ):
        read_spec('"X" format store empty [Blind] as X', "x")


def test_delta_has_no_sequences_and_says_so():
    text = SKEW.replace('format   = "store"\n', "").replace('"PUT x 0", "PUT y 0"', "")
    with pytest.raises(
        LitmusError,
        match=(
            r"transactions\.a is a list of statements, and Delta has no transactions of several"
            r" statements"
        ),
    ):
        read_litmus(text, "skew")


def test_a_format_is_offered_once():
    assert format_named("store") is STORE is FORMATS.offer(STORE)
    with pytest.raises(ValueError, match="there is another format 'delta' already"):
        FORMATS.offer(format_named("delta"))


MATRIX = """
title  = "Keys"
format = "store"
[tables.t]
columns = "key STRING, value INT"
init    = ["PUT x 0"]
[layouts.one]
winner = 0
[statements]
set  = "PUT x {new}"
add  = ["GET x", "PUT x x + 1"]
look = "GET x"
"""


def test_a_matrix_says_which_conflict():
    matrix = read_matrix(MATRIX, "keys")
    found = {(c.place.a, c.place.winner): c.predicted for c in predict_cells(matrix, [FIRST]).cells}
    assert {pair for pair, outcome in found.items() if outcome == "WriteConflict"} == set(
        product(("set", "add"), repeat=2)
    )
    assert set(found.values()) == {"WriteConflict", "committed"}
