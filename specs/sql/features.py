"""Which features a part of a litmus test has: of those that are not modelled beside some other one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.client import CacheTable, Client
from isolitmus.model.delta.raw_transaction import Raw
from isolitmus.model.sql import definition as df
from isolitmus.model.sql import query as qu
from isolitmus.model.sql import statement as st

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.model.delta.data_file import RawFile
    from isolitmus.model.schedule import Step
    from isolitmus.model.schema import Schema
    from isolitmus.specs.sql.unsupported_pairs import Feature

__all__ = ["features"]

FRESH = (st.Insert, st.Delete, st.Update, st.Merge, st.Truncate, st.Optimize, st.Read)
"""The statements after which a cached table is its newest version (``model.client.CacheTable``)."""
IDEMPOTENT = (st.Insert, st.Delete, st.Update, st.Merge)
"""The statements that look up whether they have been executed."""
MAKING = (df.Replace, df.Create, df.Clone)
NUMBERED = (
    st.Read, st.Insert, st.Delete, st.Update, st.Truncate, st.Optimize, st.Vacuum, df.Definition,
)  # fmt: skip
"""The statements that may be on a table with identity columns."""
KINDS: Mapping[Feature, tuple[type, ...]] = {
    "OPTIMIZE": (st.Optimize,),
    "REPLACE TABLE": (df.Replace,),
    "SHALLOW CLONE": (df.Clone,),
    "VACUUM": (st.Vacuum,),
    "a query": (st.Read,),
    "a query, or a table that is made or replaced": (st.Read, *MAKING),
    "a table that is made or replaced": MAKING,
}
"""What a statement has for what it is."""
OTHERS: Mapping[Feature, tuple[type, ...]] = {
    "a statement other than CONVERT TO DELTA": (df.Convert,),
    "a statement other than INSERT, DELETE, UPDATE and MERGE": IDEMPOTENT,
    "a statement that cannot write generated values": NUMBERED,
    "a statement that fills no cache anew": FRESH,
    "a transaction that is not raw": (Raw,),
}
"""What it has for what it is not."""
CLUSTERS = "delta.feature.clustering"
TRACKED = "delta.feature.rowTracking"
"""The property of a table on which rows may be tracked."""


def features(
    statement: st.Statement | None = None,
    client: Client | None = None,
    schema: Schema | None = None,
    step: Step | None = None,
    file: RawFile | None = None,
) -> frozenset[Feature]:
    """What a statement, its client, a table, a step of the schedule and a file have, all together.

    >>> from isolitmus.model.schema import Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> from isolitmus.model.schema import Column
    >>> t = Schema("t", (Column("id", "INT"),), rows_per_file=2)
    >>> sorted(features(read_statement("VACUUM t", {"t": t}), schema=t))[:2]
    ['VACUUM', 'a statement other than CONVERT TO DELTA']
    """
    found: set[Feature] = set()
    if statement is not None:
        found.update(_of_statement(statement))
    if client is not None:
        found.update(_of_client(client))
    if schema is not None:
        found.update(_of_table(schema))
    if step is not None:
        found.update(_of_step(step))
    if file is not None:
        found.update(_of_file(file))
    return frozenset(found)


def _of_statement(statement: st.Statement) -> Iterator[Feature]:
    yield from (name for name, kinds in KINDS.items() if isinstance(statement, kinds))
    yield from (name for name, kinds in OTHERS.items() if not isinstance(statement, kinds))
    if isinstance(statement, st.Insert):
        options = statement.options
        if options.stream:
            yield "a statement that fills no cache anew"
        if statement.where is not None or options.using:
            yield "PARTITION or REPLACE WHERE"
        if options.using:
            yield "replaceUsing"
        if statement.target in qu.sources(statement.query):
            yield "a query of the table itself"
    if isinstance(statement, Raw) and statement.large:
        yield "large"
    if isinstance(statement, Raw) and (
        statement.reads or statement.app or statement.blind is not None
    ):
        yield "reads, app or blind"
    if st.untracked_queries(statement):
        yield "VERSION AS OF or another path"


def _of_client(client: Client) -> Iterator[Feature]:
    if any(isinstance(aside, CacheTable) for aside in client.before):
        yield "CACHE TABLE"
    if client.let:
        yield "let"
    if client.app is not None:
        yield "app"
    write = client.write
    if write is None:
        return
    yield "mergeSchema" if write.merges else "a write without mergeSchema"
    if write.mode != "append" or not write.data_change:
        yield "an overwrite, or dataChange = false"
    if "replaceUsing" in write.options:
        yield "replaceUsing"
    if "dataChange" in write.options:
        yield "dataChange"


def _of_table(schema: Schema) -> Iterator[Feature]:
    if not schema.exists:
        yield "a table that is not there at the start"
    if schema.parquet:
        yield "a Parquet table"
    if schema.generates:
        yield "identity columns"
    if schema.files:
        yield "files"
    if schema.rows_per_file not in (None, 1):
        yield "rows_per_file above 1"
    if len(schema.partitioned_by) == len(schema.columns):
        yield "every column of a table in partitioned_by"
    if CLUSTERS in schema.properties:
        yield "the property delta.feature.clustering"
    yield "row tracking" if TRACKED in schema.properties else "a table without row tracking"


def _of_step(step: Step) -> Iterator[Feature]:
    if step.action.startswith("park-"):
        yield "a step park-…"
    if step.action == "park-init":
        yield "a step park-init"
    if step.action == "before" or step.action.startswith("park-"):
        yield "a step before or park-…"


def _of_file(file: RawFile) -> Iterator[Feature]:
    if file.stats is None:
        yield "a file without stats"
    if file.vector is not None:
        yield "a deletion vector"
