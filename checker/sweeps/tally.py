"""What is counted, of a shard or of all of them together; and the shards of a scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import factorial, prod
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolitmus.model.scope import Scope

__all__ = [
    "BrokenKind",
    "Choices",
    "FailedStatement",
    "First",
    "Shard",
    "Shards",
    "Tallies",
    "Tally",
    "count_candidates",
    "count_continuations",
    "make_shards",
    "shard_number",
]

Choices = tuple[tuple[int, int], ...]
"""For each commit position the number of a statement and the version that it read."""
First = tuple[int, int, Choices]
"""A candidate as enumeration orders them: its initial table, the last statement that it needs,
choices.
"""
LARGEST = 500_000
"""The most candidates of one shard."""


class Shard(NamedTuple):
    """The candidates on one initial table that begin with some choices."""

    init: int
    choices: Choices


class BrokenKind(NamedTuple):
    """What is broken, whoever breaks it."""

    axiom: str
    """The axiom of the level."""
    relations: tuple[str, ...]
    """Those of the dependencies that break it, along them; of a cycle from where that is first in
    the alphabet.
    """


class FailedStatement(NamedTuple):
    """A statement that failed at run time, where, and how."""

    init: int
    """The initial table, by its number."""
    choices: Choices
    """The candidate: who came with which statement, and what it had read."""
    sql: str
    """The statement."""
    exception: str
    """Its class."""
    why: str
    """Its message."""


@dataclass(slots=True)
class Tally:
    """What one protocol admits, and on how many candidates it is silent."""

    admitted: int = 0
    """How many candidates."""
    forbidden: dict[str, int] = field(default_factory=dict)
    """How many of them each level forbids."""
    first: dict[str, First] = field(default_factory=dict)
    """The first that each level forbids."""
    kinds: dict[str, dict[BrokenKind, tuple[int, First]]] = field(default_factory=dict)
    """Of those that each level forbids how many are of a kind, and the first, if kinds were asked
    for.
    """
    unexplained: int = 0
    """How many of them no serial order explains at some version."""
    not_log_order: int = 0
    """How many of them end with a table that the order of the log does not give."""
    silent: int = 0
    """How many candidates it neither admits nor forbids."""

    @property
    def for_conflicts_alone(self) -> dict[str, int]:
        """Of the candidates that a level forbids for their conflicts, how many a serial order
        explains all the same: their final table (``log-serializable``), some order every version
        (``write-serializable``).

        >>> Tally(admitted=9, forbidden={"write-serializable": 4}, unexplained=1).for_conflicts_alone
        {'write-serializable': 3}
        """
        not_so = {"log-serializable": self.not_log_order, "write-serializable": self.unexplained}
        return {
            level: number - not_so[level]
            for level, number in self.forbidden.items()
            if number >= not_so.get(level, number + 1)
        }

    def offer(self, level: str, found: First) -> None:
        """Keep the first of the candidates that a level forbids."""
        if level not in self.first or found < self.first[level]:
            self.first[level] = found

    def sort(self, level: str, kind: BrokenKind, number: int, found: First) -> None:
        """Count some more that a level forbids as of a kind, of which this is the first."""
        kinds = self.kinds.setdefault(level, {})
        before, first = kinds.get(kind, (0, found))
        kinds[kind] = before + number, min(first, found)

    def add(self, other: Tally) -> None:
        """Count what another one has counted, too."""
        self.admitted += other.admitted
        self.unexplained += other.unexplained
        self.not_log_order += other.not_log_order
        self.silent += other.silent
        for level, number in other.forbidden.items():
            self.forbidden[level] = self.forbidden.get(level, 0) + number
        for level, found in other.first.items():
            self.offer(level, found)
        for level, kinds in other.kinds.items():
            for kind, (number, found) in kinds.items():
                self.sort(level, kind, number, found)


@dataclass(slots=True)
class Tallies:
    """The tally of each protocol, by name; how many candidates had a statement that failed after
    commits that some protocol admits, and the first such statement. ``candidates`` were counted.
    """

    of: dict[str, Tally]
    failed: int = 0
    failure: FailedStatement | None = None
    candidates: int = 0

    @classmethod
    def none(cls, protocols: Iterable[str], levels: Sequence[str]) -> Tallies:
        """Nothing counted yet."""
        return cls({name: Tally(forbidden=dict.fromkeys(levels, 0)) for name in protocols})

    def add(self, other: Tallies) -> None:
        """Count what another shard has counted, too, in whatever order shards come."""
        for name, tally in other.of.items():
            self.of[name].add(tally)
        self.failed += other.failed
        self.candidates += other.candidates
        if other.failure is not None and (self.failure is None or other.failure < self.failure):
            self.failure = other.failure


def count_candidates(scope: Scope, n: int) -> int:
    """The number of candidates with n writers.

    >>> from isolitmus.specs import scope
    >>> count_candidates(scope("table"), 3)
    10368
    """
    return len(scope.inits) * factorial(n) * int(len(scope.statements) ** n)


def shard_number(statements: int, init: int, choices: Choices) -> int:
    """The number of what begins with these choices among all that have as many: of whole candidates
    their rank. The inverse of ``Shards``, where there are so many ``statements``.

    >>> shard_number(7, 1, ((0, 0), (0, 1)))
    99
    """
    number = init
    for position, (k, version) in enumerate(choices, 1):
        number = (number * statements + k) * position + version
    return number


def count_continuations(statements: int, position: int, n: int) -> int:
    """How many candidates of n writers begin with the same choices of the first ``position``.

    >>> count_continuations(14, 1, 3), count_continuations(14, 3, 3)
    (1176, 1)
    """
    return prod(statements * later for later in range(position + 1, n + 1))


def make_shards(scope: Scope, n: int, largest: int = LARGEST) -> Shards:
    """The shards of a scope's candidates with n writers, none larger than ``largest``.

    >>> from isolitmus.specs import scope
    >>> cut = make_shards(scope("two-partitions"), 3, 100)
    >>> len(cut), cut.each, cut[1]
    (196, 21, Shard(init=0, choices=((0, 0), (0, 1))))
    """
    size, depth = len(scope.statements), 1
    while depth < n and count_continuations(size, depth, n) > largest:
        depth += 1
    return Shards(len(scope.inits), size, depth, count_candidates(scope, n), largest)


@dataclass(frozen=True, slots=True)
class Shards(Sequence[Shard]):
    """Candidates cut by initial table and first choices, in their fixed order, all of one size."""

    inits: int
    """How many initial tables there are."""
    statements: int
    """How many statements."""
    depth: int
    """How many choices are those of a shard."""
    candidates: int
    """How many there are in all."""
    largest: int
    """The most candidates that one was to have."""

    @property
    def each(self) -> int:
        """The candidates of one shard."""
        return self.candidates // len(self)

    def __len__(self) -> int:
        return self.inits * factorial(self.depth) * int(self.statements**self.depth)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        choices: list[tuple[int, int]] = []
        for position in range(self.depth, 0, -1):
            index, version = divmod(index, position)
            index, k = divmod(index, self.statements)
            choices.append((k, version))
        return Shard(index, tuple(reversed(choices)))
