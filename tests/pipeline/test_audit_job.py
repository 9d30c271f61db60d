"""Audits on Spark: the same findings as here, and as rows of a Delta table."""

import json
from dataclasses import replace

import duckdb
import pytest

from isolitmus.checker import audit
from isolitmus.pipeline.audit_job import AUDITS, audit_function, audits_from_rows

pa = pytest.importorskip("pyarrow", reason="the extra spark is not installed")


@pytest.fixture
def tables(delta):
    """A table with a reorder, one with claims that cannot be, one where nothing is found, and
    none.
    """
    reordered = delta.table(
        delta.append(0, "f1"), delta.append(1, "f2"), delta.delete(1, None, "f1"), name="reordered"
    )
    odd = delta.table(delta.append(7, "f1"), delta.delete(7, None, "g"), name="odd")
    return [reordered, odd, delta.table(delta.append(0, "f"), name="quiet"), delta.folder / "none"]


def without_seconds(done):
    return replace(done, seconds=0)


@pytest.mark.slow
def test_rows_of_tables_hold_what_the_audits_find(tables):
    paths = [str(table) for table in tables]
    batches = iter([pa.RecordBatch.from_pydict({"id": part}) for part in ([0, 1, 2], [3])])
    rows = [row for batch in audit_function(paths, "x")(batches) for row in batch.to_pylist()]
    assert {tuple(row) for row in rows} == {tuple(AUDITS.columns)}
    audits, errors = audits_from_rows({path: path for path in paths}, reversed(rows))
    here = [audit(table) for table in tables[:3]]
    assert list(map(without_seconds, audits)) == list(map(without_seconds, here))
    assert ["there is no such folder" in str(error) for error in errors] == [True]


def test_what_is_in_the_way_of_findings_is_said_before_spark_starts(call, tables):
    for out, sentence in (
        (tables[0], "this table holds no findings; name a folder that is not there yet"),
        (tables[0].parent, "exists and is not a Delta table"),
    ):
        status, _, err = call("audit", *tables, "--spark", "--out", out)
        assert status == 2
        assert sentence in err


@pytest.mark.spark
@pytest.mark.usefixtures("session")
def test_on_spark_the_same_is_found_and_written(call, tables, tmp_path):
    out = tmp_path / "findings"
    status, here, _ = call("audit", *tables, "--json")
    assert status == 2
    words = ("audit", *tables, "--json", "--spark", "--out", out)
    for _ in range(
        2
    ):  # the second audits what has no log that reads, and tells of the others what is there
        status, there, err = call(*words)
        assert status == 2
        assert "there is no such folder" in err
        documents = [json.loads(text) for text in (here, there)]
        for document in documents:
            for one in document:
                one.pop("seconds")
        assert documents[0] == documents[1]
    done = audit(out)
    assert (done.commits, done.findings) == (3, ())  # made, and written twice
    there = duckdb.sql(f"SELECT count(*) FROM '{out}/*.parquet' WHERE kind = 'table'")
    assert there.fetchall() == [(3,)]  # of three tables one each
