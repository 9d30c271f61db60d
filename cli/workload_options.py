"""Options that ``predict`` and ``robust`` share: the workload, its tables, the isolation level."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.model.defaults import DELTA
from isolitmus.model.errors import IsolitmusError, near
from isolitmus.specs import protocol
from isolitmus.specs.files.catalogue import databricks_protocol, protocols
from isolitmus.specs.files.workload_sources import workload
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from isolitmus.model.spec import Spec
    from isolitmus.model.workload import Workload

__all__ = ["Ddl", "Jobs", "Level", "TableFolder", "choose_protocol", "choose_workload"]

Jobs = Annotated[
    list[str],
    typer.Argument(
        metavar="JOBS",
        help=(
            "The name of a workload, a workload file, SQL files, a folder of SQL files, a dbt"
            " project, or a Databricks bundle."
        ),
    ),
]
Ddl = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="For SQL files and dbt: a file with CREATE TABLE of tables."),
]
TableFolder = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]FOLDER",
        help="A Delta table of the jobs; its log declares it. May be repeated.",
    ),
]
Level = Annotated[
    str | None,
    typer.Option(
        metavar="L",
        help=(
            "Serializable, WriteSerializable or a protocol; default: the table's level, else"
            " Serializable; robust asks about every level."
        ),
    ),
]


def choose_workload(jobs: list[str], ddl: str | None, table: list[str] | None) -> Workload:
    """Return the workload of a command line.

    Raises IsolitmusError if a table's log contradicts its declaration.
    """
    return workload(*jobs, ddl=None if ddl is None else Path(ddl), tables=table or ())


def choose_protocol(found: Workload, level: str | None) -> Spec:
    """Return the protocol of a level or of this name, by default that of the workload's tables."""
    wanted = level or found.level or "Serializable"
    settings = {
        protocol(name).setting.rpartition("= ")[2]: name for name in format_named(DELTA).protocols
    }
    folded = {setting.lower(): name for setting, name in settings.items()}
    name = databricks_protocol(folded.get(wanted.lower(), wanted))
    if name.partition("@")[0] not in protocols() and not name.endswith(".cat"):
        meant = near(wanted, [*settings, *protocols()])
        raise IsolitmusError(
            f"unknown --level '{wanted}'{meant if 'did you mean' in meant else ''}; give"
            " Serializable, WriteSerializable or a protocol (isolitmus show protocols)"
        )
    return protocol(name)
