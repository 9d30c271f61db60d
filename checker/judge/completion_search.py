"""A completion that a spec admits, where there are too many to try: a solver proposes, the graph judges.

The solver's variables say of two versions of an object, whose order nobody observed, which came first, and of a
transaction how it ended. What the graph finds broken in a proposal rests on some of these alone, its *support*:
the pairs behind a cycle, and what each pair is there for. No completion with the same support is admitted, so
the support is a clause that the solver learns. Whoever would lose pairs as others come cannot be judged so: the
spec must be ``increasing``. Where any later version may stand for the next (``takes_later``), a pair's
support is the order of two versions; else it is also where every other version stood.

First is proposed an order that what is certain allows: where pairs can be put in any order (read-committed),
that is the answer, without a solver.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from isolitmus.checker.judge.completion import Completion, completions
from isolitmus.checker.judge.graph_semantics import BitsetAlgebra, admits
from isolitmus.checker.judge.later import takes_later
from isolitmus.checker.judge.read_nodes import READ_RELATIONS, needs_reads
from isolitmus.checker.judge.spec_properties import increasing
from isolitmus.checker.judge.supports import Support, Supports, Unobserved
from isolitmus.checker.judge.witness import serial_order
from isolitmus.model.errors import Limit
from isolitmus.model.relation import Relation, bits
from isolitmus.model.spec import Fold

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.model.budget import Budget
    from isolitmus.model.frame import Frame
    from isolitmus.model.history import History
    from isolitmus.model.spec import Spec

__all__ = ["Proposing", "proposable"]

KNOWN = {"so", "wr", "ww", "rw", "intermediate", *READ_RELATIONS, "Writer", "Reader", "Aborted"}
"""The names of which it is known what their pairs rest on."""
LEARNT = 1000
"""The most clauses about one object's order that are learnt from one proposal."""


def proposable(spec: Spec) -> bool:
    """Whether what is broken in a completion is broken in all with the same support.

    >>> from isolitmus.specs.files.catalogue import level
    >>> proposable(level("serializable"))
    True
    """
    binders = all(binder.source == "versions" for binder in spec.binders)
    known = spec.needs <= KNOWN | spec.given.keys()
    return binders and not spec.silences and known and increasing(spec)


class Proposing:
    """The completions of one history, as a solver proposes them for a spec that is ``proposable``.

    ``orders`` False: the order of versions has no say.
    """

    def __init__(self, history: History, spec: Spec, *, orders: bool) -> None:
        self.history, self.spec, self.orders = history, spec, orders
        self.first = next(completions(history))
        self.choices = Unobserved.of(history, orders=orders)
        self.later = takes_later(spec)
        self.reads = needs_reads(spec)

    def common(self) -> Frame | None:
        """The pairs that all completions share, each for what it rests on; None if some end is unknown."""
        return None if self.choices.ends else self._supports(self.first, later=False).certain()

    def admitted(self, limit: int, budget: Budget) -> Completion | None:
        """A completion that the spec admits, or None. A Limit once the budget is spent, or so many were proposed."""
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

    def _supports(self, completion: Completion, *, later: bool) -> Supports:
        return Supports.of(self.choices, completion, later=later, reads=self.reads)

    def _guess(self) -> Support:
        """All committed, and the versions in an order of the transactions that what is certain allows."""
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
        """For each writer of an object the places of those whose versions come later, as a bitset."""
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
        """Versions that come one after another and back; none if they are in an order."""
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
        ends = self.choices.ends
        committed = self.first.committed - {n for n, literal in ends.items() if literal not in true}

        def ordered(name: str) -> Sequence[int]:
            rows = self._later(name, true)
            return [n for n in sorted(rows, key=lambda n: -rows[n].bit_count()) if n in committed]

        orders = {name: tuple(ordered(name)) for name in self.first.orders}
        kept = {name: order for name, order in orders.items() if order}
        return Completion(self.history, committed, kept)
