"""What of a statement nobody can compute: opaque expressions, and parameters without a value."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

from isolitmus.model.memo import by_object
from isolitmus.model.sql.expression import Opaque, Parameter
from isolitmus.model.sql.origin import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["unknown_parts"]


@by_object
def unknown_parts(noun: object) -> tuple[Opaque | Parameter, ...]:
    """The opaque expressions and the parameters in a statement, wherever they stand in it.

    >>> from isolitmus.model.schema import Column, Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> tables = {"t": Schema("t", (Column("id", "INT"),))}
    >>> delete = read_statement("DELETE FROM t WHERE id > 1 AND mine(id) = 2", tables, opaque=True)
    >>> [str(part) for part in unknown_parts(delete)]
    ['mine(id) = 2']
    """
    return tuple(_parts(noun))


def _parts(noun: object) -> Iterator[Opaque | Parameter]:
    if isinstance(noun, Opaque | Parameter):
        yield noun
    elif isinstance(noun, tuple):
        for each in noun:
            yield from _parts(each)
    elif is_dataclass(noun) and not isinstance(noun, Origin | type):
        for one in fields(noun):
            yield from _parts(getattr(noun, one.name))
