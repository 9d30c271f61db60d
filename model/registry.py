"""Registries of plug-ins: our own in a static table, those of installed packages, registered ones.

A plug-in is a record or a function with a name, of one kind: a format, an engine, a source of
histories, a verb, … A name of the static table (``model.plugins``) is imported from its path on
first use. Only for another name are the installed packages asked, whose entry points have a group
for each kind, with the version of this interface: ``isolitmus.formats.v1``.
"""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from isolitmus.model.errors import IsolitmusError, MissingPart, UnknownName, near
from isolitmus.model.plugins import PLUGINS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from importlib.metadata import Distribution, EntryPoint

INTERFACE = 1
"""Version of the interface to plug-ins, the last part of the groups of their entry points."""
GROUP = re.compile(r"isolitmus\.(?P<kind>\w+)s(?:\.v(?P<version>\d+))?")
"""Group of entry points."""
PACKAGES: dict[str, str] = {}
"""Name and version of the package of each plug-in that was loaded, by its top module."""
Record = TypeVar("Record")


class Registry(Generic[Record]):
    """Registry of plug-ins of one kind.

    Parameters
    ----------
    what : str
        The kind in a word or two: a key of ``PLUGINS``, or a kind that has none of ours.
    aliases : mapping of str to str, optional
        Other names of our own plug-ins.
    check : type or callable, optional
        Class of the plug-ins, or a function that returns whether an object of another package is
        one.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> colours = Registry("colour")
    >>> green = colours.offer(SimpleNamespace(name="green"))
    >>> colours.named("green") is green, colours.names()
    (True, ('green',))
    >>> with colours.offered(SimpleNamespace(name="blue")): colours.names()
    ('blue', 'green')
    >>> colours.named("blue")
    Traceback (most recent call last):
    isolitmus.model.errors.UnknownName: unknown colour 'blue'; known: green
    >>> colours.offer(SimpleNamespace(name="green"))
    Traceback (most recent call last):
    ValueError: there is another colour 'green' already
    """

    def __init__(
        self,
        what: str,
        aliases: Mapping[str, str] | None = None,
        check: type | Callable[[object], bool] = callable,
    ) -> None:
        self.what, self.aliases = what, aliases or {}
        self.check = (
            (lambda plugin: isinstance(plugin, check)) if isinstance(check, type) else check
        )
        self.shipped = PLUGINS.get(what, {})
        self._known: dict[str, Record] = {}

    def offer(self, record: Any) -> Record:
        """Register a record by its name, as an entry point does; ValueError if another one has the
        name.
        """
        name = record.name
        if name in {*self.shipped, *self.aliases} or self._known.get(name, record) is not record:
            raise ValueError(f"there is another {self.what} '{name}' already")
        self._known[name] = record
        return self._known[name]

    @contextmanager
    def offered(self, record: Any) -> Iterator[Record]:
        """Register a record for the duration of the block."""
        before = dict(self._known)
        try:
            yield self.offer(record)
        finally:
            self._known = before

    def __contains__(self, name: object) -> bool:
        """Return whether there is a plug-in of this name, be its part installed or not."""
        ours = name in self.shipped or name in self._known or name in self.aliases
        return ours or name in self._others()

    def names(self) -> tuple[str, ...]:
        """Return the names of all plug-ins whose parts are installed, sorted, without aliases."""
        return tuple(sorted({*self.own_names(), *self._known, *self._others()}))

    def own_names(self) -> tuple[str, ...]:
        """Return the names of our own plug-ins whose parts are installed, in the table's order."""
        return tuple(name for name, path in self.shipped.items() if _is_installed(_part_of(path)))

    def named(self, name: str) -> Record:
        """Return the plug-in of this name.

        Raises
        ------
        UnknownName
            If there is none, with a suggestion.
        MissingPart
            If it belongs to a part of isolitmus that is not installed.
        IsolitmusError
            If another package has it, and it cannot be used.
        """
        key = self.aliases.get(name, name)
        if key not in self._known:
            if key in self.shipped:
                self._known[key] = load_part(self.shipped[key], f"{self.what} '{key}'")
            elif key in (others := self._others()):
                self._known[key] = self._loaded(others[key])
            else:
                known = *self.names(), *self.aliases
                raise UnknownName(f"unknown {self.what} '{name}'{near(name, known)}")
        return self._known[key]

    def _others(self) -> Mapping[str, EntryPoint]:
        """Return the plug-ins of other packages by name; IsolitmusError if two have one name."""
        by_name: dict[str, EntryPoint] = {}
        for point in _entry_points(*sys.path):
            group = GROUP.fullmatch(point.group)
            if group is None or group["kind"] != self.what.replace(" ", "_"):
                continue
            if (version := group["version"]) != str(INTERFACE):
                said = f"version {version}" if version else "no version"
                raise IsolitmusError(
                    f"{_described(self.what, point)} is for {said} of the interface, this is"
                    f" version {INTERFACE}; install a release of {_package(point)} that registers"
                    f" it in the group isolitmus.{group['kind']}s.v{INTERFACE}"
                )
            other = by_name.setdefault(point.name, point)
            if other != point or point.name in {*self.shipped, *self.aliases}:
                first = "isolitmus" if other is point else _package(other)
                raise IsolitmusError(
                    f"{_described(self.what, point)} has a name that {first} registers, too;"
                    " uninstall one, or rename it"
                )
        return by_name

    def _loaded(self, point: EntryPoint) -> Any:
        """Return the plug-in of another package; IsolitmusError if it cannot be used."""
        PACKAGES[point.module.partition(".")[0]] = _package(point)
        try:
            plugin = point.load()
        except Exception as error:
            raise IsolitmusError(
                f"{_described(self.what, point)} cannot be imported from {point.value}:"
                f" {type(error).__name__}: {error}"
            ) from error
        if not self.check(plugin):
            raise IsolitmusError(
                f"{_described(self.what, point)}: {point.value} is of type"
                f" {type(plugin).__name__}, not a {self.what}"
            )
        return plugin


def load_part(path: str, what: str) -> Any:
    """Return an object of ours by its import path.

    Parameters
    ----------
    path : str
        Module and name: ``isolitmus.model.run:Run``.
    what : str
        The object in words, for the error.

    Raises
    ------
    MissingPart
        If the part of isolitmus that has it is not installed.

    Examples
    --------
    >>> load_part("isolitmus.poetry.sonnet:SONNET", "form 'sonnet'")
    Traceback (most recent call last):
    isolitmus.model.errors.MissingPart: there is no form 'sonnet' here: it is in isolitmus.poetry, \
a part of isolitmus that is not installed; install isolitmus anew, with all its parts
    """
    module, _, name = path.partition(":")
    part = _part_of(path)
    if not _is_installed(part):
        raise MissingPart(
            f"there is no {what} here: it is in {part}, a part of isolitmus that is not installed;"
            " install isolitmus anew, with all its parts"
        )
    return getattr(import_module(module), name)


def _part_of(path: str) -> str:
    return ".".join(path.partition(":")[0].split(".")[:2])


@cache
def _is_installed(part: str) -> bool:
    return find_spec(part) is not None


@cache
def _entry_points(*path: str) -> list[EntryPoint]:
    """Return the entry points of installed packages in our groups, looked for once for each path.

    Python's module for metadata takes longer to import than the files take to be looked into.
    """
    if not any(map(_may_have_plugins, path)):
        return []
    from importlib.metadata import distributions

    packages: dict[str, Distribution] = {}
    for package in distributions():
        if "[isolitmus." in (package.read_text("entry_points.txt") or ""):
            packages.setdefault(package.name, package)
    return [point for package in packages.values() for point in package.entry_points]


def _may_have_plugins(entry: str) -> bool:
    """Return whether an entry of the path is an archive, or a package there names our groups."""
    folder = Path(entry)
    if folder.is_file():
        return True
    return any(b"[isolitmus." in f.read_bytes() for f in folder.glob("*.*-info/entry_points.txt"))


def _package(point: EntryPoint) -> str:
    """Return the name and version of the package of an entry point."""
    assert point.dist is not None
    return f"{point.dist.name} {point.dist.version}"


def _described(what: str, point: EntryPoint) -> str:
    return f"the {what} '{point.name}' of {_package(point)}"
