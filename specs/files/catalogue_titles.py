"""Names and titles of the catalogue, for lists and the index: each file is only looked into.

A title is read by its line, without parsing the file; a test compares all of them with the readers.
"""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, cast

from isolitmus.model.errors import UnknownName, near
from isolitmus.specs.disk.input_files import shipped_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from isolitmus.specs.disk.input_files import Folder

__all__ = ["litmus_by_tag", "names_of_kind", "tagged", "titles_of_kind"]

TAGS = re.compile(r"^tags *= *(\[[^\]]*\])", re.MULTILINE)
QUOTED = re.compile(r'"([^"]*)"')
TITLE = re.compile(r"^title *=.*$", re.MULTILINE)
"""Line of a TOML file with its title."""


def names_of_kind(kind: str) -> list[str]:
    """Return the names of everything of a kind, such as ``levels``, in the order of lists.

    Examples
    --------
    >>> "delta" in names_of_kind("engines"), "reorder" in names_of_kind("litmus")
    (True, True)
    """
    if kind == "engines":
        from isolitmus.specs.registries.engines import engines

        return list(engines())
    if kind == "exceptions":
        from isolitmus.specs.files.exceptions_file import exception_table

        return list(exception_table().every)
    if kind == "anomalies":
        from isolitmus.specs.files.anomaly_file import anomalies

        return list(anomalies())
    if kind == "claims":
        from isolitmus.specs.files.claims_file import claims

        return list(claims())
    return list(shipped_files(cast("Folder", kind)))


def titles_of_kind(kind: str, only: Sequence[str] | None = None) -> Iterator[tuple[str, str]]:
    """Yield name and title of everything of a kind, or of some of it.

    Examples
    --------
    >>> dict(titles_of_kind("levels", ["serializable"]))
    {'serializable': 'Serializable'}
    """
    for name in names_of_kind(kind) if only is None else only:
        if kind == "engines":
            from isolitmus.specs.registries.engines import engine_named

            yield name, engine_named(name).title
        elif kind == "exceptions":
            from isolitmus.specs.files.exceptions_file import exception_table

            yield name, exception_table().every[name].title
        elif kind == "anomalies":
            from isolitmus.specs.files.anomaly_file import anomalies

            yield name, anomalies()[name].title
        elif kind == "claims":
            from isolitmus.specs.files.claims_file import claims

            yield name, claims()[name].says
        else:
            yield name, _title(shipped_files(cast("Folder", kind))[name])


def _title(path: Path) -> str:
    """Return the title of a shipped file: of a spec the first text, else that of its TOML."""
    text = path.read_text("utf-8")
    if path.suffix == ".cat":
        found = QUOTED.search(text)
        assert found is not None
        return found[1]
    line = TITLE.search(text)
    assert line is not None
    title: str = tomllib.loads(line[0])["title"]
    return title


def litmus_by_tag() -> dict[str, list[str]]:
    """Return the names of the shipped litmus tests by tag, sorted; only their tags are parsed.

    Examples
    --------
    >>> "history-lost-update" in litmus_by_tag()["lost-update"]
    True
    """
    found: dict[str, list[str]] = {}
    for name, path in shipped_files("litmus").items():
        for tag in QUOTED.findall("".join(TAGS.findall(path.read_text("utf-8")))):
            found.setdefault(tag, []).append(name)
    return dict(sorted(found.items()))


def tagged(tag: str) -> list[str]:
    """Return the names of the litmus tests with a tag; UnknownName if there is none."""
    by_tag = litmus_by_tag()
    if tag not in by_tag:
        raise UnknownName(
            f"unknown tag '{tag}'{near(tag, by_tag) or '; isolitmus show lists all tags'}"
        )
    return by_tag[tag]
