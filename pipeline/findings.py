"""What a sweep found, kind by kind: how many, and the first of each as a litmus test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isolitmus.checker.sweeps.table_sweep import example
from isolitmus.checker.sweeps.tally import place
from isolitmus.checker.universes.expecting import expecting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.checker.sweeps.shard_runner import Work
    from isolitmus.checker.sweeps.tally import First, Tallies

__all__ = ["findings", "rank_of"]


def findings(work: Work, total: Tallies) -> Iterator[dict[str, Any]]:
    """The rows of the table of findings."""
    for protocol, tally in total.of.items():
        for level, kinds in tally.kinds.items():
            for kind, (number, first) in sorted(kinds.items(), key=lambda item: item[1][1]):
                test = expecting(example(work, first, protocol, level), protocol, level)
                yield {
                    "size": work.n,
                    "protocol": protocol,
                    "level": level,
                    **kind._asdict(),
                    "candidates": number,
                    "smallest": first == tally.first[level],
                    "rank": rank_of(work, first),
                    "litmus": test.text,
                }


def rank_of(work: Work, found: First) -> int:
    """The number of a candidate among those of its size.

    >>> from isolitmus.checker.sweeps.table_sweep import sweep_work
    >>> from isolitmus.specs import scope
    >>> rank_of(sweep_work(scope("two-partitions"), 2), (1, 0, ((0, 0), (0, 1))))
    99
    """
    init, _, choices = found
    return place(len(work.scope.statements), init, choices)
