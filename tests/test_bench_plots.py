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


def test_a_run_without_an_answer_is_no_point():
    page = (
        "| history | level | isolitmus: CPU | VeriStrong: CPU |\n|---|---|---|---|\n"
        "| 100 × 15, Zipf, holds | serializable | 0.20, 0.21 s | 0.03, 0.04 s |\n"
        "| 1,000 × 15, Zipf, holds | serializable | 0.30, 0.31 s | no answer in 60 s |\n"
        "| 1,000 × 15, Zipf, holds | snapshot-isolation | 0.40, 0.41 s | 9.00, 9.01 s |\n"
        "| 1,000 × 15, Zipf, lost update | serializable | 0.50, 0.51 s | 8.00, 8.01 s |\n"
    )
    assert MADE["beside"](page, "VeriStrong", ("serializable",), "Zipf, holds") == {
        "isolitmus, serializable": [(100, 0.21), (1000, 0.31)],
        "VeriStrong, serializable": [(100, 0.04)],
    }
