"""What DuckDB computes otherwise than Spark: casts, and functions that fail there and not here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
from sqlglot import expressions as exp

from isolitmus.model.sql_types import INTEGERS, decimal_of, type_named
from isolitmus.specs.sql_literals import CAST_OF, GIVES

if TYPE_CHECKING:
    from isolitmus.model.sql_types import Type

__all__ = ["as_spark_computes", "taught_duck"]

BLANK = "E' \\t\\r\\n'"
MACROS = (
    f"""CREATE OR REPLACE MACRO text_of_whole(x) AS CASE WHEN x IS NULL THEN NULL
    WHEN regexp_full_match(trim(x, {BLANK}), '[+-]?[0-9]+') THEN ltrim(trim(x, {BLANK}), '+')
    ELSE error('no whole number') END""",
    f"""CREATE OR REPLACE MACRO text_of_number(x) AS CASE WHEN x IS NULL THEN NULL
    WHEN regexp_full_match(trim(x, {BLANK}), '[+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][+-]?[0-9]+)?')
    THEN ltrim(trim(x, {BLANK}), '+') ELSE error('no number') END""",
    f"""CREATE OR REPLACE MACRO text_of_moment(x) AS CASE WHEN x IS NULL THEN NULL
    WHEN regexp_full_match(trim(x, {BLANK}), '\\d{{4}}-\\d\\d-\\d\\d([ T]\\d\\d:\\d\\d:\\d\\d(\\.\\d{{1,6}})?)?')
    THEN trim(x, {BLANK}) ELSE error('no date') END""",
    f"""CREATE OR REPLACE MACRO text_of_truth(x) AS CASE WHEN x IS NULL THEN NULL
    WHEN lower(trim(x, {BLANK})) IN ('t', 'true', 'y', 'yes', '1') THEN 'true'
    WHEN lower(trim(x, {BLANK})) IN ('f', 'false', 'n', 'no', '0') THEN 'false'
    ELSE error('no truth value') END""",
    """CREATE OR REPLACE MACRO quotient(a, b) AS CASE WHEN a IS NULL OR b IS NULL THEN NULL
    WHEN b = 0 THEN error('division by zero') ELSE a / b END""",
    """CREATE OR REPLACE MACRO part_of_text(x, start, n) AS CASE
    WHEN x IS NULL OR start IS NULL OR n IS NULL THEN NULL ELSE
    substring(x, greatest(CASE WHEN start > 0 THEN start WHEN start = 0 THEN 1 ELSE length(x) + start + 1 END, 1),
    greatest(CASE WHEN start > 0 THEN start WHEN start = 0 THEN 1 ELSE length(x) + start + 1 END + n, 1)
    - greatest(CASE WHEN start > 0 THEN start WHEN start = 0 THEN 1 ELSE length(x) + start + 1 END, 1)) END""",
)
"""What a DuckDB is taught: texts that Spark casts, else an error, and functions as Spark has them."""
ALL = 2**31 - 1
"""The length of a substring without one."""


def taught_duck() -> duckdb.DuckDBPyConnection:
    """An empty DuckDB that has the functions that ``as_spark_computes`` asks for.

    >>> taught_duck().execute("SELECT text_of_moment(' 2026-01-02')").fetchone()
    ('2026-01-02',)
    """
    duck = duckdb.connect(":memory:")
    for macro in MACROS:
        duck.execute(macro)
    return duck


def as_spark_computes(node: exp.Expr) -> exp.Expr:
    """A node, with what is in it translated already, as Spark computes it."""
    meta, found = node.meta, node
    if isinstance(node, exp.Cast):
        found = _cast(node.this, *_types(node))
    elif isinstance(node, exp.Div):
        found = exp.Anonymous(this="quotient", expressions=[node.this, node.expression])
    elif isinstance(node, exp.Substring):
        length = node.args.get("length") or exp.Literal.number(ALL)
        parts = [node.this, node.args["start"], length]
        found = exp.Anonymous(this="part_of_text", expressions=parts)
    elif isinstance(node, exp.TsOrDsToDate):
        found = node.this
    elif isinstance(node, exp.Sum):
        found = _typed(node.copy(), meta.get(GIVES, "BIGINT"))  # DuckDB's is wider
    elif GIVES in meta and not isinstance(node, exp.Literal | exp.Paren):
        found = _typed(node.copy(), meta[GIVES])
    if CAST_OF in meta:
        found = _cast(found if found is not node else node.copy(), *meta[CAST_OF])
    return found


def _types(node: exp.Cast) -> tuple[Type | None, Type | None]:
    target = type_named(node.to.sql(dialect="databricks"))
    return node.meta.get(GIVES), target


def _cast(operand: exp.Expr, source: Type | None, target: Type | None) -> exp.Expr:
    assert target is not None, "the SQL reader lets only types that it knows into a CAST"
    if source == "STRING" and target != "STRING":
        operand = exp.Anonymous(this=_macro(target), expressions=[operand])
    elif target in INTEGERS and source is not None and _fractional(source):
        operand = exp.Anonymous(this="trunc", expressions=[operand])
    return _typed(operand, target)


def _macro(target: Type) -> str:
    if target in INTEGERS:
        return "text_of_whole"
    if target in ("DATE", "TIMESTAMP"):
        return "text_of_moment"
    return "text_of_truth" if target == "BOOLEAN" else "text_of_number"


def _fractional(type_: Type) -> bool:
    return type_ == "DOUBLE" or decimal_of(type_) is not None


def _typed(node: exp.Expr, type_: Type) -> exp.Expr:
    return exp.Cast(this=node, to=exp.DataType.build(type_, dialect="duckdb"))
