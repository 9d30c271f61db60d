"""Verdicts on many histories as a Spark job: a row of a Delta table for each history and level.

Every executor must see the files under the same paths. Files are judged in parts, whose rows are
written in one commit. A file that has rows and was not changed since is not judged again.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from isolitmus.checker.checks.history_sources import check_file
from isolitmus.checker.judge.anomalies import anomaly_names
from isolitmus.model.budget import Budget
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.verdict import Allowed, Forbidden, Unknown
from isolitmus.pipeline.result_table import (
    ResultColumn,
    ResultTable,
    Table,
    table_property,
    text_literal,
)
from isolitmus.pipeline.spark import MASTER, map_on_workers, open_spark, rows_function, write_parts
from isolitmus.specs.disk.input_files import is_delta_table, real_path
from isolitmus.specs.disk.output_files import Location
from isolitmus.specs.files.spec_catalogue import every_level, spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from isolitmus.checker.checks.history_verdicts import HistoryVerdicts

    HistoryFile = tuple[str, Path]

VERDICTS = ResultTable(
    "verdicts",
    "a history and a level, or a file that does not read",
    {
        "file": ResultColumn("STRING", "path of the file, or of the table"),
        "bytes": ResultColumn("BIGINT", "size in bytes"),
        "modified": ResultColumn("BIGINT", "time of the last change, in nanoseconds since 1970"),
        "format": ResultColumn("STRING", "format as which it was read"),
        "history": ResultColumn("STRING", "name of the history in the file", null=True),
        "transactions": ResultColumn("BIGINT", "number of transactions", null=True),
        "operations": ResultColumn("BIGINT", "number of reads and writes", null=True),
        "level": ResultColumn("STRING", "name of the level", null=True),
        "verdict": ResultColumn(
            "STRING", "allowed, forbidden, unknown or silent; error: not judged"
        ),
        "anomalies": ResultColumn(
            "ARRAY<STRING>", "names of the anomalies, if forbidden", null=True
        ),
        "axiom": ResultColumn("STRING", "violated axiom", null=True),
        "cycle": ResultColumn(
            "ARRAY<STRUCT<source: STRING, target: STRING, relation: STRING, why: STRING>>",
            "dependencies that violate the axiom",
            null=True,
        ),
        "witness": ResultColumn("ARRAY<STRING>", "serial order that the level allows", null=True),
        "assumptions": ResultColumn(
            "ARRAY<STRING>", "assumptions about what the history does not record", null=True
        ),
        "reason": ResultColumn(
            "STRING", "reason if it is unknown, or the error of the file", null=True
        ),
        "seconds": ResultColumn(
            "DOUBLE", "duration of the check of the history at all levels, in seconds", null=True
        ),
    },
    checks={
        "verdicts": "verdict IN ('allowed', 'forbidden', 'unknown', 'silent', 'error')",
        "judged_or_error": "(verdict = 'error') = (level IS NULL)",
    },
)
"""Table with a row for each history and level, and for each file or part that was not judged."""
ABOUT = "isolitmus.check"
"""Name of the table property with the levels of the rows."""
TOLD = 20
"""Maximum number of unreadable files that are reported."""
TOLD_OF = ("file", "history", "level", "verdict", "reason")
"""Columns from which the summary is made."""


@dataclass(frozen=True, slots=True)
class BulkCheck:
    """Summary of the verdicts on many files."""

    files: int
    """Number of files."""
    judged: int
    """Number of files with rows; the others were not reached."""
    histories: int
    """Number of histories in the files."""
    levels: dict[str, dict[str, int]]
    """Number of histories with each verdict, by level."""
    errors: tuple[tuple[str, str], ...]
    """First unreadable files, each with the reason."""
    unread: int
    """Number of unreadable files."""
    seconds: float
    """Duration in seconds."""
    ended: str | None = None
    """Limit that ended the work early, if any."""

    def lines(self) -> Iterator[str]:
        """Yield the counts as lines of text.

        Examples
        --------
        >>> errors = (("b.txt", "b.txt:1: no"),)
        >>> found = BulkCheck(2, 2, 1, {"causal": {"forbidden": 1}}, errors, 1, 0.2)
        >>> print(*found.lines(), sep=chr(10))
        1 history of 2 files, in 0.2 s
          causal: 1 forbidden
        1 file, or a part of one, could not be judged:
          b.txt:1: no
        """
        yield (
            f"{count_of(self.histories, 'history', 'histories')} of {count_of(self.files, 'file')},"
            f" in {self.seconds:.1f} s"
        )
        for level, verdicts in self.levels.items():
            yield f"  {level}: {', '.join(f'{n:,} {verdict}' for verdict, n in verdicts.items())}"
        if self.unread:
            yield f"{count_of(self.unread, 'file')}, or a part of one, could not be judged:"
            for file, reason in self.errors:
                named = reason.startswith((file, Path(file).name))
                yield f"  {reason if named else f'{file}: {reason}'}"
            if self.unread > len(self.errors):
                yield f"  and {self.unread - len(self.errors):,} more"
        if self.ended is not None:
            yield f"{count_of(self.files - self.judged, 'file')} were not reached: {self.ended}"

    def to_json(self) -> dict[str, object]:
        """Return the JSON document that docs/interface.md, section 6, describes."""
        return {
            "files": self.files,
            "judged": self.judged,
            "histories": self.histories,
            "levels": self.levels,
            "errors": [{"file": file, "reason": reason} for file, reason in self.errors],
            "unread": self.unread,
            "ended": self.ended,
            "seconds": round(self.seconds, 3),
        }


def check_all(
    spark: Any,
    files: Sequence[HistoryFile],
    *,
    levels: Sequence[str] | None = None,
    out: Location | Path | str | None = None,
    budget: Budget | None = None,
    progress: Callable[[int], None] | None = None,
) -> BulkCheck:
    """Judge the histories of files at levels, on Spark.

    Parameters
    ----------
    spark : SparkSession
        Session of any kind.
    files : sequence of (str, Path)
        Format and path of each file (``checker.checks.history_sources.history_files``).
    levels : sequence of str, optional
        Names of levels; by default all that apply to a history.
    out : Location, Path or str, optional
        Delta table for the verdicts; created if missing.
    budget : Budget, optional
        Limit of the work. Once it is spent, the result covers what was judged until then.
    progress : callable, optional
        Called with the number of finished files.

    Returns
    -------
    BulkCheck
        Numbers of verdicts and errors; the verdicts themselves if there is no ``out``.

    Raises
    ------
    IsolitmusError
        ``out`` holds something else, or verdicts by other levels.

    Examples
    --------
    >>> def check_folder(spark, folder, out):
    ...     files = [("elle", path) for path in sorted(folder.glob("*.edn"))]
    ...     return check_all(spark, files, levels=["serializable"], out=out)
    """
    start = monotonic()
    wanted = {str(real_path(path)): (kind, real_path(path)) for kind, path in files}
    table, rows, known = None, [], set[tuple[Any, ...]]()
    if out is not None:
        place = Location.of(out)
        refuse_other_check(place, levels, spark)
        table = Table(spark, place, VERDICTS, ABOUT, _about(levels))
        there = table.rows().select("file", "bytes", "modified").distinct().collect()
        known = {tuple(row) for row in there}
    left = [one for file, one in wanted.items() if (file, *_state(one[1])) not in known]
    done = len(wanted) - len(left)

    def write(some: Sequence[HistoryFile], places: Any) -> None:
        found = map_on_workers(spark, places, check_function(some, levels), VERDICTS.schema)
        if table is None:
            rows.extend(found.select(*TOLD_OF).collect())
        else:
            own = ", ".join(text_literal(str(path)) for _, path in some)
            table.replace(f"file IN ({own})", found)

    ended = write_parts(
        spark,
        left,
        "check, files",
        write,
        budget=budget or Budget(),
        progress=None if progress is None else lambda more: progress(done + more),
    )
    if table is not None:
        own = spark.createDataFrame([(file,) for file in wanted], "file STRING")
        rows = table.rows().join(own, "file").select(*TOLD_OF).collect()
    names = {str(real_path(path)): str(path) for _, path in files}
    return _told(rows, names, monotonic() - start, ended)


@contextmanager
def open_check(
    master: str | None, out: Location | None, levels: Sequence[str] | None
) -> Iterator[Callable[..., BulkCheck]]:
    """Open Spark, and yield `check_all` on it with these levels and this table.

    IsolitmusError, before Spark is started, if the table in a folder holds something else.
    """
    if out is not None:
        refuse_other_check(out, levels)
    with open_spark(master or MASTER) as spark:
        yield partial(check_all, spark, levels=levels, out=out)


def check_function(
    files: Sequence[HistoryFile], levels: Sequence[str] | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow`` from indexes into ``files`` to the files' rows."""
    return rows_function(files, lambda file: _rows(file, levels), VERDICTS)


def _rows(of: HistoryFile, levels: Sequence[str] | None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file: the verdicts on its histories, then errors of those not checked."""
    kind, path = of
    size, modified = _state(path)
    whole = {"file": str(path), "bytes": size, "modified": modified, "format": kind}
    refused: list[tuple[str, str]] = []

    def refuse(name: str, error: IsolitmusError) -> None:
        refused.append((name, str(error)))

    for name, _, checked in check_file(kind, path, levels, Budget(), refuse):
        yield from _of_history(whole | {"history": name}, checked)
    for name, why in refused:
        yield whole | {"history": name, "verdict": "error", "reason": why}


def _of_history(whole: dict[str, Any], checked: HistoryVerdicts) -> Iterator[dict[str, Any]]:
    """Yield a row for each level: its verdict on the history with cycle, witness or reason."""
    whole |= {
        "transactions": checked.transactions,
        "operations": checked.operations,
        "assumptions": list(checked.assumptions),
        "seconds": checked.seconds,
    }
    for level, verdict in checked.levels.items():
        row = whole | {
            "level": level,
            "verdict": str(verdict),
            "anomalies": list(anomaly_names(verdict)),
        }
        if isinstance(verdict, Forbidden):
            first = verdict.violations[0]
            edges = (
                {"source": e.source, "target": e.target, "relation": e.kind, "why": e.why}
                for e in first.cycle
            )
            row |= {"axiom": first.axiom, "cycle": list(edges)}
        if isinstance(verdict, Allowed):
            row["witness"] = list(verdict.witness)
        if isinstance(verdict, Unknown):
            row["reason"] = verdict.reason
        yield row


def refuse_other_check(out: Location, levels: Sequence[str] | None, spark: Any = None) -> None:
    """Raise IsolitmusError if a place holds something other than verdicts by these levels.

    For a folder this needs no Spark.
    """
    there = table_property(out, ABOUT, spark)
    if there == "":
        raise IsolitmusError(
            f"--out {out}: this table holds no verdicts; name a folder that is not there yet"
        )
    if there not in {None, _about(levels)}:
        raise IsolitmusError(
            f"--out {out}: its verdicts are by other levels, or by another text of theirs; name a"
            " folder that is not there yet"
        )


def _about(levels: Sequence[str] | None) -> str:
    """Return the levels of verdicts, with a digest of their texts."""
    texts = {name: spec(name).text for name in levels or every_level()}
    digest = sha256(json.dumps(texts).encode()).hexdigest()
    return json.dumps({"levels": "all" if levels is None else list(levels), "text": digest})


def _state(path: Path) -> tuple[int, int]:
    """Return size and modification time of a file, or of a Delta table's log; zeros if missing."""
    try:
        of = (path / "_delta_log" if is_delta_table(path) else path).stat()
    except OSError:
        return 0, 0
    return of.st_size, of.st_mtime_ns


def _told(
    rows: Sequence[Any], names: Mapping[str, str], seconds: float, ended: str | None
) -> BulkCheck:
    """Return the summary of rows; ``names`` has the name of each file for the user, by path."""
    levels: dict[str, Counter[str]] = {}
    for row in rows:
        if row["level"] is not None:
            levels.setdefault(row["level"], Counter())[row["verdict"]] += 1
    wrong = sorted(
        (names[row["file"]], row["reason"].replace(row["file"], names[row["file"]]))
        for row in rows
        if row["level"] is None
    )
    return BulkCheck(
        len(names),
        len({row["file"] for row in rows}),
        len({(row["file"], row["history"]) for row in rows if row["level"] is not None}),
        {name: dict(sorted(levels[name].items())) for name in sorted(levels)},
        tuple(wrong[:TOLD]),
        len(wrong),
        seconds,
        ended,
    )
