"""The catalogue: names to the specs that they stand for, inside the package and outside.

A level or protocol is one ``.cat`` file under ``levels/`` or ``protocols/``, called by its file name;
nothing else registers it. A path to a ``.cat`` file works wherever a name does.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from isolitmus.model.errors import LitmusError, SpecError, UnknownName, near
from isolitmus.specs.cat import read
from isolitmus.specs.files import is_folder, read_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.litmus import HistoryTest, Litmus
    from isolitmus.model.matrix import Matrix
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec

__all__ = [
    "level",
    "levels",
    "litmus",
    "litmus_files",
    "litmus_tests",
    "matrix",
    "protocol",
    "protocols",
    "scope",
    "scopes",
    "spec",
]

HOME = Path(__file__).parent
Folder = Literal["levels", "protocols"]


def levels() -> list[str]:
    """The names of the levels in the package, sorted.

    >>> "write-serializable" in levels()
    True
    """
    return list(_shipped("levels", ".cat"))


def protocols() -> list[str]:
    """The names of the protocols in the package, sorted.

    >>> "delta-serializable" in protocols()
    True
    """
    return list(_shipped("protocols", ".cat"))


def relatives(*names: str) -> list[str]:
    """The protocols of the engines that the protocols of these names are of, sorted; open-source
    Delta's if no name is a protocol's.

    >>> relatives("log-serializable") == relatives("delta-serializable") != protocols()
    True
    """
    known = protocols()
    engines = {_family(name) for name in names if name in known} or {"delta"}
    return [name for name in known if _family(name) in engines]


def _family(protocol: str) -> str:
    """What protocols of one engine begin with."""
    return "delta-rs" if protocol.startswith("delta-rs-") else protocol.partition("-")[0]


def level(name: str) -> Spec:
    """The level with this name, or the spec in the ``.cat`` file with this path.

    Raises UnknownName with the nearest name, SpecError for a file that does not read.

    >>> level("write-serializable").axioms[-1].name
    'order-of-writers'
    """
    return _find(name, "level", ("levels",))


def protocol(name: str) -> Spec:
    """The protocol with this name, or the spec in the ``.cat`` file with this path.

    SpecError for one that is none: a commit is checked by axioms that are ``empty``.

    >>> [axiom.name for axiom in protocol("delta-serializable").axioms][-1]
    'ConcurrentDeleteDeleteException'
    """
    found = _find(name, "protocol", ("protocols",))
    for axiom in found.axioms:
        if axiom.test != "empty":
            raise SpecError(
                f"{name} is no protocol: its axiom {axiom.name} is {axiom.test}, and what is checked"
                " at a commit is that a relation is empty"
            )
    for promised in found.promises:
        if promised not in levels():
            raise SpecError(f"{name} promises no level: '{promised}'{near(promised, levels())}")
    return found


def spec(name: str) -> Spec:
    """The level or protocol with this name, or the spec in the ``.cat`` file with this path.

    >>> spec("serialisable")
    Traceback (most recent call last):
    isolitmus.model.errors.UnknownName: no level or protocol 'serialisable'; did you mean 'serializable'?
    """
    return _find(name, "level or protocol", ("levels", "protocols"))


def litmus_tests() -> list[str]:
    """The names of the litmus tests in the package, sorted."""
    return list(_shipped("litmus", ".toml"))


def litmus_files(name: str) -> list[Path]:
    """The litmus files that a name, a file or a folder stands for.

    >>> [path.name for path in litmus_files("reorder")]
    ['reorder.toml']
    """
    path = Path(name)
    if is_folder(path):
        found = sorted(path.rglob("*.toml"))
        if not found:
            raise UnknownName(f"folder '{name}' has no litmus test (.toml) in it")
        return found
    if name.endswith(".toml"):
        return [path]
    shipped = _shipped("litmus", ".toml")
    if name not in shipped:
        raise UnknownName(f"no litmus test '{name}'{near(name, shipped)}")
    return [shipped[name]]


def litmus(name: str) -> Litmus | HistoryTest:
    """The litmus test with this name, or in the ``.toml`` file with this path."""
    path = litmus_files(name)[0]
    shipped = path.is_relative_to(HOME / "litmus")
    return _read_shipped_litmus(path) if shipped else _read_litmus(path)


def matrix(name: str) -> Matrix:
    """The matrix with this name, or the one in the ``.toml`` file with this path.

    >>> list(matrix("pairs").layouts)[:3]
    ['unpartitioned', 'same partition', 'other partition']
    """
    from isolitmus.specs.matrix_file import read_matrix

    known = _shipped("matrices", ".toml")
    path = Path(name) if name.endswith(".toml") else known.get(name)
    if path is None:
        raise UnknownName(f"no matrix '{name}'{near(name, known)}")
    return read_matrix(read_text(path, LitmusError), path.stem, path)


def scopes() -> list[str]:
    """The names of the scopes in the package, sorted."""
    return list(_shipped("scopes", ".toml"))


def scope(name: str) -> Scope:
    """The scope with this name, or in the ``.toml`` file with this path."""
    from isolitmus.specs.scope_file import read_scope

    if not name.endswith(".toml") and name not in scopes():
        raise UnknownName(f"no scope '{name}'{near(name, scopes())}")
    path = Path(name) if name.endswith(".toml") else HOME / "scopes" / f"{name}.toml"
    return read_scope(read_text(path, LitmusError), path.stem, path)


@cache
def _shipped(folder: str, ending: str) -> Mapping[str, Path]:
    """The package's files of a kind, by name and in its order."""
    found = (HOME / folder).rglob(f"*{ending}")
    return {path.stem: path for path in sorted(found, key=lambda path: path.with_suffix(""))}


def _find(name: str, what: str, folders: tuple[Folder, ...]) -> Spec:
    if name.endswith(".cat"):
        return _read(Path(name))
    shipped = {k: path for folder in folders for k, path in _shipped(folder, ".cat").items()}
    if name not in shipped:
        raise UnknownName(f"no {what} '{name}'{near(name, shipped)}")
    return _read_shipped(shipped[name])


@cache
def _read_shipped(path: Path) -> Spec:
    return _read(path)


@cache
def _read_shipped_litmus(path: Path) -> Litmus | HistoryTest:
    return _read_litmus(path)


def _read_litmus(path: Path) -> Litmus | HistoryTest:
    from isolitmus.specs.litmus_file import read_litmus

    return read_litmus(read_text(path, LitmusError), path.stem, path)


def _read(path: Path) -> Spec:
    return read(read_text(path, SpecError), path.stem, path)
