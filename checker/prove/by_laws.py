r"""What one level implies of another in every history, however large: from their texts, and what histories are.

The texts alone say less (``checker.prove.structural_implication``): that the rival of a read came before its source or is missed by the
reader, for example, is no matter of form. That is a law (``checker.prove.history_laws``). From the laws, and what the first level
demands of a frame (``checker.prove.history_proof``), a solver derives what the second one demands.

- ``acyclic r`` follows if r lies within an order that there is; or if it is transitive, and leads nobody back.
- An order that the second level supposes is one of these, of those that committed; or the first one's own. What each
  transaction sees of it is the least that the axioms ``empty r \ vis`` ask, and all that comes before that.
- The version order is the same for both: what the first level admits it admits under some order, and of that one the second is
  asked. If the second takes it from its commit order, it demands that the two agree.

What is not derived may be so all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.checker.prove.history_proof import TheoryOfLaws, initial_first, said_of
from isolitmus.checker.prove.restricting import COMMITTED, INITIAL, composed, kind_of, with_orders
from isolitmus.checker.prove.sentences import SAME
from isolitmus.model.budget import Budget
from isolitmus.model.errors import Limit
from isolitmus.model.spec import Binary, Bracket, Name
from isolitmus.model.vocabulary import BINDERS, relations_of, sets_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.checker.solver.refutation import Refutation
    from isolitmus.model.spec import CatExpr, Spec

__all__ = ["Derivation", "derive"]

TRIALS = tuple(
    (units, chance) for units, few in ((200_000, 8), (800_000, 4)) for chance in range(few)
)
"""So many units of the solver's work are spent on a question, with so much chance: what it derives, it derives soon on one of
several ways, and seldom late.
"""
SPOKEN = frozenset(
    (
        *relations_of("histories", "items", "reads", "operations", "moments"),
        *sets_of("histories", "reads", "operations"),
        *BINDERS.values(),
    )
)
"""What laws speak of."""
WaysToAxiom = list[tuple[str, list["CatExpr"]]]
"""WaysToAxiom to an axiom: the order that it goes by, and what relates nothing then."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """Why a level implies another."""

    a: str
    b: str
    steps: tuple[Refutation, ...]
    """The questions that have no answer, lemmas first."""
    order: str = ""
    """Which order is the one that the second level supposes; empty if it supposes none."""

    def __str__(self) -> str:
        return "the laws of histories" + (f", with {self.order} as co" if self.order else "")


def derive(a: Spec, b: Spec, budget: Budget | None = None) -> Derivation | None:
    """Why ``a`` admits no history that ``b`` forbids; None if that is not derived, also once the budget is spent.

    >>> from isolitmus.specs import level
    >>> print(derive(level("serializable"), level("serializable-crooks")))
    the laws of histories, with the order of serial-order as co
    >>> derive(level("serializable-crooks"), level("serializable"))
    """
    if any(not spec.needs <= SPOKEN or spec.silences for spec in (a, b)):
        return None
    try:
        return _derivation(TheoryOfLaws(a, b, budget or Budget()), b)
    except Limit:
        return None


def _derivation(theory: TheoryOfLaws, b: Spec) -> Derivation | None:
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
    """What was refuted on one way to an axiom."""
    steps: list[Refutation] = []
    for goal in goals:
        found = theory.refuted(goal, trial, f"{axiom} holds{by and f', by {by}'}")
        if found is None:
            return None
        steps += found
    return steps


def _choices(theory: TheoryOfLaws, b: Spec) -> Iterator[tuple[str, CatExpr | None]]:
    """The orders that the second level may suppose."""
    if "co" not in b.bound:
        yield "", None
    elif "co" in theory.orders:
        yield "co", Name("co")
    else:
        for name, order in theory.orders.items():
            yield name, composed(Bracket(COMMITTED), order, Bracket(COMMITTED))


def _claims(
    theory: TheoryOfLaws, b: Spec, by: str, co: CatExpr | None
) -> Iterator[tuple[str, WaysToAxiom]]:
    """What is to be shown, with ways to it."""
    asked = [(axiom, said_of(b, axiom)) for axiom in b.demands]
    supposed: dict[str, CatExpr] = {}
    if co is not None:
        supposed["co"] = co
        if kind_of(b) != "transactions" and by != "co":
            yield (
                "that co begins with the initial transaction",
                [("", [Binary("\\", initial_first(), co)])],
            )
    if co is not None and "vis" in b.bound:
        least = [
            with_orders(expr.left, supposed)
            for axiom, expr in asked
            if axiom.test == "empty" and isinstance(expr, Binary) and expr.right == Name("vis")
        ]
        vis: CatExpr = composed(Bracket(INITIAL), co)
        if least:
            before = Binary("|", co, Bracket(COMMITTED))
            vis = Binary("|", vis, composed(before, composed(*least, op="|"), Bracket(COMMITTED)))
        supposed["vis"] = vis
        yield "that vis is a part of co", [("", [Binary("\\", vis, co)])]
    for axiom, expr in asked:
        said = with_orders(expr, supposed)
        match axiom.test:
            case "empty":
                yield axiom.name, [("", [said])]
            case "irreflexive":
                yield axiom.name, [("", [Binary("&", said, SAME)])]
            case "acyclic":
                own = sorted(theory.orders, key=lambda one: one != by)
                ways: WaysToAxiom = [(one, [Binary("\\", said, theory.orders[one])]) for one in own]
                further = Binary("\\", composed(said, said), said)
                yield axiom.name, [*ways, ("", [Binary("&", said, SAME), further])]
