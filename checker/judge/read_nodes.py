"""Operations as nodes of the dependency graph of a completion: initial transaction, reads, writes.

After the transactions, whose positions stay, comes T0, then one node per read, transaction by
transaction in the order of operations. An item read is one node (``T2 r(x0)``). A read by predicate
is one node for each object of its version set (``T2 r(P: x0)``), so that pairs of one object are
never mixed with those of another. A read of the transaction's own version is no node: it reads
nothing from outside. A read of a version that nobody wrote (``checker.judge.completion``) is only
in pairs of ``in`` and ``po``. T0 is in the set ``Initial``; no other node besides transactions is
in a set.

- ``rf``: from a transaction, or T0, to a read of its version;
- ``po``: between operations of one transaction, from each to all later ones (the objects of one
  predicate read are not ordered);
- ``in``: from an operation to its transaction;
- ``rival``: from every other committed transaction, or T0, that writes the object, to the read: not
  from the reader's own, nor from the one that it read from, unless that one overwrote what was
  read;
- ``so`` also leads from T0 to every committed transaction, and ``wr`` to those that read from it,
  so that a transaction that must precede T0 is on a cycle.

A spec that uses single operations has more. Each write is a node (``T2 w(x2)``), and so is each
read of a transaction's own version, in the order of operations. These are in the sets ``ItemRead``,
``PredicateRead``, ``Write``.

- ``fr`` (herd's from-reads): from a read to another transaction, which wrote the next version, by
  the rule of ``rw``; so ``in^-1 ; fr`` is ``rw``;
- ``wr-read``: from a transaction to a read, by the rule of ``wr``; so ``wr-read ; in`` is ``wr``.
  For an item read it is ``rf``. A read by predicate depends on all writers that changed its
  matches, and these need not have written the version it saw last;
- ``loc`` (herd's): between operations on one object; two reads by predicate must also have the same
  predicate. A write and a predicate read are related only if the read saw that version, or it
  changes the matches;
- ``time``, where the schedule says so: from earlier to later operations, and ends of transactions.

Choices. A writer is a rival of a predicate read only if its version changes the matches relative to
the version seen, the rule of ``ww`` and ``rw`` (see ``model.operations``); this needs no version
order. T0 is a rival, too: it wrote every object. Operations of transactions that did not commit are
nodes, so that all completions of a history have the same nodes. Their reads are only in pairs of
``in``, ``po``, ``loc`` and ``time``, and in none if writes are no nodes. A read of an own version
is only in these, too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

from isolitmus.model.operations import INITIAL, ItemRead, MatchBits, PredicateRead, Version
from isolitmus.model.vocabulary import relations_of, sets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from isolitmus.model.frame import FrameBuilder
    from isolitmus.model.operations import ObservedHistory
    from isolitmus.model.spec import Spec

READ_RELATIONS, NODE_SETS = relations_of("reads"), sets_of("reads")
OPERATION_RELATIONS, OPERATION_SETS = relations_of("operations"), sets_of("operations")
ONE_BY_ONE = frozenset((*OPERATION_RELATIONS, *OPERATION_SETS, *relations_of("moments")))
READ_BY_READ = ONE_BY_ONE.union(READ_RELATIONS, NODE_SETS)


def needs_reads(spec: Spec) -> bool:
    """Return whether a spec uses single reads, so that graphs need them as nodes."""
    return not spec.needs.isdisjoint(READ_BY_READ)


def needs_operations(spec: Spec) -> bool:
    """Return whether a spec uses single operations, so that writes are nodes, too."""
    return not spec.needs.isdisjoint(ONE_BY_ONE)


def add_reads(
    history: ObservedHistory,
    committed: frozenset[int],
    orders: Mapping[str, tuple[int, ...]],
    builder: FrameBuilder,
    following: Callable[[Version], tuple[Version, bool] | None] | None = None,
) -> None:
    """Add T0 and the reads of a completion to the dependency graph of its transactions.

    Parameters
    ----------
    history : ObservedHistory
        History of the completion.
    committed : frozenset of int
        Numbers of the committed transactions.
    orders : mapping of str to tuple of int
        Writers of each object in version order, without the initial one.
    builder : FrameBuilder
        Graph of the transactions.
    following : callable, optional
        Given if all operations are to be nodes: maps a version to the next one and whether that is
        assumed, or to None.

    Examples
    --------
    >>> from isolitmus.model.history import History
    >>> from isolitmus.checker.judge.completion import completions
    >>> (first,) = completions(History.parse("w1(x1) w1(y1) r2(x1) r2(y0) c1 c2"))
    >>> frame = first.frame(reads=True)
    >>> frame.nodes
    ('T1', 'T2', 'T0', 'T2 r(x1)', 'T2 r(y0)')
    >>> [(i, j, str(frame.reasons["rival", i, j])) for i, j in frame.relations["rival"].pairs()]
    [(0, 4, 'T1 wrote y1'), (2, 3, 'T0 wrote x0')]
    """
    pairs = _ReadPairs(history, committed, orders, builder, everything=following is not None)
    pairs.add_reads()
    if following is not None:
        pairs.add_operations(following)


@dataclass(frozen=True, slots=True)
class _OperationNode:
    """Read or write of a version: transaction, place in it, version, kind, and predicate if any."""

    by: int
    place: int
    version: Version
    kind: str = "ItemRead"
    predicate: str | None = None

    @property
    def words(self) -> str:
        if self.kind == "Write":
            return f"w({self.version})"
        return f"r({self.predicate}: {self.version})" if self.predicate else f"r({self.version})"

    @property
    def external(self) -> bool:
        """True if it reads a version of another transaction."""
        return self.kind != "Write" and self.version.writer != self.by


def _nodes(history: ObservedHistory, matches: MatchBits) -> Iterator[_OperationNode]:
    """Yield the nodes of the operations; a predicate read has one per object of its version set."""
    for transaction in history.transactions:
        n = transaction.number
        for k, operation in enumerate(transaction.operations, 1):
            if isinstance(operation, ItemRead):
                yield _OperationNode(n, k, operation.version)
            elif isinstance(operation, PredicateRead):
                predicate = operation.predicate
                for pair in matches.seen(operation).items():
                    yield _OperationNode(n, k, Version(*pair), "PredicateRead", predicate)
            else:
                yield _OperationNode(n, k, operation.version, "Write")


class _ReadPairs:
    def __init__(
        self,
        history: ObservedHistory,
        committed: frozenset[int],
        orders: Mapping[str, tuple[int, ...]],
        builder: FrameBuilder,
        *,
        everything: bool,
    ) -> None:
        self.history, self.committed, self.orders = history, committed, orders
        self.builder, self.everything = builder, everything
        self.matches = MatchBits.of(history.matches())
        self.nodes = [n for n in _nodes(history, self.matches) if everything or n.external]
        self.written = history.versions()
        self.together: dict[int, list[_OperationNode]] = defaultdict(list)
        for node in self.nodes:
            self.together[node.by].append(node)
        first = len(history.transactions)
        self.place: dict[int | _OperationNode, int] = {
            t.number: i for i, t in enumerate(history.transactions)
        }
        self.place[INITIAL] = first
        self.place |= {node: first + 1 + i for i, node in enumerate(self.nodes)}

    def add_reads(self) -> None:
        """Add T0, the operations as nodes, and their relations."""
        self.builder.have(*READ_RELATIONS, sets=NODE_SETS)
        self.builder.beside(f"T{INITIAL}", *_names(self.nodes))
        self.builder.put("Initial", self.place[INITIAL])
        for node in self.nodes:
            if node.by in self.committed or self.everything:
                self.belongs(node)
            if self.sees(node):
                self.connect(node)
        for number in sorted(self.committed):
            self.add("so", INITIAL, number, "initial", init=f"T{INITIAL}", node=f"T{number}")

    def add(
        self,
        relation: str,
        source: int | _OperationNode,
        target: int | _OperationNode,
        kind: str,
        /,
        **nouns: Any,
    ) -> None:
        self.builder.add(relation, self.place[source], self.place[target], kind, **nouns)

    def sees(self, node: _OperationNode) -> bool:
        """Return whether it is an external read of a written version, by a committed reader."""
        there = node.version.writer == INITIAL or node.version in self.written
        return node.by in self.committed and node.external and there

    def belongs(self, node: _OperationNode) -> None:
        """Add ``in`` to its transaction and ``po`` to its later operations."""
        number, reader = node.by, f"T{node.by}"
        self.add("in", node, number, "node in", read=node.words, reader=reader)
        for later in self.together[number]:
            if later.place > node.place:
                self.add(
                    "po", node, later, "program order",
                    read=node.words, later=later.words, reader=reader,
                )  # fmt: skip

    def connect(self, read: _OperationNode) -> None:
        """Add rf, wr and rival of a read: its version and the versions that rival it."""
        number, seen = read.by, read.version
        kind = "saw with" if read.predicate else "read version"
        why = {"reader": f"T{number}", "version": seen, "writer": f"T{seen.writer}"}
        if read.predicate:
            why["predicate"] = read.predicate
        self.add("rf", seen.writer, read, kind, **why)
        if seen.writer == INITIAL:
            self.add("wr", INITIAL, number, kind, **why)
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

    def add_operations(self, following: Callable[[Version], tuple[Version, bool] | None]) -> None:
        """Add the relations and sets of single operations."""
        self.builder.have(*OPERATION_RELATIONS, sets=OPERATION_SETS)
        for node in self.nodes:
            self.builder.put(node.kind, self.place[node])
            if self.sees(node):
                self.depends(node)
                self.overwritten(node, following)
        for one, other in combinations(self.nodes, 2):
            if self.alike(one, other):
                for first, second in ((one, other), (other, one)):
                    self.add(
                        "loc", first, second, "same object",
                        first=self.called(first), second=self.called(second),
                        name=one.version.object,
                    )  # fmt: skip
        moments = self.history.moments()
        if moments is not None:
            self.in_time(moments)

    def depends(self, read: _OperationNode) -> None:
        """Add ``wr-read``."""
        seen, predicate = read.version, read.predicate
        nouns = {"reader": f"T{read.by}", "version": seen, "writer": f"T{seen.writer}"}
        order = (INITIAL, *self.orders.get(seen.object, ()))
        if predicate is None:
            self.add("wr-read", seen.writer, read, "read version", **nouns)
        elif seen.writer == INITIAL or seen.writer not in order:
            self.add("wr-read", seen.writer, read, "saw with", **nouns, predicate=predicate)
        else:
            earlier = order[: order.index(seen.writer) + 1]
            for before, version in pairwise(Version(seen.object, n) for n in earlier):
                if self.matches.changes(predicate, before, version) and version.writer != read.by:
                    self.add(
                        "wr-read", version.writer, read, "after change",
                        reader=f"T{read.by}", predicate=predicate, version=version,
                        writer=f"T{version.writer}",
                    )  # fmt: skip

    def overwritten(
        self, read: _OperationNode, following: Callable[[Version], tuple[Version, bool] | None]
    ) -> None:
        """Add ``fr`` to the writer of the next version.

        For a read by predicate, to the writers of all later versions that change matches.
        """
        seen, reader = read.version, f"T{read.by}"
        if read.predicate is None:
            found = following(seen)
            if found is not None and found[0].writer != read.by:
                self.add(
                    "fr", read, found[0].writer, "version overwritten",
                    reader=reader, version=seen, writer=f"T{found[0].writer}", following=found[0],
                    doubt=found[1],
                )  # fmt: skip
            return
        order = (INITIAL, *self.orders.get(seen.object, ()))
        later = order[order.index(seen.writer) :] if seen.writer in order else ()
        for before, version in pairwise(Version(seen.object, n) for n in later):
            changes = self.matches.changes(read.predicate, before, version)
            if changes and version.writer != read.by:
                self.add(
                    "fr", read, version.writer, "without change",
                    reader=reader, predicate=read.predicate, version=version,
                    writer=f"T{version.writer}",
                )  # fmt: skip

    def alike(self, one: _OperationNode, other: _OperationNode) -> bool:
        """Return whether two operations are related by ``loc``."""
        if one.version.object != other.version.object:
            return False
        predicates = {node.predicate for node in (one, other)} - {None}
        for read, write in ((one, other), (other, one)):
            if read.predicate is not None and write.kind == "Write":
                seen, wrote = read.version, write.version
                return seen == wrote or self.matches.changes(read.predicate, seen, wrote)
        return len(predicates) < 2

    def in_time(self, moments: Iterable[tuple[int, int | None]]) -> None:
        """Add ``time`` between operations and ends of transactions."""
        self.builder.have(*relations_of("moments"))
        at = defaultdict(list)
        for node in self.nodes:
            at[node.by, node.place].append(node)
        steps: list[list[int | _OperationNode]] = [
            [number] if place is None else [*at[number, place]] for number, place in moments
        ]
        for earlier, later in combinations(steps, 2):
            for first in earlier:
                for second in later:
                    nouns = {"first": self.called(first), "second": self.called(second)}
                    self.add("time", first, second, "came before", **nouns)

    def called(self, node: int | _OperationNode) -> str:
        name = self.builder.nodes[self.place[node]]
        return f"the end of {name}" if isinstance(node, int) else name


def _names(nodes: list[_OperationNode]) -> Iterator[str]:
    """Yield a name for each operation; the second ``r(x0)`` of T2 is ``T2 r(x0) (2)``."""
    count: Counter[str] = Counter()
    for node in nodes:
        name = f"T{node.by} {node.words}"
        count[name] += 1
        yield name if count[name] == 1 else f"{name} ({count[name]})"
