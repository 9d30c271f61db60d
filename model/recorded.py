"""What a history holds, before it is asked anything: transactions, sessions, observed orders, what was when, named sets."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal

from isolitmus.model.operations import PredicateRead

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.model.operations import Transaction, Version

__all__ = ["Moment", "Recorded", "shortened"]

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
