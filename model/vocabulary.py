"""The base names that a spec may use, and what is to be known of each: the vocabulary of frames.

Lower case are relations, capitals are sets of nodes. A frame has some of these names, never all; a
spec that uses one which its frame lacks gets the answer "needs …" instead of a verdict. A format may have
terms of its own beside these (``model.format``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.terms_of_delta import OF_DELTA
from isolitmus.model.terms_of_histories import OF_HISTORIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.term import Of, Term

__all__ = [
    "APART",
    "BASE",
    "BINDERS",
    "BY_VERSIONS",
    "RELATIONS",
    "SETS",
    "relations_of",
    "sets_of",
    "terms_of",
]

TERMS = (*OF_HISTORIES, *OF_DELTA)
"""All base names; of each kind in the order in which a frame shows them."""

RELATIONS = {term.name: term for term in TERMS if term.kind == "relation"}
SETS = {term.name: term for term in TERMS if term.kind == "set"}
BASE = RELATIONS | SETS


def relations_of(*of: Of) -> tuple[str, ...]:
    """The relations that belong to one of these, in the order of the vocabulary.

    >>> relations_of("histories", "logs")
    ('so', 'wr', 'ww', 'rw', 'intermediate', 'log', 'vis', 'unseen')
    """
    return tuple(name for name, term in RELATIONS.items() if term.of in of)


def sets_of(*of: Of) -> tuple[str, ...]:
    """The sets that belong to one of these, in the order of the vocabulary.

    >>> sets_of("histories")
    ('Writer', 'Reader', 'Aborted')
    """
    return tuple(name for name, term in SETS.items() if term.of in of)


def terms_of(*terms: str | Term) -> Mapping[str, Term]:
    """Terms by name: those of the vocabulary by their names alone, and a format's own.

    ValueError for a name that the vocabulary does not have, or an own term that has the name of another.

    >>> from isolitmus.model.term import Term
    >>> own = Term("waits", "locking", "the first waits for a lock of the second", verb="waits for")
    >>> [(name, term.of) for name, term in terms_of("ww", "Writer", own).items()]
    [('ww', 'histories'), ('Writer', 'histories'), ('waits', 'locking')]
    >>> terms_of("wait")
    Traceback (most recent call last):
    ValueError: the vocabulary has no 'wait'; a format's own needs its Term
    """
    found: dict[str, Term] = {}
    for term in terms:
        one = BASE.get(term) if isinstance(term, str) else term
        if one is None:
            raise ValueError(f"the vocabulary has no '{term}'; a format's own needs its Term")
        if found.setdefault(one.name, BASE.get(one.name, one)) != one:
            raise ValueError(f"'{one.name}' means something else already")
    return found


BINDERS = {"versions": "ww", "co": "ww", "linearisations": "co", "snapshots": "vis"}
"""``with NAME from SOURCE``: the sources of orders that nobody observed, and the name each binds."""

APART = {name: name.partition("-")[0] for name in relations_of("items")}
"""What is said of items and predicates apart, and what it is a part of."""

BY_VERSIONS = frozenset(
    {"ww", "rw", "fr", *(name for name, whole in APART.items() if whole == "rw")}
)
"""What hangs on the order of versions, whatever was read."""
