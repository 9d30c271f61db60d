"""sqlglot without its warnings: that it falls back to a Command is no news for whoever reads the tree."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["muted"]

logging.getLogger("sqlglot").addHandler(
    logging.NullHandler()
)  # else Python prints what it warns of


@contextmanager
def muted() -> Iterator[None]:
    """Nothing of what sqlglot logs is shown meanwhile."""
    logger = logging.getLogger("sqlglot")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
