"""All orders of the steps of some transactions under some protocols, and what each comes to, counted exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from isolitmus.checker.universes.orders import Orders
from isolitmus.checker.universes.schedules import Scheduled
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from isolitmus.checker.universes.orders import Ways
    from isolitmus.checker.universes.schedules import Cast
    from isolitmus.model.execution import Execution
    from isolitmus.model.format import Stepwise
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.schedule import Step
    from isolitmus.model.spec import Spec

__all__ = ["judged_orders"]

Judgement = TypeVar("Judgement")


def judged_orders(
    cast: Cast,
    protocols: Sequence[Spec | None],
    judge: Callable[[Litmus, Sequence[Execution]], Judgement],
    check: Callable[[], None],
) -> dict[Judgement | None, Ways[int]]:
    """What all orders come to: what ``judge`` says of their executions, one under each protocol (None: nobody locks what
    is read), with how many orders there are of it, and the first of them. Of None are those in which a reader would
    stop once more after its end, under one of these and if nobody locks as well: without that stop it is another order.
    """
    litmus = Scheduled(cast, tuple(k for k, n in enumerate(cast.stops) for _ in range(n))).litmus()
    form = format_named(litmus.format)
    assert form.stepwise is not None
    begins = [form.stepwise(litmus, protocol) for protocol in (*protocols, None)]

    def end(walk: _CastWalk) -> Judgement | None:
        return None if walk.beyond else judge(litmus, [one.done() for one in walk.under])

    orders: Orders[_CastWalk, int, Judgement | None] = Orders(
        lambda: _CastWalk(cast, [begin() for begin in begins]), end, check=lambda _states: check()
    )
    return orders.ends()


class _CastWalk:
    """Transactions under way under some protocols, and under none (``orders.Walk``)."""

    def __init__(self, cast: Cast, walks: Sequence[Stepwise]) -> None:
        self.cast, self.walks = cast, walks
        self.taken = [0] * len(cast.stops)
        self.turn, self.first = 0, 1
        """Whose turn it is, and the first of his steps that are not carried out before it is another's."""

    @property
    def under(self) -> Sequence[Stepwise]:
        """Those under the protocols."""
        return self.walks[:-1]

    @property
    def beyond(self) -> bool:
        """Whether a reader has stopped after its end."""
        return bool(self.walks[-1].beyond) and any(walk.beyond for walk in self.under)

    def able(self) -> list[int]:
        """Those who have steps left."""
        return [k for k, stops in enumerate(self.cast.stops) if self.taken[k] < stops]

    def go(self, k: int) -> None:
        """The next step of one of them."""
        if k != self.turn:
            self._carry_out()
            self.turn, self.first = k, self.taken[k] + 1
        self.taken[k] += 1
        if not self.able():
            self._carry_out()

    def coming(self) -> list[Step]:
        """The steps that are not carried out before it is another's turn."""
        last = self.taken[self.turn]
        return list(self.cast.steps(self.turn, self.first, last)) if last >= self.first else []

    def _carry_out(self) -> None:
        for step in () if self.beyond else self.coming():  # beyond, it is no candidate any more
            for walk in self.walks:
                walk.take(step)

    def state(self) -> Hashable:
        """All that what comes of it depends on from here on."""
        if self.beyond:
            return tuple(self.taken)
        *under, free = self.walks
        return (
            tuple(self.taken),
            tuple(self.coming()),
            *((bool(walk.beyond), walk.state(judged=True)) for walk in under),
            (bool(free.beyond), free.state(judged=False)),
        )
