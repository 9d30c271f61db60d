"""A lock table: who holds what, who waits for whom, and who waits for himself.

Modes are share (S), update (U) and exclusive (X); S goes with S and U, U with S, X with nothing. A
lock on a table is one on all that is in it. Who comes first is served first: a request also waits
for those that wait already for something that it does not go with.

Where versions of a row stand behind each other (``rules``: ``updates append``), who finds nobody at
the newest has it, whoever waits for it; and when there is another version all who waited ask anew
for that, in no order.

Heaps (``rules``: ``keep heaps``) have more: IS and IX on a heap by whoever locks rows of it; I on a
row that was inserted; P of whoever puts an entry after a row, and asks only, with I and P. In their
queues everybody stands behind all who wait there already, whatever they wait for, except who has a
lock there, and who need not keep what he asks for.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isolitmus.checker.locking.row_versions import Position

__all__ = ["Circle", "Lock", "LockTable", "Resource", "find_deadlock_victim"]

TOGETHER = {
    *(("S", "S"), ("S", "U"), ("U", "S")),
    *(("IS", "IS"), ("IS", "IX"), ("IX", "IS"), ("IX", "IX"), ("IS", "S"), ("S", "IS")),
    *(("P", "P"), ("P", "I"), ("I", "P")),
}
STRENGTH = "SUX"


@dataclass(frozen=True, slots=True)
class Resource:
    """What a lock is on."""

    kind: str
    """A ``table``, a ``row`` of it, a ``page`` of an index, a ``gap`` of one, or a ``point`` in
    one, at which somebody puts an entry; a ``heap``, which is locked beside its rows."""
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
        return self == other and self.kind in ("row", "page", "heap")

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
            and not are_compatible(self.mode, other.mode)
            and self.place.meets(other.place)
        )

    def asks_as(self, other: Lock) -> bool:
        """Whether both only ask at a place: those go together, but a database tells them as X."""
        return self.mode == other.mode == "P" and self.place == other.place


@dataclass(slots=True)
class LockTable:
    """Who holds what, and who waits."""

    held: dict[Lock, int] = field(default_factory=dict)
    """What everybody holds, each lock with how often it was asked for."""
    waiting: list[Lock] = field(default_factory=list)
    """What is waited for, first come first."""
    heap: bool = False
    """Whether these are locks of heaps."""
    versions: bool = False
    """Whether these are locks of rows whose versions stand behind each other."""
    loose: set[Lock] = field(default_factory=set)
    """The requests that have no place in a queue: nobody is behind them, and they only behind who
    has a lock.
    """
    raced: bool = False
    """Whether several go on who had to wait, and some of them may not have looked yet whether they
    need not any more.
    """

    @property
    def asked(self) -> tuple[tuple[Lock, bool], ...]:
        """What is waited for, first come first, each with whether it has no place in a queue."""
        return tuple((lock, lock in self.loose) for lock in self.waiting)

    def behind(self, wanted: Lock) -> tuple[str, ...]:
        """Those for whom a request has to wait, sorted; whoever strengthens what he has goes
        first.
        """
        found = {lock.owner for lock in self.held if lock.against(wanted)}
        if self.versions and not found and wanted not in self.waiting:
            return ()
        if not self.stronger(wanted) and wanted not in self.loose:
            ahead = self.ahead(wanted)
            found |= {lock.owner for lock in ahead if lock.against(wanted) or lock.asks_as(wanted)}
            if self.heap and not found:
                found = {lock.owner for lock in ahead if lock.place == wanted.place}
        return tuple(sorted(found))

    def refused(self, wanted: Lock) -> bool:
        """Whether somebody has what a request is against, whoever waits."""
        return any(lock.against(wanted) for lock in self.held)

    def left(self, wanted: Lock) -> bool:
        """Whether a request is new, and nobody has a lock at its place, which those who wait there
        may not have seen.
        """
        return self.raced and wanted not in self.waiting and not self.at(wanted.place)

    def ahead(self, wanted: Lock) -> list[Lock]:
        """The requests of others that came before one."""
        first = self.waiting.index(wanted) if wanted in self.waiting else len(self.waiting)
        return [
            lock
            for lock in self.waiting[:first]
            if lock.owner != wanted.owner and lock not in self.loose
        ]

    def ahead_at(self, wanted: Lock) -> list[Lock]:
        """Those of them that are for the same place."""
        return [lock for lock in self.ahead(wanted) if lock.place == wanted.place]

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
        self.loose.discard(lock)
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
        self.loose = {lock for lock in self.loose if lock.owner != owner}

    def of(self, owner: str) -> list[Lock]:
        """What somebody holds."""
        return [lock for lock in self.held if lock.owner == owner]

    def at(self, place: Resource) -> list[Lock]:
        """The locks on a place, in the order in which they were given."""
        return [lock for lock in self.held if lock.place == place]

    def weight(self, owner: str) -> int:
        """How many locks somebody holds, each as often as it was given."""
        return sum(count for lock, count in self.held.items() if lock.owner == owner)

    def cycle(self, start: str) -> tuple[str, ...]:
        """Those who wait for each other, from one on; none if nobody waits for himself."""
        graph = {lock.owner: self.behind(lock) for lock in self.waiting}
        found = _path(graph, start, start, ())
        return () if found is None else found


def are_compatible(mode: str, other: str) -> bool:
    """Whether locks of two modes on one place can be at a time."""
    return (mode, other) in TOGETHER


Circle = tuple[tuple[str, tuple[str, ...]], ...]
"""Those who wait for each other, each with those for whom he waits."""


def find_deadlock_victim(
    locks: LockTable, who: str, *, told: bool = False, tried: tuple[str, ...] = ()
) -> tuple[str, Circle] | None:
    """Who ends if somebody begins to wait for heaps and rows of them, and the circle that he is in;
    None: nobody.

    Of those who wait for each other it is who has the fewest locks, and of several the last. If
    that is another, he is told, looks himself, and ends if he is in what he finds; otherwise nobody
    does, and nobody looks again (``Deadlock.handle``, ``ConcurrentLockSet.lockObject``). Nor does
    he end if he sees that he need not wait any more.
    """
    if told and not any(locks.behind(lock) for lock in locks.waiting if lock.owner == who):
        return None
    circle = look(locks, who)
    if not circle:
        return None
    names = [name for name, _ in circle]
    victim = who if told and who in names else min(reversed(names), key=locks.weight)
    if victim == who:
        return victim, circle
    return (
        None
        if victim in tried
        else find_deadlock_victim(locks, victim, told=True, tried=(*tried, victim))
    )


def look(locks: LockTable, start: str) -> Circle:
    """Those who wait for each other, as Derby comes upon them from somebody who begins to wait
    (``Deadlock.look``): deep first, of the locks on one place the latest given first; nobody, if it
    comes upon none.

    Who waits is behind all who have the place, be their locks against his or not, and behind
    whoever waits there right before him, if their locks are against each other; so is who need not
    wait any more, until he has seen that.
    """
    waits = {lock.owner: lock for lock in locks.waiting if locks.raced or locks.behind(lock)}
    if start not in waits:
        return ()
    chain: list[str | list[Lock]] = [start, locks.at(waits[start].place)]
    while chain:
        there = chain[-1]
        assert isinstance(there, list)
        if not there:
            _back(chain)
            continue
        owner = there[-1].owner
        if any(lock.owner == owner for lock in there[:-1]):
            chain.append(owner)
            _back(chain)
            continue
        found = _follow(locks, waits, chain, there)
        if found:
            return found
    return ()


def _follow(
    locks: LockTable, waits: dict[str, Lock], chain: list[str | list[Lock]], there: list[Lock]
) -> Circle:
    """The circle that the owner of the last of some locks is in, if he is in the chain already;
    else the chain goes on, or back.
    """
    owner = there[-1].owner
    while True:
        if owner in chain:
            k = chain.index(owner)
            next_to = k == len(chain) - 1 or (k == len(chain) - 2 and k == chain.index(there) - 1)
            if next_to and locks.stronger(waits[owner]):  # he waits for others at what he has
                chain.append(owner)
                _back(chain)
                return ()
            return _circle(chain[k:])
        chain.append(owner)
        while True:
            mine = waits.get(owner)
            ahead = [] if mine is None else locks.ahead_at(mine)
            if mine is None or not (ahead or locks.at(mine.place)):
                _back(chain)
                return ()
            if not ahead:
                chain.append(locks.at(mine.place))
                return ()
            owner = ahead[-1].owner
            if not are_compatible(mine.mode, ahead[-1].mode):
                break


def _circle(chain: list[str | list[Lock]]) -> Circle:
    """Each of a chain waits for the next, the last for the first, and for those of them who have
    what he wants.
    """
    names = [one for one in chain if isinstance(one, str)]
    behind = {name: {after} for name, after in zip(names, [*names[1:], names[0]], strict=True)}
    for name, there in itertools.pairwise(chain):
        if isinstance(name, str) and isinstance(there, list):
            behind[name] |= {lock.owner for lock in there if lock.owner in names}
    return tuple((name, tuple(sorted(behind[name] - {name}))) for name in names)


def _back(chain: list[str | list[Lock]]) -> None:
    """Back to the last locks in the chain, of which the one that was looked at is left out."""
    chain.pop()
    while chain and not isinstance(chain[-1], list):
        chain.pop()
    if chain:
        there = chain[-1]
        assert isinstance(there, list)
        there.pop()


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
