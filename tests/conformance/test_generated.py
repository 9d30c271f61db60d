"""A table with a generated partition column on Delta: where the advice to declare it as a plain one
holds, and where not.
"""

from dataclasses import replace

import pytest

from isolitmus.checker.execution.run_result import run
from isolitmus.conformance.agreement import find_differences
from isolitmus.conformance.delta.engine import open_delta
from isolitmus.jobs.sql.generated_columns import with_generated, with_generated_columns
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus

pytestmark = pytest.mark.spark


class Generated(Column):
    """A column that is made as a generated one, and read as a plain one."""

    def ddl(self):
        return f"{self.name} {self.type} GENERATED ALWAYS AS (CAST(ts AS DATE))"


COLUMNS = (Column("id", "INT"), Column("ts", "TIMESTAMP"), Column("day", "DATE"))
TABLE = with_generated(Schema("t", COLUMNS, ("day",)), [("day", "CAST(ts AS DATE)")])


def race(sql, day=1):
    """A job that an INSERT of a row of that day in January overtakes."""
    return read_litmus(
        f"""
        title    = "A job on a table whose partitions are generated, which an INSERT overtakes"
        schedule = "a.start b a.commit"
        [table]
        columns        = "id INT, ts TIMESTAMP, day DATE"
        partitioned_by = ["day"]
        init           = ["INSERT INTO t VALUES (1, TIMESTAMP '2026-01-01 10:00:00', DATE '2026-01-01'), (2, TIMESTAMP '2026-01-02 10:00:00', DATE '2026-01-02')"]
        [transactions]
        a = "{sql}"
        b = "INSERT INTO t VALUES (3, TIMESTAMP '2026-01-0{day} 11:00:00', DATE '2026-01-0{day}')"
        """,
        "generated",
    )


def raced(session, sql, day=1):
    """Where Delta, with the generated column, does otherwise than the model, with the plain one."""
    test = race(sql, day)
    columns = (*COLUMNS[:2], Generated("day", "DATE"))
    test = replace(test, tables={"t": replace(test.tables["t"], columns=columns)})
    return find_differences(test, protocol("delta-serializable"), open_delta(session))


LATER = "ts >= TIMESTAMP '2026-01-02 00:00:00'"


@pytest.mark.parametrize(
    "sql",
    [
        f"DELETE FROM t WHERE {LATER} AND id > 0",
        f"UPDATE t SET id = 9 WHERE {LATER}",
        (
            f"MERGE INTO t USING (SELECT 2 AS id) s ON t.id = s.id AND t.{LATER} WHEN MATCHED THEN"
            " DELETE"
        ),
        f"INSERT INTO t SELECT id, ts, day FROM t WHERE {LATER} AND day >= DATE '2026-01-02'",
    ],
)
def test_declared_as_plain_it_does_what_delta_does(session, sql):
    assert raced(session, sql) == ()


@pytest.mark.parametrize(
    ("condition", "day"),
    [
        (LATER, 1),
        ("ts BETWEEN TIMESTAMP '2026-01-02 00:00:00' AND TIMESTAMP '2026-01-02 12:00:00'", 3),
        ("CAST(ts AS DATE) = DATE '2026-01-02'", 3),
        ("CAST(ts AS DATE) = DATE '2026-01-02'", 4),
        ("ts IN (TIMESTAMP '2026-01-02 10:00:00', TIMESTAMP '2026-01-02 12:00:00')", 1),
    ],
)
def test_a_query_records_the_partitions_that_delta_derives(session, condition, day):
    """GeneratedColumn.generatePartitionFilters: the plain query has a conflict where Delta has
    none, exactly if the one with the derived condition has none.
    """
    plain = f"INSERT INTO t SELECT id, ts, day FROM t WHERE {condition}"
    derived = with_generated_columns(plain, {"t": TABLE})
    runs = [run(race(sql, day), protocol("delta-serializable")).run for sql in (plain, derived)]
    outcomes = [one.transactions["a"].outcome for one in runs]
    assert outcomes[0] == "ConcurrentAppendException"
    found = raced(session, plain, day)
    assert any("ConcurrentAppendException" in str(one) for one in found) == (
        outcomes[1] == "committed"
    ), found
