"""What a history says by ``d1(x1)``: T1 deleted x, and left a version that is dead (Adya 1999, section 4.1).

A dead version is the last of its object, and matches no predicate. Both can be said of any version, and so it is kept: as a
write, with an order of versions and what does not match.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.model.errors import HistoryError
from isolitmus.model.operations import Match, PredicateRead, Version, Write

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from isolitmus.model.operations import Operation, Transaction

__all__ = ["DeadWrite", "spelled_out"]

VersionPair = tuple["Version", "Version"]


@dataclass(frozen=True, slots=True)
class DeadWrite(Write):
    """``d(x2)``: the object was deleted; this version of it is dead."""

    def __str__(self) -> str:
        return f"d({self.version})"


def spelled_out(
    transactions: Sequence[Transaction], order: Sequence[VersionPair]
) -> tuple[tuple[Transaction, ...], tuple[VersionPair, ...]]:
    """The transactions and the order of versions, with what deletes mean; HistoryError if an object is deleted twice,
    or if what is dead matches, or was overwritten by its own writer.

    >>> from isolitmus.model.history import History
    >>> History.parse("w1(x1) d2(x2) r3(P: x1*)").to_table()
    {'T1': 'w(x1)', 'T2': 'w(x2)', 'T3': 'r(P: x1* | x2)', 'order': ['x1 < x2']}
    """
    dead = _dead(transactions)
    if not dead:
        return tuple(transactions), tuple(order)
    there = [t for t in transactions if t.status != "aborted"]
    last = _last(there)
    more = [
        (version, last[version.object])
        for t in there
        for version in t.writes
        if version.object in last and version != last[version.object]
    ]
    said: dict[str, set[Version]] = {}
    for read in (op for t in transactions for op in t.operations if isinstance(op, PredicateRead)):
        said.setdefault(read.predicate, set()).update(m.version for m in (*read.seen, *read.others))
    found = tuple(
        replace(t, operations=tuple(_plain(op, dead, said) for op in t.operations))
        for t in transactions
    )
    return found, (*order, *(pair for pair in more if pair not in order))


def _dead(transactions: Iterable[Transaction]) -> list[Version]:
    """The dead versions, those of aborted transactions, too."""
    dead = []
    for transaction in transactions:
        for operation in transaction.operations:
            if isinstance(operation, DeadWrite):
                version, name = operation.version, transaction.name
                if version.writer != transaction.number:
                    right = Version(version.object, transaction.number)
                    raise HistoryError(
                        f"{operation} of {name}: the version {version} is T{version.writer}'s; {name} deletes {right}"
                    )
                if version.part:
                    raise HistoryError(
                        f"{name} has {operation}: what is dead is the last version, d({version.last})"
                    )
                dead.append(version)
    return dead


def _last(there: Sequence[Transaction]) -> dict[str, Version]:
    """The dead version of each object, where it is known which that is."""
    last: dict[str, Version] = {}
    certain = [t for t in there if t.status == "committed"]
    for version in _dead(certain):
        other = last.setdefault(version.object, version)
        if other != version:
            raise HistoryError(
                f"T{version.writer} has d({version}), and T{other.writer} has d({other}): an object is deleted once; a"
                " row that comes again is another object"
            )
    perhaps = _dead(there)
    times = Counter(version.object for version in perhaps)
    return {version.object: version for version in perhaps if times[version.object] == 1}


def _plain(
    operation: Operation, dead: Sequence[Version], said: Mapping[str, Collection[Version]]
) -> Operation:
    """The operation without deletes; a read by predicate says of each dead version of its objects that it does not match."""
    if isinstance(operation, DeadWrite):
        return Write(operation.version)
    if not isinstance(operation, PredicateRead):
        return operation
    for match in (*operation.seen, *operation.others):
        if match.matches and match.version in dead:
            raise HistoryError(
                f"{operation}: {match.version} is dead, T{match.version.writer} deleted {match.version.object}; what is"
                f" dead matches nothing, write {match.version}"
            )
    stated = said[operation.predicate]
    objects = {version.object for version in stated}
    more = (Match(v, False) for v in dead if v.object in objects and v not in stated)
    return replace(operation, others=(*operation.others, *more))
