"""A real table at a version as the model has tables: its columns, its properties, the files that
are live.

What the model does not have is refused with the reason. Which rows share a file decides which
commits conflict, so the files are those of the log, with the statistics that the log has of them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from isolitmus.conformance.delta.tables import PROTOCOLS
from isolitmus.model.delta.data_file import File, Stats, TableRow
from isolitmus.model.delta.log import LEVEL_KEY, live_files
from isolitmus.model.display import count_of
from isolitmus.model.sql.values import rescale
from isolitmus.specs.files.logged_tables import (
    MAPPING,
    NotModelled,
    declared_properties,
    logged_type,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from isolitmus.model.delta.log import LogCommit, LogFile
    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.types import Type
    from isolitmus.model.sql.values import Row, Rows, Value
    from isolitmus.specs.files.toml_reader import TomlTable

__all__ = ["MOST_ROWS", "LoggedTable", "Shape", "file_shapes", "read_logged_table"]

PLAIN = ("comment", f"{MAPPING}id", f"{MAPPING}physicalName")
"""What a column may have besides its type."""
MOST_ROWS = 10_000
"""So many rows the model is asked about: it goes through them one by one."""

A = TypeVar("A")
Shape = tuple["Row", int, int, tuple["Stats | None", ...]]
"""A file without its rows: partition, how many rows it was written with, how many of them are
marked as deleted, statistics of the columns that are no partition's."""


@dataclass(frozen=True, slots=True)
class LoggedTable:
    """A table as the log has it at a version."""

    name: str
    """What statements call it."""
    declared: TomlTable
    """What a litmus file would say in ``[tables.name]``."""
    properties: Mapping[str, str]
    """All that it has."""
    protocol: str
    """The one that its isolation level asks for."""
    files: tuple[LogFile, ...]
    """Those that are in force."""
    types: Mapping[str, Type]
    """Of its columns, by name."""
    physical: Mapping[str, str]
    """The names of its columns in the files."""

    @property
    def rows(self) -> int:
        """How many rows its files were written with; NotModelled if the log does not say."""
        return sum(_count(file) for file in self.files)

    def schema(self, declared: Schema, rows: Mapping[str, Rows]) -> Schema:
        """The table as declared with its properties and files, given the rows of each file by
        path.
        """
        held = []
        for number, file in enumerate(self.files):
            partition, written, dead, stats = self.shape(file)
            folder = f"{declared.folder(partition)}/" if partition else ""
            path = f"{folder}+-{number}"
            there = rows.get(file.path, ())
            if len(there) != written - dead:
                raise NotModelled(
                    f"{file.path} has {count_of(len(there), 'row')}, but {written - dead}"
                    " according to the log"
                )
            kept = (TableRow(f"{path}.{k}", "", row) for k, row in enumerate(there))
            held.append(File(path, partition, tuple(kept), stats, dead))
        return replace(declared, properties=self.properties, held=tuple(held))

    def shape(self, file: LogFile) -> Shape:
        """What the log says of a file."""
        said = json.loads(file.stats or "{}")
        values = file.partition or {}
        partitions = self.declared["partitioned_by"]
        partition = tuple(
            _value(values.get(self.physical[name]), self.types[name]) for name in partitions
        )
        stats = tuple(
            None if name in partitions else self._stats(name, said, file.path)
            for name in self.types
        )
        return partition, _count(file), file.marked, stats

    def _stats(self, name: str, said: Mapping[str, Any], path: str) -> Stats | None:
        least, greatest, nulls = (
            said.get(key, {}).get(self.physical[name])
            for key in ("minValues", "maxValues", "nullCount")
        )
        if nulls is None:
            return None
        if self.types[name] == "BOOLEAN":
            return Stats(None, None, nulls)
        if (least is None or greatest is None) and nulls < said["numRecords"]:
            raise NotModelled(f"the log has no minimum or maximum of column {name} in {path}")
        return Stats(_value(least, self.types[name]), _value(greatest, self.types[name]), nulls)


def read_logged_table(
    commits: Sequence[LogCommit], name: str, rows_per_file: int | None = None
) -> LoggedTable:
    """The table after these commits, which begin with version 0, under a name of the model's.

    ``rows_per_file`` is the most that whoever writes it puts into a file. NotModelled for what the
    model does not have.

    >>> from isolitmus.model.delta.log import LogCommit, LogMetadata, LogProtocol
    >>> field = {"name": "id", "type": "integer", "nullable": True, "metadata": {}}
    >>> metadata = LogMetadata(schema=json.dumps({"fields": [field]}))
    >>> made = LogCommit(0, metadata=metadata, protocol=LogProtocol(1, 2))
    >>> found = read_logged_table([made], "t")
    >>> found.declared["columns"], found.protocol
    ('id INT', 'delta-serializable')
    """
    if not commits or commits[0].version != 0:
        raise NotModelled("the log of the table no longer starts with version 0")
    metadata = _newest(commit.metadata for commit in commits)
    fields = json.loads(metadata.schema)["fields"]
    for column in fields:
        _refuse_column(column)
    protocol = next((p for p, known in PROTOCOLS.items() if known == metadata.level), None)
    if protocol is None:
        raise NotModelled(f"{LEVEL_KEY} is '{metadata.level}', which is unsupported")
    properties = declared_properties(metadata.plain, _newest(commit.protocol for commit in commits))
    document: TomlTable = {
        "columns": ", ".join(f"{c['name']} {logged_type(c)}" for c in fields),
        "partitioned_by": list(metadata.partitioned_by),
        "properties": properties,
    }
    if rows_per_file is not None:
        document["rows_per_file"] = rows_per_file
    return LoggedTable(
        name,
        document,
        {**metadata.plain, **properties},
        protocol,
        live_files(commits),
        {c["name"]: logged_type(c) for c in fields},
        {c["name"]: c["metadata"].get(PLAIN[2], c["name"]) for c in fields},
    )


def file_shapes(schema: Schema, files: Iterable[File]) -> list[Shape]:
    """The files of the model, as ``LoggedTable.shape`` has those of a log."""

    def said(index: int, stats: Stats | None) -> Stats | None:
        if index in schema.partition_indexes or stats is None:
            return None
        boolean = schema.columns[index].type == "BOOLEAN"
        return Stats(None, None, stats.nulls) if boolean else stats

    return [
        (
            file.partition,
            len(file.rows) + file.dead,
            file.dead,
            tuple(said(index, stats) for index, stats in enumerate(file.stats)),
        )
        for file in files
    ]


def _newest(actions: Iterable[A | None]) -> A:
    """The one that is in force."""
    return [action for action in actions if action is not None][-1]


def _refuse_column(column: Mapping[str, Any]) -> None:
    name = column["name"]
    if column.get("nullable") is False:
        raise NotModelled(f"column {name} is NOT NULL, which is unsupported")
    for key in column["metadata"]:
        if key not in PLAIN:
            raise NotModelled(f"column {name} has {key}, which is unsupported")


def _count(file: LogFile) -> int:
    """With how many rows a file was written."""
    count = json.loads(file.stats or "{}").get("numRecords")
    if not isinstance(count, int):
        raise NotModelled(f"the log does not say how many rows {file.path} has")
    return count


def _value(said: Any, type_: Type) -> Value:
    """A value as the log has it: of a partition a text, of statistics what JSON has."""
    if said is None:
        return None
    match type_:
        case "INT" | "BIGINT":
            return int(said)
        case "DATE":
            return date.fromisoformat(said)
        case "BOOLEAN":
            return bool(said == "true")
        case "DOUBLE":
            return float(said)
        case "TIMESTAMP":
            return datetime.fromisoformat(str(said)).replace(tzinfo=None)
        case "STRING":
            return str(said)
    return rescale(Decimal(str(said)), type_)
