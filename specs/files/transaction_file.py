"""Reader of ``[transactions]`` in a litmus file: statements, sequences, DataFrame writes, clients.

A transaction is a statement, in some formats a sequence of statements, a DataFrame write, a
micro-batch of a streaming query, or a raw transaction. Its statement is resolved on the tables that
it may find, as other transactions may alter them. The keys are documented in docs/transactions.md,
"The keys of a transaction".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.model.delta.header import enables_row_tracking
from isolitmus.model.display import count_of
from isolitmus.model.errors import LitmusError, SqlError, UnknownName, near
from isolitmus.model.litmus import CacheTable, ClientSettings, DataFrameWrite, SetConf
from isolitmus.model.sql import statement as df
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.expression import Const
from isolitmus.model.sql.query import items_of, source_tables
from isolitmus.model.sql.raw_transaction import Raw
from isolitmus.model.sql.schema import Column
from isolitmus.model.sql.statement import Block, Definition, EarlierCommit, SetProperties
from isolitmus.specs.disk.input_files import STATEMENTS, TRANSACTIONS
from isolitmus.specs.files.client_file import CLIENT, apply_confs, read_client, read_confs
from isolitmus.specs.files.raw_file import RAW_KEYS, read_raw, read_target, refuse_raw_combination
from isolitmus.specs.files.schema_versions import only_add_columns, reachable_tables, resolve_late
from isolitmus.specs.files.table_file import read_plan
from isolitmus.specs.files.toml_reader import DELTA, NAME, show_value
from isolitmus.specs.registries import format_named
from isolitmus.specs.sql.configuration import OVERWRITE_MODE, SHUFFLES
from isolitmus.specs.sql.parameters import parameters, strip_end
from isolitmus.specs.sql.source_text import TextPart, errors_as_written
from isolitmus.specs.sql.statements import resolve, syntax_of, tables_named, unbind_statement
from isolitmus.specs.sql.syntax import Syntax
from isolitmus.specs.sql.unsupported_pairs import features_of, refuse_together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import NoReturn

    from isolitmus.model.format import Format
    from isolitmus.model.schedule import Schedule
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.types import Type
    from isolitmus.model.sql.values import Value
    from isolitmus.specs.files.schema_versions import Tables
    from isolitmus.specs.files.toml_reader import Node
    from isolitmus.specs.sql.unsupported_pairs import Feature


def read_format(document: Node) -> Format:
    """Return the format that a file names; Delta by default."""
    name = document.get("format", str, DELTA)
    try:
        return format_named(name)
    except UnknownName as error:
        document.refuse(str(error), "format")


def read_sequences(
    document: Node, schemas: Mapping[str, Schema], form: Format
) -> tuple[dict[str, Statement], dict[str, ClientSettings]]:
    """Return the transactions and clients of a test in a format without Spark sessions.

    A transaction is a string, a list of strings, or a table with one of these as ``sql`` and
    perhaps a ``session``. If statements are scans, it may name their indexes.
    """
    statements: dict[str, Statement] = {}
    clients: dict[str, ClientSettings] = {}
    for name, given in each_transaction(document):
        value = given.value
        if isinstance(value, dict):
            given.keys(
                ("sql", "session", "scan", "subqueries") if form.steps else ("sql", "session")
            )
            client = read_plan(given, schemas)
            if "session" in given:
                client = replace(client, session=given.get("session", str))
            if client != ClientSettings():
                clients[name] = client
            value = value.get("sql")
        read = _reader(form, schemas, f"{given.place}, transaction {name}")
        one = read_sequence(value, given, form, read)
        if form.steps and not isinstance(one, Block):
            one = Block(one.sql, (one,), single=True)
        statements[name] = one
    return statements, clients


def each_transaction(document: Node) -> Iterator[tuple[str, Node]]:
    """Yield the entries of ``[transactions]`` by name; refuse invalid names and an empty table."""
    transactions = document.inner("transactions", most=TRANSACTIONS)
    for name, given in transactions.items():
        if not NAME.fullmatch(name):
            given.refuse(f"transaction '{name}': a name is letters, digits and _", given.path)
        yield name, given
    if not transactions.value:
        document.refuse("[transactions] is empty")


def _reader(form: Format, schemas: Mapping[str, Schema], place: str) -> Callable[[str], Statement]:
    return lambda text: form.statement(text, schemas, place)


def read_sequence(
    value: object, given: Node, form: Format, read: Callable[[str], Statement]
) -> Statement:
    """Return the transaction of a string, or of a list of strings, parsed by `read`."""
    if isinstance(value, str):
        return read(value)
    if not isinstance(value, list) or not value or not all(isinstance(t, str) for t in value):
        wanted = "expected a string" if form.sequences else "expected a string or a list of strings"
        given.refuse(f"{given} is {show_value(value)}; {wanted}")
    refuse_sequence(given, form)
    given.bounded(len(value), "sql", STATEMENTS, "statements")
    parts = tuple(map(read, value))
    return Block("; ".join(part.sql for part in parts), parts)


def refuse_sequence(given: Node, form: Format) -> None:
    """Refuse a list of statements in a format whose transactions have only one."""
    if form.sequences:
        given.refuse(
            f"{given} is a list of statements, and {form.sequences}; write a transaction for each,"
            " in one session"
        )


EXAMPLES: Mapping[Type, Value] = {
    "INT": 1,
    "BIGINT": 1,
    "STRING": "a",
    "DATE": date(2000, 1, 1),
    "BOOLEAN": True,
    "DOUBLE": 1.0,
    "TIMESTAMP": datetime.fromisoformat("2000-01-01"),
}
"""Values of a statement's parameters as long as their queries have not run."""


@dataclass(frozen=True, slots=True)
class TransactionContext:
    """Context in which the transactions of a file are parsed.

    ``reached`` are the schemas that they may find, beginning with the declared ones. ``syntaxes``
    are the parsed texts. ``alters`` says whether a statement alters columns.
    """

    reached: tuple[Tables, ...]
    syntaxes: dict[str, Syntax]
    alters: bool = False

    @property
    def schemas(self) -> Tables:
        """Declared schemas."""
        return self.reached[0]


def _raised(problem: str) -> NoReturn:
    raise LitmusError(problem)


def _resolved(syntax: Syntax, reached: Sequence[Tables]) -> st.Statement:
    """Return the statement; parts of expressions that are not modelled stay in it as opaque.

    They leave a run undetermined.
    """
    try:
        return resolve_late(syntax.typed({}, queried=True), reached)
    except SqlError as error:
        if error.kind != "opaque":
            raise
    return resolve_late(syntax.typed({}, opaque=True, queried=True), reached)


def read_sql(
    text: str,
    name: str,
    given: Node,
    context: TransactionContext,
    let: Mapping[str, st.Read],
    *,
    parts: Sequence[TextPart] = (),
) -> st.Statement:
    """Return the statement of a text, or of its `parts`; parameters stand for a value of their
    type.
    """
    syntax = context.syntaxes.get(name)
    if syntax is None or syntax.text != strip_end(text):
        syntax = Syntax(text, f"{given.place}, transaction {name}")
    for parameter in parameters(text) if let else ():
        if parameter not in let:
            given.refuse(f"{given}: no let gives ':{parameter}'{near(parameter, let)}")
    examples = {n: EXAMPLES[items_of(read.query[0])[0].type] for n, read in let.items()}
    try:
        found = _resolved(syntax.bound(examples), context.reached)
    except SqlError as error:
        raise (errors_as_written(error, parts) if parts else error) from None
    assert not isinstance(found, Raw)
    has = set(features_of(found))
    if found.origin is not None and found.origin.tables is not context.schemas:
        has.add("columns that a transaction adds or renames")
    refuse_together(has, _raised, syntax.label)
    return unbind_statement(found)


WRITE = ("write", "table", "query", "options")
"""Keys of a DataFrame write."""
STREAM = ("stream", "table", "query")
"""Keys of a micro-batch of a streaming query."""
MODES = ("append", "overwrite")
OUTPUT_MODES = ("append", "complete")
"""Output modes of Delta's streaming sink (DeltaDataSource.scala, createSink)."""
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "replaceWhere": (),
    "replaceUsing": (),
    "dataChange": ("true", "false"),
    "mergeSchema": ("true", "false"),
    "partitionOverwriteMode": ("static", "dynamic"),
}
"""Options of the writer, with their accepted values (none: any)."""
REPLACING = ("replaceWhere", "replaceUsing", "partitionOverwriteMode")
"""Options that select what an overwrite replaces."""


def read_write(
    name: str, given: Node, context: TransactionContext
) -> tuple[st.Statement, ClientSettings]:
    """Return the INSERT that is equivalent to a DataFrame write or micro-batch, and its client."""
    client = _client(name, given, context.schemas)
    if client.write is not None and client.write.merges:
        return _merged(client, name, given, context), client
    if context.alters:
        found = features_of(client=client) | {"a statement that alters columns"}
        refuse_together(found, given.refuse, str(given))
    return _insert(client, name, given, context), client


def widen_context(given: Node, context: TransactionContext, *, grows: bool) -> TransactionContext:
    """Return the context with the columns that a DataFrame write adds.

    `grows` says that no other transaction drops or renames columns.
    """
    schemas = context.schemas
    write = _write(given, schemas)
    if not write.merges:
        return context
    found = set(features_of(client=ClientSettings(write=write)))
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
                f" transaction as {columns[index].type}; expected one type"
            )
    if len(columns) == len(schemas[write.table].columns):
        return context
    wider = {**tables, write.table: replace(known, columns=tuple(columns))}
    return replace(context, reached=(schemas, wider, *context.reached[1:]))


def _client(name: str, given: Node, schemas: Tables) -> ClientSettings:
    """Return the client of a write that is not a statement."""
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
    """Return a DataFrame write; refuse unsupported modes, options and combinations."""
    mode = given.get("write", str)
    if mode not in MODES:
        given.refuse(f"{given}.write is '{mode}'; known: {', '.join(MODES)}")
    target = read_target(given, schemas)
    options = given.inner("options", {})
    for key, value in options.value.items():
        if key not in OPTIONS:
            options.refuse(f"{options}: '{key}' is not modelled{near(key, OPTIONS)}")
        if not isinstance(value, str) or (OPTIONS[key] and value.lower() not in OPTIONS[key]):
            known = ", ".join(OPTIONS[key]) or "a string"
            options.refuse(f"{options}.{key} is {show_value(value)}; known: {known}")
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
            f"{given} creates {target}, which does not exist at the start; with options, partitions"
            " or an app that is not modelled"
        )
    found = features_of(client=ClientSettings(write=write)) - {"mergeSchema"}
    refuse_together(found, options.refuse, str(options))
    return write


def _insert(
    client: ClientSettings, name: str, given: Node, context: TransactionContext
) -> st.Insert:
    """Return the INSERT that is equivalent to a DataFrame write, or to a micro-batch."""
    write = client.write
    assert write is not None
    condition = write.options.get("replaceWhere")
    asked = given.at("query")
    of_query = f"{asked.place}, query of {name}"
    if condition is not None:
        into = f"INSERT INTO {write.table} REPLACE WHERE "
        of = f"{given.at('options').place}, replaceWhere of {name}"
        parts = [TextPart(condition, condition, of), TextPart(" ", condition, of, len(condition))]
    else:
        into = f"INSERT {'INTO' if write.mode == 'append' else 'OVERWRITE'} {write.table} "
        parts = []
    parts = [TextPart(into, write.query, of_query, copied=False), *parts]
    parts.append(TextPart(write.query, write.query, of_query))
    text = "".join(part.read for part in parts)
    query = read_sql(text, name, asked, context, client.let, parts=parts)
    if not isinstance(query, st.Insert):
        asked.refuse(f"{asked} is '{write.query}'; expected a query")
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
    refuse_together(features_of(query), asked.refuse, str(asked), table=write.table)
    return query


def _using(write: DataFrameWrite, given: Node, schema: Schema) -> tuple[int, ...]:
    """Return the columns of replaceUsing."""
    text = write.options.get("replaceUsing")
    names = [] if text is None else [name.strip() for name in text.split(",")]
    indexes = [schema.index(name) for name in names]
    for name, index in zip(names, indexes, strict=True):
        if index is None:
            columns = [column.name for column in schema.columns]
            given.refuse(
                f"{given}.options.replaceUsing: unknown column '{name}'{near(name, columns)}"
            )
    return tuple(dict.fromkeys(index for index in indexes if index is not None))


def _more(write: DataFrameWrite, given: Node, context: TransactionContext) -> tuple[Column, ...]:
    """Return the columns of a query that the table is not declared with."""
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
            f"{given}.query gives {count_of(len(items), 'column')}; with mergeSchema the"
            f" {len(declared.columns)} of {write.table} come first"
        )
    items = items[len(declared.columns) :]
    names = [one.output_name for one in tree.selects[len(declared.columns) :]]
    for name, item in zip(names, items, strict=True):
        taken = declared.index(name) is not None
        if taken or not NAME.fullmatch(name) or item == Const(None, "INT"):
            given.refuse(f"{given}.query: '{item}' is not a new column; write VALUE AS NAME")
    if len({name.lower() for name in names}) < len(names):
        given.refuse(f"{given}.query adds a column twice")
    return tuple(Column(n, item.type) for n, item in zip(names, items, strict=True))


def _merged(
    client: ClientSettings, name: str, given: Node, context: TransactionContext
) -> st.Insert:
    """Return the INSERT that is equivalent to a DataFrame write with mergeSchema."""
    write = client.write
    assert write is not None
    more = _more(write, given, context)
    schema = context.schemas[write.table]
    wider = {**context.schemas, write.table: replace(schema, columns=(*schema.columns, *more))}
    query = _insert(client, name, given, replace(context, reached=(wider, *context.reached[1:])))
    return replace(query, options=replace(query.options, grows=more))


SHUFFLING = (exp.Join, exp.Group, exp.Distinct, exp.Order, exp.Subquery, exp.Exists, exp.AggFunc)
"""Parts of a query that may shuffle rows."""


def read_transactions(
    document: Node, schemas: Mapping[str, Schema]
) -> tuple[dict[str, st.Statement], dict[str, ClientSettings], tuple[Tables, ...]]:
    """Return the statements, the clients other than the default, and the reachable schemas."""
    statements: dict[str, st.Statement] = {}
    clients: dict[str, ClientSettings] = {}
    transactions = document.inner("transactions", most=TRANSACTIONS)
    context = _context(transactions, schemas)
    grows = only_add_columns(context.reached)
    for given in transactions.nodes():
        value = given.value
        if isinstance(value, dict) and "write" in value and "stream" not in value:
            context = widen_context(given, context, grows=grows)
    earlier: list[tuple[str, Node]] = []
    for name, given in each_transaction(document):
        if isinstance(given.value, dict) and "commit_of" in given.value:
            earlier.append((name, given))
        else:
            statements[name], clients[name] = _transaction(name, given, context)
    for name, given in earlier:
        statements[name], clients[name] = _earlier_commit(given, statements, clients)
    statements = {name: statements[name] for name, _ in each_transaction(document)}
    refuse_raw_combination(statements, schemas, document)
    cached = {a.table for c in clients.values() for a in c.before if isinstance(a, CacheTable)}
    for name, statement in statements.items():
        found = set(features_of(statement))
        if not isinstance(statement, st.Read) and statement.target in cached:
            found.add("a table that is cached")
        if isinstance(statement, st.Merge) and syntax_of(statement).evolves:
            found.add("MERGE WITH SCHEMA EVOLUTION")
        if not grows:
            found.add("DROP or RENAME COLUMN")
        refuse_together(found, document.refuse, f"transactions.{name}")
    _refuse_unnamed(statements, clients, document)
    made = {name: client for name, client in clients.items() if client != ClientSettings()}
    return statements, made, context.reached


def _earlier_commit(
    given: Node, statements: Mapping[str, st.Statement], clients: dict[str, ClientSettings]
) -> tuple[st.Statement, ClientSettings]:
    """Return the statement and the client of ``{ commit_of = "NAME" }``.

    The commits of one statement share its session, which has its name unless it has another.
    """
    given.keys(("commit_of",))
    whole: str = given.get("commit_of", str)
    found = statements.get(whole)
    if whole not in statements:
        given.refuse(f"{given}.commit_of: no transaction '{whole}'{near(whole, statements)}")
    if not (
        isinstance(found, Definition)
        and isinstance(found.change, SetProperties)
        and enables_row_tracking(found.change.properties)
    ):
        given.refuse(
            f"{given}.commit_of is '{whole}', which makes one commit; a statement that makes"
            " several is ALTER TABLE … SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
        )
    client = clients[whole]
    if client != ClientSettings(conf=client.conf, session=client.session):
        given.refuse(
            f"{given}.commit_of is '{whole}', which has more than a statement, its confs and its"
            " session; its commits can have no more"
        )
    if client.session is None:
        taken = next((name for name, one in clients.items() if one.session == whole), None)
        if taken is not None:
            given.refuse(
                f"{given}.commit_of is '{whole}', and {taken} is in a session of this name; give"
                f" {whole} a session"
            )
        client = clients[whole] = replace(client, session=whole)
    return replace(found, change=EarlierCommit()), replace(client, commit_of=whole)


def _context(transactions: Node, schemas: Mapping[str, Schema]) -> TransactionContext:
    """Return the parsed SQL of the transactions and the schemas that they may find."""
    syntaxes = {}
    for name, given in transactions.items():
        text = given.value.get("sql") if isinstance(given.value, dict) else given.value
        if isinstance(text, str):
            syntaxes[name] = Syntax(text, f"{given.place}, transaction {name}")
    found = reachable_tables(syntaxes.values(), schemas)
    return TransactionContext(found, syntaxes, alters=len(found) > 1)


def _transaction(
    name: str, given: Node, context: TransactionContext
) -> tuple[st.Statement, ClientSettings]:
    """Return one transaction: a string, or a table whose keys determine its kind."""
    if isinstance(given.value, str):
        return read_sql(given.value, name, given, context, {}), ClientSettings()
    if isinstance(given.value, list):
        refuse_sequence(given, format_named(DELTA))
    if not isinstance(given.value, dict):
        given.refuse(f"{given} is {show_value(given.value)}; expected a string")
    kinds = {"sql", "write", "stream"} & given.value.keys()
    raw = not kinds and {*RAW_KEYS, "app"} & given.value.keys()
    written = {"write", "stream"} & kinds
    if raw or written:
        schema = context.schemas[read_target(given, context.schemas)]
        found: set[Feature] = {"a raw transaction, a DataFrame write or a micro-batch"}
        if kinds != {"write"}:
            found.add("a raw transaction or a micro-batch")
        refuse_together(
            found | features_of(schema=schema), given.refuse, str(given), table=schema.name
        )
    if raw:
        return read_raw(name, given, context.schemas), ClientSettings(conf=read_confs(given))
    if written:
        return read_write(name, given, context)
    given.keys(("sql", "write", "stream", *CLIENT))
    client = read_client(given, context.schemas)
    statement = read_sql(given.get("sql", str), name, given, context, client.let)
    refuse_together(
        features_of(statement, ClientSettings(app=client.app)), given.refuse, str(given)
    )
    return statement, client


def _refuse_unnamed(
    statements: Mapping[str, st.Statement], clients: Mapping[str, ClientSettings], document: Node
) -> None:
    """Refuse SQL that names a table which a DataFrame write creates: it is only a path."""
    inserts = [s for s in statements.values() if isinstance(s, st.Insert)]
    made = {insert.target.lower() for insert in inserts if insert.options.makes}
    for name, statement in statements.items():
        lets = clients[name].let.values()
        own = frozenset().union(*map(tables_named, lets))
        if isinstance(statement, st.Insert) and clients[name].write is not None:
            own |= {table.lower() for table in source_tables(statement.query)}
        elif not isinstance(statement, Raw):
            own |= tables_named(statement)
        for table in sorted(made & own):
            found: set[Feature] = {"a statement of SQL", "a table that a DataFrame write makes"}
            refuse_together(found, document.refuse, f"transactions.{name}", table=table)


def _shuffles(statement: st.Statement) -> bool:
    """Return whether Spark may shuffle the rows that a statement writes: a MERGE, OPTIMIZE, or a
    query with joins or groups.
    """
    if isinstance(statement, st.Insert | st.Delete | st.Update):
        tree = syntax_of(statement).tree()
        return tree.find(*SHUFFLING) is not None
    return isinstance(statement, st.Merge | st.Optimize | df.Replace | df.Create)


def apply_session_confs(
    statements: Mapping[str, st.Statement],
    clients: Mapping[str, ClientSettings],
    schedule: Schedule,
    document: Node,
) -> dict[str, st.Statement]:
    """Return the statements as they run with the configuration of their sessions."""
    sessions: dict[str, dict[str, str]] = {}
    done = dict(statements)
    for name in dict.fromkeys(step.transaction for step in schedule.steps):
        client = clients.get(name, ClientSettings())
        kept = sessions.setdefault(client.session, {}) if client.session is not None else {}
        kept.update({a.key: a.value for a in client.before if isinstance(a, SetConf)})
        confs = kept | dict(client.conf)
        if client.write is not None and "partitionOverwriteMode" in client.write.options:
            confs[OVERWRITE_MODE] = client.write.options["partitionOverwriteMode"]
        place = f"transactions.{name}"
        if confs.get(SHUFFLES, "1") != "1" and _shuffles(statements[name]):
            shuffled = {"the conf shuffle.partitions above 1", "a statement that shuffles rows"}
            refuse_together(shuffled, document.refuse, place)
        done[name] = apply_confs(statements[name], confs, document.refuse, place)
    return done
