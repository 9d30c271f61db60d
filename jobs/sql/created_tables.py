"""Queries of CREATE OR REPLACE TABLE … AS, seen as those of INSERT OVERWRITE.

Both remove all rows and read the whole table, so a query may be replaced in one as in the other
(``jobs.sql.uninterpreted_sources``, ``jobs.sql.undeclared_sources``). The columns of a new table
have the names and types of its query, so a query that takes the place of another one has those of
the declared table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.jobs.sql.uninterpreted_sources import folded_schemas, statement_tree
from isolitmus.specs.sql.parameters import one_line
from isolitmus.specs.sql.source_text import DIALECT
from isolitmus.specs.sql.table_creations import creation_query

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.sql.schema import Schema


def creation_as_overwrite(text: str) -> str | None:
    """Return the INSERT OVERWRITE with the query of a CREATE OR REPLACE TABLE; None for others.

    Examples
    --------
    >>> creation_as_overwrite("CREATE OR REPLACE TABLE a.t USING delta AS SELECT id FROM s")
    'INSERT OVERWRITE TABLE t SELECT id FROM s'
    """
    found = creation_query(text)
    if found is None:
        return None
    head, table = found
    query = text[len(head) :].strip()
    tree = statement_tree(query)
    named = None if tree is None else tree.args.get("with_")
    if tree is None or named is None:
        return f"INSERT OVERWRITE TABLE {table} {query}"
    tree.set("with_", None)
    return f"{named.sql(DIALECT)} INSERT OVERWRITE TABLE {table} {tree.sql(DIALECT)}"


def overwrite_as_creation(
    overwrite: str, text: str, schemas: Mapping[str, Schema], *, typed: bool = False
) -> str | None:
    """Return a CREATE OR REPLACE TABLE with the query of an INSERT OVERWRITE.

    Parameters
    ----------
    overwrite : str
        The INSERT OVERWRITE.
    text : str
        The statement as it was written.
    schemas : mapping of str to Schema
        Declared tables.
    typed : bool
        Whether the columns of the query get the names and types of the table's columns.

    Returns
    -------
    str or None
        None if the query has other columns than the table.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> tables = {"t": Schema("t", (Column("id", "BIGINT"), Column("day", "DATE")))}
    >>> create = "REPLACE TABLE t USING delta AS SELECT mine(id) AS id, 1 AS day FROM s"
    >>> instead = "INSERT OVERWRITE TABLE t SELECT id, 1 FROM s_rows"
    >>> overwrite_as_creation(instead, create, tables, typed=True)
    'REPLACE TABLE t USING delta AS SELECT id, CAST(1 AS DATE) AS day FROM s_rows'
    """
    found, tree = creation_query(text), statement_tree(overwrite)
    if found is None or not isinstance(tree, exp.Insert):
        return None
    head, table = found
    schema = folded_schemas(schemas).get(table.lower())
    query = tree.expression
    if schema is None or not isinstance(query, exp.Query):
        return None
    names = [schema.columns[k].name.lower() for k in schema.shown]
    if typed:
        written = statement_tree(text[len(head) :])
        said = written.named_selects if isinstance(written, exp.Query) else []
        if "*" not in said and [name.lower() for name in said] != names:
            return None
        if not isinstance(query, exp.Select) or len(query.expressions) != len(names):
            return None
        columns = [schema.columns[k] for k in schema.shown]
        items = [
            item
            if isinstance(item, exp.Column) and item.name.lower() == column.name.lower()
            else exp.alias_(exp.cast(item.unalias(), column.type, dialect=DIALECT), column.name)
            for item, column in zip(query.expressions, columns, strict=True)
        ]
        query.set("expressions", items)
    named = tree.args.get("with_")
    used = {one.name.lower() for one in query.find_all(exp.Table)}
    if named is not None and used & {one.alias.lower() for one in named.expressions}:
        query.set("with_", named)
    return f"{one_line(head)} {query.sql(DIALECT)}"
