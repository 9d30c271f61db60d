"""What a scope's statements do from its initial tables, each thing worked out once.

States and effects are numbered by their contents, so that whatever is asked of them later can be
remembered by numbers. The version of a row names its writer (T1, T2, … by commit position), so equal
contents are equal in every respect. Premise: what a statement looks for is a function of itself and of
the rows that it read (docs/semantics.md, 3.1: programs are deterministic).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import fields, replace
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.execution.commit_loop import initial
from isolitmus.model.delta.table import TableState
from isolitmus.model.execution import Effect, Event, RowRead
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from isolitmus.model.delta.data_file import File
    from isolitmus.model.execution import Database
    from isolitmus.model.format import Scans
    from isolitmus.model.scope import Scope

__all__ = ["FAILS", "IDLE", "Done", "Space", "transaction"]

IDLE, FAILS = -1, -2
"""Instead of an effect: the statement changes no file and the scope skips that; it fails."""

RowAt = tuple[str, str, str]
"""A version of a row: table, identity, writer."""

OF_STATE = tuple(f.name for f in fields(TableState) if f.name != "files")
OF_EFFECT = tuple(f.name for f in fields(Effect) if f.name not in ("reads", "footprint"))
OF_READ = tuple(f.name for f in fields(RowRead) if f.name != "matches")


def transaction(position: int) -> str:
    """What the transaction at a commit position (from 1) is called."""
    return f"T{position}"


class Done(NamedTuple):
    """An effect with what is asked of it often."""

    effect: Effect
    """What a statement does in a state."""
    position: int
    """The version that it is to make."""
    read: frozenset[RowAt]
    """The row versions that it read."""
    overwrote: frozenset[RowAt]
    """The row versions that it overwrote."""
    plain: bool
    """False: that is not one version for each row (it writes what was not in its snapshot, or was there twice
    because two commits removed one file)."""
    bare: Effect
    """The effect without rows."""
    footing: int
    """Two of one footing differ at most in the names of the files in ``paths``."""
    paths: dict[str, int]
    """The names of its files, of which relations ask only whether they are the same, each with the sets of
    the effect that it is in, as bits."""


class Space:
    """The states, effects and bags of rows that a scope reaches. ``starts`` are its initial states.

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
        self.done: list[Done] = []
        self._files: dict[File, int] = {}
        self._objects: dict[int, tuple[int, File]] = {}  # to hash each file once
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
        made = (initial(self.form, scope.tables, init) for init in scope.inits)
        self.starts = [self.state(database) for database in made]

    def state(self, database: Database) -> int:
        """The number of a state."""
        said = tuple(getattr(table, name) for table in database.values() for name in OF_STATE)
        files = {name: tuple(map(self._file, table.files)) for name, table in database.items()}
        number = _number(self._states, (said, *files.values()))
        if number == len(self.databases):
            self.databases.append(database)
            self._files_of.append(files)
        return number

    def _file(self, file: File) -> int:
        known = self._objects.get(id(file))
        if known is None:
            number = self._files.setdefault(file, len(self._files))
            known = self._objects[id(file)] = number, file
        return known[0]

    def step(self, state: int, k: int, position: int) -> int | None:
        """The state after statement k at a commit position; None if it fails."""
        number = self.run(state, k, position)
        return None if self.done[number].effect.error is not None else self.after(state, number)

    def run(self, state: int, k: int, position: int) -> int:
        """The number of the effect of statement k at a commit position on a state."""
        known = self._runs.get((state, k, position))
        if known is None:
            alike = self._inputs(state, k, position)
            known = self._alike.get(alike)
            if known is None:
                statement = self.scope.statements[k][position - 1]
                made = self.form.effect(
                    statement, self.databases[state], transaction(position), self.scope.tables
                )
                known = self._alike[alike] = self._number(made, state, k, position)
            self._runs[state, k, position] = known
        return known

    def options(self, state: int, position: int) -> list[int]:
        """What comes of each statement at a commit position on a state: an effect, IDLE or FAILS."""
        known = self._options.get((state, position))
        if known is None:
            known = [self.option(state, k, position) for k in range(len(self.scope.statements))]
            self._options[state, position] = known
        return known

    def option(self, state: int, k: int, position: int) -> int:
        """What comes of statement k at a commit position on a state: an effect, IDLE or FAILS."""
        number = self.run(state, k, position)
        done = self.done[number].effect
        if done.error is not None or done.footprint is None:
            return FAILS
        return IDLE if self.scope.noops == "skip" and done.footprint.empty else number

    def _inputs(self, state: int, k: int, position: int) -> Hashable:
        """What the effect of a statement on a state depends on."""
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
        """The state after an effect."""
        known = self._after.get((state, number))
        if known is None:
            done = self.done[number]
            event = Event(transaction(done.position), done.effect, 0)
            known = self._after[state, number] = self.state(
                self.form.after(self.databases[state], event)
            )
        return known

    def bag(self, state: int) -> int:
        """The number of a state's tables as bags of rows."""
        known = self._bag_of.get(state)
        if known is None:
            key = tuple(table.rows() for table in self.databases[state].values())
            known = self._bag_of[state] = self._bags.setdefault(key, len(self._bags))
        return known

    def _number(self, made: Effect, state: int, k: int, position: int) -> int:
        key = (k, position, *_contents(made))
        number = _number(self._effects, key)
        if number == len(self.done):
            self.done.append(self._done(made, state, position))
        return number

    def _done(self, made: Effect, state: int, position: int) -> Done:
        read = frozenset((r.table, row.id, row.writer) for r in made.reads for row in r.matched)
        overwrote: set[RowAt] = set()
        plain = len({(w.table, w.id) for w in made.writes}) == len(made.writes)
        own = f"{transaction(position)}."
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
        return Done(made, position, read, overwritten, plain, bare, footing, dict(paths))

    def _rows(self, state: int) -> Iterator[tuple[tuple[str, str], str]]:
        for name, table in self.databases[state].items():
            for file in table.files:
                for row in file.rows:
                    yield (name, row.id), row.writer


def _number(numbers: dict[Hashable, int], key: Hashable) -> int:
    """The number of a thing by its contents, a new one if it has none."""
    try:
        return numbers.setdefault(key, len(numbers))
    except TypeError:  # something in it cannot be a key, but says what it is
        return numbers.setdefault(repr(key), len(numbers))


def _contents(made: Effect) -> Iterator[Hashable]:
    """All that an effect is, for comparison; what it looked for is left out (see the premise)."""
    for name in OF_EFFECT:
        value = getattr(made, name)
        yield str(value) if name == "error" else value
    for read in made.reads:
        yield tuple(getattr(read, name) for name in OF_READ)
    if made.footprint is not None:
        yield made.footprint.table
        for part in fields(made.footprint):
            if part.name != "schema":
                yield getattr(made.footprint, part.name)
