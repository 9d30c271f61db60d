"""A mutant: a spec that is another one but for a single change of its text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.model.display import Readable

if TYPE_CHECKING:
    from isolitmus.model.spec import Spec

__all__ = ["Mutant"]


@dataclass(frozen=True, slots=True)
class Mutant(Readable):
    """One change of one statement of a spec."""

    number: int
    """Which one of the spec's mutants, from 1."""
    was: str
    """The statement as it was."""
    becomes: str
    """The statement as it is now; empty if it was dropped."""
    what: str
    """The change, in words."""
    spec: Spec
    """The spec with this change."""

    @property
    def change(self) -> str:
        """By what an argument calls it: the new statement, or ``without`` and the old one."""
        return self.becomes or f"without {self.was}"

    def __repr__(self) -> str:
        return f"{self.number}. {self.change}  ({self.what})"
