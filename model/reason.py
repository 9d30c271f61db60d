"""Reasons why pairs are in relations, as data, and edges: pairs of a frame's relation with a
reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from isolitmus.model.display import render
from isolitmus.model.vocabulary import RELATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.vocabulary import Term


@dataclass(frozen=True, slots=True)
class Item:
    """Item that was read or written: a row of a table, with its identity and values.

    For anything else of a table, such as its definition, table and identity are both its name.
    Without values, the item did not exist.
    """

    table: str
    id: str
    values: tuple[object, ...]

    @property
    def named(self) -> bool:
        """True if the item is not a row."""
        return self.table == self.id


@dataclass(frozen=True, slots=True)
class Reason:
    """Reason: its kind, and its nouns by their role.

    ``str`` returns a clause that reads after "because". A kind without a text of its own in
    ``checker.render.reasons`` is used as a template, with the nouns in braces. ``Reason()`` is
    empty.

    Examples
    --------
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
        """Return the reason of a kind with these nouns."""
        return cls(kind, nouns)

    def __getitem__(self, noun: str) -> Any:
        return self.nouns[noun]

    def __bool__(self) -> bool:
        return bool(self.kind)

    def __str__(self) -> str:
        return render(self)

    def but(self, **nouns: Any) -> Reason:
        """Return this reason with some nouns replaced."""
        return replace(self, nouns={**self.nouns, **nouns})


@dataclass(frozen=True, slots=True)
class Edge:
    """Pair of a base relation, with its reason.

    Examples
    --------
    >>> from isolitmus.model.reason import Reason
    >>> from isolitmus.model.vocabulary import Term
    >>> meaning = "the first waits for a lock of the second"
    >>> locked = Term("waits", "locking", meaning, verb="waits for")
    >>> Edge("a", "b", "rw", Reason()).term.verb
    'does not see'
    >>> Edge("a", "b", "waits", Reason(), locked).term.verb
    'waits for'
    """

    source: str
    """Name of the first node."""
    target: str
    """Name of the second node."""
    kind: str
    """Relation, or an expression over it such as ``rw^-1``."""
    reason: Reason
    """Reason why the pair is in the relation."""
    own: Term | None = None
    """Term of a relation that only the format has."""

    @property
    def term(self) -> Term | None:
        """Meaning of its kind; None if that is not a single base relation (``rw^-1``)."""
        if self.own is not None and self.own.name == self.kind:
            return self.own
        return RELATIONS.get(self.kind)

    @property
    def why(self) -> str:
        """Reason as text."""
        return str(self.reason)

    def __str__(self) -> str:
        return f"{self.kind}  {self.source} → {self.target}  {self.why}".rstrip()
