"""Schedules where transactions wait: who waits for whom, what scans give, who ends."""

from dataclasses import replace

import pytest

from isolitmus.checker.execution.run_diff import compare_runs
from isolitmus.checker.execution.run_result import run
from isolitmus.databases.locking.lock_table import Lock, LockTable, Resource
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.run import SeveralRuns
from isolitmus.specs import protocol
from isolitmus.specs.disk.input_files import HOME
from isolitmus.specs.files.litmus_file import read_litmus

HEAD = """
title    = "A test"
format   = "locking"
[table]
columns = "id INT, k INT, v INT"
index   = { by_k = "k", down = "k desc", by_id = "unique id" }
init    = ["INSERT INTO t VALUES (1, 10, 1), (2, 20, 2), (3, 30, 3)"]
[transactions]
"""
SCAN = 'audit = { sql = "SELECT id, k, v FROM t WHERE k > 0", scan = "by_k" }\n'


def carried(schedule, transactions, under="locking-read-committed"):
    text = HEAD.replace("[table]", f'schedule = "{schedule}"\n[table]', 1) + transactions
    litmus = read_litmus(text, "made-up")
    assert read_litmus(str(litmus), "made-up").transactions == litmus.transactions
    return run(litmus, protocol(under)).run


def told(done, name):
    seen = done.transactions[name]
    waits = [" ".join((wait.step, *wait.behind)) for wait in seen.waits]
    return seen.outcome, [row[0] for row in seen.emitted], waits


@pytest.mark.slow
@pytest.mark.parametrize(
    ("under", "rows", "waits"),
    [
        ("locking-read-uncommitted", [1, 2, 3, 1], []),
        ("locking-read-committed", [1, 2, 3, 1], []),
        ("locking-read-committed-coupled", [1, 2, 3, 1], []),
        ("locking-read-committed-page", [1, 2, 3], ["move audit"]),
        ("locking-read-committed-table", [1, 2, 3], ["move audit"]),
        ("locking-repeatable-read", [1, 2, 3], ["move audit"]),
        ("locking-serializable", [1, 2, 3], ["move audit"]),
        ("locking-read-committed-snapshot", [1, 2, 3], []),
        ("locking-latest-committed", [1, 2, 3, 1], []),
        ("locking-oldest-committed", [1, 2, 3], []),
        ("locking-snapshot", [1, 2, 3], []),
        ("derby-read-committed", [1, 2, 3, 1], []),
        ("derby-serializable", [1, 2, 3], ["move audit"]),
        ("postgresql-read-committed", [1, 2, 3], []),
    ],
)
def test_a_row_that_moves_ahead_of_the_scan(under, rows, waits):
    move = 'move = { sql = "UPDATE t SET k = 40 WHERE id = 1", scan = "by_id" }\n'
    done = carried("audit.scan[2] move audit", SCAN + move, under)
    assert told(done, "audit") == ("committed", rows, [])
    assert told(done, "move") == ("committed", [1], waits)
    assert done.tables == {"t": ((1, 40, 1), (2, 20, 2), (3, 30, 3))}


def test_a_row_that_moves_behind_the_scan_is_missed():
    done = carried("audit.scan[2] move audit", SCAN + 'move = "UPDATE t SET k = 5 WHERE id = 3"\n')
    assert told(done, "audit")[1] == [1, 2]


def test_the_row_under_the_cursor_is_locked_and_the_next_one_waits():
    done = carried("audit.scan[2] move audit", SCAN + 'move = "UPDATE t SET v = 9 WHERE k = 20"\n')
    assert told(done, "move") == ("committed", [2], ["move audit"])


@pytest.mark.parametrize(
    ("under", "free"), [("locking-read-committed", True), ("locking-read-committed-coupled", False)]
)
def test_a_lock_is_given_back_before_the_next_is_asked_for_or_when_it_is_got(under, free):
    writers = """
hold = "UPDATE t SET v = 7 WHERE k = 30"
move = { sql = "UPDATE t SET v = 9 WHERE id = 2", scan = "by_id" }
"""
    done = carried("audit.scan[2] hold[1] audit move hold.commit", SCAN + writers, under)
    assert told(done, "audit") == ("committed", [1, 2, 3], ["audit hold"])
    assert told(done, "move")[2] == ([] if free else ["move audit"])
    assert done.transactions["audit"].rows[-1] == (3, 30, 7)


def test_those_who_wait_for_each_other_and_who_ends():
    both = """
a = { sql = ["UPDATE t SET v = 8 WHERE id = 1", "UPDATE t SET v = 8 WHERE id = 2"], scan = "by_id" }
b = { sql = ["UPDATE t SET v = 9 WHERE id = 2", "UPDATE t SET v = 9 WHERE id = 1"], scan = "by_id" }
"""
    done = carried("a[1] b[1] a[2] b[2] a.commit b.commit", both)
    assert told(done, "a") == ("committed", [1, 2], ["a[2] b"])
    assert told(done, "b") == ("Deadlock", [2], ["b[2] a"])
    assert done.tables["t"] == ((1, 10, 8), (2, 20, 8), (3, 30, 3))


def test_a_dirty_row_is_read_or_waited_for():
    dirty = 'write = "UPDATE t SET v = 9 WHERE k = 10"\n'
    steps = "write[1] audit write.rollback"
    seen = carried(steps, SCAN + dirty, "locking-read-uncommitted").transactions["audit"]
    assert (seen.rows[0], seen.waits) == ((1, 10, 9), ())
    done = carried(steps, SCAN + dirty)
    assert told(done, "audit") == ("committed", [1, 2, 3], ["audit write"])
    assert done.transactions["audit"].rows[0] == (1, 10, 1)
    assert done.transactions["write"].outcome == "rolled back"


@pytest.mark.parametrize(
    ("under", "outcome", "v"),
    [("postgresql-read-committed", "committed", 4), ("postgresql-repeatable-read", "SerializationFailure", 2)],
)  # fmt: skip
def test_a_row_that_was_changed_since_the_snapshot(under, outcome, v):
    both = """
a = { sql = "UPDATE t SET v = v + 1 WHERE id = 1", scan = "by_id" }
b = { sql = ["SELECT v FROM t WHERE id = 2", "UPDATE t SET v = v + 2 WHERE id = 1"], scan = "by_id" }
"""
    done = carried("b[1] a[1] b[2] a.commit b.commit", both, under)
    assert told(done, "b") == (outcome, [2, 1], ["b[2] a"])
    assert done.tables["t"][0] == (1, 10, v)


def test_subqueries_are_scans_of_their_own():
    worker = """
a = { sql = "UPDATE t SET v = 0 WHERE id = (SELECT id FROM t WHERE v > 0 ORDER BY k DESC LIMIT 1) AND (SELECT count(*) FROM t WHERE v = 0) < 3", scan = ["by_id", "down", "heap"] }
"""
    done = carried("a", worker)
    assert told(done, "a") == ("committed", [3, 3], [])
    assert done.tables["t"][2] == (3, 30, 0)


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("UPDATE t SET v = v + 2147483647 WHERE id = 2", "OutOfRange"),
        ("UPDATE t SET v = 2147483648", "OutOfRange"),
        ("INSERT INTO t VALUES (4, 40, 4), (5, 50, 2147483648)", "OutOfRange"),
        ("DELETE FROM t WHERE v * 2147483647 > 1", "OutOfRange"),
        ("DELETE FROM t WHERE 7 % (v - 2) = 1", "DivisionByZero"),
    ],
)
def test_a_number_that_does_not_fit_fails_its_statement(sql, error):
    done = carried("a", f'a = "{sql}"\n')
    assert done.transactions["a"].outcome == f"error:{error}"
    assert done.tables["t"] == ((1, 10, 1), (2, 20, 2), (3, 30, 3))


def test_rows_that_do_not_fit_are_refused_where_the_test_begins():
    init = 'VALUES (1, 10, 2147483648)"]'
    text = HEAD.replace("[table]", 'schedule = "a"\n[table]').partition("VALUES")[0]
    litmus = read_litmus(f'{text}{init}\n[transactions]\na = "SELECT id FROM t"\n', "made-up")
    with pytest.raises(IsolitmusError, match="fails with OutOfRange: 2147483648 does not fit into"):
        run(litmus, protocol("locking-read-committed"))


def test_an_insert_of_what_a_query_finds_and_a_key_that_is_taken():
    both = """
a = "INSERT INTO t SELECT id + 10, k, v FROM t WHERE v > 1"
b = "INSERT INTO t VALUES (1, 1, 1)"
"""
    done = carried("a b", both)
    assert done.transactions["b"].outcome == "error:DuplicateKey"
    assert done.tables["t"][3:] == ((12, 20, 2), (13, 30, 3))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("audit.scan[2]", "audit.scan[9]", "made-up.toml:4: schedule step 'audit.scan[9]' comes where the scans of audit have given 3 rows and are over; use audit.scan[3]"),
        ("audit.scan[2]", "audit.step[9]", "'audit.step[9]' comes where the scans of audit have gone 5 steps and are over; use audit.step[5]"),
        ("audit.scan[2] audit", "audit[1] audit.scan[4] audit.commit", "'audit.scan[4]' comes where the scans of audit have given 3 rows and are over"),
        ("audit.scan[2]", "audit[1].scan[2]", "made-up.toml:4: schedule step 'audit[1].scan[2]' is of one statement; rows are counted through all of audit: use audit.scan[1]"),
        ("k > 0", "k > 99", "have given 0 rows and are over; leave it out"),
        ('by_k = "k"', 'by_k = "unique"', "table.index.by_k is an index on no column; write the column's name"),
        ("audit.scan[2]", "audit.scan[0]", "use audit.start, audit.scan[1] and further rows, audit[1]"),
        ("audit.scan[2]", "audit.scan[2] audit.scan[2]", "comes after audit.scan[2]; a scan goes on"),
        ('scan = "by_k"', 'scan = "by_q"', "scan names no index: 'by_q'; did you mean 'by_k'?"),
        ('by_k = "k"', 'by_k = ""', "is an index on no column; write the column's name"),
        ('by_k = "k"', 'by_k = "kk"', "names no column: 'kk'"),
        ("columns =", "rows_per_file = 2\ncolumns =", "has no key 'rows_per_file'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence(old, new, message):
    text = HEAD.replace("[table]", 'schedule = "audit.scan[2] audit"\n[table]', 1) + SCAN
    with pytest.raises(IsolitmusError) as refused:
        run(read_litmus(text.replace(old, new), "made-up"), protocol("locking-read-committed"))
    assert message in str(refused.value) and "\n" not in str(refused.value).partition("\n  ")[0]


@pytest.mark.parametrize(("first", "second"), [("move", "put"), ("put", "move")])
def test_two_that_wait_for_one_key_do_not_both_have_it(first, second):
    """Who waits for a row with the key asks again whether another has taken it meanwhile. On
    PostgreSQL either may be faster, and the model says both runs.
    """
    three = """
gone = ["DELETE FROM t WHERE id = 3"]
move = ["UPDATE t SET id = 3 WHERE id = 1"]
put = ["INSERT INTO t VALUES (3, 99, 9)"]
"""
    schedule = f"gone[1] {first}[1] {second}[1] gone.commit {first}.commit {second}.commit"
    with pytest.raises(SeveralRuns) as several:
        carried(schedule, three, "postgresql-read-committed")
    ended = [
        [one.transactions[name].outcome for name in ("move", "put")] for one in several.value.runs
    ]
    assert sorted(ended) == [
        ["committed", "error:DuplicateKey"],
        ["error:DuplicateKey", "committed"],
    ]
    done = carried(schedule, three, "locking-read-committed")
    assert told(done, first)[::2] == ("committed", [f"{first}[1] gone"])
    assert told(done, second)[::2] == (
        "error:DuplicateKey",
        [f"{second}[1] gone", f"{second}[1] {first}"],
    )
    assert sorted(row[0] for row in done.tables["t"]).count(3) == 1


@pytest.mark.slow
def test_a_deadlock_that_the_file_does_not_expect_is_told_with_both_outcomes(call, tmp_path):
    steps = 'schedule = "a[1] b[1] a[2] b[2] a.commit b.commit"\n[table]'
    both = """
a = { sql = ["UPDATE t SET v = 9 WHERE id = 1", "UPDATE t SET v = 9 WHERE id = 2"], scan = "by_id" }
b = { sql = ["UPDATE t SET v = 8 WHERE id = 2", "UPDATE t SET v = 8 WHERE id = 1"], scan = "by_id" }
[expect.locking-read-committed]
outcome = { a = "committed", b = "committed" }
"""
    path = tmp_path / "meet.toml"
    path.write_text(HEAD.replace("[table]", steps, 1) + both)
    status, out, _ = call("run", path)
    assert status == 1
    assert "waits at b[2] for a\n" in out
    assert ": FAILED\n  b: expected committed, got Deadlock\n" in out


def test_a_protocol_of_locks_that_is_written_wrong_has_a_nearest_one(call):
    status, _, err = call("run", "scan-twice", "--protocol", "derby-read-commited")
    assert (status, "did you mean 'derby-read-committed'?" in err) == (2, True)


def test_what_scans_gave_and_who_waited_is_compared():
    seen = carried("audit.scan[2] move audit", SCAN + 'move = "UPDATE t SET v = 9 WHERE k = 20"\n')
    move, audit = seen.transactions["move"], seen.transactions["audit"]
    lies = [
        ("move", replace(move, waits=()), "waits"),
        ("move", replace(move, waits=(replace(move.waits[0], behind=("other",)),)), "waits"),
        ("audit", replace(audit, emitted=audit.emitted[::-1]), "emitted"),
        ("audit", replace(audit, emitted=(*audit.emitted, audit.emitted[0])), "emitted"),
    ]
    assert compare_runs(seen, seen).differences == ()
    for name, lie, field in lies:
        other = replace(seen, transactions={**seen.transactions, name: lie})
        assert [d.split()[1] for d in compare_runs(seen, other).differences] == [field]
        silent = replace(lie, unsaid=frozenset({field}))
        other = replace(seen, transactions={**seen.transactions, name: silent})
        assert compare_runs(seen, other).uncompared == (f"{name}'s {field}",)


def test_a_scan_stops_at_entries_that_it_is_not_about_and_at_its_end():
    free = 'audit = { sql = "SELECT id FROM t WHERE v > 2 AND k > 0", scan = "by_k" }\n'
    move = 'move = { sql = "UPDATE t SET k = 5, v = 3 WHERE id = 2", scan = "by_id" }\n'
    assert told(carried("audit.step[2] move audit", free + move), "audit")[1:] == ([3], [])
    assert told(carried("audit.step[1] move audit", free + move), "audit")[1:] == ([3], [])
    assert told(carried("move audit.step[4] audit", free + move), "audit")[1] == [2, 3]
    late = 'late = "INSERT INTO t VALUES (4, 40, 4)"\n'
    assert told(carried("audit.step[3] late audit", free + late), "audit")[1] == [3, 4]
    assert told(carried("audit.step[4] late audit", free + late), "audit")[1] == [3]
    with pytest.raises(IsolitmusError, match=r"comes after audit.step\[2\]; a scan goes on"):
        carried("audit.step[2] audit.step[1] late audit", free + late)


def test_a_lock_that_was_given_twice_is_held_until_it_is_given_back_twice():
    row = Resource("row", "t", "1")
    mine, theirs = Lock("a", row, "S"), Lock("b", row, "X")
    locks = LockTable()
    locks.grant(mine)
    locks.grant(mine)
    for left, behind in ((2, ("a",)), (1, ("a",)), (0, ())):
        assert locks.weight("a") == left
        assert locks.behind(theirs) == behind
        locks.release(mine)
    assert locks.held == {}


def test_the_quiz_is_read_as_it_is_printed():
    """TOP (1), COUNT_BIG and names in brackets of Transact-SQL (Q22)."""
    path = HOME / "litmus" / "locking" / "quiz-two-workers.toml"
    ours = path.read_text("utf-8")
    printed = (
        ours.replace("(SELECT id FROM cases", "(SELECT TOP (1) [id] FROM cases")
        .replace("ORDER BY created LIMIT 1)", "ORDER BY created)")
        .replace("(SELECT count(*) FROM cases WHERE", "(SELECT COUNT_BIG(*) FROM cases WHERE")
    )
    under = protocol("locking-read-committed")
    read, wanted = (run(read_litmus(text, "quiz"), under) for text in (printed, ours))
    assert printed != ours
    assert read.run == wanted.run


DIRTY = 'change = { sql = ["UPDATE t SET v = 99 WHERE id = 2"], scan = "by_id" }\n'


def hinted(hints, *, more="", end=""):
    query = f"SELECT id, k, v FROM t WITH ({hints}) WHERE k > 0"
    return f'audit = {{ sql = ["{query}"{more}], scan = "by_k" }}\n{end}'


@pytest.mark.parametrize("under", ["locking-read-committed", "locking-read-committed-snapshot"])
@pytest.mark.parametrize(
    ("hints", "seen", "waits"),
    [
        ("NOLOCK", [1, 2, 3], []),
        ("READUNCOMMITTED", [1, 2, 3], []),
        ("READCOMMITTEDLOCK", [1, 2, 3], ["audit[1] change"]),
        ("READPAST", [1, 3], []),
        ("UPDLOCK, READPAST", [1, 3], []),
        ("TABLOCK", [1, 2, 3], ["audit[1] change"]),
    ],
)
def test_a_hint_says_how_a_scan_meets_what_is_not_committed(hints, seen, waits, under):
    done = carried("change[1] audit[1] change.rollback audit.commit", DIRTY + hinted(hints), under)
    assert told(done, "audit") == ("committed", seen, waits)
    dirty = hints in ("NOLOCK", "READUNCOMMITTED")
    assert ((2, 20, 99) in done.transactions["audit"].emitted) == dirty


@pytest.mark.parametrize(
    ("under", "waits"),
    [("locking-read-committed", ["audit[1] change"]), ("locking-read-committed-snapshot", [])],
)
def test_rowlock_takes_no_locks_where_none_are_taken(under, waits):
    done = carried(
        "change[1] audit[1] change.rollback audit.commit", DIRTY + hinted("ROWLOCK"), under
    )
    assert told(done, "audit") == ("committed", [1, 2, 3], waits)


def test_rowlock_locks_rows_where_pages_are_locked():
    change = 'change = { sql = "UPDATE t SET v = 9 WHERE id = 1", scan = "by_id" }\n'
    for hints, behind in (("ROWLOCK", []), ("REPEATABLEREAD, ROWLOCK", ["change audit"])):
        done = carried(
            "audit.scan[2] change audit", hinted(hints) + change, "locking-read-committed-page"
        )
        assert told(done, "change")[2] == behind


@pytest.mark.parametrize(
    ("hints", "kept", "phantom"),
    [
        ("READCOMMITTEDLOCK", False, False),
        ("REPEATABLEREAD", True, False),
        ("UPDLOCK", True, False),
        ("XLOCK, ROWLOCK", True, False),
        ("TABLOCK", False, False),
        ("TABLOCK, HOLDLOCK", True, True),
        ("TABLOCKX", True, True),
        ("SERIALIZABLE", True, True),
        ("HOLDLOCK", True, True),
    ],
)
def test_a_hint_says_how_long_and_how_much_is_locked(hints, kept, phantom):
    change = 'change = { sql = "UPDATE t SET v = 9 WHERE id = 1", scan = "by_id" }\n'
    put = 'put = "INSERT INTO t VALUES (4, 15, 4)"\n'
    done = carried("audit[1] change put audit.commit", hinted(hints) + change + put)
    waits = {name: told(done, name)[2] == [f"{name} audit"] for name in ("change", "put")}
    assert waits == {"change": kept, "put": phantom}


def test_two_who_read_for_an_update_do_not_both_go_on():
    other = hinted("UPDLOCK").replace("audit =", "other =")
    done = carried("audit[1] other[1] audit.commit other.commit", hinted("UPDLOCK") + other)
    assert told(done, "other")[2] == ["other[1] audit"]
    plain = other.replace("WITH (UPDLOCK) ", "")
    done = carried("audit[1] other[1] audit.commit other.commit", hinted("UPDLOCK") + plain)
    assert told(done, "other")[2] == []


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("SELECT id FROM t WITH (NOLCK)", "hint NOLCK is outside the SQL"),
        ("SELECT id FROM t WITH (NOLOCK, UPDLOCK)", "hints NOLOCK and UPDLOCK do not go together"),
        ("SELECT id FROM t WITH (HOLDLOCK, READPAST)", "hints SERIALIZABLE and READPAST do not"),
        ("UPDATE t WITH (NOLOCK) SET v = 1", "hint NOLOCK is outside the SQL"),
        ("DELETE FROM t WITH (TABLOCK) WHERE id = 1", "; write TABLOCKX"),
        ("SELECT TOP (1) WITH TIES id FROM t ORDER BY k", "LIMIT with PERCENT or TIES is outside"),
        ("SELECT TOP 10 PERCENT id FROM t ORDER BY k", "LIMIT with PERCENT or TIES is outside"),
        ("SELECT COUNT_BIG(*) FROM t OPTION (TABLE HINT (t, NOLOCK))", "this does not parse"),
    ],
)
def test_what_transact_sql_says_otherwise_is_not_left_out(sql, problem):
    with pytest.raises(IsolitmusError) as refused:
        carried("audit", f'audit = "{sql}"\n')
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    "under", ["derby-serializable", "postgresql-read-committed", "locking-snapshot"]
)
def test_protocols_of_engines_without_hints_refuse_them(under):
    with pytest.raises(IsolitmusError, match="table hints are of SQL Server"):
        carried("audit[1] audit.commit", hinted("UPDLOCK"), under)


@pytest.mark.parametrize("under", ["locking-read-uncommitted", "locking-serializable"])
def test_readpast_is_of_two_levels(under):
    with pytest.raises(IsolitmusError, match="READPAST only at READ COMMITTED and REPEATABLE READ"):
        carried("audit[1] audit.commit", hinted("READPAST"), under)


def test_a_statement_that_scans_again_does_not_go_on_alone_over_heaps():
    """Derby: b waits for the row at which a is held; who of them is faster then, has it."""
    take = "UPDATE t SET v = {} WHERE id = (SELECT id FROM t WHERE k > 0 ORDER BY k LIMIT 1)"
    both = "".join(
        f'{name} = {{ sql = "{take.format(v)}", scan = ["by_id", "by_k"] }}\n'
        for name, v in (("a", 8), ("b", 9))
    )
    with pytest.raises(SeveralRuns, match="2 runs are possible"):
        carried("a.scan[1] b.scan[1] a b", both, "derby-read-committed")
    assert told(carried("a.scan[1] b.scan[1] a b", both), "b")[0] == "committed"


def test_over_heaps_a_subquery_with_an_order_reads_all_its_rows():
    one = (
        'a = { sql = "UPDATE t SET v = 9 WHERE id = (SELECT id FROM t WHERE k > 0 ORDER BY k LIMIT'
        ' 1)", scan = ["by_id", "by_k"] }\n'
    )
    assert told(carried("a", one, "derby-read-committed"), "a")[1] == [1, 2, 3, 1]
    assert told(carried("a", one), "a")[1] == [1, 1]
