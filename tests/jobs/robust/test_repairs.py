"""What would end conflicts is asked anew, with what it costs."""

import pytest

from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.render.prediction import change_lines
from isolitmus.jobs.robust.repairs import conflicting_pairs, try_changes
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs import protocol

DDL = 'ddl = "CREATE TABLE t (id INT, day DATE) USING delta PARTITIONED BY (day)"\n'
CLEANUP = '[jobs.cleanup]\nsql = "DELETE FROM t WHERE day = :day"\n'
INGEST = '[jobs.ingest]\nsql = "INSERT INTO t VALUES (:id, :day)"\n'
UPSERT = (
    '[jobs.upsert]\nsql = "MERGE INTO t USING (SELECT :id AS id, :day AS day) AS new ON t.id ='
    ' new.id AND t.day = new.day WHEN NOT MATCHED THEN INSERT *"\nparameters = { id = "INT", day ='
    ' "DATE" }\n'
)
READER = '[jobs.look]\nsql = "SELECT * FROM t"\n'


def changes(jobs, under="delta-serializable"):
    spec = protocol(under)
    found = predict_workload(read_workload(DDL + jobs, "w"), spec)
    return {change.title: change for change in try_changes(found, spec)}


@pytest.mark.slow
def test_runs_that_never_have_the_same_value_do_not_meet():
    change = changes(CLEANUP + INGEST)["never run two jobs with the same :day at the same time"]
    assert change.ends == (("cleanup", "cleanup"), ("cleanup", "ingest"))
    assert change.costs == ("the scheduler has to ensure it",)
    again = predict_workload(change.workload, change.under)
    assert conflicting_pairs(again) == {}


@pytest.mark.slow
def test_another_parameter_ends_nothing():
    assert "never run two jobs with the same :id at the same time" not in changes(CLEANUP + INGEST)


INSERTED = "write upsert as INSERT INTO t VALUES (:id, :day)"


@pytest.mark.slow
def test_an_insert_in_place_of_a_merge_costs_the_promises_that_it_breaks():
    """At WriteSerializable a blind append is passed over: what was the log's order is so no
    more.
    """
    change = changes(UPSERT + CLEANUP, "delta-write-serializable")[INSERTED]
    assert ("upsert", "upsert") in change.ends
    assert change.costs == (
        "the INSERT adds rows that exist already once more, even without concurrent jobs",
        "update-serializable is no longer kept",
        "log-serializable is no longer kept",
    )
    at_serializable = changes(UPSERT + CLEANUP)[INSERTED]
    assert len(at_serializable.costs) == 1


MERGES = {
    "WHEN NOT MATCHED AND s.id > 3 THEN INSERT (day, id) VALUES (s.day, s.id + 1)": (
        "write load as INSERT INTO t (day, id) SELECT s.day, s.id + 1 FROM s WHERE s.id > 3"
    ),
    "WHEN NOT MATCHED THEN INSERT *": "write load as INSERT INTO t SELECT s.id, s.day FROM s",
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *": None,
    "WHEN NOT MATCHED BY SOURCE THEN DELETE": None,
}


@pytest.mark.slow
@pytest.mark.parametrize("clauses", MERGES)
def test_which_merges_only_insert(clauses):
    jobs = (
        '[tables.t]\ncolumns = "id INT, day DATE"\n[tables.s]\ncolumns = "id INT, day'
        f' DATE"\n[jobs.load]\nsql = "MERGE INTO t USING s ON t.id = s.id {clauses}"\n'
    )
    spec = protocol("delta-serializable")
    found = try_changes(predict_workload(read_workload(jobs, "w"), spec), spec)
    titles = [change.title for change in found if "load as" in change.title]
    assert titles == [title for title in [MERGES[clauses]] if title is not None]


RETRY = "retry after the other transaction has committed (in the examples)"


@pytest.mark.slow
def test_a_retry_sees_what_was_missed():
    counted = (
        '[jobs.count]\nsql = ["INSERT INTO t SELECT :n, day FROM t WHERE day = :day", "DELETE FROM'
        ' t WHERE day = :day"]\nlet = { n = "SELECT count(*) FROM t" }\n'
    )
    change = changes(counted + INGEST)[RETRY]
    assert ("count_1", "ingest") in change.ends
    assert change.costs == (
        "count_1 has to read n again",
        "of count, only count_1 is retried: earlier statements have committed",
        "of count, only count_2 is retried: earlier statements have committed",
    )
    assert any(
        line.startswith("    a retry of count_1 does not fail after")
        for line in change_lines([change])
    )


def test_where_nobody_is_stopped_nothing_is_retried():
    assert changes(INGEST) == {}


@pytest.mark.slow
def test_a_level_costs_what_it_promises():
    change = changes(CLEANUP + INGEST)["set the isolation level to WriteSerializable"]
    assert change.costs == (
        "update-serializable is no longer kept",
        "log-serializable is no longer kept",
    )


DISTINCT = {
    "no parameter": ('distinct = ["dya"]', "w.toml:1: distinct names 'dya', but no job has this parameter; did you mean 'day'?"),
    "a shared one": (
        'distinct = ["today"]\nshared = { today = "DATE" }',
        "w.toml:1: distinct names 'today', but shared parameters have one value in all runs; remove it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DISTINCT)
def test_distinct_parameters_that_are_none(case):
    head, message = DISTINCT[case]
    with pytest.raises(IsolitmusError) as refused:
        read_workload(f"{head}\n{DDL}{CLEANUP}{INGEST}", "w")
    assert str(refused.value) == message


def test_a_distinct_parameter_of_two_types():
    jobs = '[jobs.other]\nsql = "DELETE FROM t WHERE id = :day"\n'
    with pytest.raises(IsolitmusError) as refused:
        read_workload(f'distinct = ["day"]\n{DDL}{CLEANUP}{jobs}', "w")
    assert (
        str(refused.value)
        == "w.toml:1: distinct names 'day', but the parameter has several types: DATE in cleanup,"
        " INT in other"
    )
