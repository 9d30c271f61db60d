"""Confs and features: what a commit records and tries, and what cannot be done to a table."""

import pytest

from isolitmus.checker.execution.commit_loop import execute
from isolitmus.checker.execution.run_result import run
from isolitmus.model.errors import LitmusError
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus

SKIPPING = "spark.databricks.delta.stats.skipping"
FEATURE = "ALTER TABLE t SET TBLPROPERTIES ('delta.feature.%s' = 'supported')"


def one(sql, *init, conf="", table='partitioned_by = ["part"]', before=""):
    inits = ", ".join(f'"{text}"' for text in ("INSERT INTO t VALUES (1, 0), (2, 1)", *init))
    return read_litmus(
        f"""
title = "T"
schedule = "a"
[table]
columns = "id INT, part INT"
{table}
init = [{inits}]
[transactions.a]
sql = "{sql}"
conf = {{ {conf} }}
before = [{before}]
""",
        "t",
    )


def footprint(sql, **rest):
    (event,) = execute(one(sql, conf=f'"{SKIPPING}" = "false"', **rest)).events
    return event.effect.footprint


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "whole", "files"),
    [
        ("DELETE FROM t WHERE part = 0", False, 1),
        ("DELETE FROM t WHERE id = 1", True, 2),
        ("DELETE FROM t WHERE part = 5 AND id = 1", False, 0),
        ("UPDATE t SET id = 3 WHERE part = 0", True, 1),
        ("UPDATE t SET id = 3 WHERE part = 5", False, 0),
        ("MERGE INTO t USING (SELECT 1 AS id) s ON t.part = 5 AND t.id = s.id WHEN MATCHED THEN DELETE", True, 0),
        ("INSERT INTO t VALUES (3, 0)", False, 0),
        ("INSERT INTO t SELECT id, 1 FROM t WHERE part = 0", True, 0),
        ("INSERT INTO t SELECT id, 1 FROM t VERSION AS OF {init[1]} WHERE part = 0", True, 0),
        ("INSERT INTO t SELECT id, 1 FROM delta.`{alias}` WHERE part = 0", False, 0),
        ("INSERT INTO t SELECT (SELECT max(id) FROM t), 1", True, 0),
        ("INSERT INTO t REPLACE WHERE part = 0 AND id < 5 VALUES (4, 0)", True, 1),
        ("INSERT INTO t REPLACE WHERE part = 0 VALUES (4, 0)", False, 1),
        ("TRUNCATE TABLE t", False, 2),
        ("OPTIMIZE t", False, 0),
    ],
)  # fmt: skip
def test_without_skipping_who_looks_at_rows_reads_the_whole_table(sql, whole, files):
    seen = footprint(sql)
    assert (seen.whole_table, len(seen.files)) == (whole, files)
    assert (() in seen.predicates) >= whole


def test_with_vectors_a_delete_looks_for_rows_even_where_no_file_is_left():
    table = 'partitioned_by = ["part"]\nproperties = { "delta.enableDeletionVectors" = "true" }'
    assert footprint("DELETE FROM t WHERE part = 5 AND id = 1", table=table).whole_table
    assert not footprint("UPDATE t SET id = 2 WHERE part = 5 AND id = 1", table=table).whole_table


def test_a_cached_table_is_not_even_read_then():
    assert footprint("INSERT INTO t SELECT * FROM t", before='"CACHE TABLE t"').blind


@pytest.mark.parametrize(
    ("sql", "init", "outcome"),
    [
        ("ALTER TABLE t DROP FEATURE checkConstraints", (), "error:DeltaTableFeatureException"),
        ("ALTER TABLE t DROP FEATURE checkConstraints", (FEATURE % "checkConstraints",), "committed"),
        ("ALTER TABLE t DROP FEATURE checkConstraints", ("ALTER TABLE t ADD CONSTRAINT c CHECK (id < 9)",), "error:DeltaAnalysisException"),
        ("ALTER TABLE t DROP FEATURE appendOnly", (), "error:DeltaTableFeatureException"),
        ("ALTER TABLE t DROP COLUMN id", (), "error:DeltaAnalysisException"),
        ("ALTER TABLE t CLUSTER BY (id)", (), "error:DeltaAnalysisException"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_to_a_table(sql, init, outcome):
    done = run(one(sql, *init), protocol("delta-serializable"))
    assert done.run.transactions["a"].outcome == outcome


@pytest.mark.parametrize(
    ("sql", "init", "outcome"),
    [
        ("ALTER TABLE t DROP COLUMN id", (), "committed"),
        ("ALTER TABLE t DROP COLUMN part", (), "error:DeltaAnalysisException"),
        ("ALTER TABLE t RENAME COLUMN part TO p", (), "committed"),
        ("ALTER TABLE t DROP COLUMN id", ("ALTER TABLE t DROP COLUMN n",), "error:DeltaAnalysisException"),
        ("ALTER TABLE t DROP COLUMN n", ("ALTER TABLE t DROP COLUMN n",), "error:AnalysisException"),
        ("ALTER TABLE t DROP COLUMNS (id, n)", (), "error:DeltaAnalysisException"),
        ("ALTER TABLE t DROP COLUMNS id, `n`", ("ALTER TABLE t ADD COLUMNS (z INT)",), "committed"),
        ("ALTER TABLE t RENAME COLUMN n TO m", ("ALTER TABLE t RENAME COLUMN id TO m",), "error:ExtendedAnalysisException"),
        ("ALTER TABLE t DROP COLUMN n", ("ALTER TABLE t ADD CONSTRAINT c CHECK (n < 9)",), "error:DeltaAnalysisException"),
        ("ALTER TABLE t DROP COLUMN n", ("ALTER TABLE t ADD CONSTRAINT c CHECK (id < 9)",), "committed"),
        ("ALTER TABLE t DROP COLUMN n", ("ALTER TABLE t UNSET TBLPROPERTIES ('delta.columnMapping.mode')",), "error:DeltaAnalysisException"),
        ("DELETE FROM t WHERE n = 1", ("ALTER TABLE t DROP COLUMN n",), "error:ExtendedAnalysisException"),
    ],
)  # fmt: skip
def test_columns_that_are_mapped_by_name(sql, init, outcome):
    inits = ", ".join(f'"{text}"' for text in ("INSERT INTO t VALUES (1, 5, 0)", *init))
    test = read_litmus(
        f"""
title = "T"
schedule = "a"
[table]
columns = "id INT, n INT, part INT"
partitioned_by = ["part"]
properties = {{ "delta.columnMapping.mode" = "name" }}
init = [{inits}]
[transactions]
a = "{sql}"
""",
        "t",
    )
    done = run(test, protocol("delta-serializable"))
    assert done.run.transactions["a"].outcome == outcome


def test_a_feature_that_is_there_is_written_again_only_by_its_number():
    """Delta's protocol says the first features by a number, and does not find them by name."""
    for init, writes in ((), True), ((FEATURE % "domainMetadata",), False):
        (event,) = execute(one(FEATURE % "appendOnly", *init)).events
        assert (event.effect.footprint.actions.features is not None) == writes


def test_a_clustered_table_is_not_compacted():
    test = one("OPTIMIZE t", "ALTER TABLE t CLUSTER BY (id)", table="")
    with pytest.raises(
        LitmusError, match="'OPTIMIZE t' is on a table that is clustered at that point"
    ):
        run(test, protocol("delta-serializable"))


def test_a_table_made_clustered_is_restored_with_its_clustering():
    """RESTORE sets the domain of clustering columns again, and so meets CLUSTER BY."""
    restore = "RESTORE TABLE t TO VERSION AS OF {init[1]}"
    test = one(restore, "DELETE FROM t", table='clustered_by = ["id"]')
    (event,) = execute(test).events
    assert event.effect.footprint.actions.domains == {"delta.clustering"}
