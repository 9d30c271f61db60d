"""What the shell says of what a protocol leaves unsaid, and of what it admits at most."""

import json

import pytest

ROWS = "databricks-serializable-newest-rows@14.2"
LIMIT = (
    "under load the writer may give up row-level conflict resolution, so a commit here may fail"
    " (D30)"
)
PAGE = """\
"A page"
let missed = unseen & removes-meets-reads
empty missed as Conflict
silent unseen & adds-meets-reads as adds
"""


@pytest.mark.slow
def test_a_run_says_what_is_silent_and_what_is_at_most(call):
    status, out, _ = call("run", "restore-loses", "--protocol", ROWS)
    assert status == 0
    lines = [line.strip() for line in out.splitlines()]
    assert "restore  ├───────┤   reads version 0, silent" in lines
    assert "the outcome of restore is undefined (unnamed), and the run ends" in lines
    assert f"Commits are an upper bound: {LIMIT}" in lines
    _, out, _ = call("run", "restore-loses", "--protocol", ROWS, "--json")
    document = json.loads(out)
    (carried,) = (document if isinstance(document, dict) else document[0])["runs"]
    assert carried["at_most"] == LIMIT
    _, plain, _ = call("run", "restore-loses", "--protocol", "databricks-serializable-newest")
    assert "upper bound" not in plain


def test_a_check_of_what_is_silent_is_no_answer(call, tmp_path):
    page = tmp_path / "page.cat"
    page.write_text(PAGE, "utf-8")
    test = tmp_path / "t.toml"
    status, out, _ = call("show", "reorder")
    test.write_text(out[out.index("title ") :].split("\nDependency graph")[0], "utf-8")
    status, out, _ = call("check", str(test), "--level", str(page), "--json")
    said = json.loads(out)[0]["levels"]["page"]
    assert (status, said["verdict"], said["violation"]) == (3, "silent", None)
    assert said["silence"]["axiom"] == "adds"


@pytest.mark.slow
def test_a_matrix_counts_silent_cases_apart(call):
    layout = ("--layout", "unpartitioned with vectors", "--sample", "40")
    status, out, _ = call("matrix", "--protocol", ROWS, *layout)
    assert status == 0
    assert f"Upper bound: {ROWS} commits at most these cases: {LIMIT}." in out
    assert " of 40 undefined: the source of the protocol does not define the outcome." in out


@pytest.mark.slow
def test_a_search_says_how_many_are_silent_and_that_one_admits_at_most(call):
    asked = ("separate", "databricks-serializable-middle", "databricks-serializable-middle-rows")
    universe = ("--universe", "rows", "--transactions", "2")
    status, out, _ = call(*asked, *universe, "--json")
    answer = json.loads(out)
    assert (status, answer["found"], answer["silent"]) == (0, False, 12)
    assert ", 12 candidates silent" in answer["bound"]
    limit = f"databricks-serializable-middle-rows admits at most what it says: {LIMIT}"
    assert limit in answer["assumptions"]


@pytest.mark.slow
def test_a_protocol_on_a_runtime_is_shown_and_one_that_is_none_refused(call):
    assert call("show", ROWS, "--time", "0.01")[1].startswith(f"{ROWS} (protocol): Databricks")
    status, _, err = call("show", "databricks-serializable-newest@14.2")
    assert status == 2
    assert "databricks-serializable-newest depends on no runtime; leave out @14.2" in err
