"""Code that runs in Spark's Python workers: from shards to rows of the sweep's tables, in Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.sweeps.kernel import Kernel
from isolitmus.checker.sweeps.listing import Listing
from isolitmus.checker.sweeps.tally import BrokenKind, FailedStatement, Tallies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    import pyarrow as pa

    from isolitmus.checker.sweeps.shard_runner import Work
    from isolitmus.checker.sweeps.tally import Choices, First, Shards, Tally
    from isolitmus.pipeline.result_table import ResultTable


class ShardTask(NamedTuple):
    """Sweep to count, and the rows to keep."""

    name: str
    """Name of the call, for which a worker keeps its caches."""
    work: Work
    """Sweep to count."""
    cut: Shards
    """Shards of the sweep."""
    tables: Mapping[str, ResultTable]
    """Tables that get rows of shards, the counts last."""
    kinds: bool
    """True if forbidden histories are counted by kind."""

    @property
    def one_of(self) -> str:
        """Schema for the rows of several tables: a column each, of which one is not NULL."""
        return ", ".join(f"{name} {table.type}" for name, table in self.tables.items())


_known: dict[str, tuple[Kernel, Listing | None]] = {}
"""Kernel and listing of a worker with their caches, by the name of the task."""


def count_function(
    task: ShardTask, wanted: Sequence[int]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow`` from indexes into ``wanted`` to the shards' rows."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # imported here: pickling would copy module globals that this function refers to, and the
        # caches of the worker must not be copied
        from isolitmus.pipeline.sweep_shards import count_rows

        for places in batches:
            for place in places.column(0).to_pylist():
                yield from count_rows(task, wanted[place])

    return count


def count_rows(task: ShardTask, index: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a shard in each table, the counts last.

    Caches are kept for other shards of the task.
    """
    import pyarrow as pa

    from isolitmus.pipeline.candidate_columns import candidate_rows
    from isolitmus.pipeline.result_table import arrow_type

    name, work, cut, tables, kinds = task
    if name not in _known:
        _known.clear()
        counting = Kernel(work.scope, work.n, work.protocols, work.levels, kinds=kinds)
        _known[name] = counting, Listing(work) if len(tables) > 1 else None
    kernel, listing = _known[name]
    types = {table: arrow_type(declared.type) for table, declared in tables.items()}

    def batch(table: str, rows: pa.StructArray) -> pa.RecordBatch:
        columns = {
            other: rows if other == table else pa.nulls(len(rows), kind)
            for other, kind in types.items()
        }
        return pa.RecordBatch.from_pydict(columns)

    if listing is not None:
        found = listing.of(cut[index])
        for table, rows in candidate_rows(work, listing, found, index, tables):
            yield batch(table, rows)
    counted = list(_rows(work, index, cut.each, kernel.count(cut[index])))
    yield batch("counts", pa.array(counted, types["counts"]))


def _rows(work: Work, index: int, each: int, tallies: Tallies) -> Iterator[dict[str, Any]]:
    """Yield a shard's rows of the table of counts, one for each protocol and level."""
    failure = tallies.failure
    for protocol, tally in tallies.of.items():
        for level, forbidden in tally.forbidden.items():
            yield {
                "size": work.n,
                "shard": index,
                "candidates": each,
                "protocol": protocol,
                "level": level,
                "admitted": tally.admitted,
                "silent": tally.silent,
                "forbidden": forbidden,
                "unexplained": tally.unexplained,
                "not_log_order": tally.not_log_order,
                "failed": tallies.failed,
                "smallest": _first(tally.first.get(level)),
                "kinds": [
                    kind._asdict() | {"candidates": number, "smallest": _first(found)}
                    for kind, (number, found) in tally.kinds.get(level, {}).items()
                ],
                "failure": failure and failure._asdict() | {"steps": _steps(failure.choices)},
            }


def _first(found: First | None) -> dict[str, Any] | None:
    """Return the smallest candidate as a STRUCT of the table of counts, or None."""
    if found is None:
        return None
    init, last, choices = found
    return {"init": init, "last": last, "steps": _steps(choices)}


def _steps(choices: Choices) -> list[dict[str, int]]:
    return [{"statement": k, "read_version": version} for k, version in choices]


def tallies_from_rows(work: Work, rows: Iterable[Mapping[str, Any]]) -> Tallies:
    """Return the tallies of all shards together, from their rows."""
    protocols = [spec.name for spec in work.protocols]
    levels = [spec.name for spec in work.levels]
    total = Tallies.none(protocols, levels)
    for row in rows:
        one = Tallies.none(protocols, levels)
        tally, level = one.of[row["protocol"]], row["level"]
        tally.forbidden[level] = row["forbidden"]
        if row["smallest"] is not None:
            tally.first[level] = _found(row["smallest"])
        for kind in row["kinds"]:
            of = BrokenKind(kind["axiom"], tuple(kind["relations"]))
            tally.sort(level, of, kind["candidates"], _found(kind["smallest"]))
        if level == levels[0]:  # rows of other levels repeat the protocol's numbers
            _add(tally, row)
            if row["protocol"] == protocols[0]:
                one.candidates, one.failed = row["candidates"], row["failed"]
                one.failure = _failure(row["failure"])
        total.add(one)
    return total


def _add(tally: Tally, row: Mapping[str, Any]) -> None:
    tally.admitted, tally.silent = row["admitted"], row["silent"]
    tally.unexplained, tally.not_log_order = row["unexplained"], row["not_log_order"]


def _found(row: Mapping[str, Any]) -> First:
    return row["init"], row["last"], _choices(row["steps"])


def _choices(steps: Iterable[Mapping[str, int]]) -> Choices:
    return tuple((step["statement"], step["read_version"]) for step in steps)


def _failure(row: Mapping[str, Any] | None) -> FailedStatement | None:
    """Return the failed statement in a STRUCT of the table of counts, or None."""
    if row is None:
        return None
    return FailedStatement(
        row["init"], _choices(row["steps"]), row["sql"], row["exception"], row["why"]
    )
