"""What runs in Spark's Python workers: shards in, rows of the sweep's tables out, as Arrow batches.

Candidates as rows: what a listing found of a shard, in Arrow's columns, by taking each thing once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from isolitmus.checker.sweeps.kernel import Kernel
from isolitmus.checker.sweeps.listing import Listing
from isolitmus.checker.sweeps.tally import BrokenKind, FailedStatement, Tallies
from isolitmus.pipeline.arrow_types import arrow_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from numpy.typing import NDArray

    from isolitmus.checker.sweeps.listing import ListedShard
    from isolitmus.checker.sweeps.shard_runner import Work
    from isolitmus.checker.sweeps.tally import Choices, First, Shards, Tally
    from isolitmus.pipeline.result_table import ResultTable

    Numbers = NDArray[np.int64]
    Columns = dict[str, object]

__all__ = ["ShardTask", "candidate_rows", "count_function", "count_rows", "tallies_from_rows"]


class ShardTask(NamedTuple):
    """What is to be counted, and what is kept of it."""

    name: str
    """Of this call: what a worker remembers is for one."""
    work: Work
    """What is counted."""
    cut: Shards
    """Its shards."""
    tables: Mapping[str, ResultTable]
    """Those that shards have rows in, the counts last."""
    kinds: bool
    """Whether what is forbidden is counted by its kind."""

    @property
    def one_of(self) -> str:
        """Rows of several tables as rows of one schema: a column for each, of which one is not NULL."""
        return ", ".join(f"{name} {table.type}" for name, table in self.tables.items())


_known: dict[str, tuple[Kernel, Listing | None]] = {}
"""What a worker counts and lists with, with all that it remembers, under the name of the work."""


def count_function(
    task: ShardTask, wanted: Sequence[int]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for ``mapInArrow``: of batches of places in ``wanted`` the rows of those shards."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # by the module's name: this function travels with a copy of what it names, the worker's memory must not

        for places in batches:
            for place in places.column(0).to_pylist():
                yield from count_rows(task, wanted[place])

    return count


def count_rows(task: ShardTask, index: int) -> Iterator[pa.RecordBatch]:
    """The rows of a shard in each table, the counts last; what is found out is remembered for others of the task."""
    import pyarrow as pa

    from isolitmus.pipeline.arrow_types import arrow_type

    name, work, cut, tables, kinds = task
    if name not in _known:
        _known.clear()
        counting = Kernel(work.scope, work.n, work.protocols, work.levels, kinds=kinds)
        _known[name] = counting, Listing(work) if len(tables) > 1 else None
    kernel, listing = _known[name]
    types = {table: arrow_type(declared.type) for table, declared in tables.items()}

    def batch(table: str, rows: pa.StructArray) -> pa.RecordBatch:
        columns = {
            other: rows if other == table else pa.nulls(len(rows), kind)
            for other, kind in types.items()
        }
        return pa.RecordBatch.from_pydict(columns)

    if listing is not None:
        found = listing.of(cut[index])
        for table, rows in candidate_rows(work, listing, found, index, tables):
            yield batch(table, rows)
    counted = list(_rows(work, index, cut.each, kernel.count(cut[index])))
    yield batch("counts", pa.array(counted, types["counts"]))


def _rows(work: Work, index: int, each: int, tallies: Tallies) -> Iterator[dict[str, Any]]:
    failure = tallies.failure
    for protocol, tally in tallies.of.items():
        for level, forbidden in tally.forbidden.items():
            yield {
                "size": work.n,
                "shard": index,
                "candidates": each,
                "protocol": protocol,
                "level": level,
                "admitted": tally.admitted,
                "silent": tally.silent,
                "forbidden": forbidden,
                "unexplained": tally.unexplained,
                "not_log_order": tally.not_log_order,
                "failed": tallies.failed,
                "smallest": _first(tally.first.get(level)),
                "kinds": [
                    kind._asdict() | {"candidates": number, "smallest": _first(found)}
                    for kind, (number, found) in tally.kinds.get(level, {}).items()
                ],
                "failure": failure and failure._asdict() | {"steps": _steps(failure.choices)},
            }


def _first(found: First | None) -> dict[str, Any] | None:
    if found is None:
        return None
    init, last, choices = found
    return {"init": init, "last": last, "steps": _steps(choices)}


def _steps(choices: Choices) -> list[dict[str, int]]:
    return [{"statement": k, "read_version": version} for k, version in choices]


def tallies_from_rows(work: Work, rows: Iterable[Mapping[str, Any]]) -> Tallies:
    """The tallies of all shards together, from their rows."""
    protocols = [spec.name for spec in work.protocols]
    levels = [spec.name for spec in work.levels]
    total = Tallies.none(protocols, levels)
    for row in rows:
        one = Tallies.none(protocols, levels)
        tally, level = one.of[row["protocol"]], row["level"]
        tally.forbidden[level] = row["forbidden"]
        if row["smallest"] is not None:
            tally.first[level] = _found(row["smallest"])
        for kind in row["kinds"]:
            of = BrokenKind(kind["axiom"], tuple(kind["relations"]))
            tally.sort(level, of, kind["candidates"], _found(kind["smallest"]))
        if level == levels[0]:  # the others repeat what is said of the protocol
            _add(tally, row)
            if row["protocol"] == protocols[0]:
                one.candidates, one.failed = row["candidates"], row["failed"]
                one.failure = _failure(row["failure"])
        total.add(one)
    return total


def _add(tally: Tally, row: Mapping[str, Any]) -> None:
    tally.admitted, tally.silent = row["admitted"], row["silent"]
    tally.unexplained, tally.not_log_order = row["unexplained"], row["not_log_order"]


def _found(row: Mapping[str, Any]) -> First:
    return row["init"], row["last"], _choices(row["steps"])


def _choices(steps: Iterable[Mapping[str, int]]) -> Choices:
    return tuple((step["statement"], step["read_version"]) for step in steps)


def _failure(row: Mapping[str, Any] | None) -> FailedStatement | None:
    if row is None:
        return None
    return FailedStatement(
        row["init"], _choices(row["steps"]), row["sql"], row["exception"], row["why"]
    )


def candidate_rows(
    work: Work, listing: Listing, found: ListedShard, shard: int, tables: Mapping[str, ResultTable]
) -> Iterator[tuple[str, pa.StructArray]]:
    """The rows of those ``tables`` that have one for each candidate of a shard, or several, by their names."""
    rows = _ListedRows(work, listing, found, shard, tables)
    for name, made in (
        ("candidates", rows.candidates),
        ("histories", rows.histories),
        ("executions", rows.executions),
        ("verdicts", rows.verdicts),
    ):
        if name in tables:
            yield from ((name, some) for some in made())


class _ListedRows:
    def __init__(
        self,
        work: Work,
        listing: Listing,
        found: ListedShard,
        shard: int,
        tables: Mapping[str, ResultTable],
    ) -> None:
        self.work, self.listing, self.found = work, listing, found
        self.shard, self.tables = shard, tables
        self.ranks = np.array(found.ranks, np.int64)

    def candidates(self) -> Iterator[pa.StructArray]:
        size = len(self.ranks) + sum(some.candidates for some in self.found.dropped)
        ranks = np.arange(self.found.first, self.found.first + size)
        outcome, position, exception = np.zeros((3, size), np.int64)
        exceptions: dict[str | None, int] = {None: 0}
        for some in self.found.dropped:
            first = some.rank - self.found.first
            part = slice(first, first + some.candidates)
            outcome[part] = 1 if some.exception is None else 2
            position[part] = some.position
            exception[part] = exceptions.setdefault(some.exception, len(exceptions))
        init, k, version = self._choices(ranks)
        yield self._table(
            "candidates",
            len(ranks),
            {
                "rank": ranks,
                "init": init,
                "steps": self._listed("candidates", "steps", self.work.n, (k, version)),
                "outcome": pa.array(["history", "idle", "failed"]).take(pa.array(outcome)),
                "position": pa.array(position, pa.int32(), mask=position == 0),
                "exception": pa.array(list(exceptions), pa.string()).take(pa.array(exception)),
            },
        )

    def executions(self) -> Iterator[pa.StructArray]:
        found, frames = self.found, _Once(self.found.frames)
        judged = [self.listing.judged(frame) for frame in frames.things]
        for b, protocol in enumerate(self.work.protocols):
            ends = [one.protocols[b] for one in judged]
            outcomes = [_outcome(end is None, end is not None and end.silent) for end in ends]
            rows = [
                (out, *(end or (None,) * 3)[:3]) for out, end in zip(outcomes, ends, strict=True)
            ]
            columns = [frames.take(column, rows, c) for c, column in enumerate(_EXECUTION)]
            ranks = [self.ranks]
            for some in found.dropped:
                if some.exception is None:
                    continue
                end = self.listing.stopped(some.frame)[b]
                row = (
                    ("failed", some.position, None, some.exception)
                    if end is None
                    else (_outcome(False, end.silent), *end[:3])
                )
                ranks.append(np.arange(some.rank, some.rank + some.candidates))
                columns = [
                    pa.concat_arrays(
                        [column, pa.repeat(pa.scalar(value, column.type), some.candidates)]
                    )
                    for column, value in zip(columns, row, strict=True)
                ]
            every = np.concatenate(ranks)
            yield self._table(
                "executions",
                len(every),
                {
                    "protocol": protocol.name,
                    "rank": every,
                    **dict(
                        zip(("outcome", "stopped", "stopped_by", "exception"), columns, strict=True)
                    ),
                },
            )

    def histories(self) -> Iterator[pa.StructArray]:
        n, space, size = self.work.n, self.listing.space, len(self.ranks)
        _, k, version = self._choices(self.ranks)
        effects = _Once(self.found.effects)
        footprints = [space.done[number].effect.footprint for number in effects.things]
        facts = [
            (f.blind, f.whole_table, f.changes_data, len(f.files), len(f.adds), len(f.removes))
            for f in footprints
            if f is not None
        ]
        became = np.tile(np.arange(1, n + 1), (size, 1))
        of_effect = [effects.take(pa.bool_() if c < 3 else pa.int32(), facts, c) for c in range(6)]
        states, frames = _Once(self.found.states), _Once(self.found.frames)
        explained = _Once(self.found.explained)
        tables = self._type("histories", "tables")
        filled = pa.array([self._filled(number) for number in states.things], tables.value_type)
        edges = [self.listing.judged(frame).dependencies for frame in frames.things]
        told = [self.listing.explanation(number) for number in explained.things]
        yield self._table(
            "histories",
            size,
            {
                "transactions": self._listed(
                    "histories", "transactions", n, (k, version, became, *of_effect)
                ),
                "tables": pa.ListArray.from_arrays(
                    _offsets(size, n + 1), filled.take(pa.array(states.places))
                ),
                "dependencies": frames.take(
                    self._type("histories", "dependencies"), [(_edges(some),) for some in edges]
                ),
                "serial_orders": explained.take(
                    self._type("histories", "serial_orders"), [(one.orders,) for one in told]
                ),
                "unexplained": explained.take(
                    self._type("histories", "unexplained"), [(one.unexplained,) for one in told]
                ),
                "log_order": explained.take(pa.bool_(), [(one.log_order,) for one in told]),
            },
        )

    def verdicts(self) -> Iterator[pa.StructArray]:
        frames = _Once(self.found.frames)
        judged = [self.listing.judged(frame) for frame in frames.things]
        for b, level in enumerate(self.work.levels):
            rows = [
                ("allowed", None, None)
                if (found := one.levels[b]) is None
                else ("forbidden", found.axiom, _edges(found.dependencies))
                for one in judged
            ]
            columns = ("verdict", "axiom", "cycle")
            yield self._table(
                "verdicts",
                len(self.ranks),
                {
                    "level": level.name,
                    **{
                        name: frames.take(self._type("verdicts", name), rows, c)
                        for c, name in enumerate(columns)
                    },
                },
            )

    def _filled(self, state: int) -> dict[str, list[dict[str, object]]]:
        """The tables of a state."""
        database, schemas = self.listing.space.databases[state], self.work.scope.tables
        return {
            name: [
                dict(zip((c.name for c in schemas[name].columns if c.name), row, strict=True))
                for row in table.rows()
            ]
            for name, table in database.items()
        }

    def _choices(self, ranks: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Of candidates the initial table, and a row each of statements and of versions read."""
        n, size = self.work.n, len(self.work.scope.statements)
        k, version = np.empty((2, len(ranks), n), np.int64)
        rest = ranks
        for position in range(n, 0, -1):
            rest, version[:, position - 1] = np.divmod(rest, position)
            rest, k[:, position - 1] = np.divmod(rest, size)
        return rest, k, version

    def _type(self, table: str, column: str) -> pa.DataType:
        return arrow_type(self.tables[table].columns[column].type)

    def _listed(
        self, table: str, column: str, n: int, parts: Sequence[Numbers | pa.Array]
    ) -> pa.ListArray:
        """Structs, n for each row, from their fields in order."""
        type_ = self._type(table, column)
        fields = list(type_.value_type)
        flat = [
            part if isinstance(part, pa.Array) else pa.array(part.reshape(-1), field.type)
            for part, field in zip(parts, fields, strict=True)
        ]
        inside = pa.StructArray.from_arrays(flat, fields=fields)
        return pa.ListArray.from_arrays(_offsets(len(inside) // n, n), inside).cast(type_)

    def _table(self, name: str, size: int, columns: Columns) -> pa.StructArray:
        """Rows of a table."""
        every = {"size": self.work.n, "shard": self.shard, "rank": self.ranks} | columns
        row = arrow_type(self.tables[name].type)
        arrays = []
        for field in row:
            value = every[field.name]
            if isinstance(value, (int, str)):
                value = pa.repeat(pa.scalar(value, field.type), size)
            elif isinstance(value, np.ndarray):
                value = pa.array(value, field.type)
            arrays.append(value)
        return pa.StructArray.from_arrays(arrays, fields=list(row))


_EXECUTION = (pa.string(), pa.int32(), pa.int32(), pa.string())


class _Once:
    """Numbers that come again, each once."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.things: list[int]
        things, self.places = np.unique(np.array(numbers, np.int64), return_inverse=True)
        self.things = things.tolist()

    def take(
        self, type_: pa.DataType, rows: Sequence[Sequence[object]], column: int = 0
    ) -> pa.Array:
        """A column of what each number stands for, at all its places."""
        return pa.array([row[column] for row in rows], type_).take(pa.array(self.places))


def _outcome(admitted: bool, silent: bool) -> str:
    return "admitted" if admitted else "silent" if silent else "aborted"


def _edges(some: Sequence[tuple[int, int, str]]) -> list[dict[str, object]]:
    return [dict(zip(("source", "target", "relation"), edge, strict=True)) for edge in some]


def _offsets(rows: int, each: int) -> pa.Array:
    return pa.array(np.arange(rows + 1) * each, pa.int32())
