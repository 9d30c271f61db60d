"""Jobs that alter a table: what `predict` says of them is what executions show."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from small_tables import BruteForce

from isolitmus.checker.execution.commit_loop import execute
from isolitmus.checker.workloads.instances import Instances
from isolitmus.checker.workloads.prediction import predict_pair
from isolitmus.checker.workloads.table_alterations import leave_out_failing
from isolitmus.model.errors import IsolitmusError, LitmusError
from isolitmus.model.litmus import Litmus
from isolitmus.model.schedule import Schedule
from isolitmus.specs import protocol
from isolitmus.specs.files.workload_file import read_workload
from isolitmus.specs.sql.binding import bind_job_statement
from isolitmus.specs.sql.statements import read_statement

ALTERING = (
    "ALTER TABLE t SET TBLPROPERTIES ('owner' = 'web')",
    "ALTER TABLE t SET TBLPROPERTIES ('owner' = 'shop')",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.appendOnly' = 'true')",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.feature.checkConstraints' = 'supported')",
    "ALTER TABLE t UNSET TBLPROPERTIES ('owner')",
    "ALTER TABLE t ADD COLUMN z INT",
    "ALTER TABLE t RENAME COLUMN x TO y",
    "ALTER TABLE t DROP COLUMN x",
    "ALTER TABLE t ALTER COLUMN x COMMENT 'of it'",
    "ALTER TABLE t ALTER COLUMN x DROP NOT NULL",
    "ALTER TABLE t ADD CONSTRAINT few CHECK (x < 9)",
    "ALTER TABLE t DROP CONSTRAINT IF EXISTS few",
    "ALTER TABLE t DROP FEATURE checkConstraints",
    "COMMENT ON TABLE t IS 'mine'",
    "CREATE OR REPLACE TABLE t USING delta{parts} AS SELECT id, part, 1 AS x FROM s",
    "REPLACE TABLE t USING delta{parts} AS SELECT id, part, x FROM t WHERE part = :p",
    "CREATE OR REPLACE TABLE t USING delta{parts} AS SELECT :k AS id, :p AS part, 3 AS x",
    "CREATE OR REPLACE TABLE t (id INT, part INT, x INT) USING delta{parts}",
)
CLUSTERING = (
    "ALTER TABLE t CLUSTER BY (id)",
    "ALTER TABLE t CLUSTER BY (part)",
    "ALTER TABLE t CLUSTER BY NONE",
)
ROWS = (
    "INSERT INTO t VALUES (:k, :p, 5)",
    "INSERT INTO t SELECT id, part, 1 FROM s",
    "INSERT INTO t SELECT id, :p, x FROM t WHERE part = :q",
    "INSERT INTO t REPLACE WHERE part = :p VALUES (:k, :p, 3)",
    "INSERT OVERWRITE t SELECT id, part, 1 FROM s",
    "DELETE FROM t WHERE part = :p",
    "DELETE FROM t WHERE id = :k",
    "UPDATE t SET x = x + 1 WHERE part = :p",
    (
        "MERGE INTO t USING s ON t.id = s.id AND t.part = s.part WHEN MATCHED THEN UPDATE SET x = 9"
        " WHEN NOT MATCHED THEN INSERT (id, part, x) VALUES (s.id, s.part, 1)"
    ),
    "TRUNCATE TABLE t",
    "OPTIMIZE t",
    "VACUUM t",
)
PROTOCOLS = ("delta-serializable", "delta-write-serializable", "delta-snapshot-isolation")
FLAT = 'columns = "id INT, part INT, x INT"'
BY_PART = f'{FLAT}\npartitioned_by = ["part"]'
CLUSTERED = f'{FLAT}\nclustered_by = ["id"]'
TABLES = (FLAT, BY_PART, CLUSTERED)
POOLS = {"t": ((0, 0, 1), (1, 1, 1)), "s": ((0, 0),)}


def _job(name: str, sql: str) -> str:
    types = ", ".join(f'{p} = "INT"' for p in "kpq" if f":{p}" in sql)
    return f'[jobs.{name}]\nsql = "{sql}"\nparameters = {{ {types} }}\n'


def _text(table: str, **jobs: str) -> str:
    parts = " PARTITIONED BY (part)" if "partitioned" in table else ""
    made = "".join(_job(name, sql.format(parts=parts)) for name, sql in jobs.items())
    return f'[tables.t]\n{table}\n[tables.s]\ncolumns = "id INT, part INT"\n{made}'


def _fits(table: str, *statements: str) -> bool:
    """Clustered tables have no partitions, and are neither replaced nor compacted in the model."""
    some = any("CLUSTER" in one for one in statements)
    if "clustered" in table:
        return not any("REPLACE TABLE" in one or "OPTIMIZE" in one for one in statements)
    return not some or ("partitioned" not in table and "OPTIMIZE t" not in statements)


class Executions(BruteForce):
    """Brute force on tables that are as declared, or altered by one of the two jobs before."""

    def __init__(self, work, altered):
        super().__init__(work, POOLS, {"INT": (0, 1)}, {"t": 2, "s": 1})
        self.tables = [(*some, *after) for some in self.tables for after in ((), *altered)]


def _ends(work, under):
    """The exceptions of the first statement on small tables, altered before or not."""
    first, second = work.statements
    altered = [
        (bind_job_statement(one, dict.fromkeys(one.types, 0), work.tables, _reader(work))[0],)
        for one in (first, second)
        if one.sql.startswith(("ALTER", "COMMENT"))
    ]
    return Executions(work, altered).ends(first, second, under)


def _reader(work):
    return lambda sql: read_statement(sql, work.tables, opaque=True)


def assert_agree(table: str, loser: str, winner: str, under: str) -> None:
    """Assert that no exception is missing, and that none is named in vain."""
    work = read_workload(_text(table, loser=loser, winner=winner), "random")
    try:
        assume(not leave_out_failing(work).unread)
    except LitmusError:  # neither can be executed
        assume(False)
    found = predict_pair(Instances(work), *work.statements, protocol(under))
    ends = _ends(work, protocol(under))
    assert ends.keys() <= found.examples.keys(), found
    assert not found.perhaps, found
    for exception, retries in ends.items():
        assert retries.keys() - {"fails"} <= set(found.retries[exception]), found
    if found.certain and not found.condition:
        assert_always(work, under)


def assert_always(work, under: str) -> None:
    """Assert that the first statement aborts wherever both write something."""
    force = Executions(work, [()])
    for inits in force.tables:
        given = [dict.fromkeys(one.types, 0) for one in work.statements]
        made = {
            name: bind_job_statement(one, some, work.tables, _reader(work))[0]
            for name, one, some in zip(("first", "second"), work.statements, given, strict=True)
        }
        alone, after = (
            _events(work, inits, made, words, under)
            for words in ("first second", "first.start second first.commit")
        )
        if alone is None or after is None or not _writes(alone["first"]):
            continue
        if _writes(after["second"]) and not after["second"].aborted:
            assert after["first"].conflict is not None, (inits, made)


def _events(work, inits, made, words, under):
    """The events of a schedule; None if it cannot be executed."""
    test = Litmus("small", "", "", work.tables, inits, made, Schedule.parse(words, made))
    try:
        events = {event.name: event for event in execute(test, protocol(under)).events}
    except IsolitmusError:
        return None
    return events if len(events) == 2 else None


def _writes(event) -> bool:
    """Whether a commit is recorded, and changes rows or metadata."""
    footprint = event.effect.footprint
    if event.effect.error is not None or footprint is None or event.version is None:
        return False
    if footprint.empty:
        return False
    actions, known = footprint.actions, footprint.known.metadata
    changed = actions.metadata not in (None, known) or actions.domains
    only_metadata = footprint.actions.some and not footprint.adds and not footprint.removes
    return bool(changed) or not only_metadata


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(
    table=st.sampled_from(TABLES),
    altering=st.sampled_from((*ALTERING, *CLUSTERING)),
    other=st.sampled_from((*ALTERING, *CLUSTERING, *ROWS)),
    swap=st.booleans(),
    under=st.sampled_from(PROTOCOLS),
)
@example(FLAT, ALTERING[0], ALTERING[8], True, PROTOCOLS[0])  # a property that another job sets
@example(BY_PART, ALTERING[18], ROWS[5], True, PROTOCOLS[1])  # a replaced table is Serializable
@example(FLAT, ALTERING[18], "OPTIMIZE t", True, PROTOCOLS[0])  # no retry if its files are gone
@example(CLUSTERED, CLUSTERING[0], CLUSTERING[0], False, PROTOCOLS[0])  # a domain
def test_predictions_for_altering_jobs_are_those_of_brute_force(
    table, altering, other, swap, under
):
    """No exception is missing or impossible, on the table as declared and as the jobs alter it."""
    assume(_fits(table, altering, other))
    pair = (other, altering) if swap else (altering, other)
    assert_agree(table, *pair, under)
