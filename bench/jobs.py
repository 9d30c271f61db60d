"""Benchmark of conflict prediction and robustness for 2 to 50 jobs: a Markdown table.

The jobs are copies of the shop's jobs, each with a literal of its own, so that no two statements
are equal. Times are seconds of one processor, in one process; for ``predict`` also elapsed seconds
with all processors.
"""

from __future__ import annotations

import re
import sys
from time import perf_counter, process_time

from isolitmus.checker.execution.worker_processes import available_cores
from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.jobs.robust.robustness import PROMISES, decide_all
from isolitmus.specs import protocol

SIZES = (2, 5, 10, 20, 50)
LEVELS = ("delta-serializable", "delta-write-serializable")


def jobs(many: int) -> str:
    """Return a workload of this many jobs: the shop's, and copies that differ in a literal."""
    text = workload("shop").text
    head, *each = text.split("[jobs.")
    copies = []
    for k in range(many):
        job = each[k % len(each)].replace("]", f"{k // len(each)}]", 1)
        copies.append(f"[jobs.{other(job, k // len(each))}")
    return head + "".join(copies)


def other(job: str, k: int) -> str:
    """Return a job with customers, amounts and days that no other copy has."""
    days = f"day < :today AND day > DATE '20{k + 10:02}-01-01'"
    text = job.replace("day < :today", days).replace("sum(amount)", f"sum(amount) + {k}")
    text = re.sub(r"amount = new\.amount", f"amount = new.amount + {k}", text)
    return text.replace("(:id, :customer, :amount, :day)", f"(:id, :customer, :amount + {k}, :day)")


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    several = f"`predict`, {available_cores()} processes"
    say(f"| jobs | level | pairs | `predict` | {several} | three promises, `robust` | said |")
    say("|---|---|---|---|---|---|---|")
    for many in SIZES:
        work = read_workload(jobs(many), f"{many} jobs")
        for level in LEVELS:
            under = protocol(level)
            start = process_time()
            pairs = predict_workload(work, under).meetings
            between = process_time()
            said = [found.word for found in decide_all(work, (under,), PROMISES)]
            asked = process_time()
            began = perf_counter()
            predict_workload(work, under, processes=available_cores())
            passed = perf_counter() - began
            seconds = f"{between - start:.1f} s | {passed:.1f} s | {asked - between:.1f} s"
            say(f"| {many} | {level} | {len(pairs)} | {seconds} | {', '.join(said)} |")


if __name__ == "__main__":
    main()
