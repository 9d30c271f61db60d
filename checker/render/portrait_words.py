"""A protocol's portrait in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.render.text_pictures import run_lines, timeline
from isolitmus.checker.render.verdicts import serial_words
from isolitmus.model.litmus import Litmus
from isolitmus.model.number import many
from isolitmus.specs.files.catalogue import protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.checker.search.portrait import Abort, Portrait, Promise, Share
    from isolitmus.checker.search.separation_result import Separation

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
    for scope in portrait.uncounted:
        yield f"Not counted to the end: {scope}."


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
            f"It promises {promise.level}, and does not keep it:"
            f" {many(found.transactions or 0, 'transaction')} that {name} admits and {promise.level} forbids{more} ({found.bound})."
        )
        yield from _history(found)
        if found.serial is not None:
            yield f"  {serial_words(found.serial.orders, found.serial.unexplained)}"
        aborting = {
            other: aborted
            for other, outcomes in promise.elsewhere.items()
            if (aborted := {t: o for t, o in outcomes.items() if o not in DONE})
            and protocol(other).setting
        }
        for other, aborted in aborting.items():
            what = ", ".join(f"{t} ({outcome})" for t, outcome in aborted.items())
            yield f"  What to do: {_set(other)} aborts {what}."


def _abort(abort: Abort) -> Iterator[str]:
    found = abort.found
    if not found.found:
        verdict = "never" if found.found is False else "unknown whether"
        yield f"{abort.exception} for nothing, {verdict}: {found.bound}."
        return
    yield (
        f"{abort.exception} for nothing, for {abort.level} allows it:"
        f" {many(found.transactions or 0, 'transaction')} ({found.bound})."
    )
    yield from _history(found)
    admitting = [
        name
        for name, outcomes in abort.elsewhere.items()
        if _all_end_well(outcomes) and protocol(name).setting
    ]
    for name in admitting:
        promised = ", ".join(protocol(name).promises)
        yield f"  What to do: {_set(name)} aborts nothing; it promises {promised}."
    if abort.layouts:
        yield f"  What to do: nothing aborts with the table {' or '.join(abort.layouts)}."
    if not admitting and not abort.layouts:
        yield (
            "  What to do: run the aborted statement again; no level that the table can be set to, and"
            " no layout that was tried, admits it."
        )


def _set(name: str) -> str:
    """A protocol by what gives it to a table."""
    return f"{protocol(name).setting} ({name})"


def _all_end_well(outcomes: Mapping[str, str]) -> bool:
    return DONE.issuperset(outcomes.values())


def _history(found: Separation) -> Iterator[str]:
    litmus = found.litmus
    assert isinstance(litmus, Litmus)
    lines = (*run_lines(litmus), "", *timeline(litmus.schedule).split("\n"))
    yield from (f"  {line}".rstrip() for line in lines)


def _share(share: Share) -> str:
    silent = f"; on {many(share.silent, 'candidate')} it is silent" if share.silent else ""
    return (
        f"Of {share.scope} with {many(share.transactions, 'transaction')} {share.level} allows"
        f" {many(share.allowed, 'candidate')}, of which it aborts {share.aborted:,}"
        f"{_percent(share.aborted, share.allowed)}; of the {share.admitted:,} that it admits"
        f" {share.level} forbids {share.broken:,}{_percent(share.broken, share.admitted)}{silent}."
    )


def _percent(part: int, whole: int) -> str:
    return f" ({100 * part / whole:.2f} %)" if part else ""
