"""How many files a statement writes, and which rows share one: the model depends on each of
these.
"""

import duckdb
import pytest

from isolitmus.conformance.delta.tables import make_tables
from isolitmus.specs import litmus
from isolitmus.specs.logs.delta_log import commits_since, latest_version

pytestmark = pytest.mark.spark

SOURCE = "(SELECT 1 AS id, 0 AS part UNION ALL SELECT {} UNION ALL SELECT {}) s"
INSERT = "WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, s.part)"


def merge(a, b, clauses):
    return f"MERGE INTO t USING {SOURCE.format(a, b)} ON t.id = s.id {clauses}"


# (statement, files removed, rows of each file added); each on the table that the one before left
PARTITIONED = [
    ("INSERT INTO t VALUES (1, 0), (2, 1), (3, 0)", 0, ["1 3", "2"]),
    ("INSERT INTO t SELECT 4, 0 UNION ALL SELECT 5, 0", 0, ["4", "5"]),
    ("INSERT INTO t SELECT id + 10, part FROM t WHERE id > 3", 0, ["14 15"]),
    ("UPDATE t SET id = id + 100 WHERE id = 4 OR id = 14", 2, ["104 114 15"]),
    (merge("8, 0", "9, 0", f"WHEN MATCHED THEN DELETE {INSERT}"), 1, ["3 8 9"]),
    (merge("21, 0", "22, 0", INSERT), 0, ["1 21 22"]),
    ("OPTIMIZE t", 4, ["1 104 114 15 21 22 3 5 8 9"]),
    ("UPDATE t SET id = id WHERE part = 1", 1, ["2"]),
]
UNPARTITIONED = [
    ("INSERT INTO t VALUES (1, 0), (2, 1), (3, 0)", 0, ["1 2 3"]),
    ("INSERT INTO t SELECT 4, 0 UNION ALL SELECT 5, 0", 0, ["4", "5"]),
    ("DELETE FROM t WHERE id = 1 OR id = 4", 2, ["2 3"]),
    (merge("3, 0", "9, 0", f"WHEN MATCHED THEN UPDATE SET t.part = 7 {INSERT}"), 1, ["1 2 3 9"]),
    # where a MERGE rewrites nothing, the source's branches stay apart, as in an INSERT
    (merge("21, 0", "22, 0", INSERT), 0, ["21", "22"]),
    ("OPTIMIZE t", 4, ["1 2 21 22 3 5 9"]),
    ("INSERT OVERWRITE t SELECT id, part FROM t WHERE id < 4", 1, ["1 2 3"]),
]


UPSERT = f"WHEN MATCHED THEN UPDATE SET id = 10 {INSERT}"
# With deletion vectors: of a file that is added again, how many rows are gone.
MARKED = [
    ("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0), (4, 1)", 0, ["1 2 3", "4"]),
    ("DELETE FROM t WHERE id = 2", 1, ["1 gone"]),
    ("UPDATE t SET part = 1 WHERE id = 3", 1, ["2 gone", "3"]),
    (
        merge("8, 0", "9, 1", f"{UPSERT} WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN DELETE"),
        2,
        ["10 8", "9"],
    ),
    ("DELETE FROM t WHERE id = 8", 1, ["1 gone"]),
    ("INSERT INTO t REPLACE WHERE id = 4 VALUES (4, 1)", 1, ["4"]),
    ("REORG TABLE t APPLY (PURGE)", 1, ["10"]),
    ("UPDATE t SET id = id + 1 WHERE part = 1", 2, ["10 5"]),
    ("DELETE FROM t WHERE id = 10", 2, ["1 gone"]),
    ("OPTIMIZE t ZORDER BY (id)", 1, ["5"]),
]


@pytest.mark.parametrize(
    ("partitioned", "vectors", "statements"),
    [(True, "false", PARTITIONED), (False, "false", UNPARTITIONED), (True, "true", MARKED)],
)
def test_files(session, make, partitioned, vectors, statements):
    properties = {"delta.enableDeletionVectors": vectors}
    litmus = make("r", partitioned=partitioned, properties=properties, r="SELECT 1")
    with make_tables(litmus, "Serializable", session) as tables:
        seen = []
        for sql, _, _ in statements:
            before = latest_version(tables.paths["t"])
            tables.client("t").sql(sql).collect()
            (commit,) = commits_since(tables.paths["t"], before)
            added = [rows(tables.paths["t"], file) for file in commit.adds]
            seen.append((sql, len(commit.removes), sorted(added)))
    assert seen == statements


def rows(table, file):
    return f"{file.marked} gone" if file.vector else ids(table / file.path)


def ids(path):
    rows = duckdb.sql(f"SELECT id FROM read_parquet('{path}')").fetchall()
    return " ".join(sorted(str(number) for (number,) in rows))


def test_forty_files_become_one(session, make):
    many = ", ".join(f"({number}, 0)" for number in range(40))
    litmus = make("r", rows_per_file=1, r="SELECT 1")
    with make_tables(litmus, "Serializable", session) as tables:
        tables.client("t").sql(f"INSERT INTO t VALUES {many}").collect()
        tables.client(None).sql("UPDATE t SET id = id + 1").collect()
        spread, joined = commits_since(tables.paths["t"], 0)
    assert len(spread.adds) == len(joined.removes) == 40
    assert len(joined.adds) == 1


def test_a_converted_table_has_the_level_that_its_parquet_table_said(session):
    """Delta looks at the properties of the Parquet table no further; the model takes this for
    granted.
    """
    with make_tables(litmus("convert-twice"), "WriteSerializable", session) as tables:
        spark = tables.client("p")
        for sql in ("CONVERT TO DELTA p", "DELETE FROM p WHERE id = 1"):
            spark.sql(sql).collect()
        converted, deleted = commits_since(tables.paths["p"])
    assert sorted(add.path.partition("/")[0] for add in converted.adds) == [
        "part=2020-01-01",
        "part=2020-01-01",
        "part=2020-01-02",
    ]
    assert (converted.level, converted.blind) == ("Serializable", False)
    assert (deleted.level, len(deleted.removes)) == ("WriteSerializable", 1)
