"""Boolean circuit of the executions in the table search space, with reads as nodes.

The circuit computes files, rows and the frame of statements with chosen read versions. Its Booleans
may be literals, for a solver, or bits of many candidates at once
(``checker.judge.matrix_semantics``), where nothing is left open.

Files and rows are identified by (writer, partition). All rows that a statement inserts into a
partition have the same history, because no statement with an outline distinguishes them unless it
uses values. If it does, the circuit leaves open what it cannot know. It has every frame that
execution can produce, and perhaps more. So a frame that the circuit does not have is impossible,
and one that it has is executed before it counts.

With reads as nodes, the circuit computes symbolically what ``checker.execution.frame`` computes for
an execution. After the transactions come the initial one and a node for each transaction, read of
it, and row. The node exists if the statement has that many reads, and the row was written or
matched.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from isolitmus.checker.delta.frame import LEVEL_SETS
from isolitmus.checker.delta.partition_abstraction import UnsupportedScope
from isolitmus.checker.delta.statement_kinds import KINDS
from isolitmus.checker.judge.matrix_semantics import Matrices
from isolitmus.checker.judge.read_nodes import NODE_SETS, READ_RELATIONS
from isolitmus.model.delta.header import enables_row_tracking
from isolitmus.model.delta.log import LEVEL_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from isolitmus.checker.delta.partition_abstraction import Outline
    from isolitmus.checker.judge.matrix_semantics import BooleanMatrix, Booleans
    from isolitmus.model.sql.schema import Schema

ABOUT_NO_FILE = ("Meta", "Protocol", "Marked", "Large", "Backfill", "Default")
"""Sets that contain no statement with an outline."""
QUIET = (
    "so",
    "intermediate",
    "protocol-clashes",
    "metadata-clashes",
    "same-domain",
    "writes-read-app",
    "merges-vectors",
)
"""Relations that are empty for statements with an outline."""
FOOTPRINTS = ("adds-meets-reads", "removes-meets-reads", "removes-meets-removes")
"""Overlaps of files."""
NO_FILE_MERGED = {
    "adds-meets-reads-unmerged": "adds-meets-reads",
    "removes-meets-reads-unmerged": "removes-meets-reads",
    "removes-meets-removes-unmerged": "removes-meets-removes",
    "removes-meets-reads-unmoved": "removes-meets-reads",
    "removes-meets-removes-unmoved": "removes-meets-removes",
}
"""Overlaps apart from merged or moved files, which need vectors; a table with vectors has no
outline.
"""

B = TypeVar("B")
"""Type of the circuit's Booleans."""
Disjuncts = dict[tuple[int, int], list[B]]
"""Disjuncts of each pair of nodes."""


@dataclass(frozen=True, slots=True)
class FileRows:
    """Rows that a writer puts into a partition, and the file that it writes there.

    Writers count from 1; 0 is the initial state, with ``serial`` as the file's number.
    """

    writer: int
    partition: int
    serial: int = 0


class TableCircuit(Generic[B]):
    """Circuit of executions of ``writers`` statements in log order, followed by queries.

    Parameters
    ----------
    booleans : Booleans
        Operations on the circuit's Booleans.
    schema : Schema
        The table.
    menu : sequence of sequence of Outline
        ``menu[j]`` are the statements that transaction j may run (from 0, writers first).
    live : sequence of int
        Partition of each initial file.
    partitions : int
        Number of partitions.
    runs : sequence of sequence of B
        ``runs[j][s]``: transaction j runs ``menu[j][s]``.
    sees : sequence of sequence of B
        ``sees[j][k]``: version k + 1 is at or before the read version of j.
    writers : int
        Number of writers.
    free : callable, optional
        Makes a Boolean that may have either value.
    require : callable, optional
        Requires that one of some Booleans holds.

    Raises
    ------
    UnsupportedScope
        If a statement depends on values, and ``free`` is not given.
    """

    def __init__(
        self,
        booleans: Booleans[B],
        schema: Schema,
        menu: Sequence[Sequence[Outline]],
        live: Sequence[int],
        partitions: int,
        *,
        runs: Sequence[Sequence[B]],
        sees: Sequence[Sequence[B]],
        writers: int,
        free: Callable[[], B] | None = None,
        require: Callable[..., None] | None = None,
    ) -> None:
        self.booleans = booleans
        self.schema = schema
        self.writers = writers
        self.size = len(menu)
        self.partitions = range(partitions)
        self.menu, self.runs, self.sees = menu, runs, sees
        self._free, self._require = free, require
        self.files = [FileRows(0, p, k) for k, p in enumerate(live)]
        self.files += [FileRows(w, p) for w in range(1, writers + 1) for p in self.partitions]
        self.adds: dict[FileRows, B] = {f: booleans.true for f in self.files if not f.writer}
        self.removes: list[dict[FileRows, B]] = []
        self.there: list[dict[FileRows, B]] = []
        self.recorded_files: list[dict[FileRows, B]] = []
        self.versions: dict[FileRows, dict[tuple[FileRows, int], B]] = {
            f: {(f, 0): booleans.true} for f in self.files if not f.writer
        }
        self.wrote: list[dict[FileRows, B]] = []
        self.rebased: list[B] = []
        self._contents: dict[tuple[int, FileRows], dict[tuple[FileRows, int], B]] = {}
        self._items: list[dict[FileRows, B]] = []
        self._chosen: dict[tuple[int, tuple[int, ...]], B] = {}
        for j in range(self.size):
            self._transaction(j)

    def acts(self, j: int) -> B:
        """Return whether the commit of writer j (from 0) adds or removes some file."""
        return self.booleans.disj(self._actions(j))

    def chosen(self, j: int, has: Callable[[Outline], bool]) -> B:
        """Return whether transaction j runs a statement of this kind."""
        some = tuple(k for k, outline in enumerate(self.menu[j]) if has(outline))
        if (j, some) not in self._chosen:
            self._chosen[j, some] = self.booleans.disj(self.runs[j][k] for k in some)
        return self._chosen[j, some]

    # Effects of the transactions, in log order

    def _transaction(self, j: int) -> None:
        """Add the files and rows that transaction j reads, removes and writes."""
        gates, neg = self.booleans, self.booleans.neg
        there = {f: self._there(f, j) for f in self.files if f.writer <= min(j, self.writers)}
        self.there.append(there)
        removes: dict[FileRows, B] = {}
        recorded: dict[FileRows, B] = {}
        items: dict[FileRows, B] = {}
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
                # rows are read only from files that are recorded as read, if that is left open
                if matched != gates.false:
                    self._demand(neg(matched), neg(there[f]), neg(may_files), recorded[f])
        self.removes.append(removes)
        self.recorded_files.append(recorded)
        self._items.append(items)
        if j < self.writers:
            self._write(j)
        else:
            self.wrote.append({})

    def _there(self, f: FileRows, j: int) -> B:
        """Return whether the file is in the snapshot of j."""
        if f.writer > len(self.sees[j]):
            return self.booleans.false
        sees = self.sees[j]
        gone = [self.booleans.both(sees[k], self._gone(k, f)) for k in range(f.writer, len(sees))]
        made = self.booleans.both(
            self.adds[f], sees[f.writer - 1] if f.writer else self.booleans.true
        )
        some = self.booleans.disj(self.contents(f, j).values())
        return self.booleans.conj([made, some, *map(self.booleans.neg, gone)])

    def _gone(self, k: int, f: FileRows) -> B:
        """Return whether writer k removes the file; if rebased, only rows are removed."""
        gates = self.booleans
        compacts = self.chosen(k, lambda o: f.partition in o.compacts)
        stays = gates.both(self.rebased[k], compacts)
        return gates.both(self.removes[k].get(f, gates.false), gates.neg(stays))

    def contents(self, f: FileRows, j: int) -> dict[tuple[FileRows, int], B]:
        """Return the row versions in the file with their conditions, if it is in j's snapshot.

        The keys are a row and the number of the version's writer, 0 for the initial one.
        """
        if (j, f) not in self._contents:
            gates, sees = self.booleans, self.sees[j]
            self._contents[j, f] = {
                (row, version): gates.conj(
                    [has, *(
                        gates.neg(gates.both(sees[k], self._taken(k, row)))
                        for k in range(f.writer, min(j, len(sees)))
                    )]
                )
                for (row, version), has in self.versions[f].items()
            }  # fmt: skip
        return self._contents[j, f]

    def _taken(self, k: int, row: FileRows) -> B:
        """Return whether writer k, rebased, deletes or rewrites the row wherever it is."""
        gates = self.booleans
        if row.writer == k + 1:
            return gates.false
        return gates.both(self.rebased[k], self.wrote[k].get(row, gates.false))

    def _rebased(self, j: int) -> B:
        """Return whether a file that writer j removes has changed since it was read.

        See ``checker.delta.commit``.
        """
        gates = self.booleans
        parts: list[B] = []
        for f, removes in self.removes[j].items():
            for k in range(f.writer, j):
                changed = [self._gone(k, f)]
                for (row, _), has in self.contents(f, j).items():
                    changed.append(gates.both(has, self._taken(k, row)))
                unseen = gates.neg(self.seen(k, j))
                parts.append(gates.conj([removes, unseen, gates.disj(changed)]))
        return gates.disj(parts)

    def maybe(self, possible: B) -> B:
        """Return a Boolean that is free if ``possible`` holds, else false."""
        if possible == self.booleans.false:
            return self.booleans.false
        if self._free is None:
            raise UnsupportedScope("a statement looks at values")
        free = self._free()
        self._demand(self.booleans.neg(free), possible)
        return free

    def _demand(self, *parts: B) -> None:
        """Require that one of these holds."""
        if self._require is not None:
            self._require(*parts)

    def _write(self, j: int) -> None:
        """Add the files that writer j adds, their row versions, and the rows that it writes."""
        gates, there = self.booleans, self.there[j]
        self.rebased.append(self._rebased(j))
        alone = gates.neg(self.rebased[j])
        wrote: dict[FileRows, B] = defaultdict(lambda: gates.false)
        for p in self.partitions:
            new = FileRows(j + 1, p)
            updates = self.chosen(j, lambda o: p in o.updates)  # noqa: B023
            touches = self.chosen(j, lambda o: p in o.updates or p in o.kills)  # noqa: B023
            compacts = self.chosen(j, lambda o: p in o.compacts)  # noqa: B023
            inserts = self._inserts(j, p)
            gone = [f for f in self.files if f.partition == p and f in self.removes[j]]
            carried: dict[tuple[FileRows, int], list[B]] = defaultdict(list)
            for f in gone:
                for (row, version), has in self.contents(f, j).items():
                    moved = gates.both(self.removes[j][f], has)
                    carried[row, version].append(gates.conj([moved, compacts, alone]))
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

    def _inserts(self, j: int, p: int) -> B:
        """Return whether new rows come into the partition."""
        gates = self.booleans
        parts: list[B] = []
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
                        holds = some if insertion.sure else self.maybe(some)
                    case _:
                        none = gates.neg(some)
                        holds = none if insertion.sure else gates.disj([none, self.maybe(run)])
                parts.append(gates.both(run, holds))
        return gates.disj(parts)

    def _actions(self, j: int) -> list[B]:
        """Return the conditions of the files that a commit adds and removes."""
        return [
            *self.removes[j].values(),
            *(self.adds[FileRows(j + 1, p)] for p in self.partitions),
        ]

    # The frame

    def frames(self, needs: Iterable[str]) -> Matrices[B]:
        """Return the frame with the needed names, as matrices."""
        needs = frozenset(needs)
        n, gates = self.size, self.booleans
        relations: dict[str, BooleanMatrix[B]] = {name: [{} for _ in range(n)] for name in QUIET}
        if needs & {"log", "vis", "unseen"}:
            self._orders(relations)
        if needs & {"wr", "ww", "rw"}:
            self._dependencies(relations)
        if not needs.isdisjoint((*FOOTPRINTS, *NO_FILE_MERGED)):
            self._footprints(relations)
        writer = [gates.true if j < self.writers else gates.false for j in range(n)]
        empty = [gates.neg(self.acts(j)) if j < self.writers else gates.true for j in range(n)]
        changes = [
            gates.both(w, self.chosen(j, lambda o: o.changes_data)) for j, w in enumerate(writer)
        ]
        set_to = self.schema.properties.get(LEVEL_KEY, "").lower()
        sets = {
            "Writer": writer,
            "Reader": [gates.neg(w) for w in writer],
            "Aborted": [gates.false] * n,
            "Blind": [
                gates.both(w, self.chosen(j, lambda o: o.blind)) for j, w in enumerate(writer)
            ],
            "NoData": [gates.disj([empty[j], gates.neg(changes[j])]) for j in range(n)],
            "ChangesData": changes,
            "Empty": empty,
            **{name: [gates.false] * n for name in ABOUT_NO_FILE},
            "Vectors": self._of_table(self.schema.vectors),
            "Partitioned": self._of_table(bool(self.schema.partitioned_by)),
            "Ordering": [gates.false] * n,
            **{name: [gates.false] * n for name in ("Identity", "Clustered")},
            "Tracked": self._of_table(enables_row_tracking(self.schema.properties)),
            "AppendOnly": [
                gates.neg(gates.disj(self.removes[j].values())) if j < self.writers else gates.false
                for j in range(n)
            ],
            **{name: self._of_table(level == set_to) for name, level in LEVEL_SETS.items()},
            **{kind: self._of_kind(kind) for kind in KINDS},
        }
        return Matrices(gates, [gates.true] * n, relations, sets)

    def _of_kind(self, kind: str) -> list[B]:
        """Return the set of writers whose statements are of a kind."""
        gates = self.booleans
        writers = [self.chosen(j, lambda o: kind in o.kinds) for j in range(self.writers)]
        return writers + [gates.false] * (self.size - self.writers)

    def _of_table(self, holds: bool) -> list[B]:
        """Return the set of all writers if ``holds``, else the empty set."""
        gates = self.booleans
        writers = [gates.true if holds else gates.false] * self.writers
        return writers + [gates.false] * (self.size - self.writers)

    def _matrix(self, pairs: Disjuncts[B]) -> BooleanMatrix[B]:
        """Return the matrix of a relation from its disjuncts, without self-pairs."""
        rows: BooleanMatrix[B] = [{} for _ in range(self.size)]
        for (i, j), parts in pairs.items():
            value = self.booleans.disj(parts)
            if i != j and value != self.booleans.false:
                rows[i][j] = value
        return rows

    def seen(self, i: int, j: int) -> B:
        """Return whether transaction j sees the commit of writer i (from 0)."""
        return self.sees[j][i] if i < len(self.sees[j]) else self.booleans.false

    def _orders(self, relations: dict[str, BooleanMatrix[B]]) -> None:
        """Add the relations log, vis and unseen."""
        log: Disjuncts[B] = {}
        vis: Disjuncts[B] = {}
        unseen: Disjuncts[B] = {}
        for i in range(self.writers):
            for j in range(self.size):
                vis[i, j] = [self.seen(i, j)]
                if i < j < self.writers:
                    log[i, j] = [self.booleans.true]
                    unseen[i, j] = [self.booleans.neg(self.seen(i, j))]
        relations["log"] = self._matrix(log)
        relations["vis"] = self._matrix(vis)
        relations["unseen"] = self._matrix(unseen)

    def _footprints(self, relations: dict[str, BooleanMatrix[B]]) -> None:
        """Add the overlaps of a winner's files with a loser's read and removed files."""
        gates = self.booleans
        adds: Disjuncts[B] = {}
        reads: Disjuncts[B] = {}
        removes: Disjuncts[B] = {}
        for i in range(self.writers):
            for j in range(self.writers):
                if i == j:
                    continue
                adds[i, j] = [
                    gates.both(
                        self.adds[FileRows(i + 1, p)],
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
        relations |= zip(FOOTPRINTS, map(self._matrix, (adds, reads, removes)), strict=True)
        relations |= {name: relations[whole] for name, whole in NO_FILE_MERGED.items()}

    def _dependencies(self, relations: dict[str, BooleanMatrix[B]]) -> None:
        """Add Adya's dependencies.

        They follow from the chain of each row's writers, from the version that each transaction
        read, and from the versions that change the matching rows.
        """
        ww: Disjuncts[B] = defaultdict(list)
        wr: Disjuncts[B] = defaultdict(list)
        rw: Disjuncts[B] = defaultdict(list)
        for row in self.files:
            self._items_of(row, ww, wr, rw)
            self._matches_of(row, wr, rw)
        relations["ww"], relations["wr"], relations["rw"] = map(self._matrix, (ww, wr, rw))

    def _items_of(
        self, row: FileRows, ww: Disjuncts[B], wr: Disjuncts[B], rw: Disjuncts[B]
    ) -> None:
        """Add ww, wr and rw of one row, by the version of the row that each transaction read."""
        gates = self.booleans
        wrote = [self.wrote[k].get(row, gates.false) for k in range(self.writers)]
        # following[k, m]: writer m (from 0) is the next one to write the row after version k
        following: dict[tuple[int, int], B] = {}
        for k in range(self.writers + 1):
            untouched = gates.true
            for m in range(k, self.writers):
                following[k, m] = gates.both(untouched, wrote[m])
                untouched = gates.both(untouched, gates.neg(wrote[m]))
                if k:
                    ww[k - 1, m].append(gates.both(wrote[k - 1], following[k, m]))
        for j in range(self.size):
            for version in range(self.writers + 1):
                seen = gates.disj(
                    gates.both(matched, self.contents(f, j)[row, version])
                    for f, matched in self._items[j].items()
                    if (row, version) in self.versions[f]
                )
                if seen == gates.false:
                    continue
                if version:
                    wr[version - 1, j].append(seen)
                for m in range(version, self.writers):
                    rw[j, m].append(gates.both(seen, following[version, m]))

    def _matches_of(self, row: FileRows, wr: Disjuncts[B], rw: Disjuncts[B]) -> None:
        """Add wr and rw by predicate, from writers that insert or remove the row."""
        gates, neg = self.booleans, self.booleans.neg
        p = row.partition
        # alive: the row exists after the writers so far; a change of that changes the matching rows
        alive = gates.false if row.writer else gates.true
        appeared = [gates.false] * self.size
        for k in range(self.writers):
            wrote = self.wrote[k].get(row, gates.false)
            if wrote == gates.false:
                continue
            lives = gates.both(wrote, self.lives(k, row))
            after = gates.disj([lives, gates.both(neg(wrote), alive)])
            change = gates.disj([gates.both(after, neg(alive)), gates.both(neg(after), alive)])
            alive = after
            for j in range(self.size):
                sees = self.seen(k, j)
                if j == k:
                    appeared[j] = gates.disj([appeared[j], lives])
                    continue
                reads = gates.both(change, self.chosen(j, lambda o: o.reads(p)))
                may = self.maybe(gates.both(self.chosen(j, lambda o: o.may_read(p)), wrote))
                # a removed row changes the matching rows only if it matched before
                if may != gates.false:
                    self._demand(neg(may), sees, lives, appeared[j], self._matched(j, row))
                appeared[j] = gates.disj([appeared[j], gates.both(lives, neg(sees))])
                meets = gates.disj([reads, may])
                wr[k, j].append(gates.both(meets, sees))
                rw[j, k].append(gates.both(meets, neg(sees)))

    def lives(self, k: int, row: FileRows) -> B:
        """Return whether the row exists after writer k (from 0), if k wrote it."""
        if row.writer == k + 1:
            return self.booleans.true
        return self.booleans.neg(self.chosen(k, lambda o: row.partition in o.kills))

    def _matched(self, j: int, row: FileRows) -> B:
        """Return whether transaction j read some version of the row."""
        return self.booleans.disj(
            self.booleans.both(matched, has)
            for f, matched in self._items[j].items()
            for (other, _), has in self.contents(f, j).items()
            if other == row
        )


def add_read_nodes(circuit: TableCircuit[B], frames: Matrices[B]) -> Matrices[B]:
    """Return the frames of a circuit, extended by the initial transaction and the reads."""
    builder = _ReadMatrices(circuit)
    for j in range(circuit.size):
        most = max(len(outline.partition_reads) for outline in circuit.menu[j])
        for number in range(most):
            for row in circuit.files:
                builder.read(j, number, row)
    return builder.frames(frames)


class _ReadMatrices(Generic[B]):
    def __init__(self, circuit: TableCircuit[B]) -> None:
        self.circuit, self.gates = circuit, circuit.booleans
        self.init = circuit.size
        self.exists = [self.gates.true] * (circuit.size + 1)
        self.pairs: dict[str, dict[tuple[int, int], list[B]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for j in range(circuit.size):
            self.pairs["so"][self.init, j].append(self.gates.true)

    def read(self, j: int, number: int, row: FileRows) -> None:
        """Add the node of read ``number`` of transaction j and a row."""
        circuit, gates, neg = self.circuit, self.gates, self.gates.neg
        p = row.partition
        wrote = [circuit.wrote[k].get(row, gates.false) for k in range(circuit.writers)]
        reads = circuit.chosen(
            j, lambda o: any(p in k.whole for k in o.partition_reads[number:][:1])
        )
        may_read = circuit.chosen(
            j, lambda o: any(p in k.partly for k in o.partition_reads[number:][:1])
        )
        is_one = circuit.chosen(j, lambda o: number < len(o.partition_reads))
        node = len(self.exists)
        there = gates.both(is_one, gates.disj([*wrote, reads, may_read]))
        self.exists.append(there)
        self.add("in", node, j, there)
        initially = gates.false if row.writer else gates.true
        alive = [*(gates.both(w, circuit.lives(k, row)) for k, w in enumerate(wrote)), initially]
        visible = [gates.both(w, circuit.seen(k, j)) for k, w in enumerate(wrote)]
        saw: dict[int, B] = {}
        later = gates.false
        for k in reversed(range(circuit.writers)):
            saw[k] = gates.both(visible[k], neg(later))
            later = gates.disj([later, visible[k]])
        saw[self.init] = neg(later)
        version = {k: alive[k] for k in range(circuit.writers)} | {self.init: alive[-1]}
        matched = gates.disj(gates.both(saw[k], version[k]) for k in version)
        may = circuit.maybe(gates.both(may_read, there))
        for k in version:
            if k == j:
                continue
            self.add("rf", k, node, gates.both(there, saw[k]))
            if k == self.init:
                self.add("wr", k, j, gates.both(there, saw[k]))
            installed = gates.true if k == self.init else wrote[k]
            concerned = gates.disj([gates.both(reads, gates.disj([matched, version[k]])), may])
            self.add("rival", k, node, gates.conj([there, installed, neg(saw[k]), concerned]))

    def add(self, name: str, i: int, j: int, pair: B) -> None:
        if pair != self.gates.false:
            self.pairs[name][i, j].append(pair)

    def frames(self, frames: Matrices[B]) -> Matrices[B]:
        """Return the frames with the initial transaction and the reads as nodes."""
        size = len(self.exists)
        beside = [self.gates.false] * (size - self.circuit.size)
        relations: dict[str, BooleanMatrix[B]] = {
            name: [*map(dict, matrix), *({} for _ in beside)]
            for name, matrix in frames.relations.items()
        }
        for name in ("so", "wr", *READ_RELATIONS):
            matrix = relations.setdefault(name, [{} for _ in range(size)])
            for (i, j), parts in self.pairs[name].items():
                matrix[i][j] = self.gates.disj([*parts, matrix[i].get(j, self.gates.false)])
        sets = {name: [*members, *beside] for name, members in frames.sets.items()}
        first = [self.gates.true if i == self.init else self.gates.false for i in range(size)]
        return Matrices(self.gates, self.exists, relations, sets | dict.fromkeys(NODE_SETS, first))
