"""The account of relations: what a text reads against the statement as modelled."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from drawn_relations import DDL, WRITERS, draw_job
from relation_checks import lost

from isolitmus.jobs.readers.workload_file import build_workload
from isolitmus.jobs.sql.relation_account import modelled_scans
from isolitmus.specs.files.toml_reader import Node, Source


def read(*drawn):
    """Return the workload of drawn jobs, x0, x1, …, beside writers of every table."""
    jobs = {f"x{k}": {"sql": one.statements} for k, one in enumerate(drawn)}
    jobs |= {f"add_{name}": {"sql": texts} for name, texts in WRITERS.items()}
    jobs |= {f"other{k}": {"sql": one.others} for k, one in enumerate(drawn) if one.others}
    document = Node({"ddl": [*DDL], "jobs": jobs}, "", Source("drawn"))
    return build_workload(document, "drawn", sources={}, each=True, partial=True)


def find_lost(seeds):
    """Yield each seed whose job has lost something, and the number of jobs that are understood."""
    for start in range(seeds.start, seeds.stop, 100):
        some = range(start, min(start + 100, seeds.stop))
        drawn = [draw_job(seed) for seed in some]
        work = read(*drawn)
        understood = {one.job for one in work.statements}
        for k, (seed, one) in enumerate(zip(some, drawn, strict=True)):
            yield seed, lost(one, work, f"x{k}"), f"x{k}" in understood


@pytest.mark.slow
def test_no_relation_is_lost_wherever_it_stands(seed):
    answers = [*find_lost(range(seed * 2_000, seed * 2_000 + 2_000))]
    assert [(one, missing) for one, missing, _ in answers if missing] == []
    assert sum(understood for *_, understood in answers) > 1_000


def jobs_of(*statements, others=()):
    """Return the workload of one job, x0, beside writers of every table."""
    return read(SimpleNamespace(statements=[*statements], others=[*others]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, n, day FROM s GROUP BY id, n, day HAVING sum(n) > (SELECT max(n) FROM t)",
        "SELECT id, n, day FROM s QUALIFY row_number() OVER (ORDER BY n) > (SELECT max(n) FROM t)",
        "SELECT id, n, day FROM s ORDER BY (SELECT max(n) FROM t)",
        "SELECT id, sum(n), day FROM s GROUP BY id, day, (SELECT max(n) FROM t)",
        "SELECT id, n, day FROM delta.`/lake/t/`",
        "SELECT id, n, day FROM delta.`file:/lake/t`",
        "SELECT id, n, day FROM parquet.`/lake/t/day=2026-01-01`",
        "SELECT id, n, day FROM v_elsewhere",
        "SELECT id, n, day FROM lake.v_elsewhere",
        "SELECT count_of_t(), n, day FROM s",
    ],
)
def test_a_read_of_the_own_table_that_is_lost_is_not_understood(query):
    others = [
        "CREATE VIEW lake.v_elsewhere AS SELECT * FROM t",
        "CREATE FUNCTION count_of_t() RETURNS BIGINT RETURN (SELECT count(*) FROM t)",
    ]
    work = jobs_of(f"INSERT INTO t {query}", others=others)
    assert not [one for one in work.statements if one.job == "x0"]
    same = jobs_of(
        "INSERT INTO s SELECT id, n, day FROM u", f"INSERT INTO u {query}", others=others
    )
    (*_, last) = [one for one in same.statements if one.job == "x0"]
    assert "t" in {*last.reads, *modelled_scans(last.statement)}


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TEMP VIEW v (a, b, c) AS SELECT * FROM t", "INSERT INTO t SELECT a, b, c FROM v"),
        ("CREATE GLOBAL TEMP VIEW v AS SELECT * FROM t", "INSERT INTO t SELECT * FROM global_temp.v"),
        (
            "CREATE TEMP VIEW v USING delta OPTIONS (path '/lake/t')",
            "INSERT INTO t SELECT id, n, day FROM v",
        ),
        (
            "CREATE TEMP VIEW v AS SELECT * FROM s",
            "CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM v UNION ALL SELECT * FROM t",
            "INSERT INTO t SELECT * FROM v",
        ),
        ("CACHE TABLE t", "INSERT INTO t SELECT id, n + 1, day FROM t"),
        ("CACHE TABLE c AS SELECT * FROM t", "INSERT INTO t SELECT id, n + 1, day FROM c"),
        ("EXECUTE IMMEDIATE 'INSERT INTO t SELECT 1, count(*), NULL FROM s HAVING 1 < (SELECT 1 FROM t)'",),
    ],
)  # fmt: skip
def test_what_a_statement_before_defines_counts(statements):
    work = jobs_of(*statements)
    assert [one for one in work.unread if one.job == "x0"]
    inserts = [one for one in work.statements if one.job == "x0" and "INSERT" in one.sql]
    assert not [one for one in inserts if one.statement.target == "t"]


def test_a_view_over_a_view_is_read_as_often_as_it_is_used():
    work = jobs_of(
        "CREATE TEMP VIEW a AS SELECT id, n, day FROM t",
        "CREATE TEMP VIEW b AS SELECT * FROM a WHERE n > 1",
        "INSERT INTO t SELECT id, n, day FROM b WHERE id > (SELECT max(id) FROM t)",
    )
    (one,) = [one for one in work.statements if one.job == "x0"]
    assert modelled_scans(one.statement)["t"] == 2


def test_what_decides_whether_a_statement_is_executed_is_read():
    condition = "IF (SELECT count(*) FROM t) = 0 THEN"
    work = jobs_of(condition, "INSERT INTO t VALUES (1, 1, NULL)")
    (one,) = [one for one in work.statements if one.job == "x0"]
    assert one.reads == ("t",)
    assert condition in work.uncertain["x0"]
