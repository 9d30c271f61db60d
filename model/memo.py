"""Functions of things that do not change, remembered by which thing it is."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["memoize_by_identity"]

P = ParamSpec("P")
R = TypeVar("R")
MOST = 10_000
"""So many results, and all are forgotten."""


def memoize_by_identity(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which is not asked twice of the same objects: to hash an expression or a
    statement takes as long as to walk it. Only for objects that do not change, given by position;
    errors are not remembered.

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
            # the objects are kept, too: else another one might get the place of one of them
            found = known[key] = args, function(*args, **kwargs)
        return found[1]

    return remembered
