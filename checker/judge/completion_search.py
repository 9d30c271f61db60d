"""Search for an admitted completion by SAT, where there are too many to try.

A solver proposes a completion, and the graph semantics judges it. The solver's variables say which
of two versions of an object came first, if that was not observed, and how a transaction ended. The
*support* of a pair is a set of literals, all true of the completion: each completion that agrees on
them also has the pair, or one that says the same (see ``later``). What the judge finds broken has a
support: that of the pairs on the cycle. No completion with the same support is admitted, so the
solver learns it as a clause. This needs a spec for which more pairs never help (``is_increasing``).
If any later version may stand for the next one (``takes_later``), the support of a pair is the
order of two versions; else it also includes the positions of all other versions.

The first proposal is an order that the certain pairs allow. Where pairs can be put in any order
(read-committed), that is the answer, without a solver.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from isolitmus.checker.judge.completion import Completion, completions
from isolitmus.checker.judge.graph_semantics import BitsetAlgebra, admits
from isolitmus.checker.judge.read_nodes import READ_RELATIONS, needs_reads
from isolitmus.checker.judge.spec_properties import is_increasing, takes_later
from isolitmus.checker.judge.witness import serial_order, shortest_path
from isolitmus.model.errors import Limit
from isolitmus.model.operations import INITIAL, ItemRead, MatchBits, unordered
from isolitmus.model.relation import Relation, bits
from isolitmus.model.spec import Binary, Bracket, Fold, Name, Unary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.model.budget import Budget
    from isolitmus.model.frame import Frame
    from isolitmus.model.history import History
    from isolitmus.model.operations import Version
    from isolitmus.model.spec import Axiom, CatExpr, Spec

Support = frozenset[int]
NOTHING: Support = frozenset()
ORDERED = ("ww", "rw", "rw-item")
"""Relations that depend on the order of versions, whatever is read."""


@dataclass(frozen=True, slots=True)
class UnobservedLiterals:
    """Literals of the unobserved facts of a history."""

    ends: dict[int, int]
    """Literal of each transaction with an unknown outcome: true if it committed."""
    before: dict[tuple[str, int, int], int]
    """Literal by object and two writers, in either order: true if the first one's version came
    first.
    """

    @classmethod
    def of(cls, history: History, *, orders: bool) -> UnobservedLiterals:
        """Return the literals of a history; ``orders`` False leaves out the order of versions."""
        unknown = [t.number for t in history.transactions if t.status == "unknown"]
        ends = {number: k for k, number in enumerate(unknown, 1)}
        before: dict[tuple[str, int, int], int] = {}
        for k, (a, b) in enumerate(unordered(history) if orders else (), len(ends) + 1):
            before[a.object, a.writer, b.writer] = k
            before[a.object, b.writer, a.writer] = -k
        return cls(ends, before)

    def came(self, name: str, i: int, j: int) -> Support:
        """Return the support of the fact that i's version of an object came before j's."""
        literal = self.before.get((name, i, j))
        return NOTHING if literal is None else frozenset([literal])


@dataclass
class EdgeSupports:
    """Pairs of a completion, each with its support."""

    choices: UnobservedLiterals
    """Literals of the unobserved facts."""
    completion: Completion
    """The judged completion."""
    later: bool
    """True if pairs lead to every later version, not only to the next."""
    frame: Frame
    """Dependency graph with these pairs."""
    _pairs: dict[tuple[str, int, int], Support] = field(default_factory=dict, init=False)
    _ends: list[Support] = field(init=False)

    def __post_init__(self) -> None:
        self._ends = [self._end(node) for node in range(len(self.frame.nodes))]
        if self.choices.before or self.choices.ends:
            self._order()

    @classmethod
    def of(
        cls, choices: UnobservedLiterals, completion: Completion, *, later: bool, reads: bool
    ) -> EdgeSupports:
        """Return the supports of a completion; with ``reads``, its graph has the reads as nodes."""
        predicates = any(True for _ in completion.history.predicate_reads())
        frame = completion.frame(reasons=predicates, reads=reads)
        return cls(choices, completion, later, frame)

    @cached_property
    def matches(self) -> MatchBits:
        """Matching rows of the reads by predicate."""
        return MatchBits.of(self.completion.history.matches())

    @cached_property
    def writers(self) -> Mapping[str, list[int]]:
        """Writers of each object, committed or not."""
        found: dict[str, list[int]] = defaultdict(list)
        for transaction in self.completion.history.transactions:
            for version in transaction.writes:
                found[version.object].append(transaction.number)
        return found

    def certain(self) -> Frame:
        """Return the graph of the pairs with empty support.

        Every completion has these pairs, if all outcomes are known.
        """
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
        """Return the supports of flaws and of broken axioms; empty if every axiom holds.

        For a cycle these are the supports of a shortest cycle through each node.
        """
        fold = Fold(BitsetAlgebra(self.frame), spec.definitions)
        place = {name: i for i, name in enumerate(self.frame.nodes)}
        flawed = {self._ends[place[e.target]] for flaw in self.frame.flaws for e in flaw.cycle}
        return flawed | {
            frozenset().union(*(self._behind(axiom.expr, i, j, fold, spec) for i, j in way))
            for axiom in spec.axioms
            for way in _ways(axiom, fold.relation(axiom.expr))
        }

    def _end(self, node: int) -> Support:
        """Return the literal of the outcome of a node's transaction, if it is unknown."""
        if self.frame.is_operation(node):
            found = self.frame.relations["in"].rows[node]
            return self._end(next(bits(found))) if found else NOTHING
        if node == self.frame.transactions:
            return NOTHING
        number = self.completion.history.transactions[node].number
        return self._ended(number)

    def _ended(self, number: int) -> Support:
        """Return the support of a transaction's outcome; empty if it is observed."""
        literal = self.choices.ends.get(number)
        if literal is None:
            return NOTHING
        return frozenset([literal if number in self.completion.committed else -literal])

    def _support(self, name: str, i: int, j: int) -> Support:
        return self._pairs.get((name, i, j), NOTHING) | self._ends[i] | self._ends[j]

    def _order(self) -> None:
        """Set the pairs that depend on the order of versions, with their supports."""
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
        """Yield anti-dependencies of reads of items.

        For a reader that later wrote the object itself, only the versions before its own are
        missed.
        """
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
        """Return the support of: j's version came after i's; directly, unless ``later``."""
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
        """Return the support of: a reader saw a version that changed its matches, or missed it."""
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
        """Return the support of a pair in the relation of an expression."""

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
    """Yield the ways in which a relation breaks an axiom, as lists of pairs."""
    match axiom.test:
        case "acyclic":
            core = relation.core()
            paths = (shortest_path(relation, node, node, core) for node in bits(core))
            yield from (list(pairwise(path)) for path in paths if path)
        case "irreflexive":
            yield from ([(i, i)] for i, row in enumerate(relation.rows) if row >> i & 1)
        case "empty":
            yield from ([pair] for pair in relation.pairs())


KNOWN = {"so", "wr", "ww", "rw", "intermediate", *READ_RELATIONS, "Writer", "Reader", "Aborted"}
"""Names whose pairs have known supports."""
LEARNT = 1000
"""Maximal number of clauses about the order of one object that are learned from one proposal."""


def is_monotone_in_assumptions(spec: Spec) -> bool:
    """Return whether an axiom broken in a completion is broken in all with the same support.

    Examples
    --------
    >>> from isolitmus.specs.files.spec_catalogue import level
    >>> is_monotone_in_assumptions(level("serializable"))
    True
    """
    binders = all(binder.source == "versions" for binder in spec.binders)
    known = spec.needs <= KNOWN | spec.given.keys()
    return binders and not spec.silences and known and is_increasing(spec)


class CompletionSearch:
    """Search for an admitted completion of a history.

    The spec must be `is_monotone_in_assumptions`. ``orders`` False: the order of versions does not
    matter.
    """

    def __init__(self, history: History, spec: Spec, *, orders: bool) -> None:
        self.history, self.spec, self.orders = history, spec, orders
        self.first = next(completions(history))
        self.choices = UnobservedLiterals.of(history, orders=orders)
        self.later = takes_later(spec)
        self.reads = needs_reads(spec)

    def common(self) -> Frame | None:
        """Return the graph of the pairs common to all completions.

        Returns None if an outcome is unknown.
        """
        return None if self.choices.ends else self._supports(self.first, later=False).certain()

    def admitted(self, limit: int, budget: Budget) -> Completion | None:
        """Return a completion that the spec admits, or None if there is none.

        Raises
        ------
        Limit
            If the budget is spent, or after ``limit`` proposals.
        """
        from pysat.solvers import Solver

        true = self._guess()
        with Solver(name="glucose4") as solver:
            solver.set_phases([*true])
            for _ in range(limit):
                budget.check()
                broken = {
                    support for name in self.first.orders for support in self._tangled(name, true)
                }
                if not broken:
                    completion = self._completion(true)
                    if admits(completion.frame(reasons=False, reads=self.reads), self.spec):
                        return completion
                    broken = self._supports(completion, later=self.later).broken(self.spec)
                if frozenset() in broken:
                    return None
                for support in broken:
                    solver.add_clause([-literal for literal in support])
                with budget.stopping(solver.interrupt):
                    found = solver.solve_limited(expect_interrupt=True)
                if not found:
                    return None
                said = {*solver.get_model()}
                true = frozenset(-literal if -literal in said else literal for literal in true)
        raise Limit(f"none of the first {limit} completions that were proposed is allowed")

    def _supports(self, completion: Completion, *, later: bool) -> EdgeSupports:
        return EdgeSupports.of(self.choices, completion, later=later, reads=self.reads)

    def _guess(self) -> Support:
        """Return the literals of: all committed, and versions in a transaction order that the
        certain pairs allow.
        """
        certain = self._supports(self.first, later=self.later).certain()
        fold = Fold(BitsetAlgebra(certain), self.spec.definitions)
        asked = [axiom.expr for axiom in self.spec.axioms if axiom.test == "acyclic"]
        orders = [order for order in map(fold.relation, asked) if order.acyclic()]
        n = len(certain.nodes)
        rank = {node: k for k, node in enumerate(serial_order(n, orders or [Relation.empty(n)]))}
        place = {t.number: rank[i] for i, t in enumerate(self.history.transactions)}
        pairs = {one for (_, i, j), one in self.choices.before.items() if place[i] < place[j]}
        return frozenset(pairs | set(self.choices.ends.values()))

    def _later(self, name: str, true: Support) -> dict[int, int]:
        """Return, for each writer of an object, the writers of later versions as a bitset.

        Bit k stands for the writer at place k of ``first.orders[name]``.
        """
        order = self.first.orders[name]
        place = {number: k for k, number in enumerate(order)}
        rows = {}
        for i in order:
            row = 0
            for j in order:
                literal = self.choices.before.get((name, i, j))
                if place[i] < place[j] if literal is None else literal in true:
                    row |= 1 << place[j]
            rows[i] = row
        return rows

    def _tangled(self, name: str, true: Support) -> Iterator[Support]:
        """Yield the supports of cycles of three versions; none if the order is total."""
        order, rows = self.first.orders[name], self._later(name, true)
        if len({row.bit_count() for row in rows.values()}) == len(order):
            return
        earlier: dict[int, int] = defaultdict(int)
        for k, i in enumerate(order):
            for j in bits(rows[i]):
                earlier[order[j]] |= 1 << k
        found = 0
        came = self.choices.came
        for i in order:
            for j in (order[k] for k in bits(rows[i])):
                for third in (order[k] for k in bits(rows[j] & earlier[i])):
                    yield came(name, i, j) | came(name, j, third) | came(name, third, i)
                    found += 1
                    if found == LEARNT:
                        return

    def _completion(self, true: Support) -> Completion:
        """Return the completion that a set of true literals determines."""
        ends = self.choices.ends
        committed = self.first.committed - {n for n, literal in ends.items() if literal not in true}

        def ordered(name: str) -> Sequence[int]:
            rows = self._later(name, true)
            return [n for n in sorted(rows, key=lambda n: -rows[n].bit_count()) if n in committed]

        orders = {name: tuple(ordered(name)) for name in self.first.orders}
        kept = {name: order for name, order in orders.items() if order}
        return Completion(self.history, committed, kept)
