r"""Mutants of specs: all specs that differ by one operator, each parsed back from its own text.

A statement is dropped, or a clause of an engine with locks. An acyclic, irreflexive or empty axiom
becomes another of the three (not in a protocol, whose commits are checked by empty axioms). One
part of ``|``, ``&`` and ``;`` is dropped, including brackets. ``|`` becomes ``&`` and vice versa.
The right side of ``\`` is dropped; ``+ * ? ^-1 ~`` are dropped. A ``let`` is changed in all places
that use it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Literal

from isolitmus.model.display import ReadableRepr
from isolitmus.model.errors import ClauseError
from isolitmus.model.spec import Axiom, Binary, Bracket, Label, Unary, Unsaid
from isolitmus.model.spec_algebra import definitions_in, unfold
from isolitmus.specs.language.parser import ALONE, read
from isolitmus.specs.language.printer import expr_text, spec_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from isolitmus.model.spec import BinaryOp, CatExpr, Clause, Spec
    from isolitmus.specs.language.parser import Library


@dataclass(frozen=True, slots=True)
class Mutant(ReadableRepr):
    """Spec that differs from another one by a single change of one statement."""

    number: int
    """Number among the mutants of the spec, from 1."""
    was: str
    """Original statement."""
    becomes: str
    """Changed statement; empty if it was dropped."""
    what: str
    """Change, in words."""
    spec: Spec
    """Spec with this change."""

    @property
    def change(self) -> str:
        """Name of the change in an argument: the new statement, or ``without`` and the old one."""
        return self.becomes or f"without {self.was}"

    def __repr__(self) -> str:
        return f"{self.number}. {self.change}  ({self.what})"


TESTS: tuple[Literal["acyclic", "irreflexive", "empty"], ...] = ("acyclic", "irreflexive", "empty")
SWAPPED: dict[BinaryOp, BinaryOp] = {"|": "&", "&": "|"}


def make_mutants(spec: Spec, library: Library = ALONE) -> tuple[Mutant, ...]:
    """Return all mutants without duplicates, in the order of the text; `library` has the format.

    Examples
    --------
    >>> from isolitmus.specs import level
    >>> for mutant in make_mutants(level("read-committed"))[:4]:
    ...     print(mutant)
    1. without empty [Aborted] ; wr as no-aborted-read  (the axiom dropped)
    2. acyclic [Aborted] ; wr as no-aborted-read  (empty to acyclic)
    3. irreflexive [Aborted] ; wr as no-aborted-read  (empty to irreflexive)
    4. empty wr as no-aborted-read  ([Aborted] dropped)
    """
    found: list[Mutant] = []
    seen = {_meaning(spec, library)}
    for was, becomes, what, changed in _changed_specs(spec, library):
        meaning = _meaning(changed, library)
        if meaning not in seen:
            seen.add(meaning)
            number = len(found) + 1
            found.append(Mutant(number, was, becomes, what, _reread(changed, number, library)))
    return tuple(found)


def _reread(changed: Spec, number: int, library: Library) -> Spec:
    title = f"{changed.title}, mutant {number}"
    text = spec_text(replace(changed, title=title))
    again = read(text, f"{changed.name}-mutant-{number}", library=library)
    return replace(again, runtime=changed.runtime)


def _meaning(spec: Spec, library: Library) -> tuple[object, ...]:
    """Return a normal form that is equal for equal specs, however they are divided into lets."""
    of = spec.definitions
    parts: Iterable[Axiom | Unsaid | Label] = (*spec.axioms, *spec.silences, *spec.labels)
    meaning = (replace(part, expr=_flat(unfold(part.expr, of))) for part in parts)
    clauses = library.clauses(spec.format)
    return (clauses and clauses(spec.clauses), *meaning)


def _flat(expr: CatExpr) -> CatExpr:
    """Return the expression with left-associative chains of ``|``, ``&`` and ``;``."""
    match expr:
        case Binary("\\", left, right):
            return Binary("\\", _flat(left), _flat(right))
        case Binary(op):
            return _chain([_flat(part) for part in _parts(expr, op)], op)
        case Unary(op, operand):
            return Unary(op, _flat(operand))
        case Bracket(operand):
            return Bracket(_flat(operand))
    return expr


def _changed_specs(spec: Spec, library: Library) -> Iterator[tuple[str, str, str, Spec]]:
    """Yield the original statement, mutated statement, description and spec of each mutant."""
    for k, clause in enumerate(spec.clauses):
        rest_of = (*spec.clauses[:k], *spec.clauses[k + 1 :])
        if _clauses_hold(spec, rest_of, library):
            yield str(clause), "", "the clause dropped", replace(spec, clauses=rest_of)
    for name in _used(spec):
        was = f"let {name} = {expr_text(spec.definitions[name])}"
        for expr, what in _changes(spec.definitions[name]):
            lets = {**spec.definitions, name: expr}
            yield was, f"let {name} = {expr_text(expr)}", what, replace(spec, definitions=lets)
    for k, axiom in enumerate(spec.axioms):
        rest = spec.axioms[:k], spec.axioms[k + 1 :]
        was = _said(axiom)
        if len(spec.axioms) > 1:
            yield was, "", "the axiom dropped", replace(spec, axioms=(*rest[0], *rest[1]))
        for changed, what in _changed_axioms(axiom, library.is_commit_check(spec)):
            axioms = (*rest[0], changed, *rest[1])
            yield was, _said(changed), what, replace(spec, axioms=axioms)
    for k, silence in enumerate(spec.silences):
        some = spec.silences[:k], spec.silences[k + 1 :]
        was = f"silent {expr_text(silence.expr)} as {silence.name}"
        yield was, "", "the silence dropped", replace(spec, silences=(*some[0], *some[1]))
        for expr, what in _changes(silence.expr):
            silences = (*some[0], Unsaid(expr, silence.name), *some[1])
            now = f"silent {expr_text(expr)} as {silence.name}"
            yield was, now, what, replace(spec, silences=silences)
    for k, label in enumerate(spec.labels):
        others = spec.labels[:k], spec.labels[k + 1 :]
        was = f"show {expr_text(label.expr)} as {label.name}"
        yield was, "", "the label dropped", replace(spec, labels=(*others[0], *others[1]))
        for expr, what in _changes(label.expr):
            labels = (*others[0], Label(expr, label.name), *others[1])
            now = f"show {expr_text(expr)} as {label.name}"
            yield was, now, what, replace(spec, labels=labels)


def _clauses_hold(spec: Spec, clauses: tuple[Clause, ...], library: Library) -> bool:
    """Return whether the format accepts these clauses as a complete protocol."""
    of = library.clauses(spec.format)
    if of is None or not (clauses or spec.axioms):
        return False
    try:
        of(clauses)
    except ClauseError:
        return False
    return True


def _said(axiom: Axiom) -> str:
    return f"{axiom.test} {expr_text(axiom.expr)} as {axiom.name}"


def _used(spec: Spec) -> list[str]:
    """Return the lets that some axiom, silence or label uses."""
    parts: Iterable[Axiom | Unsaid | Label] = (*spec.axioms, *spec.silences, *spec.labels)
    return definitions_in((part.expr for part in parts), spec.definitions)


def _changed_axioms(axiom: Axiom, protocol: bool) -> Iterator[tuple[Axiom, str]]:
    """Yield the variants of an axiom, with descriptions; commit protocols keep the test."""
    for test in TESTS:
        if not protocol and test != axiom.test:
            yield replace(axiom, test=test), f"{axiom.test} to {test}"
    for expr, what in _changes(axiom.expr):
        yield replace(axiom, expr=expr), what


def _changes(expr: CatExpr) -> Iterator[tuple[CatExpr, str]]:
    """Yield every expression with one operator dropped or replaced."""
    match expr:
        case Binary("\\", left, right):
            yield left, f"\\ {_text(right)} dropped"
            yield from ((Binary("\\", part, right), what) for part, what in _changes(left))
            yield from ((Binary("\\", left, part), what) for part, what in _changes(right))
        case Binary(op):
            yield from _changed_chains(_parts(expr, op), op)
        case Unary(op, operand):
            yield operand, f"{op} dropped at {_text(operand)}"
            yield from ((Unary(op, part), what) for part, what in _changes(operand))
        case Bracket(operand):
            yield from ((Bracket(part), what) for part, what in _changes(operand))


def _changed_chains(parts: list[CatExpr], op: BinaryOp) -> Iterator[tuple[CatExpr, str]]:
    """Yield the chains with one operand dropped, one operator swapped or one operand changed."""
    for k, part in enumerate(parts):
        yield _chain([*parts[:k], *parts[k + 1 :]], op), f"{_text(part)} dropped"
    for k, part in enumerate(parts[1:], 1):
        if op in SWAPPED:
            swapped = Binary(SWAPPED[op], _chain(parts[:k], op), part)
            yield (
                _chain([swapped, *parts[k + 1 :]], op),
                f"{op} to {SWAPPED[op]} before {_text(part)}",
            )
    for k, part in enumerate(parts):
        for changed, what in _changes(part):
            yield _chain([*parts[:k], changed, *parts[k + 1 :]], op), what


def _parts(expr: CatExpr, op: BinaryOp) -> list[CatExpr]:
    """Return the operands of a chain of one operator."""
    if isinstance(expr, Binary) and expr.op == op:
        return [*_parts(expr.left, op), *_parts(expr.right, op)]
    return [expr]


def _chain(parts: Sequence[CatExpr], op: BinaryOp) -> CatExpr:
    return reduce(lambda left, right: Binary(op, left, right), parts)


def _text(expr: CatExpr) -> str:
    text = expr_text(expr)
    return f"({text})" if isinstance(expr, Binary) else text
