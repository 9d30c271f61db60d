"""Levels and protocols by name or path, in the package and in other files.

A short name for the Databricks page, and a release of its runtime, also name a protocol.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fnmatch import filter as matching
from functools import cache
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING
from warnings import warn

from isolitmus.model.anomaly import plain_name
from isolitmus.model.errors import (
    IsolitmusError,
    SpecError,
    SpecWarning,
    UnknownName,
    brief,
    near,
)
from isolitmus.model.spec import Spec
from isolitmus.specs.disk.input_files import HOME, read_text, shipped_files
from isolitmus.specs.files.anomaly_file import anomalies
from isolitmus.specs.files.spec_reader import read_spec
from isolitmus.specs.files.toml_reader import DELTA
from isolitmus.specs.registries import FORMATS, format_named, log_of_format

if TYPE_CHECKING:
    from typing import TypeAlias

    from isolitmus.specs.disk.input_files import Folder
    from isolitmus.specs.files.toml_reader import Node

    NameOrPath: TypeAlias = str | PathLike[str]
    SpecLike: TypeAlias = Spec | NameOrPath
    """Spec, its name, or the path of its file."""

PROPOSALS = "proposals"
"""Folder of the protocols that are rules being designed; they are used only if named."""
PUBLISHED = "published"
"""Folder of the levels that are checked only if named."""
EDITION = re.compile(
    r"databricks(?P<level>-(?:write-)?serializable)?(?P<edition>-(?:oldest|middle|newest))?"
    r"(?P<matrix>-(?:rows|files))?"
)
"""Pattern of short names of the protocols written from the Databricks page. Missing parts stand for
the default or the newest edition. ``-files`` is the matrix without row-level concurrency, for
tables that do not have it.
"""
RELEASE = re.compile(
    r"(?:dbr-?)?(\d+(?:\.\d+)?)(?:\.x)?[- ]?(?:lts)?(-preview)?(-photon)?(?:-scala[\d.]+)?",
    re.IGNORECASE,
)
"""Pattern of a release of Databricks Runtime, also as in a cluster (``15.4.x-photon-scala2.12``).
"""
LATER = (
    "14.3", "15.0", "15.1", "15.2", "15.3", "15.4", "16.0", "16.1", "16.2", "16.3", "16.4",
    "17.0", "17.1", "17.2", "17.3", "18", "18.0",
)  # fmt: skip
"""Releases for which the page has the same rules: 14.3 LTS and later."""
RUNTIMES = {
    "13.3": "13.3", "14.0": "13.3", "14.1": "13.3",
    "14.0-preview": "14.1-preview", "14.1-preview": "14.1-preview", "14.2": "14.2",
} | dict.fromkeys(LATER, "14.3")  # fmt: skip
"""Releases that the page distinguishes, each with the equivalent one in ``specs/runtimes``; before
14.2 a preview has to be switched on.
"""


def databricks_protocol(name: str) -> str:
    """Return the protocol of a short name for the Databricks page, or of a full one with a release.

    Any other name is returned as it is. UnknownName is raised for a release that the page does not
    know.

    Examples
    --------
    >>> databricks_protocol("databricks@15.4"), databricks_protocol("databricks-serializable-files")
    ('databricks-write-serializable-newest-rows@14.3', 'databricks-serializable-newest')
    """
    plain, at, release = name.partition("@")
    if not plain.startswith("databricks"):
        return name
    short = EDITION.fullmatch(plain)
    if short is not None and plain not in shipped_files("protocols"):
        level, edition, matrix = short.group("level", "edition", "matrix")
        rows = "" if matrix == "-files" else "-rows"
        plain = f"databricks{level or '-write-serializable'}{edition or '-newest'}{rows}"
    if not at:
        return plain
    found = RELEASE.fullmatch(release)
    wanted = "" if found is None else found[1] + (found[2] or "").lower()
    if found is None or wanted not in RUNTIMES:
        known = ", ".join(RUNTIMES)
        raise UnknownName(
            f"no release '{release}' of Databricks Runtime; known: {known}, each also with -photon"
        )
    runtime = RUNTIMES[wanted]
    photon = (found[3] or "").lower() if runtime != "13.3" else ""
    if short is not None and short["matrix"] == "-files":
        return plain
    return f"{plain}@{runtime}{photon}"


def protocol_names(text: str) -> tuple[str, ...]:
    """Return the names of the protocols that a text in a file stands for.

    Parameters
    ----------
    text : str
        Name of a protocol, short name for the Databricks page, or pattern, each perhaps with a
        release of Databricks Runtime.

    Raises
    ------
    UnknownName
        If there is no such protocol, or if a protocol has no rules for the release.

    Examples
    --------
    >>> protocol_names("databricks@15.4")
    ('databricks-write-serializable-newest-rows@14.3',)
    >>> protocol_names("delta-write-*")
    ('delta-write-serializable', 'delta-write-serializable-repaired')

    Rules that are being designed match only a pattern that matches nothing else.

    >>> "case-2-serializable" in protocol_names("*"), protocol_names("case-3-s*")
    (False, ('case-3-serializable',))
    """
    known = shipped_files("protocols")
    if text in known:
        return (text,)
    plain, at, release = text.partition("@")
    designed = {*proposals()}
    usual = [name for name in known if name not in designed]
    found = (matching(usual, plain) or matching(known, plain)) if "*" in plain else [plain]
    if not found:
        raise UnknownName(f"no protocol matches '{plain}'")
    try:
        names = [protocol(f"{name}{at}{release}").name for name in found]
    except SpecError as error:
        raise UnknownName(str(error).splitlines()[0].partition(": ")[2]) from None
    return tuple(dict.fromkeys(names))


def levels(log: str = DELTA) -> list[str]:
    """Return the names of the shipped levels that are checked by default for a log, sorted.

    Examples
    --------
    >>> "write-serializable" in levels(), "write-serializable" in levels("locking")
    (True, True)
    >>> "pl-3" in levels()
    False
    """
    known = shipped_files("levels")
    return [name for name in every_level(log) if known[name].parent.name != PUBLISHED]


def every_level(log: str = DELTA) -> list[str]:
    """Return the names of all shipped levels for a log, including published definitions, sorted.

    Examples
    --------
    >>> set(levels()) < set(every_level()), "pl-3" in every_level()
    (True, True)
    """
    known = shipped_files("levels").items()
    return sorted(name for name, path in known if format_of_file(path) in (None, log))


def protocols(log: str = DELTA) -> list[str]:
    """Return the names of the shipped protocols whose format has this log, sorted.

    Rules that are being designed are not among them: they are used only if named.

    Examples
    --------
    >>> "delta-serializable" in protocols(), "locking-read-committed" in protocols()
    (True, False)
    """
    known = shipped_files("protocols").items()
    return [
        name
        for name, path in known
        if format_of_file(path) == log and path.parent.name != PROPOSALS
    ]


def proposals() -> list[str]:
    """Return the names of the shipped protocols that are rules being designed, sorted.

    Examples
    --------
    >>> "case-2-serializable" in proposals(), "case-2-serializable" in protocols()
    (True, False)
    """
    known = shipped_files("protocols").items()
    return [name for name, path in known if path.parent.name == PROPOSALS]


def is_designed(spec: Spec) -> bool:
    """Return whether a spec is a rule that is being designed: a protocol, but none of an engine
    that ships.

    Examples
    --------
    >>> [is_designed(protocol(name)) for name in ("case-2-serializable", "delta-serializable")]
    [True, False]
    >>> is_designed(level("serializable"))
    False
    """
    path = shipped_files("protocols").get(spec.name.partition("@")[0])
    if path is None or path.parent.name == PROPOSALS:
        return bool(spec.format or spec.promises)
    shipped = _find(spec.name, "protocol", ("protocols",))
    return (spec.axioms, spec.definitions) != (shipped.axioms, shipped.definitions)


def is_rule(spec: Spec) -> bool:
    """Return whether a spec can be a protocol: by it commits are checked, or locks are taken.

    Examples
    --------
    >>> from isolitmus.specs.files.spec_reader import read_spec
    >>> is_rule(read_spec('"Mine" include "delta.cat" empty added as appended', "mine"))
    True
    >>> is_rule(spec("serializable")), is_rule(spec("row-once"))
    (False, False)
    """
    if spec.promises or spec.clauses:
        return True
    if spec.format is None:
        return False
    return not format_named(spec.format).clauses and all(a.test == "empty" for a in spec.axioms)


def format_of_file(path: Path) -> str | None:
    """Return the log of a shipped file, by its folder.

    A folder with the name of a format determines the log. Without one it is Delta's; for a level it
    is None, as the level applies to any log.
    """
    folder, first, *_ = path.relative_to(HOME).parts
    if first in FORMATS.shipped:
        return log_of_format(first)
    return None if folder == "levels" else DELTA


def related_protocols(*names: str, form: str = DELTA) -> list[str]:
    """Return the protocols in the folders of the named protocols, sorted; those of one engine share
    one.

    If no name is a protocol, the default protocols of the format are taken instead.

    Examples
    --------
    >>> related = related_protocols("delta-serializable")
    >>> related_protocols("log-serializable") == related != protocols()
    True
    """
    known = shipped_files("protocols")
    meant = [name for name in names if name in known]
    if not meant:
        meant = [name for name in format_named(form).protocols if name in known]
    folders = {known[name].parent for name in meant}
    return [name for name, path in known.items() if path.parent in folders]


def level(name: SpecLike) -> Spec:
    """Return the level of a name or a ``.cat`` path; a spec is returned as it is.

    Parameters
    ----------
    name : Spec, str or path
        Spec, name of a shipped level, or path of a ``.cat`` file.

    Returns
    -------
    Spec
        The level.

    Raises
    ------
    UnknownName
        If there is no such level, with a suggestion.
    SpecError
        If the file does not parse.

    Examples
    --------
    >>> level("write-serializable").axioms[-1].name
    'order-of-writers'
    """
    return _find(name, "level", ("levels",))


def protocol(name: SpecLike) -> Spec:
    """Return the protocol of a name or a ``.cat`` path; a spec is returned as it is.

    Parameters
    ----------
    name : Spec, str or path
        Spec, name of a shipped protocol, or path of a ``.cat`` file.

    Returns
    -------
    Spec
        The protocol.

    Raises
    ------
    UnknownName
        If there is no such protocol, with a suggestion.
    SpecError
        If the spec does not parse or is not a protocol: a commit is checked by ``empty`` axioms
        only.

    Examples
    --------
    >>> [axiom.name for axiom in protocol("delta-serializable").axioms][-1]
    'ConcurrentDeleteDeleteException'
    """
    if isinstance(name, Spec):
        return name
    found = _find(name, "protocol", ("protocols",))
    for axiom in found.axioms:
        if axiom.test != "empty":
            raise SpecError(
                f"{name} is not a protocol: its axiom {axiom.name} is {axiom.test}, and what is"
                " checked at a commit is that a relation is empty"
            )
    if found.format is not None and format_named(found.format).clauses and not found.clauses:
        raise SpecError(
            f"{name} is not a protocol: of format {found.format} one says what is seen, and what is"
            " locked"
        )
    return replace(found, format=DELTA) if found.format is None else found


def spec(name: SpecLike) -> Spec:
    """Return the level or protocol of a name or a ``.cat`` path, perhaps with ``@`` and a runtime.

    A spec is returned as it is.

    Parameters
    ----------
    name : Spec, str or path
        Spec, name of a shipped level or protocol, or path of a ``.cat`` file; perhaps with ``@``
        and a release of Databricks Runtime.

    Returns
    -------
    Spec
        The level or protocol.

    Raises
    ------
    UnknownName
        If there is no such spec, with a suggestion.
    SpecError
        If the file does not parse.

    Examples
    --------
    >>> spec("databricks-serializable-newest-rows@14.2").runtime
    '14.2'
    >>> spec("serialisable")
    Traceback (most recent call last):
    isolitmus.model.errors.UnknownName: unknown level or protocol 'serialisable'; did you mean \
'serializable'?
    """
    return _find(name, "level or protocol", ("levels", "protocols"))


def read_levels(given: Node) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the levels in ``holds`` and in ``fails``, which are disjoint."""
    holds, fails = (
        given.named(key, "level", shipped_files("levels")) for key in ("holds", "fails")
    )
    both = next((name for name in holds if name in fails), None)
    if both is not None:
        given.refuse(f"{given}: '{both}' is in holds and in fails")
    return holds, fails


def meant_spec(name: str, folders: tuple[Folder, ...] = ("levels",)) -> str | None:
    """Return the spec whose name differs in case, spaces and hyphens only; else None.

    Examples
    --------
    >>> meant_spec("WriteSerializable"), meant_spec("SNAPSHOT ISOLATION"), meant_spec("serialised")
    ('write-serializable', 'snapshot-isolation', None)
    """
    if _without_anomaly(name) is not None:
        return name
    wanted = plain_name(name)
    known = (known for folder in folders for known in shipped_files(folder))
    return next((known for known in known if plain_name(known) == wanted), None)


def name_text(name: object) -> str:
    """Return a name or path as a string; IsolitmusError for anything else."""
    if not isinstance(name, (str, PathLike)):
        raise IsolitmusError(
            f"{brief(repr(name))} is a {type(name).__name__}; a name such as 'serializable', or a"
            " path, would be right"
        )
    return str(fspath(name))


def _find(name: SpecLike, what: str, folders: tuple[Folder, ...]) -> Spec:
    """Return a spec by name, with an optional runtime after "@", or by path."""
    if isinstance(name, Spec):
        return name
    name = name_text(name)
    if name.endswith(".cat"):
        read = _read(Path(name))
        for promised in read.promises:
            levels = shipped_files("levels")
            if promised not in levels:
                raise SpecError(f"{name} promises no level: '{promised}'{near(promised, levels)}")
        _warn_of_empty_parts(read)
        return read
    known = {k: path for folder in folders for k, path in shipped_files(folder).items()}
    if "protocols" in folders:
        name = databricks_protocol(name)
    plain, _, runtime = name.partition("@")
    if plain not in known and (without := _without_anomaly(plain)) is not None:
        return without
    if plain not in known:
        plain = meant_spec(plain, folders) or plain
    if plain not in known:
        family = f"{plain.partition('-')[0]}-"
        usual = [
            k
            for k, path in known.items()
            if format_of_file(path) in (None, DELTA) or k.startswith(family)
        ]
        meant = near(plain, usual) or near(plain, known)
        for other in {"levels", "protocols"}.difference(folders):
            if plain in shipped_files(other):
                raise UnknownName(f"'{plain}' is a {other[:-1]}, and a {what} is expected{meant}")
        raise UnknownName(f"unknown {what} '{plain}'{meant}")
    return _read_shipped(known[plain], runtime or None)


def _warn_of_empty_parts(read: Spec) -> None:
    """Warn of each statement of a spec that is empty by its text."""
    from isolitmus.specs.files.spec_emptiness import find_empty_parts

    for part in find_empty_parts(read):
        warn(str(part), SpecWarning, stacklevel=4)


WITHOUT = "without-"
"""Start of the name of the level that only forbids an anomaly, such as ``without-lost-update``."""


@cache
def _without_anomaly(name: str) -> Spec | None:
    """Return the level that is named after an anomaly and only has its axiom, or None."""
    anomaly = anomalies().get(name.removeprefix(WITHOUT)) if name.startswith(WITHOUT) else None
    if anomaly is None or not anomaly.absent:
        return None
    text = f"""\
"Without {anomaly.title.lower()}"

(* {anomaly.source} *)

with ww from versions
{anomaly.absent} as no-{anomaly.name}
"""
    return read_spec(text, name)


@cache
def _read_shipped(path: Path, runtime: str | None) -> Spec:
    return _read(path, runtime)


def _read(path: Path, runtime: str | None = None) -> Spec:
    name = path.stem if runtime is None else f"{path.stem}@{runtime}"
    return read_spec(read_text(path, SpecError), name, path, runtime=runtime)
