"""The third reading of specs: relations as formulas over any number of transactions.

A relation is a function from two terms to a formula, a set one from a term. What a spec demands of a
history becomes facts: ``acyclic r`` cannot be said in first order, but implies that there is a strict
order that contains r, and that is all that is used of it. Nor can ``r+``: it is some transitive
relation that contains r, and that lies in every strict order in which r lies. What holds of all such
relations holds of r+.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import NO_OP
from isolitmus.checker.prove.domain import TRANSACTION, Z3Expr, sort
from isolitmus.model.spec import Binary, Fold, Name

if TYPE_CHECKING:
    from isolitmus.checker.prove.tables import TableVocabulary
    from isolitmus.model.spec import CatExpr, Spec

__all__ = ["Formulas", "RelationFormula", "SetFormula", "contained", "demands"]

RelationFormula = Callable[[Z3Expr, Z3Expr], Z3Expr]
SetFormula = Callable[[Z3Expr], Z3Expr]
T = TRANSACTION


def contained(tables: TableVocabulary, inner: RelationFormula, outer: RelationFormula) -> Z3Expr:
    """The formula that one relation lies in the other."""
    return tables.domain.forall((T, T), lambda i, j: tables.z3.Implies(inner(i, j), outer(i, j)))


def _transitive(tables: TableVocabulary, r: RelationFormula) -> Z3Expr:
    return tables.domain.forall(
        (T, T, T), lambda i, j, k: tables.z3.Implies(tables.z3.And(r(i, j), r(j, k)), r(i, k))
    )


class Formulas:
    """The algebra over formulas.

    ``orders`` are the strict orders that there are, by name: the log's, and those that ``demands``
    finds. ``facts`` are what is known of closures and orders.
    """

    def __init__(self, tables: TableVocabulary) -> None:
        self.tables = tables
        self.facts: list[Z3Expr] = []
        self.orders: dict[str, RelationFormula] = {"log": self._up}
        self._closures = 0

    def _up(self, i: Z3Expr, j: Z3Expr) -> Z3Expr:
        return self.tables.position(i) < self.tables.position(j)

    def order(self, name: str, inside: Iterable[RelationFormula]) -> None:
        """A strict order with these relations inside: what it means that together they are acyclic."""
        z3 = self.tables.z3
        before = self._fresh(f"before by {name}")
        irreflexive = self.tables.domain.forall((T,), lambda i: z3.Not(before(i, i)))
        self.facts += [irreflexive, _transitive(self.tables, before)]
        self.facts += [contained(self.tables, part, before) for part in inside]
        self.orders[name] = before

    def _fresh(self, name: str) -> RelationFormula:
        z3 = self.tables.z3
        context = self.tables.domain.context
        transaction = sort(T, context)
        fresh: RelationFormula = z3.Function(name, transaction, transaction, z3.BoolSort(context))
        return fresh

    def relation(self, name: str) -> RelationFormula:
        return self.tables.relation(name)

    def members(self, name: str) -> SetFormula:
        return self.tables.members(name)

    def union(self, a: RelationFormula, b: RelationFormula) -> RelationFormula:
        return lambda i, j: self.tables.z3.Or(a(i, j), b(i, j))

    def intersection(self, a: RelationFormula, b: RelationFormula) -> RelationFormula:
        return lambda i, j: self.tables.z3.And(a(i, j), b(i, j))

    def difference(self, a: RelationFormula, b: RelationFormula) -> RelationFormula:
        return lambda i, j: self.tables.z3.And(a(i, j), self.tables.z3.Not(b(i, j)))

    def compose(self, a: RelationFormula, b: RelationFormula) -> RelationFormula:
        if isinstance(a, _IdentityFormula):
            return lambda i, k: self.tables.z3.And(a.on(i), b(i, k))
        if isinstance(b, _IdentityFormula):
            return lambda i, k: self.tables.z3.And(a(i, k), b.on(k))
        return lambda i, k: self.tables.domain.exists(
            (T,), lambda j: self.tables.z3.And(a(i, j), b(j, k))
        )

    def plus(self, a: RelationFormula) -> RelationFormula:
        self._closures += 1
        closure = self._fresh(f"closure {self._closures}")
        self.facts += [contained(self.tables, a, closure), _transitive(self.tables, closure)]
        self.facts += [
            self.tables.z3.Implies(
                contained(self.tables, a, order), contained(self.tables, closure, order)
            )
            for order in self.orders.values()
        ]
        return closure

    def reflexive(self, a: RelationFormula) -> RelationFormula:
        return lambda i, j: self.tables.z3.Or(i == j, a(i, j))

    def inverse(self, a: RelationFormula) -> RelationFormula:
        return lambda i, j: a(j, i)

    def identity(self, on: SetFormula) -> RelationFormula:
        return _IdentityFormula(on)

    def set_union(self, a: SetFormula, b: SetFormula) -> SetFormula:
        return lambda i: self.tables.z3.Or(a(i), b(i))

    def set_intersection(self, a: SetFormula, b: SetFormula) -> SetFormula:
        return lambda i: self.tables.z3.And(a(i), b(i))

    def set_difference(self, a: SetFormula, b: SetFormula) -> SetFormula:
        return lambda i: self.tables.z3.And(a(i), self.tables.z3.Not(b(i)))

    def complement(self, a: SetFormula) -> SetFormula:
        return lambda i: self.tables.z3.Not(a(i))


class _IdentityFormula:
    """``[S]``, kept apart so that composing with it needs no third transaction."""

    def __init__(self, on: SetFormula) -> None:
        self.on = on

    def __call__(self, i: Z3Expr, j: Z3Expr) -> Z3Expr:
        import z3

        return z3.And(i == j, self.on(i))


def demands(formulas: Formulas, spec: Spec) -> list[Z3Expr]:
    """What a spec says of a history that it admits; its orders are added to ``formulas.orders``.

    A transaction that it shows as a no-op is not recorded, and so no writer.
    """
    tables, fold = formulas.tables, Fold(formulas, spec.definitions)
    z3, domain = tables.z3, tables.domain
    said: list[Z3Expr] = []
    for axiom in spec.demands:
        parts = [fold.relation(part) for part in _parts(axiom.expr, spec.definitions)]
        match axiom.test:
            case "empty":
                said += [domain.forall((T, T), _negated(z3.Not, part)) for part in parts]
            case "irreflexive":
                said += [domain.forall((T,), _diagonal(z3.Not, part)) for part in parts]
            case "acyclic":
                formulas.order(axiom.name, parts)
    for label in spec.labels:
        if label.name == NO_OP:
            dropped = fold.members(label.expr)
            said.append(domain.forall((T,), _apart(z3, tables.writer, dropped)))
    return said


def _parts(expr: CatExpr, definitions: Mapping[str, CatExpr]) -> list[CatExpr]:
    """Relations whose union is the expression: what is said of each is easier to use than of all."""
    match expr:
        case Binary("|", left, right):
            return [*_parts(left, definitions), *_parts(right, definitions)]
        case Binary(";", left, right):
            firsts, seconds = _parts(left, definitions), _parts(right, definitions)
            return [Binary(";", first, second) for first in firsts for second in seconds]
        case Name(name) if name in definitions:
            return _parts(definitions[name], definitions)
        case _:
            return [expr]


def _negated(negation: Callable[[Z3Expr], Z3Expr], r: RelationFormula) -> RelationFormula:
    return lambda i, j: negation(r(i, j))


def _diagonal(negation: Callable[[Z3Expr], Z3Expr], r: RelationFormula) -> SetFormula:
    return lambda i: negation(r(i, i))


def _apart(z3: Z3Expr, a: SetFormula, b: SetFormula) -> SetFormula:
    return lambda i: z3.Not(z3.And(a(i), b(i)))
