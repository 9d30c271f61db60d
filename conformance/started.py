"""The engines that a run of pytest has started: each once, and all gone after the last test."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from isolitmus.model.errors import IsolitmusError

if TYPE_CHECKING:
    from isolitmus.conformance.delta.session import Session
    from isolitmus.model.engine import Carries

__all__ = ["Started", "started"]

ELSE = "; to use a session of your own, define a fixture delta_spark that returns it"


class Started:
    """Engines by their names; that of Delta carries out in the session that fixtures have, too."""

    def __init__(self) -> None:
        self.stack = ExitStack()
        self._session: Session | None = None
        self._engines: dict[str, Carries] = {}

    def session(self) -> Session:
        """Spark with Delta; a failure of the test, one sentence, where it cannot be started."""
        from isolitmus.conformance.delta.session import open_session

        if self._session is None:
            try:
                self._session = self.stack.enter_context(open_session())
            except IsolitmusError as error:
                pytest.fail(f"{error}{ELSE}", pytrace=False)
        return self._session

    def engine(self, name: str) -> Carries:
        """An engine, started when it is first asked for."""
        from isolitmus.conformance.delta.engine import ENGINE, carries
        from isolitmus.conformance.engines import open_engine

        if name not in self._engines:
            self._engines[name] = (
                carries(self.session())
                if name == ENGINE
                else self.stack.enter_context(open_engine(name))
            )
        return self._engines[name]


STARTED: pytest.StashKey[Started] = pytest.StashKey()


def started(config: pytest.Config) -> Started:
    """Those of a run of pytest."""
    if STARTED not in config.stash:
        config.stash[STARTED] = Started()
        config.add_cleanup(config.stash[STARTED].stack.close)
    return config.stash[STARTED]
