"""The table universe enumerated: every candidate executed and judged, in a fixed order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.judge.compiled_semantics import admission
from isolitmus.checker.judge.read_nodes import needs_reads
from isolitmus.checker.judge.spec_properties import monotone
from isolitmus.checker.universes.tables import candidates
from isolitmus.model.budget import Budget
from isolitmus.model.errors import Limit
from isolitmus.model.spec_algebra import outspoken

if TYPE_CHECKING:
    from collections.abc import Callable

    from isolitmus.checker.universes.tables import Candidate
    from isolitmus.model.frame import Frame
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec

__all__ = ["search"]


def search(
    a: Spec,
    scope: Scope,
    n: int,
    accept: Callable[[Candidate], bool],
    *,
    recorder: Spec | None = None,
    budget: Budget | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[Candidate | None, int]:
    """The first candidate with n transactions that ``accept`` accepts, or None; and how many were
    looked at. Where more transactions can never help, what ``a`` forbids is not extended. What ``recorder`` does
    not record is a reader. A Limit, with how many, once the budget is spent.
    """
    a = outspoken(a)
    keep = admission(a) if monotone(a) and not needs_reads(a) else _anything
    check = (budget or Budget()).check
    examined = 0
    try:
        for candidate in candidates(scope, n, keep, check, recorder=recorder):
            examined += 1
            if progress is not None and examined % 500 == 0:
                progress(examined)
            if candidate is not None and accept(candidate):
                return candidate, examined
    except Limit as limit:
        limit.examined = examined
        raise
    return None, examined


def _anything(_frame: Frame) -> bool:
    return True
