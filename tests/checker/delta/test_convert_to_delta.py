"""CONVERT TO DELTA: what it makes of a Parquet table, and what is refused of one."""

import pytest

from isolitmus.checker.execution.commit_loop import execute
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs import litmus, protocol
from isolitmus.specs.files.litmus_file import read_litmus

FILE = """
title = "T"
schedule = "a b"
[tables.t]
columns = "id INT"
[tables.p]
columns = "{columns}"
{lines}
[transactions]
a = "CONVERT TO DELTA p"
b = {b}
"""


def read(lines="parquet = [[1, 0], [2, 1]]", b="'DELETE FROM t'", columns="id INT, part INT"):
    return read_litmus(FILE.format(columns=columns, lines=lines, b=b), "t")


def test_the_table_has_the_files_the_partitions_and_the_features_of_the_parquet_table():
    lines = (
        'partitioned_by = ["part"]\nproperties = { "delta.enableDeletionVectors" = "true" }\n'
        "parquet = [[1, 0], [2, 1], [3, 0]]"
    )
    converted, _ = execute(read(lines), protocol("delta-write-serializable")).events
    assert [[row.values[0] for row in file.rows] for file in converted.effect.adds] == [[1, 3], [2]]
    footprint = converted.effect.footprint
    actions = footprint.actions
    assert actions.features == {"appendOnly", "invariants", "deletionVectors"}
    assert actions.metadata.partitioned_by == ("part",)
    assert (actions.metadata.levelled, footprint.settings.large) == (True, True)
    assert converted.labels == {"Serializable"}


def test_a_file_that_is_written_is_read_as_the_same_test():
    test = litmus("convert-twice")
    again = read_litmus(str(test), test.name)
    assert (again.tables, again.transactions) == (test.tables, test.transactions)


@pytest.mark.parametrize(
    ("lines", "columns", "message"),
    [
        ("parquet = []", "id INT", "t.toml:8: tables.p.parquet is empty; Delta converts no table without files"),
        ("parquet = 1", "id INT", "tables.p.parquet is not a list of rows; write [[1, 0], [2, 1]]"),
        ("parquet = [[1, 2]]", "id INT", "tables.p.parquet: row [1, 2] has not 1 values"),
        ("parquet = [['a']]", "id INT", "tables.p.parquet: 'a' is not of type INT"),
        ("parquet = [[2147483648]]", "id INT", "tables.p.parquet: 2147483648 does not fit into INT"),
        ("parquet = [[1]]\nexists = false", "id INT", "tables.p.exists is for a Delta table, but parquet declares a Parquet"),
        ("parquet = [[1]]\ninit = ['DELETE FROM p']", "id INT", "tables.p.init is for a Delta table"),
        (
            "parquet = [[1, 2]]\npartitioned_by = ['id']", "id INT, part INT",
            "tables.p.partitioned_by: the partition columns of a Parquet table come last",
        ),
        (
            "parquet = [[1]]\nproperties = { 'delta.columnMapping.mode' = 'name' }", "id INT",
            "tables.p.properties: delta.columnMapping.mode is not modelled for a Parquet table",
        ),
        (
            "parquet = [[1]]", "id BIGINT GENERATED ALWAYS AS IDENTITY",
            "tables.p.columns has identity columns, which a Parquet table cannot have",
        ),
    ],
)  # fmt: skip
def test_a_parquet_table_that_cannot_be_is_refused(lines, columns, message):
    with pytest.raises(IsolitmusError) as refused:
        read(lines, columns=columns)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("transaction", "message"),
    [
        ("'INSERT INTO P VALUES (1, 1)'", "transactions.b names p, a Parquet table: before its conversion no check of Delta"),
        ("'INSERT INTO t SELECT id FROM p'", "transactions.b names p, a Parquet table"),
        ("{ sql = 'INSERT INTO t VALUES (:n)', let = { n = 'SELECT max(id) FROM p' } }", "transactions.b names p, a Parquet table"),
        ("{ write = 'append', table = 'p', query = 'SELECT 1, 1' }", "transactions.b names p, a Parquet table"),
        ("'CONVERT TO DELTA t'", "CONVERT TO DELTA takes a table with the key parquet; t has none"),
        ("'CONVERT TO DELTA p NO STATISTICS'", "write CONVERT TO DELTA table [PARTITIONED BY (name TYPE, …)]"),
        ("'CONVERT TO DELTA q'", "unknown table 'q'"),
        ("'CONVERT TO DELTA p PARTITIONED BY (part INT)'", "partitioned by (part int); a table that is created or replaced is modelled only as declared: p has ()"),
    ],
)  # fmt: skip
def test_nothing_else_is_done_to_a_parquet_table(transaction, message):
    with pytest.raises(IsolitmusError) as refused:
        read(b=transaction)
    assert message in str(refused.value)
