"""Operations of transactions, observed histories, and match bits of predicates.

Operations are item reads, predicate reads and writes, in Adya's notation. A version is named by its
object and the number of the transaction that wrote it: ``x2`` is the last version of x that T2
wrote, ``x0`` the version before the history. Earlier versions by T2 are ``x2:1``, ``x2:2``, …. In
an object name with digits, an underscore separates the number: ``k7_2``.

An observed history consists of transactions, sessions, observed orders, real-time order and named
sets. Match bits say which versions match a predicate, as far as the reads of a history state it. An
object that some read of a predicate names is in its range, no other is. A version without a match
bit counts as a change (see ``model.history``). An initial version that no read lists does not exist
yet and matches nothing.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations, zip_longest
from typing import TYPE_CHECKING, Literal

from isolitmus.model.relation import Relation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

INITIAL = 0
"""Number of the transaction that wrote the initial versions."""

Status = Literal["committed", "aborted", "unknown"]


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """Version of an object that a transaction wrote.

    ``part`` is 0 for the last version that the transaction wrote, 1 for its first, 2 for its
    second, …

    Examples
    --------
    >>> print(Version("x", 2), Version("x", 2, 1), Version("k7", 2))
    x2 x2:1 k7_2
    """

    object: str
    writer: int
    part: int = 0

    def __str__(self) -> str:
        apart = "_" if any(map(str.isdigit, self.object)) else ""
        return f"{self.object}{apart}{self.writer}{f':{self.part}' if self.part else ''}"

    @property
    def last(self) -> Version:
        """Last version of the object by the same writer."""
        return Version(self.object, self.writer)


@dataclass(frozen=True, slots=True)
class Match:
    """Match bit of a version for a predicate; a matching version has a star."""

    version: Version
    matches: bool

    def __str__(self) -> str:
        return f"{self.version}{'*' if self.matches else ''}"


@dataclass(frozen=True, slots=True)
class ItemRead:
    """Item read ``r(x0)`` of a version."""

    version: Version

    def __str__(self) -> str:
        return f"r({self.version})"


@dataclass(frozen=True, slots=True)
class PredicateRead:
    """Predicate read ``r(P: x0*, y0 | z3*)``: x0 and y0 were visible, and x0 matched P.

    ``seen`` is the version set. ``others``, after the bar, are versions outside it with their match
    bits. An object that is named in some read of P but not in the version set of this one was seen
    in its initial version. An initial version that no read of P names does not exist yet and
    matches nothing (Adya lists visible versions only).
    """

    predicate: str
    seen: tuple[Match, ...]
    others: tuple[Match, ...] = ()

    def __str__(self) -> str:
        seen = ", ".join(map(str, self.seen))
        others = f" | {', '.join(map(str, self.others))}" if self.others else ""
        return f"r({self.predicate}: {seen}{others})"


@dataclass(frozen=True, slots=True)
class Write:
    """Write ``w(x2)`` of a version."""

    version: Version

    def __str__(self) -> str:
        return f"w({self.version})"


Operation = ItemRead | PredicateRead | Write


@dataclass(frozen=True, slots=True)
class Transaction:
    """Transaction: number, operations in order, and status as far as it is known."""

    number: int
    operations: tuple[Operation, ...]
    status: Status = "committed"

    @property
    def name(self) -> str:
        return f"T{self.number}"

    @property
    def writes(self) -> tuple[Version, ...]:
        """Last version of each object that the transaction wrote, in order."""
        return tuple(version for version in self.written if not version.part)

    @property
    def written(self) -> tuple[Version, ...]:
        """All versions that the transaction wrote, in order, including intermediate ones."""
        return tuple(op.version for op in self.operations if isinstance(op, Write))

    def __str__(self) -> str:
        return " ".join(map(str, self.operations))


def read_versions(operation: Operation) -> tuple[Version, ...]:
    """Return the versions that an operation read.

    Examples
    --------
    >>> from isolitmus.model.notation import read_operations
    >>> found = read_operations("r(x0) r(P: x0, y0 | z0) w(y1)", "T1")
    >>> [list(map(str, read_versions(operation))) for operation in found]
    [['x0'], ['x0', 'y0'], []]
    """
    match operation:
        case ItemRead(version):
            return (version,)
        case PredicateRead(_, seen):
            return tuple(match.version for match in seen)
        case Write():
            return ()


Moment = tuple[int, Literal["start", "end"] | int]
"""Number of a transaction, with its start, its end, or the number (from 1) of its operation."""


@dataclass(frozen=True, slots=True)
class ObservedHistory:
    """Observations of transactions.

    ``model.history.History`` is one without contradictions, from which frames are built.
    """

    transactions: tuple[Transaction, ...]
    """Transactions in the order of their numbers."""
    sessions: tuple[tuple[int, ...], ...] = ()
    """Numbers of the transactions of each session, in order; a transaction that no session names is
    a session of its own.
    """
    order: tuple[tuple[Version, Version], ...] = ()
    """Pairs of versions of one object, the first of which was observed to come first."""
    schedule: tuple[Moment, ...] = ()
    """Starts, operations and ends in real time, as far as known. A transaction that ends right
    after its start executed all its operations in between.
    """
    sets: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Named sets of transactions (by number), such as those that requested a level."""

    @property
    def operations(self) -> int:
        """Number of reads and writes of all transactions."""
        return sum(len(transaction.operations) for transaction in self.transactions)

    def moments(self) -> tuple[tuple[int, int | None], ...] | None:
        """Return every operation and every end in real-time order, or None if the schedule is
        incomplete.

        Returns
        -------
        tuple of (int, int or None)
            Number of the transaction, and number of its operation from 1 or None for its end. A
            transaction with unknown end ends last.

        Examples
        --------
        >>> from isolitmus.model.history import History
        >>> History.parse("b1 w1(x1) b2 r2(x1) c2 c1").moments()
        ((1, 1), (2, 1), (2, None), (1, None))
        """
        found: list[tuple[int, int | None]] = []
        count = {t.number: len(t.operations) for t in self.transactions}
        for (number, moment), after in zip_longest(self.schedule, self.schedule[1:]):
            if moment == "start" and after == (number, "end"):
                found += [(number, place) for place in range(1, count[number] + 1)]
            elif moment != "start":
                found.append((number, None if moment == "end" else moment))
        found += [
            (t.number, None)
            for t in self.transactions
            if t.status == "unknown" and (t.number, None) not in found
        ]
        wanted = {(n, place) for n in count for place in (None, *range(1, count[n] + 1))}
        return tuple(found) if wanted == {*found} else None

    def versions(self) -> frozenset[Version]:
        """Return all written versions, including intermediate ones, without initial versions."""
        return frozenset(version for t in self.transactions for version in t.written)

    def matches(self) -> dict[tuple[str, Version], bool]:
        """Return the stated match bits, by predicate and version."""
        return {
            (read.predicate, match.version): match.matches
            for _, read in self.predicate_reads()
            for match in (*read.seen, *read.others)
        }

    def predicate_reads(self) -> Iterator[tuple[Transaction, PredicateRead]]:
        """Yield every predicate read with its transaction, in order."""
        for transaction in self.transactions:
            for operation in transaction.operations:
                if isinstance(operation, PredicateRead):
                    yield transaction, operation


def shorten_schedule(moments: Sequence[Moment]) -> tuple[Moment, ...]:
    """Return a schedule without the operations of transactions that ran without interruption.

    Their start and end already imply these operations.

    Examples
    --------
    >>> shorten_schedule([(1, "start"), (2, "start"), (2, 1), (2, "end"), (1, 1), (1, "end")])
    ((1, 'start'), (2, 'start'), (2, 'end'), (1, 1), (1, 'end'))
    """
    found: list[Moment] = []
    for number, moment in moments:
        found.append((number, moment))
        if moment == "end":
            first = next(k for k, (by, _) in enumerate(found) if by == number)
            if found[first][1] == "start" and all(by == number for by, _ in found[first:]):
                found[first + 1 : -1] = []
    return tuple(found)


def unordered(history: ObservedHistory) -> tuple[tuple[Version, Version], ...]:
    """Return the pairs of versions, of transactions that did not abort, whose order was not
    observed.
    """
    observed = observed_orders(history)
    possible = frozenset(t.number for t in history.transactions if t.status != "aborted")
    return tuple(
        (Version(name, i), Version(name, j))
        for name, writers in sorted(writers_of_objects(history, possible).items())
        for i, j in combinations(writers, 2)
        if not {(i, j), (j, i)} & observed[name]
    )


def writers_of_objects(history: ObservedHistory, committed: frozenset[int]) -> dict[str, list[int]]:
    """Return the numbers of the committed writers of each object."""
    writers: dict[str, list[int]] = defaultdict(list)
    for transaction in history.transactions:
        if transaction.number in committed:
            for version in transaction.writes:
                writers[version.object].append(transaction.number)
    return writers


def observed_orders(history: ObservedHistory) -> dict[str, set[tuple[int, int]]]:
    """Return the observed pairs of writers of each object, closed under transitivity."""
    pairs: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for first, second in history.order:
        pairs[first.object].add((first.writer, second.writer))
    closed: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for name, found in pairs.items():
        writers = sorted({writer for pair in found for writer in pair})
        place = {writer: k for k, writer in enumerate(writers)}
        relation = Relation.of(len(writers), [(place[i], place[j]) for i, j in found]).plus()
        closed[name] = {(writers[i], writers[j]) for i, j in relation.pairs()}
    return closed


@dataclass(frozen=True, slots=True)
class MatchBits:
    """Stated match bits, and the range of each predicate: its objects in the order of first
    mention.

    Examples
    --------
    >>> from isolitmus.model.history import History
    >>> from isolitmus.model.operations import Version
    >>> matches = MatchBits.of(History.parse("r1(P: x0*, y0 | x2) w2(x2) w3(x3)").matches())
    >>> matches.ranges, [matches.changes("P", Version("x", 0), Version("x", n)) for n in (2, 3)]
    ({'P': ('x', 'y')}, [True, True])
    """

    bits: Mapping[tuple[str, Version], bool]
    ranges: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, bits: Mapping[tuple[str, Version], bool]) -> MatchBits:
        """Return the match bits that the reads of a history state (``History.matches``)."""
        ranges: dict[str, dict[str, None]] = {}
        for predicate, version in bits:
            ranges.setdefault(predicate, {})[version.object] = None
        return cls(bits, {predicate: tuple(objects) for predicate, objects in ranges.items()})

    def seen(self, read: PredicateRead) -> dict[str, int]:
        """Return the version set of a read: for every object in the range, the writer of the
        version seen.
        """
        stated = {match.version.object: match.version.writer for match in read.seen}
        return {name: stated.get(name, INITIAL) for name in self.ranges.get(read.predicate, ())}

    def changes(self, predicate: str, before: Version, after: Version) -> bool:
        """Return whether exactly one of two versions matches, or a match bit is missing."""
        old, new = self._bit(predicate, before), self._bit(predicate, after)
        return old is None or new is None or old != new

    def _bit(self, predicate: str, version: Version) -> bool | None:
        stated = self.bits.get((predicate, version))
        return False if stated is None and version.writer == INITIAL else stated
