"""Default values."""

from __future__ import annotations

from typing import Literal

__all__ = ["DELTA"]

DELTA: Literal["delta"] = "delta"
"""Default format."""
