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
    Law("no transaction is both a writer and a reader", (("t", "[Writer & Reader]", "t"),)),
    Law(
        "a transaction is the initial one, a writer or a reader",
        (("t", "[Tx]", "t"),),
        (("t", "[Initial | Writer | Reader]", "t"),),
    ),
    Law(
        "sets of transactions hold no operations",
        (("t", "[Writer | Reader | Aborted]", "t"),),
        (("t", "[Tx]", "t"),),
    ),
    Law(
        "so relates committed transactions, none to the initial one",
        (("t", "so", "u"),),
        (("t", "[Done] ; so ; [Done & ~Initial]", "u"),),
    ),
    Law(
        "so relates the initial transaction to every committed one",
        (("t", "[Initial]", "t"), ("u", r"[Done \ Initial]", "u")),
        (("t", "so", "u"),),
    ),
    Law("so is transitive", (("t", "so", "u"), ("u", "so", "v")), (("t", "so", "v"),)),
    Law("so is irreflexive", (("t", "so", "t"),)),
    Law(
        "wr leads to another transaction, committed and not the initial one",
        (("t", "wr", "u"),),
        (("t", r"([Tx] ; wr ; [Done & ~Initial]) \ same", "u"),),
    ),
    Law(
        "wr comes from a writer or the initial transaction",
        (("t", "[~Initial] ; wr", "u"),),
        (("t", "[Writer]", "t"),),
    ),
    Law(
        "ww relates two different committed writers",
        (("t", "ww", "u"),),
        (("t", r"([Writer & Done] ; ww ; [Writer & Done]) \ same", "u"),),
    ),
    Law(
        "rw relates a committed transaction to another committed writer",
        (("t", "rw", "u"),),
        (("t", r"([Done & ~Initial] ; rw ; [Writer & Done]) \ same", "u"),),
    ),
    Law("a read has one source", (("t", "rf", "r"), ("u", "rf", "r")), (("t", "same", "u"),)),
    Law(
        "only reads have a source",
        (("t", "rf", "r"),),
        (("t", "[Tx] ; rf ; [ItemRead | PredicateRead]", "r"),),
    ),
    Law("the source of a read is another transaction", (("t", "rf", "r"), ("r", "in", "t"))),
    Law(
        "a transaction with a read that has a source committed",
        (("t", "rf", "r"), ("r", "in", "u")),
        (("u", "[Done]", "u"),),
    ),
    Law(
        "a read that has a source is in a transaction",
        (("t", "rf", "r"),),
        (("r", "in ; in^-1", "r"),),
    ),
    Law(
        "a wr edge comes from a read of the later transaction",
        (("t", "wr", "u"),),
        (("t", "wr-read ; in", "u"),),
    ),
    Law(
        "a wr edge of a read is one of its transaction",
        (("t", "wr-read", "r"), ("r", "in", "u")),
        (("t", "wr", "u"),),
    ),
    Law(
        "an item read has a wr edge from its source",
        (("t", "rf ; [ItemRead]", "r"),),
        (("t", "wr-read", "r"),),
    ),
    Law(
        "a transaction with an item read has a wr edge from the source",
        (("t", "[~Initial] ; rf ; [ItemRead]", "r"), ("r", "in", "u")),
        (("t", "wr", "u"),),
    ),
    Law(
        "a transaction that reads from an aborted one has a wr edge from it",
        (("t", "[Aborted] ; rf", "r"), ("r", "in", "u")),
        (("t", "wr", "u"),),
    ),
    Law(
        "an rw edge comes from a read of the earlier transaction",
        (("t", "rw", "u"),),
        (("t", "in^-1 ; fr", "u"),),
    ),
    Law(
        "an rw edge of a read is one of its transaction",
        (("r", "fr", "u"), ("r", "in", "t")),
        (("t", "rw", "u"),),
    ),
    Law(
        "a read with an rw edge has a source",
        (("r", "fr", "u"),),
        (("r", "rf^-1 ; rf", "r"),),
    ),
    Law("a rival of a read committed", (("t", "rival", "r"),), (("t", "[Done]", "t"),)),
    Law(
        "a read that has a rival has a source", (("t", "rival", "r"),), (("r", "rf^-1 ; rf", "r"),)
    ),
    Law(
        "the initial transaction is no rival of itself",
        (("t", "[Initial] ; rival", "r"), ("t", "rf", "r")),
    ),
    Law("no transaction is a rival of its own read", (("t", "rival", "r"), ("r", "in", "t"))),
    Law(
        "a rival precedes the source, or follows or is a version that the reader does not see, or"
        " follows the reader's own",
        (("u", "[~Initial] ; rival", "r"), ("s", "[~Aborted] ; rf", "r"), ("r", "in", "t")),
        (("u", "ww+", "s"), ("t", "ww+", "u"), ("t", "missed", "u")),
    ),
    Law(
        "a version that the reader does not see follows the reader's own, or follows or is a rival"
        " that follows the source",
        (("t", "rw", "u"),),
        (
            ("t", "ww+", "u"),
            ("t", "in^-1 ; (rival^-1 & (rf^-1 ; (ww+ | [Initial] ; so | same))) ; ww*", "u"),
        ),
    ),
    Law(
        "an intermediate read has a source that is its rival",
        (("s", "intermediate", "t"),),
        (("s", "(rf & rival) ; [ItemRead] ; in", "t"),),
    ),
    Law(
        "an intermediate read has wr from its source and rw to it",
        (("s", "intermediate", "t"),),
        (("s", "(wr-read & fr^-1) ; [ItemRead] ; in", "t"),),
    ),
    Law(
        "a transaction with an intermediate read has wr from its source and rw to it",
        (("s", "intermediate", "t"),),
        (("s", "wr & rw^-1", "t"),),
    ),
    Law(
        "a transaction with an intermediate read has both edges by item",
        (("s", "intermediate", "t"),),
        (("s", "wr-item & rw-item^-1", "t"),),
    ),
    Law("a wr edge by item is a wr edge", (("t", "wr-item", "u"),), (("t", "wr", "u"),)),
    Law("an rw edge by item is an rw edge", (("t", "rw-item", "u"),), (("t", "rw", "u"),)),
    Law(
        "a transaction with an item read has a wr edge by item from the source",
        (("t", "[~Initial] ; rf ; [ItemRead]", "r"), ("r", "in", "u")),
        (("t", "wr-item", "u"),),
    ),
    Law(
        "an rw edge of an item read is an rw edge by item of its transaction",
        (("r", "[ItemRead] ; fr", "u"), ("r", "in", "t")),
        (("t", "rw-item", "u"),),
    ),
    Law(
        "a transaction that writes an item after a read that does not see a version of it follows"
        " that version, or precedes the source, or the source wrote that version",
        (
            ("r", "[ItemRead] ; fr", "u"),
            ("r", "po & loc", "w"),
            ("w", "[Write] ; in", "t"),
            ("s", "rf", "r"),
        ),
        (("u", "ww+", "t"), ("t", "ww+", "s"), ("s", "same", "u")),
    ),
    Law("loc is symmetric", (("o", "loc", "p"),), (("p", "loc", "o"),)),
    Law(
        "po relates different operations of one transaction",
        (("o", "po", "p"),),
        (("o", r"(in ; in^-1) \ same", "p"),),
    ),
)
TIMED = (
    Law("time is transitive", (("o", "time", "p"), ("p", "time", "q")), (("o", "time", "q"),)),
    Law("time is irreflexive", (("o", "time", "o"),)),
    Law("a transaction ends after its operations", (("o", "in", "t"),), (("o", "time", "t"),)),
    Law(
        "time follows po",
        (("o", "po", "p"),),
        (("o", "time", "p"),),
    ),
    Law(
        "time orders an operation and the end of a transaction with an operation on its object",
        (("o", "loc", "p"), ("p", "in", "t")),
        (("o", "time", "t"), ("t", "time", "o")),
    ),
)
"""Laws of histories in which times are known."""
