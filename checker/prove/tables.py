"""Histories over tables as formulas: what is primitive, and the relations of frames defined from it.

The definitions are those of ``checker.execution.frame`` and ``checker.delta.relations``, for any number
of transactions. Primitive are the version that a transaction became and the one that it read; which rows it wrote, and whether that
created the row; whether a row, as it stands in a version, matches a predicate that a transaction read
by; which row is none, but stands for the definition of the table, its columns and constraints; which
file holds a row in a version, which files a transaction recorded as read, which it removed.
A name that is not defined here (``adds-meets-reads``, ``Blind``, one of tomorrow) is primitive, too:
what is known of it are the premises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isolitmus.checker.prove.domain import FILE, PREDICATE, ROW, TRANSACTION, VERSION, Z3Expr, sort

if TYPE_CHECKING:
    from collections.abc import Callable

    from isolitmus.checker.prove.domain import Domain

__all__ = ["TableVocabulary"]


class TableVocabulary:
    """The vocabulary of tables over a domain."""

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
        """What first and last writers of a row are, and a read of all; and what versions there are."""
        return [
            self.domain.forall((TRANSACTION, PREDICATE, ROW, VERSION), self._sees_all),
            self.domain.forall((TRANSACTION, ROW, VERSION), self._first),
            self.domain.forall((TRANSACTION, ROW, VERSION), self._last),
            self.domain.forall((TRANSACTION,), lambda i: self.domain.within(self.version(i))),
            self.domain.forall((TRANSACTION,), lambda i: self.domain.within(self.version(i) - 1)),
            self.domain.forall((TRANSACTION,), lambda i: self.domain.within(self.read(i))),
        ]

    def reads_all(self, r: Z3Expr, p: Z3Expr, i: Z3Expr) -> Z3Expr:
        """The transaction r only reads: the whole version that i became, by the predicate p."""
        z3 = self.z3
        return z3.And(z3.Not(self.writer(r)), self.read(r) == self.version(i), self.sees_all(r, p))

    def _sees_all(self, r: Z3Expr, p: Z3Expr, x: Z3Expr, n: Z3Expr) -> Z3Expr:
        """What a predicate that all rows match says of one."""
        alike = self.matches(r, p, x, n) == self.there(x, n)
        return self.z3.Implies(self.sees_all(r, p), alike)

    def _first(self, k: Z3Expr, x: Z3Expr, n: Z3Expr) -> Z3Expr:
        """The first writer of a row after a version."""
        z3, v = self.z3, self.version
        none = self._nobody(x, lambda m: z3.And(n < v(m), v(m) < v(k)))
        return self.first(k, x, n) == z3.And(self.writes(k, x), n < v(k), none)

    def _last(self, k: Z3Expr, x: Z3Expr, n: Z3Expr) -> Z3Expr:
        """The last writer of a row up to a version."""
        z3, v = self.z3, self.version
        none = self._nobody(x, lambda m: z3.And(v(k) < v(m), v(m) <= n))
        return self.last(k, x, n) == z3.And(self.writes(k, x), v(k) <= n, none)

    def _nobody(self, x: Z3Expr, between: Callable[[Z3Expr], Z3Expr]) -> Z3Expr:
        z3 = self.z3
        return self.domain.forall(
            (TRANSACTION,), lambda m: z3.Not(z3.And(self.writes(m, x), between(m)))
        )

    def _halfway(self, _i: Z3Expr, _j: Z3Expr) -> Z3Expr:
        """A version holds what its commit left."""
        return self.z3.BoolVal(False, self.domain.context)

    def _function(self, name: str, *sorts: str, of: str = "") -> Any:
        context = self.domain.context
        result = sort(of, context) if of else self.z3.BoolSort(context)
        return self.z3.Function(name, *(sort(s, context) for s in sorts), result)

    def relation(self, name: str) -> Callable[[Z3Expr, Z3Expr], Z3Expr]:
        """A base relation, as a function of two transactions."""
        define = self._defined.get(name) or self._function(name, TRANSACTION, TRANSACTION)

        def pair(i: Z3Expr, j: Z3Expr) -> Z3Expr:
            key = (name, i.get_id(), j.get_id())
            if key not in self._made:
                self._made[key] = self.z3.And(i != j, define(i, j))
            return self._made[key]

        return pair

    def members(self, name: str) -> Callable[[Z3Expr], Z3Expr]:
        """A base set, as a function of a transaction."""
        base: Callable[[Z3Expr], Z3Expr] = self._function(name, TRANSACTION)
        return base

    def writer(self, i: Z3Expr) -> Z3Expr:
        """The transaction wrote, and so has a version."""
        return self.members("Writer")(i)

    def writes(self, i: Z3Expr, x: Z3Expr) -> Z3Expr:
        """The transaction created, changed or deleted the row."""
        return self.z3.And(self.writer(i), self._wrote(i, x))

    def creates(self, i: Z3Expr, x: Z3Expr) -> Z3Expr:
        """The transaction created the row."""
        return self.z3.And(self.writes(i, x), self.created(i, x))

    def changed(self, i: Z3Expr, j: Z3Expr, p: Z3Expr, x: Z3Expr) -> Z3Expr:
        """The write of i changed whether the row matches the predicate of j."""
        before = self.matches(j, p, x, self.version(i) - 1)
        after = self.matches(j, p, x, self.version(i))
        return self.z3.And(self.writes(i, x), before != after)

    def position(self, i: Z3Expr) -> Z3Expr:
        """Where a transaction stands in the order of the log: one that only reads, behind the version
        that it read.
        """
        return self.z3.If(self.writer(i), 2 * self.version(i), 2 * self.read(i) + 1)

    def _log(self, i: Z3Expr, j: Z3Expr) -> Z3Expr:
        return self.z3.And(self.writer(i), self.writer(j), self.version(i) < self.version(j))

    def _vis(self, i: Z3Expr, j: Z3Expr) -> Z3Expr:
        return self.z3.And(self.writer(i), self.version(i) <= self.read(j))

    def _unseen(self, i: Z3Expr, j: Z3Expr) -> Z3Expr:
        return self.z3.And(self._log(i, j), self.read(j) < self.version(i))

    def _ww(self, i: Z3Expr, j: Z3Expr) -> Z3Expr:
        return self.domain.exists(
            (ROW,),
            lambda x: self.z3.And(self.writes(i, x), self.first(j, x, self.version(i))),
        )

    def _wr(self, i: Z3Expr, j: Z3Expr) -> Z3Expr:
        z3, read = self.z3, self.read

        def through(x: Z3Expr, p: Z3Expr) -> Z3Expr:
            item = z3.And(self.matches(j, p, x, read(j)), self.last(i, x, read(j)))
            seen = z3.And(self.version(i) <= read(j), self.changed(i, j, p, x))
            return z3.Or(item, seen)

        return self.domain.exists((ROW, PREDICATE), through)

    def _rw(self, j: Z3Expr, i: Z3Expr) -> Z3Expr:
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
