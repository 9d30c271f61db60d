"""Statements that change what a table is: no zero breaks with them, and both executors agree."""

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from isolitmus.checker.delta.frame import delta_frame
from isolitmus.checker.execution.commit_loop import execute
from isolitmus.checker.execution.run_result import run
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus

TRACKED = """
title = "Row tracking"
schedule = "a.start enable {rest} a.commit"
[table]
columns = "id INT"
{properties}
init = ["INSERT INTO t VALUES (1)"{init}]
[transactions]
a = "DELETE FROM t WHERE id = 1"
enable = "ALTER TABLE t SET TBLPROPERTIES ('delta.enableRowTracking' = 'TRUE')"
"""
FEATURE = "delta.feature.rowTracking"


def tracked(properties="", init="", rest=""):
    test = TRACKED.format(properties=properties, init=init, rest=rest)
    return run(read_litmus(test, "tracked"), protocol("delta-serializable")).run


@pytest.mark.parametrize(
    "key", [f'"{FEATURE}" = "supported"', '"delta.enableRowTracking" = "true"']
)
def test_row_tracking_is_one_commit_where_each_file_has_row_ids(key):
    done = tracked(f"properties = {{ {key} }}")
    assert {t.outcome for t in done.transactions.values()} == {"committed"}
    assert len(done.versions) == 3


def test_row_tracking_is_several_commits_where_files_may_lack_row_ids():
    """Also where the feature came later: files that were there before have no row ids."""
    later = f"""ALTER TABLE t SET TBLPROPERTIES ('{FEATURE}' = 'supported')"""
    for init in ("", f', "{later}"'):
        with pytest.raises(IsolitmusError, match="makes other commits here before that"):
            tracked(init=init)
    on = "ALTER TABLE t SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
    assert len(tracked(init=f', "{on}"').versions) == 3


STATEMENTS = [
    "INSERT INTO t VALUES (3, 0)",
    "INSERT INTO t VALUES (30, 1)",
    "INSERT INTO t SELECT id + 40, 1 FROM t WHERE part = 0",
    "DELETE FROM t WHERE part = 0",
    "UPDATE t SET id = id + 1 WHERE part = 1",
    "OPTIMIZE t",
    "INSERT OVERWRITE t VALUES (8, 1)",
    "INSERT INTO t REPLACE WHERE part = 0 SELECT 9, 0",
    "ALTER TABLE t ADD COLUMNS (x INT)",
    "ALTER TABLE t DROP FEATURE checkConstraints",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.feature.checkConstraints' = 'supported')",
    "ALTER TABLE t ADD CONSTRAINT small CHECK (id < 20)",
    "ALTER TABLE t SET TBLPROPERTIES ('team' = 'us')",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "COMMENT ON TABLE t IS 'mine'",
    "ALTER TABLE t ALTER COLUMN id DROP NOT NULL",
    "RESTORE TABLE t TO VERSION AS OF {init[1]}",
]
STARRED = (
    "MERGE INTO t USING (SELECT * FROM t WHERE id = 1) s ON t.id = s.id + 4"
    " WHEN NOT MATCHED THEN INSERT *"
)
MAPPED = [
    "ALTER TABLE t DROP COLUMN n",
    "ALTER TABLE t RENAME COLUMN n TO m",
    "ALTER TABLE t RENAME COLUMN part TO p",
    "ALTER TABLE t ADD COLUMNS (n INT)",
    "ALTER TABLE t ADD COLUMNS (x INT)",
    "ALTER TABLE t ADD CONSTRAINT small CHECK (n < 60)",
    "ALTER TABLE t CLUSTER BY (id)",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "INSERT INTO t VALUES (3, 30, 0)",
    "INSERT INTO t VALUES (4, 0)",
    "INSERT INTO t VALUES (4, 40, 1, 400)",
    "INSERT OVERWRITE t VALUES (4, 40, 1)",
    "INSERT OVERWRITE t VALUES (4, 40, 1, 400)",
    "INSERT INTO t REPLACE WHERE id = 1 VALUES (1, 10, 1, 400)",
    "INSERT INTO t (part, id) VALUES (1, 6)",
    "INSERT INTO t (part, n, id) VALUES (1, 50, 5)",
    "INSERT INTO t SELECT id + 10, n, part FROM t WHERE n > 15",
    "INSERT INTO t SELECT * FROM t WHERE part = 0",
    "UPDATE t SET n = n + 1 WHERE part = 1",
    "UPDATE t SET m = m + 1 WHERE part = 0",
    "DELETE FROM t WHERE p = 0",
    STARRED,
    STARRED.replace("NOT MATCHED THEN INSERT", "MATCHED THEN UPDATE SET"),
    STARRED.replace("* FROM t", "id, n, part FROM t"),
    "RESTORE TABLE t TO VERSION AS OF {init[1]}",
]
APPEND = (
    '{ write = "append", query = "SELECT 70 AS id, 0 AS part%s", options = { mergeSchema ='
    ' "true" } }'
)
REPLACE = "CREATE OR REPLACE TABLE t %sUSING delta %s"
NAMES = "abc"


@st.composite
def drawn(draw):
    partitions = "PARTITIONED BY (part)" if draw(st.booleans()) else ""
    statements = [
        *STATEMENTS,
        APPEND % "",
        APPEND % ", 7 AS x",
        REPLACE % ("(id INT, part INT) ", partitions),
        REPLACE % ("", f"{partitions} AS SELECT id + 50 AS id, part FROM t WHERE part = 1"),
    ]
    table = f"""
columns = "id INT, part INT"
{'partitioned_by = ["part"]' if partitions else ""}
init = ["INSERT INTO t VALUES (1, 0), (2, 1)", "INSERT INTO t VALUES (5, 0)"]
"""
    return read_litmus(interleaved(draw, statements, table), "drawn")


@st.composite
def mapped(draw):
    partitioned = draw(st.booleans())
    table = f"""
columns = "id INT, n INT, part INT"
properties = {{ "delta.columnMapping.mode" = "name" }}
{'partitioned_by = ["part"]' if partitioned else ""}
init = ["INSERT INTO t VALUES (1, 10, 0), (2, 20, 1)", "INSERT INTO t VALUES (5, 50, 0)"]
"""
    text = interleaved(draw, MAPPED, table)
    try:
        return read_litmus(text, "mapped")
    except IsolitmusError:  # no transaction alters the table so that it could be read
        return reject()


def interleaved(draw, statements, table):
    """The text of a litmus test whose transactions start and commit in any order."""
    chosen = [draw(st.sampled_from(statements)) for _ in NAMES]
    steps = draw(st.permutations([name for name in NAMES for _ in range(2)]))
    words, begun = [], set()
    for name in steps:
        words.append(f"{name}.{'commit' if name in begun else 'start'}")
        begun.add(name)
    lines = [
        f"{name} = {sql}" if sql.startswith("{") else f'{name} = "{sql}"'
        for name, sql in zip(NAMES, chosen, strict=True)
    ]
    return f"""
title = "Drawn"
schedule = "{" ".join(words)}"
[table]
{table}
[transactions]
""" + "\n".join(lines)


@pytest.mark.parametrize(
    ("first", "orders"),
    [
        ("ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')", ("a b c",)),
        ("ALTER TABLE t SET TBLPROPERTIES ('team' = 'us')", ()),
    ],
)
def test_both_executors_know_whether_columns_are_mapped(first, orders):
    """Without it none can be dropped; switched off, every file is written anew and holds its
    rows.
    """
    test = read_litmus(
        f"""
title = "T"
schedule = "a b c d"
[table]
columns = "id INT, n INT"
rows_per_file = 1
init = ["INSERT INTO t VALUES (1, 2), (3, 4)"]
[transactions]
a = "{first}"
b = "ALTER TABLE t DROP COLUMN n"
c = "ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')"
d = "ALTER TABLE t DROP COLUMN id"
""",
        "t",
    )
    done = run(test, protocol("delta-serializable"))
    assert done.run.transactions["d"].outcome == "error:DeltaAnalysisException"
    assert done.run.transactions["b"].outcome == (
        "committed" if orders else "error:DeltaAnalysisException"
    )
    assert set(orders) <= set(done.serial.orders)
    (removal,) = (e for e in execute(test).events if e.name == "c")
    assert (len(removal.effect.adds), len(removal.effect.removes)) == (1, 2)
    assert all(order.index("a") < order.index("b") for order in done.serial.orders if orders)


@pytest.mark.parametrize(
    "change",
    ["DROP COLUMN n", "DROP COLUMNS (n)", "RENAME COLUMN part TO p", "ADD COLUMNS (x INT)"],
)
@pytest.mark.parametrize(
    "then", ["5 WHEN NOT MATCHED THEN INSERT *", "4 WHEN MATCHED THEN UPDATE SET *"]
)
@pytest.mark.parametrize(
    "source", ["SELECT * FROM t WHERE id = 1", "SELECT 1 AS id, 8 AS n, 9 AS part"]
)
def test_a_star_means_the_columns_that_it_meets(change, then, source):
    """Both executors agree: without the columns that the source lacks, it fails."""
    test = read_litmus(
        f"""
title = "Star"
schedule = "merge alter"
[table]
columns = "id INT, n INT, part INT"
properties = {{ "delta.columnMapping.mode" = "name" }}
init = ["INSERT INTO t VALUES (1, 10, 4), (5, 20, 1)"]
[transactions]
alter = "ALTER TABLE t {change}"
merge = "MERGE INTO t USING ({source}) s ON t.id = s.id + {then}"
""",
        "star",
    )
    orders = run(test, protocol("delta-serializable")).serial.orders
    assert ("alter merge" in orders) is (change.startswith("DROP") or "*" in source)


@pytest.mark.slow
@given(st.one_of(drawn(), mapped()))
def test_the_checks_keep_their_promises(test):
    serializable = run(test, protocol("delta-serializable"))
    assert str(serializable.levels["log-serializable"]) == "allowed"
    repaired = run(test, protocol("delta-write-serializable-repaired"))
    assert str(repaired.levels["write-serializable"]) == "allowed"
    assert repaired.serial.orders, "an order of the conflicts explains the table"


def test_a_definition_is_an_item_that_everybody_reads():
    """An insert that misses a new column comes before it; one that misses a comment is nothing to
    it.
    """
    for sql, edges in (("ADD COLUMNS (x INT)", [(1, 0)]), ("SET TBLPROPERTIES ('a' = '1')", [])):
        test = read_litmus(
            f"""
title = "T"
schedule = "insert.start alter insert.commit"
[table]
columns = "id INT"
[transactions]
insert = "INSERT INTO t VALUES (1)"
alter = "ALTER TABLE t {sql}"
""",
            "t",
        )
        seen = delta_frame(execute(test).events)
        assert list(seen.relations["rw"].pairs()) == edges
        assert (
            1 in dict.fromkeys(j for _, j in seen.relations["metadata-clashes"].pairs())
        ) is True


def test_null_allowed_where_it_was_is_a_commit_that_nobody_minds():
    """So it is on Delta 4.4.0: the metadata that the commit writes is the one that was there."""
    alter = "ALTER TABLE t ALTER COLUMN id DROP NOT NULL"
    text = f"""
title = "Nulls"
schedule = "insert.start nulls insert.commit"
[table]
columns = "id INT, part INT"
[transactions]
insert = "INSERT INTO t VALUES (3, 0)"
nulls = "{alter}"
"""
    done = run(read_litmus(text, "nulls"), protocol("delta-serializable"))
    nulls, insert = (done.run.transactions[name] for name in ("nulls", "insert"))
    assert (nulls.operation, nulls.blind, nulls.version) == ("CHANGE COLUMN", True, 1)
    assert (insert.outcome, insert.version) == ("committed", 2)
    assert done.serial.orders == ("nulls insert", "insert nulls")
    with pytest.raises(IsolitmusError, match="table t has no column 'it'; known: id, part"):
        read_litmus(text.replace("COLUMN id", "COLUMN it"), "nulls")


def test_a_restore_replaces_a_vector_by_another_of_the_same_size():
    """The vector of an older version hides row 4, the one that is there hides row 3."""
    text = """
    title    = "A RESTORE to a vector of the same size"
    schedule = "first delete second"

    [table]
    columns    = "id INT"
    properties = { "delta.enableDeletionVectors" = "true" }
    init       = ["INSERT INTO t VALUES (1), (2), (3), (4)", "DELETE FROM t WHERE id = 4"]

    [transactions]
    first  = "RESTORE TABLE t TO VERSION AS OF {init[1]}"
    delete = "DELETE FROM t WHERE id = 3"
    second = "RESTORE TABLE t TO VERSION AS OF {init[2]}"
    """
    done = execute(read_litmus(text, "vectors"), protocol("delta-serializable"))
    assert [sorted(state["t"].rows()) for state in done.states[1:]] == [
        [(1,), (2,), (3,), (4,)], [(1,), (2,), (4,)], [(1,), (2,), (3,)],
    ]  # fmt: skip
