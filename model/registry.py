"""Registries of named records: built-in ones, those of installed packages, and registered ones."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from isolitmus.model.errors import UnknownName, near

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Named", "Registry"]


class Named(Protocol):
    """Entry of a registry: an object with a name."""

    @property
    def name(self) -> str:
        """Name in files and commands."""


Record = TypeVar("Record", bound=Named)


class Registry(Generic[Record]):
    """Registry of records of one kind.

    An installed package adds its own by entry points in the group ``isolitmus.WHATs``.

    Parameters
    ----------
    what : str
        Kind of the records, in a word.
    shipped : mapping of str to str
        Import path of each built-in record, which is imported on first use.
    aliases : mapping of str to str, optional
        Other names of built-in records.

    Examples
    --------
    >>> class Colour:
    ...     def __init__(self, name): self.name = name
    >>> colours = Registry[Colour]("colour", {"red": "paint.reds:RED"}, {"rouge": "red"})
    >>> colours.offer(Colour("green")).name, colours.names()
    ('green', ('green', 'red'))
    >>> with colours.offered(Colour("blue")): colours.names()
    ('blue', 'green', 'red')
    >>> colours.named("blue")
    Traceback (most recent call last):
    isolitmus.model.errors.UnknownName: unknown colour 'blue'; known: green, red, rouge
    >>> colours.offer(Colour("rouge"))
    Traceback (most recent call last):
    ValueError: there is another colour 'rouge' already
    """

    def __init__(
        self, what: str, shipped: Mapping[str, str], aliases: Mapping[str, str] | None = None
    ) -> None:
        self.what, self.shipped, self.aliases = what, shipped, aliases or {}
        self.group = f"isolitmus.{what}s"
        self._known: dict[str, Record] = {}

    def offer(self, one: Record) -> Record:
        """Register a record by its name, as an entry point does; ValueError if another one has the
        name.
        """
        if one.name in {*self.shipped, *self.aliases} or self._known.get(one.name, one) is not one:
            raise ValueError(f"there is another {self.what} '{one.name}' already")
        self._known[one.name] = one
        return one

    @contextmanager
    def offered(self, one: Record) -> Iterator[Record]:
        """Register a record for the duration of the block."""
        before = dict(self._known)
        try:
            yield self.offer(one)
        finally:
            self._known = before

    def names(self) -> tuple[str, ...]:
        """Return the names of known records, sorted, without aliases."""
        installed = _installed(self.group, *sys.path).names
        return tuple(sorted({*self.shipped, *self._known, *installed}))

    def named(self, name: str) -> Record:
        """Return the record of this name; UnknownName, with a suggestion, if there is none."""
        own = self.aliases.get(name, name)
        if own not in self._known:
            if own in self.shipped:
                points = [EntryPoint(own, self.shipped[own], self.group)]
            else:
                points = list(_installed(self.group, *sys.path).select(name=own))
            if not points:
                known = *self.names(), *self.aliases
                raise UnknownName(f"unknown {self.what} '{name}'{near(name, known)}")
            self._known[own] = points[0].load()
        return self._known[own]


@cache
def _installed(group: str, *_path: str) -> EntryPoints:
    """Return the entry points of installed packages in a group.

    This reads the metadata of all packages, once for each path.
    """
    return entry_points(group=group)
