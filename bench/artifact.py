"""Repeat what isolitmus claims: run the commands of ``artifact.toml`` and write a table of results.

Without ``--full`` the rows that need Spark, other engines or much time are left out. The table is
written after each row, so an interrupted run leaves the rows so far. The exit status is 1 if a row
failed.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).resolve().parents[1]
ROWS = Path(__file__).with_suffix(".toml")
PROGRAMS = ("isolitmus", "pytest")
"""Modules that a command may run."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """Claim, the command that repeats it, and what the command has to print."""

    claim: str
    command: str
    expected: tuple[str, ...] = ()
    """Texts of the output, whose line breaks do not count."""
    status: tuple[int, ...] = (0,)
    """Exit statuses of which it has one."""
    tolerance: str = "none"
    """What may differ, in words."""
    figures: str = ""
    """Regular expression whose groups are numbers of the output."""
    least: tuple[int, ...] = ()
    """Least value of each number."""
    full: bool = False
    """Whether it is left out without ``--full``."""
    seconds: int = 300
    """Time limit."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a row: what is unlike the expectation, nothing if it passed."""

    unlike: str
    seconds: float


def read_rows(path: Path = ROWS) -> list[Row]:
    """Return the rows of a file; raise SystemExit with the place of one that is wrong."""
    rows = []
    for number, given in enumerate(tomllib.loads(path.read_text("utf-8"))["row"], 1):
        lists = {key: tuple(value) for key, value in given.items() if isinstance(value, list)}
        try:
            row = Row(**{**given, **lists})
        except TypeError as error:
            sys.exit(f"{path.name}: row {number}: {error}")
        if not row.expected:
            sys.exit(f"{path.name}: row {number}: nothing is expected; add a text of the output")
        if row.command.split()[0] not in PROGRAMS:
            sys.exit(f"{path.name}: row {number}: the command is none of {', '.join(PROGRAMS)}")
        rows.append(row)
    return rows


def run_row(row: Row) -> Outcome:
    """Run the command of a row and compare its output and exit status."""
    program, *words = shlex.split(row.command)
    start = monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-m", program, *words],
            cwd=ROOT,
            env={**os.environ, "COLUMNS": "100"},
            capture_output=True,
            text=True,
            check=False,
            timeout=row.seconds,
        )
    except subprocess.TimeoutExpired:
        return Outcome(f"no answer within {row.seconds} s", monotonic() - start)
    return Outcome(differences(row, done.stdout, done.returncode), monotonic() - start)


def differences(row: Row, output: str, status: int) -> str:
    """Return how an output differs from what a row expects; nothing if it does not."""
    text = " ".join(output.split())
    unlike = [f"no '{part}'" for part in row.expected if part not in text]
    if status not in row.status:
        unlike.append(f"exit status {status} instead of {' or '.join(map(str, row.status))}")
    if row.figures:
        found = re.search(row.figures, text)
        numbers = [int(group.replace(",", "")) for group in found.groups()] if found else []
        if len(numbers) != len(row.least):
            unlike.append(f"no figures '{row.figures}'")
        unlike += [
            f"{number} is below {least}"
            for number, least in zip(numbers, row.least, strict=False)
            if number < least
        ]
    return "; ".join(unlike)


def cell(text: str) -> str:
    """Return a text as a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def table(rows: list[Row], outcomes: list[Outcome]) -> str:
    """Return the table of the rows, with the outcomes that are known."""
    made = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores"
    release = f"isolitmus {version('isolitmus')}, Python {sys.version.split()[0]}"
    failed = sum(bool(one.unlike) for one in outcomes)
    passed = len(outcomes) - failed
    seconds = sum(one.seconds for one in outcomes)
    count = f"{passed} of {len(rows)} rows passed, {failed} failed, in {seconds:,.0f} s"
    lines = [
        "# Claims, repeated\n",
        f"{release}, {made}: {count}.\n",
        "| | claim | command | expected | tolerance | result | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for number, row in enumerate(rows, 1):
        result, took = "not run", ""
        if number <= len(outcomes):
            outcome = outcomes[number - 1]
            result = f"FAILED: {outcome.unlike}" if outcome.unlike else "passed"
            took = f"{outcome.seconds:.1f}"
        expected = " … ".join(row.expected)
        cells = (row.claim, f"`{row.command}`", expected, row.tolerance, result, took)
        lines.append(f"| {number} | {' | '.join(map(cell, cells))} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the rows and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--full", action="store_true", help="also what needs Spark or hours")
    parser.add_argument("--only", default="", metavar="TEXT", help="only commands with this text")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "artifact.md", metavar="FILE")
    given = parser.parse_args()
    rows = [
        row for row in read_rows() if given.only in row.command and (given.full or not row.full)
    ]
    if not rows:
        sys.exit(f"no command has the text '{given.only}'")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    outcomes: list[Outcome] = []
    for number, row in enumerate(rows, 1):
        sys.stderr.write(f"{number} of {len(rows)}: {row.command}\n")
        outcomes.append(run_row(row))
        sys.stderr.write(f"  {outcomes[-1].unlike or 'passed'} ({outcomes[-1].seconds:.1f} s)\n")
        given.out.write_text(table(rows, outcomes), "utf-8")
    sys.stdout.write(f"{given.out}\n")
    sys.exit(any(one.unlike for one in outcomes))


if __name__ == "__main__":
    main()
