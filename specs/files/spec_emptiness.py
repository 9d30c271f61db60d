r"""Expressions of specs that are empty by their text: in every dependency graph, whatever happens.

An abstract interpretation of the syntax tree: each relation is approximated by facts that hold in
every graph (`RelationFacts`), each set by the kinds of nodes that can be in it, exactly up to the
names of sets. The analysis is sound, not complete: what it calls empty is empty, and it finds the
usual slips, such as ``[Writer] ; rw ; [Writer] & log^-1``, where ``&`` binds before ``;`` and
intersects an identity with a relation between different transactions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import TYPE_CHECKING, Literal, NamedTuple

from isolitmus.model.spec import Axiom, Binary, Bracket, Fold, Label, Name, Unary, Unsaid
from isolitmus.model.spec_algebra import names_behind, unfold
from isolitmus.specs.language.printer import expr_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.model.spec import CatExpr, Spec

ORDERS = {"log": "log", "unseen": "log", "co": "co", "rt": "rt", "time": "time"}
"""Strict order that contains each of these relations; all pairs of one follow the same order."""
IRREFLEXIVE = frozenset(
    (
        "so", "wr", "ww", "rw", "intermediate", "wr-item", "wr-predicate", "rw-item",
        "rw-predicate", "rf", "po", "in", "rival", "fr", "wr-read", "loc", "vis", *ORDERS,
    )
)  # fmt: skip
"""Base relations that relate no node to itself."""
OPERATION = "(operation)"
"""Name of the set of all nodes that are operations; the other nodes are transactions."""
OF_TRANSACTIONS = ("Writer", "Reader", "Aborted", "Initial")
OF_OPERATIONS = ("ItemRead", "PredicateRead", "Write")
DISJOINT = (("Writer", "Reader"), *combinations(OF_OPERATIONS, 2))
"""Pairs of sets that have no common member."""
ENDS: dict[str, tuple[bool, bool]] = {
    **dict.fromkeys(
        (
            "so", "wr", "ww", "rw", "intermediate", "wr-item", "wr-predicate", "rw-item",
            "rw-predicate", "log", "unseen", "vis", "co", "rt",
        ),
        (False, False),
    ),
    **dict.fromkeys(("rf", "rival", "wr-read"), (False, True)),
    **dict.fromkeys(("in", "fr"), (True, False)),
    **dict.fromkeys(("po", "loc"), (True, True)),
}  # fmt: skip
"""Whether the first and the second node of each pair of a relation are operations."""
MOST_SETS = 10
"""Maximum number of names of sets that are told apart in an expression; others may be anything."""


NOTHING: frozenset[CatExpr] = frozenset()


@dataclass(frozen=True, slots=True)
class RelationFacts:
    """Facts about a relation that hold in every dependency graph."""

    expr: CatExpr
    """Expression that denotes the relation, definitions unfolded."""
    sources: int
    """Kinds of nodes that can come first in a pair, as a mask."""
    targets: int
    """Kinds of nodes that can come second in a pair, as a mask."""
    empty: Emptiness | None = None
    """Innermost expression that is empty, and makes this one empty; None if it may have pairs."""
    identity: bool = False
    """True if each pair relates a node to itself."""
    irreflexive: bool = False
    """True if no pair relates a node to itself."""
    loops: int = 0
    """Kinds of nodes each of which is related to itself, as a mask."""
    ahead: frozenset[str] = frozenset()
    """Strict orders that contain the relation."""
    behind: frozenset[str] = frozenset()
    """Strict orders whose inverse contains the relation."""
    within: frozenset[CatExpr] = frozenset()
    """Relations that contain it."""
    contains: frozenset[CatExpr] = frozenset()
    """Relations that it contains."""
    apart: frozenset[CatExpr] = frozenset()
    """Relations without a pair in common with it."""


@dataclass(frozen=True, slots=True)
class SetFacts:
    """Kinds of nodes that may be in a set, and kinds that are in it, as masks."""

    expr: CatExpr
    most: int
    least: int


class Emptiness(NamedTuple):
    """Expression that is empty in every dependency graph, with the reason."""

    expr: CatExpr
    why: str


class EmptyPart(NamedTuple):
    """Statement or definition of a spec that is empty by its text."""

    what: Literal["axiom", "silence", "show", "let"]
    name: str
    """Name of the axiom, silence, label or definition."""
    place: str
    """Place in the text, ``FILE:LINE:COLUMN``; empty if the spec was not read from a text."""
    emptiness: Emptiness
    """Innermost empty expression."""
    meant: str
    """Expression that the author may have meant; empty if none is likely."""

    @property
    def words(self) -> str:
        """Statement about the part, with the reason and a likely fix.

        Examples
        --------
        >>> from isolitmus.specs.language.parser import read
        >>> late = read('"Mine" empty [Writer] ; rw ; [Writer] & rw^-1 as late', "mine")
        >>> print(find_empty_parts(late)[0].words)
        axiom late cannot fail: it is always empty, because in '[Writer] & rw^-1' the one relates \
nodes only to themselves, the other none to itself; '&' binds before ';', did you mean \
'([Writer] ; rw ; [Writer]) & rw^-1'?
        """
        says = {
            "axiom": f"axiom {self.name} cannot fail: it is always empty",
            "silence": f"silent … as {self.name} leaves nothing unspecified: it is always empty",
            "show": f"show … as {self.name} labels no transaction: it is always empty",
            "let": f"let {self.name} is always empty",
        }[self.what]
        hint = f"; '&' binds before ';', did you mean '{self.meant}'?" if self.meant else ""
        return f"{says}, because {self.emptiness.why}{hint}"

    def __str__(self) -> str:
        return f"{self.place}: {self.words}" if self.place else self.words


def find_empty_parts(spec: Spec) -> tuple[EmptyPart, ...]:
    r"""Return the axioms, silences, labels and relations that are empty by their text.

    A set may be defined as empty on purpose.

    Examples
    --------
    >>> from isolitmus.specs.language.parser import read
    >>> text = r'"Mine" let both = wr \ (wr | ww) empty both ; rw as none acyclic wr as order'
    >>> [(part.what, part.name) for part in find_empty_parts(read(text, "mine"))]
    [('let', 'both'), ('axiom', 'none')]
    """
    return tuple(_empty_parts(spec))


def _empty_parts(spec: Spec) -> Iterator[EmptyPart]:
    definitions = spec.definitions
    for name, body in definitions.items():
        if body.kind == "set":
            continue  # `let None = S \ S` is how a text names the empty set on purpose
        yield from _empty_part("let", name, Name(name), body, spec)
    for axiom in spec.axioms:
        yield from _empty_part("axiom", axiom.name, axiom, axiom.expr, spec)
    for silence in spec.silences:
        yield from _empty_part("silence", silence.name, silence, silence.expr, spec)
    for label in spec.labels:
        yield from _empty_part("show", label.name, label, label.expr, spec)


def _empty_part(
    what: Literal["axiom", "silence", "show", "let"],
    name: str,
    key: Axiom | Unsaid | Label | Name,
    expr: CatExpr,
    spec: Spec,
) -> Iterator[EmptyPart]:
    """Yield the part if its expression is always empty."""
    emptiness = find_emptiness(expr, spec.definitions)
    if emptiness is not None:
        meant = _meant(expr, emptiness.expr, spec.definitions)
        yield EmptyPart(what, name, spec.places.get(key, ""), emptiness, meant)


def find_emptiness(expr: CatExpr, definitions: Mapping[str, CatExpr]) -> Emptiness | None:
    r"""Return why an expression is empty in every dependency graph; None if it may be non-empty.

    Parameters
    ----------
    expr : CatExpr
        Relation or set.
    definitions : mapping of str to CatExpr
        Definitions that it may use.

    Examples
    --------
    >>> from isolitmus.specs.language.parser import read
    >>> spec = read(r'"Mine" empty [Writer] ; (wr \ ww) & ww as mine', "mine")
    >>> print(find_emptiness(spec.axioms[0].expr, spec.definitions).why)
    in '(wr \ ww) & ww' the one excludes the other
    >>> find_emptiness(Name("wr"), {}) is None
    True
    """
    sets = (mention.name for mention in names_behind([expr], definitions) if mention.kind == "set")
    names = tuple(dict.fromkeys(name for name in sets if name not in definitions))
    analysis = Fold(_Facts(names[:MOST_SETS]), definitions)
    if expr.kind == "relation":
        return analysis.relation(expr).empty
    return None if analysis.members(expr).most else _no_members(expr)


def _kinds(names: tuple[str, ...]) -> list[frozenset[str]]:
    """Return the kinds of nodes: each a possible choice of the sets that a node is in."""
    kinds = []
    for chosen in product((False, True), repeat=len(names) + 1):
        kind = frozenset(
            name for name, inside in zip((OPERATION, *names), chosen, strict=True) if inside
        )
        foreign = OF_TRANSACTIONS if OPERATION in kind else OF_OPERATIONS
        if kind.isdisjoint(foreign) and not any(kind >= {*pair} for pair in DISJOINT):
            kinds.append(kind)
    return kinds


class _Facts:
    """Algebra of facts: relations as `RelationFacts`, sets as `SetFacts`.

    ``names`` are the sets that are told apart; any node may be in another one.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        kinds = _kinds(names)
        self.everything = (1 << len(kinds)) - 1
        self._kinds_in = {
            name: sum(1 << k for k, kind in enumerate(kinds) if name in kind)
            for name in (OPERATION, *names)
        }

    def relation(self, name: str) -> RelationFacts:
        operations = self._kinds_in[OPERATION]
        sources = targets = self.everything
        if name in ENDS:
            sources, targets = (
                operations if is_operation else self.everything & ~operations
                for is_operation in ENDS[name]
            )
        base: CatExpr = Name(name)
        own = frozenset({base})
        return RelationFacts(
            base, sources, targets, irreflexive=name in IRREFLEXIVE,
            ahead=frozenset({ORDERS[name]} if name in ORDERS else ()), within=own, contains=own,
        )  # fmt: skip

    def members(self, name: str) -> SetFacts:
        if name not in self._kinds_in:
            return SetFacts(Name(name), self.everything, 0)
        return SetFacts(Name(name), self._kinds_in[name], self._kinds_in[name])

    def union(self, a: RelationFacts, b: RelationFacts) -> RelationFacts:
        expr = Binary("|", a.expr, b.expr)
        if a.empty or b.empty:
            rest = b if a.empty else a
            within, contains = rest.within | {expr}, rest.contains | {expr}
            return replace(rest, expr=expr, within=within, contains=contains)
        return RelationFacts(
            expr,
            a.sources | b.sources,
            a.targets | b.targets,
            identity=a.identity and b.identity,
            irreflexive=a.irreflexive and b.irreflexive,
            loops=a.loops | b.loops,
            ahead=a.ahead & b.ahead,
            behind=a.behind & b.behind,
            within=(a.within & b.within) | {expr},
            contains=a.contains | b.contains | {expr},
            apart=a.apart & b.apart,
        )

    def intersection(self, a: RelationFacts, b: RelationFacts) -> RelationFacts:
        expr = Binary("&", a.expr, b.expr)
        facts = RelationFacts(
            expr,
            a.sources & b.sources,
            a.targets & b.targets,
            identity=a.identity or b.identity,
            irreflexive=a.irreflexive or b.irreflexive,
            loops=a.loops & b.loops,
            ahead=a.ahead | b.ahead,
            behind=a.behind | b.behind,
            within=a.within | b.within | {expr},
            contains=(a.contains & b.contains) | {expr},
            apart=a.apart | b.apart,
        )
        if facts.identity:
            ends = facts.sources & facts.targets
            facts = replace(facts, sources=ends, targets=ends)
        return replace(facts, empty=a.empty or b.empty or _disjoint(a, b, facts))

    def difference(self, a: RelationFacts, b: RelationFacts) -> RelationFacts:
        expr = Binary("\\", a.expr, b.expr)
        if b.empty:
            return replace(a, expr=expr, within=a.within | {expr}, contains=a.contains | {expr})
        # Of an identity, the nodes remain that the other does not relate to themselves.
        gone = b.loops if a.identity else 0
        empty = a.empty
        if empty is None and (a.within & b.contains or not a.sources & ~gone):
            empty = Emptiness(expr, f"in '{expr_text(expr)}' the second contains the first")
        return replace(
            a,
            expr=expr,
            sources=a.sources & ~gone,
            targets=a.targets & ~gone,
            empty=empty,
            irreflexive=a.irreflexive or b.loops == self.everything,
            loops=a.loops if b.irreflexive else a.loops & ~(b.sources & b.targets),
            within=a.within | {expr},
            contains=frozenset({expr}),
            apart=a.apart | b.contains,
        )

    def compose(self, a: RelationFacts, b: RelationFacts) -> RelationFacts:
        expr = Binary(";", a.expr, b.expr)
        empty = a.empty or b.empty
        if empty is None and not a.targets & b.sources:
            first, second = expr_text(a.expr), expr_text(b.expr)
            empty = Emptiness(expr, f"no node can end '{first}' and begin '{second}'")
        sources = a.sources & b.sources if a.identity else a.sources
        targets = a.targets & b.targets if b.identity else b.targets
        if a.identity and b.identity:
            sources = targets = sources & targets
        # Composed with an identity, a relation loses pairs and gains none.
        wholes = [whole for whole, beside in ((a, b), (b, a)) if beside.identity]
        ahead, behind = a.ahead & b.ahead, a.behind & b.behind
        for whole in wholes:
            ahead, behind = ahead | whole.ahead, behind | whole.behind
        return RelationFacts(
            expr,
            sources,
            targets,
            empty,
            identity=a.identity and b.identity,
            irreflexive=bool(ahead or behind) or any(whole.irreflexive for whole in wholes),
            loops=a.loops & b.loops,
            ahead=ahead,
            behind=behind,
            within=NOTHING.union({expr}, *(whole.within for whole in wholes)),
            contains=frozenset({expr}),
            apart=NOTHING.union(*(whole.apart for whole in wholes)),
        )

    def plus(self, a: RelationFacts) -> RelationFacts:
        expr = Unary("+", a.expr)
        return replace(
            a,
            expr=expr,
            irreflexive=bool(a.ahead or a.behind),
            within=(a.within if a.identity else NOTHING) | {expr},
            contains=a.contains | {expr},
            apart=a.apart if a.identity else NOTHING,
        )

    def reflexive(self, a: RelationFacts) -> RelationFacts:
        match a.expr:
            case Unary("+", operand):
                expr = Unary("*", operand)
            case _:
                expr = Unary("?", a.expr)
        return RelationFacts(
            expr,
            self.everything,
            self.everything,
            identity=a.identity or a.empty is not None,
            loops=self.everything,
            within=frozenset({expr}),
            contains=a.contains | {expr},
        )

    def inverse(self, a: RelationFacts) -> RelationFacts:
        return replace(
            a,
            expr=_inverse(a.expr),
            sources=a.targets,
            targets=a.sources,
            ahead=a.behind,
            behind=a.ahead,
            within=frozenset(map(_inverse, a.within)),
            contains=frozenset(map(_inverse, a.contains)),
            apart=frozenset(map(_inverse, a.apart)),
        )

    def identity(self, on: SetFacts) -> RelationFacts:
        expr = Bracket(on.expr)
        empty = None if on.most else _no_members(on.expr)
        own = frozenset({expr})
        return RelationFacts(
            expr, on.most, on.most, empty, identity=True, loops=on.least, within=own, contains=own
        )

    def set_union(self, a: SetFacts, b: SetFacts) -> SetFacts:
        return SetFacts(Binary("|", a.expr, b.expr), a.most | b.most, a.least | b.least)

    def set_intersection(self, a: SetFacts, b: SetFacts) -> SetFacts:
        return SetFacts(Binary("&", a.expr, b.expr), a.most & b.most, a.least & b.least)

    def set_difference(self, a: SetFacts, b: SetFacts) -> SetFacts:
        return SetFacts(Binary("\\", a.expr, b.expr), a.most & ~b.least, a.least & ~b.most)

    def complement(self, a: SetFacts) -> SetFacts:
        everything = self.everything
        return SetFacts(Unary("~", a.expr), everything & ~a.least, everything & ~a.most)


def _no_members(expr: CatExpr) -> Emptiness:
    return Emptiness(expr, f"no node can be in '{expr_text(expr)}'")


def _disjoint(a: RelationFacts, b: RelationFacts, meet: RelationFacts) -> Emptiness | None:
    """Return why two relations have no pair in common; None if they may have one."""
    text = expr_text(meet.expr)
    if meet.identity and meet.irreflexive:
        one = "the one relates nodes only to themselves, the other none to itself"
        return Emptiness(meet.expr, f"in '{text}' {one}")
    for order in sorted((a.ahead & b.behind) | (a.behind & b.ahead)):
        return Emptiness(meet.expr, f"in '{text}' the one follows {order}, the other its inverse")
    if not (meet.sources and meet.targets):
        return Emptiness(meet.expr, f"in '{text}' the two have no node in common at one end")
    if a.within & b.apart or b.within & a.apart:
        return Emptiness(meet.expr, f"in '{text}' the one excludes the other")
    return None


def _inverse(expr: CatExpr) -> CatExpr:
    match expr:
        case Unary("^-1", operand):
            return operand
        case Bracket():
            return expr
    return Unary("^-1", expr)


def _meant(expr: CatExpr, culprit: CatExpr, definitions: Mapping[str, CatExpr]) -> str:
    """Return the expression that is likely meant where an intersection ends a sequence.

    ``a ; b & c`` is ``a ; (b & c)``; if that is empty and ``(a ; b) & c`` is not, the author
    probably meant the latter. The text is empty if there is no such expression.
    """
    if not (isinstance(culprit, Binary) and culprit.op == "&"):
        return ""
    for sequence in _sequences(unfold(expr, definitions)):
        candidates = []
        if sequence[-1] == culprit:
            candidates.append(Binary("&", _sequence((*sequence[:-1], culprit.left)), culprit.right))
        if sequence[0] == culprit:
            candidates.append(Binary("&", culprit.left, _sequence((culprit.right, *sequence[1:]))))
        for candidate in candidates:
            if find_emptiness(candidate, {}) is None:
                return expr_text(candidate)
    return ""


def _sequences(expr: CatExpr) -> Iterator[tuple[CatExpr, ...]]:
    """Yield the parts of each maximal ``a ; b ; …`` in an expression."""
    if isinstance(expr, Binary) and expr.op == ";":
        parts = _parts(expr)
        yield parts
    elif isinstance(expr, Binary):
        parts = (expr.left, expr.right)
    else:
        parts = () if isinstance(expr, Name) else (expr.operand,)
    for part in parts:
        yield from _sequences(part)


def _parts(expr: CatExpr) -> tuple[CatExpr, ...]:
    if isinstance(expr, Binary) and expr.op == ";":
        return (*_parts(expr.left), *_parts(expr.right))
    return (expr,)


def _sequence(parts: tuple[CatExpr, ...]) -> CatExpr:
    whole, *rest = parts
    for part in rest:
        whole = Binary(";", whole, part)
    return whole
