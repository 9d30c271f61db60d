"""Names and titles of the catalogue, for lists and the index: each file is only looked into.

A title is read by its line, without parsing the file; a test compares all of them with the readers.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.model.errors import UnknownName, near
from isolitmus.model.registry import Registry
from isolitmus.specs import registries
from isolitmus.specs.disk.input_files import shipped_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from isolitmus.model.anomaly import Anomaly
    from isolitmus.model.delta.conflict import ConflictException
    from isolitmus.specs.disk.input_files import Folder

    Describe = Callable[[str], "Description"]

TAGS = re.compile(r"^tags *= *(\[[^\]]*\])", re.MULTILINE)
QUOTED = re.compile(r'"([^"]*)"')
TITLE = re.compile(r"^title *=.*$", re.MULTILINE)
"""Line of a TOML file with its title."""


@dataclass(frozen=True, slots=True)
class CatalogueKind:
    """Kind of things in the catalogue, as a record of functions; a plug-in."""

    name: str
    """Name of the kind, in the plural."""
    about: str
    """Description in a line."""
    names: Callable[[], Iterable[str]]
    """Return the names of all things of the kind, in the order of lists."""
    title: Callable[[str], str]
    """Return the title of one of them."""
    describe: Callable[[str], Description] | None = None
    """Describe one of them in full; None if ``cli.catalogue_entries`` does that."""


class Description(NamedTuple):
    """Thing of the catalogue, as ``isolitmus show`` prints it."""

    kind: str
    """Its kind, in the singular."""
    name: str
    title: str
    source: str
    """Where it is defined; empty if that says nothing."""
    text: str
    """Its file, or a text about it."""


CATALOGUE: Registry[CatalogueKind] = Registry("catalogue kind", check=CatalogueKind)
"""Kinds of the catalogue."""


def of_files(kind: Folder, about: str, describe: Describe | None = None) -> CatalogueKind:
    """Return the kind of the files that are shipped in a folder of ``specs``.

    Examples
    --------
    >>> of_files("scopes", "search spaces").title("scans")
    'Two rows in an index, a scan of it, and writers that move rows and amounts'
    """
    return CatalogueKind(
        kind,
        about,
        lambda: shipped_files(kind),
        lambda name: _title(shipped_files(kind)[name]),
        describe,
    )


def names_of_kind(kind: str) -> list[str]:
    """Return the names of everything of a kind, such as ``levels``, in the order of lists.

    Examples
    --------
    >>> "delta" in names_of_kind("engines"), "reorder" in names_of_kind("litmus")
    (True, True)
    """
    return list(CATALOGUE.named(kind).names())


def titles_of_kind(kind: str, only: Sequence[str] | None = None) -> Iterator[tuple[str, str]]:
    """Yield name and title of everything of a kind, or of some of it.

    Examples
    --------
    >>> dict(titles_of_kind("levels", ["serializable"]))
    {'serializable': 'Serializable'}
    """
    title = CATALOGUE.named(kind).title
    for name in names_of_kind(kind) if only is None else only:
        yield name, title(name)


def _exceptions() -> Mapping[str, ConflictException]:
    from isolitmus.specs.files.exceptions_file import exception_table

    return exception_table().every


def _anomalies() -> Mapping[str, Anomaly]:
    from isolitmus.specs.files.anomaly_file import anomalies

    return anomalies()


LEVELS = of_files("levels", "what histories an isolation level allows")
PROTOCOLS = of_files("protocols", "what an engine checks at a commit")
LITMUS = of_files("litmus", "tables, transactions and a schedule, with the expected outcomes")
SCOPES = of_files(
    "scopes", "statements on small tables: search spaces for separate, compare and sweep"
)
MATRICES = of_files("matrices", "lists of statements, each run against each other")
ENGINES = CatalogueKind(
    "engines",
    "what can run litmus tests",
    registries.ENGINES.names,
    lambda name: registries.engine_named(name).title,
)
EXCEPTIONS = CatalogueKind(
    "exceptions",
    "conflicts that Delta reports, with cause and remedy",
    _exceptions,
    lambda name: _exceptions()[name].title,
)
ANOMALIES = CatalogueKind(
    "anomalies",
    "what can go wrong, by the names that people use",
    _anomalies,
    lambda name: _anomalies()[name].title,
)


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
