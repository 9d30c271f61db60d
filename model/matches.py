"""Match bits: which versions match a predicate, as far as the reads of a history state it.

An object that some read of a predicate names is in its range, no other is. A version of which no
read states whether it matches counts as a change (see ``model.history``); an initial one that no
read lists was not born yet and matches nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.model.operations import INITIAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.operations import PredicateRead, Version

__all__ = ["Matches"]


@dataclass(frozen=True, slots=True)
class Matches:
    """The stated bits, and the objects in the range of each predicate in the order of their naming.

    >>> from isolitmus.model.history import History
    >>> from isolitmus.model.operations import Version
    >>> matches = Matches.of(History.parse("r1(P: x0*, y0 | x2) w2(x2) w3(x3)").matches())
    >>> matches.ranges, [matches.changes("P", Version("x", 0), Version("x", n)) for n in (2, 3)]
    ({'P': ('x', 'y')}, [True, True])
    """

    bits: Mapping[tuple[str, Version], bool]
    ranges: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, bits: Mapping[tuple[str, Version], bool]) -> Matches:
        """The bits that the reads of a history state (``History.matches``)."""
        ranges: dict[str, dict[str, None]] = {}
        for predicate, version in bits:
            ranges.setdefault(predicate, {})[version.object] = None
        return cls(bits, {predicate: tuple(objects) for predicate, objects in ranges.items()})

    def seen(self, read: PredicateRead) -> dict[str, int]:
        """The version set of a read: of every object in the range, who wrote the version seen."""
        stated = {match.version.object: match.version.writer for match in read.seen}
        return {name: stated.get(name, INITIAL) for name in self.ranges.get(read.predicate, ())}

    def changes(self, predicate: str, before: Version, after: Version) -> bool:
        """Whether one of two versions matches and the other does not, or nobody states it."""
        old, new = self._bit(predicate, before), self._bit(predicate, after)
        return old is None or new is None or old != new

    def _bit(self, predicate: str, version: Version) -> bool | None:
        stated = self.bits.get((predicate, version))
        return False if stated is None and version.writer == INITIAL else stated
