"""The world: litmus tests replayed on real engines.

Importing this starts nothing and imports no PySpark; ``open_session`` does.

>>> from isolitmus.conformance import open_session, replay
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from pathlib import Path

    from isolitmus.conformance.delta.session import Session, open_session
    from isolitmus.conformance.racing.interleavings import interleave
    from isolitmus.conformance.racing.races import race
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import Run
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike

__all__ = ["Session", "interleave", "open_session", "race", "replay"]

__getattr__ = lazy_getattr(
    __name__,
    {
        "Session": "delta.session",
        "interleave": "racing.interleavings",
        "open_session": "delta.session",
        "race": "racing.races",
    },
)


def replay(
    litmus: Litmus | NameOrPath,
    protocol: SpecLike,
    session: Session,
    *,
    seconds: float = 180.0,
    logs: Path | None = None,
) -> Run:
    """Carry the schedule of a litmus test, or of the one with this name or path, out on real tables, as
    ``conformance.delta.engine.replay`` does.

    LitmusError for an abstract history, which has no statements.
    """
    from isolitmus.conformance.delta.engine import replay as carry_out
    from isolitmus.model.errors import LitmusError
    from isolitmus.model.litmus import HistoryTest
    from isolitmus.model.spec import Spec
    from isolitmus.specs import litmus as named

    test = named(litmus)
    if isinstance(test, HistoryTest):
        raise LitmusError(f"{test.name} is an abstract history, without statements")
    name = protocol.name if isinstance(protocol, Spec) else str(protocol)
    return carry_out(test, name, session, seconds=seconds, logs=logs)
