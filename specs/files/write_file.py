"""Read what writes without a statement: a DataFrame write, and a micro-batch of a streaming query."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.model.client import Client, DataFrameWrite
from isolitmus.model.errors import near
from isolitmus.model.number import many
from isolitmus.model.schema import Column
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.expression import Const
from isolitmus.model.sql.query import items_of
from isolitmus.specs.files.client_file import CLIENT, read_client
from isolitmus.specs.files.raw_file import read_target
from isolitmus.specs.files.toml_reader import NAME, shown
from isolitmus.specs.files.transaction_sql import read_sql
from isolitmus.specs.sql.features import features
from isolitmus.specs.sql.statements import resolve
from isolitmus.specs.sql.syntax import Syntax
from isolitmus.specs.sql.unsupported_pairs import refuse_together
from isolitmus.specs.sql.written import Part

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.schema import Schema
    from isolitmus.specs.files.schema_versions import Tables
    from isolitmus.specs.files.toml_reader import Node
    from isolitmus.specs.files.transaction_sql import TransactionContext

__all__ = ["read_write", "widened_context"]

WRITE = ("write", "table", "query", "options")
"""Those of a DataFrame write."""
STREAM = ("stream", "table", "query")
"""Those of a micro-batch of a streaming query."""
MODES = ("append", "overwrite")
OUTPUT_MODES = ("append", "complete")
"""Those of Delta's streaming sink (DeltaDataSource.scala, createSink)."""
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "replaceWhere": (),
    "replaceUsing": (),
    "dataChange": ("true", "false"),
    "mergeSchema": ("true", "false"),
    "partitionOverwriteMode": ("static", "dynamic"),
}
"""The writer's options, with the values that they take (none: any)."""
REPLACING = ("replaceWhere", "replaceUsing", "partitionOverwriteMode")
"""Those that say what an overwrite replaces."""


def read_write(name: str, given: Node, context: TransactionContext) -> tuple[st.Statement, Client]:
    """The INSERT that does what the write does, and its client."""
    client = _client(name, given, context.schemas)
    if client.write is not None and client.write.merges:
        return _merged(client, name, given, context), client
    if context.alters:
        found = features(client=client) | {"a statement that alters columns"}
        refuse_together(found, given.refuse, str(given))
    return _insert(client, name, given, context), client


def widened_context(given: Node, context: TransactionContext, *, grows: bool) -> TransactionContext:
    """The context with the columns that a DataFrame write adds; ``grows`` False: others go."""
    schemas = context.schemas
    write = _write(given, schemas)
    if not write.merges:
        return context
    found = set(features(client=Client(write=write)))
    if not grows:
        found.add("DROP or RENAME COLUMN")
    if "let" in given:
        found.add("let")
    refuse_together(found, given.refuse, str(given))
    tables = context.reached[1] if len(context.reached) > 1 else schemas
    known = tables[write.table]
    columns = list(known.columns)
    for column in _more(write, given, context):
        index = known.index(column.name)
        if index is None:
            columns.append(column)
        elif columns[index].type != column.type:
            given.refuse(
                f"{given} adds the column {column.name} as {column.type}, and another"
                f" transaction as {columns[index].type}; one type is wanted"
            )
    if len(columns) == len(schemas[write.table].columns):
        return context
    wider = {**tables, write.table: replace(known, columns=tuple(columns))}
    return replace(context, reached=(schemas, wider, *context.reached[1:]))


def _client(name: str, given: Node, schemas: Tables) -> Client:
    """The client of a write that is no statement."""
    if "stream" not in given:
        given.keys((*WRITE, *CLIENT))
        client = read_client(given, schemas)
        return replace(client, write=_write(given, schemas))
    given.keys((*STREAM, *CLIENT))
    client = read_client(given, schemas)
    mode = given.get("stream", str)
    if mode not in OUTPUT_MODES:
        given.refuse(f"{given}.stream is '{mode}'; known: {', '.join(OUTPUT_MODES)}")
    target, query = read_target(given, schemas), given.get("query", str)
    batch = DataFrameWrite(target, "append" if mode == "append" else "complete", query, stream=True)
    return replace(client, write=batch, app=client.app or (name, 0))


def _write(given: Node, schemas: Tables) -> DataFrameWrite:
    mode = given.get("write", str)
    if mode not in MODES:
        given.refuse(f"{given}.write is '{mode}'; known: {', '.join(MODES)}")
    target = read_target(given, schemas)
    options = given.inner("options", {})
    for key, value in options.value.items():
        if key not in OPTIONS:
            options.refuse(f"{options}: '{key}' is not modelled{near(key, OPTIONS)}")
        if not isinstance(value, str) or (OPTIONS[key] and value.lower() not in OPTIONS[key]):
            known = ", ".join(OPTIONS[key]) or "a text"
            options.refuse(f"{options}.{key} is {shown(value)}; known: {known}")
    replacing = [key for key in REPLACING if key in options]
    if replacing and replacing != ["partitionOverwriteMode"] and mode != "overwrite":
        options.refuse(f"{options}.{replacing[0]} needs write = 'overwrite'")
    if len(replacing) > 1:
        options.refuse(f"{options} has {' and '.join(replacing)}; one of them")
    query = given.get("query", str)
    write = DataFrameWrite(
        target, "append" if mode == "append" else "overwrite", query, options.value
    )
    schema = schemas[target]
    if not schema.exists and (options.value or schema.partitioned_by or "app" in given):
        given.refuse(
            f"{given} makes {target}, which is not there at the start; with options, partitions or an app"
            " that is not modelled"
        )
    found = features(client=Client(write=write)) - {"mergeSchema"}
    refuse_together(found, options.refuse, str(options))
    return write


def _insert(client: Client, name: str, given: Node, context: TransactionContext) -> st.Insert:
    """The INSERT that does what a DataFrame write does, or a micro-batch."""
    write = client.write
    assert write is not None
    condition = write.options.get("replaceWhere")
    asked = given.at("query")
    of_query = f"{asked.place}, query of {name}"
    if condition is not None:
        into = f"INSERT INTO {write.table} REPLACE WHERE "
        of = f"{given.at('options').place}, replaceWhere of {name}"
        parts = [Part(condition, condition, of), Part(" ", condition, of, len(condition))]
    else:
        into = f"INSERT {'INTO' if write.mode == 'append' else 'OVERWRITE'} {write.table} "
        parts = []
    parts = [Part(into, write.query, of_query, copied=False), *parts]
    parts.append(Part(write.query, write.query, of_query))
    text = "".join(part.read for part in parts)
    query = read_sql(text, name, asked, context, client.let, parts=parts)
    if not isinstance(query, st.Insert):
        asked.refuse(f"{asked} is '{write.query}'; a query is wanted")
    schema = context.schemas[write.table]
    using = _using(write, given, schema)
    options = replace(
        query.options,
        data_change=write.data_change,
        stream=write.stream,
        using=using,
        makes=not (schema.exists or schema.parquet),
    )
    query = replace(query, options=options)
    refuse_together(features(query), asked.refuse, str(asked), table=write.table)
    return query


def _using(write: DataFrameWrite, given: Node, schema: Schema) -> tuple[int, ...]:
    """The columns of replaceUsing."""
    text = write.options.get("replaceUsing")
    names = [] if text is None else [name.strip() for name in text.split(",")]
    indexes = [schema.index(name) for name in names]
    for name, index in zip(names, indexes, strict=True):
        if index is None:
            columns = [column.name for column in schema.columns]
            given.refuse(f"{given}.options.replaceUsing: no column '{name}'{near(name, columns)}")
    return tuple(dict.fromkeys(index for index in indexes if index is not None))


def _more(write: DataFrameWrite, given: Node, context: TransactionContext) -> tuple[Column, ...]:
    """The columns of a query besides those that the table is declared with."""
    syntax = context.syntaxes.setdefault(
        f"{given}.query", Syntax(write.query, f"{given.place}, query")
    )
    read, tree = resolve(syntax, context.schemas), syntax.tree()
    stars = (isinstance(e, exp.Star) for s in tree.find_all(exp.Select) for e in s.expressions)
    if not isinstance(read, st.Read) or not isinstance(tree, exp.Query) or any(stars):
        given.refuse(f"{given}.query is '{write.query}'; with mergeSchema it names its columns")
    declared = context.schemas[write.table]
    items = items_of(read.query[0])
    if len(items) < len(declared.columns):
        given.refuse(
            f"{given}.query gives {many(len(items), 'column')}; with mergeSchema the"
            f" {len(declared.columns)} of {write.table} come first"
        )
    items = items[len(declared.columns) :]
    names = tree.named_selects[len(declared.columns) :]
    for name, item in zip(names, items, strict=True):
        taken = declared.index(name) is not None
        if taken or not NAME.fullmatch(name) or item == Const(None, "INT"):
            given.refuse(f"{given}.query: '{item}' is no new column; write VALUE AS NAME")
    if len({name.lower() for name in names}) < len(names):
        given.refuse(f"{given}.query adds a column twice")
    return tuple(Column(n, item.type) for n, item in zip(names, items, strict=True))


def _merged(client: Client, name: str, given: Node, context: TransactionContext) -> st.Insert:
    """The INSERT that does what a DataFrame write with mergeSchema does."""
    write = client.write
    assert write is not None
    more = _more(write, given, context)
    schema = context.schemas[write.table]
    wider = {**context.schemas, write.table: replace(schema, columns=(*schema.columns, *more))}
    query = _insert(client, name, given, replace(context, reached=(wider, *context.reached[1:])))
    return replace(query, options=replace(query.options, grows=more))
