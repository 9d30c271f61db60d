"""Plots of cost by size from the tables in bench/README.md; `python bench/plots.py` draws them."""

import re
from pathlib import Path

from isolitmus.checker.render.plots import scaling_svg

HERE = Path(__file__).parent
NUMBER = re.compile(r"[\d,]+(\.\d+)?")
BESIDE = {
    "awdit.svg": ("AWDIT", ("read-committed-biswas-enea", "causal"), "Zipf, holds"),
    "dbcop.svg": ("dbcop", ("causal", "serializable"), ""),
    "veristrong-holds.svg": (
        "VeriStrong", ("serializable", "snapshot-isolation"), "3 writers a key, holds"
    ),
    "veristrong-forbidden.svg": (
        "VeriStrong", ("serializable", "snapshot-isolation"), "3 writers a key, lost update"
    ),
}  # fmt: skip
"""Plots beside another checker: its name, the levels, and the end of the histories' names."""


def tables(text: str) -> list[list[dict[str, str]]]:
    """Return the tables of a page; each row maps column names to cells."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        head, _, *rows = (
            [cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()
        )
        found.append([dict(zip(head, row, strict=True)) for row in rows])
    return found


def number(cell: str) -> float:
    """Return the first number of a cell."""
    found = NUMBER.search(cell)
    assert found is not None, cell
    return float(found[0].replace(",", ""))


def beside(
    text: str, peer: str, levels: tuple[str, ...], case: str
) -> dict[str, list[tuple[float, float]]]:
    """Return the median processor seconds by number of transactions, for each program and level.

    A run without an answer is left out.
    """
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in (row for table in tables(text) for row in table if f"{peer}: CPU" in row):
        history = next(iter(row.values()))
        if row["level"] in levels and history.endswith(case):
            for who in ("isolitmus", peer):
                median = row[f"{who}: CPU"].partition(", ")[2]
                if median:
                    point = number(history), number(median)
                    lines.setdefault(f"{who}, {row['level']}", []).append(point)
    return lines


def drawn(text: str) -> dict[str, str]:
    """Return the plots of the page, by file name."""
    sweeps: dict[str, list[tuple[float, float]]] = {}
    audits: dict[str, list[tuple[float, float]]] = {}
    for table in tables(text):
        for row in table:
            if "candidates" in row and "counting" in row:
                how = row["sweep"].partition(", ")[2].strip("`")
                sweeps.setdefault(how, []).append(
                    (number(row["candidates"]), number(row["counting"]))
                )
            if "commits" in row and "command" in row:
                audits.setdefault(row["what"], []).append(
                    (number(row["commits"]), number(row["command"]))
                )
    return {
        "sweeps.svg": scaling_svg("How long sweeps take, by their size", "candidates", "s", sweeps),
        "audits.svg": scaling_svg(
            "How long audits take, by the length of the log", "commits", "s", audits
        ),
    } | {
        name: scaling_svg(
            f"Processor seconds of isolitmus and {peer}{case and ': '}{case}",
            "transactions",
            "s",
            beside(text, peer, levels, case),
        )
        for name, (peer, levels, case) in BESIDE.items()
    }


def main() -> None:
    for name, picture in drawn((HERE / "README.md").read_text()).items():
        (HERE / name).write_text(picture)


if __name__ == "__main__":
    main()
