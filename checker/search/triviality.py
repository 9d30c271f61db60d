"""Levels that allow every history, or none, most often by a slip of their author."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.search.separation import separate
from isolitmus.checker.search.space_searches import ABSTRACT
from isolitmus.checker.universes.abstract import available_names
from isolitmus.checker.universes.exercised_names import EVERYTHING
from isolitmus.model.spec import Axiom, Binary, Bracket, Name, Spec
from isolitmus.specs.files.spec_catalogue import spec as named_spec

if TYPE_CHECKING:
    from isolitmus.model.budget import Budget
    from isolitmus.specs.files.spec_catalogue import SpecLike

SIZES = (1, 2, 3)
"""Numbers of transactions of the searched histories; larger ones are those of the catalogue."""
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
"""Level that allows no history with a transaction."""


def find_triviality(spec: SpecLike, *, budget: Budget | None = None) -> str | None:
    """Return a sentence that a level allows every searched history, or none, with the bound.

    Returns
    -------
    str or None
        None if it does neither, if it needs names that abstract histories do not have, or if the
        budget is spent.

    Examples
    --------
    >>> from isolitmus.specs.language.parser import read
    >>> said = find_triviality(read('"Slip" acyclic so & wr as slip', "slip"))
    >>> said.partition(" in search space")[0]
    'slip allows every history: it forbids none up to 3 transactions'
    >>> find_triviality(read('"Sound" acyclic wr as order', "sound")) is None
    True
    """
    spec = named_spec(spec)
    if not spec.needs <= available_names(spec):
        return None
    for a, b, says in (
        (EVERYTHING, spec, "allows every history: it forbids none"),
        (spec, NOTHING, "forbids every history: it allows none"),
    ):
        found = separate(a, b, universe=ABSTRACT, transactions=SIZES, exercise=False, budget=budget)
        if found.found is False and found.beside is None:
            where, _, _ = found.bound.partition(";")
            return f"{spec.name} {says} {where}, and none of the catalogue"
    return None
