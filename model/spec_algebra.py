"""Specs derived from other specs: subsets of the axioms, and conjunctions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.model.spec import Axiom, Binary, Bracket, Name, Unary

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from isolitmus.model.spec import CatExpr, Spec


def names_in(exprs: Iterable[CatExpr], definitions: Mapping[str, CatExpr]) -> frozenset[str]:
    """Return the base names in some expressions after all definitions are unfolded.

    Examples
    --------
    >>> wr = Name("wr")
    >>> sorted(names_in([Name("depends")], {"depends": Binary("|", wr, Name("ww"))}))
    ['wr', 'ww']
    """
    return frozenset(
        mention.name
        for mention in names_behind(exprs, definitions)
        if mention.name not in definitions
    )


def definitions_in(exprs: Iterable[CatExpr], definitions: Mapping[str, CatExpr]) -> list[str]:
    """Return the definitions that some expressions use, directly or not, in their own order.

    Examples
    --------
    >>> lets = {"reads": Name("wr"), "writes": Name("ww"), "depends": Name("reads")}
    >>> definitions_in([Name("depends")], lets)
    ['reads', 'depends']
    """
    used = {mention.name for mention in names_behind(exprs, definitions)}
    return [name for name in definitions if name in used]


def names_behind(exprs: Iterable[CatExpr], definitions: Mapping[str, CatExpr]) -> Iterator[Name]:
    """Yield each name in some expressions and, once, in each definition that they use.

    The names are in the order of the text; where a definition is first used, those in it follow.

    Examples
    --------
    >>> lets = {"depends": Binary("|", Name("wr"), Name("ww"))}
    >>> [mention.name for mention in names_behind([Binary(";", Name("depends"), Name("rw"))], lets)]
    ['depends', 'wr', 'ww', 'rw']
    """
    todo = [*exprs][::-1]
    unfolded: set[str] = set()
    while todo:
        match todo.pop():
            case Name(name) as mention:
                yield mention
                if name in definitions and name not in unfolded:
                    unfolded.add(name)
                    todo.append(definitions[name])
            case Binary(_, left, right):
                todo += (right, left)
            case Unary(_, operand) | Bracket(operand):
                todo.append(operand)


def unfold(expr: CatExpr, definitions: Mapping[str, CatExpr]) -> CatExpr:
    """Return the expression with every ``let`` name replaced by its definition.

    Examples
    --------
    >>> print(unfold(Name("depends"), {"depends": Binary("|", Name("wr"), Name("ww"))}))
    (wr | ww)
    """
    match expr:
        case Name(name):
            return unfold(definitions[name], definitions) if name in definitions else expr
        case Binary(op, left, right):
            return Binary(op, unfold(left, definitions), unfold(right, definitions))
        case Unary(op, operand):
            return Unary(op, unfold(operand, definitions))
        case Bracket(operand):
            return Bracket(unfold(operand, definitions))


def without_silences(spec: Spec) -> Spec:
    """Return the spec without its silences: what they leave unspecified is admitted.

    Examples
    --------
    >>> from isolitmus.specs.language.parser import read
    >>> spec = without_silences(read('"Mine" empty ww as lost silent rw as missed', "mine"))
    >>> len(spec.silences), sorted(spec.needs)
    (0, ['ww'])
    """
    if not spec.silences:
        return spec
    used = [*(axiom.expr for axiom in spec.axioms), *(label.expr for label in spec.labels)]
    return replace(spec, silences=(), needs=names_in(used, spec.definitions))


def with_silences_as_axioms(spec: Spec) -> Spec:
    """Return the spec with its silences as axioms: what they leave unspecified is forbidden."""
    return replace(spec, axioms=spec.demands, silences=()) if spec.silences else spec


def with_axioms(spec: Spec, axioms: Collection[Axiom], name: str) -> Spec:
    """Return the spec with these axioms only, without its labels, promises and silences.

    Examples
    --------
    >>> from isolitmus.specs import protocol
    >>> spec = protocol("delta-serializable")
    >>> sorted(with_axioms(spec, spec.axioms[-1:], "last").needs)
    ['Empty', 'Marked', 'NoData', 'removes-meets-removes', 'unseen']
    """
    flat = tuple(Axiom(a.test, unfold(a.expr, spec.definitions), a.name) for a in axioms)
    needs = names_in([axiom.expr for axiom in flat], {})
    return replace(
        spec, name=name, title=name, axioms=flat, definitions={}, silences=(), labels=(),
        promises=(), needs=needs,
    )  # fmt: skip


def conjunction(first: Spec, second: Spec, name: str) -> Spec:
    """Return the conjunction: it demands all axioms of both and that neither is silent.

    It binds the orders that either spec binds.

    Examples
    --------
    >>> from isolitmus.specs import level, protocol
    >>> both = conjunction(protocol("delta-serializable"), level("write-serializable"), "both")
    >>> len(both.axioms), "Writer" in both.needs
    (9, True)
    """
    parts = [with_axioms(spec, spec.demands, name) for spec in (first, second)]
    axioms = tuple(axiom for part in parts for axiom in part.axioms)
    binders = tuple(dict.fromkeys((*first.binders, *second.binders)))
    return replace(
        parts[0], axioms=axioms, binders=binders, given={**first.given, **second.given},
        needs=parts[0].needs | parts[1].needs,
    )  # fmt: skip
