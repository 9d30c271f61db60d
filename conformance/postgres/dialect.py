"""What is said otherwise to PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.conformance.gated import Dialect

if TYPE_CHECKING:
    from isolitmus.model.schema import Column, Index, Schema

__all__ = ["POSTGRES_SQL"]

TYPES = {"INT": "INT", "BIGINT": "BIGINT", "STRING": "TEXT", "DATE": "DATE", "BOOLEAN": "BOOLEAN"}


def _text(tree: exp.Expr) -> str:
    return tree.sql(dialect="postgres")


def _cell(_column: Column, value: exp.Expr) -> exp.Expr:
    return exp.Cast(this=value, to=exp.DataType.build("text"))


def _hint(_index: Index | None) -> str:
    """It takes none."""
    return ""


def _steer(_tree: exp.Update | exp.Delete, _schema: Schema, _index: Index | None) -> None:
    """Nor here."""


POSTGRES_SQL = Dialect(
    _text, TYPES, _cell, _hint, _steer, "SELECT * FROM {}", dirty=False, snapshot=True
)
