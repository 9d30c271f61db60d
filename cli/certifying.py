"""What ``--certificate`` writes: a folder for each claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.cli.output import warn
from isolitmus.specs.disk.output_files import unwritten, write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isolitmus.checker.solver.certificate import Certificate

__all__ = ["write_certificates"]


def write_certificates(
    certificates: Sequence[Certificate], folder: Path, readme: str | None = None
) -> None:
    """A folder for each certificate, and the README of the whole; a word on standard error if there is none."""
    if not certificates:
        warn(f"nothing was refuted, so {folder} was not written")
    for one in certificates:
        inside = folder / one.name
        try:
            inside.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise unwritten(inside, problem) from None
        for name, text in one.files():
            write_whole(inside / name, text)
    if certificates and readme is not None:
        write_whole(folder / "README.md", readme)
