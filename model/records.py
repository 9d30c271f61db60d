"""Table of data, with its conversions."""

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

Datum = str | int | None
"""Value in a table; None if it is missing."""


@dataclass(frozen=True, slots=True)
class Records(ReadableRepr):
    """Rows with a value for each column.

    Examples
    --------
    >>> levels = Records(("level", "forbidden"), (("serializable", 3), ("causal", None)))
    >>> print(levels.to_csv(), end="")
    level,forbidden
    serializable,3
    causal,
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Datum, ...], ...]

    @classmethod
    def together(cls, tables: Iterable[Records]) -> Records:
        """Return one table with the rows of several tables (at least one) that have the same
        columns.
        """
        every = list(tables)
        assert len({table.columns for table in every}) == 1
        return cls(every[0].columns, tuple(chain.from_iterable(table.rows for table in every)))

    def __repr__(self) -> str:
        return first_lines(self.to_csv().splitlines())

    def to_csv(self) -> str:
        """Return the table as CSV with a header; missing values are empty."""
        text = StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(self.columns)
        lines.writerows(self.rows)
        return text.getvalue()

    def to_pandas(self) -> DataFrame:
        """Return the table as a pandas DataFrame; IsolitmusError if pandas is not installed."""
        try:
            from pandas import DataFrame
        except ImportError:
            raise IsolitmusError(
                "pandas is not installed; pip install 'isolitmus[spark]' brings it, and to_csv()"
                " needs none"
            ) from None
        return DataFrame(list(self.rows), columns=list(self.columns))


class Tabular:
    """Result that has ``records``."""

    __slots__ = ()

    @property
    def records(self) -> Records:
        """Result as a table."""
        raise NotImplementedError

    def to_csv(self) -> str:
        """Return the records as CSV with a header."""
        return self.records.to_csv()

    def to_pandas(self) -> DataFrame:
        """Return the records as a pandas DataFrame; IsolitmusError if pandas is not installed."""
        return self.records.to_pandas()
