"""Statements that change what a table is: no zero breaks with them, and both executors agree."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isolitmus.checker.running.execute import execute
from isolitmus.checker.running.frames import frame
from isolitmus.checker.runs import run
from isolitmus.specs import protocol
from isolitmus.specs.litmus_file import read_litmus

STATEMENTS = [
    "INSERT INTO t VALUES (3, 0)",
    "INSERT INTO t VALUES (30, 1)",
    "INSERT INTO t SELECT id + 40, 1 FROM t WHERE part = 0",
    "DELETE FROM t WHERE part = 0",
    "UPDATE t SET id = id + 1 WHERE part = 1",
    "OPTIMIZE t",
    "ALTER TABLE t ADD COLUMNS (x INT)",
    "ALTER TABLE t ADD CONSTRAINT small CHECK (id < 20)",
    "ALTER TABLE t SET TBLPROPERTIES ('team' = 'us')",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "COMMENT ON TABLE t IS 'mine'",
    "RESTORE TABLE t TO VERSION AS OF {init[1]}",
]
APPEND = '{ write = "append", query = "SELECT 70 AS id, 0 AS part%s", options = { mergeSchema = "true" } }'
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
    text = f"""
title = "Drawn"
schedule = "{" ".join(words)}"
[table]
columns = "id INT, part INT"
{'partitioned_by = ["part"]' if partitions else ""}
init = ["INSERT INTO t VALUES (1, 0), (2, 1)", "INSERT INTO t VALUES (5, 0)"]
[transactions]
"""
    return read_litmus(text + "\n".join(lines), "drawn")


@pytest.mark.slow
@settings(max_examples=60)
@given(drawn())
def test_the_checks_keep_their_promises(test):
    serializable = run(test, protocol("delta-serializable"))
    assert str(serializable.levels["log-serializable"]) == "allowed"
    repaired = run(test, protocol("delta-write-serializable-repaired"))
    assert str(repaired.levels["write-serializable"]) == "allowed"
    assert repaired.serial.orders, "an order of the conflicts explains the table"


def test_a_definition_is_an_item_that_everybody_reads():
    """An insert that misses a new column comes before it; one that misses a comment is nothing to it."""
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
        seen = frame(execute(test).events)
        assert list(seen.relations["rw"].pairs()) == edges
        assert (
            1 in dict.fromkeys(j for _, j in seen.relations["metadata-clashes"].pairs())
        ) is True
