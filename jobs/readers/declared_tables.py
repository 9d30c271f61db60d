"""Declarations of existing tables, read from their logs, and comparison with given declarations.

Columns, partitions, properties and isolation level are those of the newest version. Parts that no
commit check uses (comments, NOT NULL, defaults) are ignored, as in DDL. Features that the model
does not support are refused with the reason.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.model.delta.log import LEVEL_KEY, LogMetadata, LogProtocol
from isolitmus.model.errors import LitmusError
from isolitmus.model.sql.schema import Column, Identity
from isolitmus.specs.disk.input_files import is_there, read_json, real_path
from isolitmus.specs.files.logged_tables import (
    LENGTH,
    MAPPING,
    NotModelled,
    declared_properties,
    logged_type,
)
from isolitmus.specs.files.table_ddl import TableDeclaration
from isolitmus.specs.files.toml_reader import NAME
from isolitmus.specs.logs.delta_log import open_log
from isolitmus.specs.sql.configuration import LAYOUT, LEVELS, MADE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.model.sql.schema import Schema
    from isolitmus.specs.files.toml_reader import TomlTable

GENERATED = "delta.identity."
COMPUTED = "delta.generationExpression"
PASSED_OVER = (
    "comment", LENGTH, "CURRENT_DEFAULT", "EXISTS_DEFAULT", MAPPING, GENERATED, COMPUTED,
)  # fmt: skip
"""Prefixes of the keys that a column may have in addition to its type."""
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
