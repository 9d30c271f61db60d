"""Laws of histories: facts about every dependency graph, independent of levels, for use in proofs.

A law is an implication over graphs whose nodes are all operations (``checker.judge.read_nodes``):
if some nodes are related in a way, one of several other relations holds between them. Relations are
written in the language of specs. The tests check each law on the catalogue's histories, on random
ones and on every small one; a solver uses it as a formula (``checker.prove.history_proof``).

``same`` is the identity. ``Op`` are the operations; all other nodes are transactions, T0 among
them. A read is served if it is the target of ``rf``: its transaction committed, and it took its
value from another one.

The law on versions is as follows. A read of transaction t took its value from s, and another
transaction u wrote the object. Either u wrote earlier, and ww leads from u to s. Or u wrote later;
then t misses the next version, or a later one that changes the matches, and ww leads from that one
to u, unless t has put its own version in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from isolitmus.model.spec_algebra import unfold
from isolitmus.specs.language.parser import read

if TYPE_CHECKING:
    from isolitmus.model.spec import CatExpr

__all__ = ["LAWS", "TIMED", "Law", "Related"]

WORDS = r"""
let same = (so \ so)?
let Op = ItemRead | PredicateRead | Write
let Tx = ~Op
let missed = rw ; ww*
let Done = Tx \ Aborted
"""
"""Definitions shared by the laws."""

Related = tuple[str, str, str]
"""Node, relation, and a node to which it leads."""


@dataclass(frozen=True)
class Law:
    """Implication that holds in the dependency graph of every history."""

    sentence: str
    """Statement as text."""
    given: tuple[Related, ...]
    """Conditions: these nodes are related in this way."""
    then: tuple[Related, ...] = ()
    """Conclusion: one of these holds; if empty, the conditions are contradictory."""

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes."""
        return tuple(dict.fromkeys(x for i, _, j in (*self.given, *self.then) for x in (i, j)))

    @property
    def relations(self) -> tuple[CatExpr, ...]:
        """Relations that occur in it, with definitions unfolded."""
        return tuple(relation(text) for _, text, _ in (*self.given, *self.then))


@cache
def relation(text: str) -> CatExpr:
    """Return the relation that a text denotes, with definitions unfolded."""
    spec = read(f'"Law" {WORDS} empty {text} as law', "law")
    return unfold(spec.axioms[0].expr, spec.definitions)


LAWS = (
    Law("an operation is in a transaction", (("o", "in", "t"),), (("o", "[Op] ; in ; [Tx]", "t"),)),
    Law(
        "no operation is in two transactions",
        (("o", "in", "t"), ("o", "in", "u")),
        (("t", "same", "u"),),
    ),
    Law(
        "the initial transaction is in no other set",
        (("t", "[Initial & (Op | Aborted | Writer | Reader)]", "t"),),
    ),
    Law("who writes does not only read", (("t", "[Writer & Reader]", "t"),)),
    Law(
        "a transaction is the initial one, writes, or only reads",
        (("t", "[Tx]", "t"),),
        (("t", "[Initial | Writer | Reader]", "t"),),
    ),
    Law(
        "no operation is in a set of transactions",
        (("t", "[Writer | Reader | Aborted]", "t"),),
        (("t", "[Tx]", "t"),),
    ),
    Law(
        "sessions are of transactions that committed, and the initial one follows nobody",
        (("t", "so", "u"),),
        (("t", "[Done] ; so ; [Done & ~Initial]", "u"),),
    ),
    Law(
        "the initial transaction comes before all that committed",
        (("t", "[Initial]", "t"), ("u", r"[Done \ Initial]", "u")),
        (("t", "so", "u"),),
    ),
    Law("the order of sessions goes on", (("t", "so", "u"), ("u", "so", "v")), (("t", "so", "v"),)),
    Law("the order of sessions leads nobody back", (("t", "so", "t"),)),
    Law(
        "who reads from another one committed, and is not the initial transaction",
        (("t", "wr", "u"),),
        (("t", r"([Tx] ; wr ; [Done & ~Initial]) \ same", "u"),),
    ),
    Law("who is read from wrote", (("t", "[~Initial] ; wr", "u"),), (("t", "[Writer]", "t"),)),
    Law(
        "versions are of different writers that committed",
        (("t", "ww", "u"),),
        (("t", r"([Writer & Done] ; ww ; [Writer & Done]) \ same", "u"),),
    ),
    Law(
        "who misses a version committed, and so did its writer, who is another one",
        (("t", "rw", "u"),),
        (("t", r"([Done & ~Initial] ; rw ; [Writer & Done]) \ same", "u"),),
    ),
    Law("a read has one source", (("t", "rf", "r"), ("u", "rf", "r")), (("t", "same", "u"),)),
    Law(
        "what has a source is a read",
        (("t", "rf", "r"),),
        (("t", "[Tx] ; rf ; [ItemRead | PredicateRead]", "r"),),
    ),
    Law("the source of a read is another transaction", (("t", "rf", "r"), ("r", "in", "t"))),
    Law(
        "the transaction of a read that has a source committed",
        (("t", "rf", "r"), ("r", "in", "u")),
        (("u", "[Done]", "u"),),
    ),
    Law(
        "a read that has a source is in a transaction",
        (("t", "rf", "r"),),
        (("r", "in ; in^-1", "r"),),
    ),
    Law(
        "who depends on a writer by reading has a read that does",
        (("t", "wr", "u"),),
        (("t", "wr-read ; in", "u"),),
    ),
    Law(
        "what a read depends on, its transaction depends on",
        (("t", "wr-read", "r"), ("r", "in", "u")),
        (("t", "wr", "u"),),
    ),
    Law(
        "a read of an item depends on its source",
        (("t", "rf ; [ItemRead]", "r"),),
        (("t", "wr-read", "r"),),
    ),
    Law(
        "who reads an item depends on its source",
        (("t", "[~Initial] ; rf ; [ItemRead]", "r"), ("r", "in", "u")),
        (("t", "wr", "u"),),
    ),
    Law(
        "who reads what an aborted transaction wrote depends on it",
        (("t", "[Aborted] ; rf", "r"), ("r", "in", "u")),
        (("t", "wr", "u"),),
    ),
    Law(
        "who misses a version has a read that does",
        (("t", "rw", "u"),),
        (("t", "in^-1 ; fr", "u"),),
    ),
    Law(
        "what a read misses, its transaction misses",
        (("r", "fr", "u"), ("r", "in", "t")),
        (("t", "rw", "u"),),
    ),
    Law(
        "a read that misses a version has a source",
        (("r", "fr", "u"),),
        (("r", "rf^-1 ; rf", "r"),),
    ),
    Law("a rival committed", (("t", "rival", "r"),), (("t", "[Done]", "t"),)),
    Law(
        "a read that has a rival has a source", (("t", "rival", "r"),), (("r", "rf^-1 ; rf", "r"),)
    ),
    Law(
        "the initial transaction is no rival of itself",
        (("t", "[Initial] ; rival", "r"), ("t", "rf", "r")),
    ),
    Law("nobody is the rival of a read of his own", (("t", "rival", "r"), ("r", "in", "t"))),
    Law(
        "a rival came before the source, or is no earlier than a version that the reader misses, or"
        " than its own",
        (("u", "[~Initial] ; rival", "r"), ("s", "[~Aborted] ; rf", "r"), ("r", "in", "t")),
        (("u", "ww+", "s"), ("t", "ww+", "u"), ("t", "missed", "u")),
    ),
    Law(
        "a version that is missed is no earlier than a rival that came after the source, or than"
        " the reader's own",
        (("t", "rw", "u"),),
        (
            ("t", "ww+", "u"),
            ("t", "in^-1 ; (rival^-1 & (rf^-1 ; (ww+ | [Initial] ; so | same))) ; ww*", "u"),
        ),
    ),
    Law(
        "who reads what its writer overwrote has a read whose source is its rival",
        (("s", "intermediate", "t"),),
        (("s", "(rf & rival) ; [ItemRead] ; in", "t"),),
    ),
    Law(
        "who reads what its writer overwrote has a read that depends on that one and misses it",
        (("s", "intermediate", "t"),),
        (("s", "(wr-read & fr^-1) ; [ItemRead] ; in", "t"),),
    ),
    Law(
        "who reads what its writer overwrote depends on that one and misses it",
        (("s", "intermediate", "t"),),
        (("s", "wr & rw^-1", "t"),),
    ),
    Law(
        "who reads what its writer overwrote depends on that one by item, and misses it by item",
        (("s", "intermediate", "t"),),
        (("s", "wr-item & rw-item^-1", "t"),),
    ),
    Law("a dependency by item is one", (("t", "wr-item", "u"),), (("t", "wr", "u"),)),
    Law("an anti-dependency by item is one", (("t", "rw-item", "u"),), (("t", "rw", "u"),)),
    Law(
        "who reads an item depends by item on its source",
        (("t", "[~Initial] ; rf ; [ItemRead]", "r"), ("r", "in", "u")),
        (("t", "wr-item", "u"),),
    ),
    Law(
        "who misses a version of an item misses it by item",
        (("r", "[ItemRead] ; fr", "u"), ("r", "in", "t")),
        (("t", "rw-item", "u"),),
    ),
    Law(
        "who wrote an item of which its read misses a version did so after that, or before the"
        " source, or the source overwrote its own",
        (
            ("r", "[ItemRead] ; fr", "u"),
            ("r", "po & loc", "w"),
            ("w", "[Write] ; in", "t"),
            ("s", "rf", "r"),
        ),
        (("u", "ww+", "t"), ("t", "ww+", "s"), ("s", "same", "u")),
    ),
    Law("being on one object is mutual", (("o", "loc", "p"),), (("p", "loc", "o"),)),
    Law(
        "the order of operations is within a transaction",
        (("o", "po", "p"),),
        (("o", r"(in ; in^-1) \ same", "p"),),
    ),
)
TIMED = (
    Law("time goes on", (("o", "time", "p"), ("p", "time", "q")), (("o", "time", "q"),)),
    Law("time leads nobody back", (("o", "time", "o"),)),
    Law("a transaction ends after its operations", (("o", "in", "t"),), (("o", "time", "t"),)),
    Law(
        "operations of a transaction come in their order",
        (("o", "po", "p"),),
        (("o", "time", "p"),),
    ),
    Law(
        "an operation comes before or after the end of a transaction with one on its object",
        (("o", "loc", "p"), ("p", "in", "t")),
        (("o", "time", "t"), ("t", "time", "o")),
    ),
)
"""Laws of histories in which times are known."""
