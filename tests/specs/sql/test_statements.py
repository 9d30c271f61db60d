"""What is read besides what is computed: parameters of a type, names with databases, comments, what
is opaque.
"""

import re
from dataclasses import replace

import pytest

from isolitmus.checker.delta import format as delta
from isolitmus.checker.delta.delta_rs_read_set import read_set
from isolitmus.checker.delta.statement_effects import statement_effect
from isolitmus.checker.execution.commit_loop import initial_database
from isolitmus.checker.execution.run_result import run
from isolitmus.model.errors import LitmusError, SqlError, UndeterminedError
from isolitmus.model.run import SeveralRuns
from isolitmus.model.sql.conditions import columns_in
from isolitmus.model.sql.evaluation import evaluate
from isolitmus.model.sql.expression import Opaque, Parameter, conjuncts, walk
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.sql.statements import read_statement

COLUMNS = (Column("id", "INT"), Column("day", "DATE"), Column("amount", "DECIMAL(10,2)"))
T = {"t": Schema("t", COLUMNS, ("day",))}


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("DELETE FROM t WHERE day = :day", "day = :day"),
        ("DELETE FROM t WHERE day BETWEEN :day AND DATE '2026-01-02'", "day >= :day AND day <= DATE '2026-01-02'"),
        ("DELETE FROM t WHERE id IN (:n, 3)", "(id = :n OR id = 3)"),
        ("DELETE FROM t WHERE amount > :n + 1", "> CAST((:n + 1) AS DECIMAL(12,2))"),
        ("DELETE FROM t WHERE day < :text", "day < CAST(:text AS DATE)"),
        ("DELETE FROM t WHERE COALESCE(:n, 0) = id", "coalesce(:n, 0) = id"),
    ],
)  # fmt: skip
def test_parameters_stay_in_a_condition(sql, shown):
    types = {"day": "DATE", "n": "INT", "text": "STRING"}
    where = read_statement(sql, T, types=types).where
    assert shown in str(where)
    assert any(isinstance(part, Parameter) for part in walk(where))


def test_a_parameter_without_a_type_is_refused():
    with pytest.raises(SqlError, match="':day' is outside"):
        read_statement("DELETE FROM t WHERE day = :day", T)


def test_a_parameter_without_a_value_is_not_carried_out():
    delete = read_statement("DELETE FROM t WHERE id = :n", T, types={"n": "INT"})
    inits = [read_statement("INSERT INTO t VALUES (1, NULL, 1)", T)]
    with pytest.raises(UndeterminedError, match="the value of :n is not known"):
        statement_effect(delete, initial_database(delta.DELTA, T, inits), "a", T)


@pytest.mark.parametrize(
    ("sql", "opaque", "named"),
    [
        ("DELETE FROM t WHERE day = '2026-01-02' AND mine(id) > 3", ["mine(id) > 3"], ["id"]),
        ("DELETE FROM t WHERE NOT mine(id, day)", ["mine(id, day)"], ["id", "day"]),
        ("UPDATE t SET amount = round(amount * rand(), 2) WHERE id = 1", [], []),
        ("DELETE FROM t WHERE id = 1 OR regexp_like(day, 'a{2}')", ["regexp_like(day, 'a{2}')"], ["day"]),
    ],
)  # fmt: skip
def test_what_is_not_modelled_is_read_as_it_is(sql, opaque, named):
    where = read_statement(sql, T, opaque=True).where
    found = [part for part in walk(where) if isinstance(part, Opaque)]
    assert [str(part) for part in found] == opaque
    assert [c.name for part in found for c in columns_in(part)] == named
    assert where.type == "BOOLEAN"
    with pytest.raises(SqlError):
        read_statement(sql, T)


def test_of_what_is_opaque_no_outcome_is_told():
    sql = "DELETE FROM t WHERE day = '2026-01-02' AND mine(id) > 3"
    delete = read_statement(sql, T, opaque=True)
    assert str(conjuncts(delete.where)[0]) == "day = DATE '2026-01-02'"
    inits = [read_statement("INSERT INTO t VALUES (1, '2026-01-02', 1)", T)]
    with pytest.raises(UndeterminedError, match=r"what 'mine\(id\) > 3' gives is not modelled"):
        statement_effect(delete, initial_database(delta.DELTA, T, inits), "a", T)


def test_the_time_is_a_parameter():
    sql = "DELETE FROM t WHERE day < current_date() - 7"
    where = read_statement(sql, T, opaque=True).where
    assert [(p.name, p.type) for p in walk(where) if isinstance(p, Parameter)] == [
        ("current_date()", "DATE")
    ]
    with pytest.raises(SqlError, match=r"(?i)current_date"):
        read_statement(sql, T)


CLOCKED = """
title = "A time that is said"
clock = {}
schedule = "a.start b a.commit"
[table]
columns = "id INT, day DATE, at TIMESTAMP"
partitioned_by = ["day"]
init = ["INSERT INTO t VALUES (1, current_date() - 1, now()), (2, CURRENT_DATE, NULL)"]
[transactions]
a = "DELETE FROM t WHERE day < current_date() AND at <= current_timestamp()"
b = "INSERT INTO t VALUES (3, curdate() - 1, NULL)"
"""


@pytest.mark.parametrize("clock", ['"2026-01-02 10:00:00"', "2026-01-02T10:00:00", "2026-01-02"])
def test_a_litmus_file_may_say_the_time(clock):
    """It is in each statement, so that the file that is written again needs no clock."""
    test = read_litmus(CLOCKED.format(clock), "clocked")
    assert test.transactions["a"].sql.startswith(
        "DELETE FROM t WHERE day < DATE '2026-01-02' AND at <="
    )
    done = run(test, protocol("delta-serializable"))
    assert done.run.transactions["a"].outcome == "ConcurrentAppendException"
    assert [row[0] for row in done.run.tables["t"]] == [1, 2, 3]
    again = read_litmus(str(test), "again")
    assert "clock" not in str(again)
    assert run(again, protocol("delta-serializable")).run.tables == done.run.tables


@pytest.mark.parametrize(
    "clock",
    ['"noon"', '"2026-02-30 10:00:00"', "7", "2026-01-02T10:00:00Z", "10:00:00", "[]", "true"],
)
def test_a_clock_is_a_time_without_a_zone(clock):
    with pytest.raises(
        LitmusError, match=r"clocked.toml:3: clock is .*; expected a time without a zone"
    ):
        read_litmus(CLOCKED.format(clock), "clocked")


UNKNOWN = """
title = "What the model cannot compute"
schedule = "a.start b a.commit"
[table]
columns = "id INT, day DATE"
[transactions]
a = "{}"
b = "INSERT INTO t VALUES (2, DATE '2026-01-02')"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "part"),
    [
        ("DELETE FROM t WHERE id = 7 AND mine(id) > 3", r"what 'mine\(id\) > 3' gives is not modelled"),
        ("DELETE FROM t WHERE day < current_date()", r"the value of current_date\(\) is not known"),
        ("UPDATE t SET id = mine(id * rand()) WHERE id = 7", r"'mine\(id \* rand\(\)\)'"),
        ("INSERT INTO t SELECT shiftleft(id, 1), day FROM t", r"'shiftleft\(id, 1\)'"),
        ("INSERT INTO t REPLACE WHERE dayofweek(day) = 1 SELECT * FROM t", "dayofweek"),
        (
            "MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id AND mine(t.day) WHEN MATCHED THEN DELETE",
            r"'mine\(t.day\)'",
        ),
    ],
)  # fmt: skip
def test_a_litmus_file_with_what_is_not_modelled_reads_and_its_run_is_undecided(sql, part):
    """Also where no row is there that would need it: whether Spark knows the function is not
    known.
    """
    test = read_litmus(UNKNOWN.format(sql), "unknown")
    assert str(read_litmus(str(test), "again")) == str(test)
    with pytest.raises(UndeterminedError, match=part):
        run(test, protocol("delta-serializable"))


def test_what_does_not_touch_it_is_decided():
    """b commits while a is under way: whatever a does, it is not seen yet. Afterwards a has
    committed, or has not.
    """
    test = read_litmus(UNKNOWN.format("DELETE FROM t WHERE mine(id) > 3"), "unknown")
    with pytest.raises(
        SeveralRuns, match="gives is not modelled: 2 runs are possible"
    ) as undecided:
        run(test, protocol("delta-serializable"))
    assert {one.transactions["b"].version for one in undecided.value.runs} == {1}
    more = read_litmus(UNKNOWN.format("UPDATE t SET id = mine(id)"), "unknown")
    with pytest.raises(UndeterminedError) as unsaid:
        run(more, protocol("delta-serializable"))
    said = (
        "what 'mine(id)' gives is not modelled. Decided before that: b reads version 0, commits"
        " version 1"
    )
    assert str(unsaid.value).endswith(said)
    other = read_litmus(str(more).replace("a.start b a.commit", "a b"), "unknown")
    with pytest.raises(UndeterminedError, match=r"gives is not modelled$"):
        run(other, protocol("delta-serializable"))


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DELETE FROM t WHERE mine(dya) > 3", "unknown column 'dya'; did you mean 'day'"),
        ("DELETE FROM t WHERE id = 9223372036854775808", "does not fit into BIGINT"),
        ("DELETE FROM t WHERE day = 'mon'", "'mon' is not a date"),
        ("SELECT mine(id) FROM t GROUP BY ALL", "GROUP BY"),
    ],
)
def test_what_is_wrong_besides_is_refused(sql, said):
    with pytest.raises(SqlError, match=said):
        read_litmus(UNKNOWN.format(sql), "wrong")


def test_of_casts_and_functions_delta_rs_is_not_modelled():
    delete = read_statement("DELETE FROM t WHERE upper(id) = '1'", T)
    with pytest.raises(UndeterminedError, match="what delta-rs makes of casts and functions"):
        read_set(delete, T["t"], ())
    assert (
        read_set(read_statement("DELETE FROM t WHERE id < 2", T), T["t"], ()).files == frozenset()
    )


NAMED = """
title = "Names and comments"
schedule = "a.start b a.commit"
[table]
columns = "id INT, x INT"
init = ["INSERT INTO main.sales.t VALUES (1, 5), (2, 6)"]
[transactions]
a = '''
-- what is old goes
DELETE FROM main.sales.t AS s WHERE s.id = 1 /* the first */
'''
b = "INSERT INTO main.sales.t SELECT u.id + 10, u.x FROM main.sales.t AS u WHERE u.id = 2"
"""


def test_databases_and_comments_change_nothing():
    done = run(read_litmus(NAMED, "named"), protocol("delta-serializable"))
    assert done.run.transactions["a"].outcome == "ConcurrentAppendException"
    assert done.run.tables == {"t": ((1, 5), (2, 6), (12, 6))}
    assert done.serial.orders == ("b",)


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("DELETE FROM main.sales.t WHERE id = 1", "DELETE FROM t WHERE id = 1"),
        ("INSERT INTO a.t SELECT * FROM `a`.`t` WHERE id < 1.5", "INSERT INTO t SELECT * FROM `t` WHERE id < 1.5"),
    ],
)  # fmt: skip
def test_engines_are_given_last_names(sql, read):
    assert read_statement(sql, T).sql == read


def test_tables_of_two_databases_are_told_apart():
    with pytest.raises(SqlError, match="'t' names tables of two databases"):
        read_statement("INSERT INTO prod.t SELECT * FROM dev.t", T)


@pytest.mark.parametrize(
    ("sql", "given"),
    [
        ("-- daily\nOPTIMIZE main.sales.t WHERE day < '2026-01-02'", "-- daily\nOPTIMIZE t WHERE day < '2026-01-02'"),
        ("/* all */ REORG TABLE sales.`t` APPLY (PURGE)", "/* all */ REORG TABLE `t` APPLY (PURGE)"),
        ("VACUUM sales.t RETAIN 200 HOURS -- weekly", "VACUUM t RETAIN 200 HOURS"),
        ("OPTIMIZE t WHERE day < '2026-01-02' /* x.y */", "OPTIMIZE t WHERE day < '2026-01-02'"),
    ],
)  # fmt: skip
def test_deltas_own_verbs_may_have_comments_and_tables_with_a_database(sql, given):
    found = read_statement(sql, T)
    assert (found.target, found.origin.syntax.sql) == ("t", given)


def test_what_is_read_says_nothing_by_itself(caplog):
    """sqlglot warns where it falls back to a Command."""
    read_statement("OPTIMIZE t WHERE day < current_date() - INTERVAL 1 DAY", T, opaque=True)
    assert caplog.records == []


OTHER = {
    **T,
    "s": Schema("s", COLUMNS),
    "few": Schema("few", COLUMNS[:2]),
    "more": Schema("more", (*COLUMNS, Column("x", "INT"))),
}
MERGE = "MERGE INTO t USING {} ON t.id = s.id"
EVOLVING = "MERGE /* it */ WITH SCHEMA EVOLUTION INTO t USING {} ON t.id = s.id"
UPDATED, ADDED = "WHEN MATCHED THEN UPDATE", "WHEN NOT MATCHED THEN INSERT"
ALIKE = [
    ("INSERT INTO t SELECT x.* FROM s AS x", "INSERT INTO t SELECT id, day, amount FROM s AS x"),
    ("INSERT INTO t TABLE s", "INSERT INTO t SELECT id, day, amount FROM s"),
    (
        "INSERT INTO t SELECT x.* EXCEPT (amount, day), day, 1 FROM s AS x",
        "INSERT INTO t SELECT id, day, 1 FROM s AS x",
    ),
    (
        "INSERT INTO t SELECT x.id, y.* EXCEPT (id) FROM s x JOIN t y ON x.id = y.id",
        "INSERT INTO t SELECT x.id, y.day, y.amount FROM s x JOIN t y ON x.id = y.id",
    ),
    (
        "INSERT INTO t BY NAME SELECT amount, day, id FROM s",
        "INSERT INTO t SELECT id, day, amount FROM s",
    ),
    (
        "INSERT OVERWRITE t BY NAME SELECT f.* FROM few AS f",
        "INSERT OVERWRITE t SELECT id, day, NULL FROM few AS f",
    ),
    ("INSERT OVERWRITE t (day) SELECT day FROM s", "INSERT OVERWRITE t SELECT NULL, day, NULL FROM s"),
    (
        "INSERT INTO t PARTITION (day = '2026-01-01') (id) SELECT id FROM s",
        "INSERT INTO t SELECT id, DATE '2026-01-01', NULL FROM s",
    ),
    (
        f"{MERGE.format('s')} WHEN NOT MATCHED THEN INSERT (day, id) VALUES (s.day, s.id)",
        f"{MERGE.format('s')} WHEN NOT MATCHED THEN INSERT (id, day, amount) VALUES (s.id, s.day, NULL)",
    ),
    (
        f"{EVOLVING.format('s').lower()} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        f"{MERGE.format('s')} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    ),
    (
        f"{EVOLVING.format('few AS s')} {UPDATED} SET * {ADDED} *",
        f"{MERGE.format('few AS s')} {UPDATED} SET id = s.id, day = s.day {ADDED} (id, day) VALUES (s.id, s.day)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "plain"), ALIKE)
def test_columns_may_be_written_in_many_ways(sql, plain):
    one, other = (read_statement(text, OTHER) for text in (sql, plain))
    assert replace(one, sql="") == replace(other, sql="")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("INSERT INTO t SELECT x.* EXCEPT (nope) FROM s AS x", "unknown column 'x.nope'"),
        ("INSERT INTO t SELECT y.* FROM s AS x", "unknown name 'y'; known: x"),
        ("INSERT INTO t BY NAME SELECT id, day AS dya FROM s", "table t has no column 'dya'"),
        ("INSERT INTO t BY NAME SELECT id, id FROM s", "column 'id' is named twice"),
        ("INSERT INTO t BY NAME SELECT id, id + 1 FROM s", "needs a name for each column"),
        ("INSERT INTO t PARTITION (day = '2026-01-01') (id, day) SELECT 1, 2", "'day' has its value"),
        (
            f"{EVOLVING.format('more AS s')} {UPDATED} SET *",
            "adds a column to t, here 'x'",
        ),
    ],
)  # fmt: skip
def test_columns_that_do_not_fit_are_refused(sql, said):
    with pytest.raises(SqlError, match=re.escape(said)):
        read_statement(sql, OTHER)


RUNS = """
title = "written in another way"
schedule = "a.start b a.commit"
[tables.t]
columns = "id INT, v INT, part INT"
partitioned_by = ["part"]
init = ["INSERT INTO t VALUES (1, 1, 0), (2, 2, 1)"]
[tables.s]
columns = "id INT, v INT, part INT"
init = ["INSERT INTO s VALUES (1, 7, 0), (3, 3, 1)"]
[tables.f]
columns = "id INT, part INT"
init = ["INSERT INTO f VALUES (1, 0), (4, 1)"]
[transactions]
a = "{}"
b = "DELETE FROM t WHERE part = 1"
"""
EXECUTED = {
    "INSERT INTO t BY NAME SELECT part, id FROM s": {(1, 1, 0), (1, None, 0), (3, None, 1)},
    "INSERT INTO t BY NAME SELECT t.* EXCEPT (v) FROM t WHERE part = 0": {(1, 1, 0), (1, None, 0)},
    "INSERT INTO t TABLE s": {(1, 1, 0), (1, 7, 0), (3, 3, 1)},
    "INSERT INTO t SELECT x.* EXCEPT (part), part FROM s AS x": {(1, 1, 0), (1, 7, 0), (3, 3, 1)},
    "INSERT OVERWRITE t PARTITION (part = 0) (id) SELECT id FROM f": {(1, None, 0), (4, None, 0)},
    "INSERT OVERWRITE t BY NAME SELECT part, id FROM f WHERE id = 4": None,
    "MERGE INTO t USING f ON t.id = f.id AND t.part = 0 WHEN NOT MATCHED THEN INSERT (part, id)"
    " VALUES (f.part, f.id)": {(1, 1, 0), (4, None, 1)},
    "MERGE WITH SCHEMA EVOLUTION INTO t USING f ON t.id = f.id AND t.part = 0 WHEN MATCHED THEN"
    " UPDATE SET * WHEN NOT MATCHED THEN INSERT *": {(1, 1, 0), (4, None, 1)},
}  # fmt: skip


@pytest.mark.parametrize("sql", EXECUTED)
def test_both_executors_agree_on_what_is_written_in_another_way(sql):
    """A serial order explains the final table, in the model and in DuckDB; None: a aborts."""
    done = run(read_litmus(RUNS.format(sql), "alike"), protocol("delta-serializable"))
    rows = EXECUTED[sql]
    assert done.serial.orders
    assert (done.run.transactions["a"].outcome == "committed") == (rows is not None)
    if rows is not None:
        assert {*done.run.tables["t"]} == rows


@pytest.mark.parametrize("a", [None, 1, 2])
@pytest.mark.parametrize("b", [None, 1, 2])
def test_null_safe_equality_of_two_columns(a, b):
    """It is never NULL, also under NOT."""
    tables = {"t": Schema("t", (Column("a", "INT"), Column("b", "INT")))}
    for text, expected in (("a <=> b", a == b), ("NOT (a <=> b)", a != b)):
        where = read_statement(f"DELETE FROM t WHERE {text}", tables).where
        assert evaluate(where, [(a, b)]) is expected
