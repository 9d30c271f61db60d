"""Result of ``repair``: a front of strengthened rules, each with its text, price and evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from isolitmus.checker.prove.proof import scope_of_statements
from isolitmus.model.display import TextResult

if TYPE_CHECKING:
    from isolitmus.checker.prove.proof import Proof
    from isolitmus.checker.search.repair_front import Cover
    from isolitmus.checker.universes.catalogue_histories import ShippedTest
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import Spec


@dataclass(frozen=True, slots=True)
class NeededPart:
    """Part of a repair, with a history that shows that it is needed."""

    without: str
    """Text of the clause, or of the term in a clause, that is taken away."""
    reason: Literal["violation", "needless abort"]
    """Without the clause the history is a violation; without the term it aborts for nothing."""
    litmus: Litmus
    """History."""


@dataclass(frozen=True, slots=True)
class RuleRepair:
    """Strengthening of a protocol's rule that keeps the level in the searched scopes."""

    spec: Spec
    """Protocol with the clauses as axioms, as it was read from its text."""
    cover: Cover
    """Clauses, and the number of good candidates that they abort."""
    saved: int | None
    """Number of good candidates that it admits and the released protocol aborts; None if the
    protocol is a released one.
    """
    needed: tuple[NeededPart, ...] = ()
    """Each clause and each term with a history; empty if a limit ended the search."""
    proof: Proof | None = None
    """Proof for any number of transactions; None if there is none."""
    equal_here: tuple[tuple[str, str], ...] = ()
    """Relations that hold for the same pairs in these scopes: the one that is used, another."""

    @property
    def proved_for(self) -> str | None:
        """Statements for which it is proved, with any number of transactions; None if it is not."""
        if self.proof is None or not self.proof.holds:
            return None
        return scope_of_statements(self.proof.premises)

    def to_json(self) -> dict[str, object]:
        """Return the repair as JSON, with its text and its histories as litmus files."""
        return {
            "name": self.spec.name,
            "text": self.spec.text,
            "clauses": [
                {
                    "text": clause.text,
                    "words": clause.words,
                    "terms": [
                        {
                            "text": term.text,
                            "side": term.side,
                            "rank": term.rank,
                            "needs": [cost.name for cost in term.costs],
                        }
                        for term in clause.terms
                    ],
                }
                for clause in self.cover.clauses
            ],
            "needless": self.cover.needless,
            "saved": self.saved,
            "rank": self.cover.rank,
            "names": self.cover.size,
            "proved": self.proved_for is not None,
            "proved_for": self.proved_for,
            "needed": [
                {"without": one.without, "reason": one.reason, "litmus": str(one.litmus)}
                for one in self.needed
            ],
            "equal_here": [list(pair) for pair in self.equal_here],
        }


@dataclass(frozen=True, slots=True, repr=False)
class RuleRepairs(TextResult):
    """Result of ``repair``: a front of repairs, or the reason why there is none."""

    protocol: str
    level: str
    outcome: Literal["repaired", "holds", "impossible", "unknown"]
    """Whether repairs were found; nothing is to be repaired; no rule over the terms keeps the
    level; or a limit ended the search before.
    """
    bound: str
    """Scopes with their numbers of transactions and candidates, as text."""
    explained: bool
    """Whether candidates that no serial order explains are bad as well."""
    admitted: int
    """Number of candidates that the protocol admits."""
    bad: int
    """Number of bad ones among them."""
    released: str | None = None
    """Released protocol with which the repairs are compared."""
    excused: int | None = None
    """Number of good candidates that the released protocol aborts, and this one admits."""
    hole: Litmus | None = None
    """Smallest bad candidate."""
    front: tuple[RuleRepair, ...] = ()
    """Repairs of which no other has fewer needless aborts at no higher rank and no more names;
    for a proved one, no other proved one.
    """
    alone: tuple[Cover, ...] = ()
    """Repairs by a single relation, on the front or not, fewest needless aborts first."""
    indistinct: tuple[Litmus, Litmus] | None = None
    """A bad and a good history that no term tells apart."""
    beside: ShippedTest | None = None
    """Test of the catalogue, outside of the scopes, that the protocol admits and the level
    forbids, if nothing is to be repaired in the scopes.
    """
    assumptions: tuple[str, ...] = ()
    """Assumptions of the search."""
    ended: str | None = None
    """Limit that ended the search; None if none did."""
    seconds: float = 0.0
    """Run time in seconds."""

    def to_json(self) -> dict[str, object]:
        """Return the result as JSON."""
        pair = None if self.indistinct is None else [str(one) for one in self.indistinct]
        return {
            "protocol": self.protocol,
            "level": self.level,
            "outcome": self.outcome,
            "bound": self.bound,
            "assumptions": list(self.assumptions),
            "explained": self.explained,
            "admitted": self.admitted,
            "bad": self.bad,
            "released": self.released,
            "excused": self.excused,
            "hole": None if self.hole is None else str(self.hole),
            "front": [one.to_json() for one in self.front],
            "alone": [
                {"text": c.clauses[0].text, "needless": c.needless, "rank": c.rank}
                for c in self.alone
            ],
            "indistinct": pair,
            "beside": None if self.beside is None else self.beside.test.name,
            "ended": self.ended,
            "seconds": round(self.seconds, 3),
        }
