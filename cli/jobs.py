"""What the verbs about jobs share: where a workload comes from, and the commit check that it is under."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.model.default import DELTA
from isolitmus.model.errors import IsolitmusError, LitmusError, near
from isolitmus.specs import protocol
from isolitmus.specs.catalogue import protocols
from isolitmus.specs.formats import format_named
from isolitmus.specs.job_files import workload

if TYPE_CHECKING:
    from isolitmus.model.spec import Spec
    from isolitmus.model.workload import Workload

__all__ = ["Ddl", "Jobs", "Level", "TableFolder", "chosen_protocol", "chosen_workload"]

Jobs = Annotated[
    list[str],
    typer.Argument(metavar="JOBS", help="A workload's name, a workload file, or files of SQL."),
]
Ddl = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="With files of SQL: the CREATE TABLE of their tables."),
]
TableFolder = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER", help="A Delta table: its log has to say what the jobs say of it."
    ),
]
Level = Annotated[
    str | None,
    typer.Option(
        metavar="L",
        help="Serializable, WriteSerializable or a protocol; default: the table's, or Serializable.",
    ),
]


def chosen_workload(jobs: list[str], ddl: str | None, table: str | None) -> Workload:
    """The workload that a command line names; LitmusError if a table's log says something else of its table."""
    found = workload(*jobs, ddl=None if ddl is None else Path(ddl))
    return found if table is None else _held_against(found, Path(table))


def _held_against(found: Workload, folder: Path) -> Workload:
    """The workload with the level of a real table, whose columns and partitions are those that it declares."""
    from isolitmus.conformance.logged_table import logged_table
    from isolitmus.specs.delta_log import open_log

    if len(found.tables) != 1:
        raise IsolitmusError(
            f"--table is one table, and {found.name} has {', '.join(found.tables)}"
        )
    (schema,) = found.tables.values()
    logged = logged_table(list(open_log(folder).commits()), schema.name)
    said = {
        "columns": (schema.ddl(), logged.declared["columns"]),
        "partitioned_by": (list(schema.partitioned_by), logged.declared["partitioned_by"]),
    }
    for key, (ours, theirs) in said.items():
        if str(ours).lower() != str(theirs).lower():
            raise LitmusError(
                f"{found.name}: {schema.name} is declared with {key} {ours}, and the log of {folder} has"
                f" {theirs}; declare what is there"
            )
    named = {protocol(name).setting: name for name in format_named(DELTA).protocols}
    level = next((s.rpartition("= ")[2] for s, n in named.items() if n == logged.protocol), None)
    return replace(found, level=level)


def chosen_protocol(found: Workload, level: str | None) -> Spec:
    """The protocol of a level, or of this name; where none is given that of the workload's tables."""
    wanted = level or found.level or "Serializable"
    settings = {
        protocol(name).setting.rpartition("= ")[2].lower(): name
        for name in format_named(DELTA).protocols
    }
    name = settings.get(wanted.lower(), wanted)
    if name not in protocols() and not name.endswith(".cat"):
        known = [*(s.capitalize() for s in settings), *protocols()]
        raise IsolitmusError(
            f"--level is '{wanted}'{near(wanted, known)}; Serializable, WriteSerializable or a protocol is wanted"
        )
    return protocol(name)
