"""The answer to ``compare`` in lines for a person."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from isolitmus.checker.render.history_notation import one_line_of
from isolitmus.checker.search.lattice import node_name
from isolitmus.model.display import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.checker.search.lattice import Covering, Inclusion, Lattice, Lattices, Strength

__all__ = [
    "LEGEND",
    "SIGNS",
    "STANDS",
    "apart_words",
    "depending_lines",
    "equal_words",
    "forward_words",
    "lattice_lines",
    "lattices_lines",
    "origin_words",
    "standing_words",
]  # fmt: skip

STANDS: Mapping[Strength, str] = {
    "equal": "equal to",
    "stronger": "stronger than",
    "weaker": "weaker than",
    "incomparable": "incomparable with",
    "unknown": "in an unknown relation to",
}
"""How one spec stands to another one, in words."""
SIGNS: Mapping[Strength, str] = {
    "equal": "=", "stronger": ">", "weaker": "<", "incomparable": "|", "unknown": "?",
}  # fmt: skip
LEGEND = "> is stronger than, < weaker than, = equal to, | incomparable with, ? nobody knows"


def lattices_lines(found: Lattices) -> Iterator[str]:
    """Each lattice, then what the universe decides, and what was taken for granted."""
    for k, lattice in enumerate(found.lattices):
        if k:
            yield ""
        yield from lattice_lines(lattice)
    depends = list(depending_lines(found))
    if depends:
        yield ""
        yield from depends
    if found.apart:
        yield ""
    for name, why in found.apart.items():
        yield f"{name} was not compared: {why}."
    assumed = dict.fromkeys(one for lattice in found.lattices for one in lattice.assumptions)
    if assumed:
        yield ""
        yield f"Assumed: {'; '.join(assumed)}."


def lattice_lines(lattice: Lattice) -> Iterator[str]:
    """The table of a lattice, and its neighbours with what tells them apart."""
    pairs = len(lattice.inclusions) // 2
    open_ = sum(lattice.relation(a, b) == "unknown" for a, b in combinations(lattice.specs, 2))
    decided = f"{count_of(open_, 'pair')} of {pairs} unknown" if open_ else "all is decided"
    yield (
        f"{count_of(len(lattice.specs), 'level')} in {lattice.where}: {decided}, in {lattice.seconds:.1f} s"
    )
    if lattice.ended:
        yield f"{lattice.ended}."
    yield ""
    if lattice.focus:
        for name in lattice.focus:
            yield from _placed(lattice, name)
        return
    yield from _table(lattice)
    yield LEGEND
    yield ""
    edges = lattice.edges
    for number, edge in enumerate(edges, 1):
        yield f"{number}. {node_name(edge.stronger)} > {node_name(edge.weaker)}"
        yield f"   {forward_words(edge.forward)}"
        yield f"   {apart_words(edge.back)}"
    if len(lattice.specs) == 2 and not edges:
        yield from _both(lattice, *lattice.specs)
    for node in lattice.nodes:
        if len(node) > 1:
            yield f"{node_name(node)}: {equal_words(lattice, node)}"


def standing_words(found: Lattices, a: str, b: str) -> str:
    """How one spec stands to another, in each universe, in a sentence.

    >>> from isolitmus.checker.search.lattice_search import compare
    >>> from isolitmus.specs import level
    >>> names = ["write-serializable", "snapshot-isolation"]
    >>> said = standing_words(compare([level(name) for name in names]), *names)
    >>> print(said.partition(" for any")[0])
    write-serializable is incomparable with snapshot-isolation in universe 'abstract', and stronger than it in universe 'table' (proved
    """
    parts: list[str] = []
    for lattice in found.lattices:
        if {a, b} <= {*lattice.specs}:
            stands = STANDS[lattice.relation(a, b)]
            named = f"{stands} {'it' if parts else b}"
            parts.append(f"{named} in universe '{lattice.universe}'{_ground(lattice, a, b)}")
    return f"{a} is {', and '.join(parts)}."


def _ground(lattice: Lattice, a: str, b: str) -> str:
    """What it rests on that one implies the other, in brackets."""
    grounds = [one.evidence for one in _two(lattice, a, b) if one.holds is not False]
    return f" ({'; '.join(dict.fromkeys(grounds))})" if grounds else ""


def _two(lattice: Lattice, a: str, b: str) -> list[Inclusion]:
    return [lattice.inclusions[a, b], lattice.inclusions[b, a]]


def depending_lines(found: Lattices) -> Iterator[str]:
    """Neighbours in one universe that are incomparable in another, or the other way round: a sentence each."""
    said: set[frozenset[str]] = set()
    for lattice in found.lattices:
        for edge in lattice.edges:
            a, b = edge.forward.a, edge.forward.b
            others = [o for o in found.lattices if {a, b} <= {*o.specs}]
            differ = any(other.relation(a, b) in ("incomparable", "weaker") for other in others)
            focus = {*lattice.focus}
            if differ and frozenset((a, b)) not in said and (not focus or {a, b} & focus):
                said.add(frozenset((a, b)))
                yield standing_words(found, a, b)


def _table(lattice: Lattice) -> Iterator[str]:
    """A row for each level: how it stands to each one."""
    names = lattice.ordered
    wide = max(map(len, names))
    digits = len(str(len(names)))
    heads = " ".join(f"{k:>{digits}}" for k in range(1, len(names) + 1))
    yield f"{'':{digits + wide + 2}}{heads}"
    for k, name in enumerate(names, 1):
        signs = " ".join(f"{SIGNS[lattice.relation(name, other)]:>{digits}}" for other in names)
        yield f"{k:>{digits}} {name:{wide}} {signs}"


def forward_words(one: Inclusion) -> str:
    """That a spec implies another, and why."""
    if one.proof:
        return f"{one.a} implies {one.b}: proved {one.proof}"
    if one.holds is None:
        return f"whether {one.a} implies {one.b} is unknown: {one.bound}"
    return f"{one.a} implies {one.b}: none {one.bound} that it admits and the other forbids"


def apart_words(one: Inclusion) -> str:
    """The history that tells a spec from one that it does not imply."""
    if one.test is None:
        return forward_words(one)
    return f"{one.a} admits, {one.b} forbids{origin_words(one)}: {one_line_of(one.test)}"


def origin_words(one: Inclusion) -> str:
    """Where a history is from, if it need not be the smallest."""
    if one.smallest or one.test is None:
        return ""
    return (
        f" ({one.test.name} of the catalogue)" if one.test.path else " (perhaps not the smallest)"
    )


def _both(lattice: Lattice, a: str, b: str) -> Iterator[str]:
    for one in _two(lattice, a, b):
        yield apart_words(one) if one.holds is False else forward_words(one)


def equal_words(lattice: Lattice, node: Sequence[str]) -> str:
    """Why some specs are equal, or how far nothing tells them apart."""
    every = [one for a, b in combinations(node, 2) for one in _two(lattice, a, b)]
    open_ = [one for one in every if not one.proof]
    return f"nothing tells them apart {open_[0].bound}" if open_ else "proved equal"


def _placed(lattice: Lattice, name: str) -> Iterator[str]:
    """Where one level stands: its equals, its neighbours above and below, and who is beside it."""
    (node,) = (node for node in lattice.nodes if name in node)
    if len(node) > 1:
        others = ", ".join(other for other in node if other != name)
        yield f"{name} is equal to {others}: {equal_words(lattice, node)}"
    above: list[Covering] = [edge for edge in lattice.edges if name in edge.weaker]
    below: list[Covering] = [edge for edge in lattice.edges if name in edge.stronger]
    for edges, words in ((above, "weaker than"), (below, "stronger than")):
        for edge in edges:
            other = edge.stronger if edges is above else edge.weaker
            yield f"{name} is {words} {node_name(other)}"
            yield f"   {forward_words(edge.forward)}"
            yield f"   {apart_words(edge.back)}"
    for standing in ("incomparable", "unknown"):
        found = [o for o in lattice.specs if o != name and lattice.relation(name, o) == standing]
        if found:
            yield f"{name} is {STANDS[standing]} {', '.join(found)}"
        if standing == "incomparable" and len(lattice.specs) == 2:
            for beside in found:
                yield from (f"   {line}" for line in _both(lattice, name, beside))
