"""What comes out of all interleavings of a litmus test, in lines for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.number import many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.checker.locking.interleavings import CountedEnd, Interleavings

__all__ = ["interleaving_lines"]


def interleaving_lines(done: Interleavings) -> Iterator[str]:
    """How many there are, what no serial order gives, which postconditions break, and an example of each."""
    yield (
        f"{done.litmus.name} under {done.protocol}: {many(done.number, 'interleaving')},"
        f" {many(done.states, 'state')}, {many(len(done.outcomes), 'outcome')}"
    )
    for outcome in done.outcomes:
        yield f"  {outcome.number:>9,} {_like(outcome)}{_breaks(outcome)}: {outcome.schedule}"
    timeless = sum(outcome.number for outcome in done.outcomes if outcome.timeless)
    if timeless:
        plausible = sum(outcome.number for outcome in done.outcomes if outcome.plausible)
        yield f"  {timeless:>9,} read what was so at no time while they ran; of these {plausible:,} what some serial order has"
    for order, broken in done.alone.items():
        if broken:
            yield f"  the serial order {order} breaks {', '.join(broken)}, too"


def _like(outcome: CountedEnd) -> str:
    ended = [told for told in outcome.end.told if told.outcome != "committed"]
    how = "".join(f", {told.name} {told.outcome}" for told in ended)
    if not outcome.serial:
        return f"like no serial order{how}"
    return f"like {' or '.join(order or 'none of them' for order in outcome.serial)}{how}"


def _breaks(outcome: CountedEnd) -> str:
    return f", breaking {', '.join(outcome.breaks)}" if outcome.breaks else ""
