"""Reasons and edges: why a pair is in a relation, and the pair with its reason.

Why a pair is in a relation, as data: what kind of reason it is, and whom and what it is about.

An edge: one pair of a relation of a frame, with the reason why it is there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from isolitmus.model.display import render
from isolitmus.model.vocabulary import RELATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.sql.values import Row
    from isolitmus.model.vocabulary import Term

__all__ = ["Edge", "Item", "Reason"]


@dataclass(frozen=True, slots=True)
class Item:
    """What was read or written: a row of a table, by its identity, with its values.

    What stands for something else of a table, its definition say, is an item whose table and
    identity are both what it is called; without values it was not there.
    """

    table: str
    id: str
    values: Row

    @property
    def named(self) -> bool:
        """Whether it is no row."""
        return self.table == self.id


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason: its kind, and its nouns by the part that they have in it.

    ``str`` puts it into a clause that reads after "because". A kind without words of its own
    in ``checker.render.reasons`` is its own words, with the nouns in braces. ``Reason()`` is none.

    >>> import isolitmus.checker  # which has the words
    >>> missed = Reason.of("saw", reader="b", version=3)
    >>> missed["reader"], str(missed)
    ('b', 'b read version 3')
    >>> str(Reason.of("{reader} waited for {writer}", reader="b", writer="a"))
    'b waited for a'
    >>> bool(Reason())
    False
    """

    kind: str = ""
    nouns: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @classmethod
    def of(cls, kind: str, /, **nouns: Any) -> Reason:
        """The reason of a kind with these nouns."""
        return cls(kind, nouns)

    def __getitem__(self, noun: str) -> Any:
        return self.nouns[noun]

    def __bool__(self) -> bool:
        return bool(self.kind)

    def __str__(self) -> str:
        return render(self)

    def but(self, **nouns: Any) -> Reason:
        """The same with other nouns in some places."""
        return replace(self, nouns={**self.nouns, **nouns})


@dataclass(frozen=True, slots=True)
class Edge:
    """One pair of a base relation, with the reason why it is there.

    >>> from isolitmus.model.reason import Reason
    >>> from isolitmus.model.vocabulary import Term
    >>> locked = Term("waits", "locking", "the first waits for a lock of the second", verb="waits for")
    >>> Edge("a", "b", "rw", Reason()).term.verb, Edge("a", "b", "waits", Reason(), locked).term.verb
    ('does not see', 'waits for')
    """

    source: str
    """The name of the first node."""
    target: str
    """The name of the second."""
    kind: str
    """The relation; or an expression over it, ``rw^-1``."""
    reason: Reason
    """Why the pair is in it."""
    own: Term | None = None
    """What a format says of a relation of its own."""

    @property
    def term(self) -> Term | None:
        """What its kind means; None if that is no single base relation (``rw^-1``)."""
        if self.own is not None and self.own.name == self.kind:
            return self.own
        return RELATIONS.get(self.kind)

    @property
    def why(self) -> str:
        """The reason in words."""
        return str(self.reason)

    def __str__(self) -> str:
        return f"{self.kind}  {self.source} → {self.target}  {self.why}".rstrip()
