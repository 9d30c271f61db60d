"""Levels that say the same of every history: most often a slip of their author."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.search.separation import ABSTRACT, separate
from isolitmus.checker.universes.abstract import names_for
from isolitmus.model.spec import Axiom, Binary, Bracket, Name, Spec
from isolitmus.specs.files.catalogue import spec as named

if TYPE_CHECKING:
    from isolitmus.model.budget import Budget
    from isolitmus.specs.files.spec_catalogue import SpecLike

__all__ = ["triviality"]

SIZES = (1, 2, 3)
"""So many transactions have the histories that are asked; beyond, those of the catalogue."""
EVERYTHING = Spec("everything", "Everything", "", "", (), {})
"""What allows every history."""
ANYONE = Bracket(Binary("|", Name("Writer"), Name("Reader")))
NOTHING = Spec(
    "nothing",
    "Nothing",
    "",
    "",
    (Axiom("empty", ANYONE, "nobody"),),
    {},
    needs=frozenset({"Writer", "Reader"}),
)
"""What allows no history in which anything happens."""


def triviality(spec: SpecLike, *, budget: Budget | None = None) -> str | None:
    """That a spec allows every history that a search looks at, or none of them, in a sentence with the bound; None if
    it does neither, if it asks for what abstract histories do not have, or once the budget is spent.

    >>> from isolitmus.specs.language.parser import read
    >>> print(triviality(read('"Slip" acyclic so & wr as slip', "slip")))
    slip allows every history: it forbids none up to 3 transactions in universe 'abstract' (at most 3 keys), and none of the catalogue
    >>> triviality(read('"Sound" acyclic wr as order', "sound")) is None
    True
    """
    spec = named(spec)
    if not spec.needs <= names_for(spec):
        return None
    for a, b, says in (
        (EVERYTHING, spec, "allows every history: it forbids none"),
        (spec, NOTHING, "forbids every history: it allows none"),
    ):
        found = separate(a, b, universe=ABSTRACT, transactions=SIZES, budget=budget)
        if found.found is False and found.beside is None:
            where, _, _ = found.bound.partition(";")
            return f"{spec.name} {says} {where}, and none of the catalogue"
    return None
