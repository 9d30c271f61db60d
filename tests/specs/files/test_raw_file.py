"""Raw transactions, definitions and applications in litmus files: what is refused, and how."""

import re

import pytest

from isolitmus.model.errors import IsolitmusError
from isolitmus.specs.files.litmus_file import read_litmus

RAW = """\
title = "T"
schedule = "a b"
[table]
columns = "id INT, part INT"
partitioned_by = ["part"]
files = [{ path = "f0", partition = { part = 0 } }]
[transactions.a]
reads = ["part = 0"]
adds = [{ path = "new", partition = { part = "1" }, stats = { numRecords = 1 } }]
removes = ["f0"]
operation = "Truncate"
[transactions.b]
app = { id = "x", version = 1 }
"""


def test_what_the_cases_are_made_of_is_right():
    test = read_litmus(RAW, "t")
    assert test.raw
    assert test.opaque == {"t"}
    assert test.transactions["a"].adds[0].partition == (1,)
    assert test.transactions["b"].app == ("x", 1)


def test_partition_columns_have_the_case_of_the_columns():
    test = read_litmus(RAW.replace('["part"]', '["PART"]'), "t")
    assert test.tables["t"].partitioned_by == ("part",)
    assert test.transactions["a"].adds[0].partition == (1,)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("reads =", "raeds =", ":8: [transactions.a] has no key 'raeds'; did you mean 'reads'?"),
        ('["part = 0"]', "[3]", ":8: transactions.a.reads holds 3; a read is"),
        ('["part = 0"]', "[{ whole_table = false }]", "transactions.a.reads holds {'whole_table': False}"),
        ('["part = 0"]', '[{ sql = "DELETE FROM t" }]', "transactions.a.reads has 'DELETE FROM t'; expected a query"),
        ('["part = 0"]', "[{ partitions = [{ id = 0 }] }]", "partition] has no key 'id'; known: part"),
        ('["part = 0"]', '["prat = 0"]', "'prat'"),
        ('removes = ["f0"]', 'removes = ["f9"]', ":10: transactions.a.removes: table t has no file 'f9'; known: f0"),
        ('path = "new"', 'path = "../new"', "adds.path is '../new'; letters, digits"),
        ('part = "1" }', "}", ":9: transactions.a.adds: a file of t needs partition = { part = … }"),
        ('part = "1" }', 'part = "x" }', "transactions.a.adds.partition: 'x' is not of type INT"),
        ("numRecords = 1", "records = 1", "adds.stats] has no key 'records'; did you mean 'numRecords'?"),
        ('"Truncate"', '"Trunkate"', ":11: transactions.a.operation is 'Trunkate', which is not modelled; did you mean 'Truncate'?"),
        ('"Truncate"', '"RowTrackingBackfill"', ":11: transactions.a.operation is RowTrackingBackfill, but t does not set delta.feature.rowTracking"),
        ('operation = "Truncate"', "large = 1", "transactions.a.large is 1; expected true or false"),
        ('operation = "Truncate"', "large = true", "transactions.a.large: commitLarge checks no reads"),
        ('operation = "Truncate"', 'protocol = { features = ["rowTraking"] }', "'rowTraking' is not modelled; did you mean 'rowTracking'?"),
        ('operation = "Truncate"', "metadata = { colour = 1 }", "metadata] has no key 'colour'"),
        ("version = 1", 'version = "1"', "transactions.b.app.version is '1'; expected an integer"),
        ('{ path = "f0", partition = { part = 0 } }', '"f0"', "table.files holds 'f0'; a file is"),
        ("part = 0 } }]", 'part = 0 } }, { path = "f0", partition = { part = 1 } }]', "table.files has 'f0' twice"),
        ('operation = "Truncate"', 'conf = { "spark.sql.ansi.enabled" = "false" }', "transactions.a.conf: 'spark.sql.ansi.enabled' is not modelled"),
        ("numRecords = 1 }", 'numRecords = 1 }, dv = "d 1"', "adds.dv is 'd 1'; expected a name, letters, digits and _"),
        (", stats = { numRecords = 1 }", ', dv = "d1"', "transactions.a.adds: 'new' has a deletion vector, so it needs stats"),
        ("part = 0 } }]", 'part = 0 }, stats = { numRecords = 1 }, dv = "d1" }]', "table.files has a deletion vector, but t does not set delta.enableDeletionVectors = 'true'"),
        ('operation = "Truncate"', 'protocol = { features = ["rowTracking"] }', "table t: 'f0' needs stats, because its rows may get ids"),
        ('partitioned_by = ["part"]', 'partitioned_by = ["id", "part"]\ninit = ["INSERT INTO t VALUES (1, 1)"]', "table.partitioned_by takes every column; at least one must hold data, but where all transactions are raw"),
        ("[transactions.a]", "init = ['INSERT INTO t VALUES (1, 0)']\n[transactions.a]", "table has both files and init"),
    ],
)  # fmt: skip
def test_raw_transactions(old, new, message):
    assert RAW.count(old) == 1
    with pytest.raises(IsolitmusError) as refused:
        read_litmus(RAW.replace(old, new), "t")
    assert message in str(refused.value)


def test_what_only_raw_transactions_reach():
    """A table of partitions only, a conf, the two operations, what a backfill may be."""
    whole = RAW.replace('partitioned_by = ["part"]', 'partitioned_by = ["id", "part"]')
    whole = whole.replace("{ part =", "{ id = 1, part =").replace('"Truncate"', '"UpgradeProtocol"')
    conf = 'conf = { "spark.databricks.delta.stats.skipping" = "false" }\n'
    test = read_litmus(whole + conf, "t")
    assert test.tables["t"].partition_indexes == (0, 1)
    assert test.client("b").conf == {"spark.databricks.delta.stats.skipping": "false"}
    mixed = RAW.replace('"a b"', '"a b c"') + '[transactions]\nc = "SQL"'
    assert read_litmus(mixed.replace("SQL", "INSERT INTO t VALUES (1, 0)"), "t").raw
    for reads in (
        "DELETE FROM t",
        "OPTIMIZE t",
        "INSERT INTO t SELECT id, 0 FROM t",
        "SELECT * FROM t",
    ):
        with pytest.raises(
            IsolitmusError, match="c reads rows of t, whose files are only declared"
        ):
            read_litmus(mixed.replace("SQL", reads), "t")
    with pytest.raises(IsolitmusError, match="c is not a raw transaction, and every column of t"):
        read_litmus(f'{whole}[transactions]\nc = "DELETE FROM t"'.replace('"a b"', '"a b c"'), "t")
    clusters = 'init = ["INSERT INTO t VALUES (1, 1)"]\n'
    clusters += 'properties = { "delta.feature.clustering" = "supported" }\n[transactions.a]'
    real = RAW.replace("[transactions.a]", clusters)
    with pytest.raises(
        IsolitmusError, match="clustering is set by clustered_by, not by a property"
    ):
        read_litmus(re.sub("files = .*", "", real), "t")
    tracked = 'properties = { "delta.feature.rowTracking" = "supported" }\nfiles ='
    backfill = RAW.replace("files =", tracked).replace('"Truncate"', '"RowTrackingBackfill"')
    with pytest.raises(IsolitmusError, match="a RowTrackingBackfill] has no key 'removes'"):
        read_litmus(backfill, "t")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("ALTER TABLE u SET TBLPROPERTIES ('a' = '1')", "unknown table 'u'"),
        ("ALTER TABLE t SET TBLPROPERTIES (a = b)", "SET TBLPROPERTIES takes 'key' = 'value'"),
        ("ALTER TABLE t ADD COLUMNS (x)", "'x' is not a new column; write NAME TYPE"),
        ("ALTER TABLE t ADD COLUMNS (x INTT)", "no type 'INTT'; did you mean 'INT'?"),
        ("ALTER TABLE t ADD COLUMN id INT", "table t has a column 'id' already"),
        ("ALTER TABLE t DROP COLUMN idd", "no column 'idd'; did you mean 'id'?"),
        ("ALTER TABLE t RENAME COLUMN id TO part", "table t has a column 'part' already"),
        ("ALTER TABLE t RENAME COLUMN idd TO key", "no column 'idd'; did you mean 'id'?"),
        ("ALTER TABLE t RENAME TO u", "ALTER TABLE … RENAME is outside"),
        ("ALTER TABLE t ALTER COLUMN id TYPE BIGINT", "ALTER TABLE … ALTER is outside"),
        ("ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none', 'a' = 'b')", "delta.columnMapping.mode with other properties is not modelled: it is two commits"),
        ("ALTER TABLE t UNSET TBLPROPERTIES ('a', 'delta.columnMapping.mode')", "delta.columnMapping.mode with other properties is not modelled: it is two commits"),
        ("ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'NONE')", "'NONE' is written none"),
        ("ALTER TABLE t SET TBLPROPERTIES ('delta.columnmapping.mode' = 'none')", "'delta.columnmapping.mode' is written delta.columnMapping.mode"),
        ("ALTER TABLE t UNSET TBLPROPERTIES ('delta.appendonly')", "'delta.appendonly' is written delta.appendOnly"),
        ("ALTER TABLE t DROP FEATURE checkConstraint", "the feature 'checkConstraint' is not modelled; did you mean 'checkConstraints'?"),
        ("ALTER TABLE t DROP FEATURE checkConstraints TRUNCATE HISTORY", "TRUNCATE HISTORY is not allowed"),
        ("ALTER TABLE t SET TBLPROPERTIES ('delta.feature.nonsense' = 'supported')", "the feature 'nonsense' is not modelled"),
        ("ALTER TABLE t SET TBLPROPERTIES ('delta.feature.clustering' = 'supported')", "comes by CLUSTER BY, not by a property"),
        ("ALTER TABLE t SET TBLPROPERTIES ('delta.feature.domainMetadata' = 'on')", "delta.feature.domainMetadata is 'on'; known: supported"),
        ("ALTER TABLE t CLUSTER BY (prat)", "no column 'prat'; did you mean 'part'?"),
        ("ALTER TABLE t ADD CONSTRAINT c CHECK (x > 0)", "unknown column 'x'"),
        ("COMMENT ON COLUMN t.id IS 'x'", "write ALTER TABLE table …, COMMENT ON TABLE"),
        ("ALTER TABLE t UNSET TBLPROPERTIES ('delta.isolationLevel')", "whether delta.isolationLevel is set depends on the protocol of the run"),
        ("ALTER TABLE t SET TBLPROPERTIES ('delta.autoOptimize' = 'true')", "'delta.autoOptimize' is not modelled"),
        ("ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'yes')", "known: 'true' or 'false'"),
        ("CREATE TABLE u (id INT) USING delta", "unknown table 'u'; known: t"),
        ("CREATE TABLE t (id INT, part INT)", "it names no format; add USING delta after the table's name and columns"),
        ("CREATE OR REPLACE TABLE t AS SELECT 1 AS id, 2 AS part", "add USING delta"),
        ("CREATE OR REPLACE TABLE t (id INT, part INT) TBLPROPERTIES ('a' = 'b')", "add USING delta"),
        ("CREATE OR REPLACE TABLE IF NOT EXISTS t (id INT, part INT) USING delta", "write CREATE [OR REPLACE] TABLE"),
        ("CREATE TABLE t (id INT, part INT) USING parquet", "write CREATE [OR REPLACE] TABLE"),
        ("CREATE TABLE t (id INT, part INT) USING delta CLUSTER BY (id)", "write CREATE [OR REPLACE] TABLE"),
        ("CREATE TABLE t (id INT, part INT) USING delta TBLPROPERTIES (a)", "TBLPROPERTIES takes 'key' = 'value'"),
        ("CREATE TABLE t (id INT, part INT) USING delta TBLPROPERTIES ('delta.autoOptimize' = 'true')", "'delta.autoOptimize' is not modelled"),
        ("CREATE TABLE t (id INT, part INT) USING delta TBLPROPERTIES ('delta.feature.rowTrackin' = 'supported')", "the feature 'rowTrackin' is not modelled; did you mean 'rowTracking'?"),
        ("CREATE TABLE t (id INT, part INT) USING delta TBLPROPERTIES ('owner' = 'me')", "'owner' is reserved in Spark"),
        ("CREATE TABLE t (id INT) USING delta", "its columns are (id int); a table that is created or replaced is modelled only as declared: t has (id int, part int)"),
        ("CREATE TABLE u SHALLOW CLONE t", "unknown table 'u'; known: t"),
        ("CREATE TABLE t SHALLOW CLONE u", "unknown table 'u'; known: t"),
        ("CREATE TABLE t CLONE t", "write CREATE [OR REPLACE] TABLE [IF NOT EXISTS] table SHALLOW CLONE table"),
        ("CREATE TABLE t DEEP CLONE t", "other clones Delta on Spark does not make"),
        ("CREATE TABLE t SHALLOW CLONE t VERSION AS OF 1", "a clone is of VERSION AS OF {init[n]}"),
        ("CREATE TABLE t SHALLOW CLONE t VERSION AS OF {init[1]}", "unknown init statement {init[1]}; the table has 0 init statements"),
        ("DROP TABLE t", "a statement that begins 'DROP' is outside"),
        ("REPLACE TABLE t (id INT, part INT)", "add USING delta"),
        ("REPLACE TABLE t USING delta", "write CREATE [OR REPLACE] TABLE"),
        ("REPLACE TABLE t (id INT, part INT) USING delta AS SELECT 1 AS id", "write CREATE [OR REPLACE] TABLE"),
        ("REPLACE TABLE u (id INT) USING delta", "unknown table 'u'"),
        ("REPLACE TABLE t (id INT) USING delta", "its columns are (id int); a table that is created or replaced is modelled only as declared: t has (id int, part int)"),
        ("REPLACE TABLE t (id INT, part INT) USING delta PARTITIONED BY (part)", "partitioned by (part); "),
        ("REPLACE TABLE t USING delta AS SELECT * FROM t", "SELECT * as the columns of a new table"),
        ("REPLACE TABLE t USING delta AS SELECT 1 AS id, NULL AS part", "NULL as a column of a new table has no type"),
        ("REPLACE TABLE t USING delta AS SELECT 1, 2", "its columns are ("),
        ("REPLACE TABLE t USING delta AS SELECT count(*) AS id, 1 AS part FROM t", "its columns are (id bigint, part int)"),
        ("REPLACE TABLE t USING delta AS VALUES (1, 2)", "AS takes a SELECT"),
        ("REPLACE TABLE t USING delta AS SELECT (1 AS id", "does not parse"),
    ],
)  # fmt: skip
def test_definitions(sql, message):
    text = f"""\
title = "T"
schedule = "a"
[table]
columns = "id INT, part INT"
[transactions]
a = "{sql}"
"""
    with pytest.raises(IsolitmusError) as refused:
        read_litmus(text, "t")
    assert message in str(refused.value)
    assert "t.toml:6" in str(refused.value)


@pytest.mark.parametrize(
    ("sql", "app", "message"),
    [
        ("INSERT INTO t VALUES (1)", '{ id = "x" }', "app.version is None"),
        ("INSERT INTO t VALUES (1)", "{ id = 1, version = 1 }", "app.id is 1; expected a string"),
        ("OPTIMIZE t", '{ id = "x", version = 1 }', "app is supported only for INSERT, DELETE, UPDATE and MERGE"),
    ],
)  # fmt: skip
def test_applications(sql, app, message):
    text = (
        'title = "T"\nschedule = "a"\n[table]\ncolumns = "id INT"\n[transactions]\na = { sql ='
        f' "{sql}", app = {app} }}\n'
    )
    with pytest.raises(IsolitmusError) as refused:
        read_litmus(text, "t")
    assert message in str(refused.value)
