"""The table of docs/results/engines.md is what was recorded of the engines, run by run.

After a run was recorded: ISOLITMUS_UPDATE=1 pytest tests/test_engines_page.py. That each recorded
run is as the model predicts is tested in tests/conformance/test_recorded_catalogue.py.
"""

import os
import re
from pathlib import Path

import pytest
from catalogue_runs import EVIDENCE
from observed_runs import read_runs

from isolitmus.checker.execution.run_result import RunResult
from isolitmus.model.litmus import Litmus
from isolitmus.specs import litmus
from isolitmus.specs.files.catalogue import litmus_names

PAGE = Path(__file__).parents[1] / "docs" / "results" / "engines.md"
COLUMNS = (
    ("delta", "delta-serializable"),
    ("delta", "delta-write-serializable"),
    ("deltalake", "delta-rs-serializable"),
    ("deltalake", "delta-rs-write-serializable"),
    ("deltalake-1.6.3", "delta-rs-1.6.3-serializable"),
)
"""Engine and protocol of each column."""


def recorded_words(engine, under):
    """The head of a column, with the release of its runs, and a word for each litmus test."""
    every = read_runs(EVIDENCE / "catalogue" / f"{engine}.jsonl").values()
    runs = {one.litmus: one.run for one in every if one.protocol == under and one.run is not None}
    (release,) = {run.engine_version for run in runs.values()}  # of one release, or no column
    head = f"{engine.partition('-')[0]} {release}, {under}"
    return head, {name: RunResult(litmus(name), run).word for name, run in runs.items()}


def table():
    columns = [recorded_words(*column) for column in COLUMNS]
    tests = sorted(name for name in litmus_names() if isinstance(litmus(name), Litmus))
    rows = [
        [f"`{name}`", *(words.get(name, "") for _, words in columns)]
        for name in tests
        if any(name in words for _, words in columns)
    ]
    head = ["litmus test", *(head for head, _ in columns)]
    return "".join(
        f"| {' | '.join(row)} |\n" if row else f"|{'---|' * len(head)}\n"
        for row in (head, [], *rows)
    )


@pytest.mark.slow
def test_the_table_is_what_was_recorded():
    text, new = PAGE.read_text("utf-8"), table()
    shown = re.compile(r"^\| litmus test \|.*\n(?:\|.*\n)*", re.MULTILINE)
    if os.environ.get("ISOLITMUS_UPDATE"):
        text = shown.sub(lambda _: new, text)
        PAGE.write_text(text, "utf-8")
    assert shown.findall(text) == [new]
