"""Memoization of functions of immutable objects, keyed by object identity."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")
MOST = 10_000
"""Maximum number of results; beyond it, all are dropped."""


def memoize_by_identity(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that remembers its results by the identity of its arguments.

    Hashing an expression or a statement takes as long as walking it; its identity takes no time.
    Only for immutable objects, as positional arguments; errors are not remembered.

    Examples
    --------
    >>> length = memoize_by_identity(len)
    >>> some = (1, 2)
    >>> length(some), length(some), length((3,))
    (2, 2, 1)
    """
    known: dict[tuple[int, ...], tuple[object, R]] = {}

    @wraps(function)
    def remembered(*args: P.args, **kwargs: P.kwargs) -> R:
        key = tuple(map(id, args))
        found = known.get(key)
        if found is None:
            if len(known) >= MOST:
                known.clear()
            # Keep the arguments alive: otherwise another object may get the id of one of them.
            found = known[key] = args, function(*args, **kwargs)
        return found[1]

    return remembered
