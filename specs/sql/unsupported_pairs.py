"""Pairs of features that are modelled separately but not together, and the features of a test.

``features_of`` returns the features of parts of a litmus test that occur in such a pair. The
messages in ``APART`` are those of the readers, and the list in docs/statements.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.delta.raw_transaction import Raw
from isolitmus.model.litmus import CacheTable, ClientSettings
from isolitmus.model.sql import query as qu
from isolitmus.model.sql import statement as df
from isolitmus.model.sql import statement as st

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from typing import NoReturn

    from isolitmus.model.delta.data_file import RawFile
    from isolitmus.model.schedule import Step
    from isolitmus.model.schema import Schema

__all__ = ["APART", "Feature", "features_of", "refuse_together"]

Feature = str
"""Feature of a statement, a client, a table, a schedule, …, in words."""
OUTSIDE = "is outside the SQL that isolitmus models"
UNMADE = ", and exists = false; leave one of the two out"

APART: Mapping[tuple[Feature, Feature], str] = {
    (
        "REPLACE TABLE",
        "a table that is cached",
    ): " replaces a table that is cached: what becomes of the cache is not modelled",
    ("a table that is made or replaced", "DROP or RENAME COLUMN"): (
        " makes or replaces a table beside a statement that drops or renames columns, which is not"
        " modelled"
    ),
    (
        "CACHE TABLE",
        "a statement that fills no cache anew",
    ): ": '{sql}' beside CACHE TABLE, which it does not fill anew, is not modelled",
    (
        "CACHE TABLE",
        "a table that is not there at the start",
    ): ": {table} is not there at the start, and so not cached",
    ("a Parquet table", "a statement other than CONVERT TO DELTA"): (
        " names {table}, a Parquet table: until it is converted no check of Delta's sees what is"
        " done to it; only CONVERT TO DELTA is modelled"
    ),
    (
        "columns that a transaction adds or renames",
        "a query, or a table that is made or replaced",
    ): (
        ": a query of columns that a transaction adds or renames is not modelled,"
        " nor is a table made or replaced with them"
    ),
    (
        "app",
        "a statement other than INSERT, DELETE, UPDATE and MERGE",
    ): ".app is for INSERT, DELETE, UPDATE and MERGE only",
    ("the conf schema.autoMerge.enabled", "the * of a MERGE"): (
        ": with spark.databricks.delta.schema.autoMerge.enabled the * of a MERGE may add columns to"
        " its table, which is not modelled; name the columns"
    ),
    ("the conf shuffle.partitions above 1", "a statement that shuffles rows"): (
        ": with spark.sql.shuffle.partitions above 1 Spark may write several files for a partition,"
        " which decide conflicts and are not modelled; leave it out, or say 1"
    ),
    (
        "a dynamic partition overwrite",
        "PARTITION or REPLACE WHERE",
    ): ": a dynamic partition overwrite that names what it replaces is not modelled",
    (
        "mergeSchema",
        "DROP or RENAME COLUMN",
    ): ": mergeSchema beside DROP or RENAME COLUMN is not modelled",
    (
        "mergeSchema",
        "an overwrite, or dataChange = false",
    ): ": mergeSchema is modelled for appends that change data",
    ("mergeSchema", "let"): ": mergeSchema with a let is not modelled",
    ("a write without mergeSchema", "a statement that alters columns"): (
        " writes beside a statement that alters columns, which is modelled for"
        ' options = {{ mergeSchema = "true" }} only'
    ),
    ("replaceUsing", "dataChange"): ": replaceUsing with dataChange is not modelled",
    ("replaceUsing", "a query of the table itself"): (
        " reads {table}, which with replaceUsing is not modelled: in which"
        " order Delta asks what was read is not determined"
    ),
    ("a raw transaction or a micro-batch", "a table that is not there at the start"): (
        " writes {table}, which is not there at the start; only SQL and a DataFrame write find"
        " that out"
    ),
    (
        "a statement of SQL",
        "a table that a DataFrame write makes",
    ): " names {table}, which a DataFrame write makes: SQL does not know it by that name",
    (
        "a raw transaction, a DataFrame write or a micro-batch",
        "identity columns",
    ): ": {table} has identity columns, which only SQL writes here",
    (
        "large",
        "reads, app or blind",
    ): ".large: commitLarge checks no reads and takes files and domains only",
    ("a protocol of its own", "more than sql and let"): (
        " has a protocol of its own and '{key}'; a transaction of another writer is its 'sql', and"
        " a 'let'"
    ),
    (
        "a transaction that is not raw",
        "every column of a table in partitioned_by",
    ): " is not a raw one, and in {table} every column is one of partitions",
    (
        "a table by SQL",
        "the property delta.feature.clustering",
    ): ".properties: delta.feature.clustering comes by clustered_by, not by a property",
    (
        "a statement that reads rows",
        "files",
    ): " reads rows of {table}, of which files are only said to be there",
    (
        "a file without stats",
        "a deletion vector",
    ): ": '{file}' has a deletion vector, and needs stats",
    ("a file without stats", "row tracking"): ": '{file}' needs stats, for there rows may get ids",
    (
        "a deletion vector",
        "a table without deletion vectors",
    ): ".files has a deletion vector, and {table} has not delta.enableDeletionVectors = 'true'",
    ("a backfill", "a table without row tracking"): (
        ".operation is {operation}, and {table} has not delta.feature.rowTracking: of such a table"
        " Delta's check asserts that nobody does that"
    ),
    ("files", "init"): " has files and init: files that are only said to be there, or real ones",
    ("a step park-…", "a query"): ": {name} only reads, and so has no commit to park at",
    ("a step park-init", "a table that is not there at the start"): (
        ": whether {table} is there is settled before, when"
        " {name} is analysed, which is not modelled; use {name}.start"
    ),
    (
        "a step park-init",
        "OPTIMIZE",
    ): ": OPTIMIZE has its snapshot when it comes there; use {name}.start",
    ("a step before or park-…", "a format other than Delta's"): " is one of format delta only",
    (
        "an init statement",
        "VERSION AS OF or another path",
    ): ": init statements read what there is, no version",
    (
        "partitioned_by",
        "clustered_by",
    ): ".clustered_by: {table} has partitions, and Delta allows only one of both",
    ("exists = false", "init"): f".init is of a table that is there{UNMADE}",
    ("exists = false", "files"): f".files is of a table that is there{UNMADE}",
    ("exists = false", "properties"): (
        ".properties is of a table that is there, and exists = false; the statement that makes the"
        " table says TBLPROPERTIES"
    ),
    ("exists = false", "clustered_by"): f".clustered_by is of a table that is there{UNMADE}",
    ("parquet", "init"): ".init is of a Delta table, and parquet tells of another one",
    ("parquet", "files"): ".files is of a Delta table, and parquet tells of another one",
    ("parquet", "exists"): ".exists is of a Delta table, and parquet tells of another one",
    (
        "parquet",
        "clustered_by",
    ): ".clustered_by is of a Delta table, and parquet tells of another one",
    (
        "parquet",
        "a property that is no switch",
    ): ".properties: {key} is not modelled for a Parquet table",
    ("parquet", "identity columns"): ".columns has identity columns, which a Parquet table has not",
    (
        "a statement that cannot write generated values",
        "identity columns",
    ): f"'{{verb}}' on a table with identity columns {OUTSIDE}",
    ("rows that come in no certain order", "identity columns"): (
        "which row gets which value of an identity column is modelled for VALUES, a SELECT"
        " without FROM, and aggregates without GROUP BY"
    ),
    (
        "GROUP BY in an INSERT",
        "rows_per_file above 1",
    ): "which groups of a GROUP BY share a file is not modelled",
    (
        "ZORDER BY",
        "rows_per_file above 1",
    ): "which rows share a file after ZORDER BY is not modelled",
    (
        "OPTIMIZE",
        "a clustered table",
    ): " is on a table that is clustered by then: which files it rewrites is not modelled",
    ("REPLACE WHERE", "a list of columns"): f"REPLACE WHERE with a list of columns {OUTSIDE}",
    ("SHALLOW CLONE", "files"): "{table} has files that are only said to be there: no clone",
    ("a correlated subquery", "an aggregate"): f"an aggregate in a correlated subquery {OUTSIDE}",
    (
        "a lone WHEN MATCHED THEN DELETE",
        "WHEN NOT MATCHED BY SOURCE",
    ): f"a lone WHEN MATCHED THEN DELETE beside WHEN NOT MATCHED BY SOURCE {OUTSIDE}",
    (
        "a scope",
        "a table that is not there at the start",
    ): " is a table that is not there, which is for litmus tests",
    (
        "a scope",
        "VACUUM",
    ): ".statements holds '{sql}', which is two commits; those that are one are counted",
    (
        "a scope",
        "VERSION AS OF or another path",
    ): " holds '{sql}'; a table's older versions and other paths are for litmus tests",
    (
        "a scope",
        "identity columns",
    ): " has table {table}, and identity columns are for litmus tests",
}
"""Message after the place, for each pair; its words in braces are filled in by the caller."""


def refuse_together(
    found: Collection[Feature], refuse: Callable[[str], NoReturn], at: str = "", **words: object
) -> None:
    """Refuse a combination of two features that is not modelled, at a place such as
    ``transactions.a``.

    Examples
    --------
    >>> def refuse(problem):
    ...     raise SystemExit(problem)
    >>> refuse_together({"OPTIMIZE", "identity columns"}, refuse)
    >>> refuse_together({"mergeSchema", "let"}, refuse, "transactions.a")
    Traceback (most recent call last):
    SystemExit: transactions.a: mergeSchema with a let is not modelled
    """
    for pair, why in APART.items():
        if set(pair) <= set(found):
            refuse(f"{at}{why.format_map(words)}")


FRESH = (st.Insert, st.Delete, st.Update, st.Merge, st.Truncate, st.Optimize, st.Read)
"""Statements after which a cached table is its newest version (``model.litmus.CacheTable``)."""
IDEMPOTENT = (st.Insert, st.Delete, st.Update, st.Merge)
"""Statements that check whether they have been executed before."""
MAKING = (df.Replace, df.Create, df.Clone)
NUMBERED = (
    st.Read, st.Insert, st.Delete, st.Update, st.Truncate, st.Optimize, st.Vacuum, df.Definition,
)  # fmt: skip
"""Statements that are supported on tables with identity columns."""
KINDS: Mapping[Feature, tuple[type, ...]] = {
    "OPTIMIZE": (st.Optimize,),
    "REPLACE TABLE": (df.Replace,),
    "SHALLOW CLONE": (df.Clone,),
    "VACUUM": (st.Vacuum,),
    "a query": (st.Read,),
    "a query, or a table that is made or replaced": (st.Read, *MAKING),
    "a table that is made or replaced": MAKING,
}
"""Features of a statement by its class."""
OTHERS: Mapping[Feature, tuple[type, ...]] = {
    "a statement other than CONVERT TO DELTA": (df.Convert,),
    "a statement other than INSERT, DELETE, UPDATE and MERGE": IDEMPOTENT,
    "a statement that cannot write generated values": NUMBERED,
    "a statement that fills no cache anew": FRESH,
    "a transaction that is not raw": (Raw,),
}
"""Features of statements of any other class."""
CLUSTERS = "delta.feature.clustering"
TRACKED = "delta.feature.rowTracking"
"""Property of a table that supports row tracking."""


def features_of(
    statement: st.Statement | None = None,
    client: ClientSettings | None = None,
    schema: Schema | None = None,
    step: Step | None = None,
    file: RawFile | None = None,
) -> frozenset[Feature]:
    """Return the features of a statement, its client, a table, a step and a file, taken together.

    Examples
    --------
    >>> from isolitmus.model.schema import Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> from isolitmus.model.schema import Column
    >>> t = Schema("t", (Column("id", "INT"),), rows_per_file=2)
    >>> sorted(features_of(read_statement("VACUUM t", {"t": t}), schema=t))[:2]
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
        if statement.target in qu.source_tables(statement.query):
            yield "a query of the table itself"
    if isinstance(statement, Raw) and statement.large:
        yield "large"
    if isinstance(statement, Raw) and (
        statement.reads or statement.app or statement.blind is not None
    ):
        yield "reads, app or blind"
    if st.untracked_queries(statement):
        yield "VERSION AS OF or another path"


def _of_client(client: ClientSettings) -> Iterator[Feature]:
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
