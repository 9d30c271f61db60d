"""What a history holds, before it is asked anything: transactions, sessions, observed orders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from isolitmus.model.operations import PredicateRead

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.model.operations import Transaction, Version

__all__ = ["Moment", "Recorded"]

Moment = tuple[int, Literal["start", "end"]]
"""The number of a transaction, and whether it started or ended then."""


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
    """What began and ended, one after another in real time, as far as anybody knows."""

    @property
    def operations(self) -> int:
        """The number of reads and writes of all transactions."""
        return sum(len(transaction.operations) for transaction in self.transactions)

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
