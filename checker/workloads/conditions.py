"""What has to hold of two jobs' parameters, in words: comparisons of one with another, and proofs of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.model.sql.expression import Parameter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.checker.workloads.asking import Asked
    from isolitmus.checker.workloads.instances import Participant
    from isolitmus.model.sql.types import Type

__all__ = ["Atom", "atoms", "implied"]

WORDS = {
    "=": "equals",
    "<": "is below",
    ">": "is above",
    "<=": "is at most",
    ">=": "is at least",
    "<>": "is not",
}


class Atom(NamedTuple):
    """A comparison of two parameters."""

    words: str
    formula: Any


class _Side(NamedTuple):
    """A parameter: whose, in words, of which type, its term."""

    name: str
    words: str
    type: Type
    term: Any


def atoms(a: Participant, b: Participant, shared: Mapping[str, Type]) -> Iterator[Atom]:
    """The comparisons of a parameter of the one with one of the other, or with one that all share; the stronger
    ones first, and before others those of parameters with one name.
    """
    first, second, common = _own(a, shared), _own(b, shared), _common(a, b, shared)
    pairs = sorted(((x, y) for x in first for y in second), key=lambda p: p[0].name != p[1].name)
    pairs += [(x, y) for x in (*first, *second) for y in common]
    for op in ("=", "<", ">", "<=", ">=", "<>"):
        for x, y in pairs:
            if x.type == y.type and (x.type != "STRING" or op in ("=", "<>")):
                both = op == "=" and x.name == y.name
                words = (
                    f"both have the same {Parameter(x.name, x.type)}"
                    if both
                    else f"{x.words} {WORDS[op]} {y.words}"
                )
                yield Atom(words, _formula(op, x.term, y.term))


def _own(role: Participant, shared: Mapping[str, Type]) -> list[_Side]:
    return [
        _Side(p, f"{role.name}'s {Parameter(p, type_)}", type_, role.terms.parameters[p].value)
        for p, type_ in role.statement.types.items()
        if p not in shared and p not in role.statement.let
    ]


def _common(a: Participant, b: Participant, shared: Mapping[str, Type]) -> list[_Side]:
    known = {**a.terms.parameters, **b.terms.parameters}
    return [
        _Side(p, str(Parameter(p, type_)), type_, known[p].value)
        for p, type_ in shared.items()
        if p in known
    ]


def _formula(op: str, x: Any, y: Any) -> Any:
    match op:
        case "=":
            return x == y
        case "<":
            return x < y
        case ">":
            return x > y
        case "<=":
            return x <= y
        case ">=":
            return x >= y
    return x != y


def implied(asked: Asked, what: Any, candidates: list[Atom]) -> list[Atom]:
    """Those of the comparisons that hold wherever something does, and not in any case."""
    z3, left = asked.z3, list(candidates)
    while left:
        said = asked.possible(what, z3.Not(z3.And(*(atom.formula for atom in left))))
        if said is None:
            return []
        model = asked.model
        if model is None:
            break
        left = [atom for atom in left if model.has(atom.formula)]
    found: list[Atom] = []
    for atom in left:  # what the stronger ones before it, and the domains, do not say already
        if asked.possible(*(a.formula for a in found), z3.Not(atom.formula)) is not False:
            found.append(atom)
    return found
