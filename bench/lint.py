"""Benchmark of `isolitmus lint` for a generated folder of 200 models: a Markdown table.

Three folders: each model writes a table of its own and reads that of another one; 40 tables with
five models each, which differ in names only; and 40 tables with five models each, of which no two
are alike. A model has the command, conditions and literals that a seed draws. Seconds are those of
one processor, each run in a process of its own: cold, again, and after a change of one file.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

MODELS = 200
TYPES = ("BIGINT", "INT", "STRING", "DATE")
LITERALS = {"BIGINT": "7", "INT": "3", "STRING": "'open'", "DATE": "DATE '2026-01-01'"}
ALIKE = (
    "INSERT INTO {t} VALUES (:id, :customer, :amount, :day)",
    (
        "MERGE INTO {t} AS t USING (SELECT id, customer, amount, day FROM {t}_raw) AS s ON t.id ="
        " s.id AND t.day = s.day WHEN MATCHED THEN UPDATE SET amount = s.amount WHEN NOT MATCHED"
        " THEN INSERT *"
    ),
    "DELETE FROM {t} WHERE customer = :customer AND day < '2026-01-01'",
    "UPDATE {t} SET amount = amount + 1 WHERE day = :day",
    "OPTIMIZE {t} WHERE day < '2026-02-01'",
)
TABLE = "CREATE TABLE {t} (id BIGINT, customer BIGINT, amount INT, day DATE) USING delta{by};\n"
PHASES = """
import json, resource, sys
from time import process_time
from isolitmus.jobs.cli import lint as command
from isolitmus.cli.main import main
seconds = {"start": process_time()}
really, read = command.lint_workload, command.read_lint_sources
def reading(*given, **more):
    begun = process_time()
    found = read(*given, **more)
    seconds["read"] = process_time() - begun
    return found
def linted(*given, **more):
    found = really(*given, **more)
    seconds.update(found.seconds, asked=found.asked, findings=len(found.findings))
    return found
command.lint_workload, command.read_lint_sources = linted, reading
sys.argv = ["isolitmus", "lint", "models", "--out", "found.txt"]
try:
    main()
except SystemExit:
    pass
seconds["all"] = process_time()
print(json.dumps(seconds))
"""


def alike(folder: Path) -> None:
    """Write 40 tables with five models each, which differ in the names of their tables."""
    ddl = ""
    for k in range(MODELS // 5):
        table = f"orders_{k}"
        ddl += TABLE.format(t=table, by=" PARTITIONED BY (day)")
        ddl += TABLE.format(t=f"{table}_raw", by="")
        for n, sql in enumerate(ALIKE):
            (folder / f"{table}_{n}.sql").write_text(sql.format(t=table))
    (folder / "tables.sql").write_text(ddl)


def drawn_table(random: Random, name: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a CREATE TABLE with drawn columns, and the columns."""
    columns = [(f"c{k}_{random.randrange(100)}", random.choice(TYPES)) for k in range(4)]
    columns.append((f"part_{random.randrange(100)}", random.choice(("DATE", "INT"))))
    listed = ", ".join(f"{column} {type_}" for column, type_ in columns)
    by = columns[-1][0]
    return f"CREATE TABLE {name} ({listed}) USING delta PARTITIONED BY ({by});\n", columns


def drawn_model(random: Random, table: str, columns: list[tuple[str, str]], source: str) -> str:
    """Return a statement that writes the table; `source` is a table with the same columns."""
    part, other = columns[-1], random.choice(columns[1:-1])
    key = columns[0][0]
    names = ", ".join(name for name, _ in columns)
    where = random.choice(
        (
            f"{part[0]} = :{part[0]}",
            f"{part[0]} < {LITERALS[part[1]]}",
            f"{other[0]} = :{other[0]}",
            f"{part[0]} = :{part[0]} AND {other[0]} <> {LITERALS[other[1]]}",
        )
    )
    merge = (
        f"MERGE INTO {table} AS t USING (SELECT {names} FROM {source}) AS s ON t.{key} = s.{key}"
        f" AND t.{part[0]} = s.{part[0]} WHEN MATCHED THEN UPDATE SET {other[0]} = s.{other[0]}"
        " WHEN NOT MATCHED THEN INSERT *"
    )
    return random.choice(
        (
            f"INSERT INTO {table} SELECT {names} FROM {source} WHERE {where}",
            f"INSERT INTO {table} VALUES ({', '.join(f':{name}' for name, _ in columns)})",
            merge,
            f"DELETE FROM {table} WHERE {where}",
            f"UPDATE {table} SET {other[0]} = {LITERALS[other[1]]} WHERE {where}",
            f"INSERT OVERWRITE {table} SELECT {names} FROM {source}",
        )
    )


def unlike(folder: Path, each: int) -> None:
    """Write drawn models, so many for each table."""
    random = Random(1)
    ddl = ""
    for k in range(MODELS // each):
        table = f"model_{k}"
        text, columns = drawn_table(random, table)
        ddl += text + text.replace(table, f"{table}_raw")
        for n in range(each):
            sql = drawn_model(random, table, columns, f"{table}_raw")
            (folder / f"{table}_{n}.sql").write_text(sql)
    (folder / "tables.sql").write_text(ddl)


def run(folder: Path) -> dict[str, float]:
    """Return the seconds of a run, by phase."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", PHASES], cwd=folder, capture_output=True, text=True, check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    found["all"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return found


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    phases = ("start", "read", "prepare", "pairs", "promises", "all")
    head = ["models", "run", "questions", "findings", *phases]
    say(f"| {' | '.join(head)} |")
    say(f"|{'---|' * len(head)}")
    kinds = {
        "a table each": lambda folder: unlike(folder, 1),
        "5 a table, alike": alike,
        "5 a table, unlike": lambda folder: unlike(folder, 5),
    }
    for name, write in kinds.items():
        with TemporaryDirectory() as place:
            models = Path(place) / "models"
            models.mkdir()
            write(models)
            for word in ("cold", "again", "one changed"):
                if word == "one changed":
                    changed = min(models.glob("*_0.sql"))
                    changed.write_text(
                        f"-- changed\n{changed.read_text()};\nOPTIMIZE "
                        f"{changed.stem.rpartition('_')[0]}"
                    )
                found = run(Path(place))
                seconds = " | ".join(f"{found.get(phase, 0):.2f} s" for phase in phases)
                counts = f"{found['asked']:.0f} | {found['findings']:.0f}"
                say(f"| {name} | {word} | {counts} | {seconds} |")


if __name__ == "__main__":
    main()
