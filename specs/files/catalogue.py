"""Catalogue: specs, litmus tests, scopes and matrices by name, in the package and outside.

The names are those of ``specs.disk.input_files``. A path to a file may replace a name, and an
object may replace either.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from isolitmus.model.errors import LitmusError, UnknownName, near
from isolitmus.model.litmus import HistoryTest, Litmus
from isolitmus.specs.disk.input_files import HOME, is_folder, paths_below, read_text, shipped_files
from isolitmus.specs.files.spec_catalogue import (
    format_of_file,
    name_text,
)
from isolitmus.specs.files.toml_reader import DELTA

if TYPE_CHECKING:
    from isolitmus.model.matrix import Matrix
    from isolitmus.model.scope import Scope
    from isolitmus.specs.files.spec_catalogue import NameOrPath

HISTORY = re.compile(r"^\[history\]$", re.MULTILINE)
"""Line that identifies a shipped file as an abstract history."""


def litmus_names(log: str = DELTA) -> list[str]:
    """Return the names of the shipped litmus tests whose format has this log, sorted."""
    return [name for name, path in shipped_files("litmus").items() if format_of_file(path) == log]


def history_names() -> list[str]:
    """Return the names of the shipped litmus tests that are abstract histories, sorted.

    Only the lines that identify them are looked at.
    """
    found = shipped_files("litmus").items()
    return [name for name, path in found if HISTORY.search(path.read_text("utf-8"))]


def litmus_files(name: str) -> list[Path]:
    """Return the litmus files of a name, a file or a folder.

    Examples
    --------
    >>> [path.name for path in litmus_files("reorder")]
    ['reorder.toml']
    """
    path = Path(name)
    if is_folder(path):
        found = paths_below(path, ".toml")
        if not found:
            raise UnknownName(f"folder '{name}' has no litmus test (.toml) in it")
        return found
    if name.endswith(".toml"):
        return [path]
    known = shipped_files("litmus")
    if name not in known:
        raise UnknownName(f"unknown litmus test '{name}'{near(name, known)}")
    return [known[name]]


def litmus(name: NameOrPath | Litmus | HistoryTest) -> Litmus | HistoryTest:
    """Return the litmus test of a name or a ``.toml`` path; a test is returned as it is.

    Parameters
    ----------
    name : Litmus, HistoryTest, str or path
        Test, name of a shipped test, or path of a litmus file.

    Returns
    -------
    Litmus or HistoryTest
        The test: statements on tables, or an abstract history.

    Raises
    ------
    UnknownName
        If there is no such test, with a suggestion.
    LitmusError
        If the file is not a litmus test.

    Examples
    --------
    >>> str(litmus("reorder").schedule)
    'delete.start insert delete.commit'
    """
    if isinstance(name, (Litmus, HistoryTest)):
        return name
    path = litmus_files(name_text(name))[0]
    ours = path.is_relative_to(HOME / "litmus")
    return _read_shipped_litmus(path) if ours else _read_litmus(path)


def matrices() -> list[str]:
    """Return the names of the shipped matrices, sorted."""
    return list(shipped_files("matrices"))


def matrix(name: str) -> Matrix:
    """Return the matrix of a name or a ``.toml`` path.

    Examples
    --------
    >>> list(matrix("pairs").layouts)[:3]
    ['unpartitioned', 'same partition', 'other partition']
    """
    from isolitmus.specs.files.matrix_file import read_matrix

    known = shipped_files("matrices")
    path = Path(name) if name.endswith(".toml") else known.get(name)
    if path is None:
        raise UnknownName(f"unknown matrix '{name}'{near(name, known)}")
    return read_matrix(read_text(path, LitmusError), path.stem, path)


def scopes(log: str | None = None) -> list[str]:
    """Return the names of the shipped scopes, or of those whose format has this log, sorted.

    Examples
    --------
    >>> "scans" in scopes(), "scans" in scopes("delta")
    (True, False)
    """
    return [
        name
        for name, path in shipped_files("scopes").items()
        if log in (None, format_of_file(path))
    ]


def scope(name: NameOrPath | Scope) -> Scope:
    """Return the scope of a name or a ``.toml`` path; a scope is returned as it is.

    Parameters
    ----------
    name : Scope, str or path
        Scope, name of a shipped scope, or path of a scope file.

    Returns
    -------
    Scope
        The scope: statements, readers and initial tables of a search.

    Raises
    ------
    UnknownName
        If there is no such scope, with a suggestion.

    Examples
    --------
    >>> scope("two-partitions").name
    'two-partitions'
    """
    from isolitmus.model.scope import Scope
    from isolitmus.specs.files.scope_file import read_scope

    if isinstance(name, Scope):
        return name
    name = name_text(name)
    if not name.endswith(".toml") and name not in scopes():
        raise UnknownName(f"unknown scope '{name}'{near(name, scopes())}")
    path = Path(name) if name.endswith(".toml") else shipped_files("scopes")[name]
    return read_scope(read_text(path, LitmusError), path.stem, path)


@cache
def _read_shipped_litmus(path: Path) -> Litmus | HistoryTest:
    return _read_litmus(path)


def _read_litmus(path: Path) -> Litmus | HistoryTest:
    from isolitmus.specs.files.litmus_file import read_litmus

    return read_litmus(read_text(path, LitmusError), path.stem, path)
