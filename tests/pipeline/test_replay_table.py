"""The Delta table of what engines did: what is in it is not asked again."""

import json
from dataclasses import replace
from functools import partial

import duckdb
import pytest
from hypothesis import strategies as st

from isolitmus.checker import audit, run
from isolitmus.conformance.agreement import draw_tests, explore
from isolitmus.model.engine import RunsTests
from isolitmus.model.errors import IsolitmusError
from isolitmus.pipeline.replay_table import (
    REPLAYS,
    RecordedEngine,
    Replayed,
    ReplayTable,
)
from isolitmus.specs import litmus, protocol
from isolitmus.specs.disk.output_files import Location
from isolitmus.specs.files.litmus_file import read_litmus

SMALL = """
title = "Small"
tables.t = { columns = "id INT, part INT", init = ["INSERT INTO t VALUES (1, 0)"] }
layouts.whole = { winner = 0 }
statements.insert = "INSERT INTO t VALUES ({new}, {p})"
statements.delete = "DELETE FROM t WHERE id = 1"
"""


@pytest.mark.slow
def test_a_table_of_something_else_is_refused_before_spark_starts(call, delta):
    table = delta.table(delta.append(0, "f"))
    with pytest.raises(IsolitmusError, match="this table holds no replays"):
        ReplayTable.refuse_others(table)
    status, _, err = call("matrix", "--engine", "delta", "--out", table)
    assert status == 2
    assert "holds no replays; name a folder that is not there yet" in err


@pytest.mark.spark
@pytest.mark.usefixtures("session")
def test_a_matrix_goes_on_where_its_table_ends(call, tmp_path):
    out, file = tmp_path / "replays", tmp_path / "small.toml"
    file.write_text(SMALL)
    words = ("matrix", file, "--engine", "delta", "--out", out, "--protocol", "delta-serializable")
    status, half, err = call(*words, "--shard", "1/2", "--json")
    assert (status, err) == (0, "")
    assert [(c["a"], c["observed"]) for c in json.loads(half)] == [
        ("insert", "committed"),
        ("delete", "ConcurrentAppendException"),
    ]
    status, whole, err = call(*words)
    assert (status, err) == (0, "")
    assert whole.splitlines()[2:4] == ["  1  insert . .", "  2  delete A R"]
    assert "4 of 4 cases as predicted." in whole
    done = audit(out)
    assert (done.commits, done.findings) == (3, ())  # made, and written twice


def test_a_run_that_is_not_as_predicted_is_a_row_that_says_so():
    test, under = litmus("reorder"), protocol("delta-write-serializable")
    seen = run(test, under).run
    columns = [*REPLAYS.columns][3:]
    good = dict(zip(columns, Replayed(test, under, seen).row(), strict=True))
    ends = {"delete": "committed", "insert": "committed"}
    assert (good["predicted"], good["observed"], good["equal"]) == (ends, ends, True)
    assert run(read_litmus(good["litmus"], "reorder"), under).run == seen
    other = replace(seen.transactions["delete"], outcome="ConcurrentAppendException")
    flipped = replace(seen, transactions={**seen.transactions, "delete": other})
    bad = dict(zip(columns, Replayed(test, under, flipped).row(), strict=True))
    assert bad["observed"] == ends | {"delete": "ConcurrentAppendException"}
    assert not bad["equal"]
    assert any("ConcurrentAppendException" in difference for difference in bad["differences"])


@pytest.mark.spark
def test_what_is_kept_of_random_tests_is_known_again_unless_some_differ(session, tmp_path):
    under = protocol("delta-write-serializable")
    tests = st.sampled_from([litmus("reorder"), litmus("two-updates-one-row")])
    replays = ReplayTable(session.spark, Location(str(tmp_path / "replays")))

    def carry(test, spec):
        return run(test, spec).run

    def fails(test, spec):
        done = run(test, spec).run
        ends = {
            name: replace(one, outcome="aborted") if one.outcome == "committed" else one
            for name, one in done.transactions.items()
        }
        return replace(done, transactions=ends) if test.name == "reorder" else done

    watched = RecordedEngine(RunsTests("engine 1", carry))
    found = explore(tests, 4, 1, watched.carry, protocols=[under])
    batch, pairs = found.batch("few"), partial(draw_tests, tests, 4, 1, [under])
    replays.write("few", batch.drawn, "engine 1", watched.seen)
    assert replays.agreed(batch, "engine 1", pairs) == batch
    assert replays.agreed(batch, "engine 2", pairs) is None
    assert replays.agreed(replace(batch, drawn="other"), "engine 1", pairs) is None
    flipped = RecordedEngine(RunsTests("engine 1", fails))
    assert explore(tests, 4, 1, flipped.carry, protocols=[under]).mismatch.test.name == "reorder"
    replays.write("few", batch.drawn, "engine 1", flipped.seen)
    assert replays.agreed(batch, "engine 1", pairs) is None
    rows = session.spark.sql(
        f"SELECT count(*), count(DISTINCT litmus) FROM delta.`{tmp_path}/replays`"
    )
    assert tuple(rows.first()) == (2, 2)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("session")
def test_random_tests_and_findings_of_a_sweep_are_kept(call, tmp_path):
    """What is in the table is not carried out again; what did not agree there is."""
    out = tmp_path / "replays"
    words = ("explore", "raw", "--count", "3", "--out", out, "--json")
    first, again = (call(*words) for _ in range(2))
    assert first == again
    assert first[0] == 0
    assert audit(out).commits == 2  # made, and written once
    data = tmp_path / "data"
    words = ("sweep", "writers-partitioned", "--transactions", "2", "--spark")
    status, swept, err = call(*words, "--out", data, "--engine", "delta", "--json")
    assert (status, err) == (1, "")
    replays = json.loads(swept)["replays"]
    rows = duckdb.sql(
        f"SELECT of, equal, observed, predicted FROM '{data}/replays/*.parquet'"
    ).fetchall()
    assert len(rows) == sum(len(one["runs"]) for one in replays) > 0
    assert all(
        of == "writers-partitioned" and equal and seen == told for of, equal, seen, told in rows
    )
