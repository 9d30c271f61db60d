"""Results of ``compare`` as text."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from isolitmus.checker.render.history_notation import one_line_of
from isolitmus.checker.render.text_pictures import assumption_lines
from isolitmus.checker.search.lattice import BY_TEXT, node_name
from isolitmus.model.display import count_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from isolitmus.checker.search.lattice import Covering, Inclusion, Lattice, Lattices, Strength

STANDS: Mapping[Strength, str] = {
    "equal": "equal to",
    "stronger": "stronger than",
    "weaker": "weaker than",
    "incomparable": "incomparable with",
    "unknown": "in an unknown relation to",
}
"""Relation of one spec to another, in words."""
SIGNS: Mapping[Strength, str] = {
    "equal": "=", "stronger": ">", "weaker": "<", "incomparable": "|", "unknown": "?",
}  # fmt: skip
MEANING: Mapping[Strength, str] = {
    "stronger": "stronger than", "weaker": "weaker than", "equal": "equal to",
    "incomparable": "incomparable", "unknown": "unknown",
}  # fmt: skip
LEGEND = "; ".join(f"{SIGNS[strength]} {meaning}" for strength, meaning in MEANING.items())
"""Legend of the table, on one line."""
CAPTION = "Relation of the level in the row to the level in the column"


def lattices_lines(found: Lattices) -> Iterator[str]:
    """Yield each lattice, the relations that differ between search spaces, and the assumptions."""
    pair = {lattice.specs for lattice in found.lattices}
    answer = [standing_words(found, *specs) for specs in pair] if _is_one_pair(pair) else []
    yield from answer
    for k, lattice in enumerate(found.lattices):
        if k or answer:
            yield ""
        yield from lattice_lines(lattice)
        yield from lattice.unexercised.lines()
    depends = [line for line in depending_lines(found) if not answer]
    if depends:
        yield ""
        yield from depends
    if found.apart:
        yield ""
    for name, why in found.apart.items():
        yield f"{name} was not compared: {why}."
    assumed = list(dict.fromkeys(one for lattice in found.lattices for one in lattice.assumptions))
    if assumed:
        yield ""
        yield from assumption_lines(assumed)


def _is_one_pair(specs: Collection[Sequence[str]]) -> bool:
    return len(specs) == 1 and all(len(one) == 2 for one in specs)


def lattice_lines(lattice: Lattice) -> Iterator[str]:
    """Yield the table of a lattice, and its neighbours with proofs and separating histories."""
    pairs = len(lattice.inclusions) // 2
    open_ = sum(lattice.relation(a, b) == "unknown" for a, b in combinations(lattice.specs, 2))
    decided = f"{count_of(open_, 'pair')} of {pairs} unknown" if open_ else "every pair decided"
    yield (
        f"{count_of(len(lattice.specs), 'level')} in {lattice.where}: {decided}, in"
        f" {lattice.seconds:.1f} s"
    )
    if lattice.ended:
        yield f"{lattice.ended}."
    yield ""
    if lattice.focus:
        for name in lattice.focus:
            yield from _placed(lattice, name)
        return
    yield f"{CAPTION}:"
    yield from _table(lattice)
    yield "Legend:"
    shown = {lattice.relation(a, b) for a in lattice.specs for b in lattice.specs}
    yield from (f"  {SIGNS[one]}  {MEANING[one]}" for one in MEANING if one in shown)
    yield ""
    edges = lattice.edges
    if edges:
        yield "Neighbouring levels, the stronger one first:"
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
    """Return the relation of one spec to another in each search space, in a sentence.

    >>> from isolitmus.checker.search.lattice_search import compare
    >>> from isolitmus.specs import level
    >>> names = ["write-serializable", "snapshot-isolation"]
    >>> said = standing_words(compare([level(name) for name in names]), *names)
    >>> print(said.partition(" (proved for any")[0])  # doctest: +NORMALIZE_WHITESPACE
    write-serializable is incomparable with snapshot-isolation in search space 'abstract',
    and stronger than it in search space 'table'
    """
    parts: list[str] = []
    for lattice in found.lattices:
        if {a, b} <= {*lattice.specs}:
            stands = STANDS[lattice.relation(a, b)]
            named = f"{stands} {'it' if parts else b}"
            parts.append(f"{named} in search space '{lattice.universe}'{_ground(lattice, a, b)}")
    return f"{a} is {', and '.join(parts)}."


def _ground(lattice: Lattice, a: str, b: str) -> str:
    """Return in brackets the evidence of the implications."""
    grounds = [one.evidence for one in _two(lattice, a, b) if one.holds is not False]
    return f" ({'; '.join(dict.fromkeys(grounds))})" if grounds else ""


def _two(lattice: Lattice, a: str, b: str) -> list[Inclusion]:
    return [lattice.inclusions[a, b], lattice.inclusions[b, a]]


def depending_lines(found: Lattices) -> Iterator[str]:
    """Yield a sentence for each pair of levels whose relation differs between search spaces."""
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
    """Yield a row for each level with its relation to each level."""
    names = lattice.ordered
    wide = max(map(len, names))
    digits = len(str(len(names)))
    heads = " ".join(f"{k:>{digits}}" for k in range(1, len(names) + 1))
    yield f"{'':{digits + wide + 2}}{heads}"
    for k, name in enumerate(names, 1):
        signs = " ".join(f"{SIGNS[lattice.relation(name, other)]:>{digits}}" for other in names)
        yield f"{k:>{digits}} {name:{wide}} {signs}"


def forward_words(one: Inclusion) -> str:
    """Return a clause that a spec implies another, with the proof or bound."""
    if one.proof:
        return f"{one.a} implies {one.b}: proved {proof_words(one.proof)}"
    if one.holds is None:
        return f"unknown whether {one.a} implies {one.b}: {one.bound}"
    return f"{one.a} implies {one.b}: no counterexample with {one.bound}"


def proof_words(proof: str) -> str:
    """Return a proof for a reader.

    >>> proof_words("by the texts: snapshot follows from serial-order")
    'from the definitions: snapshot follows from serial-order'
    """
    return proof.replace(BY_TEXT, "from the definitions", 1)


def apart_words(one: Inclusion) -> str:
    """Return the history that separates a spec from one that it does not imply."""
    if one.test is None:
        return forward_words(one)
    return f"{one.a} admits, {one.b} forbids{origin_words(one)}: {one_line_of(one.test)}"


def origin_words(one: Inclusion) -> str:
    """Return the origin of a history that may not be the smallest."""
    if one.smallest or one.test is None:
        return ""
    return f" (litmus test {one.test.name})" if one.test.path else " (perhaps not the smallest)"


def _both(lattice: Lattice, a: str, b: str) -> Iterator[str]:
    for one in _two(lattice, a, b):
        yield apart_words(one) if one.holds is False else forward_words(one)


def equal_words(lattice: Lattice, node: Sequence[str]) -> str:
    """Return why some specs are equal, or the bound of the search."""
    every = [one for a, b in combinations(node, 2) for one in _two(lattice, a, b)]
    open_ = [one for one in every if not one.proof]
    return f"no counterexample with {open_[0].bound}" if open_ else "proved equal"


def _placed(lattice: Lattice, name: str) -> Iterator[str]:
    """Yield the place of one level: equal, neighbouring and incomparable levels."""
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
