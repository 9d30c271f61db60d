"""The versions of every row in the order of the log: what Adya calls the version order."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.model.execution import Event
    from isolitmus.model.sql.values import Row

__all__ = ["RowVersion", "chains"]


class RowVersion(NamedTuple):
    """One version of a row."""

    writer: int
    """Who installed it, by position."""
    table: str
    """The table of the row."""
    row: str
    """The row's identity."""
    before: Row | None
    """What was there; None: it was unborn or dead."""
    after: Row | None
    """What is there from then on, likewise."""


def chains(events: Sequence[Event]) -> dict[tuple[str, str], list[RowVersion]]:
    """The versions of each row that somebody wrote, by table and row, without the initial one.

    >>> from isolitmus.checker.execution.commit_loop import execute
    >>> from isolitmus.specs import litmus
    >>> ((insert,), (delete,)) = chains(execute(litmus("reorder")).events).values()
    >>> insert.before, insert.after, delete.before, delete.after
    (None, (100, 0), (1, 0), None)
    """
    found: dict[tuple[str, str], list[RowVersion]] = defaultdict(list)
    for i, event in enumerate(events):
        if event.version is None:
            continue
        for write in event.effect.writes:
            chain = found[write.table, write.id]
            before = chain[-1].after if chain else write.before
            chain.append(RowVersion(i, write.table, write.id, before, write.after))
    return found
