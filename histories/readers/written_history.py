"""Writers of abstract histories in the formats of other checkers: Elle's EDN and AWDIT's text.

A written history says what the abstract one says, and nothing else, so that its levels are the
same. What a format cannot say is refused. A version is written as a number: that of its writer, or
a further one for a version that its writer overwrote. Elle's histories are registers; if an order
of versions was observed, they are lists, whose reads show the order.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from isolitmus.histories.readers.edn import write_edn
from isolitmus.model.errors import HistoryError
from isolitmus.model.operations import INITIAL, ItemRead, PredicateRead, Version
from isolitmus.model.relation import Relation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.model.history import History
    from isolitmus.model.operations import Operation, Transaction

ENDS = {"committed": ":ok", "aborted": ":fail", "unknown": ":info"}


def write_elle(history: History) -> str:
    """Return a history in Elle's format; HistoryError if the format cannot express it.

    Without a schedule the file has only completions, because an invocation says when it was.

    Examples
    --------
    >>> from isolitmus.model import History
    >>> print(write_elle(History.parse("w1(x1) r2(x1)")), end="")
    {:type :ok, :f :txn, :process 0, :value [[:w :x 1]], :index 0}
    {:type :ok, :f :txn, :process 1, :value [[:r :x 1]], :index 1}
    """
    _refuse_common(history, "Elle's")
    sessions = _sessions(history)
    for session in sessions:
        for before in session[:-1]:
            if before.status == "unknown":
                raise HistoryError(
                    f"the session of {before.name} goes on after it, and its end is unknown: a"
                    " process of Elle's format does nothing more then"
                )
    process = {t.number: s for s, session in enumerate(sessions) for t in session}
    values = _numbers(history)
    lists = _lists(history, values) if history.order else None
    lines: list[str] = []
    for transaction, is_end in _moments(history, sessions):
        form = {
            ":type": ENDS[transaction.status] if is_end else ":invoke",
            ":f": ":txn",
            ":process": process[transaction.number],
            ":value": tuple(
                _elle_step(operation, values, lists, is_read_known=is_end)
                for operation in transaction.operations
            ),
            ":index": len(lines),
        }
        lines.append(write_edn(form))
    return "".join(f"{line}\n" for line in lines)


def write_awdit(history: History) -> str:
    """Return a history in AWDIT's text; HistoryError if the format cannot express it.

    Keys are numbered in the order in which they occur. The first session writes 0 to each: it is
    the initial transaction.

    Examples
    --------
    >>> from isolitmus.model import History
    >>> print(write_awdit(History.parse("w1(x1) r2(x0)")), end="")
    w 0 0
    =====
    w 0 1
    =====
    r 0 0
    """
    _refuse_common(history, "AWDIT's")
    for what, there in (("an order of versions", history.order), ("real time", history.schedule)):
        if there:
            raise HistoryError(f"AWDIT's format has no place for {what}, which this history has")
    for transaction in history.transactions:
        if transaction.status != "committed":
            raise HistoryError(
                f"{transaction.name} is {transaction.status}; in AWDIT's format every transaction"
                " is committed"
            )
    values = _numbers(history)
    steps = [op for t in history.transactions for op in t.operations]
    keys = {key: n for n, key in enumerate(dict.fromkeys(_version(op).object for op in steps))}
    sessions = ["\n".join(f"w {n} 0" for n in keys.values())]
    for session in _sessions(history):
        lines = (
            "\n".join(
                f"{_word(op)} {keys[_version(op).object]} {values.get(_version(op), 0)}"
                for op in transaction.operations
            )
            for transaction in session
        )
        sessions.append("\n-----\n".join(lines))
    return "\n=====\n".join(sessions) + "\n"


def _refuse_common(history: History, whose: str) -> None:
    """Raise HistoryError for what neither format can express."""
    for transaction in history.transactions:
        for operation in transaction.operations:
            if isinstance(operation, PredicateRead):
                raise HistoryError(
                    f"{transaction.name} reads by a predicate, {operation}; {whose} format has"
                    " reads of single keys"
                )
    if history.sets:
        raise HistoryError(f"{whose} format has no place for named sets of transactions")


def _version(operation: Operation) -> Version:
    assert not isinstance(operation, PredicateRead), "refused before"
    return operation.version


def _word(operation: Operation) -> str:
    return "r" if isinstance(operation, ItemRead) else "w"


def _sessions(history: History) -> list[list[Transaction]]:
    """Return the transactions of each session; one that no session names is a session alone."""
    by_number = {transaction.number: transaction for transaction in history.transactions}
    named = {number for session in history.sessions for number in session}
    whole = [[by_number[number] for number in session] for session in history.sessions]
    return whole + [[one] for number, one in by_number.items() if number not in named]


def _numbers(history: History) -> Mapping[Version, int]:
    """Return the number of each version that the file names; an initial version has none."""
    versions = dict.fromkeys(
        _version(operation) for t in history.transactions for operation in t.operations
    )
    written = [version for version in versions if version.writer != INITIAL]
    following = max((version.writer for version in written), default=0) + 1
    numbers: dict[Version, int] = {}
    for version in written:
        numbers[version] = version.writer
        if version.part:
            numbers[version] = following
            following += 1
    return numbers


def _lists(history: History, values: Mapping[Version, int]) -> Mapping[Version, tuple[int, ...]]:
    """Return what a read of each version observes in a history of lists.

    The reads have to show the whole observed order, and no order that was not observed.
    """
    for transaction in history.transactions:
        why: str = transaction.status if transaction.status != "committed" else ""
        if any(version.part for version in transaction.written):
            why = "overwriting a version of its own"
        if why:
            raise HistoryError(
                f"the history has an order of versions, so it is written as lists, and"
                f" {transaction.name} is {why}, which lists do not show"
            )
    seen = {
        _version(operation)
        for t in history.transactions
        for operation in t.operations
        if isinstance(operation, ItemRead)
    }
    found: dict[Version, tuple[int, ...]] = {}
    for key in dict.fromkeys(version.object for version in values):
        versions = [version for version in values if version.object == key]
        place = {version: n for n, version in enumerate(versions)}
        pairs = [(place[a], place[b]) for a, b in history.order if a in place and b in place]
        before = Relation.of(len(versions), pairs).plus()
        ordered = sorted(
            versions, key=lambda v: sum((n, place[v]) in before for n in place.values())
        )
        for first, second in pairwise(ordered):
            if (place[first], place[second]) not in before:
                raise HistoryError(
                    f"the order of {first} and {second} was not observed, and that of other"
                    " versions was; a history of lists has an order for all versions of a key"
                )
        if sum(version not in seen for version in ordered[-2:]) == 2 and len(ordered) > 1:
            raise HistoryError(
                f"no transaction reads {ordered[-2]} or {ordered[-1]}, so lists would not show the"
                " order of the two"
            )
        for n, version in enumerate(ordered, 1):
            found[version] = tuple(values[one] for one in ordered[:n])
    return found


def _elle_step(
    operation: Operation,
    values: Mapping[Version, int],
    lists: Mapping[Version, tuple[int, ...]] | None,
    *,
    is_read_known: bool,
) -> tuple[object, ...]:
    """Return a read or write in EDN; a read in an invocation has no value yet."""
    version = _version(operation)
    key = f":{version.object}"
    if not isinstance(operation, ItemRead):
        return (":w" if lists is None else ":append", key, values[version])
    if not is_read_known:
        return (":r", key, None)
    return (":r", key, values.get(version) if lists is None else lists.get(version, ()))


def _moments(
    history: History, sessions: list[list[Transaction]]
) -> Iterator[tuple[Transaction, bool]]:
    """Yield the transactions in the order of the file, and whether it is their end."""
    if not history.schedule:
        for session in sessions:
            yield from ((transaction, True) for transaction in session)
        return
    by_number = {transaction.number: transaction for transaction in history.transactions}
    scheduled = {*history.schedule}
    for number, transaction in by_number.items():
        ends = () if transaction.status == "unknown" else ("end",)
        for moment in ("start", *ends):
            if (number, moment) not in scheduled:
                raise HistoryError(
                    f"the schedule has no {moment} of {transaction.name}; Elle's format says it of"
                    " every transaction"
                )
    for number, moment in history.schedule:
        if moment in ("start", "end"):
            yield by_number[number], moment == "end"
