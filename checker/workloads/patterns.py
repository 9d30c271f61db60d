"""The patterns that a broken promise has to have, of statements that are given: pairs, and cycles around one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.checker.workloads.cycle_patterns import Danger, Link

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.model.workload import JobStatement

__all__ = [
    "backward_pair",
    "cycle_of_four",
    "cycle_of_three",
    "open_cycle",
    "seen_in_between",
    "way_in",
    "ways_to_miss",
    "write_skew",
]


def ways_to_miss(danger: Danger) -> Iterator[Danger]:
    """A danger, and the same by what the last one's client reads before it starts."""
    yield danger
    if danger.members[-1].let and any(link.target < link.source for link in danger.links):
        yield replace(danger, outside=True)


def backward_pair(last: JobStatement, early: JobStatement) -> Danger:
    """The last one misses the early one, which changed what it read."""
    return Danger((early, last), links=(Link("rw", 1, 0),))


def way_in(other: JobStatement, last: JobStatement) -> Danger:
    """Another one, which the last one has missed, has read what the last one then changes: how a way back may end."""
    return Danger((other, last), links=(Link("rw", 0, 1),), closed=False)


def write_skew(last: JobStatement, early: JobStatement) -> Danger:
    """Two that miss each other."""
    return Danger((early, last), links=(Link("rw", 1, 0), Link("rw", 0, 1)))


def seen_in_between(last: JobStatement, early: JobStatement, reader: JobStatement) -> Danger:
    """A reader has seen the early one, and not the last one, which has missed both."""
    links = (Link("rw", 2, 0), Link("wr", 0, 1), Link("rw", 1, 2))
    return Danger((early, reader, last), frozenset({(0, 1)}), links)


def cycle_of_three(
    last: JobStatement, early: JobStatement, between: JobStatement, kind: str
) -> Danger:
    """One between them depends in this way on the early one, and has read what the last one then changes."""
    links = (Link("rw", 2, 0), Link(kind, 0, 1), Link("rw", 1, 2))
    return Danger((early, between, last), frozenset({(0, 1)}), links)


def open_cycle(last: JobStatement, early: JobStatement, between: JobStatement, kind: str) -> Danger:
    """The same without the way back to the last one, which may lead by way of others."""
    links = (Link("rw", 2, 0), Link(kind, 0, 1))
    return Danger((early, between, last), frozenset({(0, 1)}), links, closed=False)


def cycle_of_four(
    last: JobStatement, early: JobStatement, between: JobStatement, other: JobStatement, kind: str
) -> Iterator[Danger]:
    """The same by way of one other, in each way in which that may depend on the one between."""
    seen = frozenset({(0, 1), (0, 2), (1, 2)})
    for second in ("wr", "ww", "rw"):
        links = (Link("rw", 3, 0), Link(kind, 0, 1), Link(second, 1, 2), Link("rw", 2, 3))
        yield Danger((early, between, other, last), seen, links)
