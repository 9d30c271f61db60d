"""The world: litmus tests replayed on real engines.

Importing this starts nothing and imports no PySpark; ``open_session`` does.

>>> from isolitmus.conformance import open_session, replay
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.lazy import lazily

if TYPE_CHECKING:
    from isolitmus.conformance.delta import replay
    from isolitmus.conformance.interleaved import interleave
    from isolitmus.conformance.racing import race
    from isolitmus.conformance.session import Session, open_session

__all__ = ["Session", "interleave", "open_session", "race", "replay"]

__getattr__ = lazily(
    __name__,
    {
        "Session": "session",
        "interleave": "interleaved",
        "open_session": "session",
        "race": "racing",
        "replay": "delta",
    },
)
