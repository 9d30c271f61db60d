"""Choices of a run: outcomes of comparisons with numbers of rows, and statements that abort.

A function that writes only ``if new.count() > 0`` writes nothing on empty tables. Runs of it are
repeated with the other outcome of each comparison, until all paths have been taken, or many.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MOST_PATHS = 16
"""Maximum number of runs of one function."""
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}
SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<>": operator.ne,
}
"""Operators of Python by their sign in SQL."""


class _Choice(NamedTuple):
    """Outcome of a comparison, and whether it is the second one that is taken."""

    outcome: bool
    last: bool = False


@dataclass(slots=True)
class PathChoices:
    """Outcomes of a run, in their order.

    Examples
    --------
    >>> choices = PathChoices()
    >>> def run():
    ...     rows = NumberOfRows(choices, 0, lambda condition: None)
    ...     return rows.compare(">", 0), rows.compare(">", 5), rows.value
    >>> run(), choices.advance(), run(), choices.advance(), run(), choices.advance()
    ((False, False, 0), True, (True, False, 1), True, (True, True, 6), False)
    """

    _script: list[_Choice] = field(default_factory=list)
    _taken: int = 0

    def take(self, outcome: bool) -> bool:
        """Return the outcome of the next comparison, which would be ``outcome`` by itself."""
        if self._taken == len(self._script):
            self._script.append(_Choice(outcome))
        self._taken += 1
        return self._script[self._taken - 1].outcome

    def advance(self) -> bool:
        """Turn to the outcomes of another run; return whether there is one.

        The last comparison that had one outcome only has the other one.
        """
        del self._script[self._taken :]
        self._taken = 0
        while self._script and self._script[-1].last:
            self._script.pop()
        if not self._script:
            return False
        self._script[-1] = _Choice(not self._script[-1].outcome, last=True)
        return True


class NumberOfRows:
    """Number of rows that a query returned, as far as a run has compared it.

    Parameters
    ----------
    choices : PathChoices
        Outcomes of the run.
    value : int
        Number on the tables of the run.
    tell : callable
        Receives what is known of the number after a comparison that has two outcomes: a sign and a
        bound.
    """

    def __init__(self, choices: PathChoices, value: int, tell: Callable[[str], None]) -> None:
        self.value = value
        """A number with the outcomes so far."""
        self._choices = choices
        self._tell = tell
        self._known: list[tuple[str, int, bool]] = []

    def compare(self, sign: str, bound: int) -> bool:
        """Return the outcome of a comparison, which the run takes if both are possible."""
        own = bool(SIGNS[sign](self.value, bound))
        if self._least(sign, bound, not own) is None:
            return own
        outcome = self._choices.take(own)
        found = self.value if outcome is own else self._least(sign, bound, outcome)
        if found is None:  # the function does not do the same in each run
            return own
        self._known.append((sign, bound, outcome))
        self.value = found
        self._tell(f"{sign if outcome else OPPOSITE[sign]} {bound}")
        return outcome

    def _least(self, sign: str, bound: int, outcome: bool) -> int | None:
        """Return the smallest number with the outcomes so far and this one, or None."""
        known = [*self._known, (sign, bound, outcome)]
        near = {0, *(max(0, each + k) for _, each, _ in known for k in (-1, 0, 1))}
        return next(
            (n for n in sorted(near) if all(SIGNS[s](n, b) is o for s, b, o in known)), None
        )
