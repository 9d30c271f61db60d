"""States, effects and row contents that a scope reaches, each computed once and numbered.

States and effects are numbered by their contents, so that any later result can be memoized by
number. The version of a row names its writer (T1, T2, … by commit position), so equal contents are
equal in every respect. Premise: the read set of a statement is a function of the statement and of
the rows that it read (docs/semantics.md, 3.1: programs are deterministic).

`RowContents` computes the effect of statements on rows alone, whatever files they lie in. Serial
orders need only rows, and so does a commit that has seen all the others. Premises: the rows that a
statement leaves are a function of the rows that it finds, and so is whether it fails, and whether
it changes a file at all. For OPTIMIZE the last depends on files; it leaves rows as they are. UPDATE
and DELETE treat each row as if it were alone.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import fields, replace
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.execution.commit_loop import initial_database
from isolitmus.model.delta.table import TableState
from isolitmus.model.execution import Effect, Event, RowRead
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.data_file import File, TableRow
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from isolitmus.model.execution import Database
    from isolitmus.model.format import Scans
    from isolitmus.model.scope import Scope
    from isolitmus.model.sql.values import Row

IDLE, FAILS = -1, -2
"""Codes in place of an effect: the statement is a no-op, which the scope skips; it fails."""

RowAt = tuple[str, str, str]
"""Version of a row: table, identity, writer."""

OF_STATE = tuple(f.name for f in fields(TableState) if f.name != "files")
OF_EFFECT = tuple(f.name for f in fields(Effect) if f.name not in ("reads", "footprint"))
OF_READ = tuple(f.name for f in fields(RowRead) if f.name != "matches")


def transaction_name_at(position: int) -> str:
    """Return the name of the transaction at a commit position, from 1."""
    return f"T{position}"


class RememberedEffect(NamedTuple):
    """Effect of a statement with precomputed properties."""

    effect: Effect
    """Effect of the statement in a state."""
    position: int
    """Version that it commits."""
    read: frozenset[RowAt]
    """Row versions that it read."""
    overwrote: frozenset[RowAt]
    """Row versions that it overwrote."""
    plain: bool
    """True if it overwrote exactly one version of each row.

    False if it writes a row that was not in its snapshot, or was there twice because two commits
    removed one file.
    """
    bare: Effect
    """The effect without rows."""
    footing: int
    """Class of effects that differ at most in the names of the files in ``paths``."""
    paths: dict[str, int]
    """Names of its files, each with the sets of the effect that contain it, as a bit mask.

    Relations depend only on which of these files two effects have in common.
    """


class Space:
    """States, effects and bags of rows that a scope reaches; ``starts`` are the initial states.

    Examples
    --------
    >>> from isolitmus.specs import scope
    >>> space = Space(scope("two-partitions"))
    >>> start, other = space.starts
    >>> insert = space.run(start, 0, 1)
    >>> space.after(start, insert) == space.step(start, 0, 1), space.run(start, 0, 1) == insert
    (True, True)
    """

    def __init__(self, scope: Scope) -> None:
        self.scope, self.form = scope, format_named(scope.format)
        self.databases: list[Database] = []
        self._files_of: list[Mapping[str, tuple[int, ...]]] = []
        self.done: list[RememberedEffect] = []
        self._files: dict[File, int] = {}
        # By id, to hash each file object once.
        self._objects: dict[int, tuple[int, File]] = {}
        self._states: dict[Hashable, int] = {}
        self._effects: dict[Hashable, int] = {}
        self._footings: dict[Hashable, int] = {}
        self._bags: dict[Hashable, int] = {}
        self._runs: dict[tuple[int, int, int], int] = {}
        self._options: dict[tuple[int, int], list[int]] = {}
        self._scans: dict[tuple[int, int], Scans | None] = {}
        self._left: dict[tuple[int, int, int, int], bool] = {}
        self._alike: dict[Hashable, int] = {}
        self._after: dict[tuple[int, int], int] = {}
        self._bag_of: dict[int, int] = {}
        made = (initial_database(self.form, scope.tables, init) for init in scope.inits)
        self.starts = [self.state(database) for database in made]

    def state(self, database: Database) -> int:
        """Return the number of a state."""
        said = tuple(getattr(table, name) for table in database.values() for name in OF_STATE)
        files = {name: tuple(map(self._file, table.files)) for name, table in database.items()}
        number = _number(self._states, (said, *files.values()))
        if number == len(self.databases):
            self.databases.append(database)
            self._files_of.append(files)
        return number

    def _file(self, file: File) -> int:
        """Return the number of a file, by identity if known, else by contents."""
        known = self._objects.get(id(file))
        if known is None:
            number = self._files.setdefault(file, len(self._files))
            known = self._objects[id(file)] = number, file
        return known[0]

    def step(self, state: int, k: int, position: int) -> int | None:
        """Return the state after statement k at a commit position; None if it fails."""
        number = self.run(state, k, position)
        return None if self.done[number].effect.error is not None else self.after(state, number)

    def run(self, state: int, k: int, position: int) -> int:
        """Return the effect of statement k at a commit position on a state, by number."""
        known = self._runs.get((state, k, position))
        if known is None:
            alike = self._inputs(state, k, position)
            known = self._alike.get(alike)
            if known is None:
                statement = self.scope.statements[k][position - 1]
                made = self.form.effect(
                    statement,
                    self.databases[state],
                    transaction_name_at(position),
                    self.scope.tables,
                )
                known = self._alike[alike] = self._number(made, state, k, position)
            self._runs[state, k, position] = known
        return known

    def options(self, state: int, position: int) -> list[int]:
        """Return the outcome of each statement at a commit position on a state.

        An outcome is the number of an effect, IDLE or FAILS.
        """
        known = self._options.get((state, position))
        if known is None:
            known = [self.option(state, k, position) for k in range(len(self.scope.statements))]
            self._options[state, position] = known
        return known

    def option(self, state: int, k: int, position: int) -> int:
        """Return the outcome of statement k: the number of an effect, IDLE or FAILS."""
        number = self.run(state, k, position)
        done = self.done[number].effect
        if done.error is not None or done.footprint is None:
            return FAILS
        return IDLE if self.scope.noops == "skip" and done.footprint.empty else number

    def _inputs(self, state: int, k: int, position: int) -> Hashable:
        """Return a key of all that the effect of a statement on a state depends on."""
        if (k, position) not in self._scans:
            statement = self.scope.statements[k][position - 1]
            self._scans[k, position] = self.form.scans(statement, self.scope.tables)
        found = self._scans[k, position]
        database = self.databases[state]
        if found is None or any(table.header is not None for table in database.values()):
            return k, position, state
        left = []
        for scan, (name, filters) in enumerate(found):
            some = []
            for number, file in zip(self._files_of[state][name], database[name].files, strict=True):
                key = k, position, scan, number
                if key not in self._left:
                    self._left[key] = bool(filters.files(self.scope.tables[name], [file]))
                if self._left[key]:
                    some.append(number)
            left.append(tuple(some))
        return k, position, *left

    def after(self, state: int, number: int) -> int:
        """Return the state after an effect."""
        known = self._after.get((state, number))
        if known is None:
            done = self.done[number]
            event = Event(transaction_name_at(done.position), done.effect, 0)
            known = self._after[state, number] = self.state(
                self.form.after(self.databases[state], event)
            )
        return known

    def bag(self, state: int) -> int:
        """Return the number of the tables of a state as bags of rows."""
        known = self._bag_of.get(state)
        if known is None:
            key = tuple(table.rows() for table in self.databases[state].values())
            known = self._bag_of[state] = self._bags.setdefault(key, len(self._bags))
        return known

    def _number(self, made: Effect, state: int, k: int, position: int) -> int:
        """Return the number of an effect, a new one for new contents."""
        key = (k, position, *_contents(made))
        number = _number(self._effects, key)
        if number == len(self.done):
            self.done.append(self._done(made, state, position))
        return number

    def _done(self, made: Effect, state: int, position: int) -> RememberedEffect:
        """Return an effect with the row versions that it read and overwrote, and its footing."""
        read = frozenset((r.table, row.id, row.writer) for r in made.reads for row in r.matched)
        overwrote: set[RowAt] = set()
        plain = len({(w.table, w.id) for w in made.writes}) == len(made.writes)
        own = f"{transaction_name_at(position)}."
        there: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for place, writer in self._rows(state) if made.writes else ():
            there[place].append(writer)
        for write in made.writes:
            if write.before is None:
                plain = plain and write.id.startswith(own)
                continue
            writers = there[write.table, write.id]
            plain = plain and len(writers) == 1
            overwrote.update((write.table, write.id, writer) for writer in writers)
        bare = replace(made, reads=(), writes=(), adds=(), removes=frozenset(), rows=None)
        kept: list[Hashable] = []
        paths: defaultdict[str, int] = defaultdict(int)
        sets = 0
        for part in _contents(bare):
            if isinstance(part, frozenset):
                for path in part:
                    paths[path] |= 1 << sets
                sets += 1
            else:
                kept.append(part)
        footing = _number(self._footings, (*kept, *sorted(paths.values())))
        overwritten = frozenset(overwrote)
        return RememberedEffect(
            made, position, read, overwritten, plain, bare, footing, dict(paths)
        )

    def _rows(self, state: int) -> Iterator[tuple[tuple[str, str], str]]:
        """Yield table and id, and writer, of each row version of a state."""
        for name, table in self.databases[state].items():
            for file in table.files:
                for row in file.rows:
                    yield (name, row.id), row.writer


def _number(numbers: dict[Hashable, int], key: Hashable) -> int:
    """Return the number of a key, a new one if it has none."""
    try:
        return numbers.setdefault(key, len(numbers))
    except TypeError:
        # Some part is not hashable; its repr tells it apart.
        return numbers.setdefault(repr(key), len(numbers))


def _contents(made: Effect) -> Iterator[Hashable]:
    """Yield the contents of an effect for comparison, without its read set (see the premise)."""
    for name in OF_EFFECT:
        value = getattr(made, name)
        yield str(value) if name == "error" else value
    for read in made.reads:
        yield tuple(getattr(read, name) for name in OF_READ)
    if made.footprint is not None:
        yield made.footprint.table
        for part in fields(made.footprint):
            if part.name != "schema" and part.compare:
                yield getattr(made.footprint, part.name)


NOBODY = "T"
"""Name of the transaction that runs statements on rows."""
RowNumbers = tuple[int, ...]
"""Sorted numbers of rows; a duplicate row has its number twice."""
RowChange = tuple[RowNumbers, RowNumbers] | int
"""Rows removed and rows added; or IDLE, or FAILS."""


class RowContents:
    """Row contents of the tables of a scope, by number, and the effect of statements on them.

    Examples
    --------
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
        """Return whether the premises hold for a scope.

        They hold for INSERT without options, UPDATE, DELETE, MERGE and OPTIMIZE, on tables as
        declared, without a column in which the order of a sum matters (DOUBLE).
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
        """Return the contents of a state of the space."""
        known = self._of.get(state)
        if known is None:
            tables = self.space.databases[state]
            known = self._of[state] = self._number(self._rows_of(tables))
        return known

    def bag(self, contents: int) -> int:
        """Return the contents themselves, which are bags of rows."""
        return contents

    def after(self, contents: int, effect: int) -> int:
        """Return the contents after an effect of the space; all rows it writes must be there."""
        key = contents, effect
        known = self._after.get(key)
        if known is None:
            writes = self.space.done[effect].effect.writes
            gone = (self._row_number(w.table, w.before) for w in writes if w.before is not None)
            come = (self._row_number(w.table, w.after) for w in writes if w.after is not None)
            known = self._after[key] = self._number(_changed(self._all[contents], gone, come))
        return known

    def step(self, contents: int, k: int, position: int) -> int | None:
        """Return the contents after statement k at a commit position; None if it fails."""
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
        """Return the outcome of each statement on a state that contains all commits so far.

        For scopes that skip no-ops. An outcome is IDLE, FAILS, or 0 if the statement changes files.
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
        """Return 0 if statement k changes files, else IDLE or FAILS."""
        change = self._change(contents, k, self._first[k][position - 1])
        return 0 if isinstance(change, tuple) else change

    def _change(self, contents: int, k: int, first: int) -> RowChange:
        """Return the rows that statement k removes and adds, or IDLE, or FAILS."""
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
        """Return whether a statement with these scans reads a row in a file of its own."""
        name, values = self._rows[row]
        schema, file = self.space.scope.tables[name], self._file(name, values, 0)
        return any(table == name and filters.files(schema, [file]) for table, filters in scans)

    def _carried_out(self, k: int, first: int, rows: RowNumbers) -> RowChange:
        """Return the change of these rows by a statement, with each row in a file of its own."""
        key = k, first, rows
        if key not in self._changes:
            self._changes[key] = self._carry_out(k, first, rows)
        return self._changes[key]

    def _carry_out(self, k: int, first: int, rows: RowNumbers) -> RowChange:
        """Return the change of rows by executing a statement, with each row in its own file."""
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
        """Return the sorted numbers of all rows of the tables."""
        return tuple(
            sorted(
                self._row_number(name, row.values)
                for name, table in tables.items()
                for file in table.files
                for row in file.rows
            )
        )

    def _row_number(self, table: str, values: Row) -> int:
        """Return the number of a row by table and values, a new one for a new row."""
        key = table, values
        number = self._row.setdefault(key, len(self._rows))
        if number == len(self._rows):
            self._rows.append(key)
        return number

    def _number(self, rows: RowNumbers) -> int:
        """Return the number of row contents, a new one for new contents."""
        number = self._contents.setdefault(rows, len(self._all))
        if number == len(self._all):
            self._all.append(rows)
        return number


def _changed(rows: RowNumbers, gone: Iterable[int], come: Iterable[int]) -> RowNumbers:
    """Return sorted row numbers, some removed and some added."""
    left = list(rows)
    for row in gone:
        left.remove(row)
    left += come
    return tuple(sorted(left))


def _row_by_row(statement: st.Statement) -> bool:
    """Return whether a statement is an UPDATE or DELETE that changes each row independently."""
    match statement:
        case st.Delete(where=where):
            return not ex.subqueries(where)
        case st.Update(where=where, sets=sets):
            return not ex.subqueries(where, *(value for _, value in sets))
    return False
