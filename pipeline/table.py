"""The Delta table of a sweep: which shards are counted, and what of."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from isolitmus.checker.counting.tally import LARGEST
from isolitmus.model.errors import IsolitmusError
from isolitmus.pipeline.shards import COLUMNS

if TYPE_CHECKING:
    from pathlib import Path

    from isolitmus.checker.counting.work import Work

__all__ = ["Results"]

ABOUT = "isolitmus.sweep"
"""The table property that says what is counted here."""


class Results:
    """A table at a path, made if there is none; a row is there for good once its commit is.

    IsolitmusError if something else is there, or the counts of another scope or of other specs.
    """

    def __init__(self, spark: Any, path: Path, work: Work) -> None:
        from delta.tables import DeltaTable

        self._spark, self._path, self._n = spark, str(path), work.n
        about = _about(work)
        if not DeltaTable.isDeltaTable(spark, self._path):
            if path.exists() and (not path.is_dir() or any(path.iterdir())):
                raise IsolitmusError(f"--out {path}: there is something, and it is no Delta table")
            made = DeltaTable.create(spark).location(self._path).property(ABOUT, about)
            for name, kind in COLUMNS.items():
                made = made.addColumn(name, kind)
            made.execute()
        there = DeltaTable.forPath(spark, self._path).detail().collect()[0]["properties"].get(ABOUT)
        if there != about:
            raise IsolitmusError(f"--out {path}: {_differs(there, work)}")

    def done(self) -> set[int]:
        """The shards that are counted."""
        return {row["shard"] for row in self._rows().select("shard").distinct().collect()}

    def append(self, rows: Any) -> None:
        """Write the rows of some shards, all in one commit."""
        rows.repartition(1).write.format("delta").mode("append").save(self._path)

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
        return self._spark.read.format("delta").load(self._path).where(f"transactions = {self._n}")


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
    if there is None:
        return "this table holds no counts of a sweep; name a folder that is not there yet"
    known, own = json.loads(there), json.loads(_about(work))
    what = next(key for key in own if known.get(key) != own[key])
    return (
        f"this table holds counts of another sweep ({what}: not the same as those of"
        f" {work.scope.name}); name a folder that is not there yet"
    )
