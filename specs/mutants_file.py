"""Read why mutants of a spec are equivalent to it: ``mutants/NAME.toml`` of one that ships, ``NAME.mutants.toml`` beside
one's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.errors import LitmusError
from isolitmus.specs.files import read_text
from isolitmus.specs.shelf import HOME
from isolitmus.specs.toml_file import Source, shown

if TYPE_CHECKING:
    from pathlib import Path

    from isolitmus.model.spec import Spec

__all__ = ["argued_equivalent", "read_arguments"]

TABLE = "equivalent"


def argued_equivalent(spec: Spec) -> dict[str, str]:
    """By a mutant's line why it is equivalent to the spec; empty if nobody says so.

    >>> from isolitmus.specs.catalogue import level
    >>> len(argued_equivalent(level("write-serializable"))), argued_equivalent(level("serializable"))
    (2, {})
    """
    path = _path(spec)
    if path is None or not path.is_file():
        return {}
    return read_arguments(read_text(path, LitmusError), str(path))


def _path(spec: Spec) -> Path | None:
    if spec.path is None:
        return None
    if spec.path.is_relative_to(HOME):
        return HOME / "mutants" / f"{spec.name}.toml"
    return spec.path.with_suffix(".mutants.toml")


def read_arguments(text: str, label: str) -> dict[str, str]:
    """The arguments in a file; LitmusError for what is none.

    >>> read_arguments('equivalent."empty ww as x" = "Nobody writes."', "mine.mutants.toml")
    {'empty ww as x': 'Nobody writes.'}
    """
    source = Source(label, text)
    document = source.node().value
    for key in document:
        if key != TABLE:
            source.refuse(f"{key} is no part of arguments; [{TABLE}] is", key)
    table = document.get(TABLE, {})
    if not isinstance(table, dict):
        source.refuse(f"{TABLE} is {shown(table)}; a table of mutants and reasons is wanted", TABLE)
    for line, why in table.items():
        if not isinstance(why, str) or not why.strip():
            source.refuse(
                f"'{line}' is {shown(why)}; why it is equivalent is wanted, a sentence", line
            )
    return dict(table)
