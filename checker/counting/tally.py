"""What is counted, of a shard or of all of them together; and the shards of a scope."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from math import factorial, prod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from isolitmus.model.scope import Scope

__all__ = ["Choices", "Failure", "First", "Shard", "Tallies", "Tally", "count", "shards"]

Choices = tuple[tuple[int, int], ...]
"""For each commit position the number of a statement and the version that it read."""
First = tuple[int, int, Choices]
"""A candidate as enumeration orders them: its initial table, the last statement that it needs, choices."""
LARGEST = 250_000
"""The most candidates of one shard."""


class Shard(NamedTuple):
    """The candidates on one initial table that begin with some choices."""

    init: int
    choices: Choices


class Failure(NamedTuple):
    """A statement that failed at run time, where (initial table, choices), and how."""

    init: int
    choices: Choices
    sql: str
    exception: str
    why: str


@dataclass(slots=True)
class Tally:
    """What one protocol admits: how many candidates, of them those that each level forbids (with the
    first one), those that no serial order explains at some version, and those whose final table is
    not what the order of the log gives.
    """

    admitted: int = 0
    forbidden: dict[str, int] = field(default_factory=dict)
    first: dict[str, First] = field(default_factory=dict)
    unexplained: int = 0
    not_log_order: int = 0

    def offer(self, level: str, found: First) -> None:
        """Keep the first of the candidates that a level forbids."""
        if level not in self.first or found < self.first[level]:
            self.first[level] = found

    def add(self, other: Tally) -> None:
        """Count what another one has counted, too."""
        self.admitted += other.admitted
        self.unexplained += other.unexplained
        self.not_log_order += other.not_log_order
        for level, number in other.forbidden.items():
            self.forbidden[level] = self.forbidden.get(level, 0) + number
        for level, found in other.first.items():
            self.offer(level, found)


@dataclass(slots=True)
class Tallies:
    """The tally of each protocol, by name; how many candidates had a statement that failed after
    commits that some protocol admits, and the first such statement.
    """

    of: dict[str, Tally]
    failed: int = 0
    failure: Failure | None = None

    @classmethod
    def none(cls, protocols: Iterable[str], levels: Sequence[str]) -> Tallies:
        """Nothing counted yet."""
        return cls({name: Tally(forbidden=dict.fromkeys(levels, 0)) for name in protocols})

    def add(self, other: Tallies) -> None:
        """Count what another shard has counted, too, in whatever order shards come."""
        for name, tally in other.of.items():
            self.of[name].add(tally)
        self.failed += other.failed
        if other.failure is not None and (self.failure is None or other.failure < self.failure):
            self.failure = other.failure


def count(scope: Scope, n: int) -> int:
    """The number of candidates with n writers.

    >>> from isolitmus.specs import scope
    >>> count(scope("table"), 3)
    10368
    """
    return len(scope.inits) * factorial(n) * int(len(scope.statements) ** n)


def shards(scope: Scope, n: int) -> Iterator[Shard]:
    """The shards of a scope's candidates with n writers, in their fixed order; all are of one size.

    >>> from isolitmus.specs import scope
    >>> list(shards(scope("two-partitions"), 3))[:2]
    [Shard(init=0, choices=((0, 0),)), Shard(init=0, choices=((1, 0),))]
    """
    each = len(scope.statements)
    depth = next(d for d in range(1, n + 1) if d == n or prod(each * j for j in range(d + 1, n + 1)) <= LARGEST)
    options = [[(k, v) for k in range(each) for v in range(j)] for j in range(1, depth + 1)]
    for init in range(len(scope.inits)):
        for choices in product(*options):
            yield Shard(init, choices)
