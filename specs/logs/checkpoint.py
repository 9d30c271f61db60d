"""Checkpoints of a Delta log: the table's files at one version, where older commits are gone.

Three forms (PROTOCOL.md, "Checkpoints"): one Parquet file; several, whose names say how many; and the
V2 form, a JSON or Parquet file with ``sidecar`` actions that name further files. Read by DuckDB, some
thousand rows at a time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isolitmus.model.errors import LogError, brief
from isolitmus.specs.disk.input_files import is_file, open_file, read_lines
from isolitmus.specs.disk.limits import read_json
from isolitmus.specs.logs.actions import file_of, metadata_of, protocol_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from isolitmus.model.delta.log import LogFile, LogMetadata, LogProtocol

__all__ = ["Checkpoint", "checkpoints"]

NAME = re.compile(
    r"(?P<version>\d{20})\.checkpoint"
    r"(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<unique>[\w-]+))?\.(?P<kind>parquet|json)"
)
ROWS = 10_000
"""So many rows are in memory at one time."""
WANTED = {
    "add": ("path", "partitionValues", "dataChange", "deletionVector", "stats"),
    "metaData": ("schemaString", "partitionColumns", "configuration"),
    "protocol": ("minReaderVersion", "minWriterVersion", "readerFeatures", "writerFeatures"),
    "checkpointMetadata": ("version",),
    "sidecar": ("path",),
}
"""The actions of a checkpoint that we look at, with their fields."""

State = "LogFile | LogMetadata | LogProtocol"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint by its version and files, all of them there."""

    version: int
    files: tuple[Path, ...]

    def state(self) -> Iterator[LogFile | LogMetadata | LogProtocol]:
        """The files, metadata and protocol of the table at this version."""
        todo = list(self.files)
        while todo:
            path = todo.pop(0)
            for name, fields in _actions(path):
                where = f"{path}: {name}"
                match name:
                    case "add":
                        yield file_of(fields, where)
                    case "metaData":
                        yield metadata_of(fields, where)
                    case "protocol":
                        yield protocol_of(fields, where)
                    case "checkpointMetadata" if fields.get("version") != self.version:
                        raise LogError(
                            f"{path}: this is a checkpoint of version {fields.get('version')}; its name"
                            f" says version {self.version}"
                        )
                    case "sidecar":
                        todo.append(_sidecar(path, fields))


def checkpoints(log: Path, names: Sequence[str]) -> list[Checkpoint]:
    """The checkpoints whose files are all there, oldest first; of one version the first by name."""
    found: dict[tuple[int, int, str], list[str]] = {}
    for name in sorted(names):
        match = NAME.fullmatch(name)
        if match is not None:
            key = int(match["version"]), int(match["parts"] or 1), match["unique"] or ""
            found.setdefault(key, []).append(name)
    whole: dict[int, Checkpoint] = {}
    for (version, parts, _), files in sorted(found.items()):
        if len(files) == parts:
            whole.setdefault(version, Checkpoint(version, tuple(log / name for name in files)))
    return list(whole.values())


def _sidecar(path: Path, fields: dict[str, Any]) -> Path:
    named = fields.get("path")
    if not isinstance(named, str) or "/" in named:
        raise LogError(f"{path}: sidecar {named!r}; a file of the folder _sidecars is wanted")
    sidecar = path.parent / "_sidecars" / named
    if not is_file(sidecar):
        raise LogError(f"{path}: its sidecar {named} is not there")
    return sidecar


def _actions(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if path.suffix == ".json":
        yield from _json_actions(path)
    else:
        yield from _parquet_actions(path)


def _json_actions(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(read_lines(path, LogError), 1):
        try:
            ((name, fields),) = read_json(line).items()
        except (ValueError, AttributeError):
            raise LogError(f"{path}:{number}: '{brief(line, 60)}' is no action") from None
        if name in WANTED and isinstance(fields, dict):
            yield name, fields


def _parquet_actions(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    import duckdb

    open_file(path, LogError).close()
    with duckdb.connect() as database:
        try:
            table = database.read_parquet(str(path))
            columns = dict(zip(table.columns, table.types, strict=True))
            there = [name for name in WANTED if name in columns]
            if "add" not in there:
                raise LogError(
                    f"{path}: this Parquet file has no column 'add': it is no checkpoint"
                )
            parts = [_select(name, [f for f, _ in columns[name].children]) for name in there]
            rows = database.execute(f"SELECT {', '.join(parts)} FROM read_parquet(?)", [str(path)])
            while batch := rows.fetchmany(ROWS):
                for row in batch:
                    for name, fields in zip(there, row, strict=True):
                        if fields is not None:
                            yield name, fields
        except duckdb.Error as error:
            reason = brief(str(error), 120)
            raise LogError(
                f"{path}: this checkpoint is no Parquet file that reads ({reason})"
            ) from None


def _select(name: str, fields: list[str]) -> str:
    parts = ", ".join(f'"{f}" := {name}."{f}"' for f in WANTED[name] if f in fields)
    return f"CASE WHEN {name} IS NULL THEN NULL ELSE struct_pack({parts}) END"
