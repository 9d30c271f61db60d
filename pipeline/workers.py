"""What runs in Spark's Python workers where each item has rows of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from isolitmus.pipeline.table import ResultTable

__all__ = ["rows_of_each"]

T = TypeVar("T")


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
