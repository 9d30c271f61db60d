"""What ships in the package, names to files: below all that reads them.

A level or protocol is one ``.cat`` file under ``levels/`` or ``protocols/``, a litmus test, a scope, a
matrix or a part of the claims one ``.toml`` file, each called by its file name; nothing else registers it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["HOME", "Folder", "shipped"]

HOME = Path(__file__).parent.parent
Folder = Literal[
    "levels", "protocols", "litmus", "scopes", "matrices", "claims", "workloads", "equivalent"
]


@cache
def shipped(folder: Folder) -> Mapping[str, Path]:
    """The package's files of a kind, by name and in its order.

    >>> "write-serializable" in shipped("levels"), shipped("scopes")["lattice"].name
    (True, 'lattice.toml')
    """
    ending = ".cat" if folder in ("levels", "protocols") else ".toml"
    found = (HOME / folder).rglob(f"*{ending}")
    return {path.stem: path for path in sorted(found, key=lambda path: path.with_suffix(""))}
