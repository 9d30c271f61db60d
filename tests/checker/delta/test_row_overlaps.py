"""The relations below the level of files, against a second implementation: bitmaps of positions, as
Delta's pulls compute with them, statistics by trying every value, and rows by looking at the states.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vector_tests import ON_VECTORS

from isolitmus.checker.delta.frame import ROW_RELATIONS, delta_frame
from isolitmus.checker.delta.read_set import accesses
from isolitmus.checker.delta.row_overlaps import Rebase, emptied_positions, marked_files
from isolitmus.checker.execution.commit_loop import execute
from isolitmus.checker.strategies import litmus_tests
from isolitmus.model.errors import IsolitmusError, UndeterminedError
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql.conditions import holds
from isolitmus.specs import protocol, scope
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.spec_reader import read_spec
from isolitmus.specs.sql.statements import read_statement

VECTORS = '{ "delta.enableDeletionVectors" = "true" }'


def test_of(statements, schedule, init=("INSERT INTO t VALUES (1, 1), (2, 1), (3, 1)",)):
    """A litmus test on a table with deletion vectors."""
    inits = ", ".join(f'"{sql}"' for sql in init)
    jobs = "\n".join(f'{name} = "{sql}"' for name, sql in statements.items())
    return read_litmus(
        f'title = "drawn"\nschedule = "{schedule}"\n[table]\ncolumns = "id INT, x INT"\n'
        f"properties = {VECTORS}\ninit = [{inits}]\n[transactions]\n{jobs}\n",
        "drawn",
    )


test_of.__test__ = False


class Log:
    """The commits of an execution as the log has them: paths, and vectors as sets of positions."""

    def __init__(self, execution):
        self.execution = execution
        self.physical = {}
        files = [f for state in execution.states for t in state.values() for f in t.files]
        files += [file for event in execution.events for file in event.effect.adds]
        for file in files:
            self.physical.setdefault(file.path, {}).update({row.id: row for row in file.rows})

    def vector(self, file):
        """The positions that are dead in a file."""
        return set(self.physical[file.path]) - {row.id for row in file.rows}

    def found(self, event):
        """The files of the table that a commit read, by path."""
        tables = self.execution.states[event.read_version]
        table = tables.get(event.effect.footprint.table)
        return {file.path: file for file in table.files} if table else {}

    def removed(self, event):
        """The vectors of the files that a commit removes, by path."""
        there = self.found(event)
        paths = event.effect.footprint.removes
        return {path: self.vector(there[path]) for path in paths if path in there}

    def sources(self, event):
        """The live positions of the files that a commit removes, by path."""
        return {path: set(self.physical[path]) - dead for path, dead in self.removed(event).items()}

    def added(self, event):
        """The vectors of the files that a commit adds with one, by path."""
        return {f.path: self.vector(f) for f in event.effect.adds if f.dead}

    def emptied(self, event):
        """The rows of each position that a commit emptied: before the commit live, then dead or
        removed with their file.
        """
        there, marked = self.found(event), self.added(event)
        return {
            (path, row.id): row
            for path in event.effect.footprint.removes
            if path in there
            for row in there[path].rows
            if path not in marked or row.id in marked[path]
        }


def relations_by_bitmaps(execution):
    """The pairs of each relation, in Delta's own words."""
    log = Log(execution)
    commits = [e for e in execution.events if e.effect.footprint is not None]
    place = {id(event): i for i, event in enumerate(execution.events)}
    pairs = {name: set() for name in ROW_RELATIONS}
    for loser in commits:
        reads = loser.effect.footprint
        base, current = log.removed(loser), log.added(loser)
        sources, runs = log.removed(loser), log.sources(loser)
        merged_before, moved_before = set(), set()
        for winner in sorted(commits, key=lambda e: e.version or 0):
            wrote = winner.effect.footprint
            if winner is loser or wrote.table != reads.table:
                continue
            unseen = loser.missed(winner) and (
                loser.version is None or (winner.version or 0) < loser.version
            )
            mine = (base, current) if unseen else (log.removed(loser), log.added(loser))
            theirs, gone = log.added(winner), log.removed(winner)
            merged, moved = set(), set()
            if reads.schema.vectors:
                for path in theirs.keys() & gone.keys():
                    marked = path in mine[0] and path in mine[1]
                    if marked and not (theirs[path] & mine[1][path]) - mine[0][path]:
                        merged.add(path)
                        mine[1][path] = theirs[path] | mine[1][path]
                        mine[0][path] = theirs[path]
                if not reads.changes_data and not reads.orders:
                    dead = sources if unseen else log.removed(loser)
                    shared = theirs.keys() & gone.keys() & dead.keys()
                    fresh = {path: theirs[path] - dead[path] for path in shared}
                    output = sum(len(positions) for positions in fresh.values())
                    if output and all(fresh[path] <= runs[path] for path in shared):
                        moved = shared
                        dead.update({path: theirs[path] for path in shared})
            earlier = (merged_before, moved_before) if unseen else (set(), set())
            found = names_of(log, winner, loser, (merged, moved, *earlier))
            for name in found:
                pairs[name].add((place[id(winner)], place[id(loser)]))
            if unseen:
                merged_before |= merged
                moved_before |= moved
    return pairs


def names_of(log, winner, loser, reconciled):
    """Yield the relations of a winner and a loser."""
    merged, moved, merged_before, moved_before = reconciled
    wrote, reads = winner.effect.footprint, loser.effect.footprint
    adds, removes = winner.effect.adds, wrote.removes
    for suffix, now, before in (
        ("unmerged", merged, merged_before), ("unmoved", moved, moved_before)
    ):  # fmt: skip
        left = removes - now
        if left and (reads.whole_table or left & (reads.files - now - before)):
            yield f"removes-meets-reads-{suffix}"
        if left & reads.removes:
            yield f"removes-meets-removes-{suffix}"
    if merged:
        yield "merges-vectors"
    for suffix, files in (("", adds), ("-unmerged", [f for f in adds if f.path not in merged])):
        if suffix and meets(reads, files):
            yield "adds-meets-reads-unmerged"
        kept = [file for file in files if could_match(log, reads, file)]
        if meets(reads, kept):
            yield f"adds-could-match-reads{suffix}"
            every = reads.whole_table or not all(known_reads(reads))
            tests = [plain(read) for read in known_reads(reads)]
            some = (row.values for file in kept for row in file.rows)
            if every or not all(tests) or any(satisfies(t, row) for row in some for t in tests):
                yield f"adds-match-reads{suffix}"
    gone = [file for path, file in log.found(winner).items() if path in removes]
    if meets(reads, [file for file in gone if could_match(log, reads, file)]):
        yield "removes-could-match-reads"
    changed = {w.id for w in winner.effect.writes}
    old = [w.before for w in winner.effect.writes if w.before is not None and w.id != w.table]
    new = [w.after for w in winner.effect.writes if w.after is not None and w.id != w.table]
    if any(matches(reads, row) for row in new):
        yield "added-rows-match-reads"
    if any(matches(reads, row) for row in old):
        yield "removed-rows-match-reads"
    own = {w.id for w in loser.effect.writes}
    theirs, mine = log.emptied(winner), log.emptied(loser)
    both = theirs.keys() & mine.keys()
    if any(row in changed and row in own for _, row in both):
        yield "removes-removed-row"
    if any(row in changed and row not in own for _, row in both):
        yield "removes-moved-row"
    if any(row not in changed and row in own for _, row in both):
        yield "moves-removed-row"
    for name, moves in (("removes-read-row", False), ("moves-read-row", True)):
        if any(
            (place[1] not in changed) == moves
            and place[0] in reads.files
            and matches(reads, row.values)
            for place, row in theirs.items()
        ):
            yield name
    before = {w.id for w in winner.effect.writes if w.before is not None}
    if before & {w.id for w in loser.effect.writes if w.before is not None}:
        yield "changes-changed-row"
    for columns, keys in wrote.merge_keys.items():
        if keys & reads.merge_keys.get(columns, frozenset()):
            yield "same-merge-key"


def meets(reads, files):
    """checkForAddedFilesThatShouldHaveBeenReadByCurrentTxn for files of any commit."""
    if not files or reads.blind:
        return False
    if reads.whole_table or not reads.schema.partitioned_by:
        return True
    spread = [reads.schema.spread(file.partition) for file in files]
    return any(
        all(holds(part, (row,)) for part in read) for read in reads.predicates for row in spread
    )


def matches(reads, row):
    """Whether a row satisfies a recorded read."""
    if reads.blind:
        return False
    every = zip(reads.predicates, known_reads(reads), strict=True)
    return reads.whole_table or any(satisfies(plain((*p, *d)), row) for p, d in every)


def known_reads(reads):
    """The conditions of recorded reads; the frame lacks what depends on unknown ones."""
    return [() if read is None else read for read in reads.data_conditions]


def plain(read):
    return [c for c in read if not any(isinstance(e, ex.Subquery | ex.Opaque) for e in ex.walk(c))]


def satisfies(read, row):
    return all(holds(part, (row,)) for part in read)


def could_match(log, reads, file):
    """Whether statistics leave a file, by trying every value between minimum and maximum."""
    if reads.whole_table or not reads.predicates or not all(known_reads(reads)):
        return True
    size = len(log.physical[file.path]) if file.path in log.physical else len(file.rows)
    schema = reads.schema
    return any(
        all(possible(part, file, size, schema) is not False for part in read)
        for read in known_reads(reads)
    )


def possible(part, file, size, schema):
    """Whether statistics let some row make a condition true; None if no filter can be built."""
    match part:
        case ex.And(left, right):
            sides = [possible(side, file, size, schema) for side in (left, right)]
            return None if sides == [None, None] else False not in sides
        case ex.Or(left, right):
            sides = [possible(side, file, size, schema) for side in (left, right)]
            return None if None in sides else True in sides
        case ex.IsNull(ex.ColumnRef(index=k)) if k not in schema.partition_indexes:
            return file.stats[k].nulls > 0
        case ex.Not(ex.IsNull(ex.ColumnRef(index=k))) if k not in schema.partition_indexes:
            return file.stats[k].nulls < size
        case ex.Compare(op, ex.ColumnRef(index=k) as column, ex.Const() as bound) if (
            k not in schema.partition_indexes
        ):
            return any(holds(ex.Compare(op, column, bound), (row,)) for row in between(file, k))
        case ex.In(ex.ColumnRef(index=k) as column, values) if k not in schema.partition_indexes:
            there = [v for v in values if v is not None]
            bounds = ex.Const(min(there), column.type), ex.Const(max(there), column.type)
            within = ex.And(
                ex.Compare(">=", column, bounds[0]), ex.Compare("<=", column, bounds[1])
            )
            return any(holds(within, (row,)) for row in between(file, k))
    return None


def between(file, column):
    """Rows of which a column has each value between its minimum and maximum."""
    least, greatest = file.stats[column].least, file.stats[column].greatest
    values = [] if least is None else range(least, greatest + 1)
    return ((None,) * column + (value,) + (None,) * (9 - column) for value in values)


def is_determined(frame, name):
    """Whether an execution determines a relation."""
    try:
        return frame.relations[name] is not None
    except UndeterminedError:
        return False


def assert_agree(test, under=None):
    """Compare the frame of an execution with the second implementation."""
    try:
        execution = execute(test, under)
        frame = delta_frame(execution.events, reasons=False)
    except IsolitmusError:
        return 0
    expected = relations_by_bitmaps(execution)
    names = [n for n in ROW_RELATIONS if is_determined(frame, n) and n not in BETWEEN_VERSIONS]
    for name in names:
        assert set(frame.relations[name].pairs()) == expected[name], name
    return len(names)


BETWEEN_VERSIONS = ("ww-later", "wr-earlier", "rw-later")


@given(st.one_of(litmus_tests(least=2, most=4), ON_VECTORS))
def test_relations_of_drawn_tables_are_those_of_bitmaps(test):
    assert_agree(test)


@pytest.mark.parametrize("name", ["vectors", "vectors-two-files"])
def test_relations_of_the_scopes_are_those_of_bitmaps(name):
    from isolitmus.checker.universes.tables import candidates

    searched = scope(name)
    compared = dict.fromkeys(ROW_RELATIONS, 0)
    for k, found in enumerate(candidates(searched, 2, keep=lambda _: True)):
        if found is None or k % 5 or len(found.states) < 3:
            continue
        expected = relations_by_bitmaps(Executed(found.events, found.states))
        for relation in ROW_RELATIONS:
            if relation not in BETWEEN_VERSIONS:
                pairs = set(found.frame.relations[relation].pairs())
                assert pairs == expected[relation], relation
                compared[relation] += len(pairs)
    lacking = {relation for relation, pairs in compared.items() if not pairs}
    moves = {"moves-removed-row", "removes-moved-row", "moves-read-row"}
    assert lacking <= {*BETWEEN_VERSIONS, *moves}


class Executed:
    """Events and states, as an execution has them."""

    def __init__(self, events, states):
        self.events, self.states = events, states


@given(litmus_tests(least=2, most=4))
def test_versions_apart_are_those_of_the_states(test):
    """If no two commits wrote over one version, each state shows who wrote which version."""
    try:
        execution = execute(test, protocol("delta-serializable"))
    except IsolitmusError:
        return
    events = [e for e in execution.events if not e.aborted]
    frame = delta_frame(events, reasons=False)
    place = {e.version: i for i, e in enumerate(events) if e.version is not None}
    states = [
        {row.id: row.writer for t in state.values() for f in t.files for row in f.rows}
        for state in execution.states
    ]
    writes = {}
    for version in range(1, len(states)):
        before, after = states[version - 1], states[version]
        for row in before.keys() | after.keys():
            if before.get(row) != after.get(row) and version in place:
                writes.setdefault(row, []).append(version)
    later = {(place[a], place[b]) for vs in writes.values() for a in vs for b in vs if a < b}
    rows = {w.id for e in events for w in e.effect.writes if w.id == w.table}
    if not rows:  # definitions of tables are items, too
        assert set(frame.relations["ww-later"].pairs()) == later
        for j, event in enumerate(events):
            seen = {
                r.id for read in event.effect.reads for r in read.matched if read.version is None
            }
            missed = {place[v] for r in seen for v in writes.get(r, ()) if v > event.read_version}
            known = {place[v] for r in seen for v in writes.get(r, ()) if v <= event.read_version}
            assert {w for i, w in frame.relations["rw-later"].pairs() if i == j} >= missed - {j}
            assert {w for w, i in frame.relations["wr-earlier"].pairs() if i == j} >= known - {j}
        assert set(frame.relations["ww"].pairs()) <= later


# Single cases


def test_a_merged_file_is_one_that_both_marked_in_different_rows():
    names = {"a": "DELETE FROM t WHERE id = 1", "b": "DELETE FROM t WHERE id = 2"}
    first, second = execute(test_of(names, "a.start b a.commit")).events
    assert [*marked_files(second.effect)] == [*marked_files(first.effect)]
    merged, moved = Rebase(second.effect).reconcile(first.effect)
    assert merged.now == {*marked_files(first.effect)}
    assert not moved.now
    names["b"] = "DELETE FROM t WHERE id < 3"
    first, second = execute(test_of(names, "a.start b a.commit")).events
    assert not Rebase(second.effect).reconcile(first.effect)[0].now


def test_a_loser_is_merged_with_one_winner_after_another():
    names = {k: f"DELETE FROM t WHERE id = {n}" for n, k in enumerate("abc", 1)}
    test = test_of(names, "c.start a b c.commit")
    done = execute(test, protocol("case-2-serializable"))
    assert [event.version for event in done.events] == [1, 2, 3]
    (file,) = done.states[-1]["t"].files
    assert (file.rows, file.dead) == ((), 3)


def test_a_compaction_takes_over_the_vector_of_its_winner():
    inits = ("INSERT INTO t VALUES (1, 1), (2, 1)", "INSERT INTO t VALUES (11, 1), (12, 1)")
    names = {"compact": "OPTIMIZE t", "delete": "DELETE FROM t WHERE id = 1"}
    test = test_of(names, "compact.start delete compact.commit", inits)
    assert execute(test, protocol("delta-serializable")).events[-1].aborted
    done = execute(test, protocol("case-4-serializable"))
    assert [event.aborted for event in done.events] == [False, False]
    (file,) = done.states[-1]["t"].files
    assert ([row.values[0] for row in file.rows], file.dead) == ([2, 11, 12], 1)
    assert emptied_positions(done.events[-1].effect).moved


def test_a_restored_row_is_deleted_again_by_the_union_of_vectors():
    """RESTORE gives a file an older vector; the union has the rows that it brought back."""
    inits = (
        "INSERT INTO t VALUES (1, 1), (2, 1), (3, 1), (4, 1)",
        "DELETE FROM t WHERE id = 4",
        "DELETE FROM t WHERE id = 3",
    )
    names = {
        "delete": "DELETE FROM t WHERE id = 1",
        "restore": "RESTORE TABLE t TO VERSION AS OF {init[2]}",
    }
    test = test_of(names, "delete.start restore delete.commit", inits)
    done = execute(test, protocol("case-2-serializable"))
    assert [row.values[0] for file in done.states[-1]["t"].files for row in file.rows] == [2]


def test_a_relation_that_the_optimizer_decides_is_not_in_the_frame():
    """The protocols of released Delta do not use it, and are judged all the same."""
    names = {
        "copy": "INSERT INTO t SELECT a.id, 1 FROM t AS a JOIN t AS b ON a.id = b.id WHERE b.id = 3",
        "append": "INSERT INTO t VALUES (100, 100)",
    }
    test = test_of(names, "copy.start append copy.commit")
    frame = delta_frame(execute(test).events)
    assert not is_determined(frame, "adds-could-match-reads")
    assert is_determined(frame, "removes-meets-reads-unmerged")
    text = '"T" empty unseen & adds-could-match-reads as x'
    with pytest.raises(UndeterminedError, match="adds-could-match-reads is not determined here"):
        execute(test, read_spec(text, "t"))
    names["copy"] = "INSERT INTO t SELECT a.id, 1 FROM t AS a WHERE a.id = 3"
    frame = delta_frame(execute(test_of(names, "copy.start append copy.commit")).events)
    assert not frame.relations["adds-could-match-reads"].pairs()


def test_what_on_transfers_to_a_source_is_not_known():
    """ON has a condition on a target column that equals one of the source, which scans the
    target.
    """
    merge = "MERGE INTO t USING (SELECT id FROM t WHERE x = 1) AS s ON t.id = s.id{} WHEN MATCHED THEN DELETE"
    t = {"t": test_of({"a": "DELETE FROM t WHERE id = 1"}, "a").tables["t"]}
    for more, narrowed in (("", False), (" AND t.x > 0", False), (" AND t.id > 0", True)):
        found = accesses(read_statement(merge.format(more), t), t)
        assert [read.narrowed for read in found] == [False, narrowed]
