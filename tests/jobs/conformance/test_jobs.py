"""What is predicted of jobs happens on the engine, as the model says, in every respect."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from case_checks import sample
from small_jobs import witnesses

from isolitmus.checker.execution.run_result import run
from isolitmus.conformance import replay
from isolitmus.conformance.agreement import digest_tests, find_mismatches
from isolitmus.conformance.delta.engine import DELTA, open_delta
from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.model.errors import UndeterminedError
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus


@pytest.mark.spark
@pytest.mark.parametrize("under", ["delta-serializable", "delta-write-serializable"])
def test_the_examples_of_the_shop_happen(session, seed, pytestconfig, under):
    """Of the workload that ships, at both levels: a fifth of its examples, drawn by the seed; with
    ``--whole`` all.
    """
    spec = protocol(under)
    examples = predict_workload(workload("shop"), spec).examples
    assert len(examples) > 10
    tests = sample(examples, seed, pytestconfig.option.whole)
    asked = ((test, spec) for test in tests)
    assert [
        str(found) for found in find_mismatches(asked, open_delta(session), DELTA.at_once)
    ] == []


ALTERING = """
ddl = [
  "CREATE TABLE t (id BIGINT, day DATE) USING delta PARTITIONED BY (day)",
  "CREATE TABLE s (id BIGINT, day DATE) USING delta",
]
[jobs]
append = "INSERT INTO t VALUES (1, DATE '2026-01-01')"
tag = "ALTER TABLE t SET TBLPROPERTIES ('team' = 'us')"
untag = "ALTER TABLE t UNSET TBLPROPERTIES ('team')"
column = "ALTER TABLE t ADD COLUMN z INT"
make = "CREATE OR REPLACE TABLE t USING delta COMMENT 'all' PARTITIONED BY (day) AS SELECT id, day FROM s"
keep = "INSERT INTO t REPLACE WHERE NOT (day < DATE '2026-01-01') VALUES (2, DATE '2026-01-02')"
back = "RESTORE TABLE t TO VERSION AS OF 3"
"""


@pytest.mark.spark
def test_the_examples_of_jobs_that_alter_a_table_happen(session, seed, pytestconfig):
    """Some of them, drawn by the seed; with ``--whole`` all."""
    spec = protocol("delta-serializable")
    examples = predict_workload(read_workload(ALTERING, "altering"), spec).examples
    assert len(examples) > 30
    whole = pytestconfig.option.whole
    tests = examples if whole else sample(examples, seed, whole)[:4]
    asked = ((test, spec) for test in tests)
    assert [
        str(found) for found in find_mismatches(asked, open_delta(session), DELTA.at_once)
    ] == []


OF_DAY = "(SELECT id, day FROM r WHERE day = DATE '2026-01-01') q"
RACE = """
title    = "A query that joins the table it is inserted into, which an INSERT overtakes"
schedule = "a.start b a.commit"
[tables.t]
columns = "id INT, day DATE"
partitioned_by = ["day"]
[tables.r]
columns = "id INT, day DATE"
init = ["INSERT INTO r VALUES (1, DATE '2026-01-01')"]
[transactions]
a = "INSERT INTO t SELECT q.id, q.day FROM {}"
b = "INSERT INTO t VALUES (1, DATE '2026-01-0{}')"
"""


@pytest.mark.spark
@pytest.mark.parametrize(
    ("source", "inferred"),
    [
        (f"{OF_DAY} LEFT ANTI JOIN t ON t.day = q.day AND t.id = q.id", True),
        (f"{OF_DAY} LEFT JOIN t ON t.day = q.day AND t.id = q.id", True),
        (f"{OF_DAY} WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.day = q.day AND t.id = q.id)", False),
    ],
)
def test_spark_infers_conditions_of_the_scan_of_a_joined_table(session, source, inferred):
    """A condition in the query that is joined counts for the written table as well: Delta records
    the partitions of that day only, and the model leaves it open. Not so for EXISTS.
    """
    spec = protocol("delta-serializable")
    for day, committed in ((1, False), (2, inferred)):
        test = read_litmus(RACE.format(source, day), "joined")
        outcome = replay(test, spec.name, session).transactions["a"].outcome
        assert outcome == ("committed" if committed else "ConcurrentAppendException")
        if inferred:
            with pytest.raises(UndeterminedError, match="up to what Spark's optimizer makes"):
                run(test, spec)
        else:
            assert run(test, spec).run.transactions["a"].outcome == outcome


EVIDENCE = Path(__file__).parents[3] / "conformance" / "evidence" / "jobs.toml"


@pytest.mark.spark
@pytest.mark.parametrize("many", [8, pytest.param(100, marks=pytest.mark.wide)])
def test_counterexamples_happen(session, many):
    """What breaks a promise of small jobs does so on the engine; the evidence says of which it was
    seen.
    """
    spec = protocol("delta-write-serializable")
    cases = [(test, spec) for test in witnesses(many)]
    assert len(cases) == many
    assert [
        str(found) for found in find_mismatches(cases, open_delta(session), DELTA.at_once)
    ] == []
    evidence = tomllib.loads(EVIDENCE.read_text("utf-8"))
    if many == evidence["witnesses"]:
        assert digest_tests(cases) == evidence["drawn"]


@pytest.mark.spark
@pytest.mark.slow
def test_the_log_of_a_real_table_says_what_its_ddl_does(session, tmp_path):
    """What Delta makes of a DDL is, by its log, the same table; so the same is predicted of it."""
    properties = "'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name'"
    ddl = (
        "CREATE TABLE {} (id BIGINT NOT NULL COMMENT 'key', n BIGINT GENERATED ALWAYS AS"
        " IDENTITY (START WITH 3), amount DECIMAL(9,2), day DATE) USING delta PARTITIONED BY (day)"
        f" TBLPROPERTIES ({properties})"
    )
    folder = tmp_path / "orders"
    session.spark.sql(ddl.format(f"delta.`{folder}`"))
    session.spark.sql(
        f"INSERT INTO delta.`{folder}` (id, amount, day) VALUES (1, 1.5, DATE '2026-01-01')"
    )
    (tmp_path / "orders.ddl").write_text(ddl.format("orders"), "utf-8")
    jobs = {
        "ingest": "INSERT INTO orders (id, amount, day) VALUES (:id, :amount, :day)",
        "erase": "DELETE FROM orders WHERE id = :id AND day = :day",
    }
    for name, sql in jobs.items():
        (tmp_path / f"{name}.sql").write_text(sql, "utf-8")
    files = [str(tmp_path / f"{name}.sql") for name in jobs]
    logged = workload(*files, tables=[str(folder)])
    declared = workload(*files, ddl=tmp_path / "orders.ddl", tables=[str(folder)])
    (found,), (said,) = logged.tables.values(), declared.tables.values()
    assert (found.ddl(), found.partitioned_by) == (said.ddl(), said.partitioned_by)
    assert found.properties.items() >= said.properties.items()
    assert logged.level == declared.level == "Serializable"
    spec = protocol("delta-serializable")
    first, second = (predict_workload(one, spec) for one in (logged, declared))
    told = [  # an example lists the properties of its table: in a log there are more
        [replace(one, examples=dict.fromkeys(one.examples)) for one in found.meetings]
        for found in (first, second)
    ]
    assert told[0] == told[1]
    tests = first.examples
    assert [
        str(one)
        for one in find_mismatches(((t, spec) for t in tests), open_delta(session), DELTA.at_once)
    ] == []
