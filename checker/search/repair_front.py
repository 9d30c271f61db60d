"""Weakest strengthenings of a rule, by an exact search over clauses.

A *clause* is a conjunction of terms on a pair of concurrent commits; the repaired rule aborts the
loser of a pair that satisfies a clause. A strengthening is a set of clauses that together abort
every bad candidate. It is weaker, the fewer good candidates it aborts as well.

This is a hitting-set problem whose cost is the size of a union. Candidates with the same concurrent
pairs are one class, clauses with the same classes are one clause, and a clause is dropped if
another one with no more names aborts at least its bad and at most its good candidates. A branch and
bound then takes an uncovered bad class, tries each clause that covers it, and keeps the best number
of needless aborts for each number of names (`cheapest_covers`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from isolitmus.checker.search.rule_terms import RuleTerm

MOST_TERMS = 3
"""Maximum number of terms of a clause."""
MOST_CLAUSES = 3
"""Maximum number of clauses of a strengthening."""
MOST_NAMES = 6
"""Maximum number of names in the clauses of a strengthening: longer ones fit the scope, not the
rule.
"""


@dataclass(frozen=True, slots=True)
class RuleClause:
    """Conjunction of terms; none: every concurrent pair.

    Examples
    --------
    >>> from isolitmus.checker.search.rule_terms import RuleTerm
    >>> reads, merge = RuleTerm("pair", ("removes-read-row",)), RuleTerm("loser", ("Merging",))
    >>> RuleClause((reads, merge)).text, RuleClause(()).text
    ('(unseen & removes-read-row) ; [Merging]', 'unseen')
    """

    terms: tuple[RuleTerm, ...]

    @property
    def text(self) -> str:
        """Relation in cat from winners to losers that abort."""
        of_side = {side: self._texts(side) for side in ("winner", "pair", "between", "loser")}
        pairs = ["unseen", *of_side["pair"], *of_side["between"]]
        inner = " & ".join(pairs)
        winner, loser = (self._restriction(of_side[side]) for side in ("winner", "loser"))
        if len(pairs) > 1 and (winner or loser):
            inner = f"({inner})"
        return " ; ".join(part for part in (winner, inner, loser) if part)

    def _texts(self, side: str) -> list[str]:
        return [term.text for term in self.terms if term.side == side]

    @staticmethod
    def _restriction(sets: Sequence[str]) -> str:
        """Return a restriction to an intersection of sets; empty if there is none."""
        if len(sets) < 2:
            return f"[{sets[0]}]" if sets else ""
        parts = (f"({one})" if " | " in one and one[0] != "~" else one for one in sets)
        return f"[{' & '.join(parts)}]"

    @property
    def words(self) -> str:
        """Condition under which it aborts the loser."""
        about_both = any(term.side in ("pair", "between") for term in self.terms)
        first = () if about_both else ("a commit is concurrent",)
        return ", and ".join((*first, *(term.words for term in self.terms)))

    @property
    def rank(self) -> int:
        """Highest rank of what its terms need."""
        return max((term.rank for term in self.terms), default=0)

    @property
    def size(self) -> int:
        """Number of names; the empty clause has one, as `unseen` is its text."""
        return sum(term.size for term in self.terms) or 1


class ClauseEffect(NamedTuple):
    """Candidates that a clause aborts, as masks."""

    bad: int
    """Bad classes; bit b stands for one class."""
    good: int
    """Good candidates: as many bits for a class as it has candidates."""


class PricedClause(NamedTuple):
    """Clause with its effect."""

    clause: RuleClause
    effect: ClauseEffect

    @property
    def price(self) -> tuple[int, int]:
        """Rank and size."""
        return self.clause.rank, self.clause.size


class Cover(NamedTuple):
    """Clauses that abort every bad candidate, with the number of good ones that they abort."""

    clauses: tuple[RuleClause, ...]
    needless: int

    @property
    def rank(self) -> int:
        """Highest rank of what its terms need."""
        return max(clause.rank for clause in self.clauses)

    @property
    def size(self) -> int:
        """Number of names in its clauses."""
        return sum(clause.size for clause in self.clauses)


class ClassMasks:
    """Effects of clauses on classes of candidates.

    Parameters
    ----------
    bad : sequence of set of int
        Concurrent pairs of each bad class, each as the mask of the terms that hold for it.
    good : mapping of set of int to int
        The same for good classes, with their numbers of candidates.
    n_terms : int
        Number of terms.
    """

    def __init__(
        self,
        bad: Sequence[frozenset[int]],
        good: Mapping[frozenset[int], int],
        n_terms: int,
    ) -> None:
        self.types = sorted(frozenset[int]().union(*bad, *good))
        number = {kind: k for k, kind in enumerate(self.types)}
        self._bad, self._good = [0] * len(self.types), [0] * len(self.types)
        for b, kinds in enumerate(bad):
            for kind in kinds:
                self._bad[number[kind]] |= 1 << b
        place = 0
        for kinds, weight in good.items():
            for kind in kinds:
                self._good[number[kind]] |= ((1 << weight) - 1) << place
            place += weight
        self.everything = (1 << len(self.types)) - 1
        self.columns = [
            sum((kind >> term & 1) << k for k, kind in enumerate(self.types))
            for term in range(n_terms)
        ]
        self._of_bad = sum(1 << k for k, mask in enumerate(self._bad) if mask)

    def column(self, terms: Iterable[int]) -> int:
        """Return the types of pairs for which all these terms hold, as a mask."""
        mask = self.everything
        for term in terms:
            mask &= self.columns[term]
        return mask

    def hits_bad(self, types: int) -> bool:
        """Return whether some bad class has a pair of one of these types."""
        return bool(types & self._of_bad)

    def effect(self, types: int) -> ClauseEffect:
        """Return the effect of a clause that holds for these types of pairs."""
        bad = good = 0
        while types:
            low = types & -types
            k = low.bit_length() - 1
            bad |= self._bad[k]
            good |= self._good[k]
            types ^= low
        return ClauseEffect(bad, good)


def telling_terms(
    masks: ClassMasks,
    terms: Sequence[RuleTerm],
    among: Callable[[RuleTerm], bool] = lambda _: True,
) -> dict[int, list[int]]:
    """Return the terms that tell pairs apart, each with the later ones that equal it here.

    Terms that are not ``among`` those asked for are left out. Of terms that hold for the same pairs
    the first is kept, so sort them by cost, and a later one only if it has fewer names. A term that
    holds for all pairs, or for none of a bad candidate, is left out.
    """
    by_column: dict[int, list[int]] = {}
    alternatives: dict[int, list[int]] = {}
    for k, term in enumerate(terms):
        column = masks.columns[k]
        if column == masks.everything or not masks.hits_bad(column) or not among(term):
            continue
        equal = by_column.setdefault(column, [])
        # A dearer term with fewer names is no alternative: it stays a term of its own.
        cheaper = next((c for c in equal if terms[c].size <= term.size), None)
        if cheaper is None:
            equal.append(k)
            alternatives[k] = []
        else:
            alternatives[cheaper].append(k)
    return alternatives


def priced_clauses(
    masks: ClassMasks,
    terms: Sequence[RuleTerm],
    *,
    among: Callable[[RuleTerm], bool] = lambda _: True,
    most_terms: int = MOST_TERMS,
    check: Callable[[], None] = lambda: None,
) -> list[PricedClause]:
    """Return the clauses of terms ``among`` some, of those with one effect the cheapest."""
    kept = telling_terms(masks, terms, among)
    # One effect at two ranks: both stay, as the dearer one may have fewer names.
    by_types: dict[tuple[int, int], RuleClause] = {}
    for count in range(most_terms + 1):
        for chosen in combinations(kept, count):
            types = masks.column(chosen)
            if masks.hits_bad(types):
                clause = RuleClause(tuple(terms[k] for k in chosen))
                _keep_cheapest(by_types, (types, clause.rank), clause)
        check()
    effects = {types: masks.effect(types) for types, _ in by_types}
    check()
    by_effect: dict[tuple[ClauseEffect, int], RuleClause] = {}
    for (types, rank), clause in by_types.items():
        _keep_cheapest(by_effect, (effects[types], rank), clause)
    return [PricedClause(clause, effect) for (effect, _), clause in by_effect.items()]


Key = TypeVar("Key")


def _keep_cheapest(cheapest: dict[Key, RuleClause], key: Key, clause: RuleClause) -> None:
    """Keep the clause, unless one with fewer names, or an earlier text, has its key."""
    known = cheapest.get(key)
    if known is None or (clause.size, clause.text) < (known.size, known.text):
        cheapest[key] = clause


def without_dominated(
    clauses: Iterable[PricedClause], check: Callable[[], None] = lambda: None
) -> list[PricedClause]:
    """Return the clauses such that no other one has no more names and a better effect."""
    kept: list[PricedClause] = []
    order = sorted(
        clauses,
        key=lambda priced: (
            priced.clause.size, priced.effect.good.bit_count(), -priced.effect.bad.bit_count(),
            priced.clause.rank, priced.clause.text,
        ),
    )  # fmt: skip
    for priced in order:
        bad, good = priced.effect
        # Sorted: a clause that is at least as good comes before, unless it has more names.
        if not any(bad & ~other.effect.bad == 0 == other.effect.good & ~good for other in kept):
            kept.append(priced)
        check()
    return kept


def cheapest_covers(
    clauses: Sequence[PricedClause],
    n_bad: int,
    *,
    most_clauses: int = MOST_CLAUSES,
    most_names: int = MOST_NAMES,
    better_than: Callable[[int], float] = lambda _size: float("inf"),
    check: Callable[[], None] = lambda: None,
) -> list[Cover]:
    """Return, for each number of names, the clauses that cover all bad classes and abort the
    fewest good candidates, if these are fewer than with fewer names.

    Parameters
    ----------
    clauses : sequence of PricedClause
        Clauses to choose from.
    n_bad : int
        Number of bad classes.
    most_clauses, most_names : int
        Maximum number of clauses, and of names in all of them.
    better_than : callable
        Number of needless aborts, by number of names, that has to be undercut.
    check : callable
        Called at every step; it may raise to end the search.
    """
    everything = (1 << n_bad) - 1
    covering = [
        sorted(
            (priced for priced in clauses if priced.effect.bad >> b & 1),
            key=lambda priced: (priced.effect.good.bit_count(), priced.price),
        )
        for b in range(n_bad)
    ]
    best: dict[int, Cover] = {}

    def bound(size: int) -> float:
        """Return the number of needless aborts to undercut with at most ``size`` names."""
        found = (cover.needless for of_size, cover in best.items() if of_size <= size)
        return min(better_than(size), min(found, default=float("inf")))

    def extend(chosen: tuple[RuleClause, ...], bad: int, good: int, size: int) -> None:
        check()
        needless = good.bit_count()
        if bad == everything:
            if needless < bound(size):
                best[size] = Cover(chosen, needless)
            return
        if len(chosen) == most_clauses:
            return
        open_classes = (b for b in range(n_bad) if not bad >> b & 1)
        hardest = min(open_classes, key=lambda b: len(covering[b]))
        for priced in covering[hardest]:
            longer, more = good | priced.effect.good, size + priced.clause.size
            if more <= most_names and longer.bit_count() < bound(more):
                extend((*chosen, priced.clause), bad | priced.effect.bad, longer, more)

    extend((), 0, 0, 0)
    least = float("inf")
    covers = []
    for size in sorted(best):
        if best[size].needless < least:
            least = best[size].needless
            covers.append(best[size])
    return covers


def repair_front(
    clauses: Sequence[PricedClause],
    n_bad: int,
    *,
    most_clauses: int = MOST_CLAUSES,
    most_names: int = MOST_NAMES,
    check: Callable[[], None] = lambda: None,
) -> Iterator[Cover]:
    """Yield the covers of which no other has fewer needless aborts at no higher rank and size.

    They come by rank. The smallest rank at which there is a cover begins.
    """
    front: list[Cover] = []

    def better_than(size: int) -> float:
        """Return the fewest needless aborts at the ranks so far with at most ``size`` names."""
        return min((cover.needless for cover in front if cover.size <= size), default=float("inf"))

    for rank in sorted({priced.clause.rank for priced in clauses}):
        usable = without_dominated(
            (priced for priced in clauses if priced.clause.rank <= rank), check
        )
        covers = cheapest_covers(
            usable, n_bad, most_clauses=most_clauses, most_names=most_names,
            better_than=better_than, check=check,
        )  # fmt: skip
        front += covers
        yield from covers
