"""Tables of a sweep: declarations of their columns, and the place that holds them.

A candidate has a number, its ``rank``, which determines its initial table, its statements and the
versions that they read. All rows about a candidate have its ``size`` and ``rank``, so that tables
can be joined. The property ``ABOUT`` of the tables describes the sweep, and the counts say which
shards are complete.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.scope import FRESH, fresh
from isolitmus.pipeline.result_table import ResultColumn, ResultTable, Table, table_property

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from isolitmus.checker.sweeps.shard_runner import Work
    from isolitmus.checker.sweeps.tally import Shards
    from isolitmus.model.scope import Scope
    from isolitmus.specs.disk.output_files import Location

VERSION = 1
"""Version of the columns below; tables of another version are not continued."""
KEEP = {
    "counts": (),
    "findings": ("findings",),
    "executions": ("findings", "candidates", "executions"),
    "verdicts": ("findings", "candidates", "executions", "histories", "verdicts"),
}
"""Tables kept for each value of ``--keep``, besides ``counts``, ``statements`` and ``inits``."""
FIXED = ("statements", "inits")
"""Tables that follow from the scope alone."""
BESIDE = ("replays",)
"""Other tables that may be in the same folder."""

_STEPS = "ARRAY<STRUCT<statement: INT, read_version: INT>>"
_FIRST = f"STRUCT<init: INT, last: INT, steps: {_STEPS}>"
_KIND = f"STRUCT<axiom: STRING, relations: ARRAY<STRING>, candidates: BIGINT, smallest: {_FIRST}>"
_FAILURE = f"STRUCT<init: INT, steps: {_STEPS}, sql: STRING, exception: STRING, why: STRING>"
_EDGES = "ARRAY<STRUCT<source: INT, target: INT, relation: STRING>>"
_TRANSACTIONS = (
    "ARRAY<STRUCT<statement: INT, read_version: INT, version: INT, blind: BOOLEAN, whole_table:"
    " BOOLEAN, changes_data: BOOLEAN, files_read: INT, files_added: INT, files_removed: INT>>"
)

_SIZE = ResultColumn("INT", "number of transactions of each candidate")
_RANK = ResultColumn("BIGINT", "number of the candidate among those of its size, from 0")
_SHARD = ResultColumn("BIGINT", "shard of the sweep that counted it, from 0")
_PROTOCOL = ResultColumn("STRING", "name of the protocol")
_LEVEL = ResultColumn("STRING", "name of the level")


def kept_tables(keep: str) -> tuple[str, ...]:
    """Return the tables that are written shard by shard.

    The counts are last: they say that the rows of the others are there.

    Examples
    --------
    >>> kept_tables("executions")
    ('candidates', 'executions', 'counts')
    """
    return (*(name for name in KEEP[keep] if name != "findings"), "counts")


def sweep_tables(scope: Scope) -> dict[str, ResultTable]:
    """Return the tables of a sweep of a scope, by name.

    Examples
    --------
    >>> from isolitmus.specs import scope
    >>> sweep_tables(scope("two-partitions"))["histories"].columns["tables"].type
    'ARRAY<STRUCT<t: ARRAY<STRUCT<id: INT, part: INT>>>>'
    """
    tables = ", ".join(
        f"{name}:"
        f" ARRAY<STRUCT<{', '.join(f'{c.name}: {c.type}' for c in schema.columns if c.name)}>>"
        for name, schema in scope.tables.items()
    )
    made = (
        ResultTable(
            "statements",
            "a statement of the scope",
            {
                "statement": ResultColumn("INT", "number, from 0"),
                "name": ResultColumn(
                    "STRING", "name of its transactions, if the scope has one", null=True
                ),
                "sql": ResultColumn(
                    "STRING", "SQL text; {fresh} is 100, 200, 400, … by the position of the commit"
                ),
            },
        ),
        ResultTable(
            "inits",
            "an initial table of the scope",
            {
                "init": ResultColumn("INT", "number, from 0"),
                "sql": ResultColumn("ARRAY<STRING>", "statements that create it"),
            },
        ),
        ResultTable(
            "counts",
            "a shard, a protocol and a level: what was counted of them",
            {
                "size": _SIZE,
                "shard": _SHARD,
                "candidates": ResultColumn("BIGINT", "number of candidates of the shard"),
                "protocol": _PROTOCOL,
                "level": _LEVEL,
                "admitted": ResultColumn("BIGINT", "number of candidates that the protocol admits"),
                "silent": ResultColumn("BIGINT", "candidates on which the protocol is silent"),
                "forbidden": ResultColumn(
                    "BIGINT", "number of admitted candidates that the level forbids"
                ),
                "unexplained": ResultColumn(
                    "BIGINT",
                    "number of admitted candidates with a version that no serial order produces",
                ),
                "not_log_order": ResultColumn(
                    "BIGINT",
                    "admitted candidates whose tables the log order does not produce",
                ),
                "failed": ResultColumn(
                    "BIGINT",
                    "candidates that fail at run time after commits that a protocol admits",
                ),
                "smallest": ResultColumn(
                    _FIRST,
                    "forbidden candidate with the fewest statements of the scope, then the first;"
                    " last: the last statement that it needs",
                    null=True,
                ),
                "kinds": ResultColumn(
                    f"ARRAY<{_KIND}>",
                    "forbidden candidates by violated axiom; empty if no findings are kept",
                ),
                "failure": ResultColumn(_FAILURE, "first candidate that fails", null=True),
            },
            by=("size",),
            checks={
                "admitted_are_candidates": "admitted + silent <= candidates",
                "forbidden_are_admitted": "forbidden <= admitted",
                "unexplained_are_admitted": "unexplained <= admitted AND not_log_order <= admitted",
            },
        ),
        ResultTable(
            "candidates",
            "a candidate",
            {
                "size": _SIZE,
                "shard": _SHARD,
                "rank": _RANK,
                "init": ResultColumn("INT", "initial table"),
                "steps": ResultColumn(
                    _STEPS, "statement and version read of each commit, in order"
                ),
                "outcome": ResultColumn(
                    "STRING",
                    "history: every statement changed something; idle: one changed nothing, not"
                    " counted; failed: one fails at run time",
                ),
                "position": ResultColumn(
                    "INT", "position of the commit, from 1, at which it is idle or fails", null=True
                ),
                "exception": ResultColumn("STRING", "exception with which it fails", null=True),
            },
            by=("size",),
            checks={"outcomes": "outcome IN ('history', 'idle', 'failed')"},
        ),
        ResultTable(
            "executions",
            "the outcome of a candidate that is not idle under a protocol",
            {
                "size": _SIZE,
                "protocol": _PROTOCOL,
                "shard": _SHARD,
                "rank": _RANK,
                "outcome": ResultColumn(
                    "STRING",
                    "admitted: all commit; aborted: one aborts; silent: the protocol is silent;"
                    " failed: a statement fails at run time, after admitted commits",
                ),
                "stopped": ResultColumn(
                    "INT", "position of the first commit that aborts", null=True
                ),
                "stopped_by": ResultColumn(
                    "INT", "position of the winning commit, if it is a single one", null=True
                ),
                "exception": ResultColumn(
                    "STRING",
                    "exception of the aborted one, or the violated axiom or the silence",
                    null=True,
                ),
            },
            by=("size", "protocol"),
            checks={
                "outcomes": "outcome IN ('admitted', 'aborted', 'silent', 'failed')",
                "stopped_unless_admitted": "(outcome = 'admitted') = (stopped IS NULL)",
            },
        ),
        ResultTable(
            "histories",
            "a candidate with all of its transactions committed, under no protocol",
            {
                "size": _SIZE,
                "shard": _SHARD,
                "rank": _RANK,
                "transactions": ResultColumn(
                    _TRANSACTIONS,
                    "read set and write set of each transaction, by commit position",
                ),
                "tables": ResultColumn(
                    f"ARRAY<STRUCT<{tables}>>", "rows of the tables at each version from 0"
                ),
                "dependencies": ResultColumn(
                    _EDGES, "wr, ww and rw between transactions, by position"
                ),
                "serial_orders": ResultColumn(
                    "ARRAY<ARRAY<INT>>",
                    "serial orders of the writers that produce the final tables, by position",
                ),
                "unexplained": ResultColumn(
                    "ARRAY<INT>",
                    "versions whose tables no serial order of the writers so far produces",
                ),
                "log_order": ResultColumn(
                    "BOOLEAN", "true if the order of the log produces the final tables"
                ),
            },
            by=("size",),
        ),
        ResultTable(
            "verdicts",
            "a history and a level",
            {
                "size": _SIZE,
                "level": _LEVEL,
                "shard": _SHARD,
                "rank": _RANK,
                "verdict": ResultColumn("STRING", "allowed or forbidden"),
                "axiom": ResultColumn("STRING", "violated axiom", null=True),
                "cycle": ResultColumn(
                    _EDGES, "dependencies that violate the axiom, by position", null=True
                ),
            },
            by=("size", "level"),
            checks={"verdicts": "(verdict = 'forbidden') = (axiom IS NOT NULL)"},
        ),
        ResultTable(
            "findings",
            "a protocol, a level and a kind of what the one admits and the other forbids",
            {
                "size": _SIZE,
                "protocol": _PROTOCOL,
                "level": _LEVEL,
                "axiom": ResultColumn("STRING", "violated axiom"),
                "relations": ResultColumn(
                    "ARRAY<STRING>",
                    "relations of the violating dependencies, in order",
                ),
                "candidates": ResultColumn("BIGINT", "number of candidates of the kind"),
                "smallest": ResultColumn(
                    "BOOLEAN", "true if the first candidate of the kind is the first of all kinds"
                ),
                "rank": ResultColumn(
                    "BIGINT", "first candidate of the kind, fewest statements of the scope first"
                ),
                "litmus": ResultColumn("STRING", "that candidate as a litmus file"),
            },
            by=("size",),
        ),
    )
    return {one.name: one for one in made}


ABOUT = "isolitmus.sweep"
"""Name of the table property that describes the sweep."""


class SweepData:
    """Tables of a sweep at a place, created if missing, for the rows that ``keep`` selects.

    Raises IsolitmusError if the place holds something else, or tables of another scope, of other
    specs or of another version.
    """

    def __init__(self, spark: Any, place: Location, work: Work, keep: str, cut: Shards) -> None:
        refuse_other_sweep(place, work, keep, cut, spark)
        self._spark, self._place, self._n = spark, place, work.n
        self.declared = sweep_tables(work.scope)
        self.tables: dict[str, Table] = {}
        about = json.dumps({"name": work.scope.name} | _about(work, keep, cut))
        own = [name for name in KEEP[keep] if name == "findings"]
        # the counts first, whose property describes the sweep
        for name in (*reversed(kept_tables(keep)), *own, *FIXED):
            at = place.inside(name)
            self.tables[name] = Table(spark, at, self.declared[name], ABOUT, about)
        self.done = {row["shard"] for row in self._counts().select("shard").distinct().collect()}
        """The shards that were counted before."""
        if not self.done:
            self.write("statements", _statements(work.scope), "true")
            self.write("inits", _inits(work.scope), "true")

    def put(self, name: str, first: int, last: int, rows: Any) -> None:
        """Write the rows of shards ``first`` to ``last`` in a table, from a DataFrame."""
        self.tables[name].replace(f"{self._own} AND shard BETWEEN {first} AND {last}", rows)

    def write(self, name: str, rows: Sequence[Mapping[str, Any]], where: str | None = None) -> None:
        """Write all rows of this sweep in a table, unless they are there."""
        import pyarrow as pa

        from isolitmus.pipeline.result_table import arrow_type

        made = pa.Table.from_struct_array(pa.array(rows, arrow_type(self.declared[name].type)))
        there = self.tables[name].rows(where or self._own).toArrow()
        if _as_set(there) != _as_set(made):
            self.tables[name].replace(where or self._own, self._spark.createDataFrame(made))

    def counts(self) -> list[Any]:
        """Return the rows of the counts.

        Raises IsolitmusError if some are duplicates, or if other tables have another number of
        rows.
        """
        found = self._counts().collect()
        places = {(row["shard"], row["protocol"], row["level"]) for row in found}
        if len(places) < len(found):
            raise self._wrong(
                "counts", f"{count_of(len(found) - len(places), 'row')} more than shards have"
            )
        self._compare(found)
        return list(found)

    def _counts(self) -> Any:
        return self.tables["counts"].rows(self._own)

    @property
    def _own(self) -> str:
        return f"size = {self._n}"

    def _compare(self, counts: Sequence[Any]) -> None:
        """Raise IsolitmusError if the rows of candidates do not fit the counts."""
        for name, wanted, found in (
            (
                "candidates",
                {"": _sum(counts, "candidates", ("shard",))},
                self._numbers("candidates"),
            ),
            (
                "executions",
                _by(counts, "protocol", "admitted", ("shard", "protocol")),
                self._numbers("executions", "protocol", "outcome = 'admitted'"),
            ),
            (
                "verdicts",
                _by(counts, "level", "forbidden", ("shard", "protocol", "level")),
                self._forbidden(),
            ),
        ):
            if found is not None and found != {k: n for k, n in wanted.items() if n}:
                key = next(k for k in (*wanted, *found) if found.get(k, 0) != wanted.get(k, 0))
                raise self._wrong(
                    name,
                    f"{found.get(key, 0):,} rows{f' of {key}' if key else ''}, where"
                    f" {wanted.get(key, 0):,} were counted",
                )

    def _numbers(self, name: str, by: str | None = None, where: str = "true") -> Any:
        """Return the number of matching rows by value of `by`; None without the table."""
        if name not in self.tables:
            return None
        rows = self.tables[name].rows(f"{self._own} AND {where}")
        if by is None:
            return {"": rows.count()}
        return {row[by]: row["count"] for row in rows.groupBy(by).count().collect()}

    def _forbidden(self) -> dict[str, int] | None:
        """Return, by level, the number of admitted and forbidden candidates, over all protocols."""
        if "verdicts" not in self.tables:
            return None
        admitted = self.tables["executions"].rows(f"{self._own} AND outcome = 'admitted'")
        forbidden = self.tables["verdicts"].rows(f"{self._own} AND verdict = 'forbidden'")
        both = forbidden.select("rank", "level").join(admitted.select("rank"), "rank")
        return {row["level"]: row["count"] for row in both.groupBy("level").count().collect()}

    def _wrong(self, name: str, what: str) -> IsolitmusError:
        """Return the error for a table with rows of another writer."""
        return IsolitmusError(
            f"--out {self._place}: the table {name} has {what}: somebody else wrote there; remove"
            " the folder"
        )


def refuse_other_sweep(
    place: Location, work: Work, keep: str, cut: Shards, spark: Any = None
) -> None:
    """Raise IsolitmusError if a place holds something other than the tables of this sweep.

    For a folder of this machine this needs no Spark.
    """
    path = place.path
    if path is not None:
        if path.exists() and not path.is_dir():
            raise IsolitmusError(f"--out {place}: there is a file; name a folder")
        if not path.exists() or not any(path.iterdir()):
            return
        odd = sorted(
            {one.name for one in path.iterdir()} - sweep_tables(work.scope).keys() - {*BESIDE}
        )
        if odd:
            raise IsolitmusError(
                f"--out {place}: '{odd[0]}' in it is not a table of a sweep; name a new folder"
            )
    there = table_property(place.inside("counts"), ABOUT, spark)
    if there is None:
        return
    known = json.loads(there or "{}")
    for key, value in _about(work, keep, cut).items():
        if known.get(key) != value:
            raise IsolitmusError(f"--out {place}: {_differs(key, known, value, work)}")


def _about(work: Work, keep: str, cut: Shards) -> dict[str, object]:
    """Return the parameters that determine the rows."""
    return {
        "version": VERSION,
        "scope": work.scope.text,
        "protocols": {spec.name: spec.text for spec in work.protocols},
        "levels": {spec.name: spec.text for spec in work.levels},
        "keep": keep,
        "largest": cut.largest,
    }


def _differs(key: str, known: Mapping[str, Any], own: object, work: Work) -> str:
    """Return the reason why existing tables do not belong to this sweep, and the fix."""
    if not known:
        return "it holds no tables of a sweep; name a folder that is not there yet"
    if key == "version":
        return (
            f"it holds tables of version {known.get('version')}, and this isolitmus writes version"
            f" {own}; name a folder that is not there yet"
        )
    if key == "keep":
        return (
            f"it was made with --keep {known['keep']}, not {own}; go on with that, or name another"
            " folder"
        )
    return (
        f"it holds the tables of another sweep ({key}: not the same as those of {work.scope.name});"
        " name a folder that is not there yet"
    )


def _statements(scope: Scope) -> list[dict[str, Any]]:
    """Return the rows of the table of statements, one for each statement of the scope."""
    return [
        {
            "statement": k,
            "name": scope.jobs.get(at[0].sql),
            "sql": _pattern(*(s.sql for s in at[:2])),
        }
        for k, at in enumerate(scope.statements)
    ]


def _pattern(first: str, second: str) -> str:
    """Return a statement as its scope has it, from its texts at the first two positions.

    Examples
    --------
    >>> _pattern("INSERT INTO t VALUES (100, 100)", "INSERT INTO t VALUES (200, 100)")
    'INSERT INTO t VALUES ({fresh}, 100)'
    """
    own, other = str(fresh(1)), str(fresh(2))
    place = 0
    while first != second:
        place = next(i for i in range(place, len(second)) if first[i : i + 1] != second[i])
        first = f"{first[:place]}{FRESH}{first[place + len(own) :]}"
        second = f"{second[:place]}{FRESH}{second[place + len(other) :]}"
    return first


def _inits(scope: Scope) -> list[dict[str, Any]]:
    """Return the rows of the table of initial contents, one for each init of the scope."""
    return [
        {"init": k, "sql": [statement.sql for statement in init]}
        for k, init in enumerate(scope.inits)
    ]


def _as_set(rows: Any) -> list[str]:
    """Return a value that is equal for two Arrow tables with the same rows in any order."""
    return sorted(map(repr, rows.to_pylist()))


def _sum(rows: Iterable[Any], column: str, of: Sequence[str]) -> int:
    """Return the sum of a column over the distinct ``of``, each of which determines its value."""
    return sum({tuple(row[name] for name in of): row[column] for row in rows}.values())


def _by(rows: Sequence[Any], key: str, column: str, of: Sequence[str]) -> dict[str, int]:
    names = dict.fromkeys(row[key] for row in rows)
    return {name: _sum((r for r in rows if r[key] == name), column, of) for name in names}
