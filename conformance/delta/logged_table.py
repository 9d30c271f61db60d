"""Conversion of a real Delta table at a version into a table of the model.

The result has the columns, properties and live files of the table. The layout of rows in files
decides which commits conflict, so the files are those of the log, with the statistics that the log
records. NotModelled is raised, with the reason, for what the model does not support.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from isolitmus.conformance.delta.tables import PROTOCOLS
from isolitmus.model.delta.log import LEVEL_KEY, live_files
from isolitmus.model.display import count_of
from isolitmus.model.sql.data_file import File, Stats, TableRow
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
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.types import Type
    from isolitmus.model.sql.values import Row, Rows, Value
    from isolitmus.specs.files.toml_reader import TomlTable

PLAIN = ("comment", f"{MAPPING}id", f"{MAPPING}physicalName")
"""Metadata keys that a column may have."""
MOST_ROWS = 10_000
"""Maximum number of rows of a table in the model, which processes them one by one."""

A = TypeVar("A")
Shape = tuple["Row", int, int, tuple["Stats | None", ...]]
"""File without its rows.

The entries are the partition, the number of rows written, the number of these marked as deleted,
and the statistics of each column that is not a partition column.
"""


@dataclass(frozen=True, slots=True)
class LoggedTable:
    """Table as the log describes it at a version."""

    name: str
    """Name of the table in statements."""
    declared: TomlTable
    """Content of ``[tables.name]`` in a litmus file for this table."""
    properties: Mapping[str, str]
    """All table properties."""
    protocol: str
    """Protocol for the isolation level of the table."""
    files: tuple[LogFile, ...]
    """Live files."""
    types: Mapping[str, Type]
    """Type of each column, by name."""
    physical: Mapping[str, str]
    """Name of each column in the data files."""

    @property
    def rows(self) -> int:
        """Number of rows written to the live files; raises NotModelled if the log does not say."""
        return sum(_count(file) for file in self.files)

    def schema(self, declared: Schema, rows: Mapping[str, Rows]) -> Schema:
        """Return the declared table with properties and files, given each file's rows by path."""
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
        """Return the log's description of a file."""
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
        """Return a column's logged statistics, without bounds for BOOLEAN, or None."""
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
    """Return the table after these commits, which start with version 0.

    Parameters
    ----------
    commits : sequence of LogCommit
        Commits of the log, from version 0.
    name : str
        Name of the table in the model.
    rows_per_file : int, optional
        Maximum number of rows that the writers put into a file.

    Raises
    ------
    NotModelled
        The model does not support the table.

    Examples
    --------
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
    """Return the shapes of the model's files, in the form of ``LoggedTable.shape``."""

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
    """Return the action that is in force."""
    return [action for action in actions if action is not None][-1]


def _refuse_column(column: Mapping[str, Any]) -> None:
    """Raise NotModelled if a column is NOT NULL or has metadata that is unsupported."""
    name = column["name"]
    if column.get("nullable") is False:
        raise NotModelled(f"column {name} is NOT NULL, which is unsupported")
    for key in column["metadata"]:
        if key not in PLAIN:
            raise NotModelled(f"column {name} has {key}, which is unsupported")


def _count(file: LogFile) -> int:
    """Return the number of rows that a file was written with."""
    count = json.loads(file.stats or "{}").get("numRecords")
    if not isinstance(count, int):
        raise NotModelled(f"the log does not say how many rows {file.path} has")
    return count


def _value(said: Any, type_: Type) -> Value:
    """Return a value of the log: partition values are texts there, statistics are JSON values."""
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
