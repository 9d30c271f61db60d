"""The folder of a sweep's tables: which shards are in it, and what of."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from isolitmus.model.errors import IsolitmusError
from isolitmus.model.number import many
from isolitmus.model.scope import FRESH, fresh
from isolitmus.pipeline.result_table import Table, held
from isolitmus.pipeline.sweep_tables import BESIDE, FIXED, KEEP, VERSION, kept, sweep_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from isolitmus.checker.sweeps.shard_runner import Work
    from isolitmus.checker.sweeps.tally import Shards
    from isolitmus.model.scope import Scope
    from isolitmus.pipeline.location import Location

__all__ = ["SweepData", "refuse_other_sweep"]

ABOUT = "isolitmus.sweep"
"""The table property that says what is counted here."""


class SweepData:
    """The tables at a place, made if they are not there, for what ``keep`` keeps of some work.

    IsolitmusError if something else is there, or the tables of another scope, of other specs or of another version.
    """

    def __init__(self, spark: Any, place: Location, work: Work, keep: str, cut: Shards) -> None:
        refuse_other_sweep(place, work, keep, cut, spark)
        self._spark, self._place, self._n = spark, place, work.n
        self.declared = sweep_tables(work.scope)
        self.tables: dict[str, Table] = {}
        about = json.dumps({"name": work.scope.name} | _about(work, keep, cut))
        own = [name for name in KEEP[keep] if name == "findings"]
        for name in (
            *reversed(kept(keep)),
            *own,
            *FIXED,
        ):  # the counts first, which say what all is
            at = place.inside(name)
            self.tables[name] = Table(spark, at, self.declared[name], ABOUT, about)
        self.done = {row["shard"] for row in self._counts().select("shard").distinct().collect()}
        """The shards that were counted before."""
        if not self.done:
            self.write("statements", _statements(work.scope), "true")
            self.write("inits", _inits(work.scope), "true")

    def put(self, name: str, first: int, last: int, rows: Any) -> None:
        """Write what shards, of which these are the first and the last, have in a table, as a DataFrame."""
        self.tables[name].replace(f"{self._own} AND shard BETWEEN {first} AND {last}", rows)

    def write(self, name: str, rows: Sequence[Mapping[str, Any]], where: str | None = None) -> None:
        """Write all rows of a table that this sweep has, unless they are there."""
        import pyarrow as pa

        from isolitmus.pipeline.arrow import arrow_type

        made = pa.Table.from_struct_array(pa.array(rows, arrow_type(self.declared[name].type)))
        there = self.tables[name].rows(where or self._own).toArrow()
        if _as_set(there) != _as_set(made):
            self.tables[name].replace(where or self._own, self._spark.createDataFrame(made))

    def counts(self) -> list[Any]:
        """The rows of the counts. IsolitmusError if some are there twice, or the other tables have not as many."""
        found = self._counts().collect()
        places = {(row["shard"], row["protocol"], row["level"]) for row in found}
        if len(places) < len(found):
            raise self._wrong(
                "counts", f"{many(len(found) - len(places), 'row')} more than shards have"
            )
        self._compare(found)
        return list(found)

    def _counts(self) -> Any:
        return self.tables["counts"].rows(self._own)

    @property
    def _own(self) -> str:
        return f"size = {self._n}"

    def _compare(self, counts: Sequence[Any]) -> None:
        """IsolitmusError if what is kept of candidates is not what was counted of them."""
        for name, wanted, found in (
            (
                "candidates",
                {"": _sum(counts, "candidates", ("shard",))},
                self._numbers("candidates"),
            ),
            (
                "executions",
                _by(counts, "protocol", "admitted", ("shard", "protocol")),
                self._numbers("executions", "protocol", "outcome = 'admitted'"),
            ),
            (
                "verdicts",
                _by(counts, "level", "forbidden", ("shard", "protocol", "level")),
                self._forbidden(),
            ),
        ):
            if found is not None and found != {k: n for k, n in wanted.items() if n}:
                key = next(k for k in (*wanted, *found) if found.get(k, 0) != wanted.get(k, 0))
                raise self._wrong(
                    name,
                    f"{found.get(key, 0):,} rows{f' of {key}' if key else ''}, where"
                    f" {wanted.get(key, 0):,} were counted",
                )

    def _numbers(self, name: str, by: str | None = None, where: str = "true") -> Any:
        if name not in self.tables:
            return None
        rows = self.tables[name].rows(f"{self._own} AND {where}")
        if by is None:
            return {"": rows.count()}
        return {row[by]: row["count"] for row in rows.groupBy(by).count().collect()}

    def _forbidden(self) -> dict[str, int] | None:
        """By level, of all protocols together, how many they admit and it forbids."""
        if "verdicts" not in self.tables:
            return None
        admitted = self.tables["executions"].rows(f"{self._own} AND outcome = 'admitted'")
        forbidden = self.tables["verdicts"].rows(f"{self._own} AND verdict = 'forbidden'")
        both = forbidden.select("rank", "level").join(admitted.select("rank"), "rank")
        return {row["level"]: row["count"] for row in both.groupBy("level").count().collect()}

    def _wrong(self, name: str, what: str) -> IsolitmusError:
        return IsolitmusError(
            f"--out {self._place}: the table {name} has {what}: somebody else wrote there; remove the folder"
        )


def refuse_other_sweep(
    place: Location, work: Work, keep: str, cut: Shards, spark: Any = None
) -> None:
    """IsolitmusError if there is something at a place that is not the tables of this work; needs no Spark for a folder
    of this machine.
    """
    path = place.path
    if path is not None:
        if path.exists() and not path.is_dir():
            raise IsolitmusError(f"--out {place}: there is a file; name a folder")
        if not path.exists() or not any(path.iterdir()):
            return
        odd = sorted(
            {one.name for one in path.iterdir()} - sweep_tables(work.scope).keys() - {*BESIDE}
        )
        if odd:
            raise IsolitmusError(
                f"--out {place}: '{odd[0]}' in it is no table of a sweep; name a folder that is not there yet"
            )
    there = held(place.inside("counts"), ABOUT, spark)
    if there is None:
        return
    known = json.loads(there or "{}")
    for key, value in _about(work, keep, cut).items():
        if known.get(key) != value:
            raise IsolitmusError(f"--out {place}: {_differs(key, known, value, work)}")


def _about(work: Work, keep: str, cut: Shards) -> dict[str, object]:
    """What decides the rows."""
    return {
        "version": VERSION,
        "scope": work.scope.text,
        "protocols": {spec.name: spec.text for spec in work.protocols},
        "levels": {spec.name: spec.text for spec in work.levels},
        "keep": keep,
        "largest": cut.largest,
    }


def _differs(key: str, known: Mapping[str, Any], own: object, work: Work) -> str:
    if not known:
        return "it holds no tables of a sweep; name a folder that is not there yet"
    if key == "version":
        return (
            f"it holds tables of version {known.get('version')}, and this isolitmus writes version {own}; name"
            " a folder that is not there yet"
        )
    if key == "keep":
        return f"it was made with --keep {known['keep']}, not {own}; go on with that, or name another folder"
    return (
        f"it holds the tables of another sweep ({key}: not the same as those of {work.scope.name}); name a"
        " folder that is not there yet"
    )


def _statements(scope: Scope) -> list[dict[str, Any]]:
    return [
        {
            "statement": k,
            "name": scope.jobs.get(at[0].sql),
            "sql": _pattern(*(s.sql for s in at[:2])),
        }
        for k, at in enumerate(scope.statements)
    ]


def _pattern(first: str, second: str) -> str:
    """A statement as its scope has it, from its texts at the first two positions.

    >>> _pattern("INSERT INTO t VALUES (100, 100)", "INSERT INTO t VALUES (200, 100)")
    'INSERT INTO t VALUES ({fresh}, 100)'
    """
    own, other = str(fresh(1)), str(fresh(2))
    place = 0
    while first != second:
        place = next(i for i in range(place, len(second)) if first[i : i + 1] != second[i])
        first = f"{first[:place]}{FRESH}{first[place + len(own) :]}"
        second = f"{second[:place]}{FRESH}{second[place + len(other) :]}"
    return first


def _inits(scope: Scope) -> list[dict[str, Any]]:
    return [
        {"init": k, "sql": [statement.sql for statement in init]}
        for k, init in enumerate(scope.inits)
    ]


def _as_set(rows: Any) -> list[str]:
    """What is the same of two Arrow tables that have the same rows in any order."""
    return sorted(map(repr, rows.to_pylist()))


def _sum(rows: Iterable[Any], column: str, of: Sequence[str]) -> int:
    """The sum of a column that says the same in all rows of one of these."""
    return sum({tuple(row[name] for name in of): row[column] for row in rows}.values())


def _by(rows: Sequence[Any], key: str, column: str, of: Sequence[str]) -> dict[str, int]:
    names = dict.fromkeys(row[key] for row in rows)
    return {name: _sum((r for r in rows if r[key] == name), column, of) for name in names}
