"""Many histories judged as a job of Spark: a row for each history and level in a Delta table.

Every executor must see the files under the same paths. Files are judged some at a time, their rows
written in one commit; a file whose rows are there, and which was not changed since, is not judged
again.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
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
    Location,
    ResultColumn,
    ResultTable,
    Table,
    table_property,
    text_literal,
)
from isolitmus.pipeline.spark import map_on_workers, rows_function, write_parts
from isolitmus.specs.disk.input_files import real_path
from isolitmus.specs.files.catalogue import every_level, spec
from isolitmus.specs.logs.delta_log import is_delta_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from isolitmus.checker.checks.history_check import HistoryVerdicts

    HistoryFile = tuple[str, Path]

__all__ = ["VERDICTS", "BulkCheck", "check_all", "check_function", "refuse_other_check"]

VERDICTS = ResultTable(
    "verdicts",
    "a history and a level, or a file that does not read",
    {
        "file": ResultColumn("STRING", "the path of the file, or of the table"),
        "bytes": ResultColumn("BIGINT", "how large it was"),
        "modified": ResultColumn("BIGINT", "when it was last changed, in nanoseconds since 1970"),
        "format": ResultColumn("STRING", "what it was read as"),
        "history": ResultColumn("STRING", "which history of the file, by its name", null=True),
        "transactions": ResultColumn("BIGINT", "how many it has", null=True),
        "operations": ResultColumn("BIGINT", "how many reads and writes it has", null=True),
        "level": ResultColumn("STRING", "the name of the level", null=True),
        "verdict": ResultColumn("STRING", "allowed, forbidden, unknown, silent; error: it was not judged"),
        "anomalies": ResultColumn("ARRAY<STRING>", "what a forbidden one is called", null=True),
        "axiom": ResultColumn("STRING", "the axiom that is broken", null=True),
        "cycle": ResultColumn(
            "ARRAY<STRUCT<source: STRING, target: STRING, relation: STRING, why: STRING>>",
            "the dependencies that break it",
            null=True,
        ),
        "witness": ResultColumn("ARRAY<STRING>", "an order that shows that it is allowed", null=True),
        "assumptions": ResultColumn("ARRAY<STRING>", "what the history leaves open and was taken for granted", null=True),
        "reason": ResultColumn("STRING", "why it is unknown, or what is wrong with the file", null=True),
        "seconds": ResultColumn("DOUBLE", "how long the history took, at all levels together", null=True),
    },
    checks={
        "verdicts": "verdict IN ('allowed', 'forbidden', 'unknown', 'silent', 'error')",
        "judged_or_error": "(verdict = 'error') = (level IS NULL)",
    },
)  # fmt: skip
"""A row for each history and level, and one for each file, or part of one, that could not be
judged.
"""
ABOUT = "isolitmus.check"
"""The table property that says by which levels the rows are."""
TOLD = 20
"""So many files that do not read are told of."""
TOLD_OF = ("file", "history", "level", "verdict", "reason")
"""The columns that what is said is made of."""


@dataclass(frozen=True, slots=True)
class BulkCheck:
    """What was judged of many files."""

    files: int
    """How many there are."""
    judged: int
    """How many of them are in the table: the others were not reached."""
    histories: int
    """How many histories they hold."""
    levels: dict[str, dict[str, int]]
    """By level how many have each verdict."""
    errors: tuple[tuple[str, str], ...]
    """The first that do not read, and why."""
    unread: int
    """How many do not."""
    seconds: float
    """How long it took."""
    ended: str | None = None
    """What ended it before all were judged, if something did."""

    def lines(self) -> Iterator[str]:
        """The counts for a person.

        >>> print(*BulkCheck(2, 2, 1, {"causal": {"forbidden": 1}}, (("b.txt", "b.txt:1: no"),), 1, 0.2).lines(), sep=chr(10))
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
                yield (
                    f"  {reason if reason.startswith((file, Path(file).name)) else f'{file}: {reason}'}"
                )
            if self.unread > len(self.errors):
                yield f"  and {self.unread - len(self.errors):,} more"
        if self.ended is not None:
            yield f"{count_of(self.files - self.judged, 'file')} were not reached: {self.ended}"

    def to_json(self) -> dict[str, object]:
        """The counts as docs/interface.md, 6, has them."""
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
    """Judge the histories of files, each with its format
    (``checker.checks.history_sources.history_files``), at ``levels`` by name (None: all that a
    history can be asked).

    ``spark`` is a SparkSession of any kind. ``out`` is a Delta table (a path, or whatever
    ``pipeline.result_table.Location`` says), made if there is none. IsolitmusError if it holds
    something else, or verdicts by other levels. Once the ``budget`` is spent: what was judged until
    then.
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


def check_function(
    files: Sequence[HistoryFile], levels: Sequence[str] | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for ``mapInArrow``: of batches of places in ``files`` the rows of those files."""
    return rows_function(files, lambda file: _rows(file, levels), VERDICTS)


def _rows(of: HistoryFile, levels: Sequence[str] | None) -> Iterator[dict[str, Any]]:
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
    """IsolitmusError if there is something at a place that holds no verdicts by these levels; needs
    no Spark for a folder.
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
    """By which levels verdicts are: their texts."""
    texts = {name: spec(name).text for name in levels or every_level()}
    digest = sha256(json.dumps(texts).encode()).hexdigest()
    return json.dumps({"levels": "all" if levels is None else list(levels), "text": digest})


def _state(path: Path) -> tuple[int, int]:
    """How large a file is, and when it was changed; of a Delta table that of its log. Zeros if it
    is not there.
    """
    try:
        of = (path / "_delta_log" if is_delta_table(path) else path).stat()
    except OSError:
        return 0, 0
    return of.st_size, of.st_mtime_ns


def _told(
    rows: Sequence[Any], names: Mapping[str, str], seconds: float, ended: str | None
) -> BulkCheck:
    """What rows say; ``names`` are what users call the files of these paths."""
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
