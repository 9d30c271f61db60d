"""The engine deltalake: delta-rs by its Python package, each release in an environment of its own.

Importing this starts nothing and imports no deltalake, which pins an Arrow of its own.
"""

from isolitmus.conformance.deltalake.engine import NEWEST, OLDER, replay
from isolitmus.conformance.deltalake.environment import (
    RELEASES,
    WorkerProcess,
    install,
    interpreter,
    open_worker,
)

__all__ = [
    "NEWEST",
    "OLDER",
    "RELEASES",
    "WorkerProcess",
    "install",
    "interpreter",
    "open_worker",
    "replay",
]
