"""The premises of the proofs, read as what they say of executions of the model on one table: all hold,
but where a client does what their sentences except.
"""

import pytest
from hypothesis import given

from isolitmus.checker.proving.domain import FILE, PREDICATE, ROW, TRANSACTION, VERSION
from isolitmus.checker.proving.premises import PREMISES
from isolitmus.checker.running.definitions import item, with_definitions
from isolitmus.checker.running.execute import execute, judge_execution
from isolitmus.checker.running.frames import frame
from isolitmus.checker.strategies import litmus_tests
from isolitmus.model.litmus import Litmus
from isolitmus.model.table import widened
from isolitmus.specs import catalogue, level, litmus, protocol


class Logic:
    """The connectives, of truth values."""

    And = staticmethod(lambda *parts: all(parts))
    Or = staticmethod(lambda *parts: any(parts))
    Not = staticmethod(lambda part: not part)
    Implies = staticmethod(lambda given, claim: not given or claim)


class Ranges:
    """Quantifiers over what there is in an execution."""

    def __init__(self, members):
        self.members = members

    def forall(self, sorts, claim):
        return all(claim(*choice) for choice in self.choices(sorts))

    def exists(self, sorts, claim):
        return any(claim(*choice) for choice in self.choices(sorts))

    def choices(self, sorts):
        if not sorts:
            yield ()
            return
        for first in self.members[sorts[0]]:
            for rest in self.choices(sorts[1:]):
                yield (first, *rest)


class Executed:
    """The vocabulary of ``proving.tables``, of one execution: transactions are positions, predicates those
    of a transaction's reads, rows go by their ids, files by their paths.
    """

    z3 = Logic

    def __init__(self, done):
        self.events = with_definitions([e for e in done.events if not e.aborted])
        self.frame = frame(self.events, reasons=False)
        footprints = [e.effect.footprint for e in self.events if e.effect.footprint is not None]
        width = max((len(f.schema.columns) for f in footprints), default=0)
        stored = [
            [(f.path, row) for state in version.values() for f in state.files for row in f.rows]
            for version in done.states
        ]
        self.rows = [{row.id: widened(row.values, width) for _, row in rows} for rows in stored]
        self.files = [{(path, row.id) for path, row in rows} for rows in stored]
        self.written = [{w.id: w for w in event.effect.writes} for event in self.events]
        self.items = {item(table) for table in done.states[-1]}
        reads = [len(event.effect.reads) for event in self.events]
        self.domain = Ranges(
            {
                TRANSACTION: range(len(self.events)),
                PREDICATE: range(max(reads, default=0)),
                ROW: sorted(set().union(*self.rows, *self.written)),
                FILE: sorted({path for version in self.files for path, _ in version}),
                VERSION: range(len(done.states)),
            }
        )

    def one_version(self):
        """Whether every writer reads one version: its formula knows of one only."""
        writers = [event for event in self.events if event.version is not None]
        return all(e.seen_by(read) == e.read_version for e in writers for read in e.effect.reads)

    def footprint(self, i):
        return self.events[i].effect.footprint

    def writer(self, i):
        return self.events[i].version is not None

    def version(self, i):
        return self.events[i].version if self.writer(i) else -1

    def read(self, i):
        return self.events[i].read_version

    def members(self, name):
        return lambda i: bool(self.frame.sets[name] >> i & 1)

    def relation(self, name):
        return lambda i, j: bool(self.frame.relations[name].rows[i] >> j & 1)

    def definition(self, x):
        return x in self.items

    def writes(self, i, x):
        return self.writer(i) and x in self.written[i]

    def creates(self, i, x):
        new = self.writes(i, x) and self.written[i][x].before is None
        return new and not self.footprint(i).marks.large

    def matches(self, j, p, x, n):
        if p >= len(self.events[j].effect.reads):
            return False
        read = self.events[j].effect.reads[p]
        used = n == self.read(j) and any(row.id == x for row in read.matched)
        return used or (x in self.rows[n] and read.matches(self.rows[n][x]))

    def holds(self, f, x, n):
        return (f, x) in self.files[n]

    def read_file(self, j, f):
        footprint = self.footprint(j)
        return footprint is not None and (footprint.whole_table or f in footprint.files)

    def removes(self, i, f):
        return self.footprint(i) is not None and f in self.footprint(i).removes


def violated(test, name):
    """The names of the premises that the test's execution under the protocol does not satisfy."""
    tables = Executed(execute(test, protocol(name)))
    broken = {premise.name for premise in PREMISES if not premise.formula(tables)}
    return broken if tables.one_version() else {*broken, "snapshot"}


OUTSIDE = {"read-files", "read-predicates", "blind"}
EXCEPTIONS = {
    # Reads that the transaction does not record.
    "alias-appends": OUTSIDE,
    "cached-table-appends": OUTSIDE,
    "cached-table-is-fresh": OUTSIDE,
    "collect-then-append": {*OUTSIDE, "snapshot"},
    "stream-subquery-of-target": OUTSIDE,
    "truncate-uncaches": OUTSIDE,
    "set-from-subquery": {"read-files", "read-predicates"},
    "set-from-subquery-merge": {"read-files", "read-predicates"},
    "set-from-subquery-without-skipping": {"read-files", "read-predicates"},
    "parked-merge-torn-read": {"read-files", "snapshot"},
    "parked-update-torn-read": {"read-files", "snapshot"},
    # Reads of another version than the transaction's.
    "lost-update-by-client": {"snapshot"},
    "stream-planned-before": {"snapshot"},
    # Reads of the next identity value.
    "identity-synchronised": OUTSIDE,
    "identity-counts-itself": {"read-files"},
    "identity-marks-pass": {"read-files", "blind"},
    "identity-two-inserts": {"read-files", "blind"},
    # It adds rows with dataChange=false; nothing at all, and records that.
    "no-data-change-appends": {"compactions"},
    "noop-delete-recorded-at-serializable": {"compactions"},
    # Premises of theorems on levels only.
    "large-winner": {"no-restores"},
    "large-winner-files": {"no-restores"},
    "restore-wins": {"no-restores"},
    "session-order": {"sessions"},
    "session-reads-then-writes": {"sessions"},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "delta-serializable",
        "delta-write-serializable",
    ],
)
def test_premises_hold_in_the_litmus_tests_but_for_known_exceptions(name):
    tests = [litmus(test) for test in catalogue.litmus_tests()]
    on_a_table = [t for t in tests if isinstance(t, Litmus) and len(t.tables) == 1]
    found = {test.name: violated(test, name) for test in on_a_table}
    assert {test: broken for test, broken in found.items() if broken} == EXCEPTIONS


def test_theorem_5_needs_that_empty_commits_are_not_recorded():
    recorded = litmus("noop-delete-recorded-at-serializable")
    assert violated(recorded, "delta-serializable") == {"compactions"}
    done = execute(recorded, protocol("delta-serializable"))
    assert [event.version for event in done.events] == [1, 2]
    assert judge_execution(done, level("log-serializable")).violations


@pytest.mark.slow
@given(litmus_tests())
def test_premises_hold_whatever_the_statements(test):
    assert violated(test, "delta-write-serializable") == set()
