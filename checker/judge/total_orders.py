r"""Completions with total orders that binders assume: commit orders, and the prefix each one sees.

Choices. ``co`` orders the committed transactions, the initial one first if it is a node. ``vis``
leads to each transaction from those in a prefix of that order, which ends before it. With ``ww from
co`` the versions of each object come in that order, which agrees with the observed version order;
otherwise an observed version order does not constrain ``co``. Orders that obviously break an axiom
are skipped: ``acyclic r | co`` requires that co contains r, ``empty r \ vis`` that the source of
each pair of r is seen. If no order satisfies all of this, all are tried, so that a violation can be
shown.
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


@dataclass(frozen=True, slots=True)
class LinearCompletion:
    """Completion with a commit order, and optionally the prefix that each transaction sees."""

    completion: Completion
    """Committed transactions and version orders."""
    order: tuple[int, ...]
    """Numbers of the committed transactions in the order of ``co``."""
    seen: tuple[int, ...] | None = None
    """Length of the prefix that each of them sees, in that order; None if there is no ``vis``."""
    versions: bool = False
    """True if the version orders are assumed as well."""

    @property
    def committed(self) -> frozenset[int]:
        """Numbers of the committed transactions."""
        return self.completion.committed

    def supposing(self) -> tuple[Reason, ...]:
        """Return the assumptions about what was not observed."""
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
        """Return the graph of the completion with ``co``, and ``vis`` if there are prefixes."""
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
    """Yield every completion with every commit order and choice of prefixes that the spec may use.

    Yields at least one.

    Parameters
    ----------
    history : ObservedHistory
        History to complete.
    spec : Spec
        Spec with binders of ``co``, and perhaps ``vis``.
    orders : bool
        False uses one version order only, for specs that do not use it.

    Examples
    --------
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
    """Return the relations that an axiom obviously requires a bound relation to contain."""
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
    """Return the parts of ``a | b | c``."""
    if isinstance(expr, Binary) and expr.op == "|":
        return _united(expr.left) + _united(expr.right)
    return [expr]


def _pairs(
    exprs: list[CatExpr], fold: Fold[Relation, int], completion: Completion
) -> set[tuple[int, int]]:
    """Return the pairs of committed transactions in these relations, by number."""
    numbers = [t.number for t in completion.history.transactions]
    n = len(numbers)
    found = (pair for expr in exprs for pair in fold.relation(expr).pairs())
    named = {(numbers[i], numbers[j]) for i, j in found if i < n and j < n and i != j}
    return {pair for pair in named if {*pair} <= completion.committed}
