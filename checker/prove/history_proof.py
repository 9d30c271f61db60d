r"""Proofs of implications between levels from the laws of histories, for histories of any size.

What follows from the texts of two levels alone is decided elsewhere
(``checker.prove.structural_implication``) and is less. For example, that the rival of a read came
before its source or is missed by the reader is not a matter of form, but a law
(``checker.prove.history_laws``). From the laws, and the demands of the first level on a dependency
graph, a solver derives the demands of the second.

The first level contributes these facts. ``acyclic r`` means that there is a total order of all
nodes that contains r. If the level assumes an order ``co``, and the acyclic relation contains it, r
agrees with ``co`` on committed transactions, since ``co`` is total. Lemmas are tried, and kept if
the solver derives them: a closure lies in a transitive relation that contains its steps; a
statement about transactions that miss a version also holds of those that miss a later one.

The second level's demands follow in these ways:

- ``acyclic r`` follows if r lies within a known order; or if it is transitive and irreflexive.
- An order that the second level assumes is one of these, on committed transactions, or the first
  level's own. The part of it that is visible to each transaction is the least that the axioms
  ``empty r \ vis`` require, and all that precedes that.
- The version order is the same for both levels: a history that the first admits under some version
  order is judged by the second under the same one. If the second derives it from its commit order,
  it demands that the two agree.

The method is incomplete: an implication that is not derived may hold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from isolitmus.checker.prove.history_laws import LAWS, TIMED
from isolitmus.checker.prove.sentences import (
    COMMITTED,
    EVERY,
    INITIAL,
    MISSED,
    SAME,
    Closures,
    Sentence,
    compose,
    law_sentence,
    node_kind,
    question_text,
    replace_orders,
    restrict,
    union_branches,
)
from isolitmus.checker.solver.refutation import Refutation
from isolitmus.checker.solver.smt import ask_solver
from isolitmus.model.budget import Budget
from isolitmus.model.errors import Limit
from isolitmus.model.spec import Binary, Bracket, Name, Unary
from isolitmus.model.spec_algebra import unfold
from isolitmus.model.vocabulary import BINDERS, relations_of, sets_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.model.spec import Axiom, CatExpr, Spec

CORE = 1_500_000
"""Solver units spent to find the facts that a question uses; if they do not suffice, it keeps all.
"""
BRIEF = (60_000, 0)
"""Solver units spent on a lemma, and the random seed."""
OF_VERSIONS = frozenset({"so", "wr", "ww", "rw", "rf", "in", "rival"})
"""Names of relations on rivals and versions, relevant to every level."""
ALL = Bracket(Binary("|", INITIAL, Unary("~", INITIAL)))


class TheoryOfLaws:
    """Facts about the histories that ``a`` admits, from which demands of ``b`` are derived."""

    def __init__(self, a: Spec, b: Spec, budget: Budget) -> None:
        self.a, self.budget = a, budget
        self.facts: list[Sentence] = []
        self.orders: dict[str, CatExpr] = {}
        self.lemmas: list[Refutation] = []
        self.known: dict[tuple[CatExpr, int], _Excluded] = {}
        used = a.needs | b.needs
        laws = (*LAWS, *(TIMED if "time" in used else ()))
        said = [axiom_sentence(a, axiom) for axiom in a.demands]
        asked = [axiom_sentence(b, axiom) for axiom in b.demands]
        closures = Closures([*(r for law in laws for r in law.relations), *said, *asked])
        self.steps = {*closures.steps}
        self.facts += map(law_sentence, laws)
        self.nodes()
        if "co" in a.bound:
            self.supposed()
        for axiom, expr in zip(a.demands, said, strict=True):
            self.demand(axiom, expr)
        self.facts += closures.facts
        self.near = used | {"so", "every"}
        for axiom, expr in zip(a.demands, said, strict=True):
            if axiom.test == "irreflexive":
                self.never_back(expr)
        for closure in closures.closures:
            for other in (*self.orders.values(), *closures.closures):
                if closure != other:
                    self.least(closure, other)
        for axiom, expr in zip(a.demands, said, strict=True):
            self.missing_later(axiom, expr)
        for closure in closures.closures:
            for name, order in self.orders.items():
                later = Binary("\\", compose(closure, MISSED), order)
                self.lemma(
                    later, f"{closure} and then missing a version goes along with {name}", later
                )

    def none(self, words: str, expr: CatExpr) -> None:
        """Add the fact that a relation is empty."""
        self.facts.append(Sentence.none(words, expr))

    def nodes(self) -> None:
        """Add facts about the nodes."""
        one = Binary("\\", compose(Bracket(INITIAL), EVERY, Bracket(INITIAL)), SAME)
        self.none("there is one initial transaction", one)
        served, external = Name("Served"), Name("External")
        self.none(
            "a read that has a source is served",
            Binary("\\", Name("rf"), compose(Name("rf"), Bracket(served))),
        )
        self.none("what is served is from outside", Bracket(Binary("\\", served, external)))

    def supposed(self) -> None:
        """Add facts about the orders that the level itself assumes."""
        co, vis = Name("co"), Name("vis")
        among = Bracket(COMMITTED)
        self.order("co", co, among)
        self.none("co is of those that committed", Binary("\\", co, compose(among, co, among)))
        self.none(
            "co begins with the initial transaction", Binary("\\", initial_transaction_law(), co)
        )
        if "vis" in self.a.bound:
            self.none("vis is a part of co", Binary("\\", vis, co))
            self.none("vis is a prefix of co", Binary("\\", compose(co, vis), vis))
            seen = Binary("\\", compose(Bracket(INITIAL), co), vis)
            self.none("everybody sees the initial transaction", seen)

    def demand(self, axiom: Axiom, expr: CatExpr) -> None:
        """Add the demand of an axiom of the level."""
        words = f"{axiom.name} of {self.a.name}"
        co, among = Name("co"), Bracket(COMMITTED)
        if axiom.test == "acyclic" and co in union_branches(expr):
            for case in union_branches(expr):
                if case != co:
                    self.none(words, Binary("\\", compose(among, case, among), co))
        elif axiom.test == "acyclic":
            self.total(f"the order of {axiom.name}", expr, words)
        else:
            self.none(words, expr if axiom.test == "empty" else Binary("&", expr, SAME))

    def order(self, name: str, order: CatExpr, of: CatExpr) -> None:
        """Add a total order of some nodes."""
        self.none(f"{name} is irreflexive", Binary("&", order, SAME))
        self.none(f"{name} is transitive", Binary("\\", compose(order, order), order))
        either = compose(order, Unary("^-1", order), SAME, op="|")
        self.none(f"{name} is total", Binary("\\", compose(of, EVERY, of), either))
        self.orders[name] = order

    def total(self, name: str, inside: CatExpr, words: str) -> None:
        """Add a total order of all nodes that contains an acyclic relation.

        If transactions are the only nodes, the initial transaction comes first in it.
        """
        order = Name(name)
        self.order(name, order, ALL)
        self.none(words, Binary("\\", inside, order))
        if node_kind(self.a) == "transactions":
            first = Binary("\\", compose(Bracket(INITIAL), EVERY), Binary("|", order, SAME))
            self.none(f"{name} begins with the initial transaction", first)

    def never_back(self, expr: CatExpr) -> None:
        """Add an order for each irreflexive closure in an irreflexive relation."""
        for closure in Closures([expr]).closures:
            words = f"{closure} is irreflexive"
            if self.lemma(Binary("&", closure, SAME), words, Binary("&", closure, SAME)):
                self.total(f"the order of closure {len(self.orders) + 1}", closure.operand, words)

    def least(self, closure: Unary, other: CatExpr) -> None:
        """Try the lemma that a closure lies in a relation with its steps.

        If that fails, try the lemma for all but the pairs that start at the initial transaction.
        """
        words = f"the steps of {closure} are in {other}"
        then = Binary("\\", closure, other)
        if not self.lemma(Binary("\\", closure.operand, other), words, then):
            more = Binary("|", other, compose(Bracket(INITIAL), EVERY))
            goes_on = self.refuted(
                Binary("\\", compose(more, more), more), BRIEF, words, lemma=True
            )
            if goes_on is not None:
                then = Binary("\\", closure, more)
                self.lemma(Binary("\\", closure.operand, more), words, then, goes_on)

    def missing_later(self, axiom: Axiom, expr: CatExpr) -> None:
        """Try to extend a statement on missed versions to later ones."""
        order = self.orders.get(f"the order of {axiom.name}")
        for case in union_branches(expr):
            later = replace_orders(case, {"rw": MISSED})
            if later == case or (axiom.test == "acyclic" and order is None):
                continue
            if order is not None:
                goal: CatExpr = Binary("\\", later, order)
            else:
                goal = later if axiom.test == "empty" else Binary("&", later, SAME)
            self.lemma(goal, f"{axiom.name} of later versions", goal)

    def lemma(
        self, goal: CatExpr, words: str, then: CatExpr, before: Sequence[Refutation] = ()
    ) -> bool:
        """Add a consequence of a claim, if the claim can be derived; return whether it was."""
        found = self.refuted(goal, BRIEF, words, lemma=True)
        if found is not None:
            self.lemmas += (*before, *found)
            self.none(words, then)
        return found is not None

    def refuted(
        self, goal: CatExpr, trial: tuple[int, int], words: str, *, lemma: bool = False
    ) -> list[Refutation] | None:
        """Return the refuted questions whether the goal is nonempty, case by case, or None."""
        steps: list[Refutation] = []
        for case in union_branches(goal):
            asked = self.excluded(case, trial, lemma=lemma)
            if asked is None:
                return None
            steps.append(Refutation("", words, "smt2", asked))
        return steps

    def excluded(self, case: CatExpr, trial: tuple[int, int], *, lemma: bool) -> _Excluded | None:
        """Return the question whether a relation can be nonempty given the facts, if it is refuted.

        Facts about the relevant names are tried first, then more of them.
        """
        if (case, len(self.facts)) in self.known:
            return self.known[case, len(self.facts)]
        denied = Sentence.some(f"denied: {case} relates nothing", case)
        for facts in self.choices(lemma=lemma):
            solver = _solver(*trial)
            solver.from_string(question_text([*facts, denied]))
            if ask_solver(solver, (), self.budget) == "unsat":
                found = self.known[case, len(self.facts)] = _Excluded(facts, denied)
                return found
        return None

    def choices(self, *, lemma: bool) -> list[list[Sentence]]:
        """Return the sets of facts to try, in order.

        They are facts about relevant names; also about versions; also about the first and last
        steps of closures; all facts.
        """
        near = self.near | {one.name for one in self.orders.values() if isinstance(one, Name)}
        every = frozenset(name for fact in self.facts for name in fact.names)
        more = near | OF_VERSIONS
        wanted = (
            [(near, False), (more, True)]
            if lemma
            else [(near, False), (more, False), (more, True), (every, True)]
        )
        found: list[list[Sentence]] = []
        for names, steps in wanted:
            some = [f for f in self.facts if f.names <= names and (steps or f not in self.steps)]
            if some not in found:
                found.append(some)
        return found


class _Excluded:
    """Refuted question: the facts, and the denied claim."""

    def __init__(self, known: list[Sentence], denied: Sentence) -> None:
        self.known, self.denied = known, denied

    def __call__(self) -> tuple[str]:
        """Return its text with the facts that it needs."""
        import z3

        solver = _solver(CORE)
        whole = z3.parse_smt2_string(question_text([*self.known, self.denied]), ctx=solver.ctx)
        for k, said in enumerate(whole):
            solver.assert_and_track(said, f"fact {k}")
        if ask_solver(solver) != "unsat":
            return (question_text([*self.known, self.denied]),)
        took = {str(one) for one in solver.unsat_core()}
        known = [one for k, one in enumerate(self.known) if f"fact {k}" in took]
        return (question_text([*known, self.denied]),)


def _solver(units: int = 0, chance: int = 0) -> Any:
    """Return a Z3 solver in its own context, with a resource limit and a random seed."""
    import z3

    solver = z3.Solver(ctx=z3.Context())
    solver.set("rlimit", units)
    solver.set("random_seed", chance)
    return solver


def axiom_sentence(spec: Spec, axiom: Axiom) -> CatExpr:
    """Return the relation of an axiom, in graphs whose nodes are all operations."""
    return restrict(unfold(axiom.expr, spec.definitions), node_kind(spec))


def initial_transaction_law() -> CatExpr:
    """Return the relation from the initial transaction to all other committed ones."""
    return compose(Bracket(INITIAL), EVERY, Bracket(Binary("\\", COMMITTED, INITIAL)))


TRIALS = tuple(
    (units, chance) for units, few in ((200_000, 8), (800_000, 4)) for chance in range(few)
)
"""Solver units and random seeds of the attempts at a question.

A derivation is usually found early with one of several seeds, and seldom late.
"""
SPOKEN = frozenset(
    (
        *relations_of("histories", "items", "reads", "operations", "moments"),
        *sets_of("histories", "reads", "operations"),
        *BINDERS.values(),
    )
)
"""Names that the laws speak of."""
WaysToAxiom = list[tuple[str, list["CatExpr"]]]
"""Ways to derive an axiom: the order used, and the relations that must be empty."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """Derivation of an implication between levels."""

    a: str
    b: str
    steps: tuple[Refutation, ...]
    """Refuted questions, lemmas first."""
    order: str = ""
    """Order that serves as the second level's assumed order; empty if it assumes none."""

    def __str__(self) -> str:
        return "the laws of histories" + (f", with {self.order} as co" if self.order else "")


def derive_inclusion(a: Spec, b: Spec, budget: Budget | None = None) -> Derivation | None:
    """Return a derivation that ``a`` admits no history that ``b`` forbids.

    Returns
    -------
    Derivation or None
        None if it is not derived, or the budget is spent.

    Examples
    --------
    >>> from isolitmus.specs import level
    >>> print(derive_inclusion(level("serializable"), level("serializable-crooks")))
    the laws of histories, with the order of serial-order as co
    >>> derive_inclusion(level("serializable-crooks"), level("serializable"))
    """
    if any(not spec.needs <= SPOKEN or spec.silences for spec in (a, b)):
        return None
    try:
        return _derivation(TheoryOfLaws(a, b, budget or Budget()), b)
    except Limit:
        return None


def _derivation(theory: TheoryOfLaws, b: Spec) -> Derivation | None:
    """Return a derivation of all axioms of ``b``, by the first orders that allow one, or None."""
    for order, co in _choices(theory, b):
        steps: list[Refutation] = []
        for axiom, ways in _claims(theory, b, order, co):
            tried = (_way(theory, axiom, *way, trial) for trial in TRIALS for way in ways)
            found = next((steps for steps in tried if steps is not None), None)
            if found is None:
                break
            steps += found
        else:
            every = [*theory.lemmas, *steps]
            named = (replace(one, name=f"{k:02}") for k, one in enumerate(every, 1))
            return Derivation(theory.a.name, b.name, tuple(named), order)
    return None


def _way(
    theory: TheoryOfLaws, axiom: str, by: str, goals: Sequence[CatExpr], trial: tuple[int, int]
) -> list[Refutation] | None:
    """Return the refutations of one way to derive an axiom, or None if it fails."""
    steps: list[Refutation] = []
    for goal in goals:
        found = theory.refuted(goal, trial, f"{axiom} holds{by and f', by {by}'}")
        if found is None:
            return None
        steps += found
    return steps


def _choices(theory: TheoryOfLaws, b: Spec) -> Iterator[tuple[str, CatExpr | None]]:
    """Yield the candidates for the order that the second level assumes."""
    if "co" not in b.bound:
        yield "", None
    elif "co" in theory.orders:
        yield "co", Name("co")
    else:
        for name, order in theory.orders.items():
            yield name, compose(Bracket(COMMITTED), order, Bracket(COMMITTED))


def _claims(
    theory: TheoryOfLaws, b: Spec, by: str, co: CatExpr | None
) -> Iterator[tuple[str, WaysToAxiom]]:
    """Yield the claims to derive, each with the ways to derive it."""
    asked = [(axiom, axiom_sentence(b, axiom)) for axiom in b.demands]
    supposed: dict[str, CatExpr] = {}
    if co is not None:
        supposed["co"] = co
        if node_kind(b) != "transactions" and by != "co":
            yield (
                "that co begins with the initial transaction",
                [("", [Binary("\\", initial_transaction_law(), co)])],
            )
    if co is not None and "vis" in b.bound:
        least = [
            replace_orders(expr.left, supposed)
            for axiom, expr in asked
            if axiom.test == "empty" and isinstance(expr, Binary) and expr.right == Name("vis")
        ]
        vis: CatExpr = compose(Bracket(INITIAL), co)
        if least:
            before = Binary("|", co, Bracket(COMMITTED))
            vis = Binary("|", vis, compose(before, compose(*least, op="|"), Bracket(COMMITTED)))
        supposed["vis"] = vis
        yield "that vis is a part of co", [("", [Binary("\\", vis, co)])]
    for axiom, expr in asked:
        said = replace_orders(expr, supposed)
        match axiom.test:
            case "empty":
                yield axiom.name, [("", [said])]
            case "irreflexive":
                yield axiom.name, [("", [Binary("&", said, SAME)])]
            case "acyclic":
                own = sorted(theory.orders, key=lambda one: one != by)
                ways: WaysToAxiom = [(one, [Binary("\\", said, theory.orders[one])]) for one in own]
                further = Binary("\\", compose(said, said), said)
                yield axiom.name, [*ways, ("", [Binary("&", said, SAME), further])]
