"""Litmus tests of conditions, and of queries that join: what Delta notes of them decides what stops
them.

What it was observed to do with them is recorded (``catalogue_runs``).
"""

from isolitmus.specs.files.litmus_file import read_litmus

INITS = [
    "(1, '3', DATE '2026-01-01', TIMESTAMP '2026-01-01 10:00:00.123456', 1.50, 0.5)",
    "(2, '12', DATE '2026-01-02', TIMESTAMP '2026-01-02 00:00:00', 2.25, 1.5)",
    "(3, '3', DATE '2026-01-02', TIMESTAMP '2026-01-03 23:59:59.999999', 3.00, 2.5)",
    "(4, NULL, NULL, NULL, NULL, NULL)",
]
GONE = "DELETE FROM t WHERE id = {}"
ADDED = "INSERT INTO t VALUES (7, '3', DATE '2026-01-02', NULL, 2.25, 1.5)"


def concurrent(part, a, b, clock="", name="condition"):
    """A statement that another one overtakes, on a table of one row a file."""
    inits = ", ".join(f'"INSERT INTO t VALUES {row}"' for row in INITS)
    return read_litmus(
        f"""
        title    = "A condition that another statement meets"
        schedule = "a.start b a.commit"
        {clock}

        [table]
        columns        = "id INT, s STRING, d DATE, ts TIMESTAMP, m DECIMAL(10,2), x DOUBLE"
        partitioned_by = [{part and f'"{part}"'}]
        init           = [{inits}]

        [transactions]
        a = "{a}"
        b = "{b}"
        """,
        name,
    )


CONDITIONS = [
    ("d", "DELETE FROM t WHERE d < '2026-01-02'", ADDED),
    ("d", "DELETE FROM t WHERE d >= '2026-01-02'", ADDED),
    ("s", "DELETE FROM t WHERE s = 3", ADDED),
    ("s", "DELETE FROM t WHERE s = 12", ADDED),
    ("", "DELETE FROM t WHERE s = 3", GONE.format(2)),
    ("", "UPDATE t SET x = 9 WHERE s LIKE '1%'", GONE.format(1)),
    ("", "UPDATE t SET x = 9 WHERE id > 1.5", GONE.format(1)),
    ("", "UPDATE t SET x = 9 WHERE m > 1.555", GONE.format(1)),
    ("", "DELETE FROM t WHERE ts > TIMESTAMP '2026-01-01 10:00:00.123999'", GONE.format(1)),
    ("", "INSERT INTO t SELECT * FROM t WHERE NOT s LIKE '3%'", GONE.format(4)),
    ("", "INSERT INTO t SELECT * FROM t WHERE upper(s) = '3'", GONE.format(4)),
    ("", "INSERT INTO t SELECT * FROM t WHERE concat(s, 'x') = '3x'", GONE.format(4)),
    ("d", "INSERT INTO t SELECT * FROM t WHERE 1 = 0", ADDED),
    ("d", "DELETE FROM t WHERE 1 = 0", ADDED),
    ("", "DELETE FROM t WHERE s RLIKE '^3'", GONE.format(2)),
    ("", "INSERT INTO t SELECT * FROM t WHERE s RLIKE '^3'", GONE.format(4)),
    ("", "INSERT INTO t SELECT * FROM t WHERE startswith(s, '3')", GONE.format(2)),
    ("", "INSERT INTO t SELECT * FROM t WHERE contains(s, '3')", GONE.format(4)),
    ("", "INSERT INTO t SELECT * FROM t WHERE endswith(s, '3')", GONE.format(2)),
    ("s", "DELETE FROM t WHERE sha2(s, 256) < 'a'", ADDED),
    ("", "INSERT INTO t SELECT * FROM t WHERE md5(s) < 'a'", GONE.format(4)),
    ("", "INSERT INTO t SELECT * FROM t WHERE m / 2 > 1", GONE.format(4)),
    ("", "INSERT INTO t SELECT * FROM t WHERE CAST(x AS STRING) = '0.5'", GONE.format(4)),
    ("", "INSERT INTO t SELECT * FROM t WHERE replace(s, '3', 'a') = 'a'", GONE.format(4)),
    ("d", "DELETE FROM t WHERE d < DATE '2026-01-03' - INTERVAL 1 DAY", ADDED),
    ("d", "DELETE FROM t WHERE d < TIMESTAMP '2026-01-03 01:00:00' - INTERVAL 2 HOURS", ADDED),
    (
        "",
        "DELETE FROM t WHERE ts < TIMESTAMP '2026-01-04 00:00:00' - INTERVAL 2 DAYS",
        GONE.format(2),
    ),
    (
        "",
        "UPDATE t SET x = 9 WHERE ts + INTERVAL 1 HOUR > TIMESTAMP '2026-01-03 00:00:00'",
        GONE.format(1),
    ),
    ("", "DELETE FROM t WHERE 1 = 0", ADDED),
    ("d", "DELETE FROM t WHERE 1 = 1 AND id = 1", GONE.format(2)),
]

SOURCES = """
tags     = ["untracked"]
title    = "A query of several tables, which another statement meets"
schedule = "a.start b a.commit"

[tables.t]
columns        = "id INT, x INT"
partitioned_by = ["x"]
init           = ["INSERT INTO t VALUES (1, 1), (2, 2)"]

[tables.s]
columns = "id INT, x INT"
init    = ["INSERT INTO s VALUES (2, 2), (3, 1), (NULL, 5)"]

[tables.u]
columns = "id INT, y INT"
init    = ["INSERT INTO u VALUES (2, 1), (3, NULL)"]

[transactions]
a = "{}"
b = "{}"
"""
UPSERT = (
    "ON t.id = k.id WHEN MATCHED THEN UPDATE SET x = k.x WHEN NOT MATCHED THEN INSERT (id, x)"
    " VALUES (k.id, k.x)"
)
JOINED = [
    ("INSERT INTO t SELECT s.id, u.y FROM s JOIN u ON s.id = u.id", "DELETE FROM t WHERE x = 1"),
    ("INSERT INTO t SELECT s.id, s.x FROM s LEFT ANTI JOIN u ON s.id = u.id", "INSERT INTO u VALUES (NULL, 0)"),
    ("INSERT INTO t SELECT * FROM VALUES (7, 1), (8, NULL) AS v(p, q)", "DELETE FROM t WHERE x = 1"),
    ("WITH k AS (SELECT id, x FROM s WHERE x > 1) INSERT INTO t SELECT * FROM k", "DELETE FROM s WHERE x = 2"),
    (f"MERGE INTO t USING (SELECT s.id, s.x FROM s LEFT JOIN u ON s.id = u.id) k {UPSERT}", "INSERT INTO t VALUES (9, 9)"),
    (f"MERGE INTO t USING (SELECT * FROM VALUES (2, 5), (6, 6) AS v(id, x)) k {UPSERT}", "DELETE FROM t WHERE x = 1"),
]  # fmt: skip


def condition_tests():
    """Return the litmus tests, named by their places: what is added comes last."""
    tests = [concurrent(*each, name=f"condition-{k}") for k, each in enumerate(CONDITIONS, 1)]
    tests += [read_litmus(SOURCES.format(*each), f"join-{k}") for k, each in enumerate(JOINED, 1)]
    return tests
