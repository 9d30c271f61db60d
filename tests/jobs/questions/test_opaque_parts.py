"""The law of opaque parts: "never" and "always" hold whatever stands in the place of the part."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isolitmus.jobs.predict.prediction import PairPredictor
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.model.sql.expression import Opaque
from isolitmus.model.sql.query import unknown_parts
from isolitmus.specs import protocol

WORKLOAD = """
ddl = [
  "CREATE TABLE t (id INT, kind STRING, day DATE) USING delta PARTITIONED BY (day)",
  "CREATE TABLE s (id INT, kind STRING, day DATE)",
]
[jobs.asked]
sql = '''{sql}'''
[jobs.insert]
sql = "INSERT INTO t VALUES (:id, :kind, DATE '2026-01-01')"
[jobs.other]
sql = "INSERT INTO t VALUES (:id, :kind, DATE '2026-02-02')"
[jobs.erase]
sql = "DELETE FROM t WHERE id = :id"
[jobs.compact]
sql = "OPTIMIZE t"
"""
ANY_QUERY = "(SELECT id, kind, day FROM (SELECT *, row_number() OVER (ORDER BY id) AS n FROM s) WHERE n > 1)"
"""A window, in whose place stands a table of any rows."""
QUERIES = [
    "(SELECT id, kind, day FROM s)",
    "(SELECT id, kind, day FROM s WHERE id > 1)",
    "(SELECT id, kind, day FROM s WHERE day = DATE '2026-01-01')",
    "(SELECT id, kind, day FROM s WHERE day = :day)",
    "(SELECT id, kind, day FROM s WHERE day < DATE '2026-01-15' AND kind = 'x')",
    "(SELECT id, kind, day FROM s WHERE kind IS NULL)",
    "(SELECT id, kind, day FROM s WHERE id = 1 OR id = 2)",
    "(SELECT id, kind, DATE '2026-01-01' AS day FROM s)",
    "(SELECT id, 'new' AS kind, DATE '2026-02-02' AS day FROM s WHERE id IN (1, 2))",
    "(SELECT 1 AS id, kind, day FROM s)",
    "(SELECT id, kind, CAST(NULL AS DATE) AS day FROM s)",
    "(SELECT id + 1 AS id, kind, day FROM s)",
    "(SELECT id, max(kind) AS kind, max(day) AS day FROM s GROUP BY id)",
    "(SELECT max(id) AS id, 'sum' AS kind, day FROM s GROUP BY day)",
    "(SELECT max(id) AS id, 'sum' AS kind, DATE '2026-01-01' AS day FROM s)",
    "(SELECT 1 AS id, 'a' AS kind, DATE '2026-01-01' AS day)",
    "(SELECT :key AS id, 'a' AS kind, day FROM s WHERE id = :key AND day = :day)",
    "(SELECT a.id, b.kind, a.day FROM s a JOIN s b ON a.id = b.id)",
    "(SELECT id, kind, day FROM s WHERE 1 = 0)",
    "(SELECT id, kind, day FROM s WHERE id > 1 AND day > DATE '2026-01-01')",
]
SOURCES = [
    "INSERT INTO t SELECT id, kind, day FROM {} q",
    "INSERT OVERWRITE t SELECT id, kind, day FROM {} q",
    "INSERT OVERWRITE t PARTITION (day = DATE '2026-01-01') SELECT id, kind FROM {} q",
    "MERGE INTO t USING {} q ON t.id = q.id WHEN MATCHED THEN UPDATE SET kind = q.kind",
    "MERGE INTO t USING {} q ON t.id = q.id AND t.day = q.day WHEN MATCHED THEN DELETE",
    (
        "MERGE INTO t USING {} q ON t.id = q.id AND t.day = DATE '2026-01-01' WHEN MATCHED THEN"
        " DELETE WHEN NOT MATCHED THEN INSERT (id, kind, day) VALUES (q.id, q.kind, q.day)"
    ),
    "MERGE INTO t USING {} q ON t.id = q.id WHEN NOT MATCHED THEN INSERT *",
]
SPLIT = ("t.id > 1 AND t.day = DATE '2026-01-01'", "t.day = DATE '2026-02-02'")
"""Conditions from which Delta derives a predicate on partitions.

It derives none from a function of a partition column and another one, so "always" of that does not
concern these.
"""
CONDITIONS = {
    "mine(t.id)": [
        "t.id > 1", "t.id = 1", "t.id IN (1, 2)", "t.id IS NULL", "t.id <> 3", "t.id = :key",
        "t.id >= 1 AND t.id < 4", "t.id + 1 = 3", "1 = 1", "1 = 0",
    ],
    "mine(t.day)": [
        "t.day = DATE '2026-01-01'", "t.day < DATE '2026-01-15'", "t.day IS NOT NULL",
        "t.day = :day", "t.day <> DATE '2026-02-02'", "t.day IS NULL",
    ],
    "mine(t.id, t.day)": [
        "(t.id = 1 OR t.day = DATE '2026-01-01')", "t.id = year(t.day)", *SPLIT,
    ],
}  # fmt: skip
"""Opaque conditions, and conditions on the same columns."""
RESTRICTED = [
    "DELETE FROM t WHERE {}",
    "DELETE FROM t WHERE {} AND day = DATE '2026-01-01'",
    "DELETE FROM t WHERE id > 3 AND ({})",
    "UPDATE t SET kind = 'seen' WHERE {}",
    "UPDATE t SET day = DATE '2026-01-01' WHERE {}",
    "MERGE INTO t USING s ON t.id = s.id AND {} WHEN MATCHED THEN DELETE",
    "MERGE INTO t USING s ON t.id = s.id AND {} WHEN MATCHED THEN UPDATE SET kind = s.kind",
    "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND {} THEN DELETE",
]
LEVELS = ("delta-serializable", "delta-write-serializable")


def predictions(sql, level):
    """The predictions for a statement and its partners, by loser and winner; and the workload."""
    work = read_workload(WORKLOAD.format(sql=sql), "w")
    assert not work.unread
    asked = PairPredictor(work, protocol(level), examples=False)
    own = asked.every["asked"]
    found = [asked.pair(own, other) for other in asked.every.values()]
    found += [asked.pair(other, own) for other in asked.every.values() if other is not own]
    return {(one.loser, one.winner): one for one in found}, work


def check(general, concrete, level, split=()):
    """Check that nothing certain of a statement is contradicted by a special case of it."""
    whole, work = predictions(general, level)
    opaque = [
        part
        for one in work.statements
        for part in unknown_parts(one.statement)
        if isinstance(part, Opaque)
    ]
    assert opaque or any("any rows" in one for one in work.left_out)
    found, exact = predictions(concrete, level)
    assert not any("any rows" in one for one in exact.left_out)
    for pair, said in whole.items():
        known = found[pair]
        if said.word == "never":
            assert known.word == "never", (pair, general, concrete)
        if said.word == "always" and not any(one in concrete for one in split):
            assert known.word == "never" or known.certain, (pair, general, concrete)


@pytest.mark.slow
@given(st.sampled_from(SOURCES), st.sampled_from(QUERIES), st.sampled_from(LEVELS))
def test_what_is_certain_of_any_rows_is_so_of_each_query(statement, query, level):
    check(statement.format(ANY_QUERY), statement.format(query), level)


@pytest.mark.slow
@given(
    st.sampled_from(RESTRICTED),
    st.sampled_from([(part, one) for part, each in CONDITIONS.items() for one in each]),
    st.sampled_from(LEVELS),
)
@example(RESTRICTED[1], ("mine(t.day)", "t.day = DATE '2026-02-02'"), LEVELS[0])
def test_what_is_certain_of_any_condition_is_so_of_each_condition(statement, parts, level):
    part, condition = parts
    split = SPLIT if part == "mine(t.id, t.day)" else ()
    check(statement.format(part), statement.format(condition), level, split)


def test_there_are_twenty_of_each():
    assert len(QUERIES) == sum(map(len, CONDITIONS.values())) == 20
