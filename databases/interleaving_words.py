"""All interleavings of a litmus test as text: numbers, and the outcomes with an example of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.display import count_of, first_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.databases.locking.interleavings import CountedEnd, Interleavings


def interleavings_text(done: Interleavings) -> str:
    """Return the first lines of `interleaving_lines` as one text."""
    return first_lines(interleaving_lines(done), 40)


def interleaving_lines(done: Interleavings) -> Iterator[str]:
    """Yield the numbers of interleavings and outcomes, then an example of each outcome."""
    yield (
        f"{done.litmus.name} under {done.protocol}: {count_of(done.number, 'interleaving')},"
        f" {count_of(done.states, 'state')}, {count_of(len(done.outcomes), 'outcome')}"
    )
    for outcome in done.outcomes:
        yield f"  {outcome.number:>9,}  {_like(outcome)}{_breaks(outcome)}: {outcome.schedule}"
    timeless = sum(outcome.number for outcome in done.outcomes if outcome.timeless)
    if timeless:
        plausible = sum(outcome.number for outcome in done.outcomes if outcome.plausible)
        yield (
            f"  {timeless:>9,}  a result that held at no time while they ran; for {plausible:,} of"
            " these it is the result of some serial order"
        )
    for order, broken in done.alone.items():
        if broken:
            yield f"The serial order {order.replace(' ', ' → ')} violates {', '.join(broken)}, too."


def _like(outcome: CountedEnd) -> str:
    """Return the serial orders whose final table a counted outcome equals, and its aborts."""
    ended = [told for told in outcome.end.told if told.outcome != "committed"]
    how = "".join(f", {told.name} {told.outcome}" for told in ended)
    if not outcome.serial:
        return f"equal to no serial order{how}"
    orders = (order.replace(" ", " → ") or "no transaction" for order in outcome.serial)
    return f"equal to {' or '.join(orders)}{how}"


def _breaks(outcome: CountedEnd) -> str:
    return f", violates {', '.join(outcome.breaks)}" if outcome.breaks else ""
