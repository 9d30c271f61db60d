"""The counts of a sweep in lines for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.number import many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.checker.sweeps import Sweep

__all__ = ["sweep_lines"]

GIVEN = {
    "log-serializable": "the order of the log gives the table with which they end",
    "write-serializable": "at every version a serial order of the writers gives the table",
}
"""What is so of a history in spite of its conflicts."""


def sweep_lines(done: Sweep) -> Iterator[str]:
    """How many candidates each protocol admits, and what levels and serial orders say of these."""
    whole = f"{many(done.candidates, 'candidate')} with {many(done.transactions, 'transaction')}"
    if done.ended is not None:
        whole = f"unknown: {done.ended}; {done.counted:,} of {whole} until then"
    yield f"{done.scope}: {whole}, in {done.seconds:.1f} s"
    for name, counts in done.protocols.items():
        silent = f" is silent on {counts.silent:,}, and" if counts.silent else ""
        most = "at most " if name in done.at_most else ""
        yield f"  {name}{silent} admits {most}{counts.admitted:,}, of which"
        width = max(map(len, counts.forbidden), default=0)
        for level, number in counts.forbidden.items():
            share = _share(number, counts.admitted)
            yield f"    {number:>9,} are forbidden by {level:<{width if share else 0}}{share}"
        yield (
            f"    {counts.not_log_order:>9,} end with a table that the order of the log does not give"
        )
        yield (
            f"    {counts.unexplained:>9,} have a version that no serial order of the writers gives"
        )
        for level, number in counts.for_conflicts_alone.items():
            if number:
                alone = f"forbidden by {level} for their conflicts alone"
                yield f"    {number:>9,} are {alone}: {GIVEN[level]}"
    if done.failure is not None:
        yield (
            f"  {done.failed:,} are not admitted because a statement fails in them, the first:"
            f" '{done.failure.sql}' with {done.failure.exception} ({done.failure.why})"
        )


def _share(number: int, of: int) -> str:
    return f"  ({100 * number / of:.2f} %)" if number else ""
