"""Semantics of specs as first-order formulas, for any number of transactions over tables.

A relation is a function from two terms to a formula, a set a function from one term. The demands of
a spec become facts. ``acyclic r`` is not expressible in first-order logic; of it is used that some
strict order contains r. Nor is ``r+``: it is some transitive relation that contains r and that lies
in every known strict order in which r lies. What holds of all such relations holds of r+.

The vocabulary of tables follows the definitions of ``checker.execution.frame`` and
``checker.delta.frame``. Its primitives are:

* the version that a transaction became, and the one that it read;
* the rows that it wrote, and whether it created them;
* whether a row, as it is in a version, matches a predicate by which a transaction read;
* the row that stands for the definition of the table, its columns and constraints;
* the files that hold a row in a version, and those that a transaction recorded as read, removed,
  gave a deletion vector, or merged with another transaction.

A name that is not defined here (such as ``adds-meets-reads`` or ``Blind``) is primitive, too, and
known only by the premises.

A formula is written once and used in two domains. In ``UnboundedDomain`` an unsatisfiable negation
proves it for any number of transactions. In ``BoundedDomain`` quantifiers are expanded, so that a
small counterexample is found fast. Z3 has no type annotations: its terms are ``Any`` here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any, Protocol

from isolitmus.checker.execution.commit_loop import NO_OP
from isolitmus.model.spec import Binary, Fold, Name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.model.spec import CatExpr, Spec

Z3Expr = Any

TRANSACTION = "Transaction"
ROW = "Row"
FILE = "File"
PREDICATE = "Predicate"
VERSION = "Version"


class Domain(Protocol):
    """Sorts with quantifiers over them; ``facts`` are the axioms of the domain.

    Each domain has its own solver context, so that answers do not depend on earlier questions.
    """

    @property
    def context(self) -> Z3Expr: ...
    @property
    def facts(self) -> Sequence[Z3Expr]: ...
    def forall(self, sorts: Sequence[str], claim: Callable[..., Z3Expr]) -> Z3Expr: ...
    def exists(self, sorts: Sequence[str], claim: Callable[..., Z3Expr]) -> Z3Expr: ...
    def within(self, version: Z3Expr) -> Z3Expr: ...


def sort(name: str, context: Z3Expr) -> Z3Expr:
    """Return the Z3 sort: integers for versions, uninterpreted otherwise."""
    import z3

    return z3.IntSort(context) if name == VERSION else z3.DeclareSort(name, context)


class UnboundedDomain:
    """Domain of any number of transactions, rows, files, predicates and versions.

    Parameters
    ----------
    transactions : int, optional
        Bound on the number of transactions; quantifiers over them are then expanded.
    """

    facts: tuple[Z3Expr, ...] = ()

    def __init__(self, transactions: int | None = None) -> None:
        import z3

        self._z3: Any = z3
        self.context: Any = z3.Context()
        self._bound = 0
        self._all = [
            z3.Const(f"t{k}", sort(TRANSACTION, self.context))
            for k in range(1, (transactions or 0) + 1)
        ]

    def forall(self, sorts: Sequence[str], claim: Callable[..., Z3Expr]) -> Z3Expr:
        return self._bind(self._z3.And, self._z3.ForAll, sorts, claim)

    def exists(self, sorts: Sequence[str], claim: Callable[..., Z3Expr]) -> Z3Expr:
        return self._bind(self._z3.Or, self._z3.Exists, sorts, claim)

    def _bind(
        self, spelt: Z3Expr, quantified: Z3Expr, sorts: Sequence[str], claim: Callable[..., Z3Expr]
    ) -> Z3Expr:
        """Return one quantifier over the sorts that are not expanded.

        The expansion over the other sorts is inside it.
        """
        bound = {
            k: self._name(name)
            for k, name in enumerate(sorts)
            if not (self._all and name == TRANSACTION)
        }
        choices = product(*([bound[k]] if k in bound else self._all for k in range(len(sorts))))
        parts = [claim(*choice) for choice in choices]
        body = parts[0] if len(parts) == 1 else spelt(parts)
        return quantified(list(bound.values()), body) if bound else body

    def _name(self, of: str) -> Z3Expr:
        self._bound += 1
        return self._z3.Const(f"{of[0].lower()}!{self._bound}", sort(of, self.context))

    def within(self, version: Z3Expr) -> Z3Expr:
        return version == version  # noqa: PLR0124


class BoundedDomain:
    """Domain of fixed numbers of transactions, rows and files, and one predicate.

    Versions range from 0 to the number of transactions.
    """

    def __init__(self, transactions: int, rows: int, files: int) -> None:
        import z3

        self._z3: Any = z3
        self.context: Any = z3.Context()
        counts = {TRANSACTION: transactions, ROW: rows, FILE: files, PREDICATE: 1}
        self._members: dict[str, list[Z3Expr]] = {
            name: [z3.Const(f"{name[0]}{k}", sort(name, self.context)) for k in range(1, count + 1)]
            for name, count in counts.items()
        }
        self.facts = [z3.Distinct(m) for m in self._members.values() if len(m) > 1]
        self._members[VERSION] = [z3.IntVal(n, self.context) for n in range(transactions + 1)]

    @property
    def transactions(self) -> list[Z3Expr]:
        """Terms of the transactions."""
        return self._members[TRANSACTION]

    def forall(self, sorts: Sequence[str], claim: Callable[..., Z3Expr]) -> Z3Expr:
        return self._z3.And([claim(*choice) for choice in self._choices(sorts)])

    def exists(self, sorts: Sequence[str], claim: Callable[..., Z3Expr]) -> Z3Expr:
        return self._z3.Or([claim(*choice) for choice in self._choices(sorts)])

    def within(self, version: Z3Expr) -> Z3Expr:
        return self._z3.Or([version == n for n in self._members[VERSION]])

    def _choices(self, sorts: Sequence[str]) -> product[tuple[Z3Expr, ...]]:
        return product(*(self._members[name] for name in sorts))


RelationFormula = Callable[[Z3Expr, Z3Expr], Z3Expr]
SetFormula = Callable[[Z3Expr], Z3Expr]
T = TRANSACTION


def inclusion_formula(
    tables: TableVocabulary, inner: RelationFormula, outer: RelationFormula
) -> Z3Expr:
    """Return the formula that one relation lies in another."""
    return tables.domain.forall((T, T), lambda i, j: tables.z3.Implies(inner(i, j), outer(i, j)))


def _transitive(tables: TableVocabulary, r: RelationFormula) -> Z3Expr:
    return tables.domain.forall(
        (T, T, T), lambda i, j, k: tables.z3.Implies(tables.z3.And(r(i, j), r(j, k)), r(i, k))
    )


class Formulas:
    """Relational algebra over formulas.

    Attributes
    ----------
    orders : dict of str to RelationFormula
        Known strict orders by name: that of the log, and those of acyclic axioms.
    facts : list
        Formulas about closures and orders.
    """

    def __init__(self, tables: TableVocabulary) -> None:
        self.tables = tables
        self.facts: list[Z3Expr] = []
        self.orders: dict[str, RelationFormula] = {"log": self._up}
        self._closures = 0

    def _up(self, i: Z3Expr, j: Z3Expr) -> Z3Expr:
        return self.tables.position(i) < self.tables.position(j)

    def order(self, name: str, inside: Iterable[RelationFormula]) -> None:
        """Add a strict order that contains these relations, as their being acyclic implies."""
        z3 = self.tables.z3
        before = self._fresh(f"before by {name}")
        irreflexive = self.tables.domain.forall((T,), lambda i: z3.Not(before(i, i)))
        self.facts += [irreflexive, _transitive(self.tables, before)]
        self.facts += [inclusion_formula(self.tables, part, before) for part in inside]
        self.orders[name] = before

    def _fresh(self, name: str) -> RelationFormula:
        """Return a new uninterpreted relation of transactions."""
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
        """Return the composition, with a quantifier unless one of the relations is an identity."""
        if isinstance(a, _IdentityFormula):
            return lambda i, k: self.tables.z3.And(a.on(i), b(i, k))
        if isinstance(b, _IdentityFormula):
            return lambda i, k: self.tables.z3.And(a(i, k), b.on(k))
        return lambda i, k: self.tables.domain.exists(
            (T,), lambda j: self.tables.z3.And(a(i, j), b(j, k))
        )

    def plus(self, a: RelationFormula) -> RelationFormula:
        """Return a new transitive relation that contains ``a``, within known orders that do."""
        self._closures += 1
        closure = self._fresh(f"closure {self._closures}")
        self.facts += [
            inclusion_formula(self.tables, a, closure),
            _transitive(self.tables, closure),
        ]
        self.facts += [
            self.tables.z3.Implies(
                inclusion_formula(self.tables, a, order),
                inclusion_formula(self.tables, closure, order),
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
    """Identity on a set, ``[S]``; composition with it needs no intermediate transaction."""

    def __init__(self, on: SetFormula) -> None:
        self.on = on

    def __call__(self, i: Z3Expr, j: Z3Expr) -> Z3Expr:
        import z3

        return z3.And(i == j, self.on(i))


def spec_formula(formulas: Formulas, spec: Spec) -> list[Z3Expr]:
    """Return the demands of a spec on a history that it admits.

    Its orders are added to ``formulas.orders``. A transaction that it labels as a no-op is not
    recorded, and therefore no writer.
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
    """Return relations whose union is the expression.

    Separate statements about each are easier for the solver than one about all.
    """
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


class TableVocabulary:
    """Vocabulary of tables over a domain."""

    def __init__(self, domain: Domain) -> None:
        import z3

        self.z3: Any = z3
        self.domain = domain
        self.version = self._function("version", TRANSACTION, of=VERSION)
        self.read = self._function("read version", TRANSACTION, of=VERSION)
        self.matches = self._function("matches", TRANSACTION, PREDICATE, ROW, VERSION)
        self.definition = self._function("is the definition", ROW)
        self.there = self._function("there", ROW, VERSION)
        self.sees_all = self._function("sees all", TRANSACTION, PREDICATE)
        self.holds = self._function("holds", FILE, ROW, VERSION)
        self.read_file = self._function("read file", TRANSACTION, FILE)
        self.removes = self._function("removes", TRANSACTION, FILE)
        self.marks = self._function("marks", TRANSACTION, FILE)
        self.merges = self._function("merges", TRANSACTION, TRANSACTION, FILE)
        self.first = self._function("first after", TRANSACTION, ROW, VERSION)
        self.last = self._function("last until", TRANSACTION, ROW, VERSION)
        self.created = self._function("creates", TRANSACTION, ROW)
        self._wrote = self._function("writes", TRANSACTION, ROW)
        self._made: dict[tuple[str, int, int], Z3Expr] = {}
        self._defined: dict[str, Callable[[Z3Expr, Z3Expr], Z3Expr]] = {
            "log": self._log,
            "vis": self._vis,
            "unseen": self._unseen,
            "wr": self._wr,
            "ww": self._ww,
            "rw": self._rw,
            "intermediate": self._halfway,
            "removes-meets-reads": self._removes_meets_reads,
            "removes-meets-removes": self._removes_meets_removes,
        }

    @property
    def facts(self) -> list[Z3Expr]:
        """Definitions of first and last writers and of reads of everything; bounds of versions."""
        return [
            self.domain.forall((TRANSACTION, PREDICATE, ROW, VERSION), self._sees_all),
            self.domain.forall((TRANSACTION, ROW, VERSION), self._first),
            self.domain.forall((TRANSACTION, ROW, VERSION), self._last),
            self.domain.forall((TRANSACTION,), lambda i: self.domain.within(self.version(i))),
            self.domain.forall((TRANSACTION,), lambda i: self.domain.within(self.version(i) - 1)),
            self.domain.forall((TRANSACTION,), lambda i: self.domain.within(self.read(i))),
        ]

    def reads_all(self, r: Z3Expr, p: Z3Expr, i: Z3Expr) -> Z3Expr:
        """Return the formula that r only reads, by p, all of the version that i became."""
        z3 = self.z3
        return z3.And(z3.Not(self.writer(r)), self.read(r) == self.version(i), self.sees_all(r, p))

    def _sees_all(self, r: Z3Expr, p: Z3Expr, x: Z3Expr, n: Z3Expr) -> Z3Expr:
        """Return the definition of a predicate that matches all rows, for one row."""
        alike = self.matches(r, p, x, n) == self.there(x, n)
        return self.z3.Implies(self.sees_all(r, p), alike)

    def _first(self, k: Z3Expr, x: Z3Expr, n: Z3Expr) -> Z3Expr:
        """Return the definition of the first writer of a row after a version."""
        z3, v = self.z3, self.version
        none = self._nobody(x, lambda m: z3.And(n < v(m), v(m) < v(k)))
        return self.first(k, x, n) == z3.And(self.writes(k, x), n < v(k), none)

    def _last(self, k: Z3Expr, x: Z3Expr, n: Z3Expr) -> Z3Expr:
        """Return the definition of the last writer of a row up to a version."""
        z3, v = self.z3, self.version
        none = self._nobody(x, lambda m: z3.And(v(k) < v(m), v(m) <= n))
        return self.last(k, x, n) == z3.And(self.writes(k, x), v(k) <= n, none)

    def _nobody(self, x: Z3Expr, between: Callable[[Z3Expr], Z3Expr]) -> Z3Expr:
        """Return the formula that no transaction with the property ``between`` writes the row."""
        z3 = self.z3
        return self.domain.forall(
            (TRANSACTION,), lambda m: z3.Not(z3.And(self.writes(m, x), between(m)))
        )

    def _halfway(self, _i: Z3Expr, _j: Z3Expr) -> Z3Expr:
        """Return false: a version holds only final writes of its commit."""
        return self.z3.BoolVal(False, self.domain.context)

    def _function(self, name: str, *sorts: str, of: str = "") -> Any:
        context = self.domain.context
        result = sort(of, context) if of else self.z3.BoolSort(context)
        return self.z3.Function(name, *(sort(s, context) for s in sorts), result)

    def relation(self, name: str) -> Callable[[Z3Expr, Z3Expr], Z3Expr]:
        """Return a base relation as a function of two transactions."""
        define = self._defined.get(name) or self._function(name, TRANSACTION, TRANSACTION)

        def pair(i: Z3Expr, j: Z3Expr) -> Z3Expr:
            key = (name, i.get_id(), j.get_id())
            if key not in self._made:
                self._made[key] = self.z3.And(i != j, define(i, j))
            return self._made[key]

        return pair

    def members(self, name: str) -> Callable[[Z3Expr], Z3Expr]:
        """Return a base set as a function of a transaction."""
        base: Callable[[Z3Expr], Z3Expr] = self._function(name, TRANSACTION)
        return base

    def writer(self, i: Z3Expr) -> Z3Expr:
        """Return the formula that the transaction wrote, and therefore has a version."""
        return self.members("Writer")(i)

    def writes(self, i: Z3Expr, x: Z3Expr) -> Z3Expr:
        """Return the formula that the transaction created, changed or deleted the row."""
        return self.z3.And(self.writer(i), self._wrote(i, x))

    def creates(self, i: Z3Expr, x: Z3Expr) -> Z3Expr:
        """Return the formula that the transaction created the row."""
        return self.z3.And(self.writes(i, x), self.created(i, x))

    def changed(self, i: Z3Expr, j: Z3Expr, p: Z3Expr, x: Z3Expr) -> Z3Expr:
        """Return the formula that i's write changed whether the row matches j's predicate."""
        before = self.matches(j, p, x, self.version(i) - 1)
        after = self.matches(j, p, x, self.version(i))
        return self.z3.And(self.writes(i, x), before != after)

    def position(self, i: Z3Expr) -> Z3Expr:
        """Return the position in log order; a reader follows the version that it read."""
        return self.z3.If(self.writer(i), 2 * self.version(i), 2 * self.read(i) + 1)

    def _log(self, i: Z3Expr, j: Z3Expr) -> Z3Expr:
        return self.z3.And(self.writer(i), self.writer(j), self.version(i) < self.version(j))

    def _vis(self, i: Z3Expr, j: Z3Expr) -> Z3Expr:
        return self.z3.And(self.writer(i), self.version(i) <= self.read(j))

    def _unseen(self, i: Z3Expr, j: Z3Expr) -> Z3Expr:
        return self.z3.And(self._log(i, j), self.read(j) < self.version(i))

    def _ww(self, i: Z3Expr, j: Z3Expr) -> Z3Expr:
        """Return the formula that j is the next writer, after i, of a row that i writes."""
        return self.domain.exists(
            (ROW,),
            lambda x: self.z3.And(self.writes(i, x), self.first(j, x, self.version(i))),
        )

    def _wr(self, i: Z3Expr, j: Z3Expr) -> Z3Expr:
        """Return the formula that j reads a write of i, or sees it change a predicate's match."""
        z3, read = self.z3, self.read

        def through(x: Z3Expr, p: Z3Expr) -> Z3Expr:
            item = z3.And(self.matches(j, p, x, read(j)), self.last(i, x, read(j)))
            seen = z3.And(self.version(i) <= read(j), self.changed(i, j, p, x))
            return z3.Or(item, seen)

        return self.domain.exists((ROW, PREDICATE), through)

    def _rw(self, j: Z3Expr, i: Z3Expr) -> Z3Expr:
        """Return the formula that i overwrites a row j read, or changes a match unseen by j."""
        z3, read = self.z3, self.read

        def through(x: Z3Expr, p: Z3Expr) -> Z3Expr:
            item = z3.And(self.matches(j, p, x, read(j)), self.first(i, x, read(j)))
            missed = z3.And(read(j) < self.version(i), self.changed(i, j, p, x))
            return z3.Or(item, missed)

        return self.domain.exists((ROW, PREDICATE), through)

    def _removes_meets_reads(self, i: Z3Expr, j: Z3Expr) -> Z3Expr:
        return self.domain.exists(
            (FILE,), lambda f: self.z3.And(self.removes(i, f), self.read_file(j, f))
        )

    def _removes_meets_removes(self, i: Z3Expr, j: Z3Expr) -> Z3Expr:
        return self.domain.exists(
            (FILE,), lambda f: self.z3.And(self.removes(i, f), self.removes(j, f))
        )
