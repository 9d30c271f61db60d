"""Benchmark of sweeps: a Markdown table.

``--five`` adds five writers, ``--spark`` four and five on Spark. Every row is a process of its own,
`isolitmus sweep`, so that its memory is its own, too. ``--session MASTER`` prints another table:
four writers several times in one Spark session, alternating with two processes without Spark.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from isolitmus.checker.sweeps import table_sweep as sweeps
from isolitmus.pipeline import open_spark, sweep
from isolitmus.specs import scope

ISOLITMUS = str(Path(sys.executable).parent / "isolitmus")
SCOPE = "fourteen-writers"
MEASURE = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([time.perf_counter() - start, used.ru_utime + used.ru_stime, \
used.ru_maxrss / 1024, done.stdout]))
"""


def row(what: str, *words: str) -> str:
    """Return the row of a sweep: seconds of it and of the command, processor time, memory."""
    printed = subprocess.run(
        [sys.executable, "-c", MEASURE, ISOLITMUS, "sweep", SCOPE, "--json", *words],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    wall, cpu, memory, text = json.loads(printed)
    document = json.loads(text)
    seconds, candidates = document["seconds"], document["candidates"]
    admitted = ", ".join(f"{c['admitted']:,}" for c in document["protocols"].values())
    cells = [
        f"{document['transactions']} writers, {what}", f"{candidates:,}", admitted,
        f"{seconds:.1f} s", f"{candidates / seconds:,.0f}", f"{wall:.1f} s", f"{cpu:.1f} s",
        f"{memory:.0f} MiB",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def in_one_session(master: str) -> None:
    """Print a row for each turn; in the first one, Spark starts Python's workers."""
    sys.stdout.write(f"| turn | `{master}` | two processes |\n|{'---|' * 3}\n")
    inside, most = scope(SCOPE), 1_000_000_000
    with open_spark(master) as spark:
        for turn in range(1, 5):
            start = time.perf_counter()
            one = sweep(spark, inside, 4, limit=most)
            middle = time.perf_counter()
            other = sweeps.sweep(inside, 4, limit=most, cores=2)
            end = time.perf_counter()
            assert one.protocols == other.protocols
            sys.stdout.write(f"| {turn} | {middle - start:.1f} s | {end - middle:.1f} s |\n")
            sys.stdout.flush()


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--spark", action="store_true")
    asked.add_argument("--five", action="store_true")
    asked.add_argument("--session", metavar="MASTER")
    options = asked.parse_args()
    if options.session:
        in_one_session(options.session)
        return
    sizes = ["2", "3", "4", *(["5"] if options.five else [])]
    say = (
        "| sweep | candidates | admitted | counting | candidates/s | command | processors | largest"
        " process |"
    )
    sys.stdout.write(f"{say}\n|{'---|' * 8}\n")
    for n in sizes:
        limit = ("--transactions", n, "--limit", "1000000000")
        for cores in ("1", "2"):
            where = f"{cores} core{'s' if cores > '1' else ''}"
            sys.stdout.write(row(where, *limit, "--cores", cores) + "\n")
            sys.stdout.flush()
        masters = ("local[2]", "local-cluster[1,1,1024]", "local-cluster[2,1,1024]")
        for master in masters if options.spark and n >= "4" else ():
            sys.stdout.write(row(f"`{master}`", *limit, "--spark", "--master", master) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
