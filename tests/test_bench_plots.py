"""The pictures beside the tables of bench/README.md: drawn from these, and from nothing else."""

import runpy
from pathlib import Path

BENCH = Path(__file__).parents[1] / "bench"
MADE = runpy.run_path(str(BENCH / "plots.py"))


def test_pictures_are_those_of_the_tables():
    page = (BENCH / "README.md").read_text()
    for name, picture in MADE["drawn"](page).items():
        assert (BENCH / name).read_text() == picture, "python bench/plots.py draws it anew"
        assert f"]({name})" in page


def test_a_figure_that_changes_changes_its_picture():
    page = (BENCH / "README.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith("| audit |"))
    other = page.replace(row, row.replace(" s |", "9 s |", 1))
    before, after = MADE["drawn"](page), MADE["drawn"](other)
    assert before["audits.svg"] != after["audits.svg"]
    assert before["sweeps.svg"] == after["sweeps.svg"]
