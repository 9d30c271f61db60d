"""The engine deltalake: delta-rs by its Python package, each release in its own environment.

Importing this package starts nothing and imports no deltalake, which pins a version of Arrow.
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
