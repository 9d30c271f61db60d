"""Invariants of tables: conditions that every version of them satisfies.

There are three kinds. A `GroupLimit` limits the number of rows that satisfy a condition and have
the same values in some columns: ``unique(id)`` allows one row for each value of ``id``, ``not
null(id)`` allows no row in which it is NULL. A `Reference` requires a row of another table for each
row. A `Total` compares a sum or a count with its value before: ``sum(amount) unchanged``. Each is
stated as a query that returns no rows.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from isolitmus.model.display import ReadableRepr
from isolitmus.model.sql.conditions import holds
from isolitmus.model.sql.evaluation import evaluate

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal

    from isolitmus.model.sql.expression import Expr
    from isolitmus.model.sql.values import Row, Rows

TotalOp = Literal["=", "<=", ">="]
"""How a total compares with the one before."""
BEFORE = "before"
"""Name of the table at the version before, in the query of a `Total`."""


class TableVersions(NamedTuple):
    """Rows of tables at a version, and at the version before."""

    now: Mapping[str, Rows]
    before: Mapping[str, Rows]


@dataclass(frozen=True, slots=True, repr=False)
class Invariant(ReadableRepr):
    """Condition on the versions of tables."""

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
    """Indices of the columns that it compares."""

    @property
    def file_name(self) -> str:
        """Name in lower case, with hyphens in place of other characters than letters and digits."""
        return "-".join(re.findall(r"\w+", self.name.lower())) or "invariant"

    @property
    def tables(self) -> tuple[str, ...]:
        """Tables on which it depends."""
        return (self.table,)

    @property
    def is_key(self) -> bool:
        """True if it allows one row for each value of some columns."""
        return False

    def __repr__(self) -> str:
        return f"{self.text}: no rows from {self.query}"

    def counts(self, row: Row) -> bool:
        """Return whether a row counts."""
        return holds(self.where, (row,))

    def violations(self, versions: TableVersions) -> tuple[Row, ...]:
        """Return values that violate it, none if it holds."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, repr=False)
class GroupLimit(Invariant):
    """At most ``most`` rows of a table satisfy ``where`` and agree in ``columns``.

    NULL agrees with NULL.

    Examples
    --------
    >>> from isolitmus.model.sql.expression import ColumnRef, IsNull, Not
    >>> known = Not(IsNull(ColumnRef(0, 0, "id", "INT")))
    >>> query = "SELECT id FROM t WHERE id IS NOT NULL GROUP BY id HAVING count(*) > 1"
    >>> unique = GroupLimit("unique(id)", "unique(id)", "t", query, known, (0,), 1)
    >>> unique.violations(TableVersions({"t": ((1,), (2,), (None,), (None,), (1,))}, {}))
    ((1,),)
    """

    most: int = 0
    """Largest number of rows that satisfy the condition and agree in the columns."""

    @property
    def is_key(self) -> bool:
        """True if it allows one row for each value of some columns."""
        return self.most == 1 and bool(self.columns)

    def violations(self, versions: TableVersions) -> tuple[Row, ...]:
        """Return the values of the columns of which there are too many rows, sorted.

        Without columns it is one empty row.
        """
        rows = versions.now[self.table]
        found = Counter(tuple(row[k] for k in self.columns) for row in rows if self.counts(row))
        return tuple(sorted((key for key, many in found.items() if many > self.most), key=repr))

    def violating_rows(self, versions: TableVersions) -> tuple[Row, ...]:
        """Return the rows of which there are too many."""
        keys = {*self.violations(versions)}
        return tuple(
            row
            for row in versions.now[self.table]
            if self.counts(row) and tuple(row[k] for k in self.columns) in keys
        )


@dataclass(frozen=True, slots=True, repr=False)
class Reference(Invariant):
    """For each row that counts, another table has a row with the same values.

    Rows with NULL in a column do not count.

    Examples
    --------
    >>> query = "SELECT * FROM orders WHERE …"
    >>> found = Reference("r", "r", "orders", query, None, (1,), "customers", (0,))
    >>> rows = {"orders": ((10, 1), (11, 2), (12, None)), "customers": ((1,),)}
    >>> found.violations(TableVersions(rows, {}))
    ((11, 2),)
    """

    parent: str = ""
    """Name of the other table."""
    keys: tuple[int, ...] = ()
    """Indices of its columns that have the same values."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The table and the other one."""
        return self.table, self.parent

    def violations(self, versions: TableVersions) -> tuple[Row, ...]:
        """Return the rows that refer to no row."""
        known = {tuple(row[k] for k in self.keys) for row in versions.now[self.parent]}
        return tuple(
            row
            for row in versions.now[self.table]
            if None not in (values := tuple(row[k] for k in self.columns))
            and values not in known
            and self.counts(row)
        )


@dataclass(frozen=True, slots=True, repr=False)
class Total(Invariant):
    """A sum or a count of the rows that count is equal to what it was before, or on one side of it.

    Examples
    --------
    >>> from isolitmus.model.sql.expression import ColumnRef
    >>> amount = ColumnRef(0, 1, "amount", "INT")
    >>> found = Total("s", "sum(amount) unchanged", "t", "SELECT …", None, (), amount, "=")
    >>> found.violations(TableVersions({"t": ((1, 5), (2, None))}, {"t": ((1, 3), (2, 3))}))
    ((6, 5),)
    """

    value: Expr | None = None
    """Summed expression; None for a count."""
    op: TotalOp = "="
    """How it compares with the value before."""

    def violations(self, versions: TableVersions) -> tuple[Row, ...]:
        """Return the value before and the value now, if they do not compare so."""
        old, new = (self.total(each[self.table]) for each in (versions.before, versions.now))
        kept = {"=": new == old, "<=": new <= old, ">=": new >= old}[self.op]
        return () if kept else ((old, new),)

    def total(self, rows: Rows) -> Decimal | float | int:
        """Return the sum or the count; 0 for no rows."""
        counted = [row for row in rows if self.counts(row)]
        if self.value is None:
            return len(counted)
        values = (evaluate(self.value, (row,)) for row in counted)
        found: Decimal | float | int = 0
        for value in values:
            found += value or 0  # type: ignore[operator]
        return found
