"""Default values of files."""

from __future__ import annotations

from typing import Literal

DELTA: Literal["delta"] = "delta"
"""Format of a file that names none."""
