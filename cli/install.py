"""``isolitmus install``: engines that have an environment of their own."""

from __future__ import annotations

from typing import Annotated

import typer

from isolitmus.cli.output import progress, say
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs.engines import engine_named

__all__ = ["install"]


def install(
    engine: Annotated[
        str, typer.Argument(metavar="ENGINE", help="deltalake, or a release: deltalake-1.6.3.")
    ] = "deltalake",
) -> int:
    """Exit status 4 if the package registry does not give it, else 0."""
    found = engine_named(engine)
    if found.install is None:
        raise IsolitmusError(
            f"{engine} needs no environment of its own; there is nothing to install"
        )
    with progress(f"installing {engine}"):
        place = found.install()
    say(f"{found.product} is in {place}")
    return 0
