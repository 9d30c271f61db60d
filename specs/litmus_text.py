"""Write a litmus test as the text of a litmus file, so that reading it gives the test back."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING

from isolitmus.model.client import Client
from isolitmus.model.litmus import HistoryTest, Litmus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from isolitmus.model.litmus import Expectation
    from isolitmus.model.schema import Schema
    from isolitmus.model.statement import Statement
    from isolitmus.model.values import Rows, Value

__all__ = ["litmus_text"]


def litmus_text(test: Litmus | HistoryTest) -> str:
    """The file: title, schedule, tables, transactions (or the history), expectations, in that order.

    >>> from isolitmus.specs import litmus
    >>> from isolitmus.specs.litmus_file import read_litmus
    >>> test = litmus("reorder")
    >>> read_litmus(litmus_text(test), "reorder").transactions == test.transactions
    True
    """
    if isinstance(test, Litmus) and test.raw:
        return test.text  # nobody makes up raw transactions: they come from files
    lines = _history(test) if isinstance(test, HistoryTest) else _lines(test)
    return "\n".join([*_head(test), *lines]) + "\n"


def _head(test: Litmus | HistoryTest) -> Iterator[str]:
    yield f"title    = {_text(test.title)}"
    if test.source:
        yield f"source   = {_text(test.source)}"
    if test.tags:
        yield f"tags     = {_list(map(_text, test.tags))}"


def _history(test: HistoryTest) -> Iterator[str]:
    yield ""
    yield "[history]"
    for key, value in test.history.to_table().items():
        yield f"{key} = {_text(value) if isinstance(value, str) else _list(map(_text, value))}"
    if test.holds or test.fails:
        yield ""
        yield "[expect]"
        yield from _levels(test)


def _lines(test: Litmus) -> Iterator[str]:
    yield f"schedule = {_text(str(test.schedule))}"
    for name, schema in test.tables.items():
        yield ""
        yield "[table]" if list(test.tables) == ["t"] else f"[tables.{name}]"
        init = [s.sql for s in test.init if getattr(s, "target", None) == name]
        yield from _table(schema, init)
    yield ""
    yield "[transactions]"
    width = max(map(len, test.transactions))
    for name, statement in test.transactions.items():
        yield f"{name:<{width}} = {_transaction(statement, test.client(name))}"
    for who, expect in test.expect.items():
        yield ""
        yield f"[expect.{who if _bare(who) else _text(who)}]"
        yield from _expectation(expect)


def _transaction(statement: Statement, client: Client) -> str:
    if client == Client():
        return _text(statement.sql)
    table = {}
    if client.write is None:
        table["sql"] = _text(statement.sql)
    else:
        table["stream" if client.write.stream else "write"] = _text(client.write.mode)
        table["table"] = _text(client.write.table)
        table["query"] = _text(client.write.query)
        if client.write.options:
            table["options"] = _texts(client.write.options)
    if client.before:
        table["before"] = _list(_text(aside.sql) for aside in client.before)
    if client.let:
        table["let"] = _texts({name: read.sql for name, read in client.let.items()})
    if client.conf:
        table["conf"] = _texts(client.conf)
    if client.app is not None:
        table["app"] = f"{{ id = {_text(client.app[0])}, version = {client.app[1]} }}"
    if client.session is not None:
        table["session"] = _text(client.session)
    return _inline(table)


def _table(schema: Schema, init: list[str]) -> Iterator[str]:
    yield f"columns        = {_text(schema.ddl())}"
    if schema.partitioned_by:
        yield f"partitioned_by = {_list(map(_text, schema.partitioned_by))}"
    if schema.clustered_by:
        yield f"clustered_by   = {_list(map(_text, schema.clustered_by))}"
    if schema.properties:
        yield f"properties     = {_texts(schema.properties)}"
    if schema.parquet:
        yield f"parquet        = {_rows(schema.parquet)}"
    elif not schema.exists:
        yield "exists         = false"
    if schema.rows_per_file is not None:
        yield f"rows_per_file  = {schema.rows_per_file}"
    if init:
        yield f"init           = {_list(map(_text, init))}"


def _expectation(expect: Expectation) -> Iterator[str]:
    if expect.outcome:
        outcome = {
            name: _text(options[0]) if len(options) == 1 else _list(map(_text, options))
            for name, options in expect.outcome.items()
        }
        yield f"outcome  = {_inline(outcome)}"
    if expect.error_class:
        yield f"error_class = {_inline({n: _text(c) for n, c in expect.error_class.items()})}"
    if expect.log:
        log = {n: _inline({k: _value(v) for k, v in e.items()}) for n, e in expect.log.items()}
        yield f"log      = {_inline(log)}"
    if expect.reads:
        yield f"reads    = {_inline(_contents(expect.reads))}"
    if expect.tables:
        yield f"tables   = {_inline(_contents(expect.tables))}"
    if expect.versions:
        versions = {str(k): _inline(_contents(tables)) for k, tables in expect.versions.items()}
        yield f"versions = {_inline(versions)}"
    if expect.serial is not None:
        yield f"serial   = {_list(map(_text, expect.serial))}"
    yield from _levels(expect)


def _levels(expect: Expectation | HistoryTest) -> Iterator[str]:
    for key, names in (("holds", expect.holds), ("fails", expect.fails)):
        if names:
            yield f"{key:<8} = {_list(map(_text, names))}"


def _contents(tables: Mapping[str, Rows]) -> dict[str, str]:
    return {name: _rows(rows) for name, rows in tables.items()}


def _rows(rows: Rows) -> str:
    return _list(_list(map(_value, row)) for row in rows)


def _value(value: Value) -> str:
    match value:
        case None:
            return "{ null = true }"
        case bool():
            return "true" if value else "false"
        case date():
            return value.isoformat()
        case int():
            return str(value)
        case str():
            return _text(value)


def _text(text: str) -> str:
    """A TOML basic string: JSON's escapes are TOML's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def _texts(table: Mapping[str, str]) -> str:
    """A table of texts; its keys may hold dots."""
    return _inline({k if _bare(k) else _text(k): _text(v) for k, v in table.items()})


def _list(parts: Iterable[str]) -> str:
    return f"[{', '.join(parts)}]"


def _inline(table: Mapping[str, str]) -> str:
    return f"{{ {', '.join(f'{k} = {v}' for k, v in table.items())} }}"


def _bare(key: str) -> bool:
    return bool(key) and key.replace("-", "").replace("_", "").isalnum() and key.isascii()
