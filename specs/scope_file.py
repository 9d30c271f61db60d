"""Read scope files (TOML): the table of a litmus file and a ``[scope]`` of what may vary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.scope import FRESH, Scope, fresh
from isolitmus.model.statement import Read, Vacuum, unseen
from isolitmus.specs.sql import read_statement
from isolitmus.specs.table_file import TableReader
from isolitmus.specs.toml_file import read_toml

if TYPE_CHECKING:
    from pathlib import Path

    from isolitmus.model.statement import Statement

__all__ = ["LARGEST", "read_scope"]

LARGEST = 8
"""The most transactions that a scope, or a search in it, may ask for."""


def read_scope(text: str, name: str, path: Path | None = None) -> Scope:
    """The scope that a file holds; LitmusError says what is wrong with it.

    >>> from isolitmus.specs import scope
    >>> len(scope("table").inits)
    1
    """
    from isolitmus.specs.catalogue import levels, protocols

    label = path.name if path is not None else f"{name}.toml"
    document = read_toml(text, label)
    reader = TableReader(label, text)
    reader.keys(document, "", ("title", "source", "tags", "table", "tables", "scope"))
    schemas, inits = reader.tables(document)
    unmade = next((name for name, schema in schemas.items() if not schema.exists), None)
    if unmade is not None:
        where = "table" if "table" in document else f"tables.{unmade}"
        reader.refuse(f"{where} is a table that is not there, which is for litmus tests")
    title = reader.get(document, "", "title", str)
    inner = reader.get(document, "", "scope", dict)
    known = ("transactions", "statements", "readers", "protocols", "levels", "noops")
    reader.keys(inner, "scope", known)
    sizes = inner.get("transactions")
    sizes = sizes if isinstance(sizes, list) else [sizes]
    if not sizes or not all(type(n) is int and 1 <= n <= LARGEST for n in sizes):
        reader.refuse(
            f"scope.transactions is {reader.shown(inner.get('transactions'))}; a whole number from 1 to"
            f" {LARGEST}, or a list of them, is wanted"
        )
    texts = reader.strings(inner, "scope", "statements")
    if not texts:
        reader.refuse("scope.statements is empty")

    def statement(text: str, sql: str) -> Statement:
        place = reader.place_of("scope.statements", text)
        return read_statement(sql, schemas, f"{place}, in statements")

    statements = tuple(
        tuple(statement(text, text.replace(FRESH, str(fresh(n)))) for n in range(1, LARGEST + 1))
        if FRESH in text
        else (statement(text, text),) * LARGEST
        for text in texts
    )
    vacuum = next((s[0].sql for s in statements if isinstance(s[0], Vacuum)), None)
    if vacuum is not None:
        reader.refuse(
            f"scope.statements holds '{vacuum}', which is two commits; those that are one are counted"
        )
    reading = next((s[0].sql for s in statements if isinstance(s[0], Read)), None)
    if reading is not None:
        reader.refuse(f"scope.statements holds a query, '{reading}'; put it into scope.readers")
    readers = tuple(
        read_statement(sql, schemas, f"{reader.place_of('scope.readers', sql)}, in readers")
        for sql in reader.strings(inner, "scope", "readers")
    )
    writing = next((s.sql for s in readers if not isinstance(s, Read)), None)
    if writing is not None:
        reader.refuse(f"scope.readers holds a statement that writes, '{writing}'")
    travelling = next((s.sql for s in (*(s[0] for s in statements), *readers) if unseen(s)), None)
    if travelling is not None:
        reader.refuse(
            f"scope holds '{travelling}'; a table's older versions and other paths are for litmus tests"
        )
    numbered = next((name for name, schema in schemas.items() if schema.generates), None)
    if numbered is not None:
        reader.refuse(f"scope has table {numbered}, and identity columns are for litmus tests")
    noops = reader.get(inner, "scope", "noops", str, "skip")
    if noops not in ("skip", "keep"):
        reader.refuse(f"scope.noops is '{noops}'; 'skip' or 'keep' is wanted")
    return Scope(
        name,
        title,
        reader.get(document, "", "source", str, ""),
        schemas,
        inits,
        statements,
        readers,
        tuple(sorted(set(sizes))),
        noops,
        reader.named(inner, "scope", "protocols", "protocol", protocols()),
        reader.named(inner, "scope", "levels", "level", levels()),
        text,
        path,
    )
