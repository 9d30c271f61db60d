"""Benchmarks of the searches, each beside another way to the same answer.

Seconds depend on the machine, ratios less so. So whatever has another way in the same run is also
given as a ratio: the other way's median divided by this one's. Times are not asserted; answers are.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from isolitmus.checker.search.separation import separate
from isolitmus.model import Budget
from isolitmus.specs import scope, spec

if TYPE_CHECKING:
    from collections.abc import Callable

    from isolitmus.checker.search.separation_result import By, Separation
    from isolitmus.model.scope import Scope

HERE = Path(__file__).parent
LIMIT = 120.0
"""Time limit of a single answer, in seconds."""
COMMANDS = {
    "--help": 0.1,
    "show": 0.3,
    "show levels": 0.3,
    "show litmus": 0.3,
    "explain error.txt": 0.3,
    "check history-write-skew": 0.3,
    "separate snapshot-isolation serializable": 0.3,
    "separate delta-write-serializable log-serializable": 0.45,
    "separate delta-write-serializable write-serializable --unexplained": 0.6,
    "run reorder": 0.4,
    "predict shop": 0.4,
}
"""Whole commands, and the aim in seconds."""
ERROR = (
    "ConcurrentAppendException: [DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT] Transaction conflict"
)


@dataclass(frozen=True)
class Row:
    """Row of the table: seconds this way, and the other way if it was measured."""

    what: str
    seconds: float | None
    beside: str = ""
    other: float | None = None
    note: str = ""

    def cells(self) -> list[str]:
        ratio = self.other / self.seconds if self.seconds and self.other else None
        return [
            self.what,
            _seconds(self.seconds),
            f"{self.beside} {_seconds(self.other)}" if self.beside else "",
            f"{ratio:.1f}" if ratio else "",
            self.note,
        ]


def _seconds(value: float | None) -> str:
    return f"over {LIMIT:.0f} s" if value is None else f"{value:.3f} s"


def median(work: Callable[[], object], runs: int) -> float:
    """Return the median time of some runs, in seconds."""
    times = []
    for _ in range(runs):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return statistics.median(times)


def ask(
    a: str, b: str, inside: Scope | None, by: By, *, sizes: list[int], unexplained: bool = False
) -> Separation:
    return separate(
        spec(a), spec(b), inside or "abstract", by=by, transactions=sizes,
        unexplained=unexplained, budget=Budget(seconds=LIMIT),
    )  # fmt: skip


def both(
    what: str, a: str, b: str, inside: Scope | None, sizes: list[int], *,
    found: bool, runs: int = 5, enumerate_too: bool = True, unexplained: bool = False,
    note: str = "",
) -> Row:  # fmt: skip
    """Return a row for a question, answered by the solver and, if fast enough, by enumeration."""
    times: dict[By, float | None] = {}
    ways: list[By] = ["symbolic", "exhaustive"] if enumerate_too else ["symbolic"]
    for by in ways:
        start = perf_counter()
        answer = ask(a, b, inside, by, sizes=sizes, unexplained=unexplained)
        once = perf_counter() - start
        if answer.found is None:
            times[by] = None
            continue
        assert answer.found == found, answer
        again = runs if once < 2 else 1
        times[by] = median(
            lambda by=by: ask(a, b, inside, by, sizes=sizes, unexplained=unexplained), again
        )
    beside = "enumeration" if enumerate_too else ""
    return Row(what, times["symbolic"], beside, times.get("exhaustive"), note)


def command(*words: str, cwd: str = ".") -> Callable[[], object]:
    return lambda: subprocess.run(words, check=False, capture_output=True, cwd=cwd)


def memory(*words: str) -> float:
    """Return the peak memory of a command in its own process, in MiB."""
    script = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], capture_output=True);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script, *words], check=True, capture_output=True, text=True
    )
    return int(printed.stdout) / 1024


def rows() -> list[Row]:
    """Return every measurement, in order; the first question warms up the process."""
    table, three = scope("table"), scope(str(HERE / "three-partitions.toml"))
    ask("snapshot-isolation", "serializable", None, "symbolic", sizes=[2])
    done: list[Row] = []

    def add(row: Row) -> None:
        done.append(row)
        sys.stderr.write(" | ".join(row.cells()) + "\n")

    published = {3: "aim 0.008 s; Isolde, published: 0.009 s", 10: "aim 0.250 s; Isolde: 0.265 s"}
    for n in range(2, 11):
        add(both(f"snapshot-isolation, not serializable: exactly {n} transactions",
                 "snapshot-isolation", "serializable", None, [n], found=True,
                 enumerate_too=n <= 3, note=published.get(n, "")))  # fmt: skip
    equivalence = {4: "0.6 s", 5: "10.6 s", 6: "590 s", 7: "over 3600 s"}
    for n in range(2, 9):
        note = f"Isolde, an equivalence, published: {equivalence[n]}" if n in equivalence else ""
        add(both(f"serializable, not snapshot-isolation: none with {n} transactions",
                 "serializable", "snapshot-isolation", None, [n], found=False,
                 enumerate_too=n <= 3, note=note))  # fmt: skip
    add(both("the delete/insert reorder", "delta-write-serializable", "log-serializable", table,
             [2, 3], found=True))  # fmt: skip
    add(both("the hole that no serial order explains", "delta-write-serializable",
             "write-serializable", table, [2, 3], found=True, unexplained=True,
             note="aim 0.500 s"))  # fmt: skip
    for n in range(2, 7):
        add(both("delta-serializable, not log-serializable: none up to"
                 f" {n} transactions, 3 partitions",
                 "delta-serializable", "log-serializable", three, list(range(2, n + 1)),
                 found=False, runs=3, enumerate_too=n <= 3,
                 note="aim 10 s" if n == 6 else ""))  # fmt: skip
    isolitmus = str(Path(sys.executable).parent / "isolitmus")
    plain = median(command(sys.executable, "-c", "pass"), 7)
    beside = "python -c pass"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "error.txt").write_text(ERROR)
        for words, aim in COMMANDS.items():
            done_in = median(command(isolitmus, *words.split(), cwd=folder), 7)
            add(Row(f"`isolitmus {words}`", done_in, beside, plain, f"aim {aim:.2f} s"))
    verify = (isolitmus, "claims", "verify")
    add(Row("claims verify, on the model", median(command(*verify), 3), "", None, "aim 120 s"))
    return done


def main() -> None:
    """Print the table in Markdown."""
    lines = [
        "| what | median | beside | beside / this | note |",
        "|---|---|---|---|---|",
        *(f"| {' | '.join(row.cells())} |" for row in rows()),
    ]
    isolitmus = str(Path(sys.executable).parent / "isolitmus")
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    one = memory(isolitmus, "separate", "delta-write-serializable", "log-serializable")
    nothing = memory(sys.executable, "-c", "pass")
    peak = (
        f"Peak memory: {one:.0f} MiB for one `separate` in a process of its own"
        f" ({one / nothing:.1f} times `python -c pass`); {own:.0f} MiB for all of the above in one."
    )
    lines += ["", peak]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
