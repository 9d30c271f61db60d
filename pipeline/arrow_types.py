"""Conversion of SQL types to Arrow types."""

from __future__ import annotations

from functools import cache

import pyarrow as pa
from sqlglot import expressions as exp

PLAIN = {
    exp.DataType.Type.BIGINT: pa.int64(),
    exp.DataType.Type.BOOLEAN: pa.bool_(),
    exp.DataType.Type.DATE: pa.date32(),
    exp.DataType.Type.DOUBLE: pa.float64(),
    exp.DataType.Type.FLOAT: pa.float32(),
    exp.DataType.Type.INT: pa.int32(),
    exp.DataType.Type.SMALLINT: pa.int16(),
    exp.DataType.Type.TEXT: pa.string(),
    exp.DataType.Type.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    exp.DataType.Type.TINYINT: pa.int8(),
}


@cache
def arrow_type(sql: str) -> pa.DataType:
    """Return the Arrow type that Spark accepts for a SQL type; raise KeyError if unsupported.

    Examples
    --------
    >>> str(arrow_type("ARRAY<STRUCT<id: INT, name: STRING>>"))
    'list<item: struct<id: int32, name: string>>'
    """
    return _of(exp.DataType.build(sql, dialect="spark"))


def _of(type_: exp.DataType) -> pa.DataType:
    """Return the Arrow type of a parsed SQL type; DECIMAL without digits is DECIMAL(10,0)."""
    inside = type_.expressions
    match type_.this:
        case exp.DataType.Type.ARRAY:
            return pa.list_(_of(inside[0]))
        case exp.DataType.Type.STRUCT:
            return pa.struct([(part.name, _of(part.args["kind"])) for part in inside])
        case exp.DataType.Type.DECIMAL:
            precision, scale = (int(part.name) for part in inside) if inside else (10, 0)
            return pa.decimal128(precision, scale)
    return PLAIN[type_.this]
