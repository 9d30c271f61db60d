"""Litmus tests executed on real engines.

Importing this package starts nothing and imports no PySpark; ``open_session`` does.

>>> from isolitmus.conformance import open_session, replay
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from isolitmus.conformance.delta.engine import replay
    from isolitmus.conformance.delta.session import Session, open_session
    from isolitmus.conformance.racing.interleavings import interleave
    from isolitmus.conformance.racing.races import race

__all__ = ["Session", "interleave", "open_session", "race", "replay"]

__getattr__ = lazy_getattr(
    __name__,
    {
        "Session": "delta.session",
        "interleave": "racing.interleavings",
        "open_session": "delta.session",
        "race": "racing.races",
        "replay": "delta.engine",
    },
)
