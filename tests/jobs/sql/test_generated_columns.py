"""Generated columns in statements of jobs: named values, derived conditions, and predictions."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker.execution.commit_loop import execute
from isolitmus.checker.execution.run_result import run
from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.sql.generated_columns import with_generated, with_generated_columns
from isolitmus.model.errors import SqlError
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus

COLUMNS = (Column("id", "BIGINT"), Column("at", "TIMESTAMP"), Column("day", "DATE"))
TABLE = with_generated(Schema("t", COLUMNS, ("day",)), [("day", "CAST(at AS DATE)")])
TABLES = {"t": TABLE, "s": Schema("s", COLUMNS[:2])}
MOMENT = "TIMESTAMP '2026-01-05 10:00:00'"
DAY = f"CAST(CAST('{MOMENT[11:-1]}' AS TIMESTAMP) AS DATE)"


def named(sql):
    return with_generated_columns(sql, TABLES)


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("INSERT INTO t (at, id) VALUES (:a, 1), (NULL, 2)", "(at, id, day) VALUES (:a, 1, CAST(:a AS DATE)), (NULL, 2, CAST(NULL AS DATE))"),
        ("INSERT INTO t (id) SELECT id FROM s", "(id, day) SELECT id, CAST(NULL AS DATE) AS day FROM s"),
        ("INSERT INTO t (id, at) SELECT * FROM s", "SELECT id, at, CAST(at AS DATE) AS day FROM (SELECT * FROM s) AS given(id, at)"),
        ("INSERT INTO t (id, at) SELECT id, at FROM s UNION ALL SELECT 1, :a", "SELECT id, at, CAST(at AS DATE) AS day FROM s UNION ALL SELECT 1, :a, CAST(:a AS DATE) AS day"),
        ("INSERT INTO t BY NAME SELECT max(at) AS at, id FROM s GROUP BY id", "SELECT MAX(at) AS at, id, CAST(MAX(at) AS DATE) AS day FROM s"),
        ("UPDATE t SET at = at + INTERVAL 1 DAY", "day = CAST((at + INTERVAL '1' DAY) AS DATE)"),
        ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET at = s.at WHEN NOT MATCHED THEN INSERT (at) VALUES (s.at)",
         "SET at = s.at, t.day = CAST(s.at AS DATE) WHEN NOT MATCHED THEN INSERT (at, day) VALUES (s.at, CAST(s.at AS DATE))"),
        (f"INSERT INTO t (id, at) SELECT id, at FROM t AS x WHERE {MOMENT} <= at", f"AND (day >= {DAY} OR day IS NULL)"),
        (f"INSERT INTO t (id, at) SELECT x.id, x.at FROM t AS x JOIN s ON x.id = s.id WHERE x.at = {MOMENT}", f"AND (x.day = {DAY} OR x.day IS NULL)"),
        ("INSERT INTO t (id, at) SELECT id, at FROM t WHERE at IS NULL", "AND day IS NULL"),
        ("INSERT INTO t (id, at) SELECT id, at FROM t WHERE at BETWEEN :a AND :b AND id = 3",
         "AND (day >= CAST(:a AS DATE) OR day IS NULL) AND (day <= CAST(:b AS DATE) OR day IS NULL)"),
        ("INSERT INTO t (id, at) SELECT id, at FROM t WHERE NOT (id = 3 OR at >= :a OR at <> :b)",
         "AND (day <= CAST(:a AS DATE) OR day IS NULL) AND (day = CAST(:b AS DATE) OR day IS NULL)"),
        ("INSERT INTO t (id, at) SELECT id, at FROM t WHERE at IN (:a)", "AND (day = CAST(:a AS DATE) OR day IS NULL)"),
        ("INSERT INTO t (id, at) SELECT id, at FROM t WHERE (at < :a AND id = 1) OR (at < :a AND id = 2)",
         "AND (day <= CAST(:a AS DATE) OR day IS NULL)"),
        ("INSERT INTO t (id, at) SELECT id, at FROM t WHERE DATE(at) = :d",
         "AND (day >= CAST(:d AS DATE) OR day IS NULL) AND (day <= CAST(:d AS DATE) + INTERVAL '1' DAY OR day IS NULL)"),
        ("INSERT INTO t (id, at) SELECT id, at FROM t WHERE :d < CAST(at AS DATE)",
         "AND (day >= CAST(:d AS DATE) + INTERVAL '1' DAY OR day IS NULL)"),
        ("INSERT INTO t (id, at) SELECT id, at FROM t WHERE id IN (SELECT id FROM t WHERE at = :a)",
         "(SELECT id FROM t WHERE at = :a AND (day = CAST(:a AS DATE) OR day IS NULL))"),
    ],
)  # fmt: skip
def test_values_and_conditions_are_named(written, found):
    assert found in named(written)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (1, :a, :d)",
        "INSERT INTO t (id, at, day) VALUES (1, :a, :d)",
        "UPDATE t SET id = 2 WHERE at = :a",
        "UPDATE t SET at = :a, day = :d",
        "DELETE FROM t WHERE at < :a",
        "MERGE INTO t USING s ON t.id = s.id AND t.at = :a WHEN MATCHED THEN UPDATE SET id = 3",
        "INSERT INTO t (id, at, day) SELECT id, at, day FROM t WHERE id = 3 OR at = :a",
        "INSERT INTO t (id, at, day) SELECT id, at, day FROM t WHERE at IN (:a, :b)",
        "INSERT INTO t (id, at, day) SELECT id, at, day FROM t WHERE at <> :a",
        "INSERT INTO t (id, at, day) SELECT id, at, day FROM (SELECT * FROM t) WHERE id = 3",
        "INSERT INTO s SELECT id, at FROM t WHERE at = :a",
        "INSERT INTO s SELECT id, at FROM s WHERE at = :a",
        "nonsense (",
    ],
)
def test_other_statements_stay(sql):
    """DELETE, UPDATE and MERGE get no condition: so it was observed on Delta 4.4.0."""
    assert named(sql) == sql


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("SELECT id, at, day FROM (SELECT * FROM t) AS q WHERE at = :a", "at = :a"),
        ("WITH q AS (SELECT id, at AS m, day FROM t) SELECT * FROM q WHERE id = 1 AND m < :a", "id = 1"),
        ("WITH q AS (SELECT id, at AS m FROM t), r AS (SELECT m, id FROM q) SELECT id, m, NULL FROM r WHERE m < :a", "m < :a"),
        ("SELECT id, m, day FROM (SELECT id, at, day FROM t) AS q(id, m, day) WHERE m < :a", "m < :a"),
        ("SELECT * FROM (SELECT id, at AS m, day FROM s UNION ALL SELECT * FROM t) AS q WHERE m < :a", "m < :a"),
        ("SELECT q.* FROM (SELECT * FROM t) AS q JOIN s ON q.at = s.at WHERE s.at = :a", "s.at = :a"),
        ("SELECT t.* FROM t JOIN s WHERE t.at = s.at AND s.at = :a", "t.at = s.at"),
        ("SELECT max(id), at, day FROM t GROUP BY at, day HAVING at = :a", "at = :a"),
        ("SELECT * FROM t WHERE at <=> :a", "at IS NOT DISTINCT FROM :a"),
    ],
)  # fmt: skip
def test_conditions_that_spark_may_bring_to_the_table(query, part):
    """They are refused where Delta may derive another condition from them."""
    with pytest.raises(SqlError, match="not modelled; write a condition on day") as found:
        named(f"INSERT INTO t {query}")
    assert f"'{part}" in str(found.value)


def test_other_expressions():
    """Delta derives conditions from more expressions; those statements are not understood."""
    years = with_generated(
        Schema("t", (*COLUMNS[:2], Column("y", "INT")), ("y",)), [("y", "YEAR(at)")]
    )
    with pytest.raises(SqlError, match="condition on y that Delta derives from 'at < :a' is not"):
        with_generated_columns("INSERT INTO t SELECT * FROM t WHERE at < :a", {"t": years})
    unknown = with_generated(Schema("t", COLUMNS), [("day", "my_day(at)")])
    assert (unknown.generated[0].value, unknown.columns[2].default) == (None, True)
    assert with_generated_columns("UPDATE t SET at = :a", {"t": unknown}).endswith("day = DEFAULT")
    insert = "INSERT INTO t (id, at) VALUES (1, :a)"
    assert with_generated_columns(insert, {"t": unknown}) == insert


STATEMENTS = st.sampled_from(
    (
        f"INSERT INTO t (id, at) VALUES (3, {MOMENT})",
        "INSERT INTO t (id) VALUES (4)",
        "INSERT INTO t (at, id) SELECT at, id + 10 FROM t WHERE id > 1",
        "INSERT INTO t BY NAME SELECT id, at FROM t",
        f"UPDATE t SET at = {MOMENT} WHERE id = 1",
        "UPDATE t SET at = NULL, id = 5 WHERE day > DATE '2026-01-02'",
        f"MERGE INTO t USING (SELECT 1 AS id, {MOMENT} AS at) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET at = s.at",
        f"MERGE INTO t USING (SELECT 9 AS id, {MOMENT} AS at) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, at) VALUES (s.id, s.at)",
    )
)
MOMENTS = st.lists(
    st.none() | st.integers(0, 10**6).map(lambda k: datetime.fromtimestamp(1_767_225_600 + k, UTC).replace(tzinfo=None)),
    max_size=4,
)  # fmt: skip


@pytest.mark.slow
@given(st.lists(STATEMENTS, min_size=1, max_size=3), MOMENTS)
def test_every_row_has_the_generated_value(statements, moments):
    """Both executors agree on it."""
    rows = [TABLE.with_generated_values((k, at, None)) for k, at in enumerate(moments)]
    assert all(row[2] == (row[1] and row[1].date()) for row in rows)
    said = [
        f"({row[0]}, NULL, NULL)" if row[1] is None else f"({row[0]}, TIMESTAMP '{row[1]}', DATE '{row[2]}')"
        for row in rows
    ]  # fmt: skip
    names = "abc"[: len(statements)]
    texts = [f'{n} = "{named(sql)}"' for n, sql in zip(names, statements, strict=True)]
    init = f'init = ["INSERT INTO t VALUES {", ".join(said)}"]' if said else ""
    test = read_litmus(
        "\n".join(
            (
                f'title = "T"\nschedule = "{" ".join(names)}"\n[table]',
                'columns = "id BIGINT, at TIMESTAMP, day DATE"\npartitioned_by = ["day"]',
                init, "[transactions]", *texts,
            )
        ),
        "t",
    )  # fmt: skip
    done = run(test, protocol("delta-serializable"))
    assert done.serial.orders
    for version in done.run.versions:
        assert all(row[2] == (row[1] and row[1].date()) for row in version["t"])


WORK = """
ddl = '''CREATE TABLE t (id BIGINT, at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)))
USING delta PARTITIONED BY (day)'''
[jobs]
erase = "DELETE FROM t WHERE at >= TIMESTAMP '2026-01-05 00:00:00' AND at < TIMESTAMP '2026-01-06 00:00:00'"
copy = "INSERT INTO t (id, at) SELECT id, at FROM t WHERE at = TIMESTAMP '2026-01-05 10:00:00'"
other = "INSERT INTO t (id, at) VALUES (1, TIMESTAMP '2026-01-01 10:00:00')"
same = "INSERT INTO t (id, at) VALUES (1, TIMESTAMP '2026-01-05 12:00:00')"
day = "DELETE FROM t WHERE day = DATE '2026-01-05'"
between = "INSERT INTO t (id, at) SELECT id, at FROM t WHERE at BETWEEN TIMESTAMP '2026-01-05 10:00:00' AND TIMESTAMP '2026-01-05 12:00:00'"
"""


@pytest.mark.slow
def test_predictions_are_those_of_delta():
    """Observed on Delta 4.4.0: a query reads one partition, a DELETE by ``at`` the whole table."""
    work = read_workload(WORK, "jobs")
    found = predict_workload(work, protocol("delta-serializable"))
    words = {(one.loser, one.winner): one.word for one in found.meetings}
    assert [words["erase", "other"], words["erase", "same"]] == ["always", "always"]
    for one in ("copy", "day", "between"):
        assert (words[one, "other"], words[one, "same"]) == ("never", "always")
    assert any("t.day is generated from CAST(at AS DATE)" in one for one in work.assumptions)
    for one in found.meetings:
        for example in one.examples.values():
            start = execute(example).states[0]["t"].rows()
            assert all(row[2] == (row[1] and row[1].date()) for row in start)
