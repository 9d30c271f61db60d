"""What a protocol's clauses say: what is seen, what is locked, how much of it and for how long."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.model.errors import ClauseError, near

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isolitmus.model.spec import Clause, Spec

__all__ = ["LockRule", "ProtocolRules", "read_rules", "rules_of"]

SIGHTS = ("current", "committed", "statement", "transaction", "first")
"""What a scan sees of a row: what it is now, be it committed or not; what was committed last; the
same at the start of the statement, of the transaction, of everything."""
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
    """A lock: its mode, of what, and until when it is held."""

    mode: str
    granule: str
    until: str


@dataclass(frozen=True, slots=True)
class ProtocolRules:
    """The clauses of a protocol.

    Without any, as a history is looked at under no protocol: everybody sees what is there, and only
    writers keep each other out.
    """

    see: str = "current"
    """What a query sees."""
    search: str | None = None
    """What UPDATE and DELETE see of the rows that they look for; None: what a query sees."""
    changed: str = "recheck"
    """What becomes of a row that was changed since what was seen of it: its condition is asked
    anew, or the transaction ends."""
    reads: LockRule | None = None
    """What a query locks; None: nothing."""
    searches: LockRule | None = None
    """What UPDATE and DELETE lock where they look for rows; None: nothing."""
    seeks: LockRule | None = None
    """The same where they look by an index; None: as where they do not."""
    heaps: LockRule | None = None
    """What a scan locks that goes by no index, exclusively where UPDATE or DELETE looks; None: as
    any.
    """
    writes: LockRule = LockRule("X", "row", "commit")
    """What is locked where something is written."""
    ranges: str | None = None
    """Whether the gaps between what is read are locked until the end, each with the key after it or
    before it.
    """
    escalate: int | None = None
    """From so many rows on a table is locked instead."""
    page: int = 1
    """So many entries of an index share a page."""
    victim: str = "requester"
    """Who ends if some wait for each other."""
    updates: str = "in-place"
    """Where a new version of a row stands: in its place, or behind all others."""
    siread: frozenset[str] = frozenset()
    """What is remembered of what was read, so that snapshots are serializable (``overlaps``): the
    tables that are scanned by no index, the rows that an index leads to, the indexes."""
    siread_page: int | None = None
    """From so many rows of a table on all that there are."""
    keep: str | None = None
    """How tables are kept: as ``heaps``, with indexes whose entries stay (``heaps``); None: only in
    order.
    """

    def of_scan(self, *, indexed: bool, writes: bool) -> LockRule | None:
        """What a scan locks: one that goes by an index or not, and looks for what is to be written
        or not.
        """
        if self.heaps is not None and not indexed:
            return replace(self.heaps, mode="X") if writes else self.heaps
        if not writes:
            return self.reads
        return self.seeks if indexed and self.seeks is not None else self.searches

    @property
    def threads(self) -> bool:
        """Whether sessions have threads, of which any may be faster."""
        return self.keep == "heaps" or self.updates == "append"

    @property
    def searched(self) -> str:
        """What UPDATE and DELETE see."""
        return self.search or self.see


def read_rules(clauses: Sequence[Clause]) -> ProtocolRules:
    """The rules that some clauses are; ClauseError, with the near miss, for what is none.

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
            "ranges are locked by whoever locks reads; say lock reads …", said["lock ranges"]
        )
    return found


def _check_store(found: ProtocolRules, said: dict[str, int]) -> None:
    """ClauseError for what is said of heaps where there are none, and of others where there are."""
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
    """The rules of a protocol; of none, or of a spec without clauses, those under which every
    commit goes through.
    """
    return ProtocolRules() if protocol is None else read_rules(protocol.clauses)


@dataclass(frozen=True, slots=True)
class _Words:
    """A clause, word by word."""

    clause: int
    words: tuple[str, ...]

    def one(self, k: int, known: Sequence[str]) -> str:
        """A word that is one of some."""
        word = self.at(k, f"one of {', '.join(known)}")
        if word not in known:
            raise ClauseError(f"no '{word}' here{near(word, known)}", self.clause, k)
        return word

    def at(self, k: int, wanted: str) -> str:
        if k >= len(self.words):
            raise ClauseError(
                f"'{' '.join(self.words)}' ends; expected {wanted}", self.clause, k - 1
            )
        return self.words[k]

    def number(self, k: int, least: int) -> int:
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
    what = words.one(1, SIREADS)
    if what != "page":
        words.end(2)
        return f"siread {what}", replace(found, siread=found.siread | {what})
    words.one(2, ("at",))
    words.end(4)
    return f"siread {what}", replace(found, siread_page=words.number(3, 2))


def _lock(found: ProtocolRules, words: _Words) -> tuple[str, ProtocolRules]:
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
