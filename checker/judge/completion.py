"""Completions of a history with their dependency graphs, and reads that nothing explains (flaws).

A history may leave unknown whether a transaction committed, and in which order the committed
versions of an object came. A completion resolves both, and so has Adya's dependencies (Adya,
Liskov, O'Neil, Generalized isolation level definitions, ICDE 2000), for items and predicates.

A read that no order of transactions explains is a flaw; no level allows a history with one. This is
the one rule that stands in no level's text, because it defines what a history is. A transaction
reads a value that somebody wrote, and of its own writes the newest. For Adya, Liskov and O'Neil
(ICDE 2000, section 4) each history is so, at every level. Biswas and Enea (OOPSLA 2019) assume it.
Cerone, Bernardi and Gotsman (CONCUR 2015) have it as the axioms INT and EXT of their weakest model,
Crooks and others (PODC 2017) as the read states of an operation. A version that an aborted
transaction wrote, or that its writer overwrote, was written: whether it may be read is a matter of
the levels' texts.

Choices. The rule holds for committed transactions; others may have read anything. A read after an
own write that returns something else misses that write, whoever wrote what was read, as in recorded
histories (``histories.blackbox.read_from``). Of a read by predicate only the versions that it names
count; of others it is unknown whether it saw an own one. Before and after mean the order within one
transaction; real-time order is a matter of the levels that use time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, islice, pairwise, product
from typing import TYPE_CHECKING, Any

from isolitmus.checker.judge.anomalies import FLAWS
from isolitmus.checker.judge.read_nodes import add_reads
from isolitmus.model.errors import HistoryError
from isolitmus.model.frame import FrameBuilder
from isolitmus.model.operations import (
    INITIAL,
    ItemRead,
    MatchBits,
    PredicateRead,
    Version,
    Write,
    observed_orders,
    read_versions,
    writers_of_objects,
)
from isolitmus.model.reason import Reason
from isolitmus.model.vocabulary import named_set, relations_of, sets_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.model.frame import Frame
    from isolitmus.model.history import History
    from isolitmus.model.operations import ObservedHistory, Status, Transaction
    from isolitmus.model.vocabulary import Term


def find_flaws(history: ObservedHistory) -> Iterator[tuple[str, Transaction, Reason]]:
    """Yield kind, reading transaction and reason of each unexplained read, by operation.

    Examples
    --------
    >>> from isolitmus.model.history import History
    >>> history = History.parse("r1(z3) r1(x1) w1(x1) r1(x0)")
    >>> for kind, _, why in find_flaws(history): print(kind, "-", why)
    thin-air-read - r(z3) of T1 reads z3, but there is no T3
    future-read - r(x1) of T1 reads x1 before its own w(x1)
    lost-own-write - r(x0) of T1 reads x0 after its own w(x1), which it must see
    """
    written = {t.number: {*t.written} for t in history.transactions}
    for transaction in history.transactions:
        own: dict[str, Version] = {}
        for operation in transaction.operations:
            if isinstance(operation, Write):
                own[operation.version.object] = operation.version
                continue
            for version in read_versions(operation):
                nouns = {"read": str(operation), "reader": transaction.name, "version": version}
                last, writer = own.get(version.object), version.writer
                if last is not None:
                    if version != last:
                        why = Reason.of("lost own write", write=f"w({last})", **nouns)
                        yield "lost-own-write", transaction, why
                elif version in written.get(writer, ()):
                    if writer == transaction.number:
                        why = Reason.of("future read", write=f"w({version})", **nouns)
                        yield "future-read", transaction, why
                elif writer != INITIAL:
                    there = writer in written
                    why = Reason.of("thin air", writer=f"T{writer}", there=there, **nouns)
                    yield "thin-air-read", transaction, why


RELATIONS = relations_of("histories", "items")


@dataclass(frozen=True, slots=True)
class Completion:
    """Assumed outcome of each transaction and version order of each object.

    ``committed`` has the numbers of the committed transactions. ``orders[x]`` has the numbers of
    the writers of x in version order, without the initial one.
    """

    history: ObservedHistory
    committed: frozenset[int]
    orders: Mapping[str, tuple[int, ...]]

    def supposing(self) -> tuple[Reason, ...]:
        """Return the assumptions of this completion about what was not observed.

        Examples
        --------
        >>> from isolitmus.model.history import History
        >>> [str(*c.supposing()) for c in completions(History.parse("w1(x1) w2(x2)"))]
        ['x1 came before x2', 'x2 came before x1']
        """
        ends = [
            Reason.of("committed" if t.number in self.committed else "aborted", node=t.name)
            for t in self.history.transactions
            if t.status == "unknown"
        ]
        observed = observed_orders(self.history)
        orders = [
            Reason.of("came in order", versions=[Version(name, number) for number in order])
            for name, order in sorted(self.orders.items())
            if any({(i, j), (j, i)}.isdisjoint(observed[name]) for i, j in combinations(order, 2))
        ]
        return (*ends, *orders)

    def frame(
        self, *, reasons: bool = True, reads: bool = False, operations: bool = False
    ) -> Frame:
        """Return the dependency graph.

        Parameters
        ----------
        reasons : bool
            Whether edges have reasons; False is faster, for counting.
        reads, operations : bool
            Whether the initial transaction and the reads are nodes, and the writes, too: see
            ``checker.judge.read_nodes``.
        """
        made = _CompletionFrame(self, reasons)
        builder = made.build()
        if reads or operations:
            following = made.overwriting if operations else None
            add_reads(self.history, self.committed, self.orders, builder, following)
        return builder.build()


def completions(history: ObservedHistory, *, orders: bool = True) -> Iterator[Completion]:
    """Yield every completion of a history: committed before aborted, orders by their numbers.

    Parameters
    ----------
    history : ObservedHistory
        History to complete.
    orders : bool
        False yields the first version order only, for specs that do not use it.

    Examples
    --------
    >>> from isolitmus.model.history import History
    >>> history = History.parse("w1(x1) w2(x2) w3(x3) [x1 < x3]")
    >>> [completion.orders["x"] for completion in completions(history)]
    [(1, 2, 3), (1, 3, 2), (2, 1, 3)]
    """
    observed = observed_orders(history)
    ends: dict[Status, tuple[bool, ...]] = {
        "committed": (True,),
        "aborted": (False,),
        "unknown": (True, False),
    }
    for choice in product(*(ends[t.status] for t in history.transactions)):
        chosen = zip(history.transactions, choice, strict=True)
        committed = frozenset(t.number for t, yes in chosen if yes)
        possible = _orders(sorted(writers_of_objects(history, committed).items()), observed)
        for order in possible if orders else islice(possible, 1):
            yield Completion(history, committed, order)


def frames(
    history: ObservedHistory, *, reads: bool = False, operations: bool = False
) -> Iterator[Frame]:
    """Yield the dependency graphs of all completions.

    Their relations are so, wr, ww, rw, their sets Writer, Reader, Aborted. The nodes are all
    transactions in the order of their numbers. Relations hold between committed transactions, but
    ``wr`` also leads from aborted ones to those that read from them. With ``reads`` the initial
    transaction and the reads follow as nodes, and there are rf, po, in and rival; with
    ``operations`` the writes, too (see ``checker.judge.read_nodes``).
    """
    return (
        completion.frame(reads=reads, operations=operations) for completion in completions(history)
    )


def frame_of(history: History, *, reads: bool = False, operations: bool = False) -> Frame:
    """Return the dependency graph of a history in which nothing is unknown.

    Raises
    ------
    HistoryError
        If something is unknown; the message says what.

    Examples
    --------
    >>> from isolitmus.model.history import History
    >>> skew = History.parse("r1(x0) r1(y0) w1(x1) r2(x0) r2(y0) w2(y2) c1 c2")
    >>> frame = frame_of(skew)
    >>> frame.relations["rw"].pairs(), str(frame.reasons["rw", 0, 1])
    ([(0, 1), (1, 0)], 'T1 read y0 and T2 wrote the next version y2')
    """
    unknown = history.undetermined()
    if unknown:
        raise HistoryError(f"the history does not determine a frame: {unknown[0]}")
    return next(frames(history, reads=reads, operations=operations))


def _orders(
    objects: Sequence[tuple[str, list[int]]], observed: Mapping[str, set[tuple[int, int]]]
) -> Iterator[dict[str, tuple[int, ...]]]:
    """Yield every choice of an order for each object; that of the last object changes fastest."""
    names = [name for name, _ in objects]
    iterators = [linear_extensions(writers, observed[name]) for name, writers in objects]
    chosen = [next(iterator) for iterator in iterators]
    while True:
        yield dict(zip(names, chosen, strict=True))
        for k in reversed(range(len(objects))):
            following = next(iterators[k], None)
            if following is not None:
                chosen[k] = following
                break
            iterators[k] = linear_extensions(objects[k][1], observed[names[k]])
            chosen[k] = next(iterators[k])
        else:
            return


def linear_extensions(
    writers: list[int], before: set[tuple[int, int]]
) -> Iterator[tuple[int, ...]]:
    """Yield the linear extensions of a partial order, smallest first.

    Iterative, so that long orders do not exceed the recursion limit.

    Examples
    --------
    >>> list(linear_extensions([1, 2, 3], {(1, 3)}))
    [(1, 2, 3), (1, 3, 2), (2, 1, 3)]
    """
    if not writers:
        yield ()
        return
    chosen: list[int] = []
    stack = [_first(writers, before)]
    while stack:
        writer = next(stack[-1], None)
        if writer is None:
            stack.pop()
            if chosen:
                chosen.pop()
            continue
        chosen.append(writer)
        if len(chosen) == len(writers):
            yield tuple(chosen)
            chosen.pop()
        else:
            left = set(writers) - set(chosen)
            stack.append(_first([w for w in writers if w in left], before))


def _first(writers: list[int], before: set[tuple[int, int]]) -> Iterator[int]:
    return (w for w in writers if not any((other, w) in before for other in writers))


class _CompletionFrame:
    def __init__(self, completion: Completion, reasons: bool) -> None:
        self.history = completion.history
        self.committed = completion.committed
        self.orders = {name: (INITIAL, *order) for name, order in completion.orders.items()}
        self.observed = observed_orders(self.history) if reasons else {}
        self.place = {t.number: i for i, t in enumerate(self.history.transactions)}
        names = [t.name for t in self.history.transactions]
        own = [named_set(name) for name, _ in self.history.sets]
        sets: list[str | Term] = [*sets_of("histories"), *own]
        self.builder = FrameBuilder(names, RELATIONS, sets, reasons=reasons)
        self.matches = MatchBits.of(self.history.matches())
        self.written = self.history.versions()

    def build(self) -> FrameBuilder:
        """Add all relations, sets and flaws of the completion, and return the builder."""
        for session in self.history.sessions:
            self.session([number for number in session if number in self.committed])
        if self.history.schedule:
            self.real_time()
        for name, members in self.history.sets:
            for number in members:
                self.builder.put(name, self.place[number])
        for name, order in self.orders.items():
            self.versions(name, order)
        for i, transaction in enumerate(self.history.transactions):
            self.builder.put("Writer" if transaction.writes else "Reader", i)
            if transaction.number not in self.committed:
                self.builder.put("Aborted", i)
                continue
            for operation in transaction.operations:
                if isinstance(operation, ItemRead):
                    self.item(transaction, operation.version)
                elif isinstance(operation, PredicateRead):
                    self.predicate(transaction, operation)
        for kind, transaction, why in find_flaws(self.history):
            if transaction.number in self.committed:
                self.builder.flaw(FLAWS[kind], self.place[transaction.number], why)
        return self.builder

    def add(self, relation: str, i: int, j: int, kind: str, /, **nouns: Any) -> None:
        """Add a pair by the numbers of its transactions; none with T0, or of one with itself."""
        if INITIAL not in {i, j} and i != j:
            self.builder.add(relation, self.place[i], self.place[j], kind, **nouns)

    def session(self, numbers: list[int]) -> None:
        for i, j in combinations(numbers, 2):
            self.add("so", i, j, "session", first=f"T{i}", second=f"T{j}")

    def real_time(self) -> None:
        """Add rt pairs: a transaction that had ended when another began."""
        self.builder.have("rt")
        ended: list[int] = []
        for number, moment in self.history.schedule:
            if number not in self.committed:
                continue
            if moment == "end":
                ended.append(number)
            if moment != "start":
                continue
            for earlier in ended:
                self.add(
                    "rt", earlier, number, "ended before", first=f"T{earlier}", second=f"T{number}"
                )

    def depends(self, kind: str, of: str, i: int, j: int, why: str, /, **nouns: Any) -> None:
        """Add a dependency, also under its name with what was read: item or predicate."""
        self.add(kind, i, j, why, **nouns)
        self.add(f"{kind}-{of}", i, j, why, **nouns)

    def versions(self, name: str, order: tuple[int, ...]) -> None:
        """Add ww between the writers of consecutive versions of an object."""
        for i, j in pairwise(order):
            self.add(
                "ww", i, j, "next version",
                writer=f"T{j}", version=Version(name, j), before=Version(name, i), other=f"T{i}",
                doubt=self.doubt(name, i, j),
            )  # fmt: skip

    def item(self, transaction: Transaction, version: Version) -> None:
        """Add wr from the writer of the version, and rw to the writer of the next one.

        A version that nobody wrote gives no pair.
        """
        if version.writer != INITIAL and version not in self.written:
            return
        number, writer = transaction.number, version.writer
        reader = f"T{number}"
        self.depends(
            "wr",
            "item",
            writer,
            number,
            "read version",
            reader=reader,
            version=version,
            writer=f"T{writer}",
        )
        if version.part and writer in self.committed - {number}:
            self.add(
                "intermediate", writer, number, "read halfway",
                reader=reader, version=version, writer=f"T{writer}",
            )  # fmt: skip
        overwriting = None if writer == number else self.overwriting(version)
        if overwriting is None:
            return
        following, doubt = overwriting
        self.depends(
            "rw", "item", number, following.writer, "version overwritten",
            reader=reader, version=version, writer=f"T{following.writer}",
            following=following, doubt=doubt,
        )  # fmt: skip

    def overwriting(self, version: Version) -> tuple[Version, bool] | None:
        """Return the next version, and whether that it is the next one is assumed.

        If the writer overwrote the version itself, the next one is its own. None if there is no
        next version, or if the writer aborted.
        """
        name, writer = version.object, version.writer
        if version.part:
            return (self.following(version), False) if writer in self.committed else None
        order = self.orders.get(name, (INITIAL,))
        if writer not in order or writer == order[-1]:
            return None
        following = order[order.index(writer) + 1]
        return Version(name, following), self.doubt(name, writer, following)

    def following(self, version: Version) -> Version:
        """Return the next version of the same writer."""
        writer = next(t for t in self.history.transactions if t.number == version.writer)
        later = Version(version.object, version.writer, version.part + 1)
        return later if later in writer.written else version.last

    def doubt(self, name: str, i: int, j: int) -> bool:
        """Return whether it is only assumed that j's version directly follows i's."""
        sure = self.observed.get(name, set())
        others = set(self.orders[name]) - {i, j, INITIAL}
        follows = i == INITIAL or (i, j) in sure
        alone = all((j, k) in sure or (k, i) in sure for k in others)
        return not (follows and alone)

    def predicate(self, transaction: Transaction, read: PredicateRead) -> None:
        """Add pairs of versions that change matches: wr up to the version seen, rw after it."""
        number, predicate = transaction.number, read.predicate
        reader = f"T{number}"

        def add(relation: str, i: int, j: int, kind: str, writer: int) -> None:
            version = Version(name, writer)
            self.depends(
                relation, "predicate", i, j, kind,
                reader=reader, predicate=predicate, version=version, writer=f"T{writer}",
            )  # fmt: skip

        for name, seen in self.matches.seen(read).items():
            if seen != INITIAL and Version(name, seen) not in self.written:
                continue
            order = self.orders.get(name, (INITIAL,))
            if seen not in order:
                add("wr", seen, number, "read with", seen)
                continue
            last = order.index(seen)
            for k, (i, j) in enumerate(pairwise(order)):
                if not self.matches.changes(predicate, Version(name, i), Version(name, j)):
                    continue
                if k < last:
                    add("wr", j, number, "after change", j)
                else:
                    add("rw", number, j, "without change", j)
