"""Benchmark of bulk verdicts on recorded histories, in one process and on Spark: a Markdown table.

The histories are those of `bench/recorded.py`, each with another seed in a file of its own; reading
counts. The Spark session has judged some files before, so that its workers are running.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from recorded import generated

from isolitmus.checker.checks.history_sources import check_files, history_files
from isolitmus.histories.readers.blackbox_history import RegisterHistory
from isolitmus.model.budget import Budget
from isolitmus.pipeline import check_all, open_spark

LEVELS = [
    "read-committed-biswas-enea", "read-atomic", "causal", "prefix-consistency",
    "snapshot-isolation", "serializable",
]  # fmt: skip


def plume(history: RegisterHistory) -> str:
    """Return the history in Plume's format, in which value 0 exists before any write."""
    lines = []
    for number, session in enumerate(history.session.tolist()):
        for k in range(history.first[number], history.first[number + 1]):
            kind = "w" if history.is_write[k] else "r"
            lines.append(f"{kind}({history.key[k]},{history.value[k] + 1},{session},{number})\n")
    return "".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--files", type=int, default=200)
    options.add_argument("--size", default="300x8", metavar="TRANSACTIONSxOPERATIONS")
    options.add_argument("--master", default="local[2]")
    asked = options.parse_args()
    transactions, operations = map(int, asked.size.split("x"))
    say = f"| level | here | `{asked.master}` | Spark / here |"
    sys.stdout.write(f"{say}\n|{'---|' * 4}\n")
    with tempfile.TemporaryDirectory() as folder, open_spark(asked.master) as spark:
        for seed in range(asked.files):
            made = generated(transactions, operations, seed=seed)
            Path(folder, f"h{seed}.txt").write_text(plume(made))
        files = history_files(folder, "plume")
        check_all(spark, files[:8], levels=LEVELS)
        for level in LEVELS:
            start = time.perf_counter()
            found = list(check_files([folder], [level], "plume", Budget(), print))
            here = len(found) / (time.perf_counter() - start)
            done = check_all(spark, files, levels=[level])
            assert done.histories == len(found) == asked.files
            there = done.histories / done.seconds
            sys.stdout.write(f"| `{level}` | {here:.0f} | {there:.0f} | {there / here:.1f} |\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
