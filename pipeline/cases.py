"""What was seen of matrices, as a Delta table: a row for each case, appended as they are seen."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from isolitmus.conformance.session import spark_here
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.matrix import Cell, Place
from isolitmus.pipeline.location import Location
from isolitmus.pipeline.table import ResultColumn, ResultTable, Table, held

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from isolitmus.model.matrix import Matrix

__all__ = ["CASES", "Cases", "open_cases", "refuse_other"]

CASES = ResultTable(
    "cases",
    "a case of a matrix on an engine",
    {
        "matrix": ResultColumn("STRING", "the name of the matrix"),
        "text": ResultColumn("STRING", "the digest of its text"),
        "engine": ResultColumn("STRING", "the engine's version"),
        "protocol": ResultColumn("STRING", "the protocol that it ran under"),
        "layout": ResultColumn("STRING", "how the table lies in files"),
        "a": ResultColumn("STRING", "the statement that is parked before its commit"),
        "winner": ResultColumn("STRING", "the one that commits meanwhile"),
        "predicted": ResultColumn("STRING", "what the model says of the first"),
        "observed": ResultColumn("STRING", "what the engine did"),
        "differences": ResultColumn("ARRAY<STRING>", "empty where that is the same"),
    },
)
ABOUT, SAID = "isolitmus.matrix", "cases of matrices"
"""The table property that says what is in the table, and what it says."""


class Cases:
    """The cases of a matrix on an engine, in the table at a path, which is made if there is none.

    IsolitmusError if something else is there.
    """

    def __init__(self, spark: Any, path: Path, matrix: Matrix, engine: str, version: str) -> None:
        place = Location(str(path))
        refuse_other(place)
        self._spark, self._engine = spark, engine
        self._of = (matrix.name, matrix.digest, version)
        self._table = Table(spark, place, CASES, ABOUT, SAID)

    def known(self) -> list[Cell]:
        """The cases that are in the table."""
        of = zip(CASES.columns, self._of, strict=False)
        where = " AND ".join(f"{column} = '{value}'" for column, value in of)
        return [
            Cell(
                Place(row["a"], row["winner"], row["layout"]),
                row["protocol"],
                self._engine,
                row["predicted"],
                row["observed"],
                tuple(row["differences"]),
            )
            for row in self._table.rows(where).collect()
        ]

    def append(self, cells: Iterable[Cell]) -> None:
        """Write down some cases, in one commit."""
        rows = [
            (
                *self._of,
                *(cell.protocol, cell.place.layout, cell.place.a, cell.place.winner),
                *(cell.predicted, cell.observed, list(cell.differences)),
            )
            for cell in cells
        ]
        self._table.append(self._spark.createDataFrame(rows, CASES.schema))


@contextmanager
def open_cases(out: Path, matrix: Matrix, engine: str, version: str) -> Iterator[Cases]:
    """The cases at a path, while the block lasts; EngineUnavailable if Spark, which writes them, does not start."""
    with spark_here() as spark:
        yield Cases(spark, out, matrix, engine, version)


def refuse_other(out: Location) -> None:
    """IsolitmusError if there is something at a place that holds no cases; needs no Spark."""
    if held(out, ABOUT) not in {None, SAID}:
        raise IsolitmusError(
            f"--out {out}: this table holds no cases of a matrix; name a folder that is not there yet"
        )
