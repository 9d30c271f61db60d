"""The table universe as a circuit: statements, read versions, files, rows, and the frame of it all.

Files are (writer, partition); rows, too: all rows that a statement puts into a partition share their
fate, for no statement with an outline tells them apart unless it looks at values. Where it does, the
circuit leaves open what it cannot know: it has every frame that execution can give, and maybe more.
So what it lacks is not there, and what it has is executed before it counts.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from isolitmus.checker.reading.matrix import Matrices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from isolitmus.checker.reading.gates import Gates
    from isolitmus.checker.reading.matrix import Matrix
    from isolitmus.checker.searching.outline import Outline

__all__ = ["Row", "TableCircuit"]

Pairs = dict[tuple[int, int], list[int]]


@dataclass(frozen=True, slots=True)
class Row:
    """The rows that a writer (from 1; 0: initial, file number ``serial``) puts into a partition; also
    the file that it writes there.
    """

    writer: int
    partition: int
    serial: int = 0


class TableCircuit:
    """Executions of ``writers`` statements in log order, then ``readers`` queries.

    ``outlines[s]`` and ``queries[q]`` are what may run; ``live`` the partitions of the initial files,
    ``partitions`` how many there are. ``runs[j][s]``: transaction j (from 0, writers first) runs
    statement s (readers: query s); ``sees[j][k]``: version k + 1 is at or before j's read version.
    """

    def __init__(
        self,
        gates: Gates,
        outlines: Sequence[Outline],
        queries: Sequence[Outline],
        live: Sequence[int],
        partitions: int,
        *,
        writers: int,
        readers: int,
        skip_noops: bool,
    ) -> None:
        self.gates = gates
        self.writers = writers
        self.size = writers + readers
        self.partitions = range(partitions)
        self.menu = [outlines if j < writers else queries for j in range(self.size)]
        self.runs = [[gates.new() for _ in self.menu[j]] for j in range(self.size)]
        for choice in self.runs:
            gates.one_of(choice)
        self.sees: list[list[int]] = []
        for j in range(self.size):
            sees = [gates.new() for _ in range(min(j, writers))]
            for earlier, later in pairwise(sees):
                gates.add(earlier, -later)
            self.sees.append(sees)
        self.files = [Row(0, p, k) for k, p in enumerate(live)]
        self.files += [Row(w, p) for w in range(1, writers + 1) for p in self.partitions]
        self.adds: dict[Row, int] = {f: gates.true for f in self.files if not f.writer}
        self.removes: list[dict[Row, int]] = []
        self.there: list[dict[Row, int]] = []
        self.recorded_files: list[dict[Row, int]] = []
        self.versions: dict[Row, dict[tuple[Row, int], int]] = {
            f: {(f, 0): gates.true} for f in self.files if not f.writer
        }
        self.wrote: list[dict[Row, int]] = []
        self._items: list[dict[Row, int]] = []
        for j in range(self.size):
            self._transaction(j)
        if skip_noops:
            for j in range(writers):
                gates.add(*self._actions(j))

    def chosen(self, j: int, has: Callable[[Outline], bool]) -> int:
        """Transaction j runs a statement of this kind."""
        return self.gates.disj(
            run for run, found in zip(self.runs[j], self.menu[j], strict=True) if has(found)
        )

    # What each transaction does, in the order of the log

    def _transaction(self, j: int) -> None:
        gates = self.gates
        there = {f: self._there(f, j) for f in self.files if f.writer <= min(j, self.writers)}
        self.there.append(there)
        removes: dict[Row, int] = {}
        recorded: dict[Row, int] = {}
        items: dict[Row, int] = {}
        for p in self.partitions:
            here = [f for f in there if f.partition == p and there[f] != gates.false]
            several = gates.disj(
                gates.both(there[f], there[g]) for k, f in enumerate(here) for g in here[:k]
            )
            compacts = gates.both(self.chosen(j, lambda o: p in o.compacts), several)  # noqa: B023
            replaces = self.chosen(j, lambda o: p in o.kills or p in o.updates)  # noqa: B023
            files = self.chosen(j, lambda o: p in o.files)  # noqa: B023
            may_files = self.chosen(j, lambda o: p in o.may_files)  # noqa: B023
            reads = self.chosen(j, lambda o: o.reads(p))  # noqa: B023
            may_read = self.chosen(j, lambda o: o.may_read(p))  # noqa: B023
            for f in here:
                removes[f] = gates.both(there[f], gates.disj([replaces, compacts]))
                sees_it = self.maybe(may_files)
                recorded[f] = gates.both(there[f], gates.disj([files, sees_it, compacts]))
                matched = self.maybe(may_read)
                items[f] = gates.both(there[f], gates.disj([reads, matched]))
                gates.add(-matched, -there[f], -may_files, recorded[f])
        self.removes.append(removes)
        self.recorded_files.append(recorded)
        self._items.append(items)
        if j < self.writers:
            self._write(j)
        else:
            self.wrote.append({})

    def _there(self, f: Row, j: int) -> int:
        """The file is in the snapshot of j."""
        if f.writer > len(self.sees[j]):
            return self.gates.false
        sees = self.sees[j]
        gone = [
            self.gates.both(sees[k], self.removes[k][f])
            for k in range(f.writer, len(sees))
            if f in self.removes[k]
        ]
        made = self.gates.both(self.adds[f], sees[f.writer - 1] if f.writer else self.gates.true)
        return self.gates.conj([made, *(-g for g in gone)])

    def maybe(self, possible: int) -> int:
        """A literal that is free if the other holds, else false."""
        if possible == self.gates.false:
            return self.gates.false
        free = self.gates.new()
        self.gates.add(-free, possible)
        return free

    def _write(self, j: int) -> None:
        gates, there = self.gates, self.there[j]
        wrote: dict[Row, int] = defaultdict(lambda: gates.false)
        for p in self.partitions:
            new = Row(j + 1, p)
            updates = self.chosen(j, lambda o: p in o.updates)  # noqa: B023
            touches = self.chosen(j, lambda o: p in o.updates or p in o.kills)  # noqa: B023
            compacts = self.chosen(j, lambda o: p in o.compacts)  # noqa: B023
            inserts = self._inserts(j, p)
            gone = [f for f in self.files if f.partition == p and f in self.removes[j]]
            carried: dict[tuple[Row, int], list[int]] = defaultdict(list)
            for f in gone:
                for (row, version), has in self.versions[f].items():
                    moved = gates.both(self.removes[j][f], has)
                    carried[row, version].append(gates.both(moved, compacts))
                    carried[row, j + 1].append(gates.both(moved, updates))
                    wrote[row] = gates.disj([wrote[row], gates.conj([there[f], has, touches])])
            carried[new, j + 1].append(inserts)
            wrote[new] = gates.disj([wrote[new], inserts])
            found = {key: gates.disj(parts) for key, parts in carried.items()}
            self.versions[new] = {k: has for k, has in found.items() if has != gates.false}
            rewritten = [
                gates.both(self.removes[j][f], gates.disj([updates, compacts])) for f in gone
            ]
            self.adds[new] = gates.disj([inserts, *rewritten])
        self.wrote.append(dict(wrote))

    def _inserts(self, j: int, p: int) -> int:
        """Rows of its own come into the partition."""
        gates = self.gates
        parts: list[int] = []
        for run, outline in zip(self.runs[j], self.menu[j], strict=True):
            for insertion in outline.inserts:
                if insertion.partition != p:
                    continue
                some = gates.disj(
                    there for f, there in self.there[j].items() if f.partition in insertion.source
                )
                match insertion.when:
                    case "always":
                        holds = gates.true
                    case "any":
                        holds = some if insertion.sure else gates.both(some, gates.new())
                    case _:
                        holds = -some if insertion.sure else gates.disj([-some, gates.new()])
                parts.append(gates.both(run, holds))
        return gates.disj(parts)

    def _actions(self, j: int) -> list[int]:
        """The files that a commit adds and removes."""
        return [*self.removes[j].values(), *(self.adds[Row(j + 1, p)] for p in self.partitions)]

    # The frame

    def frames(self, needs: Iterable[str]) -> Matrices[int]:
        """The frame with the names that are needed."""
        needs = frozenset(needs)
        n, gates = self.size, self.gates
        relations: dict[str, Matrix[int]] = {"so": [{} for _ in range(n)]}
        if needs & {"log", "vis", "unseen"}:
            self._orders(relations)
        if needs & {"wr", "ww", "rw"}:
            self._dependencies(relations)
        if needs & {"adds-meets-reads", "removes-meets-reads", "removes-meets-removes"}:
            self._footprints(relations)
        writer = [gates.true if j < self.writers else gates.false for j in range(n)]
        empty = [-gates.disj(self._actions(j)) if w == 1 else 1 for j, w in enumerate(writer)]
        changes = [
            gates.both(w, self.chosen(j, lambda o: o.changes_data)) for j, w in enumerate(writer)
        ]
        sets = {
            "Writer": writer,
            "Reader": [-w for w in writer],
            "Aborted": [gates.false] * n,
            "Blind": [
                gates.both(w, self.chosen(j, lambda o: o.blind)) for j, w in enumerate(writer)
            ],
            "NoData": [gates.disj([empty[j], -changes[j]]) for j in range(n)],
            "ChangesData": changes,
            "Empty": empty,
        }
        return Matrices(gates, [gates.true] * n, relations, sets)

    def _matrix(self, pairs: Pairs) -> Matrix[int]:
        rows: Matrix[int] = [{} for _ in range(self.size)]
        for (i, j), parts in pairs.items():
            value = self.gates.disj(parts)
            if i != j and value != self.gates.false:
                rows[i][j] = value
        return rows

    def seen(self, i: int, j: int) -> int:
        """Transaction j sees what writer i (from 0) committed."""
        return self.sees[j][i] if i < len(self.sees[j]) else self.gates.false

    def _orders(self, relations: dict[str, Matrix[int]]) -> None:
        log: Pairs = {}
        vis: Pairs = {}
        unseen: Pairs = {}
        for i in range(self.writers):
            for j in range(self.size):
                vis[i, j] = [self.seen(i, j)]
                if i < j < self.writers:
                    log[i, j] = [self.gates.true]
                    unseen[i, j] = [-self.seen(i, j)]
        relations["log"] = self._matrix(log)
        relations["vis"] = self._matrix(vis)
        relations["unseen"] = self._matrix(unseen)

    def _footprints(self, relations: dict[str, Matrix[int]]) -> None:
        gates = self.gates
        adds: Pairs = {}
        reads: Pairs = {}
        removes: Pairs = {}
        for i in range(self.writers):
            for j in range(self.writers):
                if i == j:
                    continue
                adds[i, j] = [
                    gates.both(
                        self.adds[Row(i + 1, p)],
                        self.chosen(j, lambda o: p in o.recorded),  # noqa: B023
                    )
                    for p in self.partitions
                ]
                reads[i, j] = [
                    gates.both(gone, self.recorded_files[j][f])
                    for f, gone in self.removes[i].items()
                    if f in self.recorded_files[j]
                ]
                removes[i, j] = [
                    gates.both(gone, self.removes[j][f])
                    for f, gone in self.removes[i].items()
                    if f in self.removes[j]
                ]
        relations["adds-meets-reads"] = self._matrix(adds)
        relations["removes-meets-reads"] = self._matrix(reads)
        relations["removes-meets-removes"] = self._matrix(removes)

    def _dependencies(self, relations: dict[str, Matrix[int]]) -> None:
        """Adya's dependencies: for each row the chain of its writers, who read which link, and
        which links change what matches.
        """
        ww: Pairs = defaultdict(list)
        wr: Pairs = defaultdict(list)
        rw: Pairs = defaultdict(list)
        for row in self.files:
            self._items_of(row, ww, wr, rw)
            self._matches_of(row, wr, rw)
        relations["ww"], relations["wr"], relations["rw"] = map(self._matrix, (ww, wr, rw))

    def _items_of(self, row: Row, ww: Pairs, wr: Pairs, rw: Pairs) -> None:
        gates = self.gates
        wrote = [self.wrote[k].get(row, gates.false) for k in range(self.writers)]
        following: dict[tuple[int, int], int] = {}
        for k in range(self.writers + 1):
            untouched = gates.true
            for m in range(k, self.writers):
                following[k, m] = gates.both(untouched, wrote[m])
                untouched = gates.both(untouched, -wrote[m])
                if k:
                    ww[k - 1, m].append(gates.both(wrote[k - 1], following[k, m]))
        for j in range(self.size):
            for version in range(self.writers + 1):
                seen = gates.disj(
                    gates.both(matched, self.versions[f][row, version])
                    for f, matched in self._items[j].items()
                    if (row, version) in self.versions[f]
                )
                if seen == gates.false:
                    continue
                if version:
                    wr[version - 1, j].append(seen)
                for m in range(version, self.writers):
                    rw[j, m].append(gates.both(seen, following[version, m]))

    def _matches_of(self, row: Row, wr: Pairs, rw: Pairs) -> None:
        gates = self.gates
        p = row.partition
        alive = gates.false if row.writer else gates.true
        appeared = [gates.false] * self.size
        for k in range(self.writers):
            wrote = self.wrote[k].get(row, gates.false)
            if wrote == gates.false:
                continue
            lives = gates.both(wrote, self.lives(k, row))
            after = gates.disj([lives, gates.both(-wrote, alive)])
            change = gates.disj([gates.both(after, -alive), gates.both(-after, alive)])
            alive = after
            for j in range(self.size):
                sees = self.seen(k, j)
                if j == k:
                    appeared[j] = gates.disj([appeared[j], lives])
                    continue
                reads = gates.both(change, self.chosen(j, lambda o: o.reads(p)))
                may = self.maybe(gates.both(self.chosen(j, lambda o: o.may_read(p)), wrote))
                # who takes out a row takes out a match only if the row matched before
                gates.add(-may, sees, lives, appeared[j], self._matched(j, row))
                appeared[j] = gates.disj([appeared[j], gates.both(lives, -sees)])
                meets = gates.disj([reads, may])
                wr[k, j].append(gates.both(meets, sees))
                rw[j, k].append(gates.both(meets, -sees))

    def lives(self, k: int, row: Row) -> int:
        """If writer k (from 0) wrote the row, it is there afterwards."""
        if row.writer == k + 1:
            return self.gates.true
        return -self.chosen(k, lambda o: row.partition in o.kills)

    def _matched(self, j: int, row: Row) -> int:
        """Transaction j read some version of the row."""
        return self.gates.disj(
            self.gates.both(matched, has)
            for f, matched in self._items[j].items()
            for (other, _), has in self.versions[f].items()
            if other == row
        )
