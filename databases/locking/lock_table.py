"""Lock table: locks held, requests waiting, and deadlock detection.

Modes are share (S), update (U) and exclusive (X). S is compatible with S and U, U with S, X with
none. A lock on a table covers everything in it. Requests are served in order of arrival: a request
also waits for earlier requests that it is not compatible with.

If row versions are appended (rule ``updates append``), a request is granted when no transaction
holds a lock on the newest version, regardless of the queue. When a newer version appears, all
waiting transactions request a lock on that one, in no order.

Heaps (rule ``keep heaps``) have more modes:

* IS and IX on a heap, for a transaction that locks rows of it;
* I on an inserted row;
* P, compatible with I and P, for a transaction that inserts an entry after a row; it is only
  requested, not kept.

In their queues a request waits for all earlier requests whatever their mode, except if its
transaction already holds a lock there, or does not keep the lock.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from isolitmus.databases.locking.row_versions import Position

TOGETHER = {
    *(("S", "S"), ("S", "U"), ("U", "S")),
    *(("IS", "IS"), ("IS", "IX"), ("IX", "IS"), ("IX", "IX"), ("IS", "S"), ("S", "IS")),
    *(("P", "P"), ("P", "I"), ("I", "P")),
}
STRENGTH = "SUX"


@dataclass(frozen=True, slots=True)
class Resource:
    """Lockable resource."""

    kind: str
    """Kind: "table", "row", "heap"; or of an index "page", "gap", "point" (of an insertion).

    A heap is locked in addition to its rows.
    """
    table: str
    """Table that it is or belongs to."""
    name: str = ""
    """Name of the row, the page or the index."""
    low: Position | None = None
    """Start of a gap, None at the start of the index; position of a point."""
    high: Position | None = None
    """End of a gap; None at the end of the index."""

    def meets(self, other: Resource) -> bool:
        """Return whether the two resources overlap."""
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
        """Return whether the gap contains a point."""
        assert point is not None
        return (self.low is None or self.low < point) and (self.high is None or point < self.high)


@dataclass(frozen=True, slots=True)
class Lock:
    """Lock that a transaction holds or requests."""

    owner: str
    place: Resource
    mode: str

    def against(self, other: Lock) -> bool:
        """Return whether two locks conflict."""
        return (
            self.owner != other.owner
            and not are_compatible(self.mode, other.mode)
            and self.place.meets(other.place)
        )

    def asks_as(self, other: Lock) -> bool:
        """Return whether both are P requests for one resource.

        These are compatible, but a database reports them as X.
        """
        return self.mode == other.mode == "P" and self.place == other.place


@dataclass(slots=True)
class LockTable:
    """Locks held, and requests waiting."""

    held: dict[Lock, int] = field(default_factory=dict)
    """Locks held, each with the number of times it was requested."""
    waiting: list[Lock] = field(default_factory=list)
    """Waiting requests in order of arrival."""
    heap: bool = False
    """True if these are locks of heaps."""
    versions: bool = False
    """True if these are locks of rows whose versions are appended."""
    loose: set[Lock] = field(default_factory=set)
    """Requests outside of the queues: none waits for them, and they wait for lock holders only."""
    raced: bool = False
    """True if several transactions resume after a wait.

    Some of them may not have checked yet whether they still have to wait.
    """

    @property
    def asked(self) -> tuple[tuple[Lock, bool], ...]:
        """Waiting requests in order of arrival, each with whether it is outside of the queues."""
        return tuple((lock, lock in self.loose) for lock in self.waiting)

    def behind(self, wanted: Lock) -> tuple[str, ...]:
        """Return the sorted names of the transactions that a request has to wait for.

        A request by a transaction that already holds a lock on the resource precedes the queue.
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
        """Return whether a held lock conflicts with the request, regardless of the queue."""
        return any(lock.against(wanted) for lock in self.held)

    def left(self, wanted: Lock) -> bool:
        """Return whether a new request finds its resource unlocked while other transactions resume.

        Transactions that wait there may not have noticed yet that it is unlocked.
        """
        return self.raced and wanted not in self.waiting and not self.at(wanted.place)

    def ahead(self, wanted: Lock) -> list[Lock]:
        """Return the queued requests of other transactions that arrived before `wanted`."""
        first = self.waiting.index(wanted) if wanted in self.waiting else len(self.waiting)
        return [
            lock
            for lock in self.waiting[:first]
            if lock.owner != wanted.owner and lock not in self.loose
        ]

    def ahead_at(self, wanted: Lock) -> list[Lock]:
        """Return those of the requests `ahead` that are for the same resource."""
        return [lock for lock in self.ahead(wanted) if lock.place == wanted.place]

    def stronger(self, wanted: Lock) -> bool:
        """Return whether the requester already holds a lock on the resource, or on its table."""
        around = (wanted.place, Resource("table", wanted.place.table))
        return any(lock.owner == wanted.owner and lock.place in around for lock in self.held)

    def covered(self, wanted: Lock) -> bool:
        """Return whether a lock that the requester holds suffices."""
        return any(
            lock.owner == wanted.owner
            and (lock.place == wanted.place or lock.place == Resource("table", wanted.place.table))
            and STRENGTH.index(lock.mode) >= STRENGTH.index(wanted.mode)
            for lock in self.held
        )

    def grant(self, lock: Lock) -> None:
        """Grant a lock."""
        self.held[lock] = self.held.get(lock, 0) + 1
        self.loose.discard(lock)
        if lock in self.waiting:
            self.waiting.remove(lock)

    def wait(self, lock: Lock) -> None:
        """Append a request to the queue."""
        if lock not in self.waiting:
            self.waiting.append(lock)

    def release(self, lock: Lock) -> None:
        """Release a lock once; it stays held if it was granted more often."""
        count = self.held.get(lock, 0)
        if count > 1:
            self.held[lock] = count - 1
        elif count:
            del self.held[lock]

    def leave(self, owner: str) -> None:
        """Release all locks of a transaction, and remove its requests."""
        for lock in [lock for lock in self.held if lock.owner == owner]:
            del self.held[lock]
        self.waiting = [lock for lock in self.waiting if lock.owner != owner]
        self.loose = {lock for lock in self.loose if lock.owner != owner}

    def of(self, owner: str) -> list[Lock]:
        """Return the locks that a transaction holds."""
        return [lock for lock in self.held if lock.owner == owner]

    def at(self, place: Resource) -> list[Lock]:
        """Return the locks on a resource, in the order in which they were granted."""
        return [lock for lock in self.held if lock.place == place]

    def held_state(self, *, ordered: bool) -> Hashable:
        """Return the held locks with their counts; if ``ordered``, with the order of the grants on
        each resource, by which Derby looks for a cycle.
        """
        if not ordered:
            return frozenset(self.held.items())
        grants: dict[Resource, list[tuple[Lock, int]]] = {}
        for lock, count in self.held.items():
            grants.setdefault(lock.place, []).append((lock, count))
        return frozenset((place, tuple(locks)) for place, locks in grants.items())

    def weight(self, owner: str) -> int:
        """Return the number of locks a transaction holds, counted as often as they were granted."""
        return sum(count for lock, count in self.held.items() if lock.owner == owner)

    def cycle(self, start: str) -> tuple[str, ...]:
        """Return the transactions of a wait-for cycle through `start`; empty if there is none."""
        graph = {lock.owner: self.behind(lock) for lock in self.waiting}
        found = _path(graph, start, start, ())
        return () if found is None else found


def are_compatible(mode: str, other: str) -> bool:
    """Return whether two lock modes on one resource are compatible."""
    return (mode, other) in TOGETHER


Circle = tuple[tuple[str, tuple[str, ...]], ...]
"""Wait-for cycle: transactions, each with those that it waits for."""


def find_deadlock_victim(
    locks: LockTable, who: str, *, told: bool = False, tried: tuple[str, ...] = ()
) -> tuple[str, Circle] | None:
    """Return the deadlock victim when a transaction begins to wait for a heap or its rows.

    The algorithm is Derby's (``Deadlock.handle``, ``ConcurrentLockSet.lockObject``). Of the
    transactions in the cycle, the victim is the one with the fewest locks, the last of several. If
    it is not the requester, it is woken, searches for a cycle itself, and aborts if it is in the
    one that it finds. Otherwise no transaction aborts, and none searches again. A woken transaction
    does not abort either if it no longer has to wait.

    Parameters
    ----------
    locks : LockTable
        The locks.
    who : str
        Transaction that begins to wait.
    told : bool
        Whether `who` was woken as the victim of another's search.
    tried : tuple of str
        Transactions that were woken before.

    Returns
    -------
    (victim, cycle) or None
        None if no transaction aborts.
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
    """Return the wait-for cycle that Derby finds from a transaction that begins to wait.

    The search is depth-first (``Deadlock.look``), and takes the latest granted lock on a resource
    first. The result is empty if it finds no cycle.

    A waiting transaction waits for all holders of the resource, whether their locks conflict or
    not, and for the request just ahead of it there, if the two conflict. This also holds of a
    transaction that no longer has to wait, until it has noticed that.
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
    """Follow the wait of the owner of the last lock in `there`.

    Returns the cycle if the owner is in the chain already; otherwise extends the chain or
    backtracks, and returns an empty cycle.
    """
    owner = there[-1].owner
    while True:
        if owner in chain:
            k = chain.index(owner)
            next_to = k == len(chain) - 1 or (k == len(chain) - 2 and k == chain.index(there) - 1)
            # not a cycle: it holds a lock there and waits for the other holders of the resource
            if next_to and locks.stronger(waits[owner]):
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
    """Return the cycle of a chain.

    Each transaction waits for the next one, the last for the first, and for the members that hold
    the resource it wants.
    """
    names = [one for one in chain if isinstance(one, str)]
    behind = {name: {after} for name, after in zip(names, [*names[1:], names[0]], strict=True)}
    for name, there in itertools.pairwise(chain):
        if isinstance(name, str) and isinstance(there, list):
            behind[name] |= {lock.owner for lock in there if lock.owner in names}
    return tuple((name, tuple(sorted(behind[name] - {name}))) for name in names)


def _back(chain: list[str | list[Lock]]) -> None:
    """Backtrack to the last list of locks in the chain, and remove the lock just examined."""
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
    """Return the path from ``at`` to ``goal``, without its end, by depth-first search, or None."""
    for other in graph.get(at, ()):
        if other == goal:
            return (*seen, at)
        if other not in (*seen, at):
            found = _path(graph, other, goal, (*seen, at))
            if found is not None:
                return found
    return None
