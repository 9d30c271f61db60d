"""The premises of the proofs, read as what they say of executions of the model on one table: all
hold, but where a client does what their sentences except.
"""

import pytest
from hypothesis import example, given
from vector_tests import ON_VECTORS

from isolitmus.checker.delta.row_overlaps import OVERLAPS
from isolitmus.checker.execution.commit_loop import execute, judge_execution, unfit_table
from isolitmus.checker.prove import premises
from isolitmus.checker.prove.premises import PREMISES, find_violated_premises
from isolitmus.checker.prove.row_level_premises import ROW_LEVEL_PREMISES
from isolitmus.checker.strategies import litmus_tests
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.litmus import Litmus
from isolitmus.specs import level, litmus, protocol
from isolitmus.specs.files import catalogue
from isolitmus.specs.files.litmus_file import read_litmus


def broken(test, name):
    """The names of the premises that the test's execution under the protocol does not satisfy."""
    return {
        premise.name for premise in find_violated_premises(execute(test, protocol(name)), PREMISES)
    }


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
    "set-from-subquery-reader": {"read-files", "read-predicates"},
    "set-from-subquery-without-skipping": {"read-files", "read-predicates"},
    "parked-merge-torn-read": {"read-files", "snapshot"},
    "parked-update-torn-read": {"read-files", "snapshot"},
    # Reads of another version than the transaction's.
    "lost-update-by-client": {"snapshot"},
    "non-repeatable-read-by-client": {"snapshot"},
    "phantom-read-by-client": {"snapshot"},
    "read-skew-by-client": {"snapshot"},
    "stream-planned-before": {"snapshot"},
    # Reads of the next identity value.
    "identity-synchronised": OUTSIDE,
    "identity-counts-itself": {"read-files"},
    "identity-marks-pass": {"read-files", "blind"},
    "identity-two-inserts": {"read-files", "blind"},
    # It adds rows with dataChange=false; nothing at all, and records that.
    "no-data-change-appends": {"compactions"},
    "noop-delete-recorded-at-serializable": {"compactions"},
    # Another writer of the log deletes a row whose file Spark has replaced.
    "deleted-during-spark-optimize": {"files"},
    # Premises of theorems on levels only.
    "domain-twice-winner": {"no-restores"},
    "large-keeps-row-ids": {"no-restores"},
    "large-names-row-ids": {"no-restores"},
    "large-protocol-and-metadata": {"no-restores"},
    "large-winner": {"no-restores"},
    "large-winner-files": {"no-restores"},
    "merged-with-restore": {"no-restores"},
    "moved-with-restore": {"no-restores"},
    "restore-nothing": {"no-restores"},
    "restore-wins": {"no-restores"},
    "row-tracking-batch-during-restore": {"no-restores"},
    "twice-removed": {"no-restores"},
    "vectors-restored": {"no-restores"},
    "job-of-two-queries": {"sessions"},
    "row-tracking-enabled-during-insert": {"sessions"},
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
    tests = [litmus(test) for test in catalogue.litmus_names()]
    on_a_table = [t for t in tests if isinstance(t, Litmus) and len(t.tables) == 1]
    on_a_table = [test for test in on_a_table if not unfit_table(test, protocol(name))]
    found = {test.name: broken(test, name) for test in on_a_table}
    assert {test: names for test, names in found.items() if names} == EXCEPTIONS


REPORT = """
title    = "A report that collects first, and reads the table later"
schedule = "report.before insert report"

[table]
columns = "id INT"
init    = ["INSERT INTO t VALUES (1)"]

[transactions]
report = { sql = "SELECT id, :n FROM t", let = { n = "SELECT count(*) FROM t" } }
insert = "INSERT INTO t VALUES (2)"
"""


def test_who_only_reads_has_to_read_one_version_too():
    """It comes before the insert by what it counted, and after it by what it read: no theorem
    speaks of that.
    """
    report = read_litmus(REPORT, "report")
    done = execute(report, protocol("delta-serializable"))
    assert str(judge_execution(done, level("log-serializable"))) == "forbidden"
    assert broken(report, "delta-serializable") == {"snapshot"}


def test_theorem_5_needs_that_empty_commits_are_not_recorded():
    recorded = litmus("noop-delete-recorded-at-serializable")
    assert broken(recorded, "delta-serializable") == {"compactions"}
    done = execute(recorded, protocol("delta-serializable"))
    assert [event.version for event in done.events] == [1, 2]
    assert judge_execution(done, level("log-serializable")).violations


AWAY = read_litmus(
    """
title    = "A row that an UPDATE moved into another file"
schedule = "update delete"

[table]
columns    = "id INT, x INT"
properties = { "delta.enableDeletionVectors" = "true" }
init       = ["INSERT INTO t VALUES (1, 1), (2, 1)"]

[transactions]
update = "UPDATE t SET x = x + 1 WHERE id = 1"
delete = "DELETE FROM t WHERE id = 1"
""",
    "away",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["case-1-values-serializable", "case-2-serializable", "case-2-repaired-write-serializable",
     "case-4-serializable"],
)  # fmt: skip
@given(test=ON_VECTORS)
@example(test=AWAY)
def test_premises_hold_of_tables_with_vectors(name, test):
    try:
        done = execute(test, protocol(name))
    except IsolitmusError:
        return
    assert not find_violated_premises(done, PREMISES + ROW_LEVEL_PREMISES)


ONE_FILE = """
title    = "A merge and a compaction that have not seen an update of their file"
schedule = "{steps}"

[table]
columns    = "id INT"
properties = {{ "delta.enableDeletionVectors" = "true" }}
init       = ["INSERT INTO t VALUES (1), (2), (3)", "INSERT INTO t VALUES (11), (12)"]

[transactions]
update   = "UPDATE t SET id = 3 WHERE id = 1"
merge    = "MERGE INTO t USING (SELECT id FROM t WHERE id = 1) AS s ON t.id = s.id + 2 WHEN MATCHED THEN DELETE"
optimize = "OPTIMIZE t"
last     = "DELETE FROM t WHERE id = 12"
"""
OVERLAPPING = "merge.start optimize.start update merge.commit optimize.commit last"
IN_TURN = "merge update optimize last"


@pytest.mark.parametrize(
    ("premise", "lacking"),
    [
        ("written-rows", ["added-rows-match-reads"]),
        ("removed-rows", ["removed-rows-match-reads"]),
        ("removed-positions", ["removes-read-row"]),
        ("merged-files", ["removes-meets-removes-unmerged"]),
        ("moved-files", ["removes-meets-reads-unmoved", "removes-meets-removes-unmoved"]),
    ],
)
def test_a_premise_is_violated_if_a_relation_lacks_its_pairs(premise, lacking, monkeypatch):
    test = read_litmus(ONE_FILE.format(steps=OVERLAPPING), "one-file")
    assert not find_violated_premises(execute(test), ROW_LEVEL_PREMISES)
    for relation in lacking:
        monkeypatch.setitem(OVERLAPS, relation, lambda _: False)
    found = find_violated_premises(execute(test), ROW_LEVEL_PREMISES)
    assert [broken.name for broken in found] == [premise]


def test_a_row_stays_in_its_path_unless_the_file_is_removed_for_good(monkeypatch):
    """A compaction moves it: that it gave the file a vector would be false."""

    class EveryFile:
        def __contains__(self, _):
            return True

    done = execute(read_litmus(ONE_FILE.format(steps=IN_TURN), "in-turn"))
    assert not find_violated_premises(done, ROW_LEVEL_PREMISES)
    monkeypatch.setattr(premises, "marked_files", lambda _: EveryFile())
    found = find_violated_premises(done, ROW_LEVEL_PREMISES)
    assert [broken.name for broken in found] == ["vectors"]


@pytest.mark.slow
@given(litmus_tests())
def test_premises_hold_whatever_the_statements(test):
    assert broken(test, "delta-write-serializable") == set()
