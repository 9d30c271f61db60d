"""Each pair of features that are not modelled together, in a file: it is refused on account of that
pair alone.
"""

import pytest
from formats.store import STORE

from isolitmus.checker.execution.commit_loop import execute
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.scope_file import read_scope
from isolitmus.specs.registries import FORMATS
from isolitmus.specs.sql import unsupported_pairs as apart

HEAD = 'title = "t"\n'
PLAIN = '[table]\ncolumns = "id INT, part INT"\npartitioned_by = ["part"]\n'
WHOLE = '[table]\ncolumns = "part INT"\npartitioned_by = ["part"]\n'
FEW = '[table]\ncolumns = "id INT, part INT"\nrows_per_file = 2\n'
NUMBERED = '[table]\ncolumns = "id INT, n BIGINT GENERATED ALWAYS AS IDENTITY"\n'
ABSENT = '[table]\ncolumns = "id INT"\nexists = false\n'
ONE = '[table]\ncolumns = "id INT"\n'
RENAMES = ONE + 'properties = { "delta.columnMapping.mode" = "name" }\n'
CLUSTERED = ONE + 'clustered_by = ["id"]\n'
PARQUET = ONE + "parquet = [[1]]\n"
SAID = ONE + 'files = [{ path = "f", stats = { numRecords = 1 } }]\n'
TRACKED = ONE + 'properties = { "delta.feature.rowTracking" = "supported" }\n'
VECTORS = ONE + 'properties = { "delta.enableDeletionVectors" = "true" }\n'
INIT = 'init = ["INSERT INTO t VALUES (1)"]\n'
GROWS = 'options = { mergeSchema = "true" }'
RENAME = '"ALTER TABLE t RENAME COLUMN id TO x"'
ADD = '"ALTER TABLE t ADD COLUMN x INT"'
CONVERT = '"CONVERT TO DELTA t"'
CACHE = 'before = ["CACHE TABLE t"]'
ON = "MERGE INTO t USING (SELECT 1 AS id, 1 AS part) s ON t.id = s.id"
EVOLVING = "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 1 AS id) s ON 1 = 0"
AUTO = 'conf = { "spark.databricks.delta.schema.autoMerge.enabled" = "true" }'
DYNAMIC = 'conf = { "spark.sql.sources.partitionOverwriteMode" = "dynamic" }'


def file(table, *transactions, schedule="a"):
    given = "".join(f"{n} = {t}\n" for n, t in zip("ab", transactions, strict=False))
    return f'{HEAD}schedule = "{schedule}"\n{table}[transactions]\n{given}'


def scope(table, sql):
    return f"{HEAD}{table}[scope]\ntransactions = 2\nstatements = [{sql}]\n"


FILES = {
    ("REPLACE TABLE", "a table that is cached"): file(
        ONE, f'{{ sql = "DELETE FROM t", {CACHE} }}', '"REPLACE TABLE t (id INT) USING delta"', schedule="a b"
    ),
    ("a table that is made or replaced", "DROP or RENAME COLUMN"): file(
        RENAMES, RENAME, '"REPLACE TABLE t (id INT) USING delta"', schedule="a b"
    ),
    ("CACHE TABLE", "a statement that fills no cache anew"): file(PLAIN, f'{{ sql = "VACUUM t", {CACHE} }}'),
    ("CACHE TABLE", "a table that is not there at the start"): file(
        ABSENT, f'{{ sql = "SELECT id FROM t", {CACHE} }}'
    ),
    ("a Parquet table", "a statement other than CONVERT TO DELTA"): file(PARQUET, '"DELETE FROM t"'),
    ("columns that a transaction adds or renames", "a query, or a table that is made or replaced"): file(
        ONE, ADD, '"SELECT x FROM t"', schedule="a b"
    ),
    ("app", "a statement other than INSERT, DELETE, UPDATE and MERGE"): file(
        PLAIN, '{ sql = "TRUNCATE TABLE t", app = { id = "x", version = 1 } }'
    ),
    ("the conf schema.autoMerge.enabled", "the * of a MERGE"): file(
        PLAIN, f'{{ sql = "{ON} WHEN NOT MATCHED THEN INSERT *", {AUTO} }}'
    ),
    ("a dynamic partition overwrite", "PARTITION or REPLACE WHERE"): file(
        PLAIN, f'{{ sql = "INSERT OVERWRITE t PARTITION (part = 0) SELECT 1", {DYNAMIC} }}'
    ),
    ("mergeSchema", "DROP or RENAME COLUMN"): file(
        RENAMES, RENAME, f'{{ write = "append", query = "SELECT 1 AS id", {GROWS} }}', schedule="a b"
    ),
    ("MERGE WITH SCHEMA EVOLUTION", "DROP or RENAME COLUMN"): file(
        RENAMES, RENAME, f'"{EVOLVING} WHEN NOT MATCHED THEN INSERT *"', schedule="a b"
    ),
    ("mergeSchema", "an overwrite, or dataChange = false"): file(
        PLAIN, f'{{ write = "overwrite", query = "SELECT 1, 1, 2 AS y", {GROWS} }}'
    ),
    ("mergeSchema", "let"): file(
        PLAIN, f'{{ write = "append", query = "SELECT 1, 1, 2 AS y", let = {{ n = "SELECT 1" }}, {GROWS} }}'
    ),
    ("a write without mergeSchema", "a statement that alters columns"): file(
        ONE, ADD, '{ write = "append", query = "SELECT 1" }', schedule="a b"
    ),
    ("replaceUsing", "dataChange"): file(
        PLAIN,
        '{ write = "overwrite", query = "SELECT 1, 1", options = { replaceUsing = "id", dataChange = "false" } }',
    ),
    ("replaceUsing", "a query of the table itself"): file(
        PLAIN,
        '{ write = "overwrite", query = "SELECT id, part FROM t", options = { replaceUsing = "id" } }',
    ),
    ("a raw transaction or a micro-batch", "a table that is not there at the start"): file(
        ABSENT, '{ stream = "append", query = "SELECT 1" }'
    ),
    ("a statement of SQL", "a table that a DataFrame write makes"): file(
        ABSENT, '{ write = "append", query = "SELECT 1" }', '"SELECT id FROM t"', schedule="a b"
    ),
    ("a raw transaction, a DataFrame write or a micro-batch", "identity columns"): file(
        NUMBERED, '{ reads = ["true"] }'
    ),
    ("large", "reads, app or blind"): file(PLAIN, '{ large = true, reads = ["true"] }'),
    ("a protocol of its own", "more than sql and let"): file(
        ONE, '{ sql = "DELETE FROM t", protocol = "delta-rs-serializable", session = "s" }'
    ),
    ("a transaction that is not raw", "every column of a table in partitioned_by"): file(
        WHOLE, '"DELETE FROM t"'
    ),
    ("a table by SQL", "the property delta.feature.clustering"): file(
        ONE + 'properties = { "delta.feature.clustering" = "supported" }\n', '"DELETE FROM t"'
    ),
    ("a statement that reads rows", "files"): file(SAID, '"DELETE FROM t WHERE id = 1"'),
    ("a file without stats", "a deletion vector"): file(
        VECTORS + 'files = [{ path = "f", dv = "v" }]\n', '{ removes = ["f"] }'
    ),
    ("a file without stats", "row tracking"): file(TRACKED, '{ adds = [{ path = "f" }] }'),
    ("a deletion vector", "a table without deletion vectors"): file(
        ONE + 'files = [{ path = "f", dv = "v", stats = { numRecords = 1 } }]\n', '{ removes = ["f"] }'
    ),
    ("a backfill", "a table without row tracking"): file(ONE, '{ operation = "RowTrackingBackfill" }'),
    ("files", "init"): file(SAID + INIT, '{ removes = ["f"] }'),
    ("a step park-…", "a query"): file(PLAIN, '"SELECT id FROM t"', schedule="a.park-prepare a.commit"),
    ("a step park-init", "a table that is not there at the start"): file(
        ABSENT, '"INSERT INTO t VALUES (1)"', schedule="a.park-init a.commit"
    ),
    ("a step park-init", "OPTIMIZE"): file(PLAIN, '"OPTIMIZE t"', schedule="a.park-init a.commit"),
    ("an init statement", "VERSION AS OF or another path"): file(
        ONE + 'init = ["INSERT INTO t VALUES (1)", "INSERT INTO t SELECT id FROM t VERSION AS OF {init[1]}"]\n',
        '"DELETE FROM t"',
    ),
    ("the conf shuffle.partitions above 1", "a statement that shuffles rows"): file(
        PLAIN,
        '{ sql = "INSERT INTO t SELECT id, count(*) FROM t GROUP BY id", conf = { "spark.sql.shuffle.partitions" = "7" } }',
    ),
    ("partitioned_by", "clustered_by"): file(PLAIN + 'clustered_by = ["id"]\n', '"DELETE FROM t"'),
    ("exists = false", "init"): file(ABSENT + INIT, '"SELECT id FROM t"'),
    ("exists = false", "files"): file(ABSENT + 'files = [{ path = "f" }]\n', '"SELECT id FROM t"'),
    ("exists = false", "properties"): file(
        ABSENT + 'properties = { "delta.appendOnly" = "true" }\n', '"SELECT id FROM t"'
    ),
    ("exists = false", "clustered_by"): file(ABSENT + 'clustered_by = ["id"]\n', '"SELECT id FROM t"'),
    ("parquet", "init"): file(PARQUET + INIT, CONVERT),
    ("parquet", "files"): file(PARQUET + 'files = [{ path = "f" }]\n', CONVERT),
    ("parquet", "exists"): file(PARQUET + "exists = true\n", CONVERT),
    ("parquet", "clustered_by"): file(PARQUET + 'clustered_by = ["id"]\n', CONVERT),
    ("parquet", "a property that is no switch"): file(
        PARQUET + 'properties = { "delta.columnMapping.mode" = "name" }\n', CONVERT
    ),
    ("parquet", "identity columns"): file(NUMBERED + "parquet = [[1, 1]]\n", CONVERT),
    ("a statement that cannot write generated values", "identity columns"): file(
        NUMBERED, '"RESTORE TABLE t TO VERSION AS OF {init[1]}"'
    ),
    ("rows that come in no certain order", "identity columns"): file(
        NUMBERED, '"INSERT INTO t (id) SELECT id FROM t"'
    ),
    ("GROUP BY in an INSERT", "rows_per_file above 1"): file(
        FEW, '"INSERT INTO t SELECT id, part FROM t GROUP BY id, part"'
    ),
    ("ORDER BY in an INSERT", "rows_per_file above 1"): file(
        FEW, '"INSERT INTO t SELECT id, part FROM t ORDER BY id"'
    ),
    ("ZORDER BY", "rows_per_file above 1"): file(FEW, '"OPTIMIZE t ZORDER BY (id)"'),
    ("OPTIMIZE", "a clustered table"): file(CLUSTERED, '"OPTIMIZE t"'),
    ("REPLACE WHERE", "a list of columns"): file(
        PLAIN, '"INSERT INTO t (id, part) REPLACE WHERE part = 0 SELECT 1, 0"'
    ),
    ("SHALLOW CLONE", "files"): file(
        '[tables.t]\ncolumns = "id INT"\nfiles = [{ path = "f" }]\n[tables.u]\ncolumns = "id INT"\nexists = false\n',
        '"CREATE TABLE u SHALLOW CLONE t"',
    ),
    ("a correlated subquery", "an aggregate"): file(
        PLAIN, '"SELECT id FROM t WHERE id = (SELECT max(u.id) FROM t u WHERE u.part = t.part)"'
    ),
    ("a lone WHEN MATCHED THEN DELETE", "WHEN NOT MATCHED BY SOURCE"): file(
        PLAIN, f'"{ON} WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN DELETE"'
    ),
    ("a scope", "a table that is not there at the start"): scope(ABSENT, '"INSERT INTO t VALUES (1)"'),
    ("a scope", "VACUUM"): scope(ONE, '"VACUUM t"'),
    ("a scope", "VERSION AS OF or another path"): scope(
        ONE + INIT, '"INSERT INTO t SELECT id FROM t VERSION AS OF {init[1]}"'
    ),
    ("a scope", "identity columns"): scope(NUMBERED, '"INSERT INTO t (id) VALUES (1)"'),
    ("a step before or park-…", "a format other than Delta's"): (
        f'{HEAD}format = "{FORMATS.offer(STORE).name}"\nschedule = "a.before a"\n'
        '[table]\ncolumns = "key STRING, value INT"\n[transactions]\na = "GET x"\n'
    ),
}  # fmt: skip
"""By pair, a file that has both."""


def carried_out(text, name):
    return execute(read_litmus(text, name), protocol("delta-serializable"))


BY = {"a scope": read_scope, "OPTIMIZE": carried_out}
"""Who finds that a pair is there, by its first feature, where that is not the reader of litmus
tests.
"""


def test_each_pair_has_a_file():
    assert FILES.keys() == apart.APART.keys()


@pytest.mark.slow
@pytest.mark.parametrize("pair", FILES, ids="; ".join)
def test_a_pair_is_refused_and_only_on_its_account(pair, monkeypatch):
    read = BY.get(pair[0], read_litmus)
    start = next(text for text in apart.APART[pair].format_map(Any()).split("…") if len(text) > 9)
    with pytest.raises(IsolitmusError) as refused:
        read(FILES[pair], "t")
    assert start.strip() in str(refused.value)
    monkeypatch.setattr(apart, "APART", {p: why for p, why in apart.APART.items() if p != pair})
    try:
        read(FILES[pair], "t")
    except IsolitmusError as error:
        assert start.strip() not in str(error)


class Any(dict):
    def __missing__(self, key):
        return "…"
