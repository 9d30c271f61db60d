"""Boolean circuits as clauses: what a symbolic search is made of before a solver sees it.

A literal is a non-zero integer, negative if negated, as in DIMACS. Gates fold constants and are made
once: the same conjunction asked for twice is the same literal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Gates"]


class Gates:
    """A growing set of clauses over numbered variables; literal 1 is true.

    >>> gates = Gates()
    >>> a, b = gates.new(), gates.new()
    >>> gates.conj([a, gates.true]) == a, gates.conj([a, -a]) == gates.false
    (True, True)
    >>> gates.conj([a, b]) == gates.conj([b, a])
    True
    """

    true = 1
    false = -1

    def __init__(self) -> None:
        self.variables = 1
        self.clauses: list[tuple[int, ...]] = [(1,)]
        self._made: dict[tuple[int, ...], int] = {}

    def new(self) -> int:
        """A fresh variable."""
        self.variables += 1
        return self.variables

    def add(self, *clause: int) -> None:
        """One of these literals holds."""
        if 1 not in clause:
            self.clauses.append(clause or (self.false,))

    def neg(self, a: int) -> int:
        return -a

    def both(self, a: int, b: int) -> int:
        """The conjunction of two literals."""
        if a in {b, 1}:
            return b
        if b == 1:
            return a
        if a == -1 or b == -1 or a == -b:
            return -1
        key = (a, b) if a < b else (b, a)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self.new()
            self.clauses += ((-made, a), (-made, b), (made, -a, -b))
        return made

    def conj(self, literals: Iterable[int]) -> int:
        """The conjunction of any number of literals."""
        parts = set(literals)
        parts.discard(1)
        if len(parts) < 2:
            return parts.pop() if parts else 1
        if -1 in parts or any(-part in parts for part in parts):
            return -1
        key = tuple(sorted(parts))
        if len(key) == 2:
            return self.both(*key)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self.new()
            self.clauses += ((-made, part) for part in key)
            self.clauses.append((made, *(-part for part in key)))
        return made

    def disj(self, literals: Iterable[int]) -> int:
        """The disjunction of any number of literals."""
        return -self.conj([-literal for literal in literals])

    def one_of(self, literals: list[int]) -> None:
        """Exactly one of these literals holds."""
        self.add(*literals)
        for k, a in enumerate(literals):
            for b in literals[k + 1 :]:
                self.add(-a, -b)

    def order(self, n: int) -> list[list[int]]:
        """A total order on n things that the solver may choose: ``order[i][j]``, i before j."""
        before = [[self.false] * n for _ in range(n)]
        for i in range(n):
            for j in range(i + 1, n):
                before[i][j] = self.new()
                before[j][i] = -before[i][j]
        for i in range(n):
            for j in range(n):
                for k in range(n):
                    if i < j and i < k and j != k:
                        self.add(-before[i][j], -before[j][k], before[i][k])
        return before

    def at_least(self, literals: list[int], most: int) -> list[int]:
        """``result[c]``: at least c + 1 of the literals hold, for c + 1 up to ``most``; a counter
        that follows from the literals (Sinz, Towards an optimal CNF encoding, CP 2005).

        >>> gates = Gates()
        >>> gates.at_least([gates.true, gates.false, gates.true], 3)
        [1, 1, -1]
        """
        count = [self.false] * most
        for literal in literals:
            count = [
                self.disj([count[c], self.both(literal, count[c - 1] if c else self.true)])
                for c in range(most)
            ]
        return count
