"""The syntax tree of specs, and the fold that gives it meaning over an algebra.

A spec is axioms over named relations. The tree knows no engine: a *reading* (over bitsets, over
SMT terms) is an ``Algebra``, and ``fold`` walks the tree once for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeVar

from isolitmus.model.display import ReadableRepr, first_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = [
    "Algebra",
    "Axiom",
    "Binary",
    "Binder",
    "Bracket",
    "CatExpr",
    "Clause",
    "Fold",
    "Label",
    "Name",
    "Spec",
    "Unary",
    "Unsaid",
]

BinaryOp = Literal["|", ";", "\\", "&"]
UnaryOp = Literal["+", "*", "?", "^-1", "~"]
NameKind = Literal["relation", "set"]


@dataclass(frozen=True, slots=True)
class Name:
    """A base relation or set, or one that a ``let`` defined; capitals are sets."""

    name: str

    @property
    def kind(self) -> NameKind:
        return "set" if self.name[0].isupper() else "relation"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Binary:
    r"""``a | b``, ``a & b``, ``a \\ b`` on relations or on sets; ``a ; b`` on relations."""

    op: BinaryOp
    left: CatExpr
    right: CatExpr

    @property
    def kind(self) -> NameKind:
        return self.left.kind

    def __str__(self) -> str:
        return f"({self.left} {self.op} {self.right})"


@dataclass(frozen=True, slots=True)
class Unary:
    """``r+``, ``r*``, ``r?``, ``r^-1`` on relations; ``~S``, the complement, on sets."""

    op: UnaryOp
    operand: CatExpr

    @property
    def kind(self) -> NameKind:
        return self.operand.kind

    def __str__(self) -> str:
        return f"~{self.operand}" if self.op == "~" else f"{self.operand}{self.op}"


@dataclass(frozen=True, slots=True)
class Bracket:
    """``[S]``: the identity on a set, a relation."""

    operand: CatExpr

    @property
    def kind(self) -> NameKind:
        return "relation"

    def __str__(self) -> str:
        return f"[{self.operand}]"


CatExpr = Name | Binary | Unary | Bracket


@dataclass(frozen=True, slots=True)
class Axiom:
    """``acyclic r as name``, ``irreflexive r as name`` or ``empty r as name``."""

    test: Literal["acyclic", "irreflexive", "empty"]
    expr: CatExpr
    name: str

    def __str__(self) -> str:
        return f"{self.test} {self.expr} as {self.name}"


@dataclass(frozen=True, slots=True)
class Unsaid:
    """``silent r as name``: of two transactions that r relates the source says nothing, neither
    that both may commit nor that they may not. Axioms come first: what breaks one is forbidden,
    silence or not.
    """

    expr: CatExpr
    name: str

    def __str__(self) -> str:
        return f"silent {self.expr} as {self.name}"

    @property
    def broken(self) -> Axiom:
        """The axiom that holds where nothing is left unsaid."""
        return Axiom("empty", self.expr, self.name)


@dataclass(frozen=True, slots=True)
class Binder:
    """``with ww from versions``: some version order, where the history does not observe it; ``with
    co from linearisations``: some order of the transactions.
    """

    name: str
    source: str


@dataclass(frozen=True, slots=True)
class Label:
    """``show S as name``: what a run reports of the transactions in S (herd's ``show``)."""

    expr: CatExpr
    name: str


@dataclass(frozen=True, slots=True)
class Clause:
    """``lock reads S row until next``: what an engine does at other moments than a commit, in words
    of its format (``model.format``, ``clauses``).
    """

    words: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.words)


@dataclass(frozen=True, slots=True)
class Spec(ReadableRepr):
    """A level or a protocol: one cited text."""

    name: str
    """What the catalogue calls it."""
    title: str
    """What it is, in a line."""
    source: str
    """What it is cited from: its first comment."""
    text: str
    """The file as it was read."""
    axioms: tuple[Axiom, ...]
    """All of which a history is to satisfy."""
    definitions: Mapping[str, CatExpr]
    """The ``let``s in order, with those of included files first."""
    silences: tuple[Unsaid, ...] = ()
    """What it says nothing of (``silent``)."""
    binders: tuple[Binder, ...] = ()
    """The orders of which some one will do (``with … from …``)."""
    given: Mapping[str, str] = field(default_factory=dict)
    """The sets that a history names (``given``), each with who is in it."""
    labels: tuple[Label, ...] = ()
    """What a run reports of transactions (``show``)."""
    promises: tuple[str, ...] = ()
    """The levels that a protocol is there for, by name."""
    clauses: tuple[Clause, ...] = ()
    """What its engine does before a commit, which the format's functions read."""
    format: str | None = None
    """The name of what it is checked in (``model.format``); None: a level, which is checked in
    any.
    """
    setting: str = ""
    """What whoever owns a table sets to get it, empty if nothing does."""
    runtime: str | None = None
    """The name of the runtime that it is read with (``runtime``); None: it does not depend on
    one.
    """
    at_most: str = ""
    """Why what it admits may still not be there, empty if it is (``at-most``)."""
    needs: frozenset[str] = frozenset()
    """The base names, and those of sets that a history names, that axioms, silences and labels use
    once every definition is unfolded.
    """
    path: Path | None = None
    """Where the file is; None: it was made up."""

    @property
    def bound(self) -> Mapping[str, str]:
        """The source of each order that it binds, by the order's name.

        >>> from isolitmus.specs import level
        >>> level("serializable").bound
        {'ww': 'versions'}
        """
        return {binder.name: binder.source for binder in self.binders}

    @property
    def demands(self) -> tuple[Axiom, ...]:
        """What a frame satisfies that it admits: every axiom, and that nothing is left unsaid."""
        return (*self.axioms, *(silence.broken for silence in self.silences))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        """What it is called, its clauses, axioms and silences."""
        parts = (*self.clauses, *self.axioms, *self.silences)
        return first_lines([f"{self.name}: {self.title}", *(f"  {part}" for part in parts)])


R = TypeVar("R")
S = TypeVar("S")


class Algebra(Protocol[R, S]):
    """What a reading must give: values R for relations and S for sets, and the operators on
    them.
    """

    def relation(self, name: str) -> R: ...
    def members(self, name: str) -> S: ...
    def union(self, a: R, b: R) -> R: ...
    def intersection(self, a: R, b: R) -> R: ...
    def difference(self, a: R, b: R) -> R: ...
    def compose(self, a: R, b: R) -> R: ...
    def plus(self, a: R) -> R: ...
    def reflexive(self, a: R) -> R: ...
    def inverse(self, a: R) -> R: ...
    def identity(self, on: S) -> R: ...
    def set_union(self, a: S, b: S) -> S: ...
    def set_intersection(self, a: S, b: S) -> S: ...
    def set_difference(self, a: S, b: S) -> S: ...
    def complement(self, a: S) -> S: ...


class Fold(Generic[R, S]):
    """The meaning of expressions over one algebra; each definition is evaluated once.

    ``r*`` is ``(r+)?``, so an algebra needs no third closure.
    """

    def __init__(self, algebra: Algebra[R, S], definitions: Mapping[str, CatExpr]) -> None:
        self._algebra = algebra
        self._definitions = definitions
        self._relations: dict[str, R] = {}
        self._sets: dict[str, S] = {}

    def relation(self, expr: CatExpr) -> R:
        """The relation that the expression denotes."""
        a = self._algebra
        match expr:
            case Name(name):
                return self._named(name, self._relations, self.relation, a.relation)
            case Bracket(operand):
                return a.identity(self.members(operand))
            case Binary("|", left, right):
                return a.union(self.relation(left), self.relation(right))
            case Binary("&", left, right):
                return a.intersection(self.relation(left), self.relation(right))
            case Binary("\\", left, right):
                return a.difference(self.relation(left), self.relation(right))
            case Binary(";", left, right):
                return a.compose(self.relation(left), self.relation(right))
            case Unary("+", operand):
                return a.plus(self.relation(operand))
            case Unary("*", operand):
                return a.reflexive(a.plus(self.relation(operand)))
            case Unary("?", operand):
                return a.reflexive(self.relation(operand))
            case Unary("^-1", operand):
                return a.inverse(self.relation(operand))
        raise AssertionError(f"the reader lets no {expr} through as a relation")

    def members(self, expr: CatExpr) -> S:
        """The set that the expression denotes."""
        a = self._algebra
        match expr:
            case Name(name):
                return self._named(name, self._sets, self.members, a.members)
            case Binary("|", left, right):
                return a.set_union(self.members(left), self.members(right))
            case Binary("&", left, right):
                return a.set_intersection(self.members(left), self.members(right))
            case Binary("\\", left, right):
                return a.set_difference(self.members(left), self.members(right))
            case Unary("~", operand):
                return a.complement(self.members(operand))
        raise AssertionError(f"the reader lets no {expr} through as a set")

    def _named(
        self, name: str, seen: dict[str, V], fold: Callable[[CatExpr], V], base: Callable[[str], V]
    ) -> V:
        if name not in seen:
            definition = self._definitions.get(name)
            seen[name] = base(name) if definition is None else fold(definition)
        return seen[name]


V = TypeVar("V")
