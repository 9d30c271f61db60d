"""`make artifact`: its rows are commands that exist, two of them run, and a row that fails says why."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from isolitmus.cli.main import VERBS

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "bench"))
import artifact  # noqa: E402 - a script beside the benchmarks

ROWS = artifact.read_rows()


def test_rows_are_commands_and_name_pages_that_exist():
    for row in ROWS:
        program, verb, *_ = shlex.split(row.command)
        assert program == "pytest" or verb in VERBS, row.command
        for page in artifact.re.findall(r"\(((?:docs/)?[\w/-]+\.md)\)", row.claim):
            assert (ROOT / page).is_file(), page
    assert {row.full for row in ROWS} == {True, False}
    assert all(row.full for row in ROWS if "delta" in artifact.re.findall(r"[\w-]+", row.command))


@pytest.mark.slow
def test_two_rows_pass_and_the_table_has_them(tmp_path, monkeypatch, capsys):
    out = tmp_path / "artifact.md"
    words = ["artifact.py", "--only", "write-serializable --un", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as ended:
        artifact.main()
    assert not ended.value.code, capsys.readouterr().out
    table = out.read_text("utf-8")
    assert "2 of 2 rows passed, 0 failed" in table
    assert table.count("| passed |") == 2


@pytest.mark.parametrize(
    ("change", "output", "status", "says"),
    [
        ({}, "Found:  it\n4 of 7", 1, ""),
        ({}, "4 of 7", 1, "no 'Found: it'"),
        ({}, "Found: it 4 of 7", 0, "exit status 0 instead of 1"),
        ({"least": (5,)}, "Found: it 4 of 7", 1, "4 is below 5"),
        ({}, "Found: it", 1, "no figures '([0-9]+) of'"),
    ],
)
def test_a_row_that_differs_says_how(change, output, status, says):
    row = artifact.Row(
        claim="c",
        command="isolitmus show",
        expected=("Found: it",),
        status=(1,),
        figures="([0-9]+) of",
        least=(4,),
    )
    row = replace(row, **change)
    assert artifact.differences(row, output, status) == says
    outcomes = [artifact.Outcome(says, 1.0)]
    assert ("FAILED" in artifact.table([row], outcomes)) == bool(says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[[row]]\nclaim = "c"\ncommand = "isolitmus show"', "row 1: nothing is expected"),
        ('[[row]]\nclaim = "c"\ncommand = "rm -r"\nexpected = ["x"]', "is none of isolitmus"),
        ('[[row]]\nclaim = "c"\ncomand = "x"\nexpected = ["x"]', "row 1: .*'comand'"),
    ],
)
def test_a_wrong_row_is_named(text, says, tmp_path):
    path = tmp_path / "rows.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(SystemExit, match=says):
        artifact.read_rows(path)
