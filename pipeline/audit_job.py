"""Audits of many tables as a Spark job; findings are rows of a Delta table.

Every executor must see the tables' folders under the same paths. Tables are audited in parts, with
one commit for each part. So after a kill, each finished part is complete in the table ``out``, and
is not audited again.
"""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from isolitmus.checker.auditing.log_audit import audit
from isolitmus.model.audit import Audit, Finding, Overview
from isolitmus.model.budget import Budget
from isolitmus.model.errors import LogError
from isolitmus.pipeline.result_table import (
    ResultColumn,
    ResultTable,
    Table,
    refuse_without,
)
from isolitmus.pipeline.spark import MASTER, map_on_workers, open_spark, rows_function, write_parts
from isolitmus.specs.disk.input_files import real_path
from isolitmus.specs.disk.output_files import Location
from isolitmus.specs.logs.delta_log import latest_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

AUDITS = ResultTable(
    "findings",
    "a finding of an audit, or what else one says of a table",
    {
        "audit": ResultColumn("STRING", "id of the audit; its rows have the same"),
        "table": ResultColumn("STRING", "path of the table"),
        "kind": ResultColumn(
            "STRING",
            "kind of the finding; table: summary of the table; error: its log cannot be read",
        ),
        "certainty": ResultColumn("STRING", "certain or possible", null=True),
        "versions": ResultColumn("ARRAY<BIGINT>", "versions of the commits"),
        "why": ResultColumn(
            "STRING",
            "reason; of kind table, JSON: the audited versions, the newest commit, the counts, the"
            " notes",
        ),
    },
)
ABOUT, SAID = "isolitmus.audit", "findings of audits"
"""Name and value of the table property that says what the table holds."""


def audit_all(
    spark: Any,
    tables: Sequence[Path | str],
    *,
    out: Location | Path | str | None = None,
    budget: Budget | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[list[Audit], list[LogError]]:
    """Audit the tables at these paths, on Spark.

    Parameters
    ----------
    spark : SparkSession
        Session of any kind.
    tables : sequence of Path or str
        Folders of the tables.
    out : Location, Path or str, optional
        Delta table to which the findings are appended; created if missing. A table whose newest
        version was audited there is not audited again.
    budget : Budget, optional
        Limit of the work.
    progress : callable, optional
        Called with the number of finished tables.

    Returns
    -------
    audits : list of Audit
        Audits in the order of the tables. Once the budget is spent, the remaining ones are empty.
    errors : list of LogError
        Errors of tables that cannot be read.

    Raises
    ------
    IsolitmusError
        ``out`` holds something else.

    Examples
    --------
    >>> def audit_folder(spark, folder):
    ...     audits, errors = audit_all(spark, sorted(folder.iterdir()), out=folder / "findings")
    ...     return [audit for audit in audits if audit.findings], errors
    """
    name, known = uuid4().hex, dict[str, str]()
    paths = [str(real_path(Path(table))) for table in tables]
    table, rows = None, []
    if out is not None:
        place = Location.of(out)
        refuse_no_findings(place, spark)
        table = Table(spark, place, AUDITS, ABOUT, SAID)
        known = _audited(paths, table.rows("kind = 'table'").collect())

    def write(some: Sequence[str], places: Any) -> None:
        found = map_on_workers(spark, places, audit_function(some, name), AUDITS.schema)
        if table is None:
            rows.extend(found.collect())
        else:
            table.append(found)

    left = [path for path in paths if path not in known]
    ended = write_parts(
        spark,
        left,
        "audit, tables",
        write,
        budget=budget or Budget(),
        progress=None if progress is None else lambda more: progress(len(known) + more),
    )
    if table is not None:
        there = table.rows()
        own = there.where(there["audit"].isin(name, *known.values())).collect()
        rows = [row for row in own if row["audit"] == known.get(row["table"], name)]
    return audits_from_rows(dict(zip(paths, map(str, tables), strict=True)), rows, ended)


@contextmanager
def open_audit(
    master: str | None, out: Location | None
) -> Iterator[Callable[..., tuple[list[Audit], list[LogError]]]]:
    """Open Spark, and yield `audit_all` on it with this table.

    IsolitmusError, before Spark is started, if the table in a folder holds something else.
    """
    if out is not None:
        refuse_no_findings(out)
    with open_spark(master or MASTER) as spark:
        yield partial(audit_all, spark, out=out)


def _audited(paths: Sequence[str], rows: Iterable[Any]) -> dict[str, str]:
    """Return the audit id of each table whose newest version has been audited."""
    newest = {path: _newest(Path(path)) for path in paths}
    found = {}
    for row in rows:
        said = json.loads(row["why"]).get("newest")
        if said is not None and said == newest.get(row["table"]):
            found[row["table"]] = row["audit"]
    return found


def _newest(table: Path, version: int | None = None) -> list[int] | None:
    """Return number, size in bytes and modification time of a commit, by default the newest one.

    None if it does not exist.
    """
    found = latest_version(table) if version is None else version
    with suppress(OSError, LogError):
        state = (table / "_delta_log" / f"{found:020}.json").stat()
        return [found, state.st_size, state.st_mtime_ns]
    return None


def audit_function(
    paths: Sequence[str], name: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow`` from indexes into ``paths`` to the tables' rows."""

    def rows(path: str) -> Iterator[dict[str, Any]]:
        for values in _rows(path):
            yield dict(zip(AUDITS.columns, (name, path, *values), strict=True))

    return rows_function(paths, rows, AUDITS)


def _rows(path: str) -> Iterator[tuple[str, str | None, list[int], str]]:
    """Yield the rows of a table's audit: its summary and findings, or one of kind ``error``."""
    try:
        done = audit(Path(path))
    except LogError as error:
        yield "error", None, [], str(error)
        return
    counts = [[*key, number] for key, number in done.counts.items()]
    said = {"first": done.first, "last": done.last, "notes": done.notes, "seconds": done.seconds}
    said |= {"newest": _newest(Path(path), done.last)}
    said |= {"overview": None if done.overview is None else done.overview.to_json()}
    yield "table", None, [], json.dumps(said | {"counts": counts})
    for finding in done.findings:
        yield finding.kind, finding.certainty, list(finding.versions), finding.why


def audits_from_rows(
    names: dict[str, str], rows: Iterable[Any], ended: str | None = None
) -> tuple[list[Audit], list[LogError]]:
    """Return the audits and errors that rows describe.

    Parameters
    ----------
    names : dict of str to str
        Name of each table for the user, by path.
    rows : iterable of Row
        Rows of the table of findings.
    ended : str, optional
        Limit that ended the work; tables without rows then get an empty audit.
    """
    by_table: dict[str, list[Any]] = {path: [] for path in names}
    for row in rows:
        by_table[row["table"]].append(row)
    audits, errors = [], []
    for path, name in names.items():
        findings, said = [], None
        for row in by_table[path]:
            if row["kind"] == "error":
                errors.append(LogError(row["why"]))
            elif row["kind"] == "table":
                said = json.loads(row["why"])
            else:
                key = row["kind"], tuple(row["versions"]), row["certainty"]
                findings.append(Finding(*key, row["why"]))
        if said is not None:
            counts = {(kind, certainty): number for kind, certainty, number in said["counts"]}
            order = list(counts)
            findings.sort(key=lambda f: (order.index((f.kind, f.certainty)), f.versions[-1]))
            span, notes = (said["first"], said["last"]), tuple(said["notes"])
            told = None if said.get("overview") is None else Overview.of_json(said["overview"])
            seconds = said["seconds"]
            audits.append(
                Audit(name, *span, tuple(findings), counts, notes, seconds, overview=told)
            )
        elif ended is not None and not by_table[path]:
            audits.append(Audit(name, 0, -1, (), notes=(f"Unknown: {ended}.",), ended=ended))
    return audits, errors


def refuse_no_findings(out: Location, spark: Any = None) -> None:
    """Raise IsolitmusError if a place holds something other than findings.

    For a folder this needs no Spark.
    """
    refuse_without("findings", out, ABOUT, SAID, spark)
