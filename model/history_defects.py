"""Well-formedness of a history: contradictions in its text that leave nothing to judge.

Each kind of contradiction raises HistoryError, which names the operations involved. Wrong behaviour
that a database may have shown is not one: a read of a version that was never written is there to be
forbidden (``checker.judge.completion``).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from isolitmus.model.display import count_of
from isolitmus.model.errors import HistoryError, near
from isolitmus.model.notation import moment_words
from isolitmus.model.operations import INITIAL, PredicateRead, Version, Write
from isolitmus.model.vocabulary import BASE, SET_NAME

if TYPE_CHECKING:
    from collections.abc import Collection

    from isolitmus.model.operations import Moment, ObservedHistory, Transaction


def refuse_defects(history: ObservedHistory) -> None:
    """Raise HistoryError for the first contradiction in a history, if there is one."""
    _transactions(history)
    _matches(history)
    _sessions(history)
    _order(history)
    _schedule(history)
    _sets(history)


def _transactions(history: ObservedHistory) -> None:
    """Raise HistoryError unless transactions ascend and their operations are consistent."""
    numbers = [t.number for t in history.transactions]
    for first, second in pairwise(numbers):
        if first >= second:
            raise HistoryError(
                f"T{second} comes after T{first}; transactions are in order, each once"
            )
    if numbers and numbers[0] <= INITIAL:
        raise HistoryError(f"T{numbers[0]} is what was there before the history; number from T1")
    written = history.versions()
    for transaction in history.transactions:
        own: dict[str, Write] = {}
        for operation in transaction.operations:
            if isinstance(operation, Write):
                _write(operation, transaction, own)
                own[operation.version.object] = operation
            elif isinstance(operation, PredicateRead):
                _predicate_read(operation, transaction, written)
        for write in own.values():
            if write.version.part:
                raise HistoryError(
                    f"{transaction.name} has {write} and no w({write.version.last}) after it; its"
                    " last version has no number of its own"
                )


def _write(write: Write, transaction: Transaction, own: dict[str, Write]) -> None:
    """Raise HistoryError unless a write has its transaction's number and the next part number."""
    version, name = write.version, transaction.name
    if version.writer != transaction.number:
        right = Version(version.object, transaction.number)
        raise HistoryError(
            f"{write} of {name}: the version {version} is T{version.writer}'s; {name} writes"
            f" {right}"
        )
    before = own.get(version.object)
    if before is not None and not before.version.part:
        raise HistoryError(
            f"{name} has {before} and then {write}; the last version that it wrote is"
            f" {before.version}, those before it are {before.version}:1, {before.version}:2, …"
        )
    place = 1 if before is None else before.version.part + 1
    if version.part and version.part != place:
        raise HistoryError(f"{name} has {write}, which is its version {place} of {version.object}")


def _predicate_read(
    read: PredicateRead, transaction: Transaction, written: Collection[Version]
) -> None:
    """Raise HistoryError if a predicate read names unwritten versions or saw intermediate ones."""
    for version in (match.version for match in read.others):
        if version.writer != INITIAL and version not in written:
            raise HistoryError(
                f"{read} of {transaction.name} says whether {version} matches, but"
                f" T{version.writer} has no w({version})"
            )
    for version in (match.version for match in read.seen):
        if version.part:
            raise HistoryError(
                f"{read} of {transaction.name} names {version}; a version set has the last versions"
                f" of transactions, {version.last}"
            )


def _matches(history: ObservedHistory) -> None:
    """Raise HistoryError if a predicate read saw two versions of an object, or matches differ."""
    stated: dict[tuple[str, Version], tuple[bool, str]] = {}
    for transaction, read in history.predicate_reads():
        seen: dict[str, Version] = {}
        for match in read.seen:
            other = seen.setdefault(match.version.object, match.version)
            if other != match.version:
                raise HistoryError(
                    f"{read} of {transaction.name} saw both {other} and {match.version};"
                    " a version set has one version of each object"
                )
        here = f"{read} of {transaction.name}"
        for match in (*read.seen, *read.others):
            before = stated.setdefault((read.predicate, match.version), (match.matches, here))
            if before[0] != match.matches:
                raise HistoryError(
                    f"{before[1]} and {here} differ on whether {match.version} matches"
                    f" {read.predicate}"
                )


def _sessions(history: ObservedHistory) -> None:
    """Raise HistoryError if sessions name an unknown transaction or one transaction twice."""
    known = {t.number for t in history.transactions}
    places: dict[int, int] = {}
    for k, session in enumerate(history.sessions, 1):
        for number in session:
            if number not in known:
                names = near(f"T{number}", [f"T{n}" for n in known])
                raise HistoryError(f"session {k} has T{number}, which does nothing here{names}")
            if number in places:
                where = f"sessions {places[number]} and {k}"
                raise HistoryError(
                    f"T{number} is in {where}; a transaction is in one session, once"
                )
            places[number] = k


def _schedule(history: ObservedHistory) -> None:
    """Raise HistoryError if the schedule has unknown, repeated or misordered steps."""
    known = {t.number: len(t.operations) for t in history.transactions}
    places: dict[Moment, int] = {}
    for k, (number, moment) in enumerate(history.schedule, 1):
        what = moment_words(number, moment)
        if number not in known:
            names = near(f"T{number}", [f"T{n}" for n in known])
            raise HistoryError(f"schedule: {what} is of T{number}, which does nothing here{names}")
        if isinstance(moment, int) and moment > known[number]:
            raise HistoryError(
                f"schedule: {what} is none; T{number} has {count_of(known[number], 'operation')}"
            )
        if (number, moment) in places:
            raise HistoryError(
                f"schedule: {what} stands twice; a transaction starts, does each thing, and ends"
                " once"
            )
        for (other, late), place in places.items():
            if other == number and _before(moment, late):
                raise HistoryError(
                    f"schedule: {moment_words(number, late)}, which is number {place}, comes before"
                    f" {what}, number {k}; a transaction starts, does one thing after another, and"
                    " ends"
                )
        places[number, moment] = k


def _sets(history: ObservedHistory) -> None:
    """Raise HistoryError if a set has an invalid or repeated name or member."""
    known = [t.number for t in history.transactions]
    names = [name for name, _ in history.sets]
    for name, members in history.sets:
        if not SET_NAME.fullmatch(name):
            raise HistoryError(
                f"sets: '{name}' is not a name of a set; it begins with a capital, as Trusted"
            )
        if name in BASE:
            raise HistoryError(f"sets: '{name}' is a base set of every spec; give it another name")
        if names.count(name) > 1:
            raise HistoryError(f"sets: '{name}' is named twice")
        for number in members:
            if number not in known:
                near_names = near(f"T{number}", [f"T{n}" for n in known])
                raise HistoryError(
                    f"sets.{name} has T{number}, which does nothing here{near_names}"
                )
            if members.count(number) > 1:
                raise HistoryError(f"sets.{name} has T{number} twice")


def _before(moment: str | int, other: str | int) -> bool:
    """Return whether one moment of a transaction precedes another one of the same transaction."""
    if isinstance(moment, int) and isinstance(other, int):
        return moment < other
    return moment == "start" or other == "end"


def _order(history: ObservedHistory) -> None:
    """Raise HistoryError if the version order is cyclic or names a version that it cannot order."""
    transactions = {t.number: t for t in history.transactions}
    after: dict[Version, set[Version]] = {}
    for first, second in history.order:
        if first.object != second.object:
            raise HistoryError(
                f"order {first} < {second} compares versions of two objects; give each its own"
                " order"
            )
        for version in (first, second):
            writer = transactions.get(version.writer)
            if version.part:
                raise HistoryError(
                    f"order {first} < {second} names {version}, which T{version.writer} overwrote"
                    f" itself; order {version.last}"
                )
            if version.writer != INITIAL and (writer is None or version not in writer.writes):
                raise HistoryError(
                    f"order {first} < {second} names {version}, but T{version.writer} has no"
                    f" w({version})"
                )
            if writer is not None and writer.status == "aborted":
                raise HistoryError(
                    f"order {first} < {second} names {version}, but {writer.name} aborted"
                )
        if second.writer == INITIAL:
            raise HistoryError(
                f"order {first} < {second} puts {first} before what was there before the history"
            )
        if first == second or first in _reach(after, second):
            raise HistoryError(f"order {first} < {second} contradicts {second} < {first} before it")
        after.setdefault(first, set()).add(second)


def _reach(after: dict[Version, set[Version]], start: Version) -> set[Version]:
    """Return the versions that follow `start` in the transitive closure of `after`."""
    found: set[Version] = set()
    todo = [start]
    while todo:
        for version in after.get(todo.pop(), set()) - found:
            found.add(version)
            todo.append(version)
    return found
