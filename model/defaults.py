"""What is meant where nothing is named."""

from __future__ import annotations

from typing import Literal

__all__ = ["DELTA"]

DELTA: Literal["delta"] = "delta"
"""The format of whatever names none."""
