"""What statements do to the rows of tables, whatever files these lie in.

Serial orders ask for rows alone, and so does a commit that has seen all the others. Premises: what rows a
statement leaves is a matter of the rows that it finds, and so is whether it fails, and whether it changes a file at all
(of OPTIMIZE that is a matter of files; rows it leaves as they are). UPDATE and DELETE do with each row what they
would do if it were alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.sweeps.space import FAILS, IDLE
from isolitmus.model.delta.data_file import File, TableRow
from isolitmus.model.delta.table import TableState
from isolitmus.model.execution import Event
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import statement as st

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolitmus.checker.sweeps.space import Space
    from isolitmus.model.execution import Database
    from isolitmus.model.format import Scans
    from isolitmus.model.sql.values import Row

__all__ = ["RowContents"]

NOBODY = "T"
"""Who runs statements on rows."""
RowNumbers = tuple[int, ...]
"""RowNumbers by their numbers, sorted; one that is there twice has its number twice."""
RowChange = tuple[RowNumbers, RowNumbers] | int
"""The rows that go and those that come; or IDLE, or FAILS."""


class RowContents:
    """The contents of a scope's tables, by numbers, and what its statements make of them.

    >>> from isolitmus.specs import scope
    >>> from isolitmus.checker.sweeps.space import Space
    >>> space = Space(scope("two-partitions"))
    >>> contents, insert = RowContents(space), space.run(0, 0, 1)
    >>> contents.step(contents.of(0), 0, 1) == contents.after(contents.of(0), insert)
    True
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self._first = [
            [next(j for j, other in enumerate(each) if other.sql == one.sql) for one in each]
            for each in space.scope.statements
        ]
        self._apart = [_row_by_row(each[0]) for each in space.scope.statements]
        self._compacts = [isinstance(each[0], st.Optimize) for each in space.scope.statements]
        self._row: dict[tuple[str, Row], int] = {}
        self._rows: list[tuple[str, Row]] = []
        self._contents: dict[RowNumbers, int] = {}
        self._all: list[RowNumbers] = []
        self._of: dict[int, int] = {}
        self._read: dict[tuple[int, int], tuple[Scans | None, dict[int, bool]]] = {}
        self._changes: dict[tuple[int, int, RowNumbers], RowChange] = {}
        self._after: dict[tuple[int, int], int] = {}
        self._steps: dict[tuple[int, int, int], int | None] = {}
        self._late: dict[tuple[int, int], list[int]] = {}

    @staticmethod
    def known(space: Space) -> bool:
        """Whether the premises hold of a scope: INSERT without options, UPDATE, DELETE, MERGE and OPTIMIZE of tables
        that have what is declared, and no column in which the order of a sum matters.
        """
        scope = space.scope
        kinds = (st.Insert, st.Update, st.Delete, st.Merge, st.Optimize)
        statements = [statement for each in scope.statements for statement in each]
        return (
            all(isinstance(statement, kinds) for statement in statements)
            and all(
                statement.options == st.Options()
                for statement in statements
                if isinstance(statement, st.Insert)
            )
            and all(
                space.databases[start].keys() == scope.tables.keys()
                and all(table.header is None for table in space.databases[start].values())
                for start in space.starts
            )
            and not any(schema.generates or schema.files for schema in scope.tables.values())
            and not any(
                column.type == "DOUBLE"
                for schema in scope.tables.values()
                for column in schema.columns
            )
        )

    def __len__(self) -> int:
        return len(self._all)

    def of(self, state: int) -> int:
        """The contents of a state of the space."""
        known = self._of.get(state)
        if known is None:
            tables = self.space.databases[state]
            known = self._of[state] = self._number(self._rows_of(tables))
        return known

    def bag(self, contents: int) -> int:
        """The contents themselves: there is nothing else to them."""
        return contents

    def after(self, contents: int, effect: int) -> int:
        """The contents after an effect of the space whose rows are all there."""
        key = contents, effect
        known = self._after.get(key)
        if known is None:
            writes = self.space.done[effect].effect.writes
            gone = (self._row_number(w.table, w.before) for w in writes if w.before is not None)
            come = (self._row_number(w.table, w.after) for w in writes if w.after is not None)
            known = self._after[key] = self._number(_changed(self._all[contents], gone, come))
        return known

    def step(self, contents: int, k: int, position: int) -> int | None:
        """The contents after statement k at a commit position; None if it fails."""
        first = self._first[k][position - 1]
        key = contents, k, first
        if key not in self._steps:
            change = self._change(contents, k, first)
            after: int | None = contents
            if isinstance(change, tuple):
                after = self._number(_changed(self._all[contents], *change))
            elif change == FAILS:
                after = None
            self._steps[key] = after
        return self._steps[key]

    def late(self, state: int, position: int) -> list[int]:
        """What comes of each statement at a commit position on a state that holds all commits so far: IDLE, FAILS, or 0
        where it changes files.
        """
        contents = self.of(state)
        known = self._late.get((contents, position))
        if known is None:
            known = self._late[contents, position] = [
                0 if compacts else self._comes(contents, k, position)
                for k, compacts in enumerate(self._compacts)
            ]
        if not any(self._compacts):
            return known
        return [
            min(self.space.option(state, k, position), 0) if compacts else known[k]
            for k, compacts in enumerate(self._compacts)
        ]

    def _comes(self, contents: int, k: int, position: int) -> int:
        change = self._change(contents, k, self._first[k][position - 1])
        if isinstance(change, tuple):
            return 0
        return IDLE if change == IDLE and self.space.scope.noops == "skip" else min(change, 0)

    def _change(self, contents: int, k: int, first: int) -> RowChange:
        if self._compacts[k]:
            return (), ()
        rows = self._all[contents]
        if (k, first) not in self._read:
            statement = self.space.scope.statements[k][first]
            self._read[k, first] = self.space.form.scans(statement, self.space.scope.tables), {}
        scans, read = self._read[k, first]
        if scans is not None:
            for row in set(rows).difference(read):
                read[row] = self._reads(scans, row)
            rows = tuple(row for row in rows if read[row])
        if not self._apart[k] or len(rows) < 2:
            return self._carried_out(k, first, rows)
        gone: list[int] = []
        come: list[int] = []
        idle = True
        for row in rows:
            change = self._carried_out(k, first, (row,))
            if isinstance(change, tuple):
                gone += change[0]
                come += change[1]
                idle = False
            elif change == FAILS:
                return FAILS
        return IDLE if idle else (tuple(gone), tuple(come))

    def _reads(self, scans: Scans, row: int) -> bool:
        """Whether a statement of these scans reads a row that lies in a file of its own."""
        name, values = self._rows[row]
        schema, file = self.space.scope.tables[name], self._file(name, values, 0)
        return any(table == name and filters.files(schema, [file]) for table, filters in scans)

    def _carried_out(self, k: int, first: int, rows: RowNumbers) -> RowChange:
        """What a statement does to these rows, each in a file of its own."""
        key = k, first, rows
        if key not in self._changes:
            self._changes[key] = self._carry_out(k, first, rows)
        return self._changes[key]

    def _carry_out(self, k: int, first: int, rows: RowNumbers) -> RowChange:
        form, scope = self.space.form, self.space.scope
        files: dict[str, list[File]] = {name: [] for name in scope.tables}
        for place, row in enumerate(rows):
            name, values = self._rows[row]
            files[name].append(self._file(name, values, place))
        tables = {name: TableState(tuple(some)) for name, some in files.items()}
        made = form.effect(scope.statements[k][first], tables, NOBODY, scope.tables)
        if made.error is not None or made.footprint is None:
            return FAILS
        if made.footprint.empty:
            return IDLE
        there = list(self._rows_of(form.after(tables, Event(NOBODY, made, 0))))
        gone = []
        for row in rows:
            if row in there:
                there.remove(row)
            else:
                gone.append(row)
        return tuple(gone), tuple(there)

    def _file(self, name: str, values: Row, place: int) -> File:
        schema = self.space.scope.tables[name]
        row = TableRow(str(place), "", values)
        return File.of(f"{place}", schema.partition_of(values), (row,))

    def _rows_of(self, tables: Database) -> RowNumbers:
        return tuple(
            sorted(
                self._row_number(name, row.values)
                for name, table in tables.items()
                for file in table.files
                for row in file.rows
            )
        )

    def _row_number(self, table: str, values: Row) -> int:
        key = table, values
        number = self._row.setdefault(key, len(self._rows))
        if number == len(self._rows):
            self._rows.append(key)
        return number

    def _number(self, rows: RowNumbers) -> int:
        number = self._contents.setdefault(rows, len(self._all))
        if number == len(self._all):
            self._all.append(rows)
        return number


def _changed(rows: RowNumbers, gone: Iterable[int], come: Iterable[int]) -> RowNumbers:
    left = list(rows)
    for row in gone:
        left.remove(row)
    left += come
    return tuple(sorted(left))


def _row_by_row(statement: st.Statement) -> bool:
    match statement:
        case st.Delete(where=where):
            return not ex.subqueries(where)
        case st.Update(where=where, sets=sets):
            return not ex.subqueries(where, *(value for _, value in sets))
    return False
