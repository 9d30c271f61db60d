"""Public operations of the checker: check, compare, explain, repair, run, separate, sweep; none
needs a JVM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.display import bind_renderer
from isolitmus.model.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from isolitmus.checker.auditing.diagnosis import explain
    from isolitmus.checker.auditing.log_audit import audit
    from isolitmus.checker.checks.history_check import check
    from isolitmus.checker.execution.dependency_graph import graph
    from isolitmus.checker.execution.run_result import run
    from isolitmus.checker.render.verdicts import verdict_words
    from isolitmus.checker.search.lattice_search import compare
    from isolitmus.checker.search.repair import repair
    from isolitmus.checker.search.separation import separate
    from isolitmus.checker.sweeps.table_sweep import sweep

__all__ = [
    "audit",
    "check",
    "compare",
    "explain",
    "graph",
    "repair",
    "run",
    "separate",
    "sweep",
    "verdict_words",
]

__getattr__ = lazy_getattr(
    __name__,
    {
        "audit": "auditing.log_audit",
        "check": "checks.history_check",
        "compare": "search.lattice_search",
        "explain": "auditing.diagnosis",
        "graph": "execution.dependency_graph",
        "repair": "search.repair",
        "run": "execution.run_result",
        "separate": "search.separation",
        "sweep": "sweeps.table_sweep",
        "verdict_words": "render.verdicts",
    },
)


def _renderer() -> Callable[[Any, str], str]:
    from isolitmus.checker.render.results import render_result

    return render_result


bind_renderer(_renderer)
