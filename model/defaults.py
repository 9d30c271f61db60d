"""Default values."""

from __future__ import annotations

from typing import Literal

DELTA: Literal["delta"] = "delta"
"""Default format."""
