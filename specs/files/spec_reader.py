"""Texts of specs with what the package gives them: files to include, runtimes and formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.errors import SpecError, near
from isolitmus.model.vocabulary import relations_of, sets_of
from isolitmus.specs.disk.input_files import HOME, is_there, read_text, real_path
from isolitmus.specs.disk.repository import end_of_reading, escape
from isolitmus.specs.files.toml_reader import DELTA
from isolitmus.specs.language import parser
from isolitmus.specs.registries import FORMATS, format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from isolitmus.model.spec import Clause, Spec


def _find(wanted: str, beside: Path | None) -> Path:
    """Return an included file of the package or beside a spec, within the spec's repository."""
    folders = [HOME] if beside is None else [beside.parent, HOME]
    there = (folder / wanted for folder in folders if is_there(folder / wanted))
    path = next((path.resolve() for path in there), None)
    if path is None:
        known = {file.name for folder in folders for file in folder.glob("*.cat")}
        raise SpecError(f"no file '{wanted}' to include{near(wanted, known)}")
    if beside is not None and path == beside.resolve():
        raise SpecError(f"'{wanted}' is this file itself; include another one")
    if beside is not None and (problem := escape(path, end_of_reading(beside), real_path(HOME))):
        raise SpecError(f"cannot include '{wanted}': {problem}")
    return path


def _runtimes() -> Mapping[str, Path]:
    return {file.stem: file.resolve() for file in (HOME / "runtimes").glob("*.cat")}


def _formats(name: str) -> Collection[str]:
    """Return our own formats, with those of missing parts, if this is one of them, else all."""
    return FORMATS.shipped if name in FORMATS.shipped else FORMATS.names()


def _terms(form: str) -> Collection[str]:
    """Return the terms of a format; those of Delta without importing its format."""
    return _DELTA if form == DELTA else format_named(form).terms


def _clauses(form: str | None) -> Callable[[Sequence[Clause]], object] | None:
    return None if form is None else format_named(form).clauses


def _is_commit_check(spec: Spec) -> bool:
    return spec.format is not None and format_named(spec.format).carry_out is None


_DELTA = (*relations_of(DELTA, "delta-rows"), *sets_of(DELTA))
PACKAGE = parser.Library(
    default=DELTA,
    find=_find,
    text=lambda path: read_text(path, SpecError),
    runtimes=_runtimes,
    formats=_formats,
    terms=_terms,
    clauses=_clauses,
    is_commit_check=_is_commit_check,
)
"""Files of the package and beside a spec, and all known formats.

Examples
--------
>>> from isolitmus.specs import level, protocol
>>> PACKAGE.is_commit_check(protocol("delta-serializable"))
True
>>> PACKAGE.is_commit_check(level("row-once"))
False
"""


def read_spec(
    text: str, name: str, path: Path | None = None, *, runtime: str | None = None
) -> Spec:
    """Return the spec that a text defines, with the library of the package (`parser.read`).

    Examples
    --------
    >>> spec = read_spec('"Mine" include "stdlib.cat" empty [Blind] ; depends as blind', "mine")
    >>> sorted(spec.needs)
    ['Blind', 'wr', 'ww']
    """
    return parser.read(text, name, path, runtime=runtime, library=PACKAGE)
