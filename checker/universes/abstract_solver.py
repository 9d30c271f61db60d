"""Search of abstract histories by SAT, with counterexample-guided refinement of version orders.

That the second spec forbids a history under every version order is a universal statement, which is
not expanded. One solver proposes a history that the second spec forbids under all orders so far;
another one looks for an order under which the second spec admits it (an excuse). An excuse is added
to the orders. A history without an excuse is the answer; if no proposal is left, there is none.

Times are variables, too: an interval order of the transactions, and slots of the operations.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise, product
from typing import TYPE_CHECKING

from isolitmus.checker.solver.circuit_semantics import assert_admitted, assert_forbidden
from isolitmus.checker.solver.circuits import Gates, Solver
from isolitmus.checker.solver.refutation import refute_clauses
from isolitmus.checker.universes.abstract import (
    KEYS,
    Histories,
    LinearOrders,
    Slots,
    Variation,
    interval_crossings,
    uses_versions,
    variation_for,
)
from isolitmus.checker.universes.abstract_frames import AbstractFrames
from isolitmus.model.budget import Budget
from isolitmus.model.display import count_of
from isolitmus.model.errors import Limit
from isolitmus.model.spec import Fold

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.checker.judge.matrix_semantics import BooleanMatrix, BooleanVector
    from isolitmus.checker.solver.circuits import Model
    from isolitmus.checker.solver.refutation import Refutation
    from isolitmus.checker.universes.abstract import OrderMatrix
    from isolitmus.checker.universes.exercised_names import ExerciseRecord, SpecPart
    from isolitmus.model.history import History
    from isolitmus.model.spec import CatExpr, Spec


def interval_order(gates: Gates, n: int) -> OrderMatrix[int]:
    """Return literals of any interval order: ``ended[i][j]``, i had ended when j began."""
    ended = [[gates.false if i == j else gates.new() for j in range(n)] for i in range(n)]
    for (a, b), (c, d), then in interval_crossings(n):
        gates.add(-ended[a][b], -ended[c][d], *(ended[i][j] for i, j in then))
    return ended


def between_times(gates: Gates, h: Histories[int], ended: OrderMatrix[int]) -> None:
    """Add clauses: sessions run in real time, and no transaction reads from one that begins later.

    ``ended[i][j]``: i had ended when j began.
    """
    for t, joined in enumerate(h.joined):
        gates.add(-joined, ended[t][t + 1])
    for t in range(h.n):
        for options in h.sources[t]:
            for s, there in options.items():
                if s < h.n:
                    gates.add(-there, -ended[t][s])


def slots_of(gates: Gates, n: int) -> Slots[int]:
    """Return slots in any order that respects reads, writes and end of each transaction."""
    slots = Slots(len(KEYS), gates.order(n * (2 * len(KEYS) + 1)))
    for p, q in slots.turns():
        gates.add(slots.before[p][q])
    return slots


def between_moments(gates: Gates, h: Histories[int], slots: Slots[int]) -> None:
    """Add clauses that relate slots to sessions, reads and interval order.

    Sessions run in real time. No read precedes the write of its version. A transaction that had
    ended when another one began had ended before all its operations, and so had all that ended
    earlier.
    """
    before, end, keys = slots.before, slots.end, range(h.keys)
    firsts = [
        [slots.read(t, x) for x in keys] + [slots.write(t, x) for x in keys] for t in range(h.n)
    ]
    for t, joined in enumerate(h.joined):
        for slot in (*firsts[t + 1], end(t + 1)):
            gates.add(-joined, before[end(t)][slot])
    for t, x in product(range(h.n), keys):
        for s, there in h.sources[t][x].items():
            if s < h.n:
                gates.add(-there, before[slots.write(s, x)][slots.read(t, x)])
    for i, j in product(range(h.n), repeat=2) if h.ended is not None else ():
        if i != j:
            over = (h.ended or [])[i][j]
            for slot in (*firsts[j], end(j)):
                gates.add(-over, before[end(i)][slot])
            for k in range(h.n):
                if k not in (i, j):
                    gates.add(-over, -before[end(k)][end(i)], (h.ended or [])[k][j])


CANONICAL = 4
"""Maximal number of transactions up to which the answer is made canonical."""


def search(
    a: Spec,
    b: Spec,
    n: int,
    vary: Variation | None = None,
    *,
    budget: Budget | None = None,
    refuted: list[Refutation] | None = None,
) -> tuple[History | None, int]:
    """Return a history of n transactions that ``a`` admits and ``b`` forbids.

    Up to CANONICAL transactions it has the fewest session links, then aborted transactions,
    operations, keys, and reads of other transactions' writes.

    Parameters
    ----------
    a, b : Spec
        Specs to separate.
    n : int
        Number of transactions.
    vary : Variation, optional
        Properties that vary (default: those that the specs can tell).
    budget : Budget, optional
        Limits of time and memory.
    refuted : list of Refutation, optional
        Receives the refutation, if there is no such history.

    Returns
    -------
    tuple of (History or None, int)
        The history, if there is one, and the number of proposals.

    Raises
    ------
    Limit
        If the budget is spent; its ``examined`` has the number of proposals.

    Examples
    --------
    >>> from isolitmus.specs.files.spec_catalogue import level
    >>> found, _ = search(level("snapshot-isolation"), level("serializable"), 2)
    >>> [str(t) for t in found.transactions]
    ['r(x0) w(y1)', 'r(y0) w(x2)']
    """
    space = _HistorySpace(a, b, n, vary or variation_for(a, b), budget or Budget())
    try:
        best = space.simple() or space.propose([])
        if best is not None and n <= CANONICAL:
            for literals in space.measures():
                best = space.fewest(best, literals)
            best = space.canonical(best)
    except Limit as limit:
        limit.examined = space.examined
        raise
    if best is None and refuted is not None:
        says = (
            f"no history of {count_of(n, 'transaction')} is admitted by {a.name} and forbidden by"
            f" {b.name}"
        )
        refuted.append(refute_clauses(f"{n}-transactions", says, space.gates))
    return None if best is None else space.history(best), space.examined


class _HistorySpace:
    """Circuit of all histories of n transactions that the first spec admits."""

    def __init__(self, a: Spec, b: Spec, n: int, vary: Variation, budget: Budget) -> None:
        self.n, self.b, self.budget = n, b, budget
        self.examined = 0
        self.gates = Gates()
        self.histories = _histories(self.gates, n, vary, a, b)
        self.frames = AbstractFrames(self.histories)
        self.given: list[OrderMatrix[int]] = []
        if vary.observed:
            self.given = [self.gates.order(n) for _ in KEYS]
        self.universal = (uses_versions(b) and not self.given) or "co" in b.bound
        orders = self.given or ([self.gates.order(n) for _ in KEYS] if uses_versions(a) else [])
        linear = _some_linear(self.gates, self.histories, a, self.given)
        assert_admitted(self.gates, self.frames.of(a, orders, linear), a)
        by_number = [[1 if i < j else -1 for j in range(n)] for i in range(n)]
        if self.universal and not orders:
            orders = [by_number] * len(KEYS)
        # The order under which the first spec admits the history must not be an excuse.
        self.condemn(orders, _linear_of(b, by_number, by_number))
        self.solver = Solver(self.gates, budget)

    def condemn(self, orders: Sequence[OrderMatrix[int]], linear: LinearOrders[int] | None) -> None:
        """Add clauses: the second spec forbids the history under these orders."""
        agrees = self.gates.true
        if linear is not None and self.given and self.b.bound.get("ww") == "co":
            agrees = self.histories.agreeing(self.given, linear.co)
        assert_forbidden(self.gates, self.frames.of(self.b, orders, linear), self.b, unless=-agrees)

    def propose(self, assumptions: Sequence[int]) -> Model | None:
        """Return a history that the second spec forbids under every version order, or None."""
        while True:
            model = self.solver.check(assumptions)
            if model is None:
                return None
            self.examined += 1
            if not self.universal:
                return model
            excuse = self.excuse(model)
            if excuse is None:
                return model
            self.condemn(*excuse)

    def simple(self) -> Model | None:
        """Return a history in which few transactions do more than read one initial value, or None.

        Large histories are found faster in this way, and are easier to read.
        """
        for busy in range(2, min(self.n, CANONICAL + 1)):
            found = self.propose([a for t in range(busy, self.n) for a in self.idle(t)])
            if found is not None:
                return found
        return None

    def idle(self, t: int) -> list[int]:
        """Return literals: the transaction only reads the initial version of the last key."""
        sources = self.histories.sources[t]
        others = [literal for options in sources for literal in options.values()]
        only = sources[-1][self.n]
        alone = [-joined for joined in self.histories.joined[t - 1 : t + 1]]
        return [
            only,
            *(-o for o in others if o != only),
            *(-w for w in self.histories.writes[t]),
            -self.histories.aborted[t],
            *alone,
        ]

    def excuse(
        self, model: Model
    ) -> tuple[Sequence[OrderMatrix[int]], LinearOrders[int] | None] | None:
        """Return orders under which the second spec admits the proposal; None if there are none.

        These are version orders, and a commit order if the spec binds one. One version order for
        all keys, in which sources precede their readers, is tried first, since it excuses more.
        """
        given = [_constant(model, order) for order in self.given]
        for shared in (True, False):
            gates = Gates()
            histories = Histories(gates, *_fixed(self.histories, model))
            orders = (
                [gates.order(self.n)] * len(KEYS) if shared else [gates.order(self.n) for _ in KEYS]
            )
            linear = _some_linear(gates, histories, self.b, given)
            frames = AbstractFrames(histories).of(self.b, given or orders, linear)
            assert_admitted(gates, frames, self.b)
            if shared:
                for name in ("so", "wr"):
                    for i, row in enumerate(frames.relations.get(name, ())[: self.n]):
                        for j, pair in row.items():
                            gates.add(-pair, orders[0][i][j])
            found = Solver(gates, self.budget).check()
            if found is not None:
                constant = partial(_constant, found)
                vis = None if linear is None or linear.vis is None else constant(linear.vis)
                excuse = None if linear is None else LinearOrders(constant(linear.co), vis)
                return self.given or [*map(constant, orders)], excuse
        return None

    def decisions(self) -> list[int]:
        """Return the literals that define a history, in the order in which they are decided."""
        h = self.histories
        found = [-joined for joined in h.joined] + [-aborted for aborted in h.aborted]
        for t in range(self.n):
            for x in range(len(KEYS)):
                sources = h.sources[t][x]
                found += [sources[s] for s in (self.n, *range(self.n)) if s in sources]
                found.append(h.writes[t][x])
            found += [before for row in h.first[t] for before in row.values()]
        found += [-pair for row in h.ended or () for pair in row]
        if h.slots is not None:
            found += [pair for k, row in enumerate(h.slots.before) for pair in row[k + 1 :]]
        return found + [pair for order in self.given for row in order for pair in row]

    def measures(self) -> Iterator[list[int]]:
        """Yield lists of literals to be minimized, most important first."""
        h = self.histories
        yield list(h.joined)
        yield list(h.aborted)
        reads = [[h.reads(t, x) for t in range(self.n)] for x in range(len(KEYS))]
        writes = [[h.writes[t][x] for t in range(self.n)] for x in range(len(KEYS))]
        yield [literal for row in (*reads, *writes) for literal in row]
        yield [h.used(x) for x in range(len(KEYS))]
        options = [options for row in h.sources for options in row]
        yield [there for o in options for s, there in o.items() if s < self.n]
        yield [pair for row in h.ended or () for pair in row]

    def fewest(self, best: Model, literals: list[int]) -> Model:
        """Return a model in which the fewest literals hold, and add that bound as a clause."""
        count = sum(best[literal] for literal in literals)
        at_least = self.gates.at_least(literals, count + 1)
        while count:
            fewer = self.propose([-at_least[count - 1]])
            if fewer is None:
                break
            best, count = fewer, sum(fewer[literal] for literal in literals)
        self.gates.add(-at_least[count])
        return best

    def canonical(self, best: Model) -> Model:
        """Return the lexicographically first model in terms of the decisions."""
        for decision in self.decisions():
            if not best[decision]:
                other = self.propose([decision])
                if other is None:
                    self.gates.add(-decision)
                    continue
                best = other
            self.gates.add(decision)
        return best

    def history(self, model: Model) -> History:
        return self.histories.history(model.__getitem__, self.given)


def watch_histories(
    record: ExerciseRecord,
    specs: Sequence[Spec],
    sizes: Sequence[int],
    vary: Variation,
    budget: Budget,
    *,
    keys: int = len(KEYS),
) -> None:
    """Look for histories that make each open part of a record non-empty.

    Parameters
    ----------
    record : ExerciseRecord
        Parts of the specs.
    specs : sequence of Spec
        Specs of the search.
    sizes : sequence of int
        Numbers of transactions.
    vary : Variation
        Properties that vary.
    budget : Budget
        Limits of time and memory.
    keys : int
        Maximal number of keys.

    Raises
    ------
    Limit
        If the budget is spent.
    """
    for n in sorted(sizes):
        gates = Gates()
        histories = _histories(gates, n, vary, *specs)
        for x in range(keys, len(KEYS)):
            gates.add(-histories.used(x))
        given = [gates.order(n) for _ in KEYS] if vary.observed else []
        frames = AbstractFrames(histories)
        literals: list[tuple[SpecPart, int]] = []
        for spec in specs:
            parts = [part for part in record.open if part.spec is spec]
            if parts:
                budget.check()
                orders = given or [gates.order(n) for _ in KEYS]
                linear = _some_linear(gates, histories, spec, given)
                fold = Fold(frames.of(spec, orders, linear), spec.definitions)
                literals += [(part, _presence(gates, fold, part.expr)) for part in parts]
        solver = Solver(gates, budget)
        for part, present in literals:
            if present != gates.false and solver.check([present]) is not None:
                record.exercise([part])
        if not record.open:
            return


def _presence(
    gates: Gates, fold: Fold[BooleanMatrix[int], BooleanVector[int]], expr: CatExpr
) -> int:
    """Return the literal that an expression has a pair, or a member."""
    if expr.kind == "set":
        return gates.disj(fold.members(expr))
    return gates.disj(pair for row in fold.relation(expr) for pair in row.values())


def _some_linear(
    gates: Gates, histories: Histories[int], spec: Spec, observed: Sequence[OrderMatrix[int]]
) -> LinearOrders[int] | None:
    """Return a commit order chosen by the solver, with prefixes, as the spec binds them.

    If versions come in that order, it agrees with the ``observed`` version orders.
    """
    n = histories.n
    co = gates.order(n) if "co" in spec.bound else [[gates.false] * n] * n
    vis = [[gates.new() for _ in range(n)] for _ in range(n)]
    linear = _linear_of(spec, co, vis)
    if linear is not None and linear.vis is not None:
        for i, j in product(range(n), repeat=2):
            gates.add(-vis[i][j], co[i][j])
            for k in range(n):
                gates.add(-vis[k][j], -co[i][k], vis[i][j])
    if linear is not None and spec.bound.get("ww") == "co":
        gates.add(histories.agreeing(observed, co))
    return linear


def _linear_of(spec: Spec, co: OrderMatrix[int], vis: OrderMatrix[int]) -> LinearOrders[int] | None:
    """Return the orders that the spec binds, or None."""
    if "co" not in spec.bound:
        return None
    return LinearOrders(co, vis if spec.bound.get("vis") == "snapshots" else None)


def _constant(model: Model, order: Sequence[Sequence[int]]) -> OrderMatrix[int]:
    return [[1 if model[pair] else -1 for pair in row] for row in order]


def _histories(gates: Gates, n: int, vary: Variation, *specs: Spec) -> Histories[int]:
    """Return all abstract histories of n transactions, each of which does something."""
    keys = range(len(KEYS))
    writes = [[gates.new() for _ in keys] for _ in range(n)]
    sources: list[list[dict[int, int]]] = []
    for t in range(n):
        sources.append([])
        for x in keys:
            options = {s: gates.new() for s in (*range(n), n) if s != t}
            for s, option in options.items():
                if s < n:
                    gates.add(-option, writes[s][x])
                for other in range(s):
                    if other in options:
                        gates.add(-option, -options[other])
            sources[t].append(options)
    joined = [gates.new() if vary.sessions else gates.false for _ in range(n - 1)]
    aborted = [gates.new() if vary.aborts else gates.false for _ in range(n)]
    slots = slots_of(gates, n) if vary.moments else None
    first: list[list[dict[int, int]]] = []
    for t in range(n):
        if slots is not None:
            reads = [slots.read(t, x) for x in keys]
            order = [[slots.before[p][q] for q in reads] for p in reads]
            first.append([{y: order[x][y] for y in keys if y != x} for x in keys])
        elif any("po" in spec.needs for spec in specs):
            order = gates.order(len(KEYS))
            first.append([{y: order[x][y] for y in keys if y != x} for x in keys])
        else:
            first.append([{y: gates.true for y in keys if y > x} for x in keys])
    ended = interval_order(gates, n) if vary.times else None
    histories = Histories(gates, writes, sources, joined, first, aborted, ended, slots)
    if ended is not None:
        between_times(gates, histories, ended)
    if slots is not None:
        between_moments(gates, histories, slots)
    # Each transaction does something; an aborted one reads nothing and is in no session.
    for t in range(n):
        reads = [s for x in keys for s in sources[t][x].values()]
        gates.add(*writes[t], *reads)
        for other in (*reads, *joined[max(t - 1, 0) : t + 1]):
            gates.add(-aborted[t], -other)
    # Symmetry breaking: the used keys are the first ones.
    used = [histories.used(x) for x in keys]
    for x in keys[1:]:
        gates.add(-used[x], used[x - 1])
    _descending(gates, histories)
    return histories


def _descending(gates: Gates, h: Histories[int]) -> None:
    """Add symmetry-breaking clauses for histories without sessions.

    Transactions then have no order: the operations of each, as a row of bits, are not less than
    those of the next one.
    """
    rows = [
        [*(bit for x in range(h.keys) for bit in (h.reads(t, x), h.writes[t][x])), h.aborted[t]]
        for t in range(h.n)
    ]
    for first, second in pairwise(rows):
        equal = gates.conj(-joined for joined in h.joined)
        for a, b in zip(first, second, strict=True):
            gates.add(-equal, a, -b)
            equal = gates.conj([equal, gates.disj([-a, b])])


def _fixed(
    h: Histories[int], model: Model
) -> tuple[
    list[list[int]],
    list[list[dict[int, int]]],
    list[int],
    list[list[dict[int, int]]],
    list[int],
    OrderMatrix[int] | None,
    Slots[int] | None,
]:
    """Return the facts of one history as constants."""

    def constant(literal: int) -> int:
        return 1 if model[literal] else -1

    return (
        [[constant(w) for w in row] for row in h.writes],
        [[{s: constant(v) for s, v in options.items()} for options in row] for row in h.sources],
        [constant(j) for j in h.joined],
        [[{y: constant(v) for y, v in row.items()} for row in rows] for rows in h.first],
        [constant(aborted) for aborted in h.aborted],
        None if h.ended is None else _constant(model, h.ended),
        None if h.slots is None else Slots(h.keys, _constant(model, h.slots.before)),
    )
