"""Terms of commit rules, and what a commit checker pays for each.

A rule aborts the loser of a pair of concurrent commits. Its terms are what a commit checker can
hold: relations between winner and loser, sets that the winner or the loser is in, and a commit
between the two. Dependencies (wr, ww, rw and their like) are not terms: these are what the level
judges, and a rule that used them would repeat the level.

`RULE_COSTS` says what a term needs: what has to be recorded while a statement runs, and what has to
be evaluated at its commit. Its rank orders these needs; it is no measure of time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from isolitmus.model.vocabulary import RELATIONS, SETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from isolitmus.model.frame import Frame


class RuleCost(NamedTuple):
    """What a commit checker needs for a term."""

    rank: int
    """Order of the needs, from 0."""
    name: str
    """Short name."""
    sentence: str
    """What is recorded at run time, and what is evaluated at commit."""


RULE_COSTS = (
    RuleCost(0, "actions", "the actions of both commits, and the files that the loser read"),
    RuleCost(1, "partitions", "the loser's partition predicates, evaluated on added files"),
    RuleCost(1, "operation", "the operation of a commit with its clauses, as commitInfo has it"),
    RuleCost(1, "read version", "the version that each winner read, as commitInfo has it"),
    RuleCost(2, "new field", "a property of the winner's statement that no log records today"),
    RuleCost(2, "statistics", "the loser's predicates on data, evaluated on statistics of files"),
    RuleCost(2, "positions", "the deletion vectors of both commits, compared bit by bit"),
    RuleCost(3, "rows", "the loser's predicates, evaluated on rows of the winner: data is read"),
    RuleCost(3, "merge keys", "the keys of a MERGE's source, recorded in its commit"),
    RuleCost(4, "row ids", "the row ids of changed rows, recorded in each commit"),
)
"""Needs of terms, cheapest first."""

_COST = {cost.name: cost for cost in RULE_COSTS}
_COST_OF_RELATION = {
    "adds-meets-reads": "partitions",
    "removes-meets-reads": "actions",
    "removes-meets-removes": "actions",
    "merges-vectors": "positions",
    "adds-meets-reads-unmerged": "positions",
    "removes-meets-reads-unmerged": "positions",
    "removes-meets-removes-unmerged": "positions",
    "removes-meets-reads-unmoved": "positions",
    "removes-meets-removes-unmoved": "positions",
    "removes-removed-row": "positions",
    "moves-removed-row": "positions",
    "removes-moved-row": "positions",
    "adds-could-match-reads": "statistics",
    "adds-could-match-reads-unmerged": "statistics",
    "removes-could-match-reads": "statistics",
    "adds-match-reads": "rows",
    "adds-match-reads-unmerged": "rows",
    "added-rows-match-reads": "rows",
    "removed-rows-match-reads": "rows",
    "removes-read-row": "rows",
    "moves-read-row": "rows",
    "same-merge-key": "merge keys",
    "changes-changed-row": "row ids",
}
"""Need of each relation that may be a term."""
_COST_OF_SET = {
    "Blind": "actions",
    "NoData": "actions",
    "AppendOnly": "actions",
    "Vectors": "actions",
    "Large": "actions",
    "Meta": "actions",
    "Merging": "operation",
    "Deleting": "operation",
    "Updating": "operation",
    "Compacting": "operation",
    "InsertsUnmatched": "operation",
    "BySource": "operation",
    "ReadsTarget": "operation",
    "Complex": "operation",
}
"""Need of each set of commits that may be a term."""
_UNRECORDED = frozenset(("ReadsTarget", "Complex"))
"""Sets that a checker knows of the loser, but that the winner's log entry does not tell."""
_UNIONS = (("ReadsTarget", "InsertsUnmatched"), ("Blind", "NoData"))
"""Unions of sets that are tried as one condition; others are found as two clauses."""

TermSide = Literal["pair", "winner", "loser", "between"]


@dataclass(frozen=True, slots=True)
class RuleTerm:
    """Condition on a pair of concurrent commits, of which a rule has several.

    Examples
    --------
    >>> term = RuleTerm("loser", ("ReadsTarget",), inside=False)
    >>> term.text, term.rank, term.words
    ('~ReadsTarget', 1, 'the loser has no source or subquery that reads its target')
    >>> bridge = RuleTerm("between", ("Blind", "NoData"), inside=False, first="vis")
    >>> bridge.text
    '(vis ; [~(Blind | NoData)] ; unseen)'
    """

    side: TermSide
    """What it is about: the pair, one of the two, or a commit between them."""
    names: tuple[str, ...]
    """The relation of a pair; else sets, whose union is meant. Empty: any commit between."""
    inside: bool = True
    """Whether the commit is in the union; else it is outside."""
    first: Literal["", "vis", "unseen"] = ""
    """For a commit between: how the winner stands to it. The loser has not seen it."""

    @property
    def text(self) -> str:
        """Text in cat: a relation, or a set."""
        if self.side == "between":
            middle = f" ; [{self._set}]" if self.names else ""
            return f"({self.first}{middle} ; unseen)"
        return self.names[0] if self.side == "pair" else self._set

    @property
    def _set(self) -> str:
        union = " | ".join(self.names)
        if self.inside:
            return union
        return f"~({union})" if len(self.names) > 1 else f"~{union}"

    @property
    def costs(self) -> tuple[RuleCost, ...]:
        """What a checker needs for it, without repetition."""
        if self.side == "pair":
            return (_COST[_COST_OF_RELATION[self.names[0]]],)
        of_sets = (
            "new field" if self.side != "loser" and name in _UNRECORDED else _COST_OF_SET[name]
            for name in self.names
        )
        version = ("read version",) if self.side == "between" else ()
        return tuple(dict.fromkeys(_COST[name] for name in (*version, *of_sets)))

    @property
    def rank(self) -> int:
        """Highest rank of what it needs."""
        return max(cost.rank for cost in self.costs)

    @property
    def size(self) -> int:
        """Number of names that it uses."""
        return len(self.names) + (self.side == "between")

    @property
    def words(self) -> str:
        """Statement about the winner and the loser."""
        if self.side == "pair":
            return f"the winner {RELATIONS[self.names[0]].verb} the loser"
        if self.side != "between":
            return self._members(f"the {self.side}")
        how = "had seen" if self.first == "vis" else "had not seen"
        which = f" ({self._members('it')})" if self.names else ""
        return f"a third commit{which} {how} the winner, and the loser had not seen the third"

    def _members(self, node: str) -> str:
        joint = " or " if self.inside else " and "
        return joint.join(SETS[name].member(node, inside=self.inside) for name in self.names)


def rule_terms(relations: Iterable[str], sets: Iterable[str]) -> tuple[RuleTerm, ...]:
    """Return the terms over these names of a frame, cheapest first.

    Names that may not be terms, such as dependencies, are left out.

    Examples
    --------
    >>> [term.text for term in rule_terms(["rw", "removes-read-row"], [])]
    ['(vis ; unseen)', '(unseen ; unseen)', 'removes-read-row']
    """
    known = [name for name in _COST_OF_SET if name in frozenset(sets)]
    unions: list[tuple[str, ...]] = [(name,) for name in known]
    unions += [union for union in _UNIONS if all(name in known for name in union)]
    terms = [RuleTerm("pair", (name,)) for name in _COST_OF_RELATION if name in set(relations)]
    for inside in (True, False):
        for names in unions:
            terms += (RuleTerm(side, names, inside) for side in ("winner", "loser"))
    for first in ("vis", "unseen"):
        terms.append(RuleTerm("between", (), first=first))
        for inside in (True, False):
            terms += (RuleTerm("between", names, inside, first) for names in unions)
    return tuple(sorted(terms, key=lambda term: (term.rank, term.size)))


def concurrent_pairs(frame: Frame) -> Iterator[tuple[int, int]]:
    """Yield the pairs of a winner and a loser that had not seen it."""
    for winner, row in enumerate(frame.relations["unseen"].rows):
        for loser in range(len(frame.nodes)):
            if row >> loser & 1:
                yield winner, loser


def pair_types(frame: Frame, terms: Sequence[RuleTerm]) -> frozenset[int]:
    """Return the terms that hold for each concurrent pair, as masks: bit b stands for terms[b]."""
    return frozenset(
        sum(_holds(frame, term, winner, loser) << bit for bit, term in enumerate(terms))
        for winner, loser in concurrent_pairs(frame)
    )


def _holds(frame: Frame, term: RuleTerm, winner: int, loser: int) -> bool:
    if term.side == "pair":
        return bool(frame.relations[term.names[0]].rows[winner] >> loser & 1)
    everyone = (1 << len(frame.nodes)) - 1
    members = 0 if term.names else everyone
    for name in term.names:
        members |= frame.sets[name]
    if not term.inside:
        members = everyone & ~members
    if term.side != "between":
        return bool(members >> (winner if term.side == "winner" else loser) & 1)
    unseen = frame.relations["unseen"].rows
    middle = frame.relations[term.first].rows[winner] & members
    return any(middle >> x & 1 and unseen[x] >> loser & 1 for x in range(len(unseen)))
