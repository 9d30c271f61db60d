"""How sure is what a log shows."""

from __future__ import annotations

from typing import Literal

__all__ = ["Certainty"]

Certainty = Literal["certain", "possible"]
"""The log shows it, provided that commits say the truth of themselves; or it does not exclude it."""
