"""Jobs that alter a table: what `predict` says of them is what executions show."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from small_jobs import ALTERING as ALTERING_JOBS
from small_jobs import PROMISES, SmallJobs
from small_jobs import STATEMENTS as SMALL
from small_tables import BruteForce

from isolitmus.checker.execution.commit_loop import execute
from isolitmus.jobs.predict.prediction import predict_pair, predict_workload
from isolitmus.jobs.questions.instances import Instances
from isolitmus.jobs.questions.table_alterations import leave_out_failing
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.jobs.robust.robustness import decide_all
from isolitmus.jobs.sql.job_binding import bind_job_statement
from isolitmus.model.delta.conflict import CONFLICTS
from isolitmus.model.errors import IsolitmusError, LitmusError
from isolitmus.model.litmus import Litmus
from isolitmus.model.schedule import Schedule
from isolitmus.model.sql.statement import Restore
from isolitmus.specs import protocol
from isolitmus.specs.sql.statements import read_statement

ALTERING = (
    "ALTER TABLE t SET TBLPROPERTIES ('team' = 'web')",
    "ALTER TABLE t SET TBLPROPERTIES ('team' = 'shop')",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.appendOnly' = 'true')",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.feature.checkConstraints' = 'supported')",
    "ALTER TABLE t UNSET TBLPROPERTIES ('team')",
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
    "RESTORE TABLE t TO VERSION AS OF {init[1]}",
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
    made = "".join(_job(name, sql.replace("{parts}", parts)) for name, sql in jobs.items())
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
        restores = any(isinstance(one.statement, Restore) for one in work.statements)
        if restores:
            erase = tuple(self.read(f"DELETE FROM t WHERE id = {k}") for k in (0, 1))
            self.tables += [(*some, one) for some in self.tables for one in erase]
        self.tables = [(*some, *after) for some in self.tables for after in ((), *altered)]
        if restores:  # {init[1]} has to be there
            self.tables = [some for some in self.tables if some]


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
    # after a RESTORE, a table may have features that no other statement leaves it with
    assert not found.perhaps or any("RESTORE" in sql for sql in (loser, winner)), found
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
    schedule = Schedule.parse(words, made)
    test = Litmus("small", "", "", work.tables, inits, made, schedule, format=work.format)
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
@settings(deadline=None, max_examples=10)
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


DDL = [
    "CREATE TABLE t (id BIGINT, v STRING, day DATE) USING delta PARTITIONED BY (day)",
    "CREATE TABLE s (id BIGINT, v STRING, day DATE) USING delta",
]
BESIDE = {
    "append": "INSERT INTO t VALUES (1, 'a', DATE '2026-01-01')",
    "delete": "DELETE FROM t WHERE id = 1",
    "compact": "OPTIMIZE t",
}
METADATA = "MetadataChangedException"
KINDS = {
    "ALTER TABLE t SET TBLPROPERTIES ('team' = 'us')": "M! M! .",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')": ". . .",
    "ALTER TABLE t UNSET TBLPROPERTIES ('team')": ". . .",
    "ALTER TABLE t ADD COLUMNS (z INT)": "M! M! .",
    "ALTER TABLE t ALTER COLUMN v COMMENT 'its name'": "M! M! .",
    "ALTER TABLE t ALTER COLUMN v DROP NOT NULL": ". . .",
    "ALTER TABLE t ADD CONSTRAINT some CHECK (id > 0)": "M! M! .",
    "ALTER TABLE t DROP CONSTRAINT IF EXISTS some": ". . .",
    "COMMENT ON TABLE shop.t IS 'mine'": "M! M! .",
    "CREATE OR REPLACE TABLE t USING delta PARTITIONED BY (day) AS SELECT * FROM s": "M! M! M",
    "REPLACE TABLE t (id BIGINT, v STRING, day DATE) USING delta PARTITIONED BY (day)": "M! M! M",
}
"""Statements, and the outcome of `BESIDE` if each commits meanwhile."""


def _workload(**jobs: str):
    made = "".join(f'[jobs.{name}]\nsql = "{sql}"\n' for name, sql in jobs.items())
    return read_workload(f"ddl = {DDL}\n{made}", "jobs")


def _words(found, loser: str, winner: str) -> str:
    (one,) = (m for m in found.meetings if (m.loser, m.winner) == (loser, winner))
    assert not one.perhaps
    letters = "".join(sorted({CONFLICTS[name].letter for name in one.examples}))
    return (letters or ".") + ("!" if one.certain and one.examples else "")


@pytest.mark.slow
@pytest.mark.parametrize("sql", KINDS)
def test_each_kind_of_altering_statement(sql):
    """Writers abort if it changes metadata that they cannot adopt; OPTIMIZE retries."""
    found = predict_workload(_workload(alter=sql, **BESIDE), "delta-serializable")
    assert " ".join(_words(found, name, "alter") for name in BESIDE) == KINDS[sql]
    assert not found.workload.unread


@pytest.mark.slow
def test_what_an_altering_statement_reads_decides_what_aborts_it():
    """ADD CONSTRAINT and REPLACE TABLE read the whole table, the others nothing."""
    jobs = {
        "check": "ALTER TABLE t ADD CONSTRAINT some CHECK (id > 0)",
        "make": "CREATE OR REPLACE TABLE t USING delta PARTITIONED BY (day) AS SELECT * FROM s",
        "tag": "ALTER TABLE t SET TBLPROPERTIES ('team' = 'us')",
        "column": "ALTER TABLE t ADD COLUMN z INT",
    }
    found = predict_workload(_workload(**jobs, **BESIDE), "delta-write-serializable")
    assert [_words(found, one, "append") for one in jobs] == ["A!", "A!", ".", "."]
    assert {_words(found, a, b) for a in jobs for b in jobs if (a, b) != ("check", "check")} == {
        "M!"
    }
    assert _words(found, "check", "check") == "MP!"  # the first constraint needs a feature


@pytest.mark.slow
def test_examples_begin_with_what_a_job_has_altered_before():
    """UNSET TBLPROPERTIES changes something only if another job has set the property."""
    jobs = {
        "tag": "ALTER TABLE t SET TBLPROPERTIES ('team' = 'us')",
        "untag": "ALTER TABLE t UNSET TBLPROPERTIES ('team')",
    }
    found = predict_workload(_workload(**jobs, **BESIDE), "delta-serializable")
    (one,) = (m for m in found.meetings if (m.loser, m.winner) == ("append", "untag"))
    assert [init.sql for init in one.examples[METADATA].init] == [jobs["tag"]]
    assert one.certain


@pytest.mark.slow
def test_a_replaced_table_is_serializable():
    """At WriteSerializable a DELETE passes a blind append, except on a table that was replaced."""
    make = "CREATE OR REPLACE TABLE t USING delta PARTITIONED BY (day) AS SELECT * FROM s"
    alone = predict_workload(_workload(**BESIDE), "delta-write-serializable")
    beside = predict_workload(_workload(make=make, **BESIDE), "delta-write-serializable")
    assert [_words(one, "delete", "append") for one in (alone, beside)] == [".", "A"]


def test_identity_columns_make_two_inserts_conflict():
    """Generated values are metadata: of two INSERTs that do not see each other, one aborts."""
    text = """
    ddl = "CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY, v STRING) USING delta"
    [jobs]
    append = "INSERT INTO t (v) VALUES ('a')"
    tag = "ALTER TABLE t SET TBLPROPERTIES ('team' = 'us')"
    """
    found = predict_workload(read_workload(text, "jobs"), "delta-serializable")
    assert {_words(found, a, b) for a in ("append", "tag") for b in ("append", "tag")} == {"M!"}


def test_a_property_may_be_a_parameter(tmp_path):
    """A template gives it a value in each run; runs with the same value change nothing."""
    (tmp_path / "ddl.sql").write_text("; ".join(DDL), "utf-8")
    tag = "ALTER TABLE t SET TBLPROPERTIES ('loaded' = '{{ ds }}')"
    (tmp_path / "tag.sql").write_text(tag, "utf-8")
    (tmp_path / "append.sql").write_text(BESIDE["append"], "utf-8")
    files = (str(tmp_path / f"{name}.sql") for name in ("tag", "append"))
    found = predict_workload(workload(*files, ddl=tmp_path / "ddl.sql"), "delta-serializable")
    assert [_words(found, one, "tag") for one in ("append", "tag")] == ["M!", "M!"]


@pytest.mark.slow
def test_restore_conflicts_with_every_commit():
    """It tries one version only; others abort because of its files, and of older metadata."""
    jobs = {
        "back": "RESTORE TABLE shop.t TO TIMESTAMP AS OF '2026-01-01'",
        "tag": "ALTER TABLE t SET TBLPROPERTIES ('team' = 'us')",
    }
    found = predict_workload(_workload(**jobs, **BESIDE), "delta-serializable")
    names = (*jobs, *BESIDE)
    assert [_words(found, "back", one) for one in names] == ["W!"] * len(names)
    assert [_words(found, one, "back") for one in names[1:]] == ["M!", "M", "AMR", "MR"]
    assert "back: any earlier version of t may be restored." in found.workload.assumptions


REFUSED = {
    "ALTER TABLE t DROP COLUMN v": "always fails with DeltaAnalysisException",
    "ALTER TABLE t DROP FEATURE checkConstraints": "always fails with DeltaTableFeatureException",
    "ALTER TABLE t SET TBLPROPERTIES ('owner' = 'us')": "the property 'owner' is reserved in Spark",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')": "other commits here",
    "ALTER TABLE t CLUSTER BY (id)": "always fails with DeltaAnalysisException (t is partitioned)",
    "CREATE OR REPLACE TABLE t USING delta AS SELECT * FROM s": "partitioned by ()",
    "TRUNCATE TABLE t PARTITION (day = DATE '2026-01-01')": "Delta on Spark rejects TRUNCATE TABLE",
}


@pytest.mark.slow
@pytest.mark.parametrize("sql", REFUSED)
def test_what_cannot_alter_a_table_is_named(sql):
    """It is not understood, with its reason; the other jobs keep their answers."""
    found = predict_workload(_workload(alter=sql, **BESIDE), "delta-serializable")
    (unread,) = found.workload.unread
    assert REFUSED[sql] in unread.problem
    assert _words(found, "delete", "append") == "A!"


def test_too_many_definitions_are_named():
    """Each of many independent properties may be set or not, which is too much to search."""
    jobs = {f"p{k}": f"ALTER TABLE t SET TBLPROPERTIES ('p{k}' = '1')" for k in range(7)}
    found = predict_workload(_workload(**jobs, **BESIDE), "delta-serializable", examples=False)
    assert {one.name for one in found.workload.unread} == set(jobs)
    assert "more than 48 different definitions" in found.workload.unread[0].problem


def test_statements_without_effect_are_passed_over():
    """A table that exists is not created, and a dry run commits nothing."""
    jobs = {
        "once": "CREATE TABLE IF NOT EXISTS shop.t (id BIGINT) USING delta",
        "dry": "VACUUM t DRY RUN",
    }
    work = _workload(**BESIDE, **jobs)
    assert set(work.jobs) == set(BESIDE)
    assert any("because the table exists" in one for one in work.assumptions)


QUERIES = {
    "SELECT *, 1 AS x FROM s": False,
    "SELECT id, day, v FROM s": False,
    "SELECT * FROM raw.new": True,
    "SELECT id, 'x' AS v, day FROM raw.new AS n WHERE n.kind = 'y'": True,
    "WITH n AS (SELECT *, rank() OVER (ORDER BY id) AS k FROM s) SELECT id, v, day FROM n": True,
    "SELECT count(*) AS id, 'x' AS v, day FROM s GROUP BY day HAVING count(*) > 1": True,
    "SELECT CAST(id AS INT) AS id, v, day FROM s LIMIT 3": True,
    "SELECT id, v, day FROM t WHERE mine(id)": True,
}


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
def test_a_table_may_be_replaced_by_any_query_with_its_columns(query):
    """A query that is not modelled may return any rows; one with other columns is not understood."""
    make = f"CREATE OR REPLACE TABLE t USING delta PARTITIONED BY (day) AS {query}"
    found = predict_workload(_workload(make=make, **BESIDE), "delta-serializable")
    assert (not found.workload.unread) == QUERIES[query]
    if QUERIES[query]:
        assert _words(found, "make", "append") == "A!"
        assert _words(found, "append", "make") == "M!"


@pytest.mark.slow
def test_clauses_of_a_replaced_table_come_in_any_order():
    """A location is assumed to be the table's own; partitions have to be those declared."""
    make = (
        "CREATE OR REPLACE TABLE lake.shop.t USING delta COMMENT 'all' LOCATION '/lake/t'"
        " TBLPROPERTIES ('team' = 'us') PARTITIONED BY (day) AS SELECT id, v, day FROM s"
    )
    found = predict_workload(_workload(make=make, **BESIDE), "delta-serializable")
    assert _words(found, "append", "make") == "M!"
    assert found.workload.assumptions == (
        "What a name of a table lacks is the same as in its declaration: lake.shop.t is the declared t.",
        "make: LOCATION '/lake/t' is the folder of its table.",
    )


@pytest.mark.slow
@pytest.mark.parametrize("level", ["delta-serializable", "delta-write-serializable"])
@pytest.mark.parametrize("name", sorted(ALTERING_JOBS))
def test_robust_agrees_with_searches_of_jobs_that_alter_a_table(name, level):
    """A promise that is proved is not broken by two or three runs."""
    domains = {p: (0,) for p in "kp" if f":{p}" in SMALL[name]}
    small = SmallJobs(partitioned=True, jobs={name: domains, "cleanup": {"p": (0,)}})
    broken = small.broken(level)
    for found in decide_all(small.workload, (protocol(level),), PROMISES):
        assert found.word != "safe" or found.promise not in broken
        assert found.word == "safe" or level != "delta-serializable"
