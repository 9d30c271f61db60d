"""Declarations of existing tables, read from their logs, and comparison with given declarations.

Columns, partitions, properties and isolation level are those of the newest version. Parts that no
commit check uses (comments, NOT NULL, defaults) are ignored, as in DDL. Features that the model
does not support are refused with the reason.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.model.delta.header import LEGACY, NUMBERED, SUPPORTED, WITH_ROW_TRACKING
from isolitmus.model.delta.log import LEVEL_KEY, LogMetadata, LogProtocol
from isolitmus.model.errors import IsolitmusError, LitmusError
from isolitmus.model.schema import Column, Identity
from isolitmus.model.sql.types import NAMED_TYPES, column_type
from isolitmus.specs.disk.input_files import is_there, read_json, real_path
from isolitmus.specs.files.table_ddl import TableDeclaration
from isolitmus.specs.files.toml_reader import NAME
from isolitmus.specs.logs.delta_log import open_log
from isolitmus.specs.sql.configuration import LAYOUT, LEVELS, MADE, unmodelled_property

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.types import Type
    from isolitmus.specs.files.toml_reader import TomlTable

__all__ = [
    "MAPPING",
    "LoggedDeclaration",
    "NotModelled",
    "declared_properties",
    "logged_type",
    "read_declared_table",
    "refuse_differing",
]

MAPPING = "delta.columnMapping."
GENERATED = "delta.identity."
LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
COMPUTED = "delta.generationExpression"
PASSED_OVER = (
    "comment", LENGTH, "CURRENT_DEFAULT", "EXISTS_DEFAULT", MAPPING, GENERATED, COMPUTED,
)  # fmt: skip
"""Prefixes of the keys that a column may have in addition to its type."""
OF_DELTA = (f"{MAPPING}maxColumnId", *WITH_ROW_TRACKING)
"""Properties that Delta sets itself; conflicts depend on them only if a commit changes them."""
NUMBERS = 7
"""Writer version from which on a protocol lists its features."""


class NotModelled(IsolitmusError):
    """Table that the model does not support; the text names the unsupported part."""


DEFAULT = "CURRENT_DEFAULT"
"""Key of a column's default in its metadata."""


class LoggedDeclaration(NamedTuple):
    """Declaration of a table in its log."""

    folder: Path
    """Folder of the table."""
    declared: TableDeclaration
    """Name, keys of a litmus file, and isolation level."""
    named: bool
    """True if the name was given; otherwise it is that of the folder."""


def read_declared_table(given: str) -> LoggedDeclaration:
    """Return the declaration of the table ``FOLDER`` or ``NAME=FOLDER`` in its log.

    Raises
    ------
    LogError
        If the log is missing or cannot be read.
    LitmusError
        If the model does not support the table.
    """
    name, sign, rest = given.partition("=")
    named = bool(sign and NAME.fullmatch(name)) and not is_there(Path(given))
    folder = Path(rest if named else given)
    name = name if named else real_path(folder).name
    if not NAME.fullmatch(name):
        raise LitmusError(
            f"{given}: '{name}' is not a name that a table has in SQL; write NAME={given}"
        )
    log = open_log(folder)
    metadata, protocol = LogMetadata(), LogProtocol(1, 2)
    actions = ((one.metadata, one.protocol) for one in log.commits())
    for action in chain(log.begin(), *actions):
        match action:
            case LogMetadata():
                metadata = action
            case LogProtocol():
                protocol = action
    if not metadata.schema:
        raise LitmusError(f"{folder}: its log says no columns: it has no metaData")
    try:
        return LoggedDeclaration(folder, _declared(name, metadata, protocol), named)
    except NotModelled as problem:
        raise LitmusError(f"{folder}: {problem}") from None


def _declared(name: str, metadata: LogMetadata, protocol: LogProtocol) -> TableDeclaration:
    """Return the declaration of a table from its logged metadata, or raise NotModelled."""
    fields = read_json(metadata.schema)["fields"]
    layout = {key: value for key, value in metadata.plain.items() if key in LAYOUT}
    plain = {key: value for key, value in metadata.plain.items() if key not in LAYOUT}
    table: TomlTable = {
        "columns": ", ".join(map(_column, fields)),
        "partitioned_by": list(metadata.partitioned_by),
        "properties": layout | declared_properties(plain, protocol),
    }
    level = next((known for known in LEVELS if known.lower() == metadata.level.lower()), None)
    if level is None:
        raise NotModelled(f"its {LEVEL_KEY} is '{metadata.level}'; known: {', '.join(LEVELS)}")
    besides = {one["name"]: one.get("metadata") or {} for one in fields}
    defaults = (column.lower() for column, known in besides.items() if DEFAULT in known)
    generated = (
        (column, str(known[COMPUTED])) for column, known in besides.items() if COMPUTED in known
    )
    lengths = ((one["name"], logged_type(one)) for one in fields)
    checked = (f"{column} {type_}" for column, type_ in lengths if type_.startswith("VARCHAR"))
    return TableDeclaration(
        name,
        table,
        level,
        checked=tuple(checked),
        defaults=tuple(defaults),
        generated=tuple(generated),
    )


def logged_type(column: Mapping[str, Any]) -> Type:
    """Return the model's type of a column in a log; NotModelled, with its name and type, if none
    exists.

    Examples
    --------
    >>> logged_type({"name": "id", "type": "long"})
    'BIGINT'
    >>> logged_type({"name": "x", "type": "decimal(9,2)"})
    'DECIMAL(9,2)'
    """
    name = column["name"]
    kind = (column.get("metadata") or {}).get(LENGTH) or column["type"]
    type_ = column_type(_spelled(kind))
    if type_ is None:
        what = kind["type"] if isinstance(kind, dict) else kind
        raise NotModelled(
            f"its column {name} is of type {what}; the model has {', '.join(NAMED_TYPES)}"
        )
    return type_


LOGGED = {"short": "SMALLINT", "byte": "TINYINT", "long": "BIGINT", "integer": "INT"}
"""SQL names of types that a log names differently."""


def _spelled(kind: Any) -> str:
    """Return a type of a log in SQL, including the types of its parts."""
    if isinstance(kind, str):
        return LOGGED.get(kind, kind.upper())
    match kind["type"]:
        case "struct":
            fields = (f"{one['name']}: {_spelled(one['type'])}" for one in kind["fields"])
            return f"STRUCT<{', '.join(fields)}>"
        case "array":
            return f"ARRAY<{_spelled(kind['elementType'])}>"
        case "map":
            return f"MAP<{_spelled(kind['keyType'])}, {_spelled(kind['valueType'])}>"
    return str(kind["type"])


def _column(column: Mapping[str, Any]) -> str:
    """Return a column definition for CREATE TABLE."""
    name, besides = column["name"], column.get("metadata") or {}
    type_ = logged_type(column)
    if type_.startswith("VARCHAR"):  # a string, of which writes check the length
        type_ = "STRING"
    for key in besides:
        if not key.startswith(PASSED_OVER):
            raise NotModelled(f"its column {name} has {key}, of which the model knows nothing")
    if not NAME.fullmatch(name):
        raise NotModelled(f"its column '{name}' has a name that is not letters, digits and _")
    if f"{GENERATED}start" not in besides:
        return Column(name, type_).ddl()
    always = besides.get(f"{GENERATED}allowExplicitInsert") is not True
    steps = (int(besides.get(f"{GENERATED}{key}", 1)) for key in ("start", "step"))
    return Column(name, type_, Identity(always, *steps)).ddl()


def declared_properties(given: Mapping[str, str], protocol: LogProtocol) -> dict[str, str]:
    """Return the properties that create a table as its log has it; NotModelled for an unsupported
    one.
    """
    found = {}
    for key, value in given.items():
        if key not in OF_DELTA:
            if why := unmodelled_property(key, value, made=True):
                raise NotModelled(why)
            found[key] = value
    return found | {f"{SUPPORTED}{feature}": "supported" for feature in _features(protocol)}


def _features(protocol: LogProtocol) -> list[str]:
    """Return the features of a protocol, without those that every table has."""
    if protocol.writer >= NUMBERS:
        features = {*protocol.reader_features, *protocol.writer_features}
    else:
        said = (LEGACY, *NUMBERED)[: max(protocol.writer - 1, 0)]
        features = {feature for several in said for feature in several}
    for feature in LEGACY:
        if feature not in features:
            raise NotModelled(f"its protocol has not the feature {feature}")
    if "clustering" in features:
        raise NotModelled("it is clustered, and how its files are clustered is not modelled")
    return sorted(features.difference(LEGACY))


def refuse_differing(name: str, declared: Schema, logged: Schema, folder: Path) -> None:
    """Raise LitmusError if a table of the workload `name` is declared differently from its log."""
    for what, ours, theirs in _compared(declared, logged):
        if ours.lower() != theirs.lower():
            raise LitmusError(
                f"{name}: {declared.name} is declared with {what} {ours or 'none'}, and the log of"
                f" {folder} has {theirs or 'none'}; declare what is there, or leave the"
                " declaration out"
            )


def _compared(declared: Schema, logged: Schema) -> Iterator[tuple[str, str, str]]:
    """Yield the name, declared value and logged value of each part that must agree."""
    yield "columns", declared.ddl(), logged.ddl()
    yield "partitioned_by", ", ".join(declared.partitioned_by), ", ".join(logged.partitioned_by)
    for key, values in MADE.items():
        ours, theirs = (each.properties.get(key, values.usual) for each in (declared, logged))
        yield key, ours, theirs
