"""A protocol's portrait in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.telling.draw import run_lines, timeline
from isolitmus.checker.telling.words import serial_words
from isolitmus.model.litmus import Litmus
from isolitmus.specs.catalogue import protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.checker.portrait import Abort, Portrait, Promise, Share
    from isolitmus.checker.separation import Separation

__all__ = ["portrait_lines"]

DONE = frozenset({"committed", "no-op"})


def portrait_lines(portrait: Portrait) -> Iterator[str]:
    """The portrait in lines for a person, histories with their schedules."""
    for promise in portrait.promises:
        yield from _promise(portrait.protocol, promise)
    for abort in portrait.aborts:
        if abort.raised:
            yield ""
            yield from _abort(abort)
    silent = [abort.exception for abort in portrait.aborts if not abort.raised]
    if silent:
        yield ""
        yield f"Nothing in universe '{portrait.universe}' raises {', '.join(silent)}."
    if portrait.shares:
        yield ""
        yield from map(_share, portrait.shares)


def _promise(name: str, promise: Promise) -> Iterator[str]:
    worst = promise.unexplained
    found = worst if worst is not None and worst.found else promise.hole
    if promise.hole.found is None:
        yield f"It promises {promise.level}; whether it keeps that is unknown: {found.bound}."
    elif not promise.hole.found:
        yield f"It promises {promise.level}, and keeps it {found.bound}."
    else:
        more = ", explained by no serial order" if found is worst else ""
        yield (
            f"It promises {promise.level}, and does not keep it: {found.transactions} transactions"
            f" that {name} admits and {promise.level} forbids{more} ({found.bound})."
        )
        yield from _history(found)
        if found.serial is not None:
            yield f"  {serial_words(found.serial.orders, found.serial.unexplained)}"
        aborting = {
            other: aborted
            for other, outcomes in promise.elsewhere.items()
            if (aborted := {t: o for t, o in outcomes.items() if o not in DONE})
        }
        for other, aborted in aborting.items():
            what = ", ".join(f"{t} ({outcome})" for t, outcome in aborted.items())
            yield f"  What to do: {other} aborts {what}."


def _abort(abort: Abort) -> Iterator[str]:
    found = abort.found
    if not found.found:
        verdict = "never" if found.found is False else "unknown whether"
        yield f"{abort.exception} for nothing, {verdict}: {found.bound}."
        return
    yield (
        f"{abort.exception} for nothing, for {abort.level} allows it: {found.transactions}"
        f" transactions ({found.bound})."
    )
    yield from _history(found)
    admitting = [name for name, outcomes in abort.elsewhere.items() if _all_end_well(outcomes)]
    if admitting:
        promised = (f"{name} ({', '.join(protocol(name).promises)})" for name in admitting)
        yield f"  What to do: nothing aborts under {' and '.join(promised)}."
    if abort.layouts:
        yield f"  What to do: nothing aborts with the table {' or '.join(abort.layouts)}."
    if not admitting and not abort.layouts:
        yield "  What to do: run the aborted statement again; no protocol or layout here admits it."


def _all_end_well(outcomes: Mapping[str, str]) -> bool:
    return DONE.issuperset(outcomes.values())


def _history(found: Separation) -> Iterator[str]:
    litmus = found.litmus
    assert isinstance(litmus, Litmus)
    lines = (*run_lines(litmus), "", *timeline(litmus.schedule).split("\n"))
    yield from (f"  {line}".rstrip() for line in lines)


def _share(share: Share) -> str:
    return (
        f"Of {share.scope} with {share.transactions} transactions {share.level} allows"
        f" {share.allowed:,} candidates, of which it aborts {share.aborted:,}"
        f"{_percent(share.aborted, share.allowed)}; of the {share.admitted:,} that it admits"
        f" {share.level} forbids {share.broken:,}{_percent(share.broken, share.admitted)}."
    )


def _percent(part: int, whole: int) -> str:
    return f" ({100 * part / whole:.2f} %)" if part else ""
