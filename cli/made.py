"""What a page that a command writes says of itself at its foot."""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import version

from isolitmus.checker.render.page_parts import Made

__all__ = ["made"]


def made() -> Made:
    """The release, the time, and the command as it was typed."""
    return Made(
        f"isolitmus {version('isolitmus')}",
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        shlex.join(["isolitmus", *sys.argv[1:]]),
    )
