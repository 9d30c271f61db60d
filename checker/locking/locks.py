"""A lock table: who holds what, who waits for whom, and who waits for himself.

Modes are share (S), update (U) and exclusive (X); S goes with S and U, U with S, X with nothing. A lock on a
table is one on all that is in it. Who comes first is served first: a request also waits for those that wait
already for something that it does not go with.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isolitmus.checker.locking.rows import Position

__all__ = ["Lock", "LockTable", "Resource"]

TOGETHER = {("S", "S"), ("S", "U"), ("U", "S")}
STRENGTH = "SUX"


@dataclass(frozen=True, slots=True)
class Resource:
    """What a lock is on."""

    kind: str
    """A ``table``, a ``row`` of it, a ``page`` of an index, a ``gap`` of one, or a ``point`` in one, at which
    somebody puts an entry."""
    table: str
    """The table that it is, or is in."""
    name: str = ""
    """The row, the page or the index."""
    low: Position | None = None
    """Where a gap begins (None: at the start of the index); where a point is."""
    high: Position | None = None
    """Where a gap ends; None: at the end of the index."""

    def meets(self, other: Resource) -> bool:
        """Whether what is done at the one touches the other."""
        if self.table != other.table:
            return False
        kinds = {self.kind, other.kind}
        if "table" in kinds:
            return True
        if kinds == {"gap", "point"}:
            gap, point = (self, other) if self.kind == "gap" else (other, self)
            return gap.name == point.name and gap.holds(point.low)
        return self == other and self.kind in ("row", "page")

    def holds(self, point: Position | None) -> bool:
        """Whether a point is in this gap."""
        assert point is not None
        return (self.low is None or self.low < point) and (self.high is None or point < self.high)


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock that somebody holds or wants."""

    owner: str
    place: Resource
    mode: str

    def against(self, other: Lock) -> bool:
        """Whether the two cannot be at a time."""
        return (
            self.owner != other.owner
            and (self.mode, other.mode) not in TOGETHER
            and self.place.meets(other.place)
        )


@dataclass(slots=True)
class LockTable:
    """Who holds what (each lock with how often it was asked for), and who waits, first come first."""

    held: dict[Lock, int] = field(default_factory=dict)
    waiting: list[Lock] = field(default_factory=list)

    def behind(self, wanted: Lock) -> tuple[str, ...]:
        """Those for whom a request has to wait, sorted; whoever strengthens what he has goes first."""
        found = {lock.owner for lock in self.held if lock.against(wanted)}
        if not self.stronger(wanted):
            first = self.waiting.index(wanted) if wanted in self.waiting else len(self.waiting)
            found |= {lock.owner for lock in self.waiting[:first] if lock.against(wanted)}
        return tuple(sorted(found))

    def stronger(self, wanted: Lock) -> bool:
        """Whether somebody has a lock there already, or on the table around it."""
        around = (wanted.place, Resource("table", wanted.place.table))
        return any(lock.owner == wanted.owner and lock.place in around for lock in self.held)

    def covered(self, wanted: Lock) -> bool:
        """Whether what somebody has is enough."""
        return any(
            lock.owner == wanted.owner
            and (lock.place == wanted.place or lock.place == Resource("table", wanted.place.table))
            and STRENGTH.index(lock.mode) >= STRENGTH.index(wanted.mode)
            for lock in self.held
        )

    def grant(self, lock: Lock) -> None:
        """Give somebody a lock."""
        self.held[lock] = self.held.get(lock, 0) + 1
        if lock in self.waiting:
            self.waiting.remove(lock)

    def wait(self, lock: Lock) -> None:
        """Put a request into the queue."""
        if lock not in self.waiting:
            self.waiting.append(lock)

    def release(self, lock: Lock) -> None:
        """Give a lock back that was asked for once less."""
        count = self.held.get(lock, 0)
        if count > 1:
            self.held[lock] = count - 1
        elif count:
            del self.held[lock]

    def leave(self, owner: str) -> None:
        """Give all back and stop to wait."""
        for lock in [lock for lock in self.held if lock.owner == owner]:
            del self.held[lock]
        self.waiting = [lock for lock in self.waiting if lock.owner != owner]

    def of(self, owner: str) -> list[Lock]:
        """What somebody holds."""
        return [lock for lock in self.held if lock.owner == owner]

    def weight(self, owner: str) -> int:
        """How many locks somebody holds, as Derby counts them: what is written was locked by its scan, for the row
        and for an entry of an index.
        """
        return sum(
            3 if lock.mode == "X" else 1 for lock in self.of(owner) if lock.place.kind != "gap"
        )

    def cycle(self, start: str) -> tuple[str, ...]:
        """Those who wait for each other, from one on; none if nobody waits for himself."""
        graph = {lock.owner: self.behind(lock) for lock in self.waiting}
        found = _path(graph, start, start, ())
        return () if found is None else found


def _path(
    graph: dict[str, tuple[str, ...]], at: str, goal: str, seen: tuple[str, ...]
) -> tuple[str, ...] | None:
    for other in graph.get(at, ()):
        if other == goal:
            return (*seen, at)
        if other not in (*seen, at):
            found = _path(graph, other, goal, (*seen, at))
            if found is not None:
                return found
    return None
