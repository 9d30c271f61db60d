"""The account of relations for functions of PySpark: what they execute against what was drawn."""

import re
from itertools import count, islice

import pytest
from drawn_relations import DDL, WRITERS, draw_job
from relation_checks import lost

from isolitmus.jobs.readers.function_targets import read_function_target
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.jobs.recording.function_runs import run_functions

SCHEMA = re.compile(r"(?:\bc\s*\.\s*)?`?\blake\b`?\s*\.\s*", re.IGNORECASE)
"""Schema before a name, which the empty tables do not have."""
ELSEWHERE = re.compile(r"delta\.`|parquet\.`| AS OF |table_changes")
"""What the empty tables have not: paths, older versions, changes."""
FUNCTIONS = 12


def executable(seed):
    """Yield drawn jobs that Spark may execute on empty tables, each with its number."""
    for number in count(seed * 1_000):
        drawn = draw_job(number)
        if not (drawn.others or ELSEWHERE.search(" ".join(drawn.statements))):
            yield number, drawn


@pytest.mark.spark
def test_no_relation_of_a_function_is_lost(seed, tmp_path):
    drawn = {f"f{number}": job for number, job in islice(executable(seed), FUNCTIONS)}
    program = ""
    for name, job in drawn.items():
        calls = [f"    spark.sql({SCHEMA.sub('', sql)!r})\n" for sql in job.statements]
        program += f"def {name}(spark):\n{''.join(calls)}\n"
    (tmp_path / "job.py").write_text(program, "utf-8")
    tables = "; ".join(one.partition(" LOCATION")[0] for one in DDL)
    (tmp_path / "tables.ddl").write_text(tables, "utf-8")
    for name, texts in WRITERS.items():
        (tmp_path / f"add_{name}.sql").write_text(texts[0], "utf-8")
    targets = [read_function_target(f"{tmp_path}/job.py:{name}") for name in drawn]
    files = [str(path) for path in sorted(tmp_path.glob("*.sql"))]
    work = workload(
        *files, ddl=tmp_path / "tables.ddl", run=lambda created: run_functions(targets, created)
    )
    missing = {name: lost(job, work, name) for name, job in drawn.items()}
    assert not any(missing.values()), missing
    assert sum(one.job in drawn for one in work.statements) > FUNCTIONS // 2
