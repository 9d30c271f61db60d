"""The world: litmus tests replayed on real engines.

Importing this starts nothing and imports no PySpark; ``open_session`` does.

>>> from isolitmus.conformance import open_session, replay
"""

from isolitmus.conformance.delta import replay
from isolitmus.conformance.racing import race
from isolitmus.conformance.session import Session, open_session

__all__ = ["Session", "open_session", "race", "replay"]
