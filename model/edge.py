"""An edge: one pair of a relation of a frame, with the reason why it is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.model.vocabulary import RELATIONS

if TYPE_CHECKING:
    from isolitmus.model.reason import Reason
    from isolitmus.model.term import Term

__all__ = ["Edge"]


@dataclass(frozen=True, slots=True)
class Edge:
    """One pair of a base relation, with the reason why it is there.

    >>> from isolitmus.model.reason import Reason
    >>> from isolitmus.model.term import Term
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
