"""Benchmark of a race of user code: a Markdown table.

A table has two rows. A DELETE is parked before its commit, an INSERT commits meanwhile, and the
DELETE ends: as a callable, without a prediction, and as text. Each session is a process of its own:
that of `delta_spark` and an ordinary one as PySpark makes it.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from isolitmus.conformance import open_session, race
from isolitmus.conformance.delta.session import DELTA
from isolitmus.conformance.pytest_plugin import COMPILING

KINDS = ("callable", "text")


@contextmanager
def recommended() -> Iterator[Any]:
    with open_session() as session:
        session.spark.conf.set(*COMPILING)
        yield session.spark


@contextmanager
def ordinary() -> Iterator[Any]:
    from delta import configure_spark_with_delta_pip
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        builder = SparkSession.builder.master("local[*]").config(map=DELTA)
        builder = builder.config("spark.sql.warehouse.dir", folder)
        spark = configure_spark_with_delta_pip(builder).getOrCreate()
        try:
            yield spark
        finally:
            spark.stop()


SESSIONS: dict[str, Callable[[], Any]] = {"recommended": recommended, "ordinary": ordinary}


def one(spark: Any, table: str, kind: str) -> float:
    """Return the seconds from the start of the parked statement to its end."""
    spark.sql(f"CREATE TABLE {table} (id INT, day INT) USING delta PARTITIONED BY (day)")
    spark.sql(f"INSERT INTO {table} VALUES (1, 2), (2, 3)")
    delete, insert = f"DELETE FROM {table} WHERE day = 3", f"INSERT INTO {table} VALUES (7, 3)"
    start = perf_counter()
    with race(spark, table) as run:
        if kind == "text":
            parked = run.park(delete)
            run.sql(insert)
        else:
            parked = run.park(lambda: spark.sql(delete))
            spark.sql(insert)
        ending = parked.release()
    assert ending.conflict, ending
    return perf_counter() - start


def measure(name: str, rounds: int) -> None:
    with SESSIONS[name]() as spark:
        first = one(spark, "cold", "callable")
        kinds = KINDS[: None if name == "recommended" else 1]
        times: dict[str, list[float]] = {kind: [] for kind in kinds}
        for k in range(rounds):  # alternating, since a JVM gets faster for minutes
            for kind in kinds:
                times[kind].append(one(spark, f"{kind}{k}", kind))
        for kind, taken in times.items():
            cells = (
                name,
                kind,
                f"{first:.1f} s",
                f"{statistics.median(taken):.2f} s",
                f"{max(taken):.2f} s",
            )
            sys.stdout.write(f"| {' | '.join(cells)} |\n")
            sys.stdout.flush()


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--session", choices=list(SESSIONS))
    asked.add_argument("--rounds", type=int, default=10)
    options = asked.parse_args()
    if options.session is not None:
        measure(options.session, options.rounds)
        return
    sys.stdout.write(f"| session | the DELETE is a | first | median | longest |\n|{'---|' * 5}\n")
    sys.stdout.flush()
    for name, rounds in (("recommended", options.rounds), ("ordinary", 1)):
        command = [sys.executable, __file__, "--session", name, "--rounds", str(rounds)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
