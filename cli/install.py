"""`isolitmus install`: install an engine, or make its start faster."""

from __future__ import annotations

from typing import Annotated

import typer

from isolitmus.cli.options import Memory, Time, read_budget
from isolitmus.cli.output import progress, say
from isolitmus.specs.registries import install_engine


def install(
    engine: Annotated[
        str,
        typer.Argument(
            metavar="ENGINE",
            help="deltalake or a release such as deltalake-1.6.3, postgres, or delta.",
        ),
    ] = "deltalake",
    time: Time = None,
    memory: Memory = None,
) -> int:
    """Each release of deltalake gets its own environment in the user's cache. postgres is Debian's
    package. For delta, an archive of Java classes in this Python environment makes Spark start
    faster.

    Exit status:
      0  installed
      3  a limit ended the work; the next call starts again
      4  it cannot be installed on this machine

    Examples:
      isolitmus install deltalake
      isolitmus install postgres

    """
    within = read_budget(time, memory)
    with within.interrupting(), progress(f"installing what {engine} needs"):
        installed = install_engine(engine)
    say(installed)
    return 0
