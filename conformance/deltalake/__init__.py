"""The engine deltalake: delta-rs by its Python package, each release in an environment of its own.

Importing this starts nothing and imports no deltalake, which pins an Arrow of its own.
"""

from isolitmus.conformance.deltalake.environment import RELEASES, install, interpreter, release_of
from isolitmus.conformance.deltalake.replay import PROTOCOLS, replay, table_level
from isolitmus.conformance.deltalake.talk import Worker, talking

__all__ = [
    "PROTOCOLS",
    "RELEASES",
    "Worker",
    "install",
    "interpreter",
    "release_of",
    "replay",
    "table_level",
    "talking",
]
