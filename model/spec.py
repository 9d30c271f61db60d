"""Syntax tree of specs, and the fold that evaluates it over an algebra.

A spec consists of axioms over named relations. The tree does not depend on an engine: each
interpretation (over bit masks, over SMT terms) is an ``Algebra``, and ``fold`` traverses the tree
for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeVar

from isolitmus.model.display import ReadableRepr, first_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

BinaryOp = Literal["|", ";", "\\", "&"]
UnaryOp = Literal["+", "*", "?", "^-1", "~"]
NameKind = Literal["relation", "set"]


@dataclass(frozen=True, slots=True)
class Name:
    """Base relation or set, or one that a ``let`` defines; sets are capitalized."""

    name: str

    @property
    def kind(self) -> NameKind:
        return "set" if self.name[0].isupper() else "relation"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Binary:
    r"""``a | b``, ``a & b``, ``a \ b`` on relations or on sets; ``a ; b`` on relations."""

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
    """``[S]``: identity relation on a set."""

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
    """``silent r as name``: pairs of transactions for which the source specifies nothing.

    The source says neither that both may commit nor that they may not. Axioms come first: what
    breaks one is forbidden, even if a silence applies.
    """

    expr: CatExpr
    name: str

    def __str__(self) -> str:
        return f"silent {self.expr} as {self.name}"

    @property
    def broken(self) -> Axiom:
        """Axiom that holds if nothing is left unspecified."""
        return Axiom("empty", self.expr, self.name)


@dataclass(frozen=True, slots=True)
class Binder:
    """``with ww from versions`` or ``with co from linearisations``: an order chosen existentially.

    The first is some version order, where the history does not observe it; the second is some order
    of the transactions.
    """

    name: str
    source: str


@dataclass(frozen=True, slots=True)
class Label:
    """``show S as name``: label that a run reports for the transactions in S (herd's ``show``)."""

    expr: CatExpr
    name: str


@dataclass(frozen=True, slots=True)
class Clause:
    """``lock reads S row until next``: action of an engine at other times than a commit.

    The words belong to its format (``model.format``, ``clauses``).
    """

    words: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.words)


@dataclass(frozen=True, slots=True)
class Spec(ReadableRepr):
    """Spec of a level or protocol, parsed from a text with a citation."""

    name: str
    """Name in the catalogue."""
    title: str
    """Description in one line."""
    source: str
    """Citation: its first comment."""
    text: str
    """Text of the file as it was read."""
    axioms: tuple[Axiom, ...]
    """Axioms, all of which a history has to satisfy."""
    definitions: Mapping[str, CatExpr]
    """``let`` definitions in order, those of included files first."""
    silences: tuple[Unsaid, ...] = ()
    """Parts that it leaves unspecified (``silent``)."""
    binders: tuple[Binder, ...] = ()
    """Orders that are chosen existentially (``with … from …``)."""
    given: Mapping[str, str] = field(default_factory=dict)
    """Sets that a history names (``given``), each with a description of its members."""
    labels: tuple[Label, ...] = ()
    """Labels that a run reports for transactions (``show``)."""
    promises: tuple[str, ...] = ()
    """Names of the levels that a protocol promises."""
    clauses: tuple[Clause, ...] = ()
    """Actions of its engine before a commit, interpreted by the format's functions."""
    format: str | None = None
    """Name of the format that it is checked in (``model.format``); None for a level, which is
    checked in any format.
    """
    setting: str = ""
    """Setting that the owner of a table uses to get it; empty if there is none."""
    confs: Mapping[str, str] = field(default_factory=dict)
    """Confs of Spark that its statements run with (``set "spark.… = …"``), by key."""
    runtime: str | None = None
    """Name of the runtime that it is read with (``runtime``); None if it does not depend on one."""
    at_most: str = ""
    """Reason why the history may be impossible even if the spec admits it (``at-most``); empty if
    none.
    """
    needs: frozenset[str] = frozenset()
    """Base names, and names of sets that a history names, which axioms, silences and labels use
    after all definitions are unfolded.
    """
    path: Path | None = None
    """Path of the file; None if the spec was generated."""
    places: Mapping[Axiom | Unsaid | Label | Name, str] = field(
        default_factory=dict, compare=False, repr=False
    )
    """Place in the text, ``FILE:LINE:COLUMN``, of each axiom, silence, label and definition."""

    @property
    def bound(self) -> Mapping[str, str]:
        """Source of each order that the spec binds, by the order's name.

        Examples
        --------
        >>> from isolitmus.specs import level
        >>> level("serializable").bound
        {'ww': 'versions'}
        """
        return {binder.name: binder.source for binder in self.binders}

    @property
    def demands(self) -> tuple[Axiom, ...]:
        """Axioms of frames that the spec admits: every axiom, and that nothing is unspecified."""
        return (*self.axioms, *(silence.broken for silence in self.silences))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        """Return the name, the title, clauses, axioms and silences."""
        parts = (*self.clauses, *self.axioms, *self.silences)
        return first_lines([f"{self.name}: {self.title}", *(f"  {part}" for part in parts)])


R = TypeVar("R")
S = TypeVar("S")


class Algebra(Protocol[R, S]):
    """Interpretation of specs: values R for relations and S for sets, with their operators."""

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
    """Evaluation of expressions over one algebra; each definition is evaluated once.

    ``r*`` is ``(r+)?``, so an algebra needs no third closure.
    """

    def __init__(self, algebra: Algebra[R, S], definitions: Mapping[str, CatExpr]) -> None:
        self._algebra = algebra
        self._definitions = definitions
        self._relations: dict[str, R] = {}
        self._sets: dict[str, S] = {}

    def relation(self, expr: CatExpr) -> R:
        """Return the relation that the expression denotes."""
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
        """Return the set that the expression denotes."""
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
        """Return the value of a name from `seen`, evaluating its definition or base term once."""
        if name not in seen:
            definition = self._definitions.get(name)
            seen[name] = base(name) if definition is None else fold(definition)
        return seen[name]


V = TypeVar("V")
