"""What the quantifiers of a formula range over: everything, or a few things of each sort.

A formula is written once and read in two domains. In ``Everything`` a solver that finds its negation
unsatisfiable has proved it for any number of transactions. In ``Few`` the quantifiers are spelt out,
so that a model of its negation, a counterexample, is found in no time if there is a small one. Z3
has no types: its terms are ``Any`` here.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["FILE", "PREDICATE", "ROW", "TRANSACTION", "VERSION", "Domain", "Everything", "Few"]

Z3Expr = Any

TRANSACTION = "Transaction"
ROW = "Row"
FILE = "File"
PREDICATE = "Predicate"
VERSION = "Version"


class Domain(Protocol):
    """Sorts, and quantifiers over them; ``facts`` are what makes the domain what it is.

    Each has a context of the solver for itself, so that what it answers does not depend on what was
    asked before.
    """

    @property
    def context(self) -> Z3Expr: ...
    @property
    def facts(self) -> Sequence[Z3Expr]: ...
    def forall(self, sorts: Sequence[str], claim: Callable[..., Z3Expr]) -> Z3Expr: ...
    def exists(self, sorts: Sequence[str], claim: Callable[..., Z3Expr]) -> Z3Expr: ...
    def within(self, version: Z3Expr) -> Z3Expr: ...


def sort(name: str, context: Z3Expr) -> Z3Expr:
    """The sort as Z3 has it: versions are integers, of the others nothing is known."""
    import z3

    return z3.IntSort(context) if name == VERSION else z3.DeclareSort(name, context)


class Everything:
    """Any number of transactions, rows, files, predicates and versions; ``transactions``: at most so
    many of these, and then what is said of all is spelt out.
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
        """One quantifier for all that is not spelt out; the choices of what is spelt out around it."""
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


class Few:
    """So many transactions, rows and files, one predicate, and the versions from 0 to as many as
    there are transactions.
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
        """The transactions."""
        return self._members[TRANSACTION]

    def forall(self, sorts: Sequence[str], claim: Callable[..., Z3Expr]) -> Z3Expr:
        return self._z3.And([claim(*choice) for choice in self._choices(sorts)])

    def exists(self, sorts: Sequence[str], claim: Callable[..., Z3Expr]) -> Z3Expr:
        return self._z3.Or([claim(*choice) for choice in self._choices(sorts)])

    def within(self, version: Z3Expr) -> Z3Expr:
        return self._z3.Or([version == n for n in self._members[VERSION]])

    def _choices(self, sorts: Sequence[str]) -> product[tuple[Z3Expr, ...]]:
        return product(*(self._members[name] for name in sorts))
