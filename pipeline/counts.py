"""The Delta table of a sweep: which shards are counted, and what of."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from isolitmus.checker.counting.tally import LARGEST
from isolitmus.model.errors import IsolitmusError
from isolitmus.pipeline.shards import COLUMNS
from isolitmus.pipeline.table import Table, held

if TYPE_CHECKING:
    from pathlib import Path

    from isolitmus.checker.counting.work import Work

__all__ = ["Counts"]

ABOUT = "isolitmus.sweep"
"""The table property that says what is counted here."""


class Counts:
    """The counts at a path, a table that is made if there is none.

    IsolitmusError if something else is there, or the counts of another scope or of other specs.
    """

    def __init__(self, spark: Any, path: Path, work: Work) -> None:
        about, there = _about(work), held(path, ABOUT)
        if there not in {None, about}:
            raise IsolitmusError(f"--out {path}: {_differs(there, work)}")
        self._path, self._n = path, work.n
        self._table = Table(spark, path, COLUMNS, ABOUT, about)

    def done(self) -> set[int]:
        """The shards that are counted."""
        return {row["shard"] for row in self._rows().select("shard").distinct().collect()}

    def append(self, rows: Any) -> None:
        """Write the rows of some shards, all in one commit."""
        self._table.append(rows)

    def rows(self) -> list[Any]:
        """All rows. IsolitmusError if some are there twice: two sweeps wrote at one time."""
        found = self._rows().collect()
        places = {(row["shard"], row["protocol"], row["level"]) for row in found}
        if len(places) < len(found):
            raise IsolitmusError(
                f"--out {self._path}: shards are counted twice, by two sweeps at one time; remove it"
            )
        return list(found)

    def _rows(self) -> Any:
        return self._table.rows(f"transactions = {self._n}")


def _about(work: Work) -> str:
    """What decides the counts, as text."""
    return json.dumps(
        {
            "scope": work.scope.text,
            "protocols": {spec.name: spec.text for spec in work.protocols},
            "levels": {spec.name: spec.text for spec in work.levels},
            "largest shard": LARGEST,
        }
    )


def _differs(there: str | None, work: Work) -> str:
    if not there:
        return "this table holds no counts of a sweep; name a folder that is not there yet"
    known, own = json.loads(there), json.loads(_about(work))
    what = next(key for key in own if known.get(key) != own[key])
    return (
        f"this table holds counts of another sweep ({what}: not the same as those of"
        f" {work.scope.name}); name a folder that is not there yet"
    )
