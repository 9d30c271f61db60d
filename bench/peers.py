"""Benchmark of `check` beside AWDIT: whole commands in turn, a Markdown table.

AWDIT (Møldrup and others, PLDI 2025) is built from its published sources, outside this project, and
named by ``--awdit``. Both programs read the same file of Plume's text. The histories are those of
`bench/recorded.py`: each has keys of equal probability, or with Zipf's distribution, and is
serializable, or a share of its transactions reads an older state. Processor seconds are those of
the whole command, user and system; a cell has the minimum and the median of the rounds, and the
last column the ratio of the medians. A verdict that differs ends the benchmark with an error.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from bulk import plume
from recorded import generated

ISOLITMUS = str(Path(sys.executable).parent / "isolitmus")
LEVELS = {
    "read-committed-biswas-enea": "read-committed",
    "read-atomic": "read-atomic",
    "causal": "causal",
}
"""Levels here, with their names in AWDIT."""
CASES = {
    "Zipf, holds": {"zipf": True, "stale": 0.0},
    "Zipf, 1 % stale": {"zipf": True, "stale": 0.01},
    "uniform, holds": {"zipf": False, "stale": 0.0},
    "uniform, 1 % stale": {"zipf": False, "stale": 0.01},
}
MEASURE = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss, done.returncode)
print(done.stdout[-2000:])
"""


class Round(NamedTuple):
    """One run of a command: seconds of processor and of the clock, peak memory, and its answer."""

    processor: float
    clock: float
    megabytes: float
    allowed: bool


def measured(command: list[str]) -> Round:
    """Run a command in a process of its own, and measure it."""
    start = perf_counter()
    done = subprocess.run(
        [sys.executable, "-S", "-c", MEASURE, *command], capture_output=True, text=True, check=True
    )
    clock = perf_counter() - start
    head, _, output = done.stdout.partition("\n")
    processor, kilobytes, status = head.split()
    says = {"0": True, "1": False}.get(status) if command[0] == ISOLITMUS else answer(output)
    if says is None:
        raise ValueError(f"{' '.join(command)} gave no verdict (status {status}): {output}")
    return Round(float(processor), clock, int(kilobytes) / 1024, says)


def answer(output: str) -> bool | None:
    """Return whether AWDIT allows a history; None if it does not say."""
    words = [line for line in output.splitlines() if line in {"Consistent.", "Inconsistent."}]
    return words == ["Consistent."] if len(words) == 1 else None


def row(path: Path, level: str, awdit: str, rounds: int) -> tuple[list[Round], list[Round]]:
    """Run both programs on a history at a level in turn; raise ValueError for unlike verdicts."""
    commands = (
        [ISOLITMUS, "check", str(path), "--format", "plume", "--level", level],
        [awdit, "check", "--report-mode", "first", "-i", LEVELS[level], str(path)],
    )
    found: tuple[list[Round], list[Round]] = ([], [])
    for _ in range(rounds):
        for command, runs in zip(commands, found, strict=True):
            runs.append(measured(command))
    if len({one.allowed for runs in found for one in runs}) > 1:
        kept = Path(tempfile.gettempdir()) / f"unlike-{level}.txt"
        kept.write_bytes(path.read_bytes())
        raise ValueError(f"the verdicts on {kept} at {level} differ")
    return found


def cells(runs: list[Round]) -> str:
    """Return minimum and median of the processor seconds, the clock's median, and peak memory."""
    processor = [one.processor for one in runs]
    clock = statistics.median(one.clock for one in runs)
    peak = max(one.megabytes for one in runs)
    seconds = f"{min(processor):.2f}, {statistics.median(processor):.2f} s"
    return f"{seconds} | {clock:.2f} s | {peak:,.0f} MB"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--awdit", required=True, metavar="PROGRAM")
    options.add_argument("--sizes", nargs="+", type=int, default=[10**3, 10**4, 10**5])
    options.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    options.add_argument("--rounds", type=int, default=5)
    asked = options.parse_args()
    sys.stdout.write(
        "| history | level | verdict | here: CPU | clock | memory | AWDIT: CPU | clock | memory |"
        " CPU, here / AWDIT |\n|---|---|---|---|---|---|---|---|---|---|\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.txt"
        for size in asked.sizes:
            for case in asked.cases:
                given = CASES[case]
                history = generated(size, 15, stale=float(given["stale"]), zipf=bool(given["zipf"]))
                path.write_text(plume(history))
                for level in LEVELS:
                    ours, theirs = row(path, level, asked.awdit, asked.rounds)
                    medians = [
                        statistics.median(one.processor for one in runs) for runs in (ours, theirs)
                    ]
                    verdict = "allowed" if ours[0].allowed else "forbidden"
                    sys.stdout.write(
                        f"| {size:,} × 15, {case} | {level} | {verdict} | {cells(ours)} |"
                        f" {cells(theirs)} | {medians[0] / max(medians[1], 0.001):.1f} |\n"
                    )
                    sys.stdout.flush()


if __name__ == "__main__":
    main()
