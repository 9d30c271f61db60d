"""Reader of tables in litmus and scope files: columns, partitions, initial contents, indexes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isolitmus.model.delta.header import FEATURES, SUPPORTED
from isolitmus.model.delta.log import LEVEL_KEY
from isolitmus.model.errors import near
from isolitmus.model.litmus import ClientSettings
from isolitmus.model.sql.schema import Column, Identity, Index, Schema
from isolitmus.model.sql.statement import Read
from isolitmus.model.sql.types import BASE_TYPES, NAMED_TYPES, column_type
from isolitmus.specs.disk.input_files import COLUMNS, INITS
from isolitmus.specs.files.toml_reader import NAME, show_value
from isolitmus.specs.sql.configuration import LEVELS, retention_problem, unmodelled_property
from isolitmus.specs.sql.statements import read_statement
from isolitmus.specs.sql.unsupported_pairs import refuse_together

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.values import Rows
    from isolitmus.specs.files.toml_reader import Node
    from isolitmus.specs.sql.unsupported_pairs import Feature

HEAP = "heap"
"""Name of a scan without an index: in the order in which the rows were inserted."""
SUBQUERIES = ("once", "each")


def read_indexes(table: Node, columns: Sequence[Column]) -> tuple[Index, ...]:
    """Return the indexes in ``index = { by_k = "k", by_id = "unique id", latest = "day desc, id"
    }``.
    """
    if "index" not in table:
        return ()
    return tuple(_index(name, given, columns) for name, given in table.inner("index").items())


def _index(name: str, given: Node, columns: Sequence[Column]) -> Index:
    """Return an index written as "COLUMN [desc], …", optionally after "unique"."""
    if not NAME.fullmatch(name) or name == HEAP:
        given.refuse(
            f"index '{name}': a name is letters, digits and _, and not '{HEAP}'", given.path
        )
    if not isinstance(given.value, str):
        given.refuse(
            f'{given} is {show_value(given.value)}; expected columns, as "k" or "unique k desc, id"'
        )
    first, _, rest = given.value.strip().partition(" ")
    known = [column.name.lower() for column in columns]
    unique = first.lower() == "unique" and (bool(rest) or "unique" not in known)
    places: list[int] = []
    descending: list[bool] = []
    for part in (rest if unique else given.value).split(","):
        words = part.lower().split()
        if not words:
            given.refuse(f"{given} is an index on no column; write the column's name")
        if words[0] not in known:
            given.refuse(f"{given} names no column: '{words[0]}'{near(words[0], known)}")
        if words[1:] not in ([], ["asc"], ["desc"]):
            given.refuse(
                f"{given}: '{part.strip()}' is not a column of an index; write COLUMN or COLUMN"
                " desc"
            )
        if known.index(words[0]) in places:
            given.refuse(f"{given} names column '{words[0]}' twice")
        places.append(known.index(words[0]))
        descending.append(words[1:] == ["desc"])
    return Index(name, tuple(places), tuple(descending), unique)


def read_plan(given: Node, schemas: Mapping[str, Schema]) -> ClientSettings:
    """Return the client settings ``scan`` and ``subqueries`` of a transaction."""
    scan = read_scan(given, schemas)
    subqueries = given.get("subqueries", str, "once")
    if subqueries not in SUBQUERIES:
        given.refuse(f"{given}.subqueries is '{subqueries}'{near(subqueries, SUBQUERIES)}")
    return ClientSettings(scan=scan, each=subqueries == "each")


def read_scan(given: Node, schemas: Mapping[str, Schema]) -> str | tuple[str, ...]:
    """Return the value of ``scan``: an index, or a list of one for each scan."""
    indexes = [index.name for schema in schemas.values() for index in schema.indexes]
    scan = given.value.get("scan", ())
    names = [scan] if isinstance(scan, str) else scan
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        given.refuse(
            f"{given}.scan is {show_value(scan)}; an index, or a list of one for each scan, is"
            " wanted"
        )
    for name in names:
        if name not in (*indexes, HEAP):
            given.refuse(f"{given}.scan names no index: '{name}'{near(name, (*indexes, HEAP))}")
    return scan if isinstance(scan, str) else tuple(names)


IDENTITY = re.compile(
    r"(?i)GENERATED\s+(?P<when>ALWAYS|BY\s+DEFAULT)\s+AS\s+IDENTITY(?:\s*\("
    r"(?:\s*START\s+WITH\s+(?P<start>-?\d{1,9}))?"
    r"(?:\s*\bINCREMENT\s+BY\s+(?P<step>-?\d{1,9}))?\s*\))?\s*"
)
COLUMN_TYPE = re.compile(
    r"\s*(\S+)\s++(\w+\s*<.*>|\w+(?:\s*\([\d\s,]*\))?)\s*+(|.*\S)\s*", re.DOTALL
)
SWITCHES = ("delta.enabledeletionvectors", "delta.enablechangedatafeed")
"""Boolean table properties that a Parquet table may have."""


def read_tables(
    document: Node,
    read: Callable[[str, Node], Schema],
    statement: Callable[[str, Mapping[str, Schema], str], Statement] = read_statement,
) -> tuple[dict[str, Schema], tuple[tuple[Statement, ...], ...]]:
    """Return the tables of a document, and the alternatives for their initial contents.

    Parameters
    ----------
    document : Node
        Document with ``[table]`` or ``[tables]``.
    read : callable
        Parser of one table, from its name and node.
    statement : callable
        Parser of one SQL statement.

    Returns
    -------
    schemas : dict of str to Schema
        Tables by name.
    alternatives : tuple of tuple of Statement
        Init statements of all tables, for each alternative.
    """
    if "table" in document and "tables" in document:
        document.refuse("has [table] and [tables]; one table t or several named ones, not both")
    if "tables" in document:
        declared = dict(document.inner("tables").items())
    else:
        declared = {"t": document.inner("table")}
    if not declared:
        document.refuse("[tables] is empty")
    folded: dict[str, str] = {}
    for name, table in declared.items():
        if not NAME.fullmatch(name):
            table.refuse(f"table '{name}': a name is letters, digits and _", f"tables.{name}")
        other = folded.setdefault(name.lower(), name)
        if other != name:
            table.refuse(
                f"tables '{other}' and '{name}' have one name; SQL ignores case", f"tables.{name}"
            )
    schemas = {name: read(name, table) for name, table in declared.items()}
    alternatives: list[tuple[Statement, ...]] = [()]
    for table in declared.values():
        inits = table.get("init", list, [])
        lists = inits if inits and all(isinstance(i, list) for i in inits) else [inits]
        for init in lists:
            table.bounded(len(init), "init", INITS, "statements")
        table.bounded(len(alternatives) * len(lists), "init", INITS, "alternatives")
        alternatives = [
            before + tuple(_init(sql, table, schemas, statement) for sql in init)
            for before in alternatives
            for init in lists
        ]
    return schemas, tuple(alternatives)


def _init(
    sql: object,
    table: Node,
    schemas: Mapping[str, Schema],
    read: Callable[[str, Mapping[str, Schema], str], Statement],
) -> Statement:
    """Return a statement of `init`; refuse a query."""
    if not isinstance(sql, str):
        table.refuse(f"{table}.init holds {show_value(sql)}; expected SQL strings")
    statement = read(sql, schemas, f"{table.at('init').place}, in init")
    if isinstance(statement, Read):
        table.refuse(
            f"{table}.init holds a query, '{sql}'; only statements that write fill a table"
        )
    return statement


def read_table(
    name: str,
    table: Node,
    *,
    only_partitions: bool = False,
    indexed: bool = False,
    any_level: bool = False,
) -> Schema:
    """Return the schema of a declared table.

    Parameters
    ----------
    name : str
        Name of the table.
    table : Node
        Its keys.
    only_partitions : bool
        Whether every column may be a partition column.
    indexed : bool
        Whether the table may have indexes and does not consist of files.
    any_level : bool
        Whether any isolation level is accepted here; a run then checks which ones can be declared.
    """
    table.table()
    known = (
        "columns", "partitioned_by", "clustered_by", "properties", "rows_per_file", "init",
        "files", "exists", "parquet",
    )  # fmt: skip
    table.keys(("columns", "index", "init") if indexed else known)
    texts = _parts(table.get("columns", str))
    table.bounded(len(texts), "columns", COLUMNS, "columns")
    columns = tuple(_column(table, text, base=indexed) for text in texts)
    names = [c.name.lower() for c in columns]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        table.refuse(f"{table}.columns names '{twice}' twice")
    partitions = _some_columns(table, "partitioned_by", columns)
    for partition in partitions:
        column = columns[names.index(partition.lower())]
        if column.identity is not None:
            table.refuse(
                f"{table}.partitioned_by names the identity column {column.name}, which Delta"
                " rejects"
            )
    clusters = _some_columns(table, "clustered_by", columns)
    if len(partitions) == len(columns) and not only_partitions:
        table.refuse(
            f"{table}.partitioned_by takes every column; at least one must hold data, but where all"
            " transactions are raw"
        )
    rows_per_file = table.value.get("rows_per_file")
    if rows_per_file is not None and (type(rows_per_file) is not int or rows_per_file < 1):
        table.refuse(
            f"{table}.rows_per_file is {show_value(rows_per_file)}; expected an integer of at"
            " least 1"
        )
    properties = table.inner("properties", {})
    for key, value in properties.value.items():
        _property(properties, key, value, any_level=any_level)
    if why := retention_problem(properties.value):
        properties.refuse(f"{properties}: {why}, which Delta rejects")
    exists = table.get("exists", bool, default=True)
    parquet = _parquet(table, columns, partitions)
    found = _given(table) | ({"exists = false"} if not exists else set())
    refuse_together(found, table.refuse, str(table), table=name)
    return Schema(
        name,
        columns,
        partitions,
        properties.value,
        rows_per_file,
        exists=exists and not parquet,
        clustered_by=clusters,
        parquet=parquet,
        indexes=read_indexes(table, columns) if indexed else (),
    )


def _given(table: Node) -> set[Feature]:
    """Return the keys of a table with a nonempty value."""
    keys: set[Feature] = {"partitioned_by", "clustered_by", "init", "files", "properties"}
    return {key for key in keys if table.value.get(key)}


def _property(properties: Node, key: str, value: object, *, any_level: bool) -> None:
    """Check a property of a table that is created as declared."""
    if not isinstance(value, str):
        properties.refuse(f"{properties}: {key} is {show_value(value)}; expected a string")
    if key.startswith(SUPPORTED):
        name = key.removeprefix(SUPPORTED)
        if name not in FEATURES:
            properties.refuse(
                f"{properties}: the feature '{name}' is not modelled{near(name, FEATURES)}"
            )
        if value != "supported":
            properties.refuse(f"{properties}: {key} is {show_value(value)}; known: 'supported'")
        return
    if key == LEVEL_KEY and not any_level and value.lower() != LEVELS[0].lower():
        properties.refuse(
            f"{properties}: {key} is {show_value(value)}, and Delta takes only '{LEVELS[0]}' from a"
            " user; leave it out, and the protocol of a run says the level, as"
            " delta-write-serializable does"
        )
    why = unmodelled_property(key, value, made=True)
    if why:
        properties.refuse(f"{properties}: {why}")


def _parquet(table: Node, columns: tuple[Column, ...], partitions: tuple[str, ...]) -> Rows:
    """Return the rows of a Parquet table that is to be converted; none for a Delta table."""
    if "parquet" not in table:
        return ()
    keys: set[Feature] = {"parquet", "init", "files", "exists", "clustered_by"}
    refuse_together(keys & table.value.keys(), table.refuse, str(table))
    rows = table.at("parquet").rows([c.type for c in columns])
    if not rows:
        table.refuse(f"{table}.parquet is empty; Delta converts no table without files")
    last = [c.name.lower() for c in columns[len(columns) - len(partitions) :]]
    if [name.lower() for name in partitions] != last:
        table.refuse(f"{table}.partitioned_by: the partition columns of a Parquet table come last")
    if any(column.identity is not None for column in columns):
        refuse_together({"parquet", "identity columns"}, table.refuse, str(table))
    for key in table.value.get("properties", {}):
        if key.lower() not in SWITCHES:
            both: set[Feature] = {"parquet", "a property that is no switch"}
            refuse_together(both, table.refuse, str(table), key=key)
    return rows


def _parts(text: str) -> list[str]:
    """Return the parts of a text between commas outside of brackets."""
    found, depth = [""], 0
    for sign in text:
        depth += (sign in "(<") - (sign in ")>")
        if sign == "," and depth == 0:
            found.append("")
        else:
            found[-1] += sign
    return found


def _some_columns(table: Node, key: str, columns: Sequence[Column]) -> tuple[str, ...]:
    """Return the names of some of a table's columns, in the case of `columns`, which are all."""
    given = table.strings(key)
    names = {column.name.lower(): column.name for column in columns}
    if len({name.lower() for name in given}) < len(given):
        table.refuse(f"{table}.{key} names a column twice")
    for name in given:
        if name.lower() not in names:
            table.refuse(f"{table}.{key} names no column: '{name}'{near(name, names)}")
    return tuple(names[name.lower()] for name in given)


def _column(table: Node, text: str, *, base: bool) -> Column:
    """Return the column written as "NAME TYPE"; a `base` column has one of the base types."""
    words = COLUMN_TYPE.fullmatch(text)
    if words is None or not NAME.fullmatch(words[1]):
        table.refuse(f"{table}.columns: '{text.strip()}' is not a column; write NAME TYPE, …")
    type_ = column_type(words[2])
    if type_ is None or (base and type_ not in BASE_TYPES):
        known = BASE_TYPES if base else NAMED_TYPES
        table.refuse(f"{table}.columns: no type '{words[2]}'{near(words[2].upper(), known)}")
    return Column(words[1], type_, _identity(table, words[1], type_, words[3]))


def _identity(table: Node, name: str, type_: str, text: str = "") -> Identity | None:
    """Return the identity that follows the type of a column, if any."""
    if not text:
        return None
    found = IDENTITY.fullmatch(text)
    start, step = (1, 1) if found is None else (int(found[k] or 1) for k in ("start", "step"))
    # A sequence that reaches 0 is excluded: Delta takes 0 for the value of an INSERT without rows.
    if found is None or type_ != "BIGINT" or start * step <= 0:
        table.refuse(
            f"{table}.columns: '{name} {type_} {text.strip()}' is not a column; write NAME TYPE, or"
            " NAME BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 1 INCREMENT BY 1), or BY DEFAULT"
            " for ALWAYS; with numbers of at most 9 digits, both above 0 or both below"
        )
    return Identity(found["when"].upper() == "ALWAYS", start, step)
