"""The counts of a sweep in lines for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.number import many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.checker.sweeps.abstract_sweep import AbstractSweep
    from isolitmus.checker.sweeps.table_sweep import Sweep

__all__ = ["abstract_lines", "sweep_lines"]

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


def abstract_lines(done: AbstractSweep) -> Iterator[str]:
    """How many histories there are, and how many of these each level admits."""
    whole = f"of {many(done.transactions, 'transaction')} over {many(done.keys, 'key')}"
    varied = [
        word
        for word, varies in (("sessions", done.vary.sessions), ("aborts", done.vary.aborts))
        if varies
    ]
    whole += f", with {' and '.join(varied)}" if varied else ""
    found = f"{done.histories:,} histories {whole}"
    if done.ended is not None:
        found = f"unknown: {done.ended}; {done.histories:,} of the histories {whole} until then"
    yield f"Universe 'abstract': {found}, in {done.seconds:.1f} s"
    width = max((len(f"{number:,}") for number in done.admitted.values()), default=0)
    for level, number in done.admitted.items():
        share = f"{100 * number / done.histories:.2f} %" if done.histories else "none counted"
        yield f"  {number:>{width},} are admitted by {level}  ({share})"


def _share(number: int, of: int) -> str:
    return f"  ({100 * number / of:.2f} %)" if number else ""
