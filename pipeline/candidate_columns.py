"""Candidates of a shard as rows in Arrow columns, from a listing.

Equal values are converted once and then taken by index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from isolitmus.pipeline.result_table import arrow_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from isolitmus.checker.sweeps.listing import ListedShard, Listing
    from isolitmus.checker.sweeps.shard_runner import Work
    from isolitmus.pipeline.result_table import ResultTable

    Numbers = NDArray[np.int64]
    Columns = dict[str, object]


def candidate_rows(
    work: Work, listing: Listing, found: ListedShard, shard: int, tables: Mapping[str, ResultTable]
) -> Iterator[tuple[str, pa.StructArray]]:
    """Yield the rows of a shard, with the name of their table.

    Parameters
    ----------
    work : Work
        Sweep.
    listing : Listing
        Listing of the sweep's candidates.
    found : ListedShard
        Candidates of the shard.
    shard : int
        Index of the shard.
    tables : mapping of str to ResultTable
        Tables that get rows: those with one row, or several, for each candidate.

    Yields
    ------
    (str, pyarrow.StructArray)
        Name of the table and some of its rows.
    """
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
        """Yield one array with a row for each candidate of the shard, with or without a history."""
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
        """Yield an array for each protocol: rows of histories, then of failed candidates."""
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
        """Yield one array with a row for each history and its transactions and tables."""
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
        """Yield an array for each level: its verdict on each history, with axiom and cycle."""
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
        """Return the rows of all tables in a state."""
        database, schemas = self.listing.space.databases[state], self.work.scope.tables
        return {
            name: [
                dict(zip((c.name for c in schemas[name].columns if c.name), row, strict=True))
                for row in table.rows()
            ]
            for name, table in database.items()
        }

    def _choices(self, ranks: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Return the initial tables, statements and read versions of candidates, from their ranks.

        A rank is a number in a mixed radix. From its last digit, it has the read version (as many
        values as the position of the commit) and the statement of each commit, last commit first.

        Parameters
        ----------
        ranks : ndarray of int64, shape (n_candidates,)
            Ranks of candidates.

        Returns
        -------
        init : ndarray of int64, shape (n_candidates,)
            Initial table.
        statement, version : ndarray of int64, shape (n_candidates, n_transactions)
            Statement and read version of each commit, in commit order.
        """
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
        """Return a list array with n structs a row, from the struct's fields in order."""
        type_ = self._type(table, column)
        fields = list(type_.value_type)
        flat = [
            part if isinstance(part, pa.Array) else pa.array(part.reshape(-1), field.type)
            for part, field in zip(parts, fields, strict=True)
        ]
        inside = pa.StructArray.from_arrays(flat, fields=fields)
        return pa.ListArray.from_arrays(_offsets(len(inside) // n, n), inside).cast(type_)

    def _table(self, name: str, size: int, columns: Columns) -> pa.StructArray:
        """Return rows of a table as structs."""
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
    """Distinct numbers of a sequence, and the index of each element's number among them."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.things: list[int]
        things, self.places = np.unique(np.array(numbers, np.int64), return_inverse=True)
        self.things = things.tolist()

    def take(
        self, type_: pa.DataType, rows: Sequence[Sequence[object]], column: int = 0
    ) -> pa.Array:
        """Return a column with the row of each number, at all places of the number."""
        return pa.array([row[column] for row in rows], type_).take(pa.array(self.places))


def _outcome(admitted: bool, silent: bool) -> str:
    return "admitted" if admitted else "silent" if silent else "aborted"


def _edges(some: Sequence[tuple[int, int, str]]) -> list[dict[str, object]]:
    return [dict(zip(("source", "target", "relation"), edge, strict=True)) for edge in some]


def _offsets(rows: int, each: int) -> pa.Array:
    return pa.array(np.arange(rows + 1) * each, pa.int32())
