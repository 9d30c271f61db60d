r"""Total orders that nobody observed, as binders suppose them: commit orders, and what each
transaction sees of one.

Choices. ``co`` orders the transactions that committed, the initial one first where it is a node.
``vis`` leads to each from those in a prefix of that order, which ends before it. With ``ww from
co`` the versions of each object come in that order, and it agrees with what was observed of theirs;
else an observed version order is of no account to it. What an axiom obviously asks of an order is
not tried otherwise: ``acyclic r | co`` that it has r, ``empty r \ vis`` that who comes first by r
is seen. Where no order has all that, all are tried, so that a reader sees why not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from isolitmus.checker.judge.completion import Completion, completions, linear_extensions
from isolitmus.checker.judge.graph_semantics import BitsetAlgebra
from isolitmus.checker.judge.read_nodes import needs_operations, needs_reads
from isolitmus.model.operations import INITIAL
from isolitmus.model.reason import Reason
from isolitmus.model.relation import Relation
from isolitmus.model.spec import Binary, Fold, Name
from isolitmus.model.spec_algebra import names_in, unfold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.model.frame import Frame
    from isolitmus.model.operations import ObservedHistory
    from isolitmus.model.spec import CatExpr, Spec

__all__ = ["LinearCompletion", "linear_completions"]


@dataclass(frozen=True, slots=True)
class LinearCompletion:
    """A completion with a commit order, and of how much of that each transaction sees."""

    completion: Completion
    """Which transactions committed, and the version orders."""
    order: tuple[int, ...]
    """The committed transactions, by number, as they come in ``co``."""
    seen: tuple[int, ...] | None = None
    """How many of these each of them sees, in that order; None: nothing is said of that."""
    versions: bool = False
    """Whether the version orders are supposed besides."""

    @property
    def committed(self) -> frozenset[int]:
        """The numbers of those that committed."""
        return self.completion.committed

    def supposing(self) -> tuple[Reason, ...]:
        """What is supposed of what nobody observed."""
        names = [f"T{number}" for number in self.order]
        found = [
            one
            for one in self.completion.supposing()
            if self.versions or one.kind != "came in order"
        ]
        if len(names) > 1:
            found.append(Reason.of("committed in order", nodes=names))
        for name, count in zip(names, self.seen or (), strict=False):
            if count:
                found.append(Reason.of("sees", node=name, seen=names[:count]))
        return tuple(found)

    def frame(
        self, *, reasons: bool = True, reads: bool = False, operations: bool = False
    ) -> Frame:
        """The completion's frame with ``co``, and ``vis`` where each has a prefix."""
        frame = self.completion.frame(reasons=reasons, reads=reads, operations=operations)
        place = {t.number: i for i, t in enumerate(self.completion.history.transactions)}
        first = [INITIAL] if frame.beside else []
        place[INITIAL] = frame.transactions
        row = [*first, *self.order]
        co = [(i, j) for k, j in enumerate(row) for i in row[:k]]
        pairs = {"co": co}
        if self.seen is not None:
            pairs["vis"] = [
                (i, number)
                for number, count in zip(self.order, self.seen, strict=True)
                for i in (*first, *self.order[:count])
            ]
        relations = {**frame.relations}
        why = dict(frame.reasons)
        for name, found in pairs.items():
            at = [(place[i], place[j]) for i, j in found]
            relations[name] = Relation.of(len(frame.nodes), at)
            if reasons:
                for i, j in at:
                    nouns = {"first": frame.nodes[i], "second": frame.nodes[j]}
                    why[name, i, j] = Reason.of(f"supposed {name}", **nouns)
        return replace(frame, relations=relations, reasons=why)


def linear_completions(
    history: ObservedHistory, spec: Spec, *, orders: bool = True
) -> Iterator[LinearCompletion]:
    """Every completion with every commit order that the spec may suppose, and every choice of
    prefixes if it binds these; at least one. ``orders`` False: one version order only, for who does
    not look at it.

    >>> from isolitmus.model.history import History
    >>> from isolitmus.specs.language.parser import read
    >>> spec = read('"A" with co from linearisations of wr empty co as alone', "a")
    >>> found = linear_completions(History.parse("w1(x1) r2(x1) w3(y3)"), spec)
    >>> [one.order for one in found]
    [(1, 2, 3), (1, 3, 2), (3, 1, 2)]
    """
    reads, operations = needs_reads(spec), needs_operations(spec)
    by_commit = spec.bound.get("ww") == "co"
    asks = _asks(spec, "co"), _asks(spec, "vis")
    versions = orders and not by_commit
    for completion in completions(history, orders=versions):
        frame = completion.frame(reasons=False, reads=reads, operations=operations)
        fold = Fold(BitsetAlgebra(frame), {})
        before, sees = (
            _pairs([e for e in exprs if names_in([e], {}) <= {*frame.names()}], fold, completion)
            for exprs in asks
        )
        before |= sees
        if by_commit:
            before |= {
                (a.writer, b.writer)
                for a, b in history.order
                if {a.writer, b.writer} <= completion.committed
            }
        committed = sorted(completion.committed)
        cyclic = not Relation.of(max(committed, default=0) + 1, list(before)).acyclic()
        for order in linear_extensions(committed, set() if cyclic else before):
            placed = completion
            if by_commit and not cyclic:
                writers = completion.orders.items()
                placed = replace(
                    completion,
                    orders={name: tuple(n for n in order if n in own) for name, own in writers},
                )
            if spec.bound.get("vis") == "snapshots":
                place = {number: k for k, number in enumerate(order)}
                least = [0] * len(order)
                for i, j in sees:
                    if not cyclic:
                        least[place[j]] = max(least[place[j]], place[i] + 1)
                for seen in product(*(range(low, k + 1) for k, low in enumerate(least))):
                    yield LinearCompletion(placed, order, seen, versions)
            else:
                yield LinearCompletion(placed, order, None, versions)


def _asks(spec: Spec, name: str) -> list[CatExpr]:
    """What an axiom asks a bound relation to have, as far as its form says so."""
    bound = {binder.name for binder in spec.binders if binder.source != "versions"}
    found: list[CatExpr] = []
    for axiom in spec.demands:
        expr = unfold(axiom.expr, spec.definitions)
        parts = _united(expr)
        if axiom.test == "acyclic" and Name(name) in parts:
            found += parts
        elif axiom.test == "empty" and isinstance(expr, Binary) and expr.op == "\\":
            found += _united(expr.left) if expr.right == Name(name) else []
    return [expr for expr in found if bound.isdisjoint(names_in([expr], {}))]


def _united(expr: CatExpr) -> list[CatExpr]:
    """The parts of ``a | b | c``."""
    if isinstance(expr, Binary) and expr.op == "|":
        return _united(expr.left) + _united(expr.right)
    return [expr]


def _pairs(
    exprs: list[CatExpr], fold: Fold[Relation, int], completion: Completion
) -> set[tuple[int, int]]:
    """The pairs of committed transactions in these relations, by number."""
    numbers = [t.number for t in completion.history.transactions]
    n = len(numbers)
    found = (pair for expr in exprs for pair in fold.relation(expr).pairs())
    named = {(numbers[i], numbers[j]) for i, j in found if i < n and j < n and i != j}
    return {pair for pair in named if {*pair} <= completion.committed}
