"""Litmus tests of sessions on Derby and PostgreSQL: what the model says beforehand is what they
do.
"""

from contextlib import nullcontext
from dataclasses import replace

import pytest

from isolitmus.checker import run
from isolitmus.checker.execution.run_diff import compare_runs
from isolitmus.conformance.agreement import explore, find_differences
from isolitmus.conformance.engines import open_engine
from isolitmus.databases.derby import server as derby_server
from isolitmus.databases.locking.random_tests import session_tests
from isolitmus.databases.postgres import engine as on_postgres
from isolitmus.databases.postgres import server as postgres_server
from isolitmus.databases.sessions import schedule_runner as scheduling
from isolitmus.databases.sessions.connections import Connection, SqlFailure
from isolitmus.databases.sessions.schedule_runner import database_engine
from isolitmus.model.errors import EngineUnavailable, Refused, TimeLimit, WaitsForEver
from isolitmus.model.run import SeveralRuns
from isolitmus.specs import litmus as catalogued
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.spec_reader import read_spec
from isolitmus.specs.registries import ENGINES

TABLE = """
title    = "A test of sessions"
format   = "locking"
schedule = "{}"
[table]
columns = "id INT, k INT, v INT"
index   = {{ by_id = "unique id", by_k = "k" }}
init    = ["INSERT INTO t VALUES (1, 10, 1), (2, 20, 2), (3, 30, 3)"]
[transactions]
{}
"""
DERBY = tuple(derby_server.SQL.levels)
POSTGRES = tuple(on_postgres.SQL.levels)
RU, RC, RR, SERIALIZABLE = (
    "derby-read-uncommitted",
    "derby-read-committed",
    "derby-repeatable-read",
    "derby-serializable",
)
AUDIT = 'audit = { sql = "SELECT COUNT(*) FROM t WHERE k > 0", scan = "by_k" }'
ROWS = 'audit = { sql = "SELECT id, k, v FROM t WHERE k > 0", scan = "by_k" }'


def litmus(schedule, *transactions):
    return read_litmus(TABLE.format(schedule, "\n".join(transactions)), "built")


def move(write):
    return f'move = {{ sql = "UPDATE t SET {write}", scan = "by_id" }}'


def both(one, two):
    """Two transactions that update two rows, each in its order."""
    return [
        f"{name} = {{ sql ="
        f" [{', '.join(repr(f'UPDATE t SET v = {of} WHERE id = {k}') for k in rows)}], scan ="
        ' ["by_id", "by_id"] }'
        for name, rows, of in (("a", one, 5), ("b", two, 6))
    ]


TESTS = {
    "a row twice": litmus("audit.scan[2] move audit", AUDIT, move("k = 40 WHERE id = 1")),
    "a row missed": litmus("audit.scan[2] move audit", AUDIT, move("k = 5 WHERE id = 3")),
    "no point in time": litmus("audit.scan[2] move audit", ROWS, move("v = 99 WHERE id = 3")),
    "under the cursor": litmus("audit.scan[2] move audit", ROWS, move("v = 99 WHERE id = 2")),
    "a dirty row": litmus(
        "move[1] audit move.rollback",
        AUDIT.replace("COUNT(*)", "SUM(v)"),
        'move = { sql = ["UPDATE t SET v = 100 WHERE id = 1"], scan = "by_id" }',
    ),
    "lost update": litmus(
        "a[1] b[1] a.commit b.commit",
        'a = { sql = ["UPDATE t SET v = v + 1 WHERE id = 1"], scan = "by_id" }',
        'b = { sql = ["UPDATE t SET v = v + 1 WHERE id = 1"], scan = "by_id" }',
    ),
    "a phantom": litmus(
        "audit[1] move audit[2] audit.commit",
        'audit = { sql = ["SELECT id FROM t WHERE k > 10", "SELECT id FROM t WHERE k > 10"], scan ='
        ' ["by_k", "by_k"] }',
        'move = "INSERT INTO t VALUES (4, 25, 4)"',
    ),
    "numbers too large": litmus(
        "sum store put look",
        'sum = { sql = "UPDATE t SET v = v + 2147483647 WHERE id = 2", scan = "by_id" }',
        'store = { sql = "UPDATE t SET v = 2147483648 WHERE id = 2", scan = "by_id" }',
        'put = "INSERT INTO t VALUES (4, 40, 2147483648)"',
        'look = "SELECT id, v FROM t"',
    ),
}


@pytest.fixture(scope="module")
def carry():
    """carry(name): the engine of a name, started once; without it the test is skipped."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        known = {}

        def started(name):
            if name not in known:
                try:
                    known[name] = stack.enter_context(open_engine(name))
                except EngineUnavailable as error:
                    pytest.skip(str(error))
            return known[name]

        yield started


def agree(test, name, carry, engine):
    seen = carry(engine)(test, protocol(name))
    found = compare_runs(run(test, protocol(name)).run, seen)
    assert found.differences == ()
    return seen


@pytest.mark.drawn
@pytest.mark.derby
@pytest.mark.parametrize("name", DERBY)
@pytest.mark.parametrize("what", TESTS)
def test_derby_does_what_the_model_says(what, name, carry):
    seen = agree(TESTS[what], name, carry, "derby")
    assert seen.engine_version.startswith("10.")


@pytest.mark.drawn
@pytest.mark.postgres
@pytest.mark.parametrize("name", POSTGRES)
@pytest.mark.parametrize("what", TESTS)
def test_postgres_does_what_the_model_says(what, name, carry):
    agree(TESTS[what], name, carry, "postgres")


@pytest.mark.derby
def test_derby_counts_a_row_twice_and_misses_one(carry):
    """The comparison above could agree on anything; this is what the rows are."""
    twice = carry("derby")(TESTS["a row twice"], protocol(RC)).transactions["audit"]
    assert twice.rows == ((4,),)
    assert twice.emitted == ((1, 10, 1), (2, 20, 2), (3, 30, 3), (1, 40, 1))
    assert carry("derby")(TESTS["a row missed"], protocol(RC)).transactions["audit"].rows == ((2,),)


@pytest.mark.derby
def test_a_row_that_moves_on_and_on_is_read_again_and_again(carry):
    moves = (
        f'm{k} = {{ sql = "UPDATE t SET k = {k} WHERE id = 1", scan = "by_id" }}' for k in (25, 40)
    )
    test = litmus("audit.scan[2] m25 audit.scan[4] m40 audit", ROWS, *moves)
    seen = agree(test, RC, carry, "derby")
    assert [row[:2] for row in seen.transactions["audit"].rows] == [
        (1, 10),
        (2, 20),
        (1, 25),
        (3, 30),
        (1, 40),
    ]


@pytest.mark.derby
def test_at_repeatable_read_the_mover_waits_for_the_reader(carry):
    seen = carry("derby")(TESTS["a row twice"], protocol(RR)).transactions
    (wait,) = seen["move"].waits
    assert (wait.step, wait.behind) == ("move", ("audit",))
    assert seen["audit"].rows == ((3,),)


@pytest.mark.derby
@pytest.mark.postgres
@pytest.mark.parametrize(("engine", "name"), [("derby", RC), ("postgres", POSTGRES[0])])
def test_a_deadlock_has_one_victim_and_the_other_commits(engine, name, carry):
    test = litmus("a[1] b[1] a[2] b[2] a.commit b.commit", *both((1, 2), (2, 1)))
    seen = carry(engine)(test, protocol(name)).transactions
    assert sorted(one.outcome for one in seen.values()) == ["Deadlock", "committed"]
    assert {name: [w.behind for w in one.waits] for name, one in seen.items()} == {
        "a": [("b",)],
        "b": [("a",)],
    }


@pytest.mark.derby
def test_who_has_not_looked_for_a_deadlock_yet_does_not_wait_yet(monkeypatch):
    """Each looks one second after it has begun to wait, here; without the option at once, if
    nothing holds it up.
    """
    late = [option.replace("deadlockTimeout=0", "deadlockTimeout=1") for option in derby_server.OPTIONS]  # fmt: skip
    assert late != [*derby_server.OPTIONS]
    monkeypatch.setattr(derby_server, "OPTIONS", late)
    with open_engine("derby") as carry:
        seen = carry(catalogued("crossed-updates"), protocol(RC)).transactions
    assert sorted(one.outcome for one in seen.values()) == ["Deadlock", "committed"]


@pytest.mark.derby
def test_an_update_goes_by_an_index_where_it_compares_its_column_or_is_refused(carry):
    test = litmus("a", 'a = { sql = "UPDATE t SET v = 0 WHERE v = 1", scan = "by_k" }')
    with pytest.raises(
        Refused, match="use by_k only if their condition compares k with a constant"
    ):
        carry("derby")(test, protocol(RC))


@pytest.mark.drawn
@pytest.mark.derby
@pytest.mark.parametrize("name", DERBY)
@pytest.mark.parametrize("what", ["UPDATE t SET v = 5", "UPDATE t SET k = 35", "DELETE FROM t"])
def test_an_index_that_gives_all_of_so_few_rows_is_gone_by_nevertheless(what, name, carry):
    """By what it costs, the heap of four rows is better."""
    test = litmus(
        "a b",
        'a = "INSERT INTO t VALUES (4, 15, 0)"',
        f'b = {{ sql = "{what} WHERE k > 0", scan = "by_k" }}',
    )
    agree(test, name, carry, "derby")


KEY = """
title    = "Two that wait for one key"
format   = "locking"
schedule = "gone[1] {0}[1] {1}[1] gone.commit {1}.commit {0}.commit"
[table]
columns = "id INT, k INT"
index   = {{ by_id = "unique id" }}
init    = ["INSERT INTO t VALUES (2, 20), (1, 10)"]
[transactions]
gone = {{ sql = ["DELETE FROM t WHERE id = 1"], scan = "by_id" }}
move = {{ sql = ["UPDATE t SET id = 1 WHERE id = 2"], scan = "by_id" }}
put = {{ sql = ["INSERT INTO t VALUES (1, 99)"] }}
"""


@pytest.mark.derby
@pytest.mark.parametrize("order", [("move", "put"), ("put", "move")])
@pytest.mark.parametrize("name", DERBY)
def test_two_that_wait_for_one_key(name, order, carry):
    seen = agree(read_litmus(KEY.format(*order), "key"), name, carry, "derby")
    ends = {one: seen.transactions[one].outcome for one in order}
    assert ends[order[0]] == "committed"
    assert ends[order[1]] != "committed"


@pytest.mark.derby
def test_two_that_put_entries_after_one_row_wait_one_behind_the_other(carry):
    test = litmus(
        "b[1] c[1] a[1] b.commit c.commit a.commit",
        'a = ["INSERT INTO t VALUES (4, 5, 0)"]',
        'b = { sql = ["SELECT v FROM t WHERE id >= 3"], scan = "by_id" }',
        'c = ["INSERT INTO t VALUES (24, 5, 0)"]',
    )
    seen = agree(test, SERIALIZABLE, carry, "derby").transactions
    assert [wait.behind for name in "ca" for wait in seen[name].waits] == [("b",), ("b", "c")]


LATE = (
    'a = { sql = "UPDATE t SET v = 0 WHERE id = 1 AND EXISTS (SELECT 1 FROM t)",'
    ' scan = ["by_id", "heap"] }'
)


@pytest.mark.derby
@pytest.mark.postgres
@pytest.mark.parametrize(
    ("engine", "schedule", "said"),
    [
        (
            "derby",
            "a.step[1] a",
            "'a.step[1]' would stop a scan at an arbitrary entry; .*, a.scan[N]",
        ),
        (
            "postgres",
            "a.step[1] a",
            "'a.step[1]' would stop a scan at an arbitrary entry; .*, a.scan[N]",
        ),
        ("derby", "a.scan[1] a", "whose subquery is evaluated when the scan reaches a row"),
    ],
)
def test_where_no_statement_can_be_stopped_is_refused(engine, schedule, said, carry):
    name = {"derby": RC, "postgres": POSTGRES[0]}[engine]
    with pytest.raises(Refused, match=said.replace("[", r"\[").replace("]", r"\]")):
        carry(engine)(litmus(schedule, LATE), protocol(name))


FIRST = "(SELECT id FROM t WHERE k > 0 ORDER BY k LIMIT 1)"
COUNT = "(SELECT COUNT(*) FROM t WHERE k > 10)"


@pytest.mark.drawn
@pytest.mark.derby
@pytest.mark.parametrize("name", DERBY)
@pytest.mark.parametrize(
    ("sql", "scan", "moved"),
    [
        (f"UPDATE t SET v = 9 WHERE id = {FIRST} AND {COUNT} < 3", ["by_id", "by_k", "by_k"], 3),
        (f"UPDATE t SET v = 9 WHERE {COUNT} < 3 AND id = {FIRST}", ["heap", "by_k", "by_k"], 2),
        (f"DELETE FROM t WHERE id = 1 AND {COUNT} = 2", ["by_id", "by_k"], 2),
        (f"INSERT INTO t SELECT id + 10, k, v FROM t WHERE {COUNT} > 1 AND k < 20", ["by_k", "by_k"], 2),
        (f"SELECT id FROM t WHERE k > {FIRST}", ["by_k", "by_k"], 3),
    ],
)  # fmt: skip
def test_subqueries_of_one_value_are_evaluated_first(sql, scan, moved, name, carry):
    """And once; the statement is held in one of them, and another transaction comes between."""
    one = f'a = {{ sql = "{sql}", scan = {scan} }}'.replace("'", '"')
    test = litmus("a.scan[2] move a", one, move(f"v = 7 WHERE id = {moved}"))
    assert len(agree(test, name, carry, "derby").transactions["a"].emitted) > 2


@pytest.mark.derby
@pytest.mark.parametrize(
    ("sql", "scan", "said"),
    [
        (f"UPDATE t SET v = 9 WHERE {COUNT} < 3 AND id = {FIRST}", '["by_id", "by_k", "by_k"]', "before the rest"),
        (f"UPDATE t SET v = {COUNT} WHERE id = {FIRST}", '["by_id", "by_k", "by_k"]', "before those of SET"),
        ("SELECT id FROM t WITH (UPDLOCK)", '"by_id"', "only SQL Server has table hints"),
    ],
)  # fmt: skip
def test_what_would_be_evaluated_in_another_order_is_refused(sql, scan, said, carry):
    with pytest.raises(Refused, match=said):
        carry("derby")(litmus("a", f'a = {{ sql = "{sql}", scan = {scan} }}'), protocol(RC))


@pytest.mark.derby
@pytest.mark.postgres
@pytest.mark.parametrize(("engine", "name"), [("derby", RC), ("postgres", POSTGRES[0])])
def test_indexes_of_two_tables_may_have_one_name(engine, name, carry):
    agree(catalogued("invoice-moved"), name, carry, engine)


@pytest.mark.derby
@pytest.mark.postgres
@pytest.mark.parametrize("engine", ["derby", "postgres"])
def test_what_was_carried_out_leaves_nothing_for_the_next(engine, carry):
    names = {"derby": RC, "postgres": POSTGRES[0]}
    for _ in range(2):
        agree(TESTS["a row twice"], names[engine], carry, engine)


@pytest.mark.postgres
@pytest.mark.parametrize("name", POSTGRES)
def test_who_becomes_the_first_in_a_queue_still_waits_for_the_same_row(name, carry):
    three = [
        f'{name} = {{ sql = ["UPDATE t SET v = 9 WHERE id = 1"], scan = "by_id" }}'
        for name in "abc"
    ]
    for _ in range(3):
        agree(
            litmus("c[1] a[1] b[1] b.commit a.commit c.rollback", *three), name, carry, "postgres"
        )


def updates(schedule, *texts):
    """Sessions of an UPDATE or DELETE each, or of several, by no index."""
    return litmus(
        schedule, *(f"{name} = {list(own)!r}" for name, own in zip("abc", texts, strict=False))
    )


LOOKED_AGAIN = updates(
    "b[1] a.scan[2] b.commit a",
    ["UPDATE t SET v = v + 1"],
    ["UPDATE t SET v = 9 WHERE id = 1"],
)
OWN_ROW = updates(
    "a[1] a[2] a.commit", ["INSERT INTO t VALUES (4, 25, 0)", "DELETE FROM t WHERE id = 4"]
)
ROW_GONE = updates(
    "a[1] b[1] c[1] a.commit c.commit b.commit",
    ["DELETE FROM t"],
    ["DELETE FROM t WHERE id = 2"],
    ["DELETE FROM t"],
)
MOVED_ON = updates(
    "a[1] b[1] c[1] a.commit b.commit c.commit",
    ["UPDATE t SET v = 7 WHERE id = 1"],
    ["UPDATE t SET v = 8 WHERE id = 1"],
    ["UPDATE t SET v = 9 WHERE id = 1"],
)


@pytest.mark.postgres
@pytest.mark.parametrize("name", POSTGRES)
@pytest.mark.parametrize("test", [LOOKED_AGAIN, OWN_ROW, ROW_GONE], ids=["again", "own", "gone"])
def test_postgres_has_rows_looked_at_again_put_and_gone_as_the_model(test, name, carry):
    agree(test, name, carry, "postgres")


def test_what_was_put_and_deleted_by_one_is_a_version_with_nothing_in_it():
    for name in (RC, POSTGRES[0], "locking-read-committed"):
        seen = run(OWN_ROW, protocol(name)).run
        assert seen.transactions["a"].version == 1
        assert seen.versions[0] == seen.versions[1]


def test_who_waits_where_a_row_has_another_version_then_asks_anew_whoever_is_first():
    """PostgreSQL gives the place in the queue back before it has the next version (heap_update,
    heapam_tuple_lock).
    """
    with pytest.raises(SeveralRuns, match="b and c go on at once") as several:
        run(MOVED_ON, protocol(POSTGRES[0]))
    told = {
        tuple(wait.behind for name in "bc" for wait in one.transactions[name].waits)
        for one in several.value.runs
    }
    assert told == {(("a",), ("a", "b"), ("b",)), (("a",), ("c",), ("a", "b"))}
    seen = run(MOVED_ON, protocol("locking-read-committed")).run.transactions
    assert [wait.behind for wait in seen["c"].waits] == [("a", "b")]


@pytest.mark.postgres
@pytest.mark.parametrize(
    "test",
    [MOVED_ON, read_litmus(KEY.format("move", "put"), "key")],
    ids=["another version", "one key"],
)
def test_postgres_ends_in_one_of_the_ways(test, carry):
    with pytest.raises(SeveralRuns):
        find_differences(test, protocol(POSTGRES[0]), carry("postgres"))


@pytest.mark.postgres
@pytest.mark.parametrize("index", ["by_k", "by_id", ""])
@pytest.mark.parametrize("about", ["", " WHERE k > 10", " WHERE id = 1"])
def test_postgres_goes_by_the_index_that_is_said_or_by_none(about, index, carry):
    """At SERIALIZABLE it is asked by which it goes; also where a key is NULL, and where all of an
    index is asked for.
    """
    test = litmus(
        "gone[1] audit gone.commit",
        f'audit = {{ sql = "SELECT COUNT(*) FROM t{about}", scan = "{index or "heap"}" }}',
        'gone = ["UPDATE t SET k = NULL WHERE id = 3"]',
    )
    agree(test, POSTGRES[2], carry, "postgres")


@pytest.mark.postgres
def test_what_a_query_that_is_cut_off_has_given_cannot_be_told(carry):
    stopped = litmus("audit.scan[2] audit.rollback", ROWS)
    assert agree(stopped, POSTGRES[0], carry, "postgres").transactions["audit"].unsaid >= {"rows"}
    assert run(stopped, protocol(POSTGRES[0])).run.transactions["audit"].rows == ((1, 10, 1),)


@pytest.mark.postgres
def test_a_sum_of_bigint_is_a_whole_number(carry):
    text = TABLE.format("audit", 'audit = "SELECT SUM(v) FROM t"').replace("v INT", "v BIGINT")
    seen = agree(read_litmus(text, "sum"), POSTGRES[0], carry, "postgres")
    assert seen.transactions["audit"].rows == ((6,),)


@pytest.mark.derby
@pytest.mark.postgres
@pytest.mark.parametrize(
    ("engine", "names", "count"),
    [("derby", DERBY, 20), ("postgres", POSTGRES, 40)],
    ids=["derby", "postgres"],
)
def test_random_sessions_do_what_the_model_says(engine, names, count, carry, seed):
    under = [protocol(name) for name in names]
    found = explore(session_tests(), count, seed, carry(engine), protocols=under)
    assert found.mismatch is None
    assert found.runs >= count * 9 // 10


@pytest.mark.timeout(60)
def test_who_is_first_in_a_queue_gets_what_he_waits_for():
    """The second waits behind the first, who must not wait behind the second then."""
    test = litmus(
        "a[1] b[1] c[1] a.commit b.commit c.commit",
        'a = { sql = ["UPDATE t SET v = 5 WHERE id = 1"], scan = "by_id" }',
        'b = { sql = ["UPDATE t SET v = 6 WHERE id = 1"], scan = "by_id" }',
        'c = { sql = ["SELECT v FROM t WHERE id = 1"], scan = "by_id" }',
    )
    for name in (RC, RR, SERIALIZABLE):
        seen = run(test, protocol(name)).run.transactions
        assert [wait.behind for wait in seen["b"].waits] == [("a",)]
        assert [wait.behind for wait in seen["c"].waits] == [("a", "b")]
        assert seen["c"].rows == ((6,),)


TWO_CIRCLES = litmus(
    "c[1] a[1] b[1] a[2] b[2] c[2] c.commit a.commit b.commit",
    'c = { sql = ["UPDATE t SET v = 5 WHERE id = 1", "UPDATE t SET v = 7"], scan = ["by_id",'
    ' "heap"] }',
    'a = { sql = ["UPDATE t SET v = 5 WHERE id = 2", "SELECT v FROM t WHERE id = 1"], scan ='
    ' ["by_id", "by_id"] }',
    'b = { sql = ["UPDATE t SET v = 6 WHERE id = 3", "SELECT v FROM t WHERE id = 1"], scan ='
    ' ["by_id", "by_id"] }',
)
"""Two that wait for the third, which then wants the table that both have written to."""
TABLES = """"Locks on rows, and on the table where no index is used"
(* made up *)
format locking
see current
lock reads    S row until commit
lock searches U row until commit
lock heaps    S table until commit
lock writes   X row until commit
"""


def test_who_closes_two_circles_at_once_breaks_both():
    seen = run(TWO_CIRCLES, read_spec(TABLES, "tables")).run.transactions
    assert [name for name, one in seen.items() if one.outcome == "Deadlock"] == ["c"]
    assert {name: [w.behind for w in one.waits] for name, one in seen.items()} == {
        "c": [("a", "b")],
        "a": [("c",)],
        "b": [("c",)],
    }


AT_ONCE = """
a = { sql = ["UPDATE t SET v = 5 WHERE k < 30"], scan = ["by_k"] }
b = { sql = ["UPDATE t SET v = 6 WHERE v > 0"], scan = ["heap"] }
c = { sql = ["UPDATE t SET v = 7 WHERE id = 2"], scan = ["by_id"] }
"""
"""Two in the queue for a row, the first of whom then wants a row that the second has."""


@pytest.mark.postgres
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_of_two_who_begin_to_wait_at_once_postgres_ends_who_looks_first(end, carry):
    """It looks for a deadlock some milliseconds after a wait began, and who closed the circle may
    look last.
    """
    text = TABLE.format(f"c[1] a[1] b[1] b.commit c.{end} a.commit", AT_ONCE)
    test = read_litmus(text.replace('"k"', '"k desc"'), "at once")
    with pytest.raises(SeveralRuns) as several:
        run(test, protocol(POSTGRES[0]))
    ended = {
        tuple(name for name, one in found.transactions.items() if one.outcome == "Deadlock")
        for found in several.value.runs
    }
    assert ended >= {("a",), ("b",)} if end == "rollback" else ("a",) in ended
    for _ in range(3):
        with pytest.raises(SeveralRuns):  # what PostgreSQL does is one of them
            find_differences(test, protocol(POSTGRES[0]), carry("postgres"))


@pytest.mark.derby
def test_of_two_circles_derby_breaks_one_and_the_others_wait_for_ever(carry):
    with pytest.raises(
        WaitsForEver, match="c and a wait for each other, and no deadlock is detected"
    ):
        run(TWO_CIRCLES, protocol(SERIALIZABLE))
    with pytest.raises(TimeLimit, match="c still waits for a at the end of the schedule"):
        carry("derby")(TWO_CIRCLES, protocol(SERIALIZABLE))


@pytest.mark.derby
def test_that_some_wait_for_ever_is_predicted(carry):
    under = protocol(SERIALIZABLE)
    assert find_differences(TWO_CIRCLES, under, carry("derby")) == ()
    ended = carry("derby")(TESTS["a phantom"], under)
    assert find_differences(TWO_CIRCLES, under, lambda *_: ended) == (
        "predicted: the transactions wait for each other forever; observed: all of them end",
    )


# Limits


class Stuck:
    """A server whose second transaction does not get any further."""

    release = "1"
    state = "runs"

    def __init__(self):
        self.asked, self.closed, self.dropped = {}, False, False

    def run(self, statement):
        self.dropped |= statement.startswith("DROP TABLE")
        return ()

    def open(self, name, _level):
        self.asked[name] = None

    def ask(self, name, statement, _stop=0):
        self.asked[name] = statement

    def settle(self):
        def of(name):
            stuck = name == "move" and self.asked[name]
            return Connection(self.state if stuck else "idle", ("audit",) if stuck else (), "a row")

        return {name: of(name) for name in self.asked}

    def close(self):
        self.closed = True


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (
            "runs",
            "Derby did not finish a statement of move within 30 s, and it waits for no transaction",
        ),
        ("waits", "Derby: move still waits for audit at the end of the schedule"),
    ],
)
def test_who_waits_for_ever_is_told_and_everything_is_released(state, message):
    server = Stuck()
    server.state = state
    test = TESTS["under the cursor"]
    with pytest.raises(TimeLimit, match=message) as ended:
        scheduling.run_on_database(server, derby_server.SQL, test, RC)
    assert ended.value.status == 3
    assert server.closed
    assert server.dropped


def test_a_statement_that_waits_for_ever_is_exit_status_3(call, tmp_path):
    stuck = replace(derby_server.SQL, name="stuck")
    engine = database_engine(stuck, "", lambda: nullcontext(Stuck()), derby_server.derby_jars)
    file = tmp_path / "test.toml"
    file.write_text(str(TESTS["under the cursor"]))
    with ENGINES.offered(engine):
        status, out, err = call("run", file, "--engine", "stuck", "--protocol", RC)
    assert (status, "Traceback" in out + err) == (3, False)
    assert "test: Derby did not finish a statement of move within 30 s" in out + err


@pytest.mark.slow
def test_a_server_that_cannot_start_is_exit_status_4(monkeypatch, call, tmp_path):
    monkeypatch.setattr(derby_server, "find_spec", lambda _: None)
    monkeypatch.setattr(postgres_server, "find_spec", lambda _: None)
    file = tmp_path / "test.toml"
    file.write_text(str(TESTS["a row twice"]))
    for engine in ("derby", "postgres"):
        status, _, err = call("run", file, "--engine", engine)
        assert status == 4
        assert "pip install" in err
        assert "Traceback" not in err


def test_of_a_deadlock_derby_tells_who_waited_for_whom():
    message = (
        "A lock could not be obtained due to a deadlock, cycle of locks and waiters is:\nLock :"
        " ROW, T, (1,8)\n  Waiting XID : {205, X} , a, DELETE FROM t\n  Granted XID : {201, S}"
        " \nLock : ROW, T, (1,8)\n  Waiting XID : {201, U} , b, DELETE FROM t\n. The selected"
        " victim is XID : 205."
    )
    found = derby_server._failure("40001", message)
    assert found == SqlFailure(
        "40001", message, (("a", ("b",), "X ROW T (1,8)"), ("b", ("a",), "U ROW T (1,8)"))
    )
