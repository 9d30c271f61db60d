"""Invariants of tables: conditions that every version of a table satisfies.

An invariant limits the number of rows that satisfy a condition and have the same values in some
columns: ``unique(id)`` allows one row for each value of ``id``, ``not null(id)`` allows no row in
which it is NULL. It is stated as a query that returns no rows.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.model.display import ReadableRepr
from isolitmus.model.sql.conditions import holds

if TYPE_CHECKING:
    from isolitmus.model.sql.expression import Expr
    from isolitmus.model.sql.values import Row, Rows

__all__ = ["Invariant"]


@dataclass(frozen=True, slots=True)
class Invariant(ReadableRepr):
    """At most ``most`` rows of a table satisfy ``where`` and agree in some columns.

    Examples
    --------
    >>> from isolitmus.model.sql.expression import ColumnRef, IsNull, Not
    >>> known = Not(IsNull(ColumnRef(0, 0, "id", "INT")))
    >>> query = "SELECT id FROM t WHERE id IS NOT NULL GROUP BY id HAVING count(*) > 1"
    >>> unique = Invariant("unique(id)", "unique(id)", "t", query, known, (0,), 1)
    >>> unique.violations(((1,), (2,), (None,), (None,), (1,)))
    ((1,),)
    """

    name: str
    """Name in results."""
    text: str
    """Invariant as written."""
    table: str
    """Name of the table."""
    query: str
    """Query that returns no rows as long as the invariant holds."""
    where: Expr | None
    """Condition on the rows that count; None for all rows."""
    columns: tuple[int, ...] = ()
    """Indices of the columns in which counted rows agree; NULL agrees with NULL."""
    most: int = 0
    """Largest number of rows that satisfy the condition and agree in the columns."""

    @property
    def file_name(self) -> str:
        """Name in lower case, with hyphens in place of other characters than letters and digits."""
        return "-".join(re.findall(r"\w+", self.name.lower())) or "invariant"

    @property
    def is_key(self) -> bool:
        """True if it allows one row for each value of some columns."""
        return self.most == 1 and bool(self.columns)

    def __repr__(self) -> str:
        return f"{self.text}: no rows from {self.query}"

    def counts(self, row: Row) -> bool:
        """Return whether a row counts."""
        return holds(self.where, (row,))

    def violations(self, rows: Rows) -> tuple[Row, ...]:
        """Return the values of the columns of which there are too many rows, sorted.

        Without columns it is one empty row.
        """
        found = Counter(tuple(row[k] for k in self.columns) for row in rows if self.counts(row))
        return tuple(sorted((key for key, many in found.items() if many > self.most), key=repr))
