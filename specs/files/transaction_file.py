"""Read ``[transactions]`` of a litmus file: a statement each, and what its client does around it.

What a key is for stands in docs/transactions.md, "The keys of a transaction".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.model.client import CacheTable, Client, SetConf
from isolitmus.model.defaults import DELTA
from isolitmus.model.delta.raw_transaction import Raw
from isolitmus.model.sql import definition as df
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.query import sources
from isolitmus.specs.disk.limits import TRANSACTIONS
from isolitmus.specs.files.client_file import CLIENT, read_client, read_confs, under_confs
from isolitmus.specs.files.raw_file import RAW_KEYS, check_together, read_raw, read_target
from isolitmus.specs.files.schema_versions import grow, reached
from isolitmus.specs.files.sequence_file import each_transaction, refuse_sequence
from isolitmus.specs.files.toml_reader import shown
from isolitmus.specs.files.transaction_sql import TransactionContext, read_sql
from isolitmus.specs.files.write_file import read_write, widened_context
from isolitmus.specs.registries.formats import format_named
from isolitmus.specs.sql.configuration import OVERWRITE_MODE, SHUFFLES
from isolitmus.specs.sql.features import features
from isolitmus.specs.sql.statements import syntax_of, tables_named
from isolitmus.specs.sql.syntax import Syntax
from isolitmus.specs.sql.unsupported_pairs import refuse_together

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.schedule import Schedule
    from isolitmus.model.schema import Schema
    from isolitmus.specs.files.schema_versions import Tables
    from isolitmus.specs.files.toml_reader import Node
    from isolitmus.specs.sql.unsupported_pairs import Feature

__all__ = ["read_transactions", "with_confs"]


SHUFFLING = (exp.Join, exp.Group, exp.Distinct, exp.Order, exp.Subquery, exp.Exists, exp.AggFunc)
"""What of a query may shuffle rows."""


def read_transactions(
    document: Node, schemas: Mapping[str, Schema]
) -> tuple[dict[str, st.Statement], dict[str, Client], tuple[Tables, ...]]:
    """The statements, the clients of those that are written as a table, and the tables as they may find
    them.
    """
    statements: dict[str, st.Statement] = {}
    clients: dict[str, Client] = {}
    transactions = document.inner("transactions", most=TRANSACTIONS)
    context = _context(transactions, schemas)
    grows = grow(context.reached)
    for given in transactions.nodes():
        value = given.value
        if isinstance(value, dict) and "write" in value and "stream" not in value:
            context = widened_context(given, context, grows=grows)
    for name, given in each_transaction(document):
        statements[name], clients[name] = _transaction(name, given, context)
    check_together(statements, schemas, document)
    cached = {a.table for c in clients.values() for a in c.before if isinstance(a, CacheTable)}
    for name, statement in statements.items():
        found = set(features(statement))
        if not isinstance(statement, st.Read) and statement.target in cached:
            found.add("a table that is cached")
        if not grows:
            found.add("DROP or RENAME COLUMN")
        refuse_together(found, document.refuse, f"transactions.{name}")
    _refuse_unnamed(statements, clients, document)
    made = {name: client for name, client in clients.items() if client != Client()}
    return statements, made, context.reached


def _context(transactions: Node, schemas: Mapping[str, Schema]) -> TransactionContext:
    syntaxes = {}
    for name, given in transactions.items():
        text = given.value.get("sql") if isinstance(given.value, dict) else given.value
        if isinstance(text, str):
            syntaxes[name] = Syntax(text, f"{given.place}, transaction {name}")
    found = reached(syntaxes.values(), schemas)
    return TransactionContext(found, syntaxes, alters=len(found) > 1)


def _transaction(
    name: str, given: Node, context: TransactionContext
) -> tuple[st.Statement, Client]:
    """One transaction: a text, or a table, whose keys tell of which kind it is."""
    if isinstance(given.value, str):
        return read_sql(given.value, name, given, context, {}), Client()
    if isinstance(given.value, list):
        refuse_sequence(given, format_named(DELTA))
    if not isinstance(given.value, dict):
        given.refuse(f"{given} is {shown(given.value)}; a text is wanted")
    kinds = {"sql", "write", "stream"} & given.value.keys()
    raw = not kinds and {*RAW_KEYS, "app"} & given.value.keys()
    written = {"write", "stream"} & kinds
    if raw or written:
        schema = context.schemas[read_target(given, context.schemas)]
        found: set[Feature] = {"a raw transaction, a DataFrame write or a micro-batch"}
        if kinds != {"write"}:
            found.add("a raw transaction or a micro-batch")
        refuse_together(
            found | features(schema=schema), given.refuse, str(given), table=schema.name
        )
    if raw:
        return read_raw(name, given, context.schemas), Client(conf=read_confs(given))
    if written:
        return read_write(name, given, context)
    given.keys(("sql", "write", "stream", *CLIENT))
    client = read_client(given, context.schemas)
    statement = read_sql(given.get("sql", str), name, given, context, client.let)
    refuse_together(features(statement, Client(app=client.app)), given.refuse, str(given))
    return statement, client


def _refuse_unnamed(
    statements: Mapping[str, st.Statement], clients: Mapping[str, Client], document: Node
) -> None:
    """Refuse SQL that names a table which a DataFrame write makes: that one is a path."""
    inserts = [s for s in statements.values() if isinstance(s, st.Insert)]
    made = {insert.target.lower() for insert in inserts if insert.options.makes}
    for name, statement in statements.items():
        lets = clients[name].let.values()
        own = frozenset().union(*map(tables_named, lets))
        if isinstance(statement, st.Insert) and clients[name].write is not None:
            own |= {table.lower() for table in sources(statement.query)}
        elif not isinstance(statement, Raw):
            own |= tables_named(statement)
        for table in sorted(made & own):
            found: set[Feature] = {"a statement of SQL", "a table that a DataFrame write makes"}
            refuse_together(found, document.refuse, f"transactions.{name}", table=table)


def _shuffles(statement: st.Statement) -> bool:
    """Whether Spark may write the rows of a statement after a shuffle: a MERGE, OPTIMIZE, and joined or grouped queries."""
    if isinstance(statement, st.Insert | st.Delete | st.Update):
        tree = syntax_of(statement).tree()
        return tree.find(*SHUFFLING) is not None
    return isinstance(statement, st.Merge | st.Optimize | df.Replace | df.Create)


def with_confs(
    statements: Mapping[str, st.Statement],
    clients: Mapping[str, Client],
    schedule: Schedule,
    document: Node,
) -> dict[str, st.Statement]:
    """The statements as the confs of their sessions have them do what they do."""
    sessions: dict[str, dict[str, str]] = {}
    done = dict(statements)
    for name in dict.fromkeys(step.transaction for step in schedule.steps):
        client = clients.get(name, Client())
        kept = sessions.setdefault(client.session, {}) if client.session is not None else {}
        kept.update({a.key: a.value for a in client.before if isinstance(a, SetConf)})
        confs = kept | dict(client.conf)
        if client.write is not None and "partitionOverwriteMode" in client.write.options:
            confs[OVERWRITE_MODE] = client.write.options["partitionOverwriteMode"]
        place = f"transactions.{name}"
        if confs.get(SHUFFLES, "1") != "1" and _shuffles(statements[name]):
            shuffled = {"the conf shuffle.partitions above 1", "a statement that shuffles rows"}
            refuse_together(shuffled, document.refuse, place)
        done[name] = under_confs(statements[name], confs, document.refuse, place)
    return done
