"""Which list shows that one version came before another, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isolitmus.checker.blackbox.naming import Names
    from isolitmus.model.list_history import ListHistory
    from isolitmus.model.reason import Reason

__all__ = ["shown_by_lists"]


def shown_by_lists(
    names: Names, lists: ListHistory, first: int, second: int, key: int
) -> Reason | None:
    """The reason why a transaction's version of a key comes before another's; None: no list shows it."""
    read = int(lists.longest()[key])
    if read < 0:
        return None
    place = {element: at for at, element in enumerate(lists.list_of(read).tolist())}
    before, after = (place.get(names.left(one, key), -1) for one in (first, second))
    if before < 0 or 0 <= after < before:
        return None
    return names.listed(
        "recorded unlisted" if after < 0 else "recorded listed", first, second, read
    )
