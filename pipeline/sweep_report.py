"""Report of a sweep's tables, by queries without Spark.

DuckDB reads the Parquet files that the logs of the tables name.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import duckdb
from sqlglot import exp

from isolitmus.checker.render.sweeps import CountedPair, FoundKind, Stops, SweepPage, sweep_page
from isolitmus.model.delta.log import LogFile, live_files
from isolitmus.model.errors import IsolitmusError, brief
from isolitmus.model.litmus import Litmus
from isolitmus.pipeline.result_table import table_property
from isolitmus.pipeline.sweep_tables import ABOUT, VERSION, sweep_tables
from isolitmus.specs.disk.input_files import is_delta_table
from isolitmus.specs.disk.output_files import Location
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.scope_file import read_scope
from isolitmus.specs.files.spec_reader import read_spec
from isolitmus.specs.logs.delta_log import open_log

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.checker.render.page_parts import PageOrigin
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec
    from isolitmus.pipeline.result_table import ResultTable

COUNTS = (
    "\n    SELECT size, sum(candidates), protocol, level, sum(admitted), sum(forbidden),"
    " sum(unexplained), sum(not_log_order)\n"
    "    FROM counts GROUP BY size, protocol, level ORDER BY size, protocol, level\n"
)
STOPS = """
    SELECT protocol, level, steps[stopped].statement, steps[stopped_by].statement, count(*),
           count(*) FILTER (verdict = 'allowed')
    FROM executions e JOIN candidates USING (size, rank) JOIN verdicts USING (size, rank)
    WHERE e.outcome = 'aborted' AND stopped_by IS NOT NULL
    GROUP BY ALL ORDER BY ALL
"""
KINDS = """
    SELECT size, protocol, level, axiom, relations, candidates, litmus
    FROM findings ORDER BY size, protocol, level, rank
"""


def sum_tables(folder: SweepFolder | Path | str) -> SweepPage:
    """Return the counts and the kinds of histories in the tables of a sweep on Spark.

    Parameters
    ----------
    folder : SweepFolder, Path or str
        What ``isolitmus sweep --spark --out`` wrote.

    Returns
    -------
    SweepPage
        Counts by size, protocol and level, and the smallest history of each kind.

    Raises
    ------
    IsolitmusError
        If the tables are damaged or empty.

    Examples
    --------
    >>> sum_tables("no-such-folder")
    Traceback (most recent call last):
        ...
    isolitmus.model.errors.IsolitmusError: no-such-folder: no tables of a sweep are there; ...
    """
    if not isinstance(folder, SweepFolder):
        folder = SweepFolder(Path(folder))
    with folder.reading():
        page = _summed(folder)
    if not page.counts:
        raise IsolitmusError(
            f"{folder.path}: nothing in it was counted; sweep the scope again with --out"
            f" {folder.path}, which goes on"
        )
    return page


def _summed(folder: SweepFolder) -> SweepPage:
    """Return the data of the report's page, aggregated from a sweep's tables."""
    stops = folder.rows(STOPS) if folder.has("verdicts") else []
    kinds = folder.rows(KINDS) if folder.has("findings") else []
    patterns = [sql for (sql,) in folder.rows("SELECT sql FROM statements ORDER BY statement")]
    stopped = [Stops(*row) for row in stops]
    for one in stopped:
        assert max(one.loser, one.winner) < len(patterns), "statements are missing"
    return SweepPage(
        folder.scope.title,
        folder.scope.source,
        patterns,
        [CountedPair(*row) for row in folder.rows(COUNTS)],
        stopped,
        [FoundKind(*row) for row in kinds],
    )


def build_sweep_page(folder: SweepFolder, page: SweepPage, made: PageOrigin) -> str:
    """Return the HTML page of a folder's tables; raise IsolitmusError if they are damaged."""
    with folder.reading():
        tests = [_test(kind.litmus, f"kind-{k}") for k, kind in enumerate(page.kinds)]
        return sweep_page(page, tests, folder.specs(), made)


def _test(text: str, name: str) -> Litmus:
    test = read_litmus(text, name)
    assert isinstance(test, Litmus)
    return test


DAMAGED = (duckdb.Error, ArithmeticError, AssertionError, LookupError, TypeError, ValueError)
"""Exceptions that reading damaged tables may raise."""


class SweepFolder:
    """Tables in a folder, as views of DuckDB; raises IsolitmusError if no sweep wrote them."""

    def __init__(self, path: Path) -> None:
        about = (
            table_property(Location(str(path)).inside("counts"), ABOUT)
            if is_delta_table(path / "counts")
            else None
        )
        if not about:
            raise IsolitmusError(
                f"{path}: no tables of a sweep are there; isolitmus sweep SCOPE --spark --out"
                f" {path} writes them"
            )
        self.path = path
        with self.reading():
            said = json.loads(about)
            if said["version"] != VERSION:
                raise IsolitmusError(
                    f"{path}: its tables are of version {said['version']}, and this isolitmus reads"
                    f" version {VERSION}: count anew into another folder"
                )
            self.keep: str = said["keep"]
            self.scope: Scope = read_scope(said["scope"], said["name"])
            self.levels: dict[str, str] = said["levels"]
            self.protocols: dict[str, str] = said["protocols"]
            self._duck = duckdb.connect()
            self._names = [name for name in sweep_tables(self.scope) if is_delta_table(path / name)]
            for name in self._names:
                self._view(path / name, sweep_tables(self.scope)[name])

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Convert errors of missing or damaged files, and of invalid rows, to IsolitmusError."""
        try:
            yield
        except DAMAGED as problem:
            raise IsolitmusError(
                f"{self.path}: its tables are damaged ({brief(str(problem), 160)}); count anew into"
                " another folder"
            ) from None

    def has(self, table: str) -> bool:
        """Return whether the sweep keeps a table."""
        return table in self._names

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return self._duck.sql(sql).fetchall()

    def specs(self) -> dict[str, Spec]:
        """Return the protocols and levels of the sweep, by name."""
        return {
            name: read_spec(text, name) for name, text in {**self.protocols, **self.levels}.items()
        }

    def _view(self, path: Path, table: ResultTable) -> None:
        """Create a DuckDB view of a table's Parquet files, or an empty table if there are none."""
        types = {
            name: exp.DataType.build(column.type, dialect="spark").sql("duckdb")
            for name, column in table.columns.items()
        }
        files = _files(path)
        if not files:
            columns = ", ".join(f"{name} {type_}" for name, type_ in types.items())
            self._duck.execute(f"CREATE TABLE {table.name} ({columns})")
            return
        by = ", ".join(f"'{name}': {types[name]}" for name in table.by)
        hive = f", hive_partitioning = true, hive_types = {{{by}}}" if by else ""
        listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
        self._duck.execute(
            f"CREATE VIEW {table.name} AS SELECT * FROM read_parquet([{listed}]{hive})"
        )


def _files(table: Path) -> list[str]:
    log = open_log(table)
    before = [part for part in log.begin() if isinstance(part, LogFile)]
    return [str(table / unquote(file.path)) for file in live_files(log.commits(), before)]
