"""Parser of Adya's notation of histories, and the meaning of deletes in it.

A transaction is written ``r(x0) w(y1)``, a history on one line ``r1(x0) w1(x1) c1``. ``d1(x1)``
says that T1 deleted x and left a dead version (Adya 1999, section 4.1). A dead version is the last
one of its object and matches no predicate. The model can state both for any version; therefore a
delete becomes a write, pairs of the version order, and match bits.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from isolitmus.model.errors import HistoryError, brief, clip, near
from isolitmus.model.operations import (
    INITIAL,
    ItemRead,
    Match,
    Operation,
    PredicateRead,
    Transaction,
    Version,
    Write,
    read_versions,
    shorten_schedule,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from isolitmus.model.operations import Moment, Status

VersionPair = tuple["Version", "Version"]


@dataclass(frozen=True, slots=True)
class DeadWrite(Write):
    """Delete ``d(x2)``: this version of the object is dead."""

    def __str__(self) -> str:
        return f"d({self.version})"


def expand_deletes(
    transactions: Sequence[Transaction], order: Sequence[VersionPair]
) -> tuple[tuple[Transaction, ...], tuple[VersionPair, ...]]:
    """Return transactions and version order with deletes expanded.

    Raises
    ------
    HistoryError
        If an object is deleted twice, or if a dead version matches a predicate or was overwritten
        by its own writer.

    Examples
    --------
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
    """Return the dead versions, including those of aborted transactions."""
    dead = []
    for transaction in transactions:
        for operation in transaction.operations:
            if isinstance(operation, DeadWrite):
                version, name = operation.version, transaction.name
                if version.writer != transaction.number:
                    right = Version(version.object, transaction.number)
                    raise HistoryError(
                        f"{operation} of {name}: the version {version} is T{version.writer}'s;"
                        f" {name} deletes {right}"
                    )
                if version.part:
                    raise HistoryError(
                        f"{name} has {operation}: what is dead is the last version,"
                        f" d({version.last})"
                    )
                dead.append(version)
    return dead


def _last(there: Sequence[Transaction]) -> dict[str, Version]:
    """Return the dead version of each object for which it is known."""
    last: dict[str, Version] = {}
    certain = [t for t in there if t.status == "committed"]
    for version in _dead(certain):
        other = last.setdefault(version.object, version)
        if other != version:
            raise HistoryError(
                f"T{version.writer} has d({version}), and T{other.writer} has d({other}): an object"
                " is deleted once; a row that comes again is another object"
            )
    perhaps = _dead(there)
    times = Counter(version.object for version in perhaps)
    return {version.object: version for version in perhaps if times[version.object] == 1}


def _plain(
    operation: Operation, dead: Sequence[Version], said: Mapping[str, Collection[Version]]
) -> Operation:
    """Return the operation without deletes.

    A predicate read gets a match bit False for each dead version of its objects.
    """
    if isinstance(operation, DeadWrite):
        return Write(operation.version)
    if not isinstance(operation, PredicateRead):
        return operation
    for match in (*operation.seen, *operation.others):
        if match.matches and match.version in dead:
            raise HistoryError(
                f"{operation}: {match.version} is dead, T{match.version.writer} deleted"
                f" {match.version.object}; what is dead matches nothing, write {match.version}"
            )
    stated = said[operation.predicate]
    objects = {version.object for version in stated}
    more = (Match(v, False) for v in dead if v.object in objects and v not in stated)
    return replace(operation, others=(*operation.others, *more))


STEP = re.compile(
    r"(?P<kind>[rwd])(?P<by>[0-9]{0,9})\((?P<inside>[^()]*)\)"
    r"|(?P<end>[bca])(?P<who>[0-9]{1,9})|\[(?P<order>[^][]*)\]"
)
VERSION = re.compile(
    r"(?:([A-Za-z_]+)|((?=[A-Za-z_]+[0-9])[A-Za-z_]\w*)_)(0|[1-9][0-9]{0,8})(?::([1-9][0-9]{0,8}))?",
    re.ASCII,
)
NAME = re.compile(r"T([1-9][0-9]{0,8})")
PREDICATE = re.compile(r"\s*([A-Z]\w*)\s*:([^|]*)(?:\|([^|]*))?")
USE = "use r(x0), w(x1), d(x1) or r(P: x0*, y0 | x1)"
USE_LINEAR = (
    "use r1(x0), w1(x1), d1(x1), r1(P: x0*, y0 | x1), b1, c1, a1 or an order such as [x0 < x1]"
)
APART = re.compile(
    r"T([1-9][0-9]{0,8})(?: \((aborted|unknown)\))?:([^:;]*(?:\([A-Z][^()]*\)[^:;]*)*)"
)
MOMENT = re.compile(r"(T[1-9][0-9]{0,8})(?:\.(start|end)|\[([1-9][0-9]{0,8})\])?")


def read_operations(text: str, where: str) -> tuple[Operation, ...]:
    """Return the operations of one transaction; `where` begins the message of a HistoryError.

    Examples
    --------
    >>> [str(operation) for operation in read_operations("r(x0) r(P: x0*,y0) w(y1)", "T1")]
    ['r(x0)', 'r(P: x0*, y0)', 'w(y1)']
    """
    operations: list[Operation] = []
    for step in _steps(text, where, USE):
        if step["kind"] is None or step["by"]:
            raise _error(text, where, step.start(), f"'{step[0]}' is not an operation; {USE}")
        operations.append(_operation(step, text, where))
    return tuple(operations)


def read_linear(
    text: str, unknown: Sequence[str] = ()
) -> tuple[tuple[Transaction, ...], tuple[tuple[Version, Version], ...], tuple[Moment, ...]]:
    """Parse a history on one line.

    A version that is written on the line must be written before another transaction reads it.

    Parameters
    ----------
    text : str
        The history.
    unknown : sequence of str
        Names of transactions whose end is unknown.

    Returns
    -------
    transactions : tuple of Transaction
        Transactions by number. One that neither commits nor aborts has status unknown, unless none
        does: then all committed except those in `unknown`.
    order : tuple of pairs of Version
        Observed version order.
    schedule : tuple of Moment
        Begins, operations and ends in order; empty if the text has no begin.
    """
    if APART.match(text.lstrip()):
        return _read_apart(text, unknown)
    operations: dict[int, list[Operation]] = {}
    ends: dict[int, Status] = {}
    moments: list[Moment] = []
    order: list[tuple[Version, Version]] = []
    written: set[Version] = set()
    unwritten: list[tuple[re.Match[str], Version]] = []
    where = "history"
    for step in _steps(text, where, USE_LINEAR):
        if step["order"] is not None:
            order += [pair for part in step["order"].split(",") for pair in read_order(part)]
            continue
        number = int(step["by"] or step["who"] or 0)
        if not number:
            problem = "T0 is what was there before the history" if step["by"] else USE_LINEAR
            raise _error(text, where, step.start(), f"'{step[0]}' has no transaction; {problem}")
        if number in ends:
            problem = f"'{step[0]}' comes after T{number} has ended"
            raise _error(text, where, step.start(), problem)
        if step["end"] == "b":
            if number in operations:
                problem = (
                    f"'{step[0]}' comes after the first of T{number}; it begins once, and first"
                )
                raise _error(text, where, step.start(), problem)
            operations[number] = []
            moments.append((number, "start"))
            continue
        if step["end"]:
            operations.setdefault(number, [])
            moments.append((number, "end"))
            ends[number] = "committed" if step["end"] == "c" else "aborted"
            continue
        operation = _operation(step, text, where)
        operations.setdefault(number, []).append(operation)
        moments.append((number, len(operations[number])))
        if isinstance(operation, Write):
            written.add(operation.version)
        unwritten += [
            (step, version)
            for version in read_versions(operation)
            if version.writer not in {INITIAL, number} and version not in written
        ]
    for step, version in unwritten:
        if version in written:
            problem = f"'{step[0]}' reads {version} before w{version.writer}({version})"
            raise _error(text, where, step.start(), problem)
    for name in unknown:
        number = read_transaction_name(name, "unknown")
        if number not in operations:
            known = near(name, [f"T{n}" for n in operations])
            raise HistoryError(f"unknown: there is no transaction {name}{known}")
        if ends.setdefault(number, "unknown") != "unknown":
            raise HistoryError(f"unknown: {name} {ends[number]} on the line")
    default: Status = "unknown" if {*ends.values()} - {"unknown"} else "committed"
    transactions = tuple(
        Transaction(number, tuple(done), ends.get(number, default))
        for number, done in sorted(operations.items())
    )
    begins = any(moment == "start" for _, moment in moments)
    return transactions, tuple(order), shorten_schedule(moments) if begins else ()


def _read_apart(
    text: str, unknown: Sequence[str]
) -> tuple[tuple[Transaction, ...], tuple[tuple[Version, Version], ...], tuple[Moment, ...]]:
    """Parse transactions that are listed one by one: ``T1: r(x2) w(y1); T2 (aborted): r(y1) [x0 <
    x2]``.
    """
    body, *rest = text.split("[")
    order = [
        pair for each in rest for part in each.split(",") for pair in read_order(part.strip(" ]"))
    ]
    found: dict[int, Transaction] = {}
    for part in body.split(";"):
        match = APART.fullmatch(part.strip())
        if match is None:
            raise HistoryError(
                f"history: '{brief(part.strip())}' is not a transaction; write T1: r(x2) w(y1); T2:"
                " r(y1) w(x2)"
            )
        number = int(match[1])
        if number in found:
            raise HistoryError(f"history: T{number} stands there twice; one number for each")
        status: Status = "committed"
        if match[2] == "unknown" or f"T{number}" in unknown:
            status = "unknown"
        elif match[2] == "aborted":
            status = "aborted"
        found[number] = Transaction(number, read_operations(match[3], f"T{number}"), status)
    return tuple(one for _, one in sorted(found.items())), tuple(order), ()


def read_order(text: str) -> list[tuple[Version, Version]]:
    """Return the adjacent pairs in a chain of versions.

    Examples
    --------
    >>> [(str(a), str(b)) for a, b in read_order("x0 < x2 < x1")]
    [('x0', 'x2'), ('x2', 'x1')]
    """
    words = [word.strip() for word in re.split("<<|<|≪", text)]
    found = [VERSION.fullmatch(word) for word in words]
    versions = [_of(match) for match in found if match]
    if len(versions) < len(words) or len(versions) < 2:
        raise HistoryError(f"order '{text.strip()}' is not a chain of versions; write x0 < x2 < x1")
    pairs = list(pairwise(versions))
    for first, second in pairs:
        if first.object != second.object:
            raise HistoryError(
                f"order '{text.strip()}' compares {first} with {second}: they are versions of two"
                " objects"
            )
    return pairs


def read_schedule(text: str) -> tuple[Moment, ...]:
    """Return the moments of a schedule in order; a name alone stands for the whole transaction.

    Examples
    --------
    >>> read_schedule("T1.start T2 T1[1] T1.end")
    ((1, 'start'), (2, 'start'), (2, 'end'), (1, 1), (1, 'end'))
    """
    found: list[Moment] = []
    for word in text.split():
        match = MOMENT.fullmatch(word)
        if match is None:
            raise HistoryError(
                f"schedule: '{word}' is not a moment; write T1.start, T1[1] for its first"
                " operation, T1.end, or T1 for all"
            )
        number = read_transaction_name(match[1], "schedule")
        if match[3]:
            found.append((number, int(match[3])))
            continue
        if match[2] != "end":
            found.append((number, "start"))
        if match[2] != "start":
            found.append((number, "end"))
    return tuple(found)


def moment_words(number: int, moment: str | int) -> str:
    """Return a moment of a schedule in its notation; ``both`` stands for the whole transaction.

    Examples
    --------
    >>> moment_words(1, "start"), moment_words(2, 3), moment_words(3, "both")
    ('T1.start', 'T2[3]', 'T3')
    """
    if moment == "both":
        return f"T{number}"
    return f"T{number}[{moment}]" if isinstance(moment, int) else f"T{number}.{moment}"


def read_transaction_name(name: str, where: str) -> int:
    """Return the number of a transaction from its name.

    Examples
    --------
    >>> read_transaction_name("T12", "aborted")
    12
    """
    match = NAME.fullmatch(name)
    if match is None:
        raise HistoryError(f"{where}: '{name}' names no transaction; names are T1, T2, …")
    return int(match[1])


def _steps(text: str, where: str, use: str) -> Iterator[re.Match[str]]:
    """Yield the operations of a text as matches of ``STEP``; raise HistoryError for other words."""
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        step = STEP.match(text, position)
        if step is None:
            word = text[position:].split(maxsplit=1)[0]
            raise _error(text, where, position, f"'{word}' is not an operation; {use}")
        yield step
        position = step.end()


def _operation(step: re.Match[str], text: str, where: str) -> Operation:
    """Parse a read, predicate read, write or delete; raise HistoryError if it is malformed."""
    inside, place = step["inside"], step.start("inside")
    if step["kind"] in ("w", "d"):
        wrote = Write if step["kind"] == "w" else DeadWrite
        return wrote(_version(inside, text, where, place))
    if ":" not in inside or VERSION.fullmatch(inside.strip()):
        return ItemRead(_version(inside, text, where, place))
    match = PREDICATE.fullmatch(inside)
    if match is None:
        raise _error(
            text, where, place, f"'{inside}' is not a predicate read; write P: x0*, y0 | x1"
        )
    seen = _matches(match[2], text, where, place + match.start(2))
    others = _matches(match[3] or "", text, where, place + match.start(3))
    return PredicateRead(match[1], seen, others)


def _matches(listed: str, text: str, where: str, place: int) -> tuple[Match, ...]:
    """Parse a comma-separated list of versions, of which those with ``*`` match the predicate."""
    found: list[Match] = []
    if listed.strip():
        for part in listed.split(","):
            word = part.strip()
            version = _version(word.removesuffix("*"), text, where, place)
            found.append(Match(version, word.endswith("*")))
            place += len(part) + 1
    return tuple(found)


def _version(word: str, text: str, where: str, place: int) -> Version:
    """Parse a version such as ``x0``; raise HistoryError if it is malformed."""
    match = VERSION.fullmatch(word.strip())
    if match is None:
        problem = (
            f"'{word.strip()}' is not a version; write an object and a transaction's number, x0"
        )
        raise _error(text, where, place, problem)
    return _of(match)


def _of(match: re.Match[str]) -> Version:
    return Version(match[1] or match[2], int(match[3]), int(match[4] or 0))


def _error(text: str, where: str, position: int, problem: str) -> HistoryError:
    """Return an error that shows the text with a caret below the position."""
    shown, column = clip(text, position + 1)
    return HistoryError(
        f"{where}, column {position + 1}: {brief(problem)}\n  {shown}\n  {' ' * (column - 1)}^"
    )
