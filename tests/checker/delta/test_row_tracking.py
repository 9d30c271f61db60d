"""The commits that ALTER TABLE makes to enable row tracking: what each does, and what the file of a
test may say of them. On Delta: ``tests/conformance/test_row_tracking.py``.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker import run
from isolitmus.checker.execution.commit_loop import execute
from isolitmus.model.errors import LitmusError
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus

SPEC = protocol("delta-serializable")
ENABLE = "ALTER TABLE t SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"


def test_of(schedule, *, commits=("feature", "batch"), most=None, files=2, rest="", table=""):
    """A table of some files, the commits of ``enable``, and other transactions in TOML."""
    rows = ", ".join(f"({k}, {k})" for k in range(files))
    conf = (
        f', conf = {{ "spark.databricks.delta.backfill.maxNumFiles" = "{most}" }}' if most else ""
    )
    lines = "\n".join(f'{name} = {{ commit_of = "enable" }}' for name in commits)
    return read_litmus(
        f"""
title    = "Row tracking is enabled"
schedule = "{schedule}"
[table]
columns        = "id INT, part INT"
partitioned_by = ["part"]
init           = ["INSERT INTO t VALUES {rows}"]
{table}
[transactions]
{lines}
enable = {{ sql = "{ENABLE}"{conf} }}
{rest}
""",
        "enabled",
    )


test_of.__test__ = False


@given(st.integers(1, 5), st.integers(1, 6))
def test_batches_are_as_many_as_their_files_need(files, most):
    count = -(-files // most)
    names = [f"batch{k}" for k in range(count)]
    test = test_of(
        " ".join(["feature", *names, "enable"]),
        commits=["feature", *names],
        most=most,
        files=files,
    )
    done = run(test, SPEC)
    assert [t.outcome for t in done.run.transactions.values()] == ["committed"] * (count + 2)
    assert [t.operation for t in done.run.transactions.values()] == [
        "UPGRADE PROTOCOL", *["ROW TRACKING BACKFILL"] * count, "SET TBLPROPERTIES"
    ]  # fmt: skip
    assert done.serial.orders == ("enable",)


@given(st.integers(1, 4), st.data())
def test_files_have_row_ids_after_a_batch_or_after_any_later_commit(files, data):
    """The file that a DELETE marks or rewrites after the feature is no longer among those without."""
    gone = data.draw(st.integers(0, files - 1))
    test = test_of(
        "feature batch.start delete batch.commit enable",
        files=files,
        rest=f'delete = "DELETE FROM t WHERE id = {gone}"',
    )
    states = execute(test, SPEC).states
    lacking = [sorted(state["t"].header.unnumbered) for state in states[1:]]
    assert [len(paths) for paths in lacking] == [files, files - 1, 0, 0]


def test_without_files_only_the_feature_comes_first():
    test = test_of("feature enable", commits=["feature"], table="exists = true", files=1)
    with pytest.raises(
        LitmusError, match=r"before that of the property: row ids for 1 file; in a litmus"
    ):
        run(test, SPEC)
    empty = read_litmus(str(test).replace('["INSERT INTO t VALUES (0, 0)"]', "[]"), "empty")
    outcomes = {n: t.outcome for n, t in run(empty, SPEC).run.transactions.items()}
    assert outcomes == {"feature": "committed", "enable": "committed"}


@pytest.mark.parametrize(
    ("schedule", "commits", "said"),
    [
        ("enable", [], "before that of the property: the table feature, row ids for 2 files; in a litmus test each is a"),
        ("feature batch more enable", ["feature", "batch", "more"], "does not make the commit more"),
    ],
)  # fmt: skip
def test_the_commits_of_a_test_are_those_that_the_statement_makes(schedule, commits, said):
    with pytest.raises(LitmusError) as caught:
        run(test_of(schedule, commits=commits), SPEC)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("schedule", "rest", "said"),
    [
        ("enable feature batch", "", "batch is a commit of enable, which ends first"),
        ("feature.park-init feature.commit batch enable", "", "schedule step 'feature.park-init': enable stops at its commits only; use feature.start"),
        ("feature other batch enable", 'other = "OPTIMIZE t"', "schedule step 'batch' comes after Delta has taken its snapshot, right after feature"),
        ("feature batch other enable", 'other = { sql = "OPTIMIZE t", session = "enable" }', "is in a session of this name; give enable a session"),
        ("feature.start batch feature.commit enable", "", "while feature is under way"),
        ("feature batch enable", 'other = { commit_of = "enabel" }', "no transaction 'enabel'; did you mean 'enable'?"),
        ("feature batch enable", 'other = { commit_of = "feature" }', "is 'feature', which makes one commit"),
        ("feature batch enable other", 'one = "OPTIMIZE t"\nother = { commit_of = "one" }', "is 'one', which makes one commit"),
        ("feature batch enable", "other = { commit_of = 3 }", "commit_of is 3; expected a string"),
        ("feature batch enable", 'other = { commit_of = "enable", session = "s" }', "session"),
    ],
)  # fmt: skip
def test_the_file_of_a_test_says_what_is_wrong(schedule, rest, said):
    with pytest.raises(LitmusError) as caught:
        test_of(schedule, rest=rest)
    assert said in str(caught.value)


def test_the_text_of_a_test_is_read_as_the_same_test():
    test = test_of("feature batch more enable", commits=["feature", "batch", "more"], most=1)
    again = read_litmus(str(test), test.name)
    assert (again.transactions, again.clients) == (test.transactions, test.clients)


def test_a_statement_ends_with_the_error_of_its_commit():
    test = test_of(
        "feature batch.start other batch.commit enable",
        rest="other = \"ALTER TABLE t SET TBLPROPERTIES ('team' = 'us')\"",
    )
    ended = {e.name: (e.conflict, e.ended_by) for e in execute(test, SPEC).events}
    assert ended["batch"] == ("MetadataChangedException", None)
    assert ended["enable"] == ("MetadataChangedException", "batch")


def test_equal_runs_are_one_run_only_if_no_row_differs():
    """Which files come first changes no row; which rows a condition selects does."""
    known = test_of("feature batch more enable", commits=["feature", "batch", "more"], most=1)
    assert run(known, SPEC).run.transactions["more"].outcome == "committed"
    names = ["feature", "batch", "more"]
    counted = test_of(
        "feature batch.start delete batch.commit more enable",
        commits=names,
        most=1,
        rest='delete = "DELETE FROM t WHERE part = 1"',
    )
    with pytest.raises(LitmusError, match="does not make the commit more"):
        run(counted, SPEC)  # if the batch is of the file that stays
