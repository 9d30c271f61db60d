"""Locking rules of a protocol, read from its clauses.

The rules state visibility, and the mode, granularity and duration of locks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.model.errors import ClauseError, near

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isolitmus.model.spec import Clause, Spec

SIGHTS = ("current", "committed", "statement", "transaction", "first")
"""Visibility rules of a scan.

"current": the newest version, committed or not. "committed": the version that was committed last.
"statement", "transaction", "first": the committed version at the start of the statement, of the
transaction, of the whole run.
"""
CHANGED = ("recheck", "refuse")
SUBJECTS = ("reads", "searches", "seeks", "heaps", "writes", "ranges")
MODES = ("S", "U", "X")
GRANULES = ("row", "page", "table")
RANGES = ("next-key", "previous-key")
SIREADS = ("tables", "rows", "indexes", "page")
UPDATES = ("in-place", "append")
RELEASES = ("read", "next-asked", "next-got", "statement", "commit")
VICTIMS = ("requester", "earliest", "fewest-locks")
KEEPS = ("heaps",)
LARGEST = 1_000


@dataclass(frozen=True, slots=True)
class LockRule:
    """Lock to take: its mode, its granularity, and the time of its release."""

    mode: str
    granule: str
    until: str


@dataclass(frozen=True, slots=True)
class ProtocolRules:
    """Clauses of a protocol.

    Without clauses, as for a history that is judged under no protocol, every transaction sees the
    current versions, and only writers exclude each other.
    """

    see: str = "current"
    """Visibility rule of queries."""
    search: str | None = None
    """Visibility rule of UPDATE and DELETE when they search for rows; None if that of queries."""
    changed: str = "recheck"
    """Treatment of a row changed since the visible version: "recheck" its condition, or "refuse".

    With "refuse" the transaction aborts.
    """
    reads: LockRule | None = None
    """Lock of queries; None if they take none."""
    searches: LockRule | None = None
    """Lock of UPDATE and DELETE when they search for rows; None if they take none."""
    seeks: LockRule | None = None
    """Lock of UPDATE and DELETE when they search by an index; None if as in `searches`."""
    heaps: LockRule | None = None
    """Lock of a scan that uses no index, X for UPDATE and DELETE; None if as for any scan."""
    writes: LockRule = LockRule("X", "row", "commit")
    """Lock of written rows."""
    ranges: str | None = None
    """Lock of the gaps between read entries until commit: with the next or the previous key.

    None if gaps are not locked.
    """
    escalate: int | None = None
    """Number of row locks on a table from which the table is locked instead."""
    page: int = 1
    """Number of index entries per page."""
    victim: str = "requester"
    """Rule that selects the victim of a deadlock."""
    updates: str = "in-place"
    """Location of new row versions: "in-place", or "append" (after all others)."""
    siread: frozenset[str] = frozenset()
    """SIREAD marks of serializable snapshots.

    "tables": tables scanned without an index. "rows": rows found by an index. "indexes": the
    indexes.
    """
    siread_page: int | None = None
    """Number of marked rows of a table from which all its existing rows are marked."""
    keep: str | None = None
    """Storage of tables: "heaps", with indexes that keep their entries; None for ordered tables."""

    def of_scan(self, *, indexed: bool, writes: bool) -> LockRule | None:
        """Return the lock of a scan.

        Parameters
        ----------
        indexed : bool
            Whether it uses an index.
        writes : bool
            Whether it searches for rows to write.
        """
        if self.heaps is not None and not indexed:
            return replace(self.heaps, mode="X") if writes else self.heaps
        if not writes:
            return self.reads
        return self.seeks if indexed and self.seeks is not None else self.searches

    @property
    def threads(self) -> bool:
        """True if sessions run in threads, of which any may be faster."""
        return self.keep == "heaps" or self.updates == "append"

    @property
    def searched(self) -> str:
        """Visibility rule of UPDATE and DELETE."""
        return self.search or self.see


def read_rules(clauses: Sequence[Clause]) -> ProtocolRules:
    """Return the rules that the clauses state.

    Raises
    ------
    ClauseError
        For an invalid clause, with a suggestion for a misspelt word.

    Examples
    --------
    >>> from isolitmus.model.spec import Clause
    >>> read_rules([Clause(("lock", "reads", "S", "row", "until", "next-asked"))]).reads
    LockRule(mode='S', granule='row', until='next-asked')
    >>> read_rules([Clause(("see", "comitted"))])
    Traceback (most recent call last):
    isolitmus.model.errors.ClauseError: no 'comitted' here; did you mean 'committed'?
    """
    said: dict[str, int] = {}
    found = ProtocolRules()
    for number, clause in enumerate(clauses):
        key, found = _read(found, _Words(number, clause.words))
        if key in said:
            raise ClauseError(f"'{key}' is said twice", number)
        said[key] = number
    _check_store(found, said)
    number = len(clauses) - 1
    if found.siread and (found.see != "transaction" or found.search not in (None, "transaction")):
        raise ClauseError(
            "siread is about snapshots of transactions; say see transaction",
            next(k for key, k in said.items() if key.startswith("siread")),
        )
    granules = {held.granule for held in (found.reads, found.searches, found.writes) if held}
    if "page" in granules and granules & {"row"}:
        raise ClauseError(
            "locks of pages and locks of rows do not meet; expected one granule", number
        )
    if found.ranges is not None and found.reads is None:
        raise ClauseError(
            "a protocol that locks ranges also locks reads; add a line lock reads …",
            said["lock ranges"],
        )
    return found


def _check_store(found: ProtocolRules, said: dict[str, int]) -> None:
    """Raise ClauseError for rules of heaps without heaps, or of ordered tables with heaps."""
    heap = found.keep == "heaps"
    if found.victim == "fewest-locks" and not heap:
        raise ClauseError("locks are counted as those of heaps are; say keep heaps", said["victim"])
    if found.ranges is not None and (found.ranges == "previous-key") != heap:
        raise ClauseError(
            "the key before is locked in indexes over heaps, the gap before the next one elsewhere",
            said["lock ranges"],
        )
    if heap and {found.see, found.searched} != {"current"}:
        raise ClauseError("in a heap there is nothing to see but what is current", said["keep"])


def rules_of(protocol: Spec | None) -> ProtocolRules:
    """Return the rules of a protocol.

    With no protocol, or with one without clauses, every commit succeeds.
    """
    return ProtocolRules() if protocol is None else read_rules(protocol.clauses)


@dataclass(frozen=True, slots=True)
class _Words:
    """Words of a clause, with the clause's number."""

    clause: int
    words: tuple[str, ...]

    def one(self, k: int, known: Sequence[str]) -> str:
        """Return the word at index `k`, which must be one of `known`."""
        word = self.at(k, f"one of {', '.join(known)}")
        if word not in known:
            raise ClauseError(f"no '{word}' here{near(word, known)}", self.clause, k)
        return word

    def at(self, k: int, wanted: str) -> str:
        """Return word k of the clause; raise ClauseError if the clause is shorter."""
        if k >= len(self.words):
            raise ClauseError(
                f"'{' '.join(self.words)}' ends; expected {wanted}", self.clause, k - 1
            )
        return self.words[k]

    def number(self, k: int, least: int) -> int:
        """Return word k as an integer from ``least`` to LARGEST; else raise ClauseError."""
        word = self.at(k, "a whole number")
        if not word.isdecimal() or not least <= int(word) <= LARGEST:
            raise ClauseError(
                f"'{word}' is not a whole number from {least} to {LARGEST:,}", self.clause, k
            )
        return int(word)

    def end(self, k: int) -> None:
        if len(self.words) > k:
            raise ClauseError(f"'{self.words[k]}' is too much here", self.clause, k)


def _read(found: ProtocolRules, words: _Words) -> tuple[str, ProtocolRules]:
    """Return the subject of a clause, and the rules with the clause added."""
    first = words.words[0]
    if first == "lock":
        return _lock(found, words)
    readers: dict[str, Callable[[], ProtocolRules]] = {
        "see": lambda: replace(found, see=words.one(1, SIGHTS)),
        "search": lambda: replace(found, search=words.one(1, SIGHTS)),
        "changed": lambda: replace(found, changed=words.one(1, CHANGED)),
        "victim": lambda: replace(found, victim=words.one(1, VICTIMS)),
        "updates": lambda: replace(found, updates=words.one(1, UPDATES)),
        "keep": lambda: replace(found, keep=words.one(1, KEEPS)),
    }
    if first in readers:
        words.end(2)
        return first, readers[first]()
    if first == "siread":
        return _siread(found, words)
    if first == "pages":
        words.one(1, ("of",))
        words.end(3)
        return first, replace(found, page=words.number(2, 1))
    words.one(1, ("to",))
    words.one(2, ("table",))
    words.one(3, ("at",))
    words.end(5)
    return first, replace(found, escalate=words.number(4, 1))


def _siread(found: ProtocolRules, words: _Words) -> tuple[str, ProtocolRules]:
    """Return the subject of a ``siread`` clause, and the rules with the clause added."""
    what = words.one(1, SIREADS)
    if what != "page":
        words.end(2)
        return f"siread {what}", replace(found, siread=found.siread | {what})
    words.one(2, ("at",))
    words.end(4)
    return f"siread {what}", replace(found, siread_page=words.number(3, 2))


def _lock(found: ProtocolRules, words: _Words) -> tuple[str, ProtocolRules]:
    """Return the subject of a ``lock`` clause, and the rules with the clause added."""
    subject = words.one(1, SUBJECTS)
    mode = words.one(2, MODES)
    what = words.one(3, RANGES if subject == "ranges" else GRANULES)
    words.one(4, ("until",))
    until = words.one(5, RELEASES)
    words.end(6)
    said = f"lock {subject}"
    if subject in ("writes", "ranges") and until != "commit":
        raise ClauseError(
            f"locks of {subject} are held until commit, else nothing could be rolled back"
            if subject == "writes"
            else "locks of ranges are held until commit",
            words.clause,
            5,
        )
    if subject == "writes" and mode != "X":
        raise ClauseError(
            "writes are locked X: two that write one row at a time overwrite each other",
            words.clause,
            2,
        )
    if subject == "ranges":
        return said, replace(found, ranges=what)
    held = LockRule(mode, what, until)
    if subject == "reads":
        return said, replace(found, reads=held)
    if subject == "searches":
        return said, replace(found, searches=held)
    if subject == "seeks":
        return said, replace(found, seeks=held)
    if subject == "heaps":
        return said, replace(found, heaps=held)
    return said, replace(found, writes=held)
