"""History: transactions with their reads and writes, sessions, and observed orders.

The initial transaction T0 wrote version 0 of every object. It is a node of the frame only if the
reads are nodes as well (``checker.judge.read_nodes``). A version that its writer overwrote itself
has its own number, ``x1:1``. Any other transaction that reads it has read an intermediate version
(``intermediate``, Adya's G1b) and has missed the next version.

Match bits belong to the name of a predicate: a bit that one read of P states holds for all reads of
P. **A version without a bit in any read of P counts as changing the matches**, as if P had read its
object item by item. The example of the interface, ``r(P: x0*, y0)`` against ``w(y1)``, relies on
it, and ``assumptions`` lists every such version. An object that no read of P names is outside of P.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from isolitmus.model.display import ReadableRepr
from isolitmus.model.errors import HistoryError, near, visible
from isolitmus.model.history_defects import refuse_defects
from isolitmus.model.notation import (
    expand_deletes,
    moment_words,
    read_linear,
    read_operations,
    read_order,
    read_schedule,
    read_transaction_name,
)
from isolitmus.model.operations import ObservedHistory, Transaction, unordered

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from isolitmus.model.operations import Status, Version


@dataclass(frozen=True, slots=True)
class History(ObservedHistory, ReadableRepr):
    """Transactions by number, sessions, and observed pairs of the version order.

    A transaction that no session names is a session of its own. The constructor raises HistoryError
    for a contradiction and names both operations. A read that nothing explains is no such
    contradiction: every level forbids it (``checker.judge.completion``).

    Examples
    --------
    >>> skew = History.parse("r1(x0) r1(y0) w1(x1) r2(x0) r2(y0) w2(y2) c1 c2")
    >>> skew
    History.from_table({'T1': 'r(x0) r(y0) w(x1)', 'T2': 'r(x0) r(y0) w(y2)'})
    """

    def __post_init__(self) -> None:
        refuse_defects(self)

    @classmethod
    def parse(
        cls,
        text: str,
        sessions: Sequence[str] = (),
        *,
        sets: Mapping[str, Sequence[str]] | None = None,
        unknown: Sequence[str] = (),
        schedule: str = "",
    ) -> History:
        """Return the history written in Adya's linear notation: ``r1(x0) w1(x1) c1 r2(x1) a2 [x0 <
        x1]``.

        ``b`` begins, ``c`` commits, ``a`` aborts; ``d1(x1)`` deletes: it writes a version that is
        the last one of x and matches no predicate. Version orders are in brackets. A history with
        any ``b`` states its real-time order (``rt``). A transaction that neither commits nor aborts
        has status unknown, unless none does: then all committed. Transactions may also be listed
        one by one, ``T1: r(x2) w(y1); T2: r(y1) w(x2)``; this is necessary if no order has each
        read after its write.

        Parameters
        ----------
        text : str
            The history.
        sessions : sequence of str
            Sessions, each a list of transactions: ``"T1 T2"``.
        sets : mapping of str to sequence of str, optional
            Named sets of transactions: ``{"Trusted": ["T1"]}``.
        unknown : sequence of str
            Transactions whose end is unknown, also if no transaction has a known end.
        schedule : str
            Schedule in which not all transactions begin, ``"T1.end T2.start"``; excludes ``b``.

        Raises
        ------
        HistoryError
            If the text does not parse or contradicts itself.

        Examples
        --------
        >>> history = History.parse(
        ...     "w1(x1) r2(x1)", sets={"Trusted": ["T1"]}, unknown=["T2"], schedule="T1 T2.start"
        ... )
        >>> history.to_table()["unknown"], history.sets, history.schedule
        (['T2'], (('Trusted', (1,)),), ((1, 'start'), (1, 'end'), (2, 'start')))
        """
        transactions, order, moments = read_linear(text, unknown)
        if schedule and moments:
            raise HistoryError(
                "history says what was when, by b1, and has a schedule, too; leave one of them out"
            )
        when = read_schedule(schedule) if schedule else moments
        done, last = expand_deletes(transactions, order)
        return cls(done, _sessions(sessions), last, when, _sets(sets or {}))

    @classmethod
    def from_table(cls, table: Mapping[str, object]) -> History:
        """Return the history in the ``[history]`` table of a litmus file.

        Parameters
        ----------
        table : mapping
            Keys ``T1``, ``T2``, …: operations. Optional lists of strings: ``sessions``, ``order``,
            ``aborted``, ``unknown``. Optional ``schedule``: real-time order such as ``T1.start T2
            T1.end``, where ``T1[2]`` is the second operation of T1. Optional ``sets``: named sets
            of transactions, ``{Trusted = ["T1"]}``.

        Raises
        ------
        HistoryError
            If the table does not have this form or contradicts itself.

        Examples
        --------
        >>> table = {"T1": "r(x0) w(y1)", "T2": "r(y1)", "sessions": ["T1 T2"]}
        >>> History.from_table(table).to_table() == table
        True
        """
        lists = {key: _strings(table, key) for key in ("sessions", "order", "aborted", "unknown")}
        operations: dict[int, str] = {}
        for key, text in table.items():
            if key in lists or key in ("schedule", "sets"):
                continue
            if not key.startswith("T"):
                known = [*lists, "schedule", "sets", "T1"]
                raise HistoryError(f"history has no key '{key}'{near(key, known)}")
            if not isinstance(text, str):
                raise HistoryError(f"{key} is {text!r}; expected a string such as 'r(x0) w(x1)'")
            operations[read_transaction_name(key, "history")] = text
        status = _status({word: lists[word] for word in ("unknown", "aborted")}, operations)
        transactions = tuple(
            Transaction(n, read_operations(text, f"T{n}"), status.get(n, "committed"))
            for n, text in sorted(operations.items())
        )
        order = tuple(pair for text in lists["order"] for pair in read_order(text))
        schedule = table.get("schedule", "")
        if not isinstance(schedule, str):
            raise HistoryError(
                f"schedule is {schedule!r}; expected a string such as 'T1.start T2 T1.end'"
            )
        named = table.get("sets", {})
        if not isinstance(named, Mapping):
            raise HistoryError(f"sets is {named!r}; expected names of sets, {{ Trusted = ['T1'] }}")
        sessions, sets = _sessions(lists["sessions"]), _sets(named)
        done, last = expand_deletes(transactions, order)
        return cls(done, sessions, last, read_schedule(schedule), sets)

    def to_table(self) -> dict[str, str | list[str] | dict[str, list[str]]]:
        """Return the ``[history]`` table of a litmus file for this history."""
        table: dict[str, str | list[str] | dict[str, list[str]]] = {}
        if self.sessions:
            table["sessions"] = [" ".join(f"T{n}" for n in numbers) for numbers in self.sessions]
        table |= {transaction.name: str(transaction) for transaction in self.transactions}
        if self.order:
            table["order"] = [f"{first} < {second}" for first, second in self.order]
        for status in ("aborted", "unknown"):
            names = [t.name for t in self.transactions if t.status == status]
            if names:
                table[status] = list(names)
        if self.schedule:
            table["schedule"] = " ".join(self._moments())
        if self.sets:
            table["sets"] = {name: [f"T{n}" for n in members] for name, members in self.sets}
        return table

    def _moments(self) -> Iterator[str]:
        """Yield the steps of the schedule as text."""
        following = (*self.schedule[1:], None)
        both = False
        for (number, moment), after in zip(self.schedule, following, strict=True):
            if both:
                both = False
                continue
            both = moment == "start" and after == (number, "end")
            yield moment_words(number, "both" if both else moment)

    def __repr__(self) -> str:
        """Return the expression that creates the history.

        Examples
        --------
        >>> History.parse("r1(x0) w1(x1) c1")
        History.from_table({'T1': 'r(x0) w(x1)'})
        """
        return f"{type(self).__name__}.from_table({self.to_table()})"

    def _repr_html_(self) -> str:
        """Return an HTML table with one row for each transaction and key, for a notebook."""
        table = self.to_table()
        table.pop("sets", None)
        table |= {f"set {name}": [f"T{n}" for n in members] for name, members in self.sets}
        cells = (
            (key, said if isinstance(said, str) else ", ".join(said)) for key, said in table.items()
        )
        lines = (
            f"<tr><th>{escape(key)}</th><td>{escape(visible(said))}</td></tr>"
            for key, said in cells
        )
        return f"<table>{''.join(lines)}</table>"

    def undetermined(self) -> tuple[str, ...]:
        """Return what is unknown, a clause each: ends of transactions, orders of versions.

        Examples
        --------
        >>> History.parse("w1(x1) w2(x2) c1 c2").undetermined()
        ('the order of x1 and x2 was not observed',)
        """
        ends = [
            f"the end of {t.name} was not observed"
            for t in self.transactions
            if t.status == "unknown"
        ]
        orders = [f"the order of {a} and {b} was not observed" for a, b in self.unordered()]
        return (*ends, *orders)

    def unordered(self) -> tuple[tuple[Version, Version], ...]:
        """Return the pairs of versions whose order was not observed."""
        return unordered(self)

    def assumptions(self) -> tuple[str, ...]:
        """Return the versions assumed to change a predicate's matches because no read states a
        match bit.

        Examples
        --------
        >>> History.parse("r1(P: x0*) w2(x2) c1 c2").assumptions()
        ('x2 changes what matches P',)
        """
        bits = self.matches()
        readers: dict[str, set[int]] = {}
        for transaction, read in self.predicate_reads():
            readers.setdefault(read.predicate, set()).add(transaction.number)
        objects = {(predicate, version.object) for predicate, version in bits}
        return tuple(
            f"{version} changes what matches {predicate}"
            for predicate, numbers in sorted(readers.items())
            for transaction in self.transactions
            for version in transaction.writes
            if (predicate, version.object) in objects
            and (predicate, version) not in bits
            and numbers != {transaction.number}
        )


def _strings(table: Mapping[str, object], key: str, where: str = "") -> list[str]:
    """Return a list of strings from a TOML table; raise HistoryError for other values."""
    value = table.get(key, [])
    if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
        raise HistoryError(f"{where}{key} is {value!r}; expected a list of strings")
    return list(value)


def _status(ended: Mapping[Status, Sequence[str]], numbers: Collection[int]) -> dict[int, Status]:
    """Return the status of the transactions that ``aborted`` or ``unknown`` name."""
    status: dict[int, Status] = {}
    for word, names in ended.items():
        for name in names:
            number = read_transaction_name(name, word)
            if number not in numbers:
                known = near(name, [f"T{n}" for n in numbers])
                raise HistoryError(f"{word}: there is no transaction {name}{known}")
            if number in status:
                both = "both aborted and unknown" if status[number] != word else f"{word} twice"
                raise HistoryError(f"{name} is {both}")
            status[number] = word
    return status


def _sets(table: Mapping[str, object]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the named sets of a TOML table with the numbers of their transactions."""
    return tuple(
        (name, tuple(read_transaction_name(member, f"sets.{name}") for member in members))
        for name, members in ((name, _strings(table, name, "sets.")) for name in table)
    )


def _sessions(texts: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(read_transaction_name(name, "sessions") for name in text.split()) for text in texts
    )
