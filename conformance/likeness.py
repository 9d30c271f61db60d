"""A real table at a version as the model has tables: its columns, its properties, the files that are live.

What the model does not have is refused with the reason. Which rows share a file decides which commits
conflict, so the files are those of the log, with the statistics that the log has of them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from isolitmus.conformance.log import live_files
from isolitmus.conformance.raw import TYPES as NAMES
from isolitmus.conformance.tables import PROTOCOLS
from isolitmus.model.delta_log import DEFAULT_LEVEL, LEVEL_KEY
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.header import LEGACY, MAPPING_MODE, NUMBERED, SUPPORTED
from isolitmus.model.table import File, Stats, TableRow
from isolitmus.specs.table_file import SWITCHES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from isolitmus.conformance.log import Action, Commit
    from isolitmus.model.schema import Schema, Type
    from isolitmus.model.values import Row, Rows, Value
    from isolitmus.specs.toml_file import Table

__all__ = ["MOST_ROWS", "Likeness", "Shape", "Unlike", "likeness", "shapes"]

TYPES: Mapping[str, Type] = {name: type_ for type_, name in NAMES.items()}
"""The model's types by Spark's names."""
MAPPING = "delta.columnMapping."
PLAIN = ("comment", f"{MAPPING}id", f"{MAPPING}physicalName")
"""What a column may have besides its type."""
HARMLESS = (
    f"{MAPPING}maxColumnId",
    "delta.checkpointInterval",
    "delta.enableExpiredLogCleanup",
    "delta.logRetentionDuration",
)
"""Delta's own properties that no conflict depends on, but where a commit changes them."""
NUMBERS = 7
"""From this version of writers on a protocol lists its features."""
MOST_ROWS = 10_000
"""So many rows the model is asked about: it goes through them one by one."""

Shape = tuple["Row", int, int, tuple["Stats | None", ...]]
"""A file without its rows: partition, how many rows it was written with, how many of them are marked as
deleted, statistics of the columns that are no partition's."""


class Unlike(IsolitmusError):
    """A table that the model cannot have: what it has that is not modelled."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """A table as the log has it at a version.

    ``declared`` is what a litmus file would say in ``[tables.name]``, ``properties`` are all that it has,
    ``protocol`` is the one that its level asks for, ``files`` the ``add`` actions that are in force and
    ``physical`` the names of its columns in them.
    """

    name: str
    declared: Table
    properties: Mapping[str, str]
    protocol: str
    files: tuple[Action, ...]
    types: Mapping[str, Type]
    physical: Mapping[str, str]

    @property
    def rows(self) -> int:
        """How many rows its files were written with; Unlike if the log does not say."""
        return sum(_count(file) for file in self.files)

    def schema(self, declared: Schema, rows: Mapping[str, Rows]) -> Schema:
        """The table as declared with its properties and files, given the rows of each file by path."""
        held = []
        for number, action in enumerate(self.files):
            partition, written, dead, stats = self.shape(action)
            folder = f"{declared.folder(partition)}/" if partition else ""
            path = f"{folder}+-{number}"
            there = rows.get(action["path"], ())
            if len(there) != written - dead:
                raise Unlike(
                    f"{action['path']} has {len(there)} rows, and {written - dead} by the log"
                )
            kept = (TableRow(f"{path}.{k}", "", row) for k, row in enumerate(there))
            held.append(File(path, partition, tuple(kept), stats, dead))
        return replace(declared, properties=self.properties, held=tuple(held))

    def shape(self, action: Action) -> Shape:
        """What an ``add`` says of its file."""
        said = json.loads(action.get("stats") or "{}")
        values = action["partitionValues"]
        partitions = self.declared["partitioned_by"]
        partition = tuple(
            _value(values.get(self.physical[name]), self.types[name]) for name in partitions
        )
        dead = (action.get("deletionVector") or {}).get("cardinality", 0)
        stats = tuple(
            None if name in partitions else self._stats(name, said, action["path"])
            for name in self.types
        )
        return partition, _count(action), dead, stats

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
            raise Unlike(f"the log has no least or greatest value of column {name} in {path}")
        return Stats(_value(least, self.types[name]), _value(greatest, self.types[name]), nulls)


def likeness(commits: Sequence[Commit], name: str, rows_per_file: int | None = None) -> Likeness:
    """The table after these commits, which begin with version 0, under a name of the model's.

    ``rows_per_file`` is the most that whoever writes it puts into a file. Unlike for what the model does
    not have.

    >>> from isolitmus.conformance.log import Commit
    >>> field = {"name": "id", "type": "integer", "nullable": True, "metadata": {}}
    >>> metadata = {
    ...     "schemaString": json.dumps({"fields": [field]}), "partitionColumns": [], "configuration": {}
    ... }
    >>> made = Commit(0, metadata=metadata, protocol={"minReaderVersion": 1, "minWriterVersion": 2})
    >>> found = likeness([made], "t")
    >>> found.declared["columns"], found.protocol
    ('id INT', 'delta-serializable')
    """
    if not commits or commits[0].version != 0:
        raise Unlike("its log does not begin with version 0 any more")
    metadata = _newest(commit.metadata for commit in commits)
    fields = json.loads(metadata["schemaString"])["fields"]
    for column in fields:
        _refuse_column(column)
    configuration: Mapping[str, str] = metadata.get("configuration") or {}
    level = configuration.get(LEVEL_KEY, DEFAULT_LEVEL)
    protocol = next((p for p, known in PROTOCOLS.items() if known == level), None)
    if protocol is None:
        raise Unlike(f"its {LEVEL_KEY} is '{level}'")
    plain = {key: value for key, value in configuration.items() if key != LEVEL_KEY}
    declared = {key: value for key, value in plain.items() if _modelled(key)}
    supported = {
        f"{SUPPORTED}{feature}": "supported"
        for feature in _features(_newest(commit.protocol for commit in commits))
    }
    document: Table = {
        "columns": ", ".join(f"{c['name']} {TYPES[c['type']]}" for c in fields),
        "partitioned_by": list(metadata["partitionColumns"]),
        "properties": {**declared, **supported},
    }
    if rows_per_file is not None:
        document["rows_per_file"] = rows_per_file
    return Likeness(
        name,
        document,
        {**plain, **supported},
        protocol,
        live_files(commits),
        {c["name"]: TYPES[c["type"]] for c in fields},
        {c["name"]: c["metadata"].get(PLAIN[2], c["name"]) for c in fields},
    )


def shapes(schema: Schema, files: Iterable[File]) -> list[Shape]:
    """The files of the model, as ``Likeness.shape`` has those of a log."""

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


def _newest(actions: Iterable[Action | None]) -> Action:
    """The one that is in force."""
    return [action for action in actions if action is not None][-1]


def _refuse_column(column: Mapping[str, Any]) -> None:
    name, kind = column["name"], column["type"]
    if not isinstance(kind, str) or kind not in TYPES:
        what = kind["type"] if isinstance(kind, dict) else kind
        raise Unlike(f"its column {name} is of type {what}; the model has {', '.join(TYPES)}")
    if column.get("nullable") is False:
        raise Unlike(f"its column {name} is NOT NULL, which is not modelled")
    for key in column["metadata"]:
        if key not in PLAIN:
            raise Unlike(f"its column {name} has {key}, which is not modelled here")


def _modelled(key: str) -> bool:
    """Whether the model knows a property of a table by what it does; Unlike if it is Delta's and unknown."""
    if key.lower() in SWITCHES or key == MAPPING_MODE:
        return True
    if key.startswith("delta.") and key not in HARMLESS:
        raise Unlike(f"its property {key} is not modelled")
    return False


def _features(protocol: Action) -> list[str]:
    """The features of a protocol besides those that every table has."""
    writer = protocol["minWriterVersion"]
    if writer >= NUMBERS:
        listed = (protocol.get(f"{who}Features") or () for who in ("reader", "writer"))
        features = {feature for several in listed for feature in several}
    else:
        said = (LEGACY, *NUMBERED)[: max(writer - 1, 0)]
        features = {feature for several in said for feature in several}
    for feature in LEGACY:
        if feature not in features:
            raise Unlike(f"its protocol has not the feature {feature}")
    if "clustering" in features:
        raise Unlike("it is clustered, and how its files are clustered is not modelled")
    return sorted(features.difference(LEGACY))


def _count(action: Action) -> int:
    """With how many rows a file was written."""
    count = json.loads(action.get("stats") or "{}").get("numRecords")
    if not isinstance(count, int):
        raise Unlike(f"the log does not say how many rows {action['path']} has")
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
        case "STRING":
            return str(said)
