"""A micro-batch of a streaming query, given to Delta's streaming sink as Spark does it.

A streaming query has a thread of its own, and batches that come when it makes them. A litmus test's batch is
one statement: so it goes to the sink on the statement's thread. The sink is made by the data source, as DataStreamWriter makes it, in an output
mode; the id of the query is the thread's property that Spark sets; the batch is planned first, and
then added (Spark 4.2.0, MicroBatchExecution.scala, runBatch: "queryPlanning", "addBatch"). There is no
offset, no checkpoint and no query to end. What Delta does is the same as for a query of Structured
Streaming (tests/conformance/test_streaming.py compares their logs): it tells the batch of one apart
only to cast, rename or add columns, and here they are what the table has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isolitmus.conformance.delta.session import in_java

if TYPE_CHECKING:
    from pathlib import Path

    from isolitmus.conformance.delta.session import Session

__all__ = ["add_batch"]

QUERY_ID = "sql.streaming.queryId"
"""StreamExecution.QUERY_ID_KEY."""


def add_batch(  # noqa: PLR0917
    frame: Any, path: Path, mode: str, batch: tuple[str, int], session: Session, spark: Any
) -> None:
    """Add a DataFrame to the table at a path, in output mode ``append`` or ``complete``, as ``batch``:
    the id of its query, and its number.
    """
    java, modes = in_java(spark), session.java("org.apache.spark.sql.streaming.OutputMode")
    output = modes.Append() if mode == "append" else modes.Complete()
    source = session.java("org.apache.spark.sql.delta.sources.DeltaDataSource")()
    sink = source.createSink(
        java.sqlContext(), session.mapping({"path": str(path)}), session.sequence([]), output
    )
    session.activate(spark)  # as the thread of a query does
    query, number = batch
    java.sparkContext().setLocalProperty(QUERY_ID, query)
    try:
        rows = frame._jdf  # noqa: SLF001
        rows.queryExecution().executedPlan()
        sink.addBatch(number, rows)
    finally:
        java.sparkContext().setLocalProperty(QUERY_ID, None)
