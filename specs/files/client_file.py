"""Reader of the client of a transaction: ``before``, ``let``, ``conf``, ``session``, ``app``.

The keys are documented in docs/transactions.md, "The keys of a transaction".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isolitmus.model.errors import near
from isolitmus.model.litmus import CacheTable, ClientSettings, SetConf
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.query import items_of
from isolitmus.specs.disk.input_files import shipped_files
from isolitmus.specs.files.raw_file import read_app
from isolitmus.specs.files.spec_catalogue import protocol_names
from isolitmus.specs.files.toml_reader import NAME, show_value
from isolitmus.specs.sql.configuration import (
    AUTO_MERGE,
    SET,
    conf_problem,
    is_dynamic_overwrite,
    with_overwrite_mode,
)
from isolitmus.specs.sql.row_statements import is_star_clause
from isolitmus.specs.sql.statements import read_statement, syntax_of
from isolitmus.specs.sql.unsupported_pairs import features_of, refuse_together

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import NoReturn

    from isolitmus.model.litmus import Aside
    from isolitmus.model.sql.schema import Schema
    from isolitmus.specs.files.toml_reader import Node
    from isolitmus.specs.sql.unsupported_pairs import Feature

CLIENT = ("before", "let", "conf", "session", "app", "protocol")
"""Keys that every transaction may have."""
PLAIN = ("sql", "let", "protocol")
"""Keys of a transaction with its own writer; the other keys belong to Spark sessions."""
CACHE = re.compile(r"(?i)\s*CACHE\s+(?:LAZY\s+)?TABLE\s+(`?)(?P<table>\w+)\1\s*")
UNCACHE = re.compile(r"(?i)\s*UNCACHE\s+TABLE\s+(?:IF\s+EXISTS\s+)?(`?)(?P<table>\w+)\1\s*")


def read_client(given: Node, schemas: Mapping[str, Schema]) -> ClientSettings:
    """Return the client settings of a transaction."""
    session = given.value.get("session")
    if session is not None and (not isinstance(session, str) or not NAME.fullmatch(session)):
        given.refuse(
            f"{given}.session is {show_value(session)}; expected a name, letters, digits and _"
        )
    return ClientSettings(
        tuple(_aside(given.at("before"), text, schemas) for text in given.strings("before")),
        {name: _let(name, query, schemas) for name, query in given.inner("let", {}).items()},
        read_confs(given),
        session,
        app=read_app(given),
        protocol=_protocol(given),
    )


def _protocol(given: Node) -> str | None:
    """Return the value of ``protocol = "NAME"``: commit protocol of a transaction's own writer."""
    if "protocol" not in given:
        return None
    name: str = given.get("protocol", str)
    known = shipped_files("protocols")
    if name not in known:
        names = given.meant(
            f"{given}.protocol: unknown protocol '{name}'", name, known, protocol_names
        )
        if len(names) > 1:
            given.refuse(f"{given}.protocol is '{name}', which is {len(names)} protocols; name one")
        (name,) = names
    other = next((key for key in given.value if key not in PLAIN), None)
    if other is not None:
        both = {"a protocol of its own", "more than sql and let"}
        refuse_together(both, given.refuse, str(given), key=other)
    return name


def read_confs(given: Node) -> dict[str, str]:
    """Return the settings in ``conf = { key = value }``."""
    confs = given.inner("conf", {})
    return {key: conf_value(confs, key, value) for key, value in confs.value.items()}


def apply_confs(
    statement: st.Statement, confs: Mapping[str, str], refuse: Callable[[str], NoReturn], at: str
) -> st.Statement:
    """Return the statement as it runs with the configuration of its session.

    Combinations that are not modelled are refused, with the place `at`.
    """
    changed = with_overwrite_mode(statement, confs)
    found: set[Feature] = set()
    if changed is not statement and is_dynamic_overwrite(confs):
        found.add("a dynamic partition overwrite")
    if confs.get(AUTO_MERGE, "false").lower() == "true":
        found.add("the conf schema.autoMerge.enabled")
        if isinstance(statement, st.Merge) and is_star_clause(syntax_of(statement)):
            found.add("the * of a MERGE")
    if found:
        refuse_together(features_of(statement) | found, refuse, at)
    return changed


def _aside(before: Node, text: str, schemas: Mapping[str, Schema]) -> Aside:
    """Return the CACHE TABLE, UNCACHE TABLE or SET before a transaction; refuse others."""
    for pattern, keep in ((CACHE, True), (UNCACHE, False)):
        found = pattern.fullmatch(text)
        if found:
            known = {name.lower(): name for name in schemas}
            name = found["table"]
            if name.lower() not in known:
                before.refuse(f"{before}: unknown table '{name}'{near(name, schemas)}")
            cache = CacheTable(text, known[name.lower()], keep)
            has = features_of(client=ClientSettings((cache,)), schema=schemas[cache.table])
            refuse_together(has, before.refuse, str(before), table=name)
            return cache
    found = SET.fullmatch(text)
    if found:
        return SetConf(text, found["key"], conf_value(before, found["key"], found["value"]))
    before.refuse(
        f"{before} holds {show_value(text)}; CACHE TABLE t, UNCACHE TABLE t and"
        " SET key = value are what is run outside a transaction; a query is a let, and a"
        " statement that writes a transaction of its own"
    )


def _let(name: str, query: Node, schemas: Mapping[str, Schema]) -> st.Read:
    """Return the query of a `let`; refuse an invalid name or a query without exactly one column."""
    sql = query.value
    if not NAME.fullmatch(name):
        query.refuse(f"{query}: a name is letters, digits and _")
    if not isinstance(sql, str):
        query.refuse(f"{query} is {show_value(sql)}; expected a string")
    statement = read_statement(sql, schemas, f"{query.place}, let {name}")
    if not isinstance(statement, st.Read) or len(items_of(statement.query[0])) != 1:
        query.refuse(f"{query} is '{sql}'; expected a query with one column")
    return statement


def conf_value(node: Node, key: str, value: object) -> str:
    """Return the value of a setting; refuse one that is not modelled and has an effect."""
    if not isinstance(value, str):
        node.refuse(f"{node}: {key} is {show_value(value)}; expected a string")
    if why := conf_problem(key, value):
        node.refuse(f"{node}: {why}")
    return value
