"""PostgreSQL's isolation tests as histories: what PostgreSQL printed, the levels, and every serial
order, carried out anew.
"""

from collections import Counter
from functools import cache
from itertools import permutations
from pathlib import Path

import pytest
from case_checks import check_cases

from isolitmus.checker.checks.history_check import check
from isolitmus.histories.pg_isolation.permutation_history import (
    PermutationHistory,
    permutation_histories,
)
from isolitmus.histories.pg_isolation.permutation_run import SpecTables, printed_rows
from isolitmus.histories.pg_isolation.row_versions import SnapshotView
from isolitmus.histories.readers.pg_isolation import pg_test
from isolitmus.model.errors import RecordingError
from isolitmus.model.litmus import HistoryTest
from isolitmus.specs import spec

SPECS = Path(__file__).parents[4] / "shared" / "datasets" / "pg-isolation" / "specs"
NAMES = (
    "classroom-scheduling",
    "index-only-scan",
    "partial-index",
    "predicate-hash",
    "project-manager",
    "read-only-anomaly",
    "read-only-anomaly-2",
    "read-only-anomaly-3",
    "referential-integrity",
    "serializable-parallel",
    "simple-write-skew",
    "temporal-range-integrity",
    "total-cash",
    "two-ids",
)
there = pytest.mark.skipif(not SPECS.exists(), reason="no ../shared/datasets here")


def says(found, level):
    return said_of(found.history, level)


@cache
def said_of(history, level):
    return str(check(HistoryTest("h", "", "", history), [spec(level)]).levels[level])


def explained(tables, found):
    """Whether the committed transactions, one after another, give the same answers and the same
    tables.
    """
    committed = [t for t in found.carried.transactions if t.status == "committed"]
    for order in permutations(committed):
        before = []
        with tables.versions.permutation():
            if same_answers(tables.versions, order, before) and all(
                tables.versions.digest(name, SnapshotView(0, frozenset(before))) == digest
                for name, digest in found.carried.tables.items()
            ):
                return True
    return False


def same_answers(versions, order, before):
    for transaction in order:
        seen = SnapshotView(transaction.number, frozenset(before))
        for statement, rows in transaction.answers:
            if statement.tree.key == "select":
                if printed_rows(versions.query(statement, seen)) != rows:
                    return False
            else:
                try:
                    versions.change(statement, seen)
                except RecordingError:
                    return False
        before.append(transaction.number)
    return True


@cache
def permuted(name):
    """The tables of a spec, each permutation as it was, and as if nothing had been refused for its
    dependencies.
    """
    described, every = pg_test(SPECS / f"{name}.spec")
    tables = SpecTables(described)
    return tables, [
        (
            PermutationHistory.of(tables, each),
            PermutationHistory.of(tables, each, supposed=True),
        )
        for each in every
    ]


@pytest.mark.slow
@there
def test_what_committed_at_serializable_is_serializable():
    def look(name):
        promised = [found for found, _ in permuted(name)[1] if found.promised]
        assert {says(found, "serializable") for found in promised} <= {"allowed"}
        return len(promised)

    promised = check_cases(look, NAMES)
    assert sum(map(bool, promised)) == len(NAMES) - 1  # of one spec no permutation commits whole


@pytest.mark.slow
@there
@pytest.mark.parametrize("name", NAMES)
def test_what_the_level_allows_a_serial_order_of_the_statements_gives(name):
    """And what it forbids none does here: no permutation is saved by rows that happen to be
    equal.
    """
    tables, found = permuted(name)
    for each in {f.name: f for pair in found for f in pair}.values():
        verdict = says(each, "serializable")
        assert (verdict == "allowed") == explained(tables, each), each.name


@pytest.mark.slow
@there
@pytest.mark.parametrize("name", NAMES)
def test_every_permutation_is_of_snapshot_isolation(name):
    """Of REPEATABLE READ's rule, which SERIALIZABLE is atop of (PostgreSQL, 13.2.3)."""
    for pair in permuted(name)[1]:
        assert {says(each, "snapshot-isolation") for each in pair} == {"allowed"}


@pytest.mark.slow
@there
def test_what_was_refused_in_vain():
    """PostgreSQL may refuse what had a serial order; of these tests only ``two-ids`` has such
    permutations.
    """
    vain = Counter()
    for name in NAMES:
        for found, supposed in permuted(name)[1]:
            vain[name] += bool(found.refused) and says(supposed, "serializable") == "allowed"
    assert +vain == {"two-ids": 16}


SPEC = """
setup { CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0), (2, 0); }
session a
setup { BEGIN ISOLATION LEVEL SERIALIZABLE; }
step ra { SELECT v FROM t WHERE k = 1; }
step wa { UPDATE t SET v = 1 WHERE k = 2; }
step ca { COMMIT; }
session b
setup { BEGIN ISOLATION LEVEL SERIALIZABLE; }
step rb { SELECT v FROM t WHERE k = 2; }
step wb { UPDATE t SET v = 1 WHERE k = 1; }
step cb { COMMIT; }
"""
STEPS = {
    "ra": "step ra: SELECT v FROM t WHERE k = 1;\nv\n-\n0\n(1 row)\n\n",
    "rb": "step rb: SELECT v FROM t WHERE k = 2;\nv\n-\n0\n(1 row)\n\n",
    "wa": "step wa: UPDATE t SET v = 1 WHERE k = 2;\n",
    "wb": "step wb: UPDATE t SET v = 1 WHERE k = 1;\n",
    "ca": "step ca: COMMIT;\n",
    "cb": "step cb: COMMIT;\n",
}
SKEW = "ra rb wa wb ca cb"


def written(folder, steps=SKEW, text=SPEC, **changed):
    said = {**STEPS, **changed}
    output = "".join(said[step] for step in steps.split())
    head = "Parsed test spec with 2 sessions\n\nstarting permutation: "
    (folder / "h.spec").write_text(text)
    (folder / "h.out").write_text(f"{head}{steps}\n{output}")
    return folder / "h.spec"


@pytest.mark.slow
def test_a_write_skew_that_postgresql_never_lets_through(tmp_path):
    [found] = permutation_histories(written(tmp_path))
    assert found.promised
    assert says(found, "serializable") == "forbidden"
    assert says(found, "snapshot-isolation") == "allowed"


def test_rows_that_no_snapshot_gives_are_not_read(tmp_path):
    [found] = permutation_histories(written(tmp_path, ra=STEPS["ra"].replace("\n0\n", "\n7\n")))
    assert str(found).endswith(
        "h.spec:5: 'SELECT v FROM t WHERE k = 1' printed [('7',)], and its snapshot gives [('0',)]"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("SERIALIZABLE", "READ COMMITTED", "READ COMMITTED, where each statement has a snapshot"),
        ("SELECT v FROM t WHERE k = 1", "SELECT f(v) FROM t", "whose read set is not defined here"),
        ("COMMIT", "SAVEPOINT s", "whose read set is not defined here"),
        ("step rb", "step ra", "h.spec:10: 'ra' is the name of another step"),
        (
            "step ca { COMMIT; }",
            "step ca ( )",
            "expected SQL between braces, found '('",
        ),
        ("session b", "sassion b", "expected setup, teardown, session, step or"),
        (
            "SELECT v FROM t WHERE k = 1",
            "SELECT v FROM u",
            "'u' is not a table that the setup makes",
        ),
        ("= 2; }\nstep ca", "= 2; } ?\nstep ca", "'?' is not one of a name, a comment and SQL"),
        ("SELECT v FROM t WHERE k = 1", "SELECT 'x", "is not valid SQL"),
    ],
)
def test_what_is_not_read_of_a_spec(tmp_path, old, new, said):
    changed = {name: text.replace(old, new) for name, text in STEPS.items()}
    path = written(tmp_path, text=SPEC.replace(old, new), **changed)
    with pytest.raises(RecordingError) as refused:
        for found in permutation_histories(path):
            if isinstance(found, RecordingError):
                raise found
    assert said in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"ra": "step ra: SELECT 1;\n"}, "expected the SQL of the step ra, found"),
        ({"ra": STEPS["ra"].replace("(1 row)", "(2 rows)")}, "expected (1 rows), found"),
        ({"wa": "what?\n"}, "expected "),
        ({"cb": ""}, "nothing says how the step cb ended"),
    ],
)
def test_what_is_not_read_of_what_was_printed(tmp_path, changed, said):
    [found] = permutation_histories(written(tmp_path, **changed))
    assert isinstance(found, RecordingError)
    assert said in str(found)


def test_output_of_another_spec(tmp_path):
    path = written(tmp_path)
    text = (tmp_path / "h.out").read_text()
    (tmp_path / "h.out").write_text(text.replace("with 2", "with 3"))
    with pytest.raises(RecordingError, match=r"h\.out:1: .* as .*h\.spec has them"):
        list(permutation_histories(path))
    (tmp_path / "h.out").write_text(text.replace(f"permutation: {SKEW}", "permutation: rx"))
    with pytest.raises(RecordingError, match=r"h\.out:3: there is no step 'rx'"):
        list(permutation_histories(path))
    (tmp_path / "h.out").unlink()
    with pytest.raises(RecordingError, match="what PostgreSQL printed is neither in"):
        list(permutation_histories(path))
