"""What runs in Spark's Python workers: shards in, rows of counts out, as Arrow batches."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from isolitmus.checker.counting.tally import FailedStatement, Tallies, shards
from isolitmus.checker.counting.work import kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    import pyarrow as pa

    from isolitmus.checker.counting.kernel import Kernel
    from isolitmus.checker.counting.work import Work

__all__ = ["COLUMNS", "counter", "tallies_of"]

COLUMNS = {
    "transactions": "INT",
    "shard": "BIGINT",
    "candidates": "BIGINT",
    "protocol": "STRING",
    "level": "STRING",
    "admitted": "BIGINT",
    "silent": "BIGINT",
    "forbidden": "BIGINT",
    "smallest": "STRING",
    "unexplained": "BIGINT",
    "not_log_order": "BIGINT",
    "failed": "BIGINT",
    "failure": "STRING",
}
"""The table of a sweep: a row for each shard, protocol and level. ``smallest`` is the first candidate
of the shard that the level forbids: the initial table, the last statement needed, and for each commit
the statement and the version that it read, all by their numbers in the scope; ``failure`` likewise.
"""
_kernels: dict[str, Kernel] = {}


def counter(
    work: Work, wanted: Sequence[int], name: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for ``mapInArrow``: of batches of places in ``wanted`` the rows of those shards.

    A worker keeps its kernel, with all that it remembers, under the ``name`` of the work.
    """

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        kinds = {"INT": pa.int32(), "BIGINT": pa.int64(), "STRING": pa.string()}
        schema = pa.schema([(column, kinds[kind]) for column, kind in COLUMNS.items()])
        if name not in _kernels:
            _kernels.clear()
            _kernels[name] = kernel(work)
        cut = shards(work.scope, work.n)
        for batch in batches:
            for place in batch.column(0).to_pylist():
                index = wanted[place]
                rows = list(_rows(work, index, cut.each, _kernels[name].count(cut[index])))
                yield pa.RecordBatch.from_pylist(rows, schema)

    return count


def _rows(work: Work, index: int, each: int, tallies: Tallies) -> Iterator[dict[str, Any]]:
    for protocol, tally in tallies.of.items():
        for level, forbidden in tally.forbidden.items():
            values = (
                work.n, index, each, protocol, level, tally.admitted, tally.silent, forbidden,
                json.dumps(tally.first.get(level)), tally.unexplained, tally.not_log_order,
                tallies.failed, json.dumps(tallies.failure),
            )  # fmt: skip
            yield dict(zip(COLUMNS, values, strict=True))


def tallies_of(work: Work, rows: Iterable[Mapping[str, Any]]) -> Tallies:
    """The tallies of all shards together, from their rows."""
    rows = list(rows)
    protocols = [spec.name for spec in work.protocols]
    levels = [spec.name for spec in work.levels]
    total = Tallies.none(protocols, levels)
    for row in rows:
        one = Tallies.none(protocols, levels)
        tally, level = one.of[row["protocol"]], row["level"]
        tally.forbidden[level] = row["forbidden"]
        found = json.loads(row["smallest"])
        if found is not None:
            init, last, choices = found
            tally.first[level] = init, last, tuple((k, version) for k, version in choices)
        if level == levels[0]:  # the others repeat what is said of the protocol
            tally.admitted, tally.unexplained = row["admitted"], row["unexplained"]
            tally.not_log_order, tally.silent = row["not_log_order"], row["silent"]
            if row["protocol"] == protocols[0]:
                one.failed = row["failed"]
                failure = json.loads(row["failure"])
                if failure is not None:
                    init, choices, *said = failure
                    one.failure = FailedStatement(init, tuple(map(tuple, choices)), *said)
        total.add(one)
    total.candidates = shards(work.scope, work.n).each * len({row["shard"] for row in rows})
    return total
