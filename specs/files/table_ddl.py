"""CREATE TABLE statements: parser of the definition of an existing table, and writer for Spark.

The parser reads columns, partitions and properties. Parts that do not affect commits (comments, a
location, NOT NULL, defaults) are ignored.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlglot import expressions as exp

from isolitmus.model.delta.log import LEVEL_KEY
from isolitmus.model.errors import SqlError
from isolitmus.specs.files.toml_reader import DELTA
from isolitmus.specs.sql.source_text import DIALECT, SqlText
from isolitmus.specs.sql.syntax import Syntax, well_formed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.model.sql.schema import Schema
    from isolitmus.specs.files.toml_reader import TomlTable

SILENT = (
    exp.NotNullColumnConstraint,
    exp.CommentColumnConstraint,
    exp.DefaultColumnConstraint,
    exp.PrimaryKeyColumnConstraint,
    exp.CheckColumnConstraint,
    exp.Reference,
)
"""Column constraints that no commit check uses."""
ASIDE_COLUMNS = (exp.PrimaryKey, exp.ForeignKey, exp.Constraint, exp.CheckColumnConstraint)
ASIDE = (exp.SchemaCommentProperty, exp.LocationProperty, exp.FileFormatProperty)


class TableDeclaration(NamedTuple):
    """Declaration of a table in the statement that creates it."""

    name: str
    """Name of the table."""
    table: TomlTable
    """Keys of a litmus file for the table."""
    level: str | None
    """Isolation level, if it is given."""
    format: str = DELTA
    """Format of its files."""
    checked: tuple[str, ...] = ()
    """Constraints on every row, as written."""
    defaults: tuple[str, ...] = ()
    """Names of the columns with DEFAULT, in lower case."""
    generated: tuple[tuple[str, str], ...] = ()
    """Generated columns, each with its expression."""
    not_null: frozenset[str] = frozenset()
    """Columns of a Delta table that are NOT NULL or in its primary key, in lower case."""


def read_ddl(text: str, label: str, *, source: bool = False) -> TableDeclaration:
    """Return the table that a statement creates; SqlError, with the place, for any other statement.

    A ``source`` of a workload may have another format than Delta, whose properties are then
    ignored, and generated columns.

    Examples
    --------
    >>> found = read_ddl(
    ...     "CREATE TABLE shop.orders (id INT NOT NULL, day DATE) USING delta PARTITIONED BY (day)",
    ...     "f",
    ... )
    >>> found.name, found.table
    ('orders', {'columns': 'id INT, day DATE', 'partitioned_by': ['day']})
    """
    try:
        found = _known(text, source=source)
    except SqlError:  # once more, for the label in its message
        with well_formed(text, label):
            found = _declared(text, label, source=source)
    return found._replace(table=deepcopy(found.table))


@lru_cache(maxsize=4096)
def _known(text: str, *, source: bool) -> TableDeclaration:
    """Return the declaration in a text that may be read several times."""
    with well_formed(text, ""):
        return _declared(text, "", source=source)


def _declared(text: str, label: str, *, source: bool) -> TableDeclaration:
    """Return the declaration in a CREATE TABLE; only a `source` need not be a Delta table."""
    place = SqlText(text, label)
    tree = Syntax(text, label).tree()
    schema = tree.this
    if not (
        isinstance(tree, exp.Create) and tree.kind == "TABLE" and isinstance(schema, exp.Schema)
    ):
        place.refuse(tree, "a table's DDL is CREATE TABLE name (column TYPE, …) USING delta …")
    table: dict[str, Any] = {"columns": ", ".join(_columns(schema, place, source=source))}
    properties = tree.args.get("properties")
    level: str | None = None
    format_: str = DELTA
    for found in properties.expressions if properties is not None else ():
        match found:
            case exp.PartitionedByProperty():
                table["partitioned_by"] = [_name(part) for part in found.this.expressions]
            case exp.ClusterProperty() | exp.Cluster():
                table["clustered_by"] = [_name(part) for part in found.expressions]
            case exp.Property() if type(found) is exp.Property:
                key, value = _key(found.this), found.args["value"].name or found.args["value"].sql()
                if key.lower() == LEVEL_KEY.lower():
                    level = value
                else:
                    table.setdefault("properties", {})[key] = value.lower()
        if isinstance(found, exp.FileFormatProperty):
            if not isinstance(found.this, exp.Expr):
                place.refuse(found, "USING names no format; write USING delta", "syntax")
            format_ = found.this.name.lower()
            if format_ != DELTA and not source:
                place.refuse(found, f"a table of format {format_} has no commit check; USING delta")
    if format_ != DELTA:
        table = {key: table[key] for key in ("columns", "partitioned_by") if key in table}
        return TableDeclaration(schema.this.name, table, None, format_)
    defaults = (
        column.name.lower()
        for column in schema.find_all(exp.ColumnDef)
        if any(isinstance(one.kind, exp.DefaultColumnConstraint) for one in column.constraints)
    )
    checked = tuple(_checked(schema, place, source=source))
    generated = (
        (column.name, one.kind.this.unnest().sql(DIALECT))
        for column in schema.find_all(exp.ColumnDef)
        for one in column.constraints
        if isinstance(one.kind, exp.ComputedColumnConstraint)
    )
    return TableDeclaration(
        schema.this.name,
        table,
        level,
        checked=checked,
        defaults=tuple(defaults),
        generated=tuple(generated),
        not_null=frozenset(_not_null(schema)),
    )


def _not_null(schema: exp.Schema) -> Iterator[str]:
    """Yield the columns that are NOT NULL or in the primary key, in lower case."""
    required = exp.NotNullColumnConstraint, exp.PrimaryKeyColumnConstraint
    for column in schema.expressions:
        for constraint in getattr(column, "constraints", ()):
            kind = constraint.kind
            if isinstance(kind, required) and not kind.args.get("allow_null"):
                yield column.name.lower()
    for key in schema.find_all(exp.PrimaryKey):
        yield from (part.name.lower() for part in key.expressions)


def _has_length(column: exp.Expr) -> bool:
    """Return whether a column is VARCHAR(n): a STRING in Delta, of which writes check the length.

    CHAR(n) is padded in addition, and compares without trailing blanks.
    """
    kind = column.args.get("kind")
    return isinstance(kind, exp.DataType) and kind.this == exp.DType.VARCHAR


def _checked(schema: exp.Schema, place: SqlText, *, source: bool) -> Iterator[str]:
    """Yield NOT NULL and CHECK constraints, and the lengths of columns of a ``source``: a violation
    fails its own statement, and no other.
    """
    for column in schema.expressions:
        if source and _has_length(column):
            yield f"{column.name} {_type_text(column.args['kind'])}"
        for constraint in getattr(column, "constraints", ()):
            if isinstance(constraint.kind, exp.NotNullColumnConstraint):
                yield f"{column.name} NOT NULL"
    yield from map(place.written, schema.find_all(exp.CheckColumnConstraint))


def _columns(schema: exp.Schema, place: SqlText, *, source: bool) -> Iterator[str]:
    """Yield "NAME TYPE" for each column, with its identity clause; refuse other constraints, those
    of generated columns unless for a workload's ``source``.
    """
    for column in schema.expressions:
        if isinstance(column, ASIDE_COLUMNS):
            continue
        if not isinstance(column, exp.ColumnDef) or column.args.get("kind") is None:
            place.refuse(column, f"'{place.written(column)}' is not a column; write NAME TYPE")
        bounded = source and _has_length(column)
        said = f"{column.name} {'STRING' if bounded else _type_text(column.args['kind'])}"
        for constraint in column.constraints:
            match constraint.kind:
                case exp.GeneratedAsIdentityColumnConstraint(this=always) as identity:
                    start = identity.args.get("start") or 1
                    step = identity.args.get("increment") or 1
                    when = "ALWAYS" if always else "BY DEFAULT"
                    said += (
                        f" GENERATED {when} AS IDENTITY (START WITH {start} INCREMENT BY {step})"
                    )
                case exp.ComputedColumnConstraint() if not source:
                    place.refuse(
                        constraint,
                        f"'{place.written(constraint)}' on a column is modelled only in workloads;"
                        f" declare it as {said}",
                    )
                case exp.ComputedColumnConstraint():
                    continue
                case kind if not isinstance(kind, SILENT):
                    place.refuse(
                        constraint, f"'{place.written(constraint)}' on a column is not modelled"
                    )
        yield said


def _type_text(kind: exp.Expr) -> str:
    """Return the text of a type."""
    given = {key for key, value in kind.args.items() if value}
    plain = isinstance(kind, exp.DataType) and given == {"this"} and not kind.comments
    return _plain_type(kind.this) if plain else kind.sql(DIALECT)


@cache
def _plain_type(name: exp.DType) -> str:
    """Return the text of a type without parameters."""
    return exp.DataType(this=name).sql(DIALECT)


def _name(part: exp.Expr) -> str:
    return (
        part.name if isinstance(part, exp.Identifier | exp.Column | exp.ColumnDef) else part.sql()
    )


def _key(part: exp.Expr) -> str:
    return part.name if isinstance(part, exp.Literal) else part.sql().replace(" ", "")


def table_ddl(name: str, schema: Schema, format_: str = "delta") -> str:
    """Return the statement that creates the table with this name.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> table_ddl("t", Schema("t", (Column("id", "INT"), Column("day", "INT")), ("day",)))
    'CREATE TABLE t (id INT, day INT) USING delta PARTITIONED BY (day)'
    """
    parts = [f"CREATE TABLE {name} ({schema.ddl()}) USING {format_}"]
    if schema.partitioned_by:
        parts.append(f"PARTITIONED BY ({', '.join(schema.partitioned_by)})")
    if schema.clustered_by:
        parts.append(f"CLUSTER BY ({', '.join(schema.clustered_by)})")
    if schema.properties:
        pairs = (f"{_text(key)} = {_text(value)}" for key, value in schema.properties.items())
        parts.append(f"TBLPROPERTIES ({', '.join(pairs)})")
    return " ".join(parts)


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
