"""The table universe enumerated: every candidate executed and judged, in a fixed order."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from isolitmus.checker.reading.admission import admission
from isolitmus.checker.reading.monotone import monotone
from isolitmus.checker.searching.universe import candidates
from isolitmus.model.errors import TimeLimit
from isolitmus.model.reads import needs_reads

if TYPE_CHECKING:
    from collections.abc import Callable

    from isolitmus.checker.searching.universe import Candidate
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
    deadline: float | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[Candidate | None, int]:
    """The first candidate with n transactions that ``accept`` accepts, or None; and how many were
    looked at. Where more transactions can never help, what ``a`` refuses is not extended. TimeLimit
    after the deadline.
    """
    keep = admission(a) if monotone(a) and not needs_reads(a) else _anything
    examined = 0
    for candidate in candidates(scope, n, keep):
        examined += 1
        if progress is not None and examined % 500 == 0:
            progress(examined)
        if deadline is not None and monotonic() > deadline:
            raise TimeLimit(f"the time limit ended the search after {examined} candidates")
        if candidate is not None and accept(candidate):
            return candidate, examined
    return None, examined


def _anything(_frame: Frame) -> bool:
    return True
