"""Benchmark of the format locking: a Markdown table.

It covers all interleavings of litmus tests, a scope that is counted, smallest counterexamples, and
a litmus test on the model and, where available, on Derby and PostgreSQL. One warm process runs all;
each figure is the median of several runs, and each ratio the median of the first row of its kind
divided by this one's.
"""

import statistics
import sys
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import TypeVar

from isolitmus.checker import run, separate
from isolitmus.checker.execution.run_diff import run_differences
from isolitmus.checker.sweeps.table_sweep import sweep
from isolitmus.conformance.engines import open_engine
from isolitmus.databases.locking.interleavings import count_interleavings
from isolitmus.model.display import count_of
from isolitmus.model.errors import EngineUnavailable
from isolitmus.specs import level, litmus, protocol, scope

T = TypeVar("T")
RUNS = 5
RC = "locking-read-committed"
INTERLEAVED = ("quiz-two-workers", "invoice-moved", "linked-accounts")
WITNESSES = {
    RC: ("row-once", "one-moment", "serializable", "no-dirty-read"),
    "locking-repeatable-read": ("row-once",),
    "locking-read-uncommitted": ("no-dirty-read",),
}
REPLAYED = ("scan-twice", "crossed-updates")
ENGINES = {"derby": "derby-read-committed", "postgres": "postgresql-read-committed"}


def median(work: Callable[[], T]) -> tuple[T, float]:
    """Return the answer to a question, after a warm-up, and its median time in seconds."""
    answer, times = work(), []
    for _ in range(RUNS):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return answer, statistics.median(times)


def rates() -> Iterator[tuple[str, float, str]]:
    """Yield measurements of all interleavings and of all schedules."""
    for name in INTERLEAVED:
        test, under = litmus(name), protocol(RC)
        done, seconds = median(lambda test=test, under=under: count_interleavings(test, under))
        note = f"{done.number:,}, {done.number / seconds:,.0f} a second; {done.states} states"
        yield f"interleavings of {name}", seconds, note
    counted, seconds = median(lambda: sweep(scope("scans"), 2, protocols=[protocol(RC)]))
    note = f"{counted.candidates:,} schedules, {counted.candidates / seconds:,.0f} a second"
    yield f"sweep scans, {RC}", seconds, note


def witnesses() -> Iterator[tuple[str, float, str]]:
    """Yield measurements of the smallest histories that a protocol admits and a level forbids."""
    inside = scope("scans")
    for name, levels in WITNESSES.items():
        for asked in levels:
            answer, seconds = median(
                lambda name=name, asked=asked: separate(protocol(name), level(asked), inside)
            )
            if answer.found:
                steps = len(answer.litmus.schedule.steps)
                note = f"{count_of(answer.transactions, 'transaction')}, {count_of(steps, 'step')}"
            else:
                note = "none up to the scope's bound"
            yield f"{name}, not {asked}", seconds, note


def replays() -> Iterator[tuple[str, float, str]]:
    """Yield measurements of litmus tests on the model and on running engines.

    Each run must equal the model's prediction.
    """
    for name in REPLAYED:
        test = litmus(name)
        _, seconds = median(lambda test=test: run(test, protocol(RC)).run)
        yield f"{name} on the model", seconds, RC
    for engine, under in ENGINES.items():
        aim = {"derby": 0.1, "postgres": 0.05}[engine]
        try:
            start = perf_counter()
            with open_engine(engine) as carry:
                yield f"start of {engine}", perf_counter() - start, "once"
                for name in REPLAYED:
                    test, spec = litmus(name), protocol(under)
                    seen, seconds = median(lambda t=test, s=spec, c=carry: c(t, s))
                    assert run_differences(run(test, spec).run, seen) == ()
                    yield f"{name} on {engine}", seconds, f"{under}; aim {aim} s"
        except EngineUnavailable as error:
            sys.stderr.write(f"{error}\n")


def main() -> None:
    sys.stdout.write(f"| what | median | first / this | note |\n|{'---|' * 4}\n")
    for kind in (rates, witnesses, replays):
        first = 0.0
        for what, seconds, note in kind():
            first = first or seconds
            sys.stdout.write(f"| {what} | {seconds:.3f} s | {first / seconds:.2g} | {note} |\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
