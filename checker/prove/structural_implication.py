r"""Implications between levels by the form of their texts, independent of histories.

An axiom forbids words, such as so ; wr ; rw from a transaction to itself. The words of relations
built from ``|``, ``;``, ``+``, ``*``, ``?`` and ``[S]`` form a regular language with tests.
Inclusion of the languages implies inclusion of the relations in every dependency graph (Kozen and
Smith, Kleene algebra with tests: completeness and decidability, CSL 1996). Expressions built with
``&``, ``\`` and ``^-1`` are letters, some of which contain others. "acyclic r" means that r+ is
irreflexive, so

- ``acyclic s`` follows if s+ lies within what the first spec says is irreflexive: the r+ of what is
  acyclic, what is irreflexive, what is empty. ``irreflexive s`` follows likewise for s. A cycle may
  begin at any of its steps: r ; s is irreflexive just if s ; r is.
- ``empty s`` follows if s lies within what the first spec says is empty. For ``intermediate`` it
  also follows if wr ; rw is irreflexive, since a transaction that reads a version overwritten by
  its own writer has missed the later version.

If transactions are the only nodes, three more facts are used: wr and ww start at writers; ww and rw
end at writers (ENDS); and a transaction that is no writer only reads. A relation that starts only
at writers and leads back ends at a writer.

If reads are nodes, a graph has at least the pairs of the one without reads. A spec with read nodes
may therefore imply one without, if more pairs can only make both reject more graphs. Nothing is
concluded in the other direction.

Orders that a binder assumes are the same for both specs, so one that suits the first suits the
second. If the two assume one name in different ways, nothing is concluded. The method is
sufficient, not necessary: where it fails, a search may still find no counterexample.
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

WRITER = Bracket(Name("Writer"))
PLAIN = frozenset({"Writer", "Reader"})
"""Sets of which each transaction is in exactly one."""
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
"""Sources and targets of relations, in graphs whose only nodes are transactions."""
InSets = frozenset[str]
"""Base sets that contain a transaction."""
Rest = tuple["CatExpr", ...]
"""Remaining expressions of a word, in sequence."""


@dataclass(frozen=True, slots=True)
class Implication:
    """Derivation that a spec admits nothing that another forbids.

    `grounds` lists, for each axiom of the second, the axioms of the first from which it follows.
    """

    a: str
    b: str
    grounds: tuple[tuple[str, tuple[str, ...]], ...]

    def __str__(self) -> str:
        new = ((axiom, given) for axiom, given in self.grounds if given != (axiom,))
        said = [f"{axiom} follows from {' and '.join(given)}" for axiom, given in new]
        return "; ".join(said) or "every axiom follows from that of its name"


def derive_from_texts(a: Spec, b: Spec, *, reads: bool = False) -> Implication | None:
    """Return a derivation from the texts alone that ``a`` admits nothing that ``b`` forbids.

    Parameters
    ----------
    a, b : Spec
        The specs.
    reads : bool
        Whether reads are nodes, whatever the specs need.

    Returns
    -------
    Implication or None
        None if the texts do not show the implication.

    Examples
    --------
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
    """Return whether both specs assume the common orders in the same way.

    The version order may be assumed by one and observed by the other.
    """
    looked = {"ww" if name == "rw" else name for name in a.needs} & {
        "ww" if name == "rw" else name for name in b.needs
    }
    ways = ({a.bound.get(name), b.bound.get(name)} for name in looked)
    return all(len(way) == 1 or way == {None, "versions"} for way in ways)


def _grounds(a: Spec, goal: Axiom, expr: CatExpr, *, plain: bool) -> tuple[str, ...] | None:
    """Return the axioms of ``a`` from which the goal follows: one, or else all together."""
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
    """Return the cycle of wr and rw that ``intermediate`` implies; None for other expressions."""
    steps = list(_sequence(expr))
    if [one for one in steps if not isinstance(one, Bracket)] != [Name("intermediate")]:
        return None
    walked = [Name("wr") if one == Name("intermediate") else one for one in steps]
    return _together([*walked, Name("rw")])


def _with_ends(expr: CatExpr) -> CatExpr:
    """Return the expression with the source and target sets of each relation made explicit."""
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
    """Return whether a walk starts at writers only, and is not empty."""
    others = [atom for atom in _atoms([walk]) if "Writer" not in atom]
    return not any(_ends((walk,), atom) or _steps((walk,), atom) for atom in others)


def _never_back(axiom: Axiom, expr: CatExpr) -> list[CatExpr]:
    """Return the relations that an axiom makes irreflexive."""
    match axiom.test:
        case "acyclic":
            return [Unary("+", one) for one in _turned(expr)]
        case "irreflexive":
            return _turned(expr)
        case "empty":
            return [expr]


def _turned(expr: CatExpr) -> list[CatExpr]:
    """Return the rotations of a sequence, which describe the same cycles."""
    steps = list(_sequence(expr))
    return [_together([*steps[k:], *steps[:k]]) for k in range(len(steps))]


def _sequence(expr: CatExpr) -> Iterator[CatExpr]:
    """Yield the factors of nested compositions."""
    match expr:
        case Binary(";", left, right):
            yield from _sequence(left)
            yield from _sequence(right)
        case _:
            yield expr


def _together(steps: list[CatExpr]) -> CatExpr:
    """Return the composition of the steps."""
    whole = steps[0]
    for step in steps[1:]:
        whole = Binary(";", whole, step)
    return whole


@lru_cache(1 << 14)
def _known(inner: CatExpr, outer: Rest, *, plain: bool) -> bool:
    """Return ``is_included``, cached, since levels have axioms in common."""
    return is_included(inner, outer, plain=plain)


def is_included(inner: CatExpr, outer: Iterable[CatExpr], *, plain: bool = False) -> bool:
    """Return whether a relation lies in the union of others in every graph, by their form.

    The inclusion of the languages is decided by a simultaneous walk of the expressions'
    derivatives.

    Parameters
    ----------
    inner : CatExpr
        Relation without defined names.
    outer : iterable of CatExpr
        Relations without defined names.
    plain : bool
        Whether the nodes are transactions only, each a writer or a reader.

    Examples
    --------
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
    """Return all combinations of the base sets in some expressions."""
    sets = sorted(name for name in names_in(exprs, {}) if Name(name).kind == "set")
    return [
        frozenset(name for name, there in zip(sets, each, strict=True) if there)
        for each in product((False, True), repeat=len(sets))
    ]


def _inverted(expr: CatExpr) -> CatExpr:
    """Return the expression with each ``^-1`` moved to the letters as far as possible."""
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
    """Return whether the rest of a word may be empty."""
    return all(_stays(expr, atom) for expr in rest)


def _stays(expr: CatExpr, atom: InSets) -> bool:
    """Return whether the language of an expression has the empty word at a node in these sets."""
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
    """Return the possible first letters from a transaction in these sets, each with the rest."""
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
    """Return whether a letter lies within another."""
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
    """Return whether a node in exactly the sets of ``atom`` is in the set."""
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
