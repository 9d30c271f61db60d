"""Differences between DuckDB and Spark: casts, and functions that fail only in Spark."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.model.errors import LitmusError
from isolitmus.model.sql.types import INTEGERS, RANGES, decimal_of, is_opaque, type_named
from isolitmus.model.sql.values import literal
from isolitmus.specs.sql.functions import CAST_OF, GIVES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import duckdb

    from isolitmus.model.sql.schema import Column, Schema
    from isolitmus.model.sql.types import Type

FUNCTIONS: Mapping[type[exp.Expr], str] = {
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
}
"""Functions for arithmetic operators.

DuckDB rewrites ``x + 1 < 5`` to ``x < 4``, which never fails.
"""
BLANK = "E' \\t\\r\\n'"
"""SQL literal of the characters that Spark trims before a cast."""
MACROS = (
    f"""CREATE OR REPLACE MACRO text_of_whole(x) AS CASE WHEN x IS NULL THEN NULL
    WHEN regexp_full_match(trim(x, {BLANK}), '[+-]?[0-9]+') THEN ltrim(trim(x, {BLANK}), '+')
    ELSE error('no whole number') END""",
    f"""CREATE OR REPLACE MACRO text_of_number(x) AS CASE WHEN x IS NULL THEN NULL
    WHEN regexp_full_match(trim(x, {BLANK}), \
'[+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][+-]?[0-9]+)?')
    THEN ltrim(trim(x, {BLANK}), '+') ELSE error('no number') END""",
    f"""CREATE OR REPLACE MACRO text_of_moment(x) AS CASE WHEN x IS NULL THEN NULL
    WHEN regexp_full_match(trim(x, {BLANK}), '\\d{{4}}-\\d\\d-\\d\\d([ \
T]\\d\\d:\\d\\d:\\d\\d(\\.\\d{{1,6}})?)?')
    THEN trim(x, {BLANK}) ELSE error('no date') END""",
    f"""CREATE OR REPLACE MACRO text_of_truth(x) AS CASE WHEN x IS NULL THEN NULL
    WHEN lower(trim(x, {BLANK})) IN ('t', 'true', 'y', 'yes', '1') THEN 'true'
    WHEN lower(trim(x, {BLANK})) IN ('f', 'false', 'n', 'no', '0') THEN 'false'
    ELSE error('no truth value') END""",
    """CREATE OR REPLACE MACRO quotient(a, b) AS CASE WHEN a IS NULL OR b IS NULL THEN NULL
    WHEN b = 0 THEN error('division by zero') ELSE a / b END""",
    """CREATE OR REPLACE MACRO whole_of(x) AS CAST(replace(CAST(x AS VARCHAR), '.', '') AS \
HUGEINT)""",
    """CREATE OR REPLACE MACRO scale_of(x) AS CASE WHEN strpos(CAST(x AS VARCHAR), '.') = 0 THEN 0
    ELSE length(CAST(x AS VARCHAR)) - strpos(CAST(x AS VARCHAR), '.') END""",
    """CREATE OR REPLACE MACRO rounded(n, d) AS n // d + CASE WHEN n % d >= d - n % d THEN 1 \
ELSE 0 END""",
    """CREATE OR REPLACE MACRO with_point(n, scale) AS
    CAST(n // CAST('1' || repeat('0', scale) AS HUGEINT) AS VARCHAR) || '.' ||
    lpad(CAST(n % CAST('1' || repeat('0', scale) AS HUGEINT) AS VARCHAR), scale, '0')""",
    """CREATE OR REPLACE MACRO decimal_quotient(a, b, scale) AS CASE WHEN a IS NULL OR b IS NULL \
THEN NULL
    WHEN b = 0 THEN error('division by zero') ELSE CASE WHEN (a < 0) <> (b < 0) THEN '-' ELSE '' \
END ||
    with_point(rounded(abs(whole_of(a)) * CAST('1' || repeat('0', scale + scale_of(b) - \
scale_of(a)) AS HUGEINT),
    abs(whole_of(b))), scale) END""",
    """CREATE OR REPLACE MACRO scientific(digits, power) AS digits[1] || '.' ||
    CASE WHEN length(rtrim(digits, '0')) > 1 THEN rtrim(digits, '0')[2:] ELSE '0' END || 'E' || \
power""",
    """CREATE OR REPLACE MACRO text_of_positive(s) AS CASE
    WHEN contains(s, 'e') THEN scientific(replace(split_part(s, 'e', 1), '.', ''), \
CAST(CAST(split_part(s, 'e', 2) AS INT) AS VARCHAR))
    WHEN CAST(s AS DOUBLE) >= 1e7 THEN scientific(replace(s, '.', ''), CAST(strpos(s, '.') - 2 \
AS VARCHAR))
    WHEN CAST(s AS DOUBLE) >= 1e-3 THEN s
    ELSE scientific(ltrim(replace(s, '.', ''), '0'),
    CAST(length(ltrim(replace(s, '.', ''), '0')) - length(s) + 1 AS VARCHAR)) END""",
    """CREATE OR REPLACE MACRO text_of_double(x) AS CASE WHEN x IS NULL THEN NULL WHEN x < 0
    THEN '-' || text_of_positive(CAST(-x AS VARCHAR)) ELSE text_of_positive(CAST(x AS VARCHAR)) \
END""",
    """CREATE OR REPLACE MACRO part_of_text(x, start, n) AS CASE
    WHEN x IS NULL OR start IS NULL OR n IS NULL THEN NULL ELSE
    substring(x, greatest(CASE WHEN start > 0 THEN start WHEN start = 0 THEN 1 ELSE length(x) + \
start + 1 END, 1),
    greatest(CASE WHEN start > 0 THEN start WHEN start = 0 THEN 1 ELSE length(x) + start + 1 END \
+ n, 1)
    - greatest(CASE WHEN start > 0 THEN start WHEN start = 0 THEN 1 ELSE length(x) + start + 1 \
END, 1)) END""",
)
"""DuckDB macros for Spark's semantics.

They return texts that Spark can cast, else an error, and compute functions as Spark does.
"""
ALL = 2**31 - 1
"""Length of a substring that has no length argument."""


def open_duck() -> duckdb.DuckDBPyConnection:
    """Return an empty DuckDB for SQL from a file; it accesses nothing but its own tables.

    >>> open_duck().execute("FROM read_text('/etc/hostname')")
    Traceback (most recent call last):
    _duckdb.PermissionException: ...
    """
    import duckdb

    return duckdb.connect(":memory:", config={"enable_external_access": "false", "threads": "1"})


@contextmanager
def rolled_back(duck: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Open a transaction, and roll it back at the end of the block.

    A limit may have interrupted an earlier block before its end: what it left open is rolled back.
    """
    roll_back(duck)
    duck.execute("BEGIN TRANSACTION")
    try:
        yield
    finally:
        duck.execute("ROLLBACK")


def roll_back(duck: duckdb.DuckDBPyConnection) -> None:
    """Roll back the transaction that is open, if there is one."""
    import duckdb

    with suppress(duckdb.TransactionException):
        duck.execute("ROLLBACK")


def unsupported_by_duckdb(error: duckdb.Error) -> LitmusError:
    """Return the error for a statement that the model can execute and DuckDB cannot."""
    said = str(error).splitlines()[0]
    return LitmusError(
        f"DuckDB, which executes the serial orders, does not support a statement: {said}"
    )


def open_duck_with_macros() -> duckdb.DuckDBPyConnection:
    """Return an empty DuckDB with the functions that `to_duck_sql` uses.

    >>> open_duck_with_macros().execute("SELECT text_of_moment(' 2026-01-02')").fetchone()
    ('2026-01-02',)
    """
    duck = open_duck()
    for macro in MACROS:
        duck.execute(macro)
    return duck


def to_duck_sql(tree: exp.Expr) -> str:
    """Return the DuckDB text of a statement, or of a part of one, with Spark's semantics."""
    root = tree.copy()
    for node in reversed(list(root.walk())):
        computed = _computed(node)
        if node is root:
            root = computed
        elif computed is not node:
            node.replace(computed)
    return root.sql(dialect="duckdb", identify=True)  # a column may be called desc or end


def _computed(node: exp.Expr) -> exp.Expr:
    """Return a node with arithmetic as functions, and other differences from Spark removed."""
    found = node
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        found = node.copy()
        if node.this.is_int:
            value = -int(node.this.this)
            narrow = next(name for name, (low, _) in RANGES.items() if low <= value)
            found = exp.cast(exp.Literal.number(value), narrow)  # DuckDB's -2147483648 is a BIGINT
    elif isinstance(node, exp.Neg):
        zero = exp.Literal.number(0)
        found = exp.Anonymous(this="subtract", expressions=[zero, node.this])
    elif type(node) in FUNCTIONS and not any(
        isinstance(part, exp.Interval) for part in (node.this, node.expression)
    ):
        parts = [node.this, node.expression]
        found = exp.Anonymous(this=FUNCTIONS[type(node)], expressions=parts)
    elif isinstance(node, exp.Mod):
        found = _remainder(node.this, node.expression)
    elif isinstance(node, exp.Alias) and isinstance(node.parent, exp.Tuple):
        found = node.this  # Spark names a value of a row, but no expression can use the name
    if found is not node:
        found.meta.update(node.meta)
    return _as_spark_computes(found)


def _remainder(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Return a remainder that is computed only if the divisor is not zero.

    DuckDB computes both sides first, and fails for a divisor of −1 if the quotient would be too
    large.
    """

    def by(number: int) -> exp.Expr:
        return exp.EQ(this=exp.paren(right.copy()), expression=exp.Literal.number(number))

    fails = exp.Anonymous(this="error", expressions=[exp.Literal.string("a remainder by zero")])
    known = exp.Is(this=exp.paren(left.copy()), expression=exp.null()).not_()
    found = exp.Case(default=exp.Mod(this=left.copy(), expression=right.copy()))
    found = found.when(exp.Is(this=exp.paren(right.copy()), expression=exp.null()), exp.null())
    found = found.when(by(0), exp.Case().when(known, fails))
    return exp.paren(found.when(by(-1), exp.Sub(this=left.copy(), expression=left.copy())))


def _as_spark_computes(node: exp.Expr) -> exp.Expr:
    """Return a node with Spark's semantics; its parts are translated already."""
    meta, found = node.meta, node
    if isinstance(node, exp.Cast):
        found = _cast(node.this, *_types(node))
    elif isinstance(node, exp.Div):
        found = _quotient(node)
    elif isinstance(node, exp.Substring):
        length = node.args.get("length") or exp.Literal.number(ALL)
        parts = [node.this, node.args["start"], length]
        found = exp.Anonymous(this="part_of_text", expressions=parts)
    elif isinstance(node, exp.SHA2):
        found = exp.Anonymous(this="sha256", expressions=[node.this])
    elif isinstance(node, exp.TsOrDsToDate):
        found = node.this
    elif isinstance(node, exp.Sum):
        found = _typed(node.copy(), meta.get(GIVES, "BIGINT"))  # DuckDB's SUM has a wider type
    elif GIVES in meta and not isinstance(node, exp.Literal | exp.Paren):
        found = _typed(node.copy(), meta[GIVES])
    if CAST_OF in meta:
        found = _cast(found if found is not node else node.copy(), *meta[CAST_OF])
    return found


def _quotient(node: exp.Div) -> exp.Expr:
    """Return a quotient; a quotient of decimals has all the digits of its type."""
    parts, found = [node.this, node.expression], decimal_of(node.meta.get(GIVES, ""))
    if found is None:
        return exp.Anonymous(this="quotient", expressions=parts)
    scale = exp.Literal.number(found[1])
    exact = exp.Anonymous(this="decimal_quotient", expressions=[*parts, scale])
    return _typed(exact, node.meta[GIVES])


def _types(node: exp.Cast) -> tuple[Type | None, Type | None]:
    target = type_named(node.to.sql(dialect="databricks"))
    return node.meta.get(GIVES), target


def _cast(operand: exp.Expr, source: Type | None, target: Type | None) -> exp.Expr:
    """Return a cast in DuckDB that gives the value that Spark gives."""
    assert target is not None, "the SQL reader lets only types that it knows into a CAST"
    if source == "STRING" and target != "STRING":
        operand = exp.Anonymous(this=_macro(target), expressions=[operand])
    elif target in INTEGERS and source is not None and _fractional(source):
        operand = exp.Anonymous(this="trunc", expressions=[operand])
    elif (source, target) == ("DOUBLE", "STRING"):
        operand = exp.Anonymous(this="text_of_double", expressions=[operand])
    return _typed(operand, target)


def _macro(target: Type) -> str:
    """Return the name of the DuckDB macro that prepares text for a cast to a type."""
    if target in INTEGERS:
        return "text_of_whole"
    if target in ("DATE", "TIMESTAMP"):
        return "text_of_moment"
    return "text_of_truth" if target == "BOOLEAN" else "text_of_number"


def _fractional(type_: Type) -> bool:
    return type_ == "DOUBLE" or decimal_of(type_) is not None


def _typed(node: exp.Expr, type_: Type) -> exp.Expr:
    return exp.Cast(this=node, to=exp.DataType.build(type_, dialect="duckdb"))


def create_table(schema: Schema, verb: str = "CREATE OR REPLACE TABLE") -> str:
    """Return the statement that creates a table as declared, without rows."""
    return f'{verb} "{schema.name}" ({columns_of(schema)})'


def fill_table(schema: Schema) -> list[str]:
    """Return the statement that inserts a table's initial rows, if it has any."""
    rows = [f"({', '.join(map(literal, r.values))})" for file in schema.held for r in file.rows]
    return [f'INSERT INTO "{schema.name}" VALUES {", ".join(rows)}'] if rows else []


def sequences(schema: Schema) -> list[str]:
    """Return the statements that create a sequence for each identity column of a new table."""
    made = [
        _sequence(schema.name, column, column.identity.start)
        for column in schema.columns
        if column.identity is not None
    ]
    return [*made, *sequence_defaults(schema, schema.name)]


def resume_sequence(table: str, column: Column, value: int) -> list[str]:
    """Return the statements after which an identity column continues with a value."""
    alter = f'ALTER TABLE "{table}" ALTER "{column.name}"'
    return [
        f"{alter} DROP DEFAULT",
        _sequence(table, column, value),
        _default(table, table, column),
    ]


def _sequence(table: str, column: Column, first: int) -> str:
    """Return the statement that creates the sequence of an identity column from a first value."""
    low, high = RANGES["BIGINT"]
    assert column.identity is not None
    return (
        f'CREATE OR REPLACE SEQUENCE "{table}.{column.name}" MINVALUE {low} MAXVALUE {high}'
        f" START WITH {first} INCREMENT BY {column.identity.step}"
    )


def sequence_defaults(schema: Schema, table: str) -> list[str]:
    """Return the statements that make sequences the defaults of a table's identity columns."""
    return [
        _default(table, schema.name, column)
        for column in schema.columns
        if column.identity is not None
    ]


def _default(table: str, source: str, column: Column) -> str:
    sequence = f'"{source}.{column.name}"'
    return f'ALTER TABLE "{table}" ALTER "{column.name}" SET DEFAULT nextval(\'{sequence}\')'


def columns_of(schema: Schema) -> str:
    """Return the column list of a table's declaration."""
    return ", ".join(map(_column, schema.columns))


def _column(column: Column) -> str:
    return f'"{column.name}" {"VARCHAR" if is_opaque(column.type) else column.type}'
