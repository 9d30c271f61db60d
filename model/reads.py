"""Reads as nodes: the frame of a completion with the initial transaction and every external read.

After the transactions, whose positions stay, comes T0, then one node for each read, transaction by
transaction in the order of operations: an item read is one node (``T2 r(x0)``), a read by predicate
one for each object of its version set (``T2 r(P: x0)``), so that what is said of one object is never
mixed with what is said of another. A transaction that reads its own version reads nothing from
outside: that is no node. T0 and the reads are in no set.

- ``rf``: from a transaction, or T0, to a read that took its value from it;
- ``po``: between reads of one transaction, from each to all of its later operations (what one
  predicate read saw is not ordered);
- ``in``: from a read to its transaction;
- ``rival``: from every other committed transaction, or T0, that writes the object, to the read: not
  from the reader's own, nor from the one that it read from, unless that one overwrote what was read;
- ``so`` also leads from T0 to every committed transaction, ``wr`` to those that read from it, so that
  who must come before T0 is on a cycle.

Choices. A writer is the rival of a predicate read only if its version changes the matches relative
to the version seen, the rule of ``ww`` and ``rw`` (see ``model.matches``): it needs no version order.
T0 is a rival, too: it wrote every object. Reads of transactions that did not commit are nodes without
pairs, so that all completions of a history have the same nodes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isolitmus.model.matches import Matches
from isolitmus.model.operations import INITIAL, ItemRead, PredicateRead, Version
from isolitmus.model.vocabulary import relations_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.model.frame import FrameBuilder
    from isolitmus.model.recorded import Recorded
    from isolitmus.model.spec import Spec

__all__ = ["READ_RELATIONS", "add_reads", "needs_reads"]

READ_RELATIONS = relations_of("reads")


def needs_reads(spec: Spec) -> bool:
    """Whether a spec looks at the reads one by one, so that its frames need them as nodes."""
    return not spec.needs.isdisjoint(READ_RELATIONS)


def add_reads(
    history: Recorded,
    committed: frozenset[int],
    orders: Mapping[str, tuple[int, ...]],
    builder: FrameBuilder,
) -> None:
    """Add T0 and the reads of a completion of a history to the frame of its transactions.

    >>> from isolitmus.model.history import History
    >>> (first,) = History.parse("w1(x1) w1(y1) r2(x1) r2(y0) c1 c2").completions()
    >>> frame = first.frame(reads=True)
    >>> frame.nodes
    ('T1', 'T2', 'T0', 'T2 r(x1)', 'T2 r(y0)')
    >>> [(i, j, str(frame.reasons["rival", i, j])) for i, j in frame.relations["rival"].pairs()]
    [(0, 4, 'T1 wrote y1'), (2, 3, 'T0 wrote x0')]
    """
    _ReadPairs(history, committed, orders, builder).add_reads()


@dataclass(frozen=True, slots=True)
class _Read:
    """One external read: which operation of which transaction, what it saw, by which predicate."""

    reader: int
    operation: int
    seen: Version
    predicate: str | None = None

    @property
    def words(self) -> str:
        return f"r({self.predicate}: {self.seen})" if self.predicate else f"r({self.seen})"


def _reads(history: Recorded, matches: Matches) -> Iterator[_Read]:
    for transaction in history.transactions:
        n = transaction.number
        for k, operation in enumerate(transaction.operations):
            found: list[_Read] = []
            if isinstance(operation, ItemRead):
                found = [_Read(n, k, operation.version)]
            elif isinstance(operation, PredicateRead):
                seen = matches.seen(operation).items()
                found = [_Read(n, k, Version(*pair), operation.predicate) for pair in seen]
            yield from (read for read in found if read.seen.writer != n)


class _ReadPairs:
    def __init__(
        self,
        history: Recorded,
        committed: frozenset[int],
        orders: Mapping[str, tuple[int, ...]],
        builder: FrameBuilder,
    ) -> None:
        self.committed, self.orders, self.builder = committed, orders, builder
        self.matches = Matches.of(history.matches())
        self.reads = list(_reads(history, self.matches))
        self.together: dict[int, list[_Read]] = defaultdict(list)
        for read in self.reads:
            self.together[read.reader].append(read)
        first = len(history.transactions)
        self.place: dict[int | _Read, int] = {
            t.number: i for i, t in enumerate(history.transactions)
        }
        self.place[INITIAL] = first
        self.place |= {read: first + 1 + i for i, read in enumerate(self.reads)}

    def add_reads(self) -> None:
        self.builder.have(*READ_RELATIONS)
        self.builder.beside(f"T{INITIAL}", *_names(self.reads))
        for read in self.reads:
            if read.reader in self.committed:
                self.connect(read)
        for number in sorted(self.committed):
            self.add("so", INITIAL, number, "initial", init=f"T{INITIAL}", node=f"T{number}")

    def add(
        self, relation: str, source: int | _Read, target: int | _Read, kind: str, /, **nouns: Any
    ) -> None:
        self.builder.add(relation, self.place[source], self.place[target], kind, **nouns)

    def connect(self, read: _Read) -> None:
        number, seen = read.reader, read.seen
        reader = f"T{number}"
        kind = "saw with" if read.predicate else "read version"
        why = {"reader": reader, "version": seen, "writer": f"T{seen.writer}"}
        if read.predicate:
            why["predicate"] = read.predicate
        self.add("rf", seen.writer, read, kind, **why)
        self.add("in", read, number, "node in", read=read.words, reader=reader)
        if seen.writer == INITIAL:
            self.add("wr", INITIAL, number, kind, **why)
        for later in self.together[number]:
            if later.operation > read.operation:
                self.add(
                    "po", read, later, "program order",
                    read=read.words, later=later.words, reader=reader,
                )  # fmt: skip
        for writer in (INITIAL, *self.orders.get(seen.object, ())):
            version = Version(seen.object, writer)
            if writer == number or (writer == seen.writer and not seen.part):
                continue
            name = f"T{writer}"
            if read.predicate is None:
                self.add("rival", writer, read, "item wrote", writer=name, version=version)
            elif self.matches.changes(read.predicate, seen, version):
                self.add(
                    "rival", writer, read, "item changes",
                    writer=name, version=version, predicate=read.predicate,
                )  # fmt: skip


def _names(reads: list[_Read]) -> Iterator[str]:
    """A name for each read; the second ``r(x0)`` of T2 is ``T2 r(x0) (2)``."""
    count: Counter[str] = Counter()
    for read in reads:
        name = f"T{read.reader} {read.words}"
        count[name] += 1
        yield name if count[name] == 1 else f"{name} ({count[name]})"
