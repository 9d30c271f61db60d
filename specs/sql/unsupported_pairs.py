"""Pairs of features that are modelled separately but not together, and the features of a test.

``features_of`` returns the features of parts of a litmus test that occur in such a pair. The
messages in ``APART`` are those of the readers, and the list in docs/statements.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.litmus import CacheTable, ClientSettings
from isolitmus.model.sql import query as qu
from isolitmus.model.sql import statement as df
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.raw_transaction import Raw

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from typing import NoReturn

    from isolitmus.model.schedule import Step
    from isolitmus.model.sql.data_file import RawFile
    from isolitmus.model.sql.schema import Schema

Feature = str
"""Feature of a statement, a client, a table, a schedule, …, in words."""
OUTSIDE = "is outside the SQL that isolitmus models"
UNMADE = ", but exists = false; omit one of the two"

APART: Mapping[tuple[Feature, Feature], str] = {
    (
        "REPLACE TABLE",
        "a table that is cached",
    ): " replaces a cached table; the cache afterwards is not modelled",
    ("a table that is made or replaced", "DROP or RENAME COLUMN"): (
        " creates or replaces a table while another statement drops or renames columns, which"
        " is not modelled"
    ),
    (
        "CACHE TABLE",
        "a statement that fills no cache anew",
    ): (
        ": '{sql}' together with CACHE TABLE is not modelled, because it does not refresh the cache"
    ),
    (
        "CACHE TABLE",
        "a table that is not there at the start",
    ): ": {table} does not exist at the start, so it cannot be cached",
    ("a Parquet table", "a statement other than CONVERT TO DELTA"): (
        " names {table}, a Parquet table: before its conversion no check of Delta covers"
        " changes of it; only CONVERT TO DELTA is modelled"
    ),
    (
        "columns that a transaction adds or renames",
        "a query, or a table that is made or replaced",
    ): (
        ": a query of columns that a transaction adds or renames is not modelled, nor is a"
        " table created or replaced with them"
    ),
    (
        "app",
        "a statement other than INSERT, DELETE, UPDATE and MERGE",
    ): ".app is supported only for INSERT, DELETE, UPDATE and MERGE",
    ("the conf schema.autoMerge.enabled", "the * of a MERGE"): (
        ": with spark.databricks.delta.schema.autoMerge.enabled the * of a MERGE may add columns to"
        " its table, which is not modelled; name the columns"
    ),
    ("the conf shuffle.partitions above 1", "a statement that shuffles rows"): (
        ": with spark.sql.shuffle.partitions above 1 Spark may write several files for a"
        " partition, which affect conflicts and are not modelled; omit it, or set it to 1"
    ),
    (
        "a dynamic partition overwrite",
        "PARTITION or REPLACE WHERE",
    ): ": a dynamic partition overwrite with PARTITION or REPLACE WHERE is not modelled",
    (
        "mergeSchema",
        "DROP or RENAME COLUMN",
    ): ": mergeSchema together with DROP or RENAME COLUMN is not modelled",
    ("MERGE WITH SCHEMA EVOLUTION", "DROP or RENAME COLUMN"): (
        ": MERGE WITH SCHEMA EVOLUTION may add a column again that another statement drops or"
        " renames, which is not modelled"
    ),
    (
        "mergeSchema",
        "an overwrite, or dataChange = false",
    ): ": mergeSchema is modelled only for appends that change data",
    ("mergeSchema", "let"): ": mergeSchema with a let is not modelled",
    ("a write without mergeSchema", "a statement that alters columns"): (
        " writes while another statement alters columns, which is modelled only with options"
        ' = {{ mergeSchema = "true" }}'
    ),
    ("replaceUsing", "dataChange"): ": replaceUsing with dataChange is not modelled",
    ("replaceUsing", "a query of the table itself"): (
        " reads {table} in a write with replaceUsing, which is not modelled: the order in"
        " which Delta checks its reads is not determined"
    ),
    ("a raw transaction or a micro-batch", "a table that is not there at the start"): (
        " writes {table}, which does not exist at the start; only SQL and a DataFrame write"
        " detect that"
    ),
    (
        "a statement of SQL",
        "a table that a DataFrame write makes",
    ): " names {table}, which a DataFrame write creates; SQL does not know it by that name",
    (
        "a raw transaction, a DataFrame write or a micro-batch",
        "identity columns",
    ): ": {table} has identity columns, which only SQL can write here",
    (
        "large",
        "reads, app or blind",
    ): ".large: commitLarge checks no reads and accepts only files and domains",
    ("a protocol of its own", "more than sql and let"): (
        " has a protocol of its own and '{key}'; a transaction of another writer can have"
        " only 'sql' and 'let'"
    ),
    (
        "a transaction that is not raw",
        "every column of a table in partitioned_by",
    ): " is not a raw transaction, and every column of {table} is a partition column",
    (
        "a table by SQL",
        "the property delta.feature.clustering",
    ): ".properties: delta.feature.clustering is set by clustered_by, not by a property",
    (
        "a statement that reads rows",
        "files",
    ): " reads rows of {table}, whose files are only declared",
    (
        "a file without stats",
        "a deletion vector",
    ): ": '{file}' has a deletion vector, so it needs stats",
    (
        "a file without stats",
        "row tracking",
    ): ": '{file}' needs stats, because its rows may get ids",
    (
        "a deletion vector",
        "a table without deletion vectors",
    ): (
        ".files has a deletion vector, but {table} does not set delta.enableDeletionVectors ="
        " 'true'"
    ),
    ("a backfill", "a table without row tracking"): (
        ".operation is {operation}, but {table} does not set delta.feature.rowTracking;"
        " Delta's check asserts that this does not occur"
    ),
    ("files", "init"): " has both files and init: only declared files, or real ones",
    ("a step park-…", "a query"): ": {name} only reads, so it has no commit to park at",
    ("a step park-init", "a table that is not there at the start"): (
        ": whether {table} exists is decided earlier, when {name} is analysed, which is not"
        " modelled; use {name}.start"
    ),
    (
        "a step park-init",
        "OPTIMIZE",
    ): ": OPTIMIZE already has its snapshot at this step; use {name}.start",
    (
        "a step before or park-…",
        "a format other than Delta's",
    ): " is supported only in format delta",
    (
        "an init statement",
        "VERSION AS OF or another path",
    ): ": init statements read current tables, not older versions or other paths",
    (
        "partitioned_by",
        "clustered_by",
    ): ".clustered_by: {table} has partitions, and Delta allows only one of the two",
    ("exists = false", "init"): f".init is for an existing table{UNMADE}",
    ("exists = false", "files"): f".files is for an existing table{UNMADE}",
    ("exists = false", "properties"): (
        ".properties is for an existing table, but exists = false; use TBLPROPERTIES in the"
        " statement that creates the table"
    ),
    ("exists = false", "clustered_by"): f".clustered_by is for an existing table{UNMADE}",
    ("parquet", "init"): ".init is for a Delta table, but parquet declares a Parquet table",
    ("parquet", "files"): ".files is for a Delta table, but parquet declares a Parquet table",
    ("parquet", "exists"): ".exists is for a Delta table, but parquet declares a Parquet table",
    (
        "parquet",
        "clustered_by",
    ): ".clustered_by is for a Delta table, but parquet declares a Parquet table",
    (
        "parquet",
        "a property that is no switch",
    ): ".properties: {key} is not modelled for a Parquet table",
    (
        "parquet",
        "identity columns",
    ): ".columns has identity columns, which a Parquet table cannot have",
    (
        "a statement that cannot write generated values",
        "identity columns",
    ): f"'{{verb}}' on a table with identity columns {OUTSIDE}",
    ("rows that come in no certain order", "identity columns"): (
        "the identity values of single rows are modelled only for VALUES, a SELECT without"
        " FROM, and aggregates without GROUP BY"
    ),
    (
        "GROUP BY in an INSERT",
        "rows_per_file above 1",
    ): "the assignment of the groups of a GROUP BY to files is not modelled",
    (
        "ORDER BY in an INSERT",
        "rows_per_file above 1",
    ): "the assignment of ordered rows to files is not modelled",
    (
        "ZORDER BY",
        "rows_per_file above 1",
    ): "the assignment of rows to files after ZORDER BY is not modelled",
    (
        "OPTIMIZE",
        "a clustered table",
    ): (
        " is on a table that is clustered at that point; the files that it rewrites are not"
        " modelled"
    ),
    ("REPLACE WHERE", "a list of columns"): f"REPLACE WHERE with a list of columns {OUTSIDE}",
    ("SHALLOW CLONE", "files"): "{table} has only declared files, which cannot be cloned",
    ("a correlated subquery", "an aggregate"): f"an aggregate in a correlated subquery {OUTSIDE}",
    (
        "a lone WHEN MATCHED THEN DELETE",
        "WHEN NOT MATCHED BY SOURCE",
    ): f"a lone WHEN MATCHED THEN DELETE beside WHEN NOT MATCHED BY SOURCE {OUTSIDE}",
    (
        "a scope",
        "a table that is not there at the start",
    ): (" is a table that does not exist at the start, which is supported only in litmus tests"),
    (
        "a scope",
        "VACUUM",
    ): (
        ".statements has '{sql}', which makes two commits; only statements with one commit"
        " are counted"
    ),
    (
        "a scope",
        "VERSION AS OF or another path",
    ): (
        " has '{sql}'; older versions and other paths of a table are supported only in litmus tests"
    ),
    (
        "a scope",
        "identity columns",
    ): " has table {table}; identity columns are supported only in litmus tests",
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
    >>> from isolitmus.model.sql.schema import Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> from isolitmus.model.sql.schema import Column
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
    """Yield the features of a statement."""
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
    """Yield the features of the client settings of a transaction."""
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
    """Yield the features of a table."""
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
    """Yield the features of a step of a schedule."""
    if step.action.startswith("park-"):
        yield "a step park-…"
    if step.action == "park-init":
        yield "a step park-init"
    if step.action == "before" or step.action.startswith("park-"):
        yield "a step before or park-…"


def _of_file(file: RawFile) -> Iterator[Feature]:
    """Yield the features of a declared file."""
    if file.stats is None:
        yield "a file without stats"
    if file.vector is not None:
        yield "a deletion vector"
