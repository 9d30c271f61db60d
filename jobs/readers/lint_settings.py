"""Settings of ``isolitmus lint``: ``[tool.isolitmus]`` of a pyproject.toml, or an isolitmus.toml.

The file is searched for from the linted path upwards, up to the folder of a repository. Paths and
patterns in it are relative to its folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from isolitmus.jobs.lint_rule import chosen_codes, codes_of, unknown_code
from isolitmus.jobs.projects.path_patterns import matches_path
from isolitmus.jobs.readers.job_schedule import JobSchedule, read_job_schedule
from isolitmus.model.errors import LitmusError
from isolitmus.specs.disk.input_files import (
    find_repository,
    is_file,
    is_folder,
    is_there,
    real_path,
    real_place,
)
from isolitmus.specs.disk.repository import end_of_reading, escape, read_inside
from isolitmus.specs.files.toml_reader import Node, Source, show_value

OWN, SHARED = "isolitmus.toml", "pyproject.toml"
"""Names of files with settings; the first one wins."""
KEYS = (
    "paths",
    "level",
    "select",
    "extend-select",
    "ignore",
    "strict",
    "baseline",
    "ddl",
    "tables",
    "exclude",
    "per-file-ignores",
    "schedule",
    "invariants",
)


@dataclass(frozen=True, slots=True)
class LintSettings:
    """Settings of ``isolitmus lint``."""

    root: Path
    """Folder to which paths and patterns are relative."""
    path: Path | None = None
    """File with the settings, if there is one."""
    paths: tuple[Path, ...] = ()
    """What is linted if the command line names nothing."""
    level: str | None = None
    """Isolation level or protocol."""
    select: tuple[str, ...] | None = None
    """Selectors of the rules that are on; None for the default."""
    extend: tuple[str, ...] = ()
    """Selectors of further rules that are on."""
    ignore: tuple[str, ...] = ()
    """Selectors of rules that are off."""
    strict: bool = False
    """Whether an unknown answer fails."""
    baseline: Path | None = None
    """File with the findings that do not fail."""
    ddl: Path | None = None
    """File with CREATE TABLE statements."""
    tables: tuple[str, ...] = ()
    """Folders of Delta tables whose logs declare them."""
    exclude: tuple[str, ...] = ()
    """Patterns of files that are left out."""
    per_file: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Patterns of files, each with selectors of rules that are off in them."""
    schedule: JobSchedule | None = None
    """Which jobs never overlap, and which parameters are shared or distinct."""
    invariants: Node | None = None
    """Invariants that the jobs are meant to keep, by name."""
    node: Node | None = None
    """Table with the settings."""

    def place_of(self, key: str) -> str:
        """Return the file and line of a key; empty if the settings do not have it."""
        if self.node is None or key not in self.node:
            return ""
        return self.node.source.place(self.node.under(key))

    def check_files(self, key: Literal["paths", "ddl"]) -> None:
        """Refuse a path of a key that does not exist, at the line of the key."""
        if self.node is None or key not in self.node:
            return
        given = _texts(self.node, key) if key == "paths" else (_text(self.node, key) or "",)
        for one in given:
            path, where = self.root / one, self.node.under(key)
            if not (is_file(path) if key == "ddl" else is_there(path)):
                kind = "file" if key == "ddl" else "file or folder"
                self.node.refuse(f"{where}: no {kind} '{one}'", where)

    @property
    def codes(self) -> frozenset[str]:
        """Codes of the rules that are on."""
        return chosen_codes(self.select, self.extend, self.ignore)

    def relative(self, path: Path) -> str:
        """Return a path relative to the root, with slashes; as it is if it is elsewhere."""
        real = real_place(path)
        root = real_path(self.root)
        return (real.relative_to(root) if real.is_relative_to(root) else real).as_posix()

    def is_excluded(self, path: Path) -> bool:
        """Return whether a file is left out."""
        name = self.relative(path) if self.exclude else ""
        return any(path_matches(pattern, name) for pattern in self.exclude)

    def ignored_in(self, path: Path) -> frozenset[str]:
        """Return the codes of the rules that are off in a file."""
        name = self.relative(path) if self.per_file else ""
        return frozenset(
            code
            for pattern, selectors in self.per_file
            if path_matches(pattern, name)
            for selector in selectors
            for code in codes_of(selector)
        )


def find_settings(start: Path) -> Path | None:
    """Return the file with the settings for a path, or None.

    Parameters
    ----------
    start : Path
        File or folder. Its folder and those above it are searched, up to one with ``.git``.
    """
    real = real_path(start)
    for folder in (real, *real.parents):
        if not is_folder(folder):
            continue
        own, common = folder / OWN, folder / SHARED
        if is_file(own):
            return own
        if is_file(common) and _has_section(common):
            return common
        if is_there(folder / ".git"):
            return None
    return None


def default_root(start: Path) -> Path:
    """Return the folder of the repository of a path, or its own folder if it is in none."""
    real = real_path(start)
    folder = real if is_folder(real) else real.parent
    return find_repository(folder) or folder


def _has_section(path: Path) -> bool:
    """Return whether a pyproject.toml has settings of isolitmus."""
    text = read_inside(path, LitmusError, end_of_reading(path.parent))
    return "isolitmus" in text and _section(Source(_label(path), text, path)) is not None


def _label(path: Path) -> str:
    """Return the name of a file in messages: its path, relative if it is in the working folder."""
    here = real_path(Path())
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _section(source: Source) -> Node | None:
    """Return the table [tool.isolitmus] of a pyproject.toml, or None."""
    tool = source.node().inner("tool", {})
    return tool.inner("isolitmus") if "isolitmus" in tool else None


def read_settings(path: Path) -> LintSettings:
    """Return the settings in a file.

    Parameters
    ----------
    path : Path
        A pyproject.toml with ``[tool.isolitmus]``, or any other TOML file with its keys.

    Raises
    ------
    LitmusError
        If a key is unknown or has a wrong value; the message names file and line.
    """
    text = read_inside(path, LitmusError)
    path = real_path(path)
    source = Source(_label(path), text, path)
    node = _section(source) if path.name == SHARED else source.node()
    if node is None:
        raise LitmusError(
            f"{source.label}: no [tool.isolitmus] in it; add it, or name another file"
        )
    node.keys(KEYS)
    root = path.parent
    _check_paths(node, root)
    schedule = read_job_schedule(node.inner("schedule", {})) if "schedule" in node else None
    per_file = node.inner("per-file-ignores", {})
    patterns = _texts(node, "exclude")
    for pattern in (*patterns, *per_file.value):
        _pattern(node, pattern)
    return LintSettings(
        root,
        path,
        tuple(root / one for one in _texts(node, "paths")),
        _text(node, "level"),
        _selectors(node, "select") if "select" in node else None,
        _selectors(node, "extend-select"),
        _selectors(node, "ignore"),
        node.get("strict", bool, default=False),
        _below(node, "baseline", root),
        _below(node, "ddl", root),
        tuple(_table(one, root) for one in _texts(node, "tables")),
        patterns,
        tuple((pattern, _selectors(per_file, pattern)) for pattern in per_file.value),
        schedule,
        node.inner("invariants", {}) if "invariants" in node else None,
        node,
    )


def _check_paths(node: Node, root: Path) -> None:
    """Refuse a path that leads out of the repository, at its key.

    The repository is that of the settings; the command line may name others.
    """
    end = end_of_reading(root)
    level = _text(node, "level") or ""
    if level.endswith(".cat") and (problem := escape(Path(level), end)):
        node.refuse(f"{node.under('level')}: '{level}': {problem}", node.under("level"))
    for key in ("paths", "ddl", "baseline", "tables"):
        single = key in {"ddl", "baseline"}
        given = (_text(node, key),) if single else _texts(node, key)
        for one in given:
            path = one if one is None or key != "tables" else one.rpartition("=")[2]
            if path is not None and (problem := escape(root / path, end)):
                where, option = node.under(key), {"paths": "PATH", "tables": "--table"}.get(key)
                node.refuse(
                    f"{where}: '{path}': {problem}; name it on the command line"
                    f" ({option or f'--{key}'})",
                    where,
                )


def _table(given: str, root: Path) -> str:
    """Return FOLDER or NAME=FOLDER with the folder below the root."""
    name, equals, folder = given.rpartition("=")
    return f"{name}{equals}{root / folder}"


def _text(node: Node, key: str) -> str | None:
    """Return the string of a key, or None."""
    return None if key not in node else str(node.get(key, str))


def _below(node: Node, key: str, root: Path) -> Path | None:
    """Return the path of a key, relative to the root, or None."""
    text = _text(node, key)
    return None if text is None else root / text


def _texts(node: Node, key: str) -> tuple[str, ...]:
    """Return the strings of a key; refuse values of another type at the key."""
    values = node.get(key, list, [])
    for value in values:
        if not isinstance(value, str) or not value:
            node.refuse(
                f"{node.under(key)} holds {show_value(value)}; expected strings", node.under(key)
            )
    return tuple(values)


def _selectors(node: Node, key: str) -> tuple[str, ...]:
    """Return the selectors of rules of a key; refuse one that stands for no rule."""
    found = _texts(node, key)
    for one in found:
        if not codes_of(one):
            node.refuse(f"{node.under(key)}: {unknown_code(one)}", node.under(key))
    return found


def _pattern(node: Node, pattern: str) -> None:
    """Refuse a pattern that matches no relative path."""
    if pattern.startswith("/") or ".." in pattern.split("/"):
        node.refuse(
            f"the pattern '{pattern}' leaves the folder of this file; write a relative one",
            node.path,
        )


def path_matches(pattern: str, path: str) -> bool:
    """Return whether a pattern matches a path or a folder above it.

    ``*`` and ``?`` match within one name, ``**`` any number of folders. A pattern without a slash
    matches names at any depth.

    Examples
    --------
    >>> path_matches("models/**/old_*.sql", "models/a/b/old_x.sql")
    True
    >>> path_matches("staging", "m/staging/a.sql"), path_matches("m*/b.sql", "models/a/b.sql")
    (True, False)
    """
    whole = pattern.strip("/")
    if "/" not in whole:
        whole = f"**/{whole}"
    return matches_path(whole, path, below=True)
