"""What a history holds, before it is asked anything: transactions, sessions, observed orders, what was when, named sets."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations, zip_longest
from typing import TYPE_CHECKING, Literal

from isolitmus.model.operations import PredicateRead, Version
from isolitmus.model.relation import Relation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.model.operations import Transaction

__all__ = ["Moment", "Recorded", "observed_orders", "shortened", "unordered", "writers_of_objects"]

Moment = tuple[int, Literal["start", "end"] | int]
"""The number of a transaction, and whether it started or ended then, or which of its operations, from 1, was done."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was seen of transactions. A ``model.history.History`` is one without defects, that gives frames."""

    transactions: tuple[Transaction, ...]
    """In the order of their numbers."""
    sessions: tuple[tuple[int, ...], ...] = ()
    """Numbers of transactions, one after another; one that no session names is a session of its own."""
    order: tuple[tuple[Version, Version], ...] = ()
    """Versions of one object, of which the first was observed to come first."""
    schedule: tuple[Moment, ...] = ()
    """What began, was done and ended, one after another in real time, as far as anybody knows. A transaction that ends
    right after it started did all that it did in between.
    """
    sets: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Sets of transactions that the history names, such as who asked for which level, by number."""

    @property
    def operations(self) -> int:
        """The number of reads and writes of all transactions."""
        return sum(len(transaction.operations) for transaction in self.transactions)

    def moments(self) -> tuple[tuple[int, int | None], ...] | None:
        """Every operation, by the number of its transaction and its place from 1, and every end (None), as they came; None
        if the schedule does not say that of all. Whose end is unknown ended last.

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


def shortened(moments: Sequence[Moment]) -> tuple[Moment, ...]:
    """A schedule without the operations of who did all at once, of whom its start and its end say it.

    >>> shortened([(1, "start"), (2, "start"), (2, 1), (2, "end"), (1, 1), (1, "end")])
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


def unordered(history: Recorded) -> tuple[tuple[Version, Version], ...]:
    """The pairs of versions, of transactions that did not abort, whose order nobody observed."""
    observed = observed_orders(history)
    possible = frozenset(t.number for t in history.transactions if t.status != "aborted")
    return tuple(
        (Version(name, i), Version(name, j))
        for name, writers in sorted(writers_of_objects(history, possible).items())
        for i, j in combinations(writers, 2)
        if not {(i, j), (j, i)} & observed[name]
    )


def writers_of_objects(history: Recorded, committed: frozenset[int]) -> dict[str, list[int]]:
    writers: dict[str, list[int]] = defaultdict(list)
    for transaction in history.transactions:
        if transaction.number in committed:
            for version in transaction.writes:
                writers[version.object].append(transaction.number)
    return writers


def observed_orders(history: Recorded) -> dict[str, set[tuple[int, int]]]:
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
