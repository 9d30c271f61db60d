"""What a table is declared to be: typed columns, partitioning, properties, how its files are cut."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.raw import RawFile
    from isolitmus.model.values import Row, Value

__all__ = ["TYPES", "Column", "Schema", "Type"]

Type = Literal["INT", "BIGINT", "STRING", "DATE", "BOOLEAN"]
TYPES: tuple[Type, ...] = get_args(Type)


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name and type; every column takes NULL. One that was dropped keeps its place in the
    rows, without a name.
    """

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Schema:
    """One table of a litmus test.

    ``rows_per_file`` None is the default layout: one file per partition, statement and UNION ALL
    branch. File layout is semantics: which rows share a file decides which commits conflict.
    ``clustered_by`` is the clustering that it is made with: it moves no row, but in OPTIMIZE.
    ``files`` are those that it is said to have, for raw transactions: nobody can read its rows.
    ``partition_indexes`` are the positions of the partition columns.
    """

    name: str
    columns: tuple[Column, ...]
    partitioned_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    rows_per_file: int | None = None
    files: tuple[RawFile, ...] = ()
    clustered_by: tuple[str, ...] = ()
    partition_indexes: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        partitions = [self.index(name) for name in self.partitioned_by]
        object.__setattr__(self, "partition_indexes", tuple(i for i in partitions if i is not None))

    def index(self, column: str) -> int | None:
        """The position of a column by name (SQL ignores case), or None."""
        folded = column.lower()
        return next((i for i, c in enumerate(self.columns) if c.name.lower() == folded), None)

    @property
    def shown(self) -> tuple[int, ...]:
        """The positions of the columns that are there: those with a name."""
        return tuple(i for i, column in enumerate(self.columns) if column.name)

    @property
    def vectors(self) -> bool:
        """Whether DELETE, UPDATE and MERGE mark rows in deletion vectors."""
        key = "delta.enabledeletionvectors"
        return any(k.lower() == key and v == "true" for k, v in self.properties.items())

    def partition_of(self, row: Row) -> Row:
        """The values of the partition columns of a row."""
        return tuple(row[i] for i in self.partition_indexes)

    def folder(self, partition: Row) -> str:
        """What Delta calls the folder of a partition, but for its escapes: ``part=0/day=NULL``."""
        values = ["NULL" if value is None else value for value in partition]
        pairs = zip(self.partitioned_by, values, strict=True)
        return "/".join(f"{name}={value}" for name, value in pairs)

    def spread(self, partition: Row) -> Row:
        """A row of which only the partition columns are known; NULL elsewhere."""
        row: list[Value] = [None] * len(self.columns)
        for index, value in zip(self.partition_indexes, partition, strict=True):
            row[index] = value
        return tuple(row)

    def ddl(self) -> str:
        """The column list as SQL declares it."""
        return ", ".join(f"{c.name} {c.type}" for c in self.columns)
