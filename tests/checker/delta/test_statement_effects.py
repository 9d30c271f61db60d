"""The footprint of every statement that changes data, as docs/statements.md has it (Delta
4.4.0).
"""

import pytest

from isolitmus.checker.delta.format import DELTA
from isolitmus.checker.delta.partition_abstraction import (
    Outline,
    UnsupportedScope,
    _Outliner,
    outline,
)
from isolitmus.checker.delta.statement_effects import statement_effect
from isolitmus.checker.execution.commit_loop import initial_database
from isolitmus.model.errors import SqlError
from isolitmus.model.sql.expression import Compare
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.model.sql.statement import Options
from isolitmus.specs.sql.statements import read_statement

COLUMNS = (Column("id", "INT"), Column("part", "INT"), Column("x", "INT"))
VECTORS = {"delta.enableDeletionVectors": "true"}
FILL = [
    "INSERT INTO t VALUES (1, 0, 1), (2, 0, 2), (3, 1, 3)",
    "INSERT INTO t VALUES (4, 1, 4)",
    "INSERT INTO s VALUES (1, 10), (9, 90)",
]
A0, A1, B1 = "part=0/+0-0", "part=1/+0-1", "part=1/+1-0"
ALL = {A0, A1, B1}


def schemas(properties=None, rows_per_file=None):
    t = Schema("t", COLUMNS, ("part",), properties or {}, rows_per_file)
    return {"t": t, "s": Schema("s", (Column("id", "INT"), Column("x", "INT")))}


def done(sql, properties=None, fill=FILL):
    tables = schemas(properties)
    database = initial_database(DELTA, tables, [read_statement(text, tables) for text in fill])
    return statement_effect(read_statement(sql, tables), database, "a", tables)


def shown(footprint):
    """Predicates as text, files read, partitions of the files added, files removed."""
    predicates = [" AND ".join(map(str, p)) for p in footprint.predicates]
    return predicates, set(footprint.files), [p for (p,) in footprint.adds], set(footprint.removes)


APPENDS = {
    "INSERT INTO t PARTITION (part = 1) SELECT id, x FROM s": ([], set(), [1], set()),
    "INSERT INTO t SELECT id, 2, count(*) FROM s GROUP BY id": ([], set(), [2], set()),
    "INSERT INTO t SELECT count(*), 2, max(x) FROM t": ([""], ALL, [2], set()),
    "INSERT INTO t SELECT max(id), part, sum(x) FROM t GROUP BY part": ([""], ALL, [0, 1], set()),
    "INSERT INTO t SELECT (SELECT max(id) FROM t WHERE part = 1), 0, 1": (
        ["NOT (part IS NULL) AND part = 1"], {A1, B1}, [0], set(),
    ),
    "INSERT INTO t SELECT (SELECT max(id) FROM s), 0, 1": ([], set(), [0], set()),
    "INSERT INTO t SELECT 9, 0, 1 WHERE NOT EXISTS (SELECT 1 FROM t WHERE id = 9)": (
        [""], set(), [0], set(),
    ),
    "INSERT INTO t SELECT id, 1, x FROM s WHERE NOT EXISTS"
    " (SELECT 1 FROM t WHERE t.id = s.id AND t.part = 1)": (
        ["NOT (part IS NULL) AND part = 1"], {A1, B1}, [1], set(),
    ),
    "INSERT INTO t SELECT * FROM t WHERE part = 0 AND id IN (SELECT id FROM t WHERE id > 3)": (
        ["NOT (part IS NULL) AND part = 0", ""], {A0, B1}, [], set(),
    ),
    "INSERT INTO t SELECT * FROM t WHERE part IN (SELECT id FROM s)": (
        ["part IN (SELECT id FROM s)"], ALL, [1], set(),
    ),
}  # fmt: skip

OVERWRITES = {
    "INSERT OVERWRITE t SELECT id, 1, x FROM s": ([""], ALL, [1], ALL),
    "INSERT OVERWRITE t PARTITION (part = 1) SELECT id, x FROM s": (
        ["part = 1"], {A1, B1}, [1], {A1, B1},
    ),
    "INSERT INTO t REPLACE WHERE part = 0 SELECT id, 0, x FROM s": (["part = 0"], {A0}, [0], {A0}),
    "INSERT INTO t REPLACE WHERE id = 1 VALUES (1, 1, 1)": ([""], {A0}, [0, 1], {A0}),
    "TRUNCATE TABLE t": ([""], ALL, [], ALL),
}  # fmt: skip

MERGES = {
    "MERGE INTO t USING s ON t.id = s.id AND t.part = 0 WHEN MATCHED THEN UPDATE SET x = s.x": (
        ["part = 0"], {A0}, [0], {A0},
    ),
    "MERGE INTO t USING s ON t.id = s.id AND t.part = 0 WHEN NOT MATCHED THEN INSERT"
    " (id, part, x) VALUES (s.id, 1, s.x)": (["part = 0"], {A0}, [1], set()),
    "MERGE INTO t USING (SELECT id + 10 AS id FROM t WHERE part = 1) AS q ON t.id = q.id"
    " AND t.part = 0 WHEN NOT MATCHED THEN INSERT (id, part, x) VALUES (q.id, 2, 0)": (
        ["part = 0", "NOT (part IS NULL) AND part = 1"], ALL, [2], set(),
    ),
    "MERGE INTO t USING s ON t.id = s.id AND t.part = 0 WHEN NOT MATCHED BY SOURCE AND t.id = 4"
    " THEN DELETE": ([""], ALL, [0, 1], ALL),
}  # fmt: skip

REWRITES = {
    "UPDATE t SET part = 2 WHERE part = 0": (["part = 0"], {A0}, [2], {A0}),
    "UPDATE t SET x = (SELECT max(x) FROM t WHERE part = 1) WHERE part = 0": (
        ["part = 0"], {A0}, [0], {A0},
    ),
    "OPTIMIZE t": ([""], {A1, B1}, [1], {A1, B1}),
    "OPTIMIZE t ZORDER BY (id)": ([""], ALL, [0, 1], ALL),
    "OPTIMIZE t WHERE part = 0 ZORDER BY (id)": (["part = 0"], {A0}, [0], {A0}),
    "REORG TABLE t APPLY (PURGE)": ([""], set(), [], set()),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("sql", "wanted"), (APPENDS | OVERWRITES | MERGES | REWRITES).items())
def test_footprints(sql, wanted):
    footprint = done(sql).footprint
    assert shown(footprint) == wanted
    assert footprint.blind == (not wanted[0] and not wanted[3])


MARKED = {
    "DELETE FROM t WHERE id = 1": ([""], {A0}, [0], {A0}),
    "DELETE FROM t WHERE id = 3": ([""], {A1}, [], {A1}),
    "DELETE FROM t WHERE part = 0": (["part = 0"], {A0}, [], {A0}),
    "UPDATE t SET part = 2 WHERE id = 1": ([""], {A0}, [0, 2], {A0}),
    "UPDATE t SET x = 0 WHERE part = 0": (["part = 0"], {A0}, [0], {A0}),
    "INSERT INTO t REPLACE WHERE id = 1 VALUES (1, 1, 1)": ([""], {A0}, [0, 1], {A0}),
    "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET part = 2": (
        [""], ALL, [0, 2], {A0},
    ),
    "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.id = 4 THEN DELETE": (
        [""], ALL, [], {B1},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("sql", "wanted"), MARKED.items())
def test_footprints_with_deletion_vectors(sql, wanted):
    assert shown(done(sql, VECTORS).footprint) == wanted


def test_a_vector_keeps_the_path_and_the_statistics():
    (again,) = done("DELETE FROM t WHERE id = 1", VECTORS).adds
    assert (again.path, again.dead, [row.values for row in again.rows]) == (A0, 1, [(2, 0, 2)])
    assert again.stats[0].least == 1
    marked = [*FILL, "DELETE FROM t WHERE id = 1"]
    assert done("DELETE FROM t WHERE id = 1", VECTORS, marked).footprint.files == {A0}
    assert done("REORG TABLE t APPLY (PURGE)", VECTORS, marked).footprint.removes == {A0}
    assert done("OPTIMIZE t", VECTORS, marked).footprint.removes == {A1, B1}


def test_the_partitions_written_to_are_replaced_and_no_file_is_recorded():
    from dataclasses import replace

    tables = schemas()
    database = initial_database(DELTA, tables, [read_statement(text, tables) for text in FILL])
    statement = read_statement("INSERT OVERWRITE t SELECT id, 1, x FROM s", tables)
    dynamic = statement_effect(
        replace(statement, options=Options(dynamic=True)), database, "a", tables
    )
    assert shown(dynamic.footprint) == (["part = 1"], set(), [1], {A1, B1})
    quiet = statement_effect(
        replace(statement, options=Options(data_change=False)), database, "a", tables
    )
    assert not quiet.footprint.data_change
    assert quiet.footprint.changes_data


def test_nothing_truncated_is_nothing_tried():
    empty = done("TRUNCATE TABLE t", fill=[]).footprint
    assert (empty.empty, empty.data_change, empty.changes_data) == (True, False, False)


def test_an_anti_join_reads_the_rows_that_it_looked_for():
    lookups = done(
        "INSERT INTO t SELECT id, 1, x FROM s WHERE x > 50 AND NOT EXISTS"
        " (SELECT 1 FROM t WHERE t.id = s.id)"
    ).reads
    outer, inner = lookups
    assert [row.values for row in outer.matched] == [(9, 90)]
    assert inner.matched == ()
    assert inner.matches((9, 0, 0))
    assert not inner.matches((1, 0, 0))


def test_a_subquery_in_set_is_read_if_a_row_is_set():
    update = "UPDATE t SET x = (SELECT max(x) FROM t WHERE part = 1) WHERE id = {}"
    assert [len(done(update.format(n)).reads) for n in (1, 77)] == [2, 1]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("DELETE FROM t WHERE id IN (SELECT id, x FROM s)", "a subquery gives one column"),
        (
            "MERGE INTO t USING s ON t.id = (SELECT max(id) FROM s) WHEN MATCHED THEN DELETE",
            "DELTA_UNSUPPORTED_SUBQUERY",
        ),
        ("UPDATE t SET x = (SELECT x FROM s)", "a subquery that gives one value is an aggregate"),
        ("INSERT INTO t SELECT 1, 1, 1 WHERE EXISTS (SELECT 1 FROM t)", "compare count(*) with 0"),
        (
            "INSERT INTO t SELECT * FROM t WHERE part = (SELECT max(part) FROM t)",
            "names partition columns only: whether Delta evaluates such an aggregate",
        ),
        (
            "INSERT INTO t SELECT * FROM t WHERE EXISTS (SELECT 1 FROM s WHERE t.id = 1)",
            "'t.id = 1' names no column of s",
        ),
        (
            (
                "INSERT INTO t SELECT * FROM t WHERE id IN"
                " (SELECT max(u.id) FROM t AS u WHERE u.part = t.part)"
            ),
            "an aggregate in a correlated subquery is outside",
        ),
        (
            (
                "INSERT INTO t SELECT * FROM t WHERE id IN"
                " (SELECT id FROM s WHERE id IN (SELECT id FROM s))"
            ),
            "a subquery in a subquery is outside",
        ),
        (
            "INSERT INTO t SELECT * FROM t WHERE id IN (SELECT 'a' FROM s)",
            "'id' is INT, the subquery gives STRING",
        ),
        (
            "INSERT INTO t SELECT * FROM t WHERE id IN (SELECT * FROM s)",
            "a subquery gives one column here",
        ),
        ("INSERT INTO t SELECT * FROM t VERSION AS OF 1", "write VERSION AS OF {init[1]}"),
        ("INSERT INTO t SELECT * FROM t LIMIT 1", "'LIMIT' is outside"),
        ("INSERT INTO t SELECT max(id), 1, 1 FROM t GROUP BY id + 1", "GROUP BY anything but"),
        ("INSERT INTO t SELECT 1, 1, 1 GROUP BY 1", "GROUP BY without FROM is outside"),
        ("INSERT OVERWRITE t PARTITION (id = 1) SELECT 1, 1", "t is not partitioned by 'id'"),
        ("INSERT INTO t PARTITION (part = NULL) SELECT 1, 1", "NULL in PARTITION (…) is outside"),
        ("INSERT INTO t PARTITION (part = 'a') SELECT 1, 1", "''a'' is not of type INT"),
        (
            "INSERT INTO t REPLACE WHERE NOT (id = 1) SELECT * FROM t",
            "columns that are no partition columns: write id <> 1",
        ),
        (
            "INSERT INTO t (id, part, x) REPLACE WHERE part = 1 SELECT 1, 1, 1",
            "REPLACE WHERE with a list of columns is outside",
        ),
        ("OPTIMIZE t ZORDER BY (part)", "ZORDER BY takes columns of t that do not partition it"),
        ("OPTIMIZE t ZORDER BY", "does not parse; write OPTIMIZE table"),
        ("REORG TABLE t", "REORG TABLE table [WHERE partition condition] APPLY (PURGE)"),
        (
            "REORG TABLE t WHERE id = 1 APPLY (PURGE)",
            "REORG takes a condition on partition columns only",
        ),
        ("TRUNCATE TABLE u", "unknown table 'u'"),
        (
            (
                "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE"
                " WHEN NOT MATCHED BY SOURCE THEN DELETE"
            ),
            "a lone WHEN MATCHED THEN DELETE beside WHEN NOT MATCHED BY SOURCE",
        ),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *",
            "'*' needs a source row",
        ),
        (
            (
                "MERGE INTO t USING s ON t.id = s.id"
                " WHEN NOT MATCHED BY SOURCE THEN UPDATE SET x = s.x"
            ),
            "unknown column 's.x'",
        ),
    ],
)
def test_what_is_outside_is_refused_by_name(sql, message):
    with pytest.raises(SqlError) as refused:
        read_statement(sql, schemas())
    assert message in str(refused.value)


def test_layouts_that_are_not_modelled_are_refused():
    for sql in (
        "OPTIMIZE t ZORDER BY (id)",
        "INSERT INTO t SELECT max(id), part, 1 FROM t GROUP BY part",
    ):
        with pytest.raises(SqlError, match=r"the assignment of .* to files"):
            read_statement(sql, schemas(rows_per_file=2))


@pytest.mark.parametrize(
    ("sql", "properties", "why"),
    [
        ("INSERT INTO t SELECT (SELECT max(id) FROM t), 0, 1", {}, "has a subquery"),
        ("UPDATE t SET x = (SELECT max(id) FROM t)", {}, "has a subquery"),
        ("INSERT OVERWRITE t PARTITION (part = 1) SELECT 1, 1", {}, "overwrites a part"),
        ("INSERT INTO t SELECT max(id), part, 1 FROM t GROUP BY part", {}, "has GROUP BY"),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE",
            {},
            "has a clause that changes rows",
        ),
        ("OPTIMIZE t ZORDER BY (id)", {}, "rewrites single files"),
        ("DELETE FROM t", VECTORS, "table t has deletion vectors"),
    ],
)
def test_what_has_no_outline_says_so(sql, properties, why):
    tables = schemas(properties)
    with pytest.raises(UnsupportedScope, match=why):
        outline(read_statement(sql, tables), tables["t"], [(0,), (1,)])


def test_a_truncate_has_an_outline():
    tables = schemas()
    found = outline(read_statement("TRUNCATE TABLE t", tables), tables["t"], [(0,), (1,)])
    assert found.kills == found.files == found.recorded == {0, 1}


def test_replaced_rows_must_satisfy_the_condition():
    outside = done("INSERT INTO t REPLACE WHERE part = 0 VALUES (1, 1, 1)").error
    assert outside.exception == "DeltaInvariantViolationException"


def test_the_condition_of_a_partition_is_an_equality():
    tables = schemas()
    where = read_statement("INSERT OVERWRITE t PARTITION (part = 1) SELECT 1, 1", tables).where
    assert isinstance(where, Compare)


MERGE = "MERGE INTO t USING (SELECT 99 AS id) AS s ON t.id = s.id"
OVERFLOW = "(SELECT max(x) * 2147483647 FROM t WHERE part = 1)"


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        (f"UPDATE t SET x = {OVERFLOW} WHERE id = 99", None),
        (f"{MERGE} WHEN MATCHED THEN UPDATE SET x = {OVERFLOW}", None),
        (f"INSERT INTO t SELECT 3, 2, {OVERFLOW} FROM t WHERE id = 99", "SparkArithmeticException"),
        (
            f"INSERT INTO t SELECT 3, 2, {OVERFLOW} FROM t WHERE part = 7",
            "SparkArithmeticException",
        ),
    ],
)
def test_a_subquery_that_no_row_wants_is_run_in_a_select_and_not_in_set(sql, error):
    """Seen on Delta 4.4.0: who runs it fails."""
    seen = done(sql)
    assert (None if seen.error is None else seen.error.exception) == error
    if error is None:
        assert [read.words for read in seen.reads if "part = 1" in read.words] == []


def test_a_statement_without_a_case_is_not_taken_for_one_that_writes_nothing():
    """Else the solver's search would answer "no counterexample" for it."""

    class Analyze:
        sql = "ANALYZE TABLE t COMPUTE STATISTICS"

    schema = Schema("t", (Column("id", "INT"), Column("part", "INT")), partitioned_by=("part",))
    with pytest.raises(UnsupportedScope, match=r"'ANALYZE TABLE t .*' is not known"):
        _Outliner(schema, [(0,)]).written(Analyze(), Outline())
