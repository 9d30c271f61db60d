"""``isolitmus install``: what an engine needs of its own, or what makes its start faster."""

from __future__ import annotations

from typing import Annotated

import typer

from isolitmus.cli.options import Memory, Time, read_budget
from isolitmus.cli.output import progress, say
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs.registries.engines import engine_named

__all__ = ["install"]


def install(
    engine: Annotated[
        str,
        typer.Argument(
            metavar="ENGINE", help="deltalake, or a release: deltalake-1.6.3; postgres; delta."
        ),
    ] = "deltalake",
    time: Time = None,
    memory: Memory = None,
) -> int:
    """deltalake's releases have environments of their own, below the user's cache; postgres is Debian's package; of delta,
    an archive of Java's classes lies in this Python environment. Exit status 4 if it cannot be had, 3 if a limit ended the
    work, which then begins anew the next time; else 0.
    """
    within = read_budget(time, memory)
    found = engine_named(engine)
    if found.install is None:
        raise IsolitmusError(f"{engine} needs nothing of its own; there is nothing to install")
    with within.interrupting(), progress(f"installing what {engine} needs"):
        place = found.install()
    say(f"{found.product} has {place}")
    return 0
