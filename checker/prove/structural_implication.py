r"""What one level's text implies of another's, whatever the histories are: inclusions of relations
by their form.

What an axiom forbids is a word: so ; wr ; rw from a transaction to itself. Of relations that are
built by ``|``, ``;``, ``+``, ``*``, ``?`` and ``[S]`` the words are a regular language with tests,
and one language within another means one relation within another, in every frame (Kozen and Smith,
Kleene algebra with tests: completeness and decidability, CSL 1996). What is built otherwise (``&``,
``\``, ``^-1``) is a letter; of these some contain others. Whoever says "acyclic r" says of r+ that
it relates nobody to himself, so

- ``acyclic s`` follows if s+ lies within what the first spec says relates nobody to himself: the r+
  of what is acyclic, what is irreflexive, what is empty; so does ``irreflexive s`` of s, and what
  may be walked round a circle may begin anywhere in it: r ; s is irreflexive just if s ; r is;
- ``empty s`` follows if s lies within what it says is empty; of ``intermediate`` also if wr ; rw is
  irreflexive, for who reads what its writer overwrote has missed that.

Where the nodes are the transactions alone, it is known besides that wr and ww come from writers,
and that ww and rw lead to them (ENDS), and that who is no writer only reads. What comes from
writers alone and leads back, leads to a writer.

Where reads are nodes, a frame has more of everything than one without. So a spec that looks at
reads may imply one that does not, if both can only lose frames by more pairs; the other way round
says nothing.

Orders that a binder supposes are the same on both sides, so one that suits the first spec suits the
second. What the two suppose of one name in different ways shows nothing. Sufficient, not necessary:
of what is not found here, a search may still find nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

from isolitmus.checker.judge.read_nodes import needs_reads
from isolitmus.checker.judge.spec_properties import is_increasing
from isolitmus.model.spec import Binary, Bracket, Name, Unary
from isolitmus.model.spec_algebra import names_in, unfold
from isolitmus.model.vocabulary import APART

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from isolitmus.model.spec import Axiom, CatExpr, Spec

__all__ = ["ENDS", "Implication", "derive_from_texts", "is_included"]

WRITER = Bracket(Name("Writer"))
PLAIN = frozenset({"Writer", "Reader"})
"""In one of which each transaction is."""
ENDS: Mapping[str, tuple[CatExpr | None, CatExpr | None]] = {
    "wr": (WRITER, None),
    "ww": (WRITER, WRITER),
    "rw": (None, WRITER),
    "wr-item": (WRITER, None),
    "wr-predicate": (WRITER, None),
    "rw-item": (None, WRITER),
    "rw-predicate": (None, WRITER),
    "intermediate": (WRITER, None),
}
"""Where relations come from and lead to, in frames whose nodes are the transactions."""
InSets = frozenset[str]
"""The base sets that a transaction is in."""
Rest = tuple["CatExpr", ...]
"""What is still to be walked, one after the other."""


@dataclass(frozen=True, slots=True)
class Implication:
    """Why a spec admits nothing that another forbids: for each axiom of that one, those of the
    first that it follows from.
    """

    a: str
    b: str
    grounds: tuple[tuple[str, tuple[str, ...]], ...]

    def __str__(self) -> str:
        new = ((axiom, given) for axiom, given in self.grounds if given != (axiom,))
        said = [f"{axiom} follows from {' and '.join(given)}" for axiom, given in new]
        return "; ".join(said) or "every axiom follows from that of its name"


def derive_from_texts(a: Spec, b: Spec, *, reads: bool = False) -> Implication | None:
    """Why ``a`` admits nothing that ``b`` forbids, by their texts alone; None if these do not show
    it. ``reads``: in frames where reads are nodes whatever the spec.

    >>> from isolitmus.specs import level
    >>> print(derive_from_texts(level("snapshot-isolation"), level("prefix-consistency")))
    commit-order follows from snapshot
    >>> derive_from_texts(level("prefix-consistency"), level("snapshot-isolation"))
    """
    if not _same_orders(a, b):
        return None
    if (
        not reads
        and needs_reads(a) != needs_reads(b)
        and not (needs_reads(a) and is_increasing(a) and is_increasing(b))
    ):
        return None
    known = not (reads or needs_reads(a) or needs_reads(b))
    grounds = []
    for goal in b.demands:
        expr = unfold(goal.expr, b.definitions)
        found = _grounds(a, goal, _with_ends(expr) if known else expr, plain=known)
        if found is None:
            return None
        grounds.append((goal.name, found))
    return Implication(a.name, b.name, tuple(grounds))


def _same_orders(a: Spec, b: Spec) -> bool:
    """Whether what both look at is supposed in one way; the orders of versions may also be
    observed.
    """
    looked = {"ww" if name == "rw" else name for name in a.needs} & {
        "ww" if name == "rw" else name for name in b.needs
    }
    ways = ({a.bound.get(name), b.bound.get(name)} for name in looked)
    return all(len(way) == 1 or way == {None, "versions"} for way in ways)


def _grounds(a: Spec, goal: Axiom, expr: CatExpr, *, plain: bool) -> tuple[str, ...] | None:
    """The axioms of ``a`` that the goal follows from: one, or else all together."""
    given = [(axiom, unfold(axiom.expr, a.definitions)) for axiom in a.demands]
    if goal.test == "empty":
        given = [(axiom, e) for axiom, e in given if axiom.test == "empty"]
        walks = [expr]
        facts = [(axiom.name, [e]) for axiom, e in given]
    else:
        turned = _turned(expr)
        walks = [Unary("+", one) if goal.test == "acyclic" else one for one in turned]
        walks += [Binary(";", walk, WRITER) for walk in walks if _from_writers(walk)]
        facts = [(axiom.name, _never_back(axiom, e)) for axiom, e in given]
    every = [fact for _, some in facts for fact in some]
    for name, some in facts:
        if any(_known(walk, tuple(some), plain=plain) for walk in walks):
            return (name,)
    if len(facts) > 1 and any(_known(walk, tuple(every), plain=plain) for walk in walks):
        return tuple(name for name, _ in facts)
    circle = _halfway(expr) if goal.test == "empty" else None
    return (
        None
        if circle is None
        else _grounds(a, replace(goal, test="irreflexive"), circle, plain=plain)
    )


def _halfway(expr: CatExpr) -> CatExpr | None:
    """Of ``intermediate``, of some transactions: the circle of wr and rw that each pair of it is
    on.
    """
    steps = list(_sequence(expr))
    if [one for one in steps if not isinstance(one, Bracket)] != [Name("intermediate")]:
        return None
    walked = [Name("wr") if one == Name("intermediate") else one for one in steps]
    return _together([*walked, Name("rw")])


def _with_ends(expr: CatExpr) -> CatExpr:
    """The expression, in which each relation says where it comes from and leads to."""
    match expr:
        case Name(name) if name in ENDS:
            first, last = ENDS[name]
            return _together([step for step in (first, expr, last) if step is not None])
        case Unary(op, operand) if expr.kind == "relation":
            return Unary(op, _with_ends(operand))
        case Binary("&" | "\\", _, _):
            return expr
        case Binary(op, left, right) if expr.kind == "relation":
            return Binary(op, _with_ends(left), _with_ends(right))
    return expr


def _from_writers(walk: CatExpr) -> bool:
    """Whether it begins at writers only, and goes somewhere."""
    others = [atom for atom in _atoms([walk]) if "Writer" not in atom]
    return not any(_ends((walk,), atom) or _steps((walk,), atom) for atom in others)


def _never_back(axiom: Axiom, expr: CatExpr) -> list[CatExpr]:
    """What relates nobody to himself, because of an axiom."""
    match axiom.test:
        case "acyclic":
            return [Unary("+", one) for one in _turned(expr)]
        case "irreflexive":
            return _turned(expr)
        case "empty":
            return [expr]


def _turned(expr: CatExpr) -> list[CatExpr]:
    """The same circles, begun at each step of a sequence."""
    steps = list(_sequence(expr))
    return [_together([*steps[k:], *steps[:k]]) for k in range(len(steps))]


def _sequence(expr: CatExpr) -> Iterator[CatExpr]:
    match expr:
        case Binary(";", left, right):
            yield from _sequence(left)
            yield from _sequence(right)
        case _:
            yield expr


def _together(steps: list[CatExpr]) -> CatExpr:
    whole = steps[0]
    for step in steps[1:]:
        whole = Binary(";", whole, step)
    return whole


@lru_cache(1 << 14)
def _known(inner: CatExpr, outer: Rest, *, plain: bool) -> bool:
    """``included``: levels have axioms in common."""
    return is_included(inner, outer, plain=plain)


def is_included(inner: CatExpr, outer: Iterable[CatExpr], *, plain: bool = False) -> bool:
    """Whether a relation lies within the union of others in every frame, as far as their form shows
    it. Without definitions. ``plain``: in frames whose nodes are the transactions, each a writer or
    a reader.

    >>> so, wr = Name("so"), Name("wr")
    >>> is_included(Binary(";", so, wr), [Unary("+", Binary("|", wr, so))])
    True
    >>> is_included(Unary("+", so), [so])
    False
    """
    match inner := _inverted(inner):
        case Binary("&", left, right):
            outer = list(outer)
            if is_included(left, outer) or is_included(right, outer):
                return True
        case Binary("\\", left, _) if is_included(left, outer := list(outer)):
            return True
    outer = [_inverted(one) for one in outer]
    atoms = _atoms([inner, *outer])
    if plain and any(atom >= PLAIN for atom in atoms):
        atoms = [atom for atom in atoms if len(atom & PLAIN) == 1]
    start: tuple[Rest, frozenset[Rest]] = (inner,), frozenset((one,) for one in outer)
    seen, todo = {start}, [start]
    while todo:
        rest, others = todo.pop()
        for atom in atoms:
            if _ends(rest, atom) and not any(_ends(other, atom) for other in others):
                return False
            theirs = [step for other in others for step in _steps(other, atom)]
            for letter, after in _steps(rest, atom):
                met = frozenset(then for other, then in theirs if _within(letter, other))
                if not met:
                    return False
                if (after, met) not in seen:
                    seen.add((after, met))
                    todo.append((after, met))
    return True


def _atoms(exprs: list[CatExpr]) -> list[InSets]:
    """What sets a transaction may be in, of those that stand in some expressions."""
    sets = sorted(name for name in names_in(exprs, {}) if Name(name).kind == "set")
    return [
        frozenset(name for name, there in zip(sets, each, strict=True) if there)
        for each in product((False, True), repeat=len(sets))
    ]


def _inverted(expr: CatExpr) -> CatExpr:
    """The expression with each ``^-1`` at a letter, where it can be brought there."""
    match expr:
        case Unary("^-1", Unary("^-1", operand)):
            return _inverted(operand)
        case Unary("^-1", Bracket() as identity):
            return identity
        case Unary("^-1", Unary(op, operand)):
            return Unary(op, _inverted(Unary("^-1", operand)))
        case Unary("^-1", Binary(op, left, right)):
            one, other = (_inverted(Unary("^-1", part)) for part in (left, right))
            return Binary(op, other, one) if op == ";" else Binary(op, one, other)
        case Unary(op, operand) if op != "^-1":
            return Unary(op, _inverted(operand))
        case Binary(op, left, right):
            return Binary(op, _inverted(left), _inverted(right))
    return expr


def _ends(rest: Rest, atom: InSets) -> bool:
    """Whether one may stay where one is."""
    return all(_stays(expr, atom) for expr in rest)


def _stays(expr: CatExpr, atom: InSets) -> bool:
    match expr:
        case Bracket(operand):
            return _member(operand, atom)
        case Unary("*" | "?", _):
            return True
        case Unary("+", operand):
            return _stays(operand, atom)
        case Binary("|", left, right):
            return _stays(left, atom) or _stays(right, atom)
        case Binary(";", left, right):
            return _stays(left, atom) and _stays(right, atom)
    return False


def _steps(rest: Rest, atom: InSets) -> set[tuple[CatExpr, Rest]]:
    """The letters that may come first, from a transaction that is in these sets, and what is then
    left.
    """
    found: set[tuple[CatExpr, Rest]] = set()
    seen: set[Rest] = set()
    todo = [rest]
    while todo:
        now = todo.pop()
        if now in seen or not now:
            continue
        seen.add(now)
        first, *more = now
        after = tuple(more)
        match first:
            case Bracket(operand):
                if _member(operand, atom):
                    todo.append(after)
            case Binary("|", left, right):
                todo += [(left, *after), (right, *after)]
            case Binary(";", left, right):
                todo.append((left, right, *after))
            case Unary("+", operand):
                todo.append((operand, Unary("*", operand), *after))
            case Unary("*", operand):
                todo += [after, (operand, first, *after)]
            case Unary("?", operand):
                todo += [after, (operand, *after)]
            case _:
                found.add((first, after))
    return found


def _within(a: CatExpr, b: CatExpr) -> bool:
    """Whether a letter lies within another one."""
    if a == b:
        return True
    match a, b:
        case Name(name), Name(whole) if APART.get(name) == whole:
            return True
        case _, Binary("&", left, right):
            return is_included(a, [left]) and is_included(a, [right])
        case Binary("\\", left, right), Binary("\\", first, second):
            return is_included(left, [first]) and is_included(second, [right])
        case Unary("^-1", one), Unary("^-1", other):
            return is_included(one, [other])
        case Binary("&", left, right), _:
            return is_included(left, [b]) or is_included(right, [b])
        case Binary("\\", left, _), _:
            return is_included(left, [b])
    return False


def _member(expr: CatExpr, atom: InSets) -> bool:
    match expr:
        case Name(name):
            return name in atom
        case Unary("~", operand):
            return not _member(operand, atom)
        case Binary("|", left, right):
            return _member(left, atom) or _member(right, atom)
        case Binary("&", left, right):
            return _member(left, atom) and _member(right, atom)
        case Binary("\\", left, right):
            return _member(left, atom) and not _member(right, atom)
    raise AssertionError(f"{expr} is not a set")
