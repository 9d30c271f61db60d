"""Why a pair is in a relation, as data: what kind of reason it is, and whom and what it is about."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.sql.values import Row

__all__ = ["Item", "Reason"]

WORDS = "isolitmus.checker.render.reasons"
"""Where reasons are put into words; read when somebody prints one."""


@dataclass(frozen=True, slots=True)
class Item:
    """What was read or written: a row of a table, by its identity, with its values.

    What stands for something else of a table, its definition say, is an item whose table and identity
    are both what it is called; without values it was not there.
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
        said: str = import_module(WORDS).words(self)
        return said

    def but(self, **nouns: Any) -> Reason:
        """The same with other nouns in some places."""
        return replace(self, nouns={**self.nouns, **nouns})
