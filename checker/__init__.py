"""What can be asked: the verbs, without a JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.lazy import lazily

if TYPE_CHECKING:
    from isolitmus.checker.auditing.audit import audit
    from isolitmus.checker.checks import check
    from isolitmus.checker.explaining import explain
    from isolitmus.checker.placing import compare
    from isolitmus.checker.runs import run
    from isolitmus.checker.separation import separate
    from isolitmus.checker.sweeps import sweep
    from isolitmus.checker.telling.graphs import graph
    from isolitmus.checker.telling.words import verdict_words

__all__ = [
    "audit",
    "check",
    "compare",
    "explain",
    "graph",
    "run",
    "separate",
    "sweep",
    "verdict_words",
]

__getattr__ = lazily(
    __name__,
    {
        "audit": "auditing.audit",
        "check": "checks",
        "compare": "placing",
        "explain": "explaining",
        "graph": "telling.graphs",
        "run": "runs",
        "separate": "separation",
        "sweep": "sweeps",
        "verdict_words": "telling.words",
    },
)
