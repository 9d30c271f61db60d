"""Benchmark of `isolitmus robust --keeps` for five jobs on one table: a Markdown table.

Each line is a whole command in a process of its own, at both levels. Seconds are those of one
processor, the median of three runs; the ratio is to the start of the command, `robust --help`.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

ROW = "SELECT :id AS id, :region AS region, :amount AS amount, :day AS day"
UPSERT = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
STAGED = "SELECT id, max(region) AS region, max(amount) AS amount, max(day) AS day FROM staged"
TABLE = "(id BIGINT, region STRING, amount INT, day DATE) USING delta"
JOBS = {
    "upsert": f"MERGE INTO t USING ({STAGED} GROUP BY id) AS s ON t.id = s.id {UPSERT}",
    "add": f"INSERT INTO t {ROW} WHERE NOT EXISTS (SELECT 1 FROM t WHERE id = :id)",
    "correct": "UPDATE t SET amount = :amount WHERE id = :id",
    "forget": "DELETE FROM t WHERE id = :id AND day < :day",
    "compact": "OPTIMIZE t",
}
LOOKUP = f'sql = "INSERT INTO t {ROW} WHERE :n = 0"'
TYPES = {"id": "BIGINT", "region": "STRING", "amount": "INT", "day": "DATE"}
REFERENCE_AND_TOTAL = ("t: id references staged(id)", "t: count(*) >= before")
QUESTIONS = (
    ("a key", ("t: unique(id)",), ()),
    ("a key, of rows looked up first", ("t: unique(id)",), ("looked up",)),
    ("the same, with repairs", ("t: unique(id)",), ("looked up", "--repairs")),
    ("a value that is there", ("t: not null(id)",), ()),
    ("a reference, a total and a key", (*REFERENCE_AND_TOTAL, "t: unique(id)"), ()),
)


def workload(*, looked_up: bool) -> str:
    """Return five jobs; one of them may look up its row before."""
    lines = [f'ddl = ["CREATE TABLE t {TABLE}", "CREATE TABLE staged {TABLE}"]']
    for name, sql in JOBS.items():
        lines.append(f"[jobs.{name}]")
        if name == "add" and looked_up:
            lines += [LOOKUP, 'let = { n = "SELECT count(*) FROM t WHERE id = :id" }']
        else:
            lines.append(f'sql = "{sql}"')
        given = ", ".join(f'{one} = "{kind}"' for one, kind in TYPES.items() if f":{one}" in sql)
        lines.append(f"parameters = {{ {given} }}")
    return "\n".join(lines)


def seconds(command: list[str], folder: Path) -> float:
    """Return the processor's seconds of a command, the median of three runs."""

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return median(once() for _ in range(3))


def said(command: list[str], folder: Path) -> str:
    """Return the answer of a command, its first line."""
    done = subprocess.run(command, cwd=folder, check=False, stdout=subprocess.PIPE, text=True)
    words = " ".join(done.stdout.split("\n\n")[0].split())
    return words.partition(": ")[2]


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Print the table."""
    command = [str(Path(sys.executable).with_name("isolitmus")), "robust"]
    say("| invariants | seconds | this / start | answer |")
    say("|---|---|---|---|")
    with TemporaryDirectory() as made:
        folder = Path(made)
        start = seconds([*command, "--help"], folder)
        say(f"| start | {start:.2f} s | 1 | |")
        for title, keeps, more in QUESTIONS:
            (folder / "jobs.toml").write_text(workload(looked_up="looked up" in more))
            asked = [*command, "jobs.toml", *(f"--keeps={one}" for one in keeps)]
            asked += [one for one in more if one.startswith("--")]
            took = seconds(asked, folder)
            say(f"| {title} | {took:.2f} s | {took / start:.1f} | {said(asked, folder)} |")


if __name__ == "__main__":
    main()
