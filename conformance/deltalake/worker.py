"""Worker program that runs in the environment of a deltalake release: requests in, replies out.

Another interpreter starts it as a script; it has deltalake and pyarrow, and nothing of isolitmus. A
request is a line of JSON on standard input, ``{"do": VERB, …}``. Its reply is a line on standard
output, ``{"reply": …}`` or ``{"error": {"class": …, "message": …}}``. A handle is a DeltaTable: it
stays at the version at which it was opened until it commits.
"""

from __future__ import annotations

import json
import sys
from datetime import date
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

TYPES = {
    "INT": "int32",
    "BIGINT": "int64",
    "STRING": "string",
    "DATE": "date32",
    "BOOLEAN": "bool_",
}
"""Type in pyarrow for each type of isolitmus."""

Request = dict[str, Any]
handles: dict[str, Any] = {}


def hello(_: Request) -> object:
    import deltalake

    return deltalake.__version__


def create(request: Request) -> None:
    """Create an empty Delta table with these columns, partition columns and properties."""
    import pyarrow as pa
    from deltalake import DeltaTable, Schema

    fields = [pa.field(name, getattr(pa, TYPES[type_])()) for name, type_ in request["columns"]]
    DeltaTable.create(
        request["path"],
        Schema.from_arrow(pa.schema(fields)),
        partition_by=request["partitioned_by"],
        configuration=request["configuration"],
    )


def open_(request: Request) -> object:
    """Open a table at a version, by default the latest, under a handle; return the version."""
    from deltalake import DeltaTable

    table = handles[request["handle"]] = DeltaTable(request["path"], version=request.get("version"))
    return table.version()


def close(request: Request) -> None:
    handles.pop(request["handle"], None)


def rows(request: Request) -> object:
    """Return the rows of an open table, each a list of JSON values."""
    import pyarrow as pa
    from deltalake import QueryBuilder

    query = QueryBuilder().register("t", handles[request["handle"]]).execute("SELECT * FROM t")
    found = pa.table(query.read_all())
    names = request["columns"]
    return [[_plain(row[name]) for name in names] for row in found.to_pylist()]


def write(request: Request) -> None:
    """Write rows with ``write_deltalake``: append or overwrite, perhaps limited by a predicate."""
    from deltalake import write_deltalake

    write_deltalake(
        handles[request["handle"]],
        _table(request["columns"], request["rows"]),
        mode=request["mode"],
        predicate=request.get("predicate"),
        commit_properties=_says(request),
    )


def delete(request: Request) -> None:
    handles[request["handle"]].delete(request.get("predicate"))


def update(request: Request) -> None:
    handles[request["handle"]].update(updates=request["sets"], predicate=request.get("predicate"))


def merge(request: Request) -> None:
    """Execute a MERGE of rows into an open table."""
    source = _table(request["columns"], request["rows"])
    merger = handles[request["handle"]].merge(
        source,
        request["on"],
        source_alias=request["source"],
        target_alias=request["target"],
    )
    for when, condition, values in request["clauses"]:
        then: Callable[..., Any] = getattr(merger, when)
        if when.endswith("_delete"):
            then(predicate=condition)
        else:
            then(values, predicate=condition)
    merger.execute()


def optimize(request: Request) -> None:
    """Compact or Z-order the files of an open table, perhaps only in some partitions."""
    optimizer = handles[request["handle"]].optimize
    filters = [tuple(part) for part in request["partitions"]] or None
    if request["zorder"]:
        optimizer.z_order(request["zorder"], partition_filters=filters)
    else:
        optimizer.compact(partition_filters=filters)


def _says(request: Request) -> Any:
    """Return the commit information that a request adds to what delta-rs writes."""
    from deltalake import CommitProperties

    said = request.get("says")
    return None if said is None else CommitProperties(custom_metadata=said)


def _table(columns: list[tuple[str, str]], values: list[list[Any]]) -> Any:
    """Return rows as a PyArrow table with these columns."""
    import pyarrow as pa

    arrays = [
        pa.array([_value(row[k], type_) for row in values], getattr(pa, TYPES[type_])())
        for k, (_, type_) in enumerate(columns)
    ]
    return pa.table(arrays, names=[name for name, _ in columns])


def _value(value: Any, type_: str) -> Any:
    return date.fromisoformat(value) if type_ == "DATE" and value is not None else value


def _plain(value: Any) -> Any:
    return {"date": value.isoformat()} if isinstance(value, date) else value


VERBS: dict[str, Callable[[Request], object]] = {
    "hello": hello,
    "create": create,
    "open": open_,
    "close": close,
    "rows": rows,
    "write": write,
    "delete": delete,
    "update": update,
    "merge": merge,
    "optimize": optimize,
}


def serve() -> None:
    """Answer requests until standard input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        try:
            said: dict[str, Any] = {"reply": VERBS[request["do"]](request)}
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 a panic in Rust is no Exception
            said = {"error": {"class": type(error).__name__, "message": str(error)}}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
