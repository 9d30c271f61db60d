"""Folder of classes that were compiled from pull requests of Delta against a released version.

``bench/pull_classes.py`` makes such a folder. Its manifest, ``classes.toml``, names the release,
the pull requests and the confs that they add. Java finds the classes before those of Delta's jars,
if the folder stands before the jars on one class path: a class loader cannot link a class of an
outer loader against one of its own.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from isolitmus.conformance.delta.session import PACKAGES
from isolitmus.model.delta.log import LEVEL_KEY
from isolitmus.model.errors import EngineUnavailable, LitmusError, SpecError, near
from isolitmus.specs.disk.input_files import read_text
from isolitmus.specs.files.toml_reader import Node, Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MANIFEST = "classes.toml"
"""Name of the manifest in a folder of classes."""
BUILD = "python bench/pull_classes.py"
"""Command that makes a folder of classes."""
UPSTREAM = "delta-io/delta"
"""Repository of a pull request that is named by its number only."""
IVY = Path(".ivy2.5.2") / "jars"
"""Folder below the home folder with the jars that Spark 4.2 has downloaded."""
CONFS = "org/apache/spark/sql/delta/sources/DeltaSQLConf"
"""Start of the names of the classes that have the keys of Delta's confs as constants."""
PREFIX = "spark.databricks.delta."
"""Prefix of Delta's confs, which their constants lack (DeltaSQLConf.scala)."""


@dataclass(frozen=True, slots=True)
class PullRequest:
    """Pull request whose code a folder has."""

    number: int
    repository: str
    head: str
    """Commit."""
    date: str
    """Day of that commit."""

    def __str__(self) -> str:
        of = "" if self.repository == UPSTREAM else f" of {self.repository}"
        return f"{self.number}{of} at {self.head[:8]}"


@dataclass(frozen=True, slots=True)
class ClassFolder:
    """Folder of classes, as its manifest describes it."""

    path: Path
    release: str
    """Version of delta-spark that the classes were compiled against."""
    pulls: tuple[PullRequest, ...]
    confs: tuple[str, ...]
    """Confs of Spark that the pull requests add."""

    def __str__(self) -> str:
        many = "s" * (len(self.pulls) > 1)
        return f"delta-spark {self.release} with pull{many} {' and '.join(map(str, self.pulls))}"

    def classes(self) -> Iterator[str]:
        """Yield the paths of its classes in the folder, sorted."""
        for path in sorted(self.path.rglob("*.class")):
            yield path.relative_to(self.path).as_posix()

    def refuse_without_change(self, jars: Sequence[Path]) -> None:
        """Raise EngineUnavailable if each class is, byte for byte, the one of Delta's jars."""
        released: dict[str, bytes] = {}
        asked = set(self.classes())
        for jar in jars:
            with zipfile.ZipFile(jar) as archive:
                for name in asked.intersection(archive.namelist()):
                    released[name] = archive.read(name)
        if all(released.get(name) == (self.path / name).read_bytes() for name in asked):
            how = "has no class" if not asked else "has only classes as they were released"
            raise EngineUnavailable(
                f"{self.path} {how}, so it changes nothing; build it from a pull request that"
                f" changes Delta's code: {BUILD}"
            )

    def lacks(self, key: str) -> bool:
        """Return whether it is certain before a start that neither Delta nor the folder has a conf.

        The keys of Delta's confs are constants of its classes. Other confs are Spark's, and the
        started session knows them.
        """
        if key in self.confs or not key.startswith(PREFIX):
            return False
        jars = _delta_jars(self.release)
        return bool(jars) and not any(
            _has_constant(content, key.removeprefix(PREFIX)) for content in _conf_classes(jars)
        )


def read_class_folder(folder: str) -> ClassFolder:
    """Return the folder of classes at a path.

    Raises
    ------
    EngineUnavailable
        There is no such folder, it has no manifest, or its classes were compiled against another
        release than the one that is installed.
    LitmusError
        The manifest is wrong, with the place.

    Examples
    --------
    >>> read_class_folder("nowhere")
    Traceback (most recent call last):
    isolitmus.model.errors.EngineUnavailable: there is no folder 'nowhere'; build it from a pull \
request: python bench/pull_classes.py
    """
    path = Path(folder)
    if not folder or not path.is_dir():
        raise EngineUnavailable(
            f"there is no folder '{folder}'; build it from a pull request: {BUILD}"
        )
    manifest = path / MANIFEST
    if not manifest.is_file():
        raise EngineUnavailable(
            f"{path} has no {MANIFEST}, which says what its classes were compiled from; build the"
            f" folder again: {BUILD}"
        )
    read = _read_manifest(path, Source(str(manifest), read_text(manifest, LitmusError)).node())
    installed = PACKAGES["delta-spark"]
    if read.release != installed:
        raise EngineUnavailable(
            f"{manifest}: the classes were compiled against delta-spark {read.release}, but"
            f" {installed} is used here; build the folder again with --release {installed}"
        )
    return read


def _read_manifest(path: Path, document: Node) -> ClassFolder:
    document.keys(("release", "confs", "files", "pulls"))
    pulls = []
    for entry in document.entries("pulls", ("number", "repository", "head", "date")):
        texts = [entry.get(key, str) for key in ("repository", "head", "date")]
        pulls.append(PullRequest(entry.get("number", int), *texts))
    if not pulls:
        document.refuse("pulls is empty; name the pull requests of the classes", "pulls")
    release = document.get("release", str)
    return ClassFolder(path, release, tuple(pulls), document.strings("confs"))


def delta_jars(release: str) -> tuple[Path, ...]:
    """Return the jars of Delta's release and its dependencies, which the first start downloaded.

    Raises
    ------
    EngineUnavailable
        They are not there.
    """
    jars = _delta_jars(release)
    if not jars:
        raise EngineUnavailable(
            f"{Path.home() / IVY} has no jar of delta-spark {release}; start Spark with Delta once,"
            " which downloads it: isolitmus run reorder --engine delta"
        )
    return jars


def _delta_jars(release: str) -> tuple[Path, ...]:
    """Return the jars of a release and its dependencies; none if the first is not there."""
    jars = sorted((Path.home() / IVY).glob("*.jar"))
    own = [j for j in jars if not j.name.startswith("io.delta_") or j.stem.endswith(f"-{release}")]
    return tuple(own) if any(j.name.startswith("io.delta_delta-spark_") for j in own) else ()


@cache
def _conf_classes(jars: tuple[Path, ...]) -> tuple[bytes, ...]:
    """Return the classes that register Delta's confs."""
    contents = []
    for jar in jars:
        if jar.name.startswith("io.delta_delta-spark_"):
            with zipfile.ZipFile(jar) as archive:
                names = [name for name in archive.namelist() if name.startswith(CONFS)]
                contents += [archive.read(name) for name in names]
    return tuple(contents)


def _has_constant(content: bytes, text: str) -> bool:
    """Return whether a class has a string as a constant.

    In a class file it stands behind its length in two bytes (Java Virtual Machine Specification,
    4.4.7).
    """
    constant = text.encode()
    return len(constant).to_bytes(2, "big") + constant in content


def isolation_level(setting: str, known: Sequence[str], what: str) -> str:
    """Return the isolation level in the setting of a protocol.

    Parameters
    ----------
    setting : str
        Setting of a table, ``delta.isolationLevel = LEVEL``.
    known : sequence of str
        Isolation levels that the engine can set.
    what : str
        The protocol, for the error.

    Raises
    ------
    SpecError
        If it is not one of them.

    Examples
    --------
    >>> isolation_level("delta.isolationLevel = Serializable", ["Serializable"], "mine")
    'Serializable'
    >>> isolation_level("", ["Serializable"], "mine")
    Traceback (most recent call last):
    isolitmus.model.errors.SpecError: mine sets no isolation level; add \
set "delta.isolationLevel = Serializable"
    """
    key, _, level = (part.strip() for part in setting.partition("="))
    if key != LEVEL_KEY:
        raise SpecError(f'{what} sets no isolation level; add set "{LEVEL_KEY} = {known[0]}"')
    if level not in known:
        raise SpecError(f"{what} sets an unknown isolation level '{level}'{near(level, known)}")
    return level
