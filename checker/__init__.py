"""What can be asked: the verbs, without a JVM. Imported when first used, so that a shell starts fast."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isolitmus.checker.checks import check
    from isolitmus.checker.runs import run
    from isolitmus.checker.separation import separate
    from isolitmus.checker.words import explain

__all__ = ["check", "explain", "run", "separate"]

HOMES = {"check": "checks", "explain": "words", "run": "runs", "separate": "separation"}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'isolitmus.checker' has no attribute '{name}'")
    return getattr(import_module(f"isolitmus.checker.{HOMES[name]}"), name)
