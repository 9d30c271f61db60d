"""How long it takes to say of 2 to 20 jobs which stop which, and which level they need: a table in Markdown."""

from __future__ import annotations

import sys
from time import perf_counter

from isolitmus.checker.robustness.prediction import predict_workload
from isolitmus.specs import protocol
from isolitmus.specs.job_files import workload
from isolitmus.specs.workload_file import read_workload

SIZES = (2, 5, 10, 20)
LEVELS = ("delta-serializable", "delta-write-serializable")


def jobs(many: int) -> str:
    """The shop's jobs over and over, each copy under a name of its own."""
    text = workload("shop").text
    head, *each = text.split("[jobs.")
    copies = (
        f"[jobs.{job.replace(']', f'{k // len(each)}x]', 1)}"
        for k in range(many)
        for job in [each[k % len(each)]]
    )
    return head + "".join(copies)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    say("| jobs | pairs | level | seconds |")
    say("|---|---|---|---|")
    for many in SIZES:
        work = read_workload(jobs(many), f"{many} jobs")
        for level in LEVELS:
            start = perf_counter()
            found = predict_workload(work, protocol(level))
            seconds = perf_counter() - start
            say(f"| {many} | {len(found.meetings)} | {level} | {seconds:.1f} |")


if __name__ == "__main__":
    main()
