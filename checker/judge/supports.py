"""What the pairs of a completion rest on: which of the things that nobody observed must be as they are.

A *support* is a set of literals, as a solver has them, all true of the completion: of two versions, which came
first; of a transaction, how it ended. Whatever completion agrees on these has the pair, too, or one that says the
same (see ``later``).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from isolitmus.checker.judge.graph_semantics import BitsetAlgebra
from isolitmus.checker.judge.witness import shortest_path
from isolitmus.model.matches import Matches
from isolitmus.model.operations import INITIAL, ItemRead
from isolitmus.model.recorded import unordered
from isolitmus.model.relation import Relation, bits
from isolitmus.model.spec import Binary, Bracket, Fold, Name, Unary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.checker.judge.completion import Completion
    from isolitmus.model.frame import Frame
    from isolitmus.model.history import History
    from isolitmus.model.operations import Version
    from isolitmus.model.spec import Axiom, CatExpr, Spec

__all__ = ["Support", "Supports", "Unobserved"]

Support = frozenset[int]
NOTHING: Support = frozenset()
ORDERED = ("ww", "rw", "rw-item")
"""Relations that hang on the order of versions, whatever is read."""


@dataclass(frozen=True, slots=True)
class Unobserved:
    """What nobody observed of a history, as numbered literals."""

    ends: dict[int, int]
    """By the transactions whose end is unknown: true if it committed."""
    before: dict[tuple[str, int, int], int]
    """By an object and two writers, either way round: true if the first one's version came first."""

    @classmethod
    def of(cls, history: History, *, orders: bool) -> Unobserved:
        """Of a history; ``orders`` False leaves out the order of versions."""
        unknown = [t.number for t in history.transactions if t.status == "unknown"]
        ends = {number: k for k, number in enumerate(unknown, 1)}
        before: dict[tuple[str, int, int], int] = {}
        for k, (a, b) in enumerate(unordered(history) if orders else (), len(ends) + 1):
            before[a.object, a.writer, b.writer] = k
            before[a.object, b.writer, a.writer] = -k
        return cls(ends, before)

    def came(self, name: str, i: int, j: int) -> Support:
        """What it rests on that, as is so, i's version of an object came before j's."""
        literal = self.before.get((name, i, j))
        return NOTHING if literal is None else frozenset([literal])


@dataclass
class Supports:
    """The pairs of a completion, and what each rests on."""

    choices: Unobserved
    """What there was to choose."""
    completion: Completion
    """What was chosen."""
    later: bool
    """Whether pairs lead to every later version, not to the next alone."""
    frame: Frame
    """The frame, with these pairs."""
    _pairs: dict[tuple[str, int, int], Support] = field(default_factory=dict, init=False)
    _ends: list[Support] = field(init=False)

    def __post_init__(self) -> None:
        self._ends = [self._end(node) for node in range(len(self.frame.nodes))]
        if self.choices.before:
            self._order()

    @classmethod
    def of(
        cls, choices: Unobserved, completion: Completion, *, later: bool, reads: bool
    ) -> Supports:
        """Of a completion; ``later``: see there; ``reads``: its frame has them as nodes."""
        predicates = any(True for _ in completion.history.predicate_reads())
        frame = completion.frame(reasons=predicates, reads=reads)
        return cls(choices, completion, later, frame)

    @cached_property
    def matches(self) -> Matches:
        """What reads by predicate state."""
        return Matches.of(self.completion.history.matches())

    @cached_property
    def writers(self) -> Mapping[str, list[int]]:
        """Who wrote an object, however they ended."""
        found: dict[str, list[int]] = defaultdict(list)
        for transaction in self.completion.history.transactions:
            for version in transaction.writes:
                found[version.object].append(transaction.number)
        return found

    def certain(self) -> Frame:
        """The frame of the pairs that rest on nothing: every completion has them, if all ends are known."""
        return replace(
            self.frame,
            relations={
                name: Relation.of(
                    relation.size,
                    [pair for pair in relation.pairs() if not self._support(name, *pair)],
                )
                for name, relation in self.frame.relations.items()
            },
        )

    def broken(self, spec: Spec) -> set[Support]:
        """What flaws rest on, and ways to break an axiom: of each node a shortest cycle; none if every axiom holds."""
        fold = Fold(BitsetAlgebra(self.frame), spec.definitions)
        place = {name: i for i, name in enumerate(self.frame.nodes)}
        flawed = {self._ends[place[e.target]] for flaw in self.frame.flaws for e in flaw.cycle}
        return flawed | {
            frozenset().union(*(self._behind(axiom.expr, i, j, fold, spec) for i, j in way))
            for axiom in spec.axioms
            for way in _ways(axiom, fold.relation(axiom.expr))
        }

    def _end(self, node: int) -> Support:
        """How the transaction of a node ended: a literal, if nobody knows."""
        if self.frame.is_operation(node):
            found = self.frame.relations["in"].rows[node]
            return self._end(next(bits(found))) if found else NOTHING
        if node == self.frame.transactions:
            return NOTHING
        number = self.completion.history.transactions[node].number
        return self._ended(number)

    def _ended(self, number: int) -> Support:
        literal = self.choices.ends.get(number)
        if literal is None:
            return NOTHING
        return frozenset([literal if number in self.completion.committed else -literal])

    def _support(self, name: str, i: int, j: int) -> Support:
        return self._pairs.get((name, i, j), NOTHING) | self._ends[i] | self._ends[j]

    def _order(self) -> None:
        """What hangs on the order of versions, and on what."""
        history = self.completion.history
        place = {t.number: i for i, t in enumerate(history.transactions)}
        found: dict[tuple[str, int, int], Support] = {}
        for name, i, j, support in (*self._versions(), *self._item_reads()):
            pair = (name, place[i], place[j])
            if pair not in found or len(support) < len(found[pair]):
                found[pair] = support
        for (name, i, j), reason in self.frame.reasons.items():
            if reason.kind in ("after change", "without change") and (name, i, j) not in found:
                reader = history.transactions[j if name.startswith("wr") else i].number
                found[name, i, j] = self._seen(reader, reason["predicate"], reason["version"])
        self._pairs = found
        relations = dict(self.frame.relations)
        n = len(self.frame.nodes)
        for name in ORDERED:
            relations[name] |= Relation.of(n, [(i, j) for one, i, j in found if one == name])
        self.frame = replace(self.frame, relations=relations)

    def _versions(self) -> Iterator[tuple[str, int, int, Support]]:
        for name, order in self.completion.orders.items():
            for i, j in combinations(order, 2) if self.later else pairwise(order):
                yield "ww", i, j, self._following(name, i, j, later=self.later)

    def _item_reads(self) -> Iterator[tuple[str, int, int, Support]]:
        """What reads of items missed: of one who wrote the object later, the versions before its own."""
        for transaction in self.completion.history.transactions:
            reader = transaction.number
            if reader not in self.completion.committed:
                continue
            for operation in transaction.operations:
                if not isinstance(operation, ItemRead) or operation.version.part:
                    continue
                name, writer = operation.version.object, operation.version.writer
                order = (INITIAL, *self.completion.orders.get(name, ()))
                if writer == reader or writer not in order:
                    continue
                missed = order[order.index(writer) + 1 :]
                if not self.later:
                    missed = missed[:1]
                own = reader in missed
                for j in missed[: missed.index(reader)] if own else missed:
                    support = self._following(name, writer, j, later=self.later)
                    if self.later and reader in order:
                        ends = (j, reader) if own else (reader, writer)
                        support |= self.choices.came(name, *ends)
                    for relation in ("rw", "rw-item"):
                        yield relation, reader, j, support | self._ended(writer)

    def _following(self, name: str, i: int, j: int, *, later: bool) -> Support:
        """What it rests on that j's version came after i's; unless ``later``, that it came next."""
        came = self.choices.came
        support = came(name, i, j)
        if later:
            return support
        before = True
        for k in (INITIAL, *self.completion.orders[name]):
            if k in (i, j):
                before = False
            else:
                support |= came(name, k, i) if before else came(name, j, k)
        return support.union(*map(self._ended, self.writers[name]))

    def _seen(self, reader: int, predicate: str, version: Version) -> Support:
        """What it rests on that a version, which changed what matches, was in what a reader saw, or after it."""
        name, order = version.object, (INITIAL, *self.completion.orders[version.object])
        last = order[order.index(version.writer) - 1]
        support = self._following(name, last, version.writer, later=False)
        for transaction, read in self.completion.history.predicate_reads():
            if transaction.number == reader and read.predicate == predicate:
                seen = self.matches.seen(read)[name]
                support |= self.choices.came(name, *sorted((seen, version.writer), key=order.index))
        return support

    def _behind(
        self, expr: CatExpr, i: int, j: int, fold: Fold[Relation, int], spec: Spec
    ) -> Support:
        """What it rests on that a pair is in the relation of an expression."""

        def has(part: CatExpr, i: int, j: int) -> bool:
            return (i, j) in fold.relation(part)

        def behind(part: CatExpr, i: int, j: int) -> Support:
            return self._behind(part, i, j, fold, spec)

        match expr:
            case Name(name) if name in spec.definitions:
                return behind(spec.definitions[name], i, j)
            case Name(name):
                return self._support(name, i, j)
            case Bracket():
                return self._ends[i]
            case Binary("|", left, right):
                return min((behind(e, i, j) for e in (left, right) if has(e, i, j)), key=len)
            case Binary("&", left, right):
                return behind(left, i, j) | behind(right, i, j)
            case Binary(";", left, right):
                middle = next(m for m in bits(fold.relation(left).rows[i]) if has(right, m, j))
                return behind(left, i, middle) | behind(right, middle, j)
            case Unary("^-1", operand):
                return behind(operand, j, i)
            case Unary("?" | "*", _) if i == j:
                return NOTHING
            case Unary("?", operand):
                return behind(operand, i, j)
            case Unary(_, operand):
                path = shortest_path(fold.relation(operand), i, j)
                return NOTHING.union(*(behind(operand, a, b) for a, b in pairwise(path)))
        raise AssertionError(f"{expr} is not increasing")


def _ways(axiom: Axiom, relation: Relation) -> Iterator[list[tuple[int, int]]]:
    """The ways to break an axiom, as pairs of its relation."""
    match axiom.test:
        case "acyclic":
            core = relation.core()
            paths = (shortest_path(relation, node, node, core) for node in bits(core))
            yield from (list(pairwise(path)) for path in paths if path)
        case "irreflexive":
            yield from ([(i, i)] for i, row in enumerate(relation.rows) if row >> i & 1)
        case "empty":
            yield from ([pair] for pair in relation.pairs())
