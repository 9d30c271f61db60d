"""A table of data, and what it converts to."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from io import StringIO
from itertools import chain
from typing import TYPE_CHECKING

from isolitmus.model.display import ReadableRepr, first_lines
from isolitmus.model.errors import IsolitmusError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pandas import DataFrame

__all__ = ["Datum", "Records", "Tabular"]

Datum = str | int | None
"""A value of a table; None where there is none."""


@dataclass(frozen=True, slots=True)
class Records(ReadableRepr):
    """Rows with a value for each column.

    >>> print(Records(("level", "forbidden"), (("serializable", 3), ("causal", None))).to_csv(), end="")
    level,forbidden
    serializable,3
    causal,
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Datum, ...], ...]

    @classmethod
    def together(cls, tables: Iterable[Records]) -> Records:
        """One table of the rows of several that have the same columns, at least one."""
        every = list(tables)
        assert len({table.columns for table in every}) == 1
        return cls(every[0].columns, tuple(chain.from_iterable(table.rows for table in every)))

    def __repr__(self) -> str:
        return first_lines(self.to_csv().splitlines())

    def to_csv(self) -> str:
        """The rows below the names of the columns, with commas; empty where there is no value."""
        text = StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(self.columns)
        lines.writerows(self.rows)
        return text.getvalue()

    def to_pandas(self) -> DataFrame:
        """The rows as a data frame of pandas; IsolitmusError if pandas is not installed."""
        try:
            from pandas import DataFrame
        except ImportError:
            raise IsolitmusError(
                "pandas is not installed; pip install 'isolitmus[spark]' brings it, and to_csv()"
                " needs none"
            ) from None
        return DataFrame(list(self.rows), columns=list(self.columns))


class Tabular:
    """What has ``records``."""

    __slots__ = ()

    @property
    def records(self) -> Records:
        """What it has found, as a table."""
        raise NotImplementedError

    def to_csv(self) -> str:
        """Its records with commas, below the names of the columns."""
        return self.records.to_csv()

    def to_pandas(self) -> DataFrame:
        """Its records as a data frame of pandas; IsolitmusError if pandas is not installed."""
        return self.records.to_pandas()
