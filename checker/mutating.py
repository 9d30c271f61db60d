"""Mutants of a spec: every spec that differs from it in one operator.

They are made from the tree. What a definition (``let``) says is changed in all places that use it, as it
would be in the text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from isolitmus.model.combine import names_in
from isolitmus.model.spec import Binary, Bracket, Name, Unary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.model.spec import Axiom, CatExpr, Spec

__all__ = ["Mutant", "mutants"]

TESTS: tuple[Literal["acyclic", "irreflexive", "empty"], ...] = ("acyclic", "irreflexive", "empty")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A spec with one change."""

    line: str
    """The axiom, silence or definition as the change leaves it, in the language; or that it is dropped."""
    what: str
    """The change."""
    spec: Spec
    """The spec with it."""


def mutants(spec: Spec) -> list[Mutant]:
    """Every mutant of a spec, in the order of its text, each once.

    Dropped are axioms, silences, members of unions, sides of other operators, and operators; ``|`` and ``&`` stand for
    each other, and so do the three tests.

    >>> from isolitmus.specs.catalogue import level
    >>> for mutant in mutants(level("serializable"))[:6]: print(mutant.what)
    no-aborted-read dropped
    empty to acyclic
    empty to irreflexive
    [Aborted] dropped
    wr dropped
    serial-order dropped
    """
    found: dict[str, Mutant] = {}
    for line, what, changed in _changed(spec):
        found.setdefault(line, Mutant(line, what, _named(changed, spec)))
    return list(found.values())


def _changed(spec: Spec) -> Iterator[tuple[str, str, Spec]]:
    """The line, the change, and the spec with it; of definitions those that an axiom or a silence uses."""
    used: set[str] = set()
    todo: list[CatExpr] = [axiom.expr for axiom in spec.demands]
    while todo:
        for name in names_in([todo.pop()], {}) & spec.definitions.keys() - used:
            used.add(name)
            todo.append(spec.definitions[name])
    for name, expr in spec.definitions.items():
        if name not in used:
            continue
        for what, new in _variants(expr):
            definitions = {**spec.definitions, name: new}
            yield f"let {name} = {new}", what, replace(spec, definitions=definitions)
    for k, axiom in enumerate(spec.axioms):
        before, after = spec.axioms[:k], spec.axioms[k + 1 :]
        gone = replace(spec, axioms=before + after)
        yield f"without {axiom}", f"{axiom.name} dropped", gone
        for one in _axioms(axiom):
            yield str(one[1]), one[0], replace(spec, axioms=(*before, one[1], *after))
    for k, silence in enumerate(spec.silences):
        first, last = spec.silences[:k], spec.silences[k + 1 :]
        gone = replace(spec, silences=first + last)
        yield f"without {silence}", f"{silence.name} dropped", gone
        for what, new in _variants(silence.expr):
            other = replace(silence, expr=new)
            yield str(other), what, replace(spec, silences=(*first, other, *last))


def _axioms(axiom: Axiom) -> Iterator[tuple[str, Axiom]]:
    for test in TESTS:
        if test != axiom.test:
            yield f"{axiom.test} to {test}", replace(axiom, test=test)
    for what, new in _variants(axiom.expr):
        yield what, replace(axiom, expr=new)


def _variants(expr: CatExpr) -> Iterator[tuple[str, CatExpr]]:
    """The change, and the expression with it."""
    match expr:
        case Name():
            return
        case Bracket(operand):
            for what, new in _variants(operand):
                yield what, Bracket(new)
        case Unary(op, operand):
            yield f"{op} of {operand} dropped", operand
            if op == "*":
                yield f"* of {operand} to +", Unary("+", operand)
            for what, new in _variants(operand):
                yield what, Unary(op, new)
        case Binary(op, left, right):
            if op != "\\":
                yield f"{left} dropped", right
            yield f"{right} dropped", left
            if op in ("|", "&"):
                other = Binary("&" if op == "|" else "|", left, right)
                yield f"{expr} to {other.op}", other
            for what, new in _variants(left):
                yield what, Binary(op, new, right)
            for what, new in _variants(right):
                yield what, Binary(op, left, new)


def _named(changed: Spec, spec: Spec) -> Spec:
    """The changed spec, with a name of its own and the names that it needs."""
    used = [axiom.expr for axiom in changed.demands]
    used += [label.expr for label in changed.labels]
    needs = names_in(used, changed.definitions)
    return replace(changed, name=f"{spec.name}-mutant", needs=needs)
