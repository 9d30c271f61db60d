"""Table of engines and anomalies: made from recorded runs, proofs and searches.

``ISOLITMUS_UPDATE=1 pytest tests/test_engine_anomalies.py`` writes the page and the tables anew.
"""

import os
import re
import shlex
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from catalogue_runs import RecordedRuns

from isolitmus.checker.render.engine_anomalies import anomaly_page, anomaly_table_text
from isolitmus.checker.search.engine_anomalies import anomaly_cell
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs.files.anomaly_file import anomaly, anomaly_table

HOME = Path(__file__).parents[1]
PAGE = HOME / "docs" / "results" / "engines-and-anomalies.md"
TABLES = {
    HOME / "docs" / "index.md": "results/engines-and-anomalies.md",
    HOME / "README.md": None,
}
SHORT = {
    "rows": ("Delta, S", "Delta, W", "Databricks", "delta-rs", "PostgreSQL"),
    "columns": (
        "non-repeatable-read",
        "phantom-read",
        "lost-update",
        "write-skew",
        "duplicate-key",
        "delete-insert-reorder",
        "blind-append-hole",
    ),
}
"""Part of the table in README."""
MADE = re.compile(r"(?<=<!-- made: engines -->\n\n).*?(?=\n<!-- end -->)", re.DOTALL)


runs_of = cache(RecordedRuns.of_catalogue)


def recorded(engine, litmus, protocol):
    """The recorded run of an engine; None if it cannot execute the test."""
    observed = runs_of(engine).recorded.get((litmus, protocol))
    assert observed is not None or (litmus, protocol) not in runs_of(engine).tests
    return None if observed is None else observed.run


@pytest.fixture(scope="module")
def cells():
    table = anomaly_table()
    columns = [one for one in table.anomalies.values() if one.heading]
    return [anomaly_cell(row, one, recorded) for row in table.rows for one in columns]


@pytest.mark.slow
def test_the_page_has_what_was_run_and_proved(cells):
    page = anomaly_page(cells)
    if os.environ.get("ISOLITMUS_UPDATE"):
        PAGE.write_text(page, "utf-8")
    assert PAGE.read_text("utf-8") == page, "ISOLITMUS_UPDATE=1 writes it anew"


@pytest.mark.slow
@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_the_tables_elsewhere_are_the_same(cells, path):
    if path.name == "README.md":
        cells = [
            cell
            for cell in cells
            if cell.row.title.startswith(SHORT["rows"])
            and not cell.row.title.endswith("client")
            and cell.anomaly.name in SHORT["columns"]
        ]
    table, text = anomaly_table_text(cells, TABLES[path]), path.read_text("utf-8")
    if os.environ.get("ISOLITMUS_UPDATE"):
        path.write_text(MADE.sub(lambda _: table, text), "utf-8")
    assert MADE.findall(path.read_text("utf-8")) == [table], "ISOLITMUS_UPDATE=1 writes it anew"


@pytest.mark.slow
def test_every_answer_has_evidence_of_its_kind(cells):
    """A yes has a run, a no a proof or a bound; a row of an engine names the engine."""
    bound = re.compile(r"proved for|no counterexample with|in none of|it does not occur in")
    for cell in cells:
        words = [one.words for one in cell.evidence]
        if cell.answer == "yes":
            assert words
            assert all("it occurs" in said for said in words)
        elif cell.answer in {"no", "not seen"}:
            assert words
            assert all(bound.match(said) for said in words)
        elif cell.answer == "if":
            assert any(said.startswith("it occurs, if ") for said in words)
            assert any(bound.match(said) for said in words)
        if cell.row.engine:
            runs = [one.command for one in cell.evidence if "it occurs" in one.words]
            assert all(f"--engine {cell.row.engine}" in command for command in runs)


@pytest.mark.slow
def test_the_commands_of_the_evidence_say_the_same(cells, call):
    """One command of each kind is carried out; those of engines on the model."""
    kinds = {}
    for cell in cells:
        for one in cell.evidence:
            kinds.setdefault((one.words.split(" ")[0], "--engine" in one.command), one)
    for one in kinds.values():
        command = one.command.partition(" --engine ")[0]
        status, out, _ = call(*shlex.split(command)[1:])
        said = " ".join(out.split())
        assert status in {0, 1}, command
        if one.words.startswith("proved"):
            assert said.startswith("Proved:")
        elif one.words.startswith("in none of"):
            assert one.words.removeprefix("in none of ") in said
        elif one.words.startswith("no counterexample"):
            assert "No counterexample" in said


def test_evidence_of_another_release_is_refused():
    """A row is about one release; a run of another one says nothing of it."""
    row = anomaly_table().rows[0]
    later = replace(row, release="delta-spark 9.9.9")
    with pytest.raises(IsolitmusError, match=r"is of delta-spark 4\.4\.0.*about delta-spark 9\.9"):
        anomaly_cell(later, anomaly("lost update"), recorded)


def test_an_anomaly_without_a_run_on_the_engine_is_refused():
    row = anomaly_table().rows[0]
    with pytest.raises(IsolitmusError, match="no test of lost-update can be executed: two-upd"):
        anomaly_cell(row, anomaly("lost update"), lambda *_: None)
