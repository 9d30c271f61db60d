"""What a transaction did among others, besides what any does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.model.execution import Effect

if TYPE_CHECKING:
    from isolitmus.checker.locking.row_versions import Store
    from isolitmus.checker.locking.scans import Trace
    from isolitmus.model.execution import Event
    from isolitmus.model.run import TransactionRun, Wait
    from isolitmus.model.sql.values import Rows

__all__ = ["DEADLOCK", "Scanned", "Wrote", "told"]

DEADLOCK = "Deadlock"
"""What the victim of a deadlock ends with."""


@dataclass(frozen=True, slots=True)
class Wrote:
    """What others may know of a commit: where it is (in one of its tables), and that there is something."""

    table: str
    empty: bool = False


@dataclass(frozen=True, slots=True)
class Scanned(Effect):
    """What a transaction has read and written, scan by scan, and for whom it waited."""

    emitted: Rows = ()
    """The rows that its scans came to, in order."""
    waits: tuple[Wait, ...] = ()
    """When it waited, and for whom."""
    traces: tuple[Trace, ...] = ()
    """Its scans, in the order in which they began."""
    store: Store | None = None
    """The rows with their versions, of all who were under way."""


def told(event: Event, seen: TransactionRun) -> TransactionRun:
    """What an observer sees of a transaction: there are no snapshots that have numbers."""
    done = event.effect
    assert isinstance(done, Scanned)
    return replace(
        seen,
        read_version=None,
        rows=done.rows,
        emitted=done.emitted,
        waits=done.waits,
        operation=None,
    )
