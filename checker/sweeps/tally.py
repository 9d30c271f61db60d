"""Tallies of a shard or of all shards, and the partition of a scope's candidates into shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import factorial, prod
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolitmus.model.scope import Scope

Choices = tuple[tuple[int, int], ...]
"""Number of a statement and the version that it read, for each commit position."""
First = tuple[int, int, Choices]
"""Candidate in enumeration order: number of its initial table, last statement it needs, choices."""
LARGEST = 500_000
"""Maximal number of candidates of one shard."""


class Shard(NamedTuple):
    """Candidates on one initial table that begin with some choices."""

    init: int
    choices: Choices


class BrokenKind(NamedTuple):
    """Kind of a violation, without the transactions involved."""

    axiom: str
    """Axiom of the level."""
    relations: tuple[str, ...]
    """Relations of the dependencies that break it, in their order; a cycle begins at its
    lexicographically least rotation.
    """


class FailedStatement(NamedTuple):
    """Statement that failed at run time."""

    init: int
    """Number of the initial table."""
    choices: Choices
    """Candidate prefix: statement and read version of each commit."""
    sql: str
    """Text of the statement."""
    exception: str
    """Class of the exception."""
    why: str
    """Message of the exception."""


@dataclass(slots=True)
class Tally:
    """Counts of one protocol."""

    admitted: int = 0
    """Number of candidates that it admits."""
    forbidden: dict[str, int] = field(default_factory=dict)
    """Number of admitted candidates that each level forbids."""
    first: dict[str, First] = field(default_factory=dict)
    """First admitted candidate that each level forbids."""
    kinds: dict[str, dict[BrokenKind, tuple[int, First]]] = field(default_factory=dict)
    """Number of forbidden candidates by level and kind, with the first of each; empty unless kinds
    are counted.
    """
    unexplained: int = 0
    """Number of admitted candidates with a version that no serial order produces."""
    not_log_order: int = 0
    """Number of admitted candidates whose final table the order of the log does not produce."""
    silent: int = 0
    """Number of candidates that it neither admits nor forbids."""

    @property
    def for_conflicts_alone(self) -> dict[str, int]:
        """Number of forbidden candidates that a serial order explains nevertheless.

        These are forbidden for their conflicts alone: a serial order produces their final table
        (``log-serializable``), or one produces every version (``write-serializable``).

        Examples
        --------
        >>> level = "write-serializable"
        >>> Tally(admitted=9, forbidden={level: 4}, unexplained=1).for_conflicts_alone
        {'write-serializable': 3}
        """
        not_so = {"log-serializable": self.not_log_order, "write-serializable": self.unexplained}
        return {
            level: number - not_so[level]
            for level, number in self.forbidden.items()
            if number >= not_so.get(level, number + 1)
        }

    def offer(self, level: str, found: First) -> None:
        """Keep the candidate if it is the first one so far that a level forbids."""
        if level not in self.first or found < self.first[level]:
            self.first[level] = found

    def sort(self, level: str, kind: BrokenKind, number: int, found: First) -> None:
        """Add candidates that a level forbids to a kind; ``found`` is the first of them."""
        kinds = self.kinds.setdefault(level, {})
        before, first = kinds.get(kind, (0, found))
        kinds[kind] = before + number, min(first, found)

    def add(self, other: Tally) -> None:
        """Add the counts of another tally."""
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
    """Tallies by name of protocol.

    ``failed`` is the number of candidates with a statement that failed after commits that some
    protocol admits, ``failure`` the first such statement, ``candidates`` the number of candidates
    counted.
    """

    of: dict[str, Tally]
    failed: int = 0
    failure: FailedStatement | None = None
    candidates: int = 0

    @classmethod
    def none(cls, protocols: Iterable[str], levels: Sequence[str]) -> Tallies:
        """Return tallies with all counts 0."""
        return cls({name: Tally(forbidden=dict.fromkeys(levels, 0)) for name in protocols})

    def add(self, other: Tallies) -> None:
        """Add the counts of another shard; the order of shards does not matter."""
        for name, tally in other.of.items():
            self.of[name].add(tally)
        self.failed += other.failed
        self.candidates += other.candidates
        if other.failure is not None and (self.failure is None or other.failure < self.failure):
            self.failure = other.failure


def count_candidates(scope: Scope, n: int) -> int:
    """Return the number of candidates with n writers.

    Examples
    --------
    >>> from isolitmus.specs import scope
    >>> count_candidates(scope("table"), 3)
    10368
    """
    return len(scope.inits) * factorial(n) * int(len(scope.statements) ** n)


def shard_number(statements: int, init: int, choices: Choices) -> int:
    """Return the index of a prefix among all of its length; for whole candidates, the rank.

    Inverse of ``Shards`` indexing, for a scope with ``statements`` statements.

    Examples
    --------
    >>> shard_number(7, 1, ((0, 0), (0, 1)))
    99
    """
    number = init
    for position, (k, version) in enumerate(choices, 1):
        number = (number * statements + k) * position + version
    return number


def count_continuations(statements: int, position: int, n: int) -> int:
    """Return the number of candidates of n writers with given first ``position`` choices.

    Examples
    --------
    >>> count_continuations(14, 1, 3), count_continuations(14, 3, 3)
    (1176, 1)
    """
    return prod(statements * later for later in range(position + 1, n + 1))


def make_shards(scope: Scope, n: int, largest: int = LARGEST) -> Shards:
    """Return the shards of a scope's candidates with n writers, none larger than ``largest``.

    Examples
    --------
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
    """Partition of candidates by initial table and first choices, all parts of equal size.

    The order of candidates is fixed.
    """

    inits: int
    """Number of initial tables."""
    statements: int
    """Number of statements."""
    depth: int
    """Number of choices that a shard fixes."""
    candidates: int
    """Number of all candidates."""
    largest: int
    """Intended maximal number of candidates of a shard."""

    @property
    def each(self) -> int:
        """Number of candidates of one shard."""
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
