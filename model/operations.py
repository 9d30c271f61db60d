"""Operations of transactions, what was observed of a history, and match bits.

What the transactions of a history did: reads of items, reads by predicate, writes.

A version is called by its object and the number of the transaction that wrote it: ``x2`` is what T2
left of x, ``x0`` what was there before the history. The notation is Adya's; what T2 made of x
before is ``x2:1``, ``x2:2``, …, and a name with digits is told from the number: ``k7_2``.

What a history holds, before it is asked anything: transactions, sessions, observed orders, what was
when, named sets.

Match bits: which versions match a predicate, as far as the reads of a history state it.

An object that some read of a predicate names is in its range, no other is. A version of which no
read states whether it matches counts as a change (see ``model.history``); an initial one that no
read lists was not born yet and matches nothing.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations, zip_longest
from typing import TYPE_CHECKING, Literal

from isolitmus.model.relation import Relation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = [
    "INITIAL",
    "ItemRead",
    "Match",
    "MatchBits",
    "Moment",
    "ObservedHistory",
    "Operation",
    "PredicateRead",
    "Status",
    "Transaction",
    "Version",
    "Write",
    "observed_orders",
    "read_versions",
    "shorten_schedule",
    "unordered",
    "writers_of_objects",
]

INITIAL = 0
"""The number of the transaction that wrote what was there before the history."""

Status = Literal["committed", "aborted", "unknown"]


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """What a transaction left of an object, or had made of it before: ``part`` 1 is its first
    version, 2 the next, and 0 the last.

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
        """What its writer left."""
        return Version(self.object, self.writer)


@dataclass(frozen=True, slots=True)
class Match:
    """Whether a version matches a predicate; one that does has a star."""

    version: Version
    matches: bool

    def __str__(self) -> str:
        return f"{self.version}{'*' if self.matches else ''}"


@dataclass(frozen=True, slots=True)
class ItemRead:
    """``r(x0)``: this version was read."""

    version: Version

    def __str__(self) -> str:
        return f"r({self.version})"


@dataclass(frozen=True, slots=True)
class PredicateRead:
    """``r(P: x0*, y0 | z3*)``: x0 and y0 were there, of which x0 matched P.

    ``seen`` is the version set. ``others``, after the bar, are versions that were not there and of
    which it is stated whether they match. An object that is named in some read of P but not in the
    version set of this one was seen in its initial version. An initial version that no read of P
    names was not born yet and matches nothing (Adya lists visible versions only).
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
    """``w(x2)``: this version was written."""

    version: Version

    def __str__(self) -> str:
        return f"w({self.version})"


Operation = ItemRead | PredicateRead | Write


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction: its number, what it did in order, and how it ended as far as anyone knows."""

    number: int
    operations: tuple[Operation, ...]
    status: Status = "committed"

    @property
    def name(self) -> str:
        return f"T{self.number}"

    @property
    def writes(self) -> tuple[Version, ...]:
        """The versions that it left, in order."""
        return tuple(version for version in self.written if not version.part)

    @property
    def written(self) -> tuple[Version, ...]:
        """The versions that it wrote, in order, those before the last ones, too."""
        return tuple(op.version for op in self.operations if isinstance(op, Write))

    def __str__(self) -> str:
        return " ".join(map(str, self.operations))


def read_versions(operation: Operation) -> tuple[Version, ...]:
    """The versions that an operation read.

    >>> from isolitmus.model.notation import read_operations
    >>> [list(map(str, read_versions(one))) for one in read_operations("r(x0) r(P: x0, y0 | z0) w(y1)", "T1")]
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
"""The number of a transaction, and whether it started or ended then, or which of its operations,
from 1, was done.
"""


@dataclass(frozen=True, slots=True)
class ObservedHistory:
    """What was seen of transactions. A ``model.history.History`` is one without defects, that gives
    frames.
    """

    transactions: tuple[Transaction, ...]
    """In the order of their numbers."""
    sessions: tuple[tuple[int, ...], ...] = ()
    """Numbers of transactions, one after another; one that no session names is a session of its
    own.
    """
    order: tuple[tuple[Version, Version], ...] = ()
    """Versions of one object, of which the first was observed to come first."""
    schedule: tuple[Moment, ...] = ()
    """What began, was done and ended, one after another in real time, as far as anybody knows. A
    transaction that ends right after it started did all that it did in between.
    """
    sets: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Sets of transactions that the history names, such as who asked for which level, by number."""

    @property
    def operations(self) -> int:
        """The number of reads and writes of all transactions."""
        return sum(len(transaction.operations) for transaction in self.transactions)

    def moments(self) -> tuple[tuple[int, int | None], ...] | None:
        """Every operation, by the number of its transaction and its place from 1, and every end
        (None), as they came; None if the schedule does not say that of all. Whose end is unknown
        ended last.

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
        """All that somebody wrote, those before the last ones, too; not what was there before."""
        return frozenset(version for t in self.transactions for version in t.written)

    def matches(self) -> dict[tuple[str, Version], bool]:
        """The stated match bits of all predicates."""
        return {
            (read.predicate, match.version): match.matches
            for _, read in self.predicate_reads()
            for match in (*read.seen, *read.others)
        }

    def predicate_reads(self) -> Iterator[tuple[Transaction, PredicateRead]]:
        """Every read by predicate with its transaction, in order."""
        for transaction in self.transactions:
            for operation in transaction.operations:
                if isinstance(operation, PredicateRead):
                    yield transaction, operation


def shorten_schedule(moments: Sequence[Moment]) -> tuple[Moment, ...]:
    """A schedule without the operations of who did all at once, of whom its start and its end say
    it.

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
    """The pairs of versions, of transactions that did not abort, whose order nobody observed."""
    observed = observed_orders(history)
    possible = frozenset(t.number for t in history.transactions if t.status != "aborted")
    return tuple(
        (Version(name, i), Version(name, j))
        for name, writers in sorted(writers_of_objects(history, possible).items())
        for i, j in combinations(writers, 2)
        if not {(i, j), (j, i)} & observed[name]
    )


def writers_of_objects(history: ObservedHistory, committed: frozenset[int]) -> dict[str, list[int]]:
    writers: dict[str, list[int]] = defaultdict(list)
    for transaction in history.transactions:
        if transaction.number in committed:
            for version in transaction.writes:
                writers[version.object].append(transaction.number)
    return writers


def observed_orders(history: ObservedHistory) -> dict[str, set[tuple[int, int]]]:
    """The observed pairs of writers of each object, closed under transitivity."""
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
    """The stated bits, and the objects in the range of each predicate in the order of their naming.

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
        """The bits that the reads of a history state (``History.matches``)."""
        ranges: dict[str, dict[str, None]] = {}
        for predicate, version in bits:
            ranges.setdefault(predicate, {})[version.object] = None
        return cls(bits, {predicate: tuple(objects) for predicate, objects in ranges.items()})

    def seen(self, read: PredicateRead) -> dict[str, int]:
        """The version set of a read: of every object in the range, who wrote the version seen."""
        stated = {match.version.object: match.version.writer for match in read.seen}
        return {name: stated.get(name, INITIAL) for name in self.ranges.get(read.predicate, ())}

    def changes(self, predicate: str, before: Version, after: Version) -> bool:
        """Whether one of two versions matches and the other does not, or nobody states it."""
        old, new = self._bit(predicate, before), self._bit(predicate, after)
        return old is None or new is None or old != new

    def _bit(self, predicate: str, version: Version) -> bool | None:
        stated = self.bits.get((predicate, version))
        return False if stated is None and version.writer == INITIAL else stated
