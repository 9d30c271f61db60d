"""Work of which each item has rows of its own: some items at a time, and what runs in Spark's Python workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from isolitmus.model.errors import Limit
from isolitmus.pipeline.spark import one_job, parallelism

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from isolitmus.model.budget import Budget
    from isolitmus.pipeline.result_table import ResultTable

__all__ = ["each_part", "rows_of_each"]

T = TypeVar("T")
MOST = 256
"""So many items are dealt with between two commits."""
SHARES = 4
"""So many tasks for each that runs at one time: one is a good part of a second of Spark's own."""


def each_part(
    spark: Any,
    items: Sequence[T],
    words: str,
    write: Callable[[Sequence[T], Any], None],
    *,
    budget: Budget,
    progress: Callable[[int], None] | None = None,
) -> str | None:
    """Have some of the items written at a time, given with the places of each as a DataFrame. What ended that before its
    time, if something did; what was written until then is there.
    """
    for first in range(0, len(items), MOST):
        if progress is not None:
            progress(first)
        some = items[first : first + MOST]
        job = f"isolitmus {words} {first + 1:,} to {first + len(some):,} of {len(items):,}"
        try:
            with one_job(spark, job, budget):
                tasks = min(len(some), SHARES * parallelism(spark))
                write(some, spark.range(0, len(some), 1, tasks))
        except Limit as limit:
            return str(limit)
    return None


def rows_of_each(
    items: Sequence[T], rows: Callable[[T], Iterable[dict[str, Any]]], declared: ResultTable
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for ``mapInArrow``: of batches of places in ``items`` the rows that those have in a table."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        from isolitmus.pipeline.arrow import arrow_type

        schema = pa.schema(list(arrow_type(declared.type)))
        for batch in batches:
            for place in batch.column(0).to_pylist():
                yield pa.RecordBatch.from_pylist(list(rows(items[place])), schema)

    return run
