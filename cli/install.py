"""``isolitmus install``: engines that have an environment of their own."""

from __future__ import annotations

from isolitmus.cli.output import progress, say
from isolitmus.conformance import deltalake

__all__ = ["install"]


def install(engine: str) -> int:
    """Exit status 0; EngineUnavailable if the package registry does not give it."""
    release = deltalake.release_of(engine)
    with progress(f"installing {engine}"):
        place = deltalake.install(release)
    say(f"deltalake {release} is in {place}")
    return 0
