"""All orders in which several go on, step by step: what comes of them, counted exactly.

Orders that lead to one state go on alike and are followed once. Nothing is copied: a state is reached by going there
again from the start, but for the last way on, which goes on from where it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

__all__ = ["Orders", "Walk", "Ways", "first_of"]

Turn = TypeVar("Turn")
"""Whose step it is."""


class Walk(Protocol[Turn]):
    """Several that are under way."""

    def able(self) -> Sequence[Turn]:
        """Those that can go on, in the order in which they are tried."""

    def go(self, turn: Turn, /) -> None:
        """One of them takes its next step."""

    def state(self) -> Hashable:
        """All that what comes of it depends on from here on."""


AnyWalk = TypeVar("AnyWalk", bound=Walk)  # type: ignore[type-arg]
End = TypeVar("End")


class Ways(NamedTuple, Generic[Turn]):
    """Orders that come to one end: how many there are, and one of them."""

    number: int
    path: tuple[Turn, ...]


def first_of(_one: tuple[Turn, ...], _other: tuple[Turn, ...]) -> bool:
    """Of two ways to one end the one is kept that was gone first."""
    return False


class Orders(Generic[AnyWalk, Turn, End]):
    """All orders of the steps of a walk; ``better``: which of two ways to one end is kept (by default the first);
    ``check`` is called at each state, and may end it.

    >>> class Queue:
    ...     def __init__(self): self.said = ""
    ...     def able(self): return [one for one in "ab" if self.said.count(one) < "aab".count(one)]
    ...     def go(self, one): self.said += one
    ...     def state(self): return "".join(sorted(self.said)), self.said[-1:]
    >>> Orders(Queue, lambda walk: walk.said[-1]).ends()
    {'b': Ways(number=1, path=('a', 'a', 'b')), 'a': Ways(number=2, path=('a', 'b', 'a'))}
    """

    def __init__(
        self,
        start: Callable[[], AnyWalk],
        end: Callable[[AnyWalk], End],
        *,
        better: Callable[[tuple[Turn, ...], tuple[Turn, ...]], bool] = first_of,
        check: Callable[[int], None] = lambda _states: None,
    ) -> None:
        self.start, self.end, self.better, self.check = start, end, better, check
        self.known: dict[Hashable, dict[End, Ways[Turn]]] = {}

    def ends(self) -> dict[End, Ways[Turn]]:
        """What comes of them, in the order in which it was found."""
        return self._from((), self.start())

    def walk(self, path: Sequence[Turn]) -> AnyWalk:
        """A walk after some steps."""
        walk = self.start()
        for turn in path:
            walk.go(turn)
        return walk

    def _from(self, path: tuple[Turn, ...], walk: AnyWalk) -> dict[End, Ways[Turn]]:
        state = walk.state()
        if state in self.known:
            return self.known[state]
        self.check(len(self.known))
        able: Sequence[Turn] = walk.able()
        found: dict[End, Ways[Turn]] = {}
        if not able:
            found[self.end(walk)] = Ways(1, ())
        for k, turn in enumerate(able, 1):
            on = walk if k == len(able) else self.walk(path)
            on.go(turn)
            for end, rest in self._from((*path, turn), on).items():
                longer = (turn, *rest.path)
                there = found.get(end)
                if there is None:
                    found[end] = Ways(rest.number, longer)
                else:
                    kept = longer if self.better(longer, there.path) else there.path
                    found[end] = Ways(there.number + rest.number, kept)
        self.known[state] = found
        return found
