"""Actions of a Delta log, parsed from JSON or checkpoints and validated.

Unknown *fields* are ignored (as Delta's PROTOCOL.md demands of readers). An unknown *action* is an
error, and so is an unknown feature that readers must support: either may change the meaning of
other actions.

A checkpoint contains the table's files at one version, for logs whose older commits were deleted.
There are three forms (PROTOCOL.md, "Checkpoints"): one Parquet file; several, whose names contain
their number; and the V2 form, a JSON or Parquet file with ``sidecar`` actions that name further
files. DuckDB reads Parquet files in batches of rows.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any

from isolitmus.model.delta.log import LogCommit, LogFile, LogMetadata, LogProtocol
from isolitmus.model.errors import LogError, brief, near
from isolitmus.specs.disk.input_files import is_file, open_file, read_json, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Never

ACTIONS = ("add", "remove", "cdc", "txn", "metaData", "protocol", "commitInfo", "domainMetadata")
"""Actions of a commit (PROTOCOL.md, "Actions")."""

FEATURES = frozenset(
    {
        *("catalogManaged", "catalogOwned-preview", "columnMapping", "deletionVectors"),
        *("timestampNtz", "typeWidening", "typeWidening-preview", "v2Checkpoint"),
        *("vacuumProtocolCheck", "variantType", "variantType-preview"),
        *("variantShredding", "variantShredding-preview", "geospatial", "geospatial-dev"),
    }
)
"""Reader features that do not change the meaning of adds and removes (TableFeature.scala). Not
included are those that redirect readers (redirectReaderWriter) or keep files elsewhere
(adaptiveMetadata).
"""
SPECIAL = frozenset({"__COLLATIONS", "__CHAR_VARCHAR_TYPE_STRING"})
"""Keys of a string column with special comparison: a collation, CHAR's padding."""
RELIED_ON: dict[str, tuple[type, str]] = {
    "readVersion": (int, "a version"),
    "isBlindAppend": (bool, "true or false"),
    "isolationLevel": (str, "a string"),
    "operation": (str, "a string"),
    "operationParameters": (dict, "an object"),
    "engineInfo": (str, "a string"),
}
"""Fields of ``commitInfo`` that verdicts depend on, with their type and its name in messages."""
LOOSE = {"txnId": str, "timestamp": int}
"""Fields of ``commitInfo`` that no verdict depends on; with another type they are ignored."""
KNOWN = {name: kind for name, (kind, _) in RELIED_ON.items()} | LOOSE
READER, WRITER = 3, 7
"""Newest versions of the protocol (PROTOCOL.md)."""


class NotAnAction(LogError):
    """Line of a commit that is not one whole JSON object with one action."""


def parse_action(line: str, where: str) -> tuple[str, dict[str, Any]]:
    """Return the name and fields of the action on one line; `where` is the file and line for an
    error.

    Examples
    --------
    >>> parse_action('{"add": {"path": "f"}}', "0.json:1")
    ('add', {'path': 'f'})
    """
    try:
        action = read_json(line)
    except ValueError as error:
        reason = error.msg if isinstance(error, JSONDecodeError) else "no JSON"
        raise NotAnAction(
            f"{where}: '{brief(line, 60)}' is not an action ({reason}); a line is one whole JSON"
            " object, this one is cut off or damaged"
        ) from None
    if not isinstance(action, dict) or len(action) != 1:
        raise NotAnAction(
            f"{where}: '{brief(line, 60)}' is not an action; {{\"add\": {{…}}}} is one"
        )
    ((name, fields),) = action.items()
    if name not in ACTIONS:
        raise LogError(f"{where}: unknown action '{brief(name, 40)}'{near(name, ACTIONS)}")
    if not isinstance(fields, dict):
        _wrong(where, name, fields, "an object")
    return name, fields


def build_commit(version: int, actions: Iterable[tuple[str, str, Mapping[str, Any]]]) -> LogCommit:
    """Return the commit with these actions: for each, its place, name and fields."""
    info: Mapping[str, Any] = {}
    adds, removes, applications, domains, changes = [], [], [], [], 0
    metadata = protocol = None
    for where, name, fields in actions:
        match name:
            case "add":
                adds.append(read_file_action(fields, f"{where}: add"))
            case "remove":
                removes.append(read_file_action(fields, f"{where}: remove"))
            case "cdc":
                changes += 1
            case "txn":
                applications.append(str(fields.get("appId")))
            case "domainMetadata":
                domains.append(str(fields.get("domain")))
            case "commitInfo":
                info = _info(fields, where)
            case "metaData":
                if metadata is not None:
                    raise LogError(f"{where}: a second metaData in one commit; one is allowed")
                metadata = read_metadata_action(fields, where)
            case "protocol":
                protocol = read_protocol_action(fields, where)
    return LogCommit(
        version,
        info,
        tuple(adds),
        tuple(removes),
        changes,
        metadata,
        protocol,
        tuple(applications),
        tuple(domains),
    )


def read_file_action(fields: Mapping[str, Any], where: str) -> LogFile:
    """Return the file that an ``add`` or ``remove`` names; ``file:///d/f`` becomes ``/d/f``."""
    path = fields.get("path")
    if not isinstance(path, str) or not path:
        _wrong(where, "path", path, "a path")
    partition = fields.get("partitionValues")
    if partition is not None and not (
        isinstance(partition, dict)
        and all(isinstance(value, str | None) for value in partition.values())
    ):
        _wrong(where, "partitionValues", partition, "an object of strings")
    stats = fields.get("stats")
    if stats is not None and not isinstance(stats, str):
        _wrong(where, "stats", stats, "a string")
    vector = fields.get("deletionVector")
    identity, marked = "", 0
    if vector is not None:
        if not isinstance(vector, dict):
            _wrong(where, "deletionVector", vector, "an object")
        offset = vector.get("offset")
        identity = f"{vector.get('storageType')}{vector.get('pathOrInlineDv')}"
        identity += "" if offset is None else f"@{offset}"
        marked = vector.get("cardinality") or 0
        if not isinstance(marked, int):
            _wrong(where, "cardinality", marked, "a number of rows")
    if path.startswith("file:"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    unchanged = fields.get("dataChange") is False
    return LogFile(path, identity, marked, partition, not unchanged, stats, fields)


def read_metadata_action(fields: Mapping[str, Any], where: str) -> LogMetadata:
    """Return the table's metadata in a ``metaData`` action."""
    columns = fields.get("partitionColumns") or []
    configuration = fields.get("configuration") or {}
    if not isinstance(columns, list) or not all(isinstance(c, str) for c in columns):
        _wrong(where, "partitionColumns", columns, "a list of names")
    if not isinstance(configuration, dict) or any(
        isinstance(value, dict | list) for value in configuration.values()
    ):
        _wrong(where, "configuration", configuration, "an object of strings")
    # a number or a boolean is read as its text, as Delta's parser does
    configuration = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in configuration.items()
        if value is not None
    }
    text = fields.get("schemaString")
    types: dict[str, tuple[str, str]] = {}
    try:
        schema = read_json(str(text)) if text else {"fields": []}
        for column in schema["fields"]:
            kind = column["type"] if isinstance(column["type"], str) else "nested"
            besides = column.get("metadata") or {}
            if SPECIAL.intersection(besides):
                kind = "special"
            physical = besides.get("delta.columnMapping.physicalName")
            types[column["name"].lower()] = (physical or column["name"], kind)
    except (ValueError, TypeError, KeyError, AttributeError):
        _wrong(where, "schemaString", text, "a schema in Spark's JSON")
    return LogMetadata(types, tuple(columns), configuration, str(text or ""))


def metadata_fields(metadata: LogMetadata) -> dict[str, Any]:
    """Return the fields from which ``read_metadata_action`` makes these metadata.

    Examples
    --------
    >>> fields = {"partitionColumns": ["day"], "configuration": {"delta.appendOnly": "true"}}
    >>> read = read_metadata_action(fields, "0.json:1")
    >>> read_metadata_action(metadata_fields(read), "0.json:1") == read
    True
    """
    return {
        "schemaString": metadata.schema,
        "partitionColumns": list(metadata.partitioned_by),
        "configuration": dict(metadata.configuration),
    }


def read_protocol_action(fields: Mapping[str, Any], where: str) -> LogProtocol:
    """Return the protocol; LogError if its logs cannot be read."""
    reader, writer = fields.get("minReaderVersion"), fields.get("minWriterVersion")
    for name, version, newest in (
        ("minReaderVersion", reader, READER),
        ("minWriterVersion", writer, WRITER),
    ):
        if not isinstance(version, int) or not 0 <= version <= newest:
            _wrong(where, name, version, f"a version up to {newest}")
    readers, writers = (fields.get(f"{who}Features") or [] for who in ("reader", "writer"))
    for name, features in (("readerFeatures", readers), ("writerFeatures", writers)):
        if not isinstance(features, list) or not all(isinstance(f, str) for f in features):
            _wrong(where, name, features, "a list of names")
    unknown = [feature for feature in readers if feature not in FEATURES]
    if unknown:
        raise LogError(
            f"{where}: readers of this table must know the feature '{unknown[0]}', which isolitmus"
            f" does not{near(unknown[0], FEATURES)}"
        )
    return LogProtocol(reader or 0, writer or 0, tuple(readers), tuple(writers))


def _info(fields: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Return the known fields of ``commitInfo``; those that verdicts depend on must have Delta's
    types.
    """
    for name, (kind, wanted) in RELIED_ON.items():
        value = fields.get(name)
        if value is not None and (
            not isinstance(value, kind) or (kind is int and isinstance(value, bool))
        ):
            _wrong(f"{where}: commitInfo", name, value, wanted)
    return {
        name: fields[name] for name, kind in KNOWN.items() if isinstance(fields.get(name), kind)
    }


def _wrong(where: str, name: str, value: object, wanted: str) -> Never:
    raise LogError(f"{where}: {name} is {brief(repr(value), 60)}; expected {wanted}")


NAME = re.compile(
    r"(?P<version>\d{20})\.checkpoint"
    r"(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<unique>[\w-]+))?\.(?P<kind>parquet|json)"
)
ROWS = 10_000
"""Number of rows in memory at a time."""
WANTED = {
    "add": ("path", "partitionValues", "dataChange", "deletionVector", "stats"),
    "metaData": ("schemaString", "partitionColumns", "configuration"),
    "protocol": ("minReaderVersion", "minWriterVersion", "readerFeatures", "writerFeatures"),
    "checkpointMetadata": ("version",),
    "sidecar": ("path",),
}
"""Actions of a checkpoint that are used, with their fields."""

State = "LogFile | LogMetadata | LogProtocol"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Checkpoint: its version and its files, all of which exist."""

    version: int
    files: tuple[Path, ...]

    def state(self) -> Iterator[LogFile | LogMetadata | LogProtocol]:
        """Yield the files, metadata and protocol of the table at this version."""
        todo = list(self.files)
        while todo:
            path = todo.pop(0)
            for name, fields in _actions(path):
                where = f"{path}: {name}"
                match name:
                    case "add":
                        yield read_file_action(fields, where)
                    case "metaData":
                        yield read_metadata_action(fields, where)
                    case "protocol":
                        yield read_protocol_action(fields, where)
                    case "checkpointMetadata" if fields.get("version") != self.version:
                        raise LogError(
                            f"{path}: this is a checkpoint of version {fields.get('version')}; its"
                            f" name says version {self.version}"
                        )
                    case "sidecar":
                        todo.append(_sidecar(path, fields))


def find_checkpoints(log: Path, names: Sequence[str]) -> list[Checkpoint]:
    """Return the complete checkpoints, oldest first; of one version, the first by name."""
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
    """Return the path of a sidecar of a checkpoint, or raise LogError."""
    named = fields.get("path")
    if not isinstance(named, str) or "/" in named:
        raise LogError(f"{path}: sidecar {named!r}; expected a file of the folder _sidecars")
    sidecar = path.parent / "_sidecars" / named
    if not is_file(sidecar):
        raise LogError(f"{path}: its sidecar {named} is not there")
    return sidecar


def _actions(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and fields of each wanted action in a JSON or Parquet file."""
    if path.suffix == ".json":
        yield from _json_actions(path)
    else:
        yield from _parquet_actions(path)


def _json_actions(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and fields of each wanted action in a JSON file, one action a line."""
    for number, line in enumerate(read_lines(path, LogError), 1):
        try:
            ((name, fields),) = read_json(line).items()
        except (ValueError, AttributeError):
            raise NotAnAction(f"{path}:{number}: '{brief(line, 60)}' is not an action") from None
        if name in WANTED and isinstance(fields, dict):
            yield name, fields


def _parquet_actions(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and fields of each wanted action in a Parquet checkpoint, read in batches."""
    import duckdb

    open_file(path, LogError).close()
    with duckdb.connect() as database:
        try:
            table = database.read_parquet(str(path))
            columns = dict(zip(table.columns, table.types, strict=True))
            there = [name for name in WANTED if name in columns]
            if "add" not in there:
                raise LogError(
                    f"{path}: this Parquet file has no column 'add': it is not a checkpoint"
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
