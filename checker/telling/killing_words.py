"""The mutants of a spec in lines for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.number import many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.checker.killing import Killed, Killing

__all__ = ["killing_lines"]


def killing_lines(done: Killing) -> Iterator[str]:
    """Each mutant with what tells it apart, or why nothing does; then the fewest tests for all."""
    killed = sum(bool(one.by) for one in done.killed)
    argued = sum(bool(one.argued) for one in done.killed)
    yield (
        f"{done.name}: {many(len(done.killed), 'mutant')}, {killed} killed, {argued} argued to be equivalent,"
        f" {many(len(done.survivors), 'survivor')}, in {done.seconds:.1f} s"
    )
    if done.ended is not None:
        yield f"  Unknown of the rest: {done.ended}"
    width = max((len(_short(one)) for one in done.killed), default=0)
    for one in done.killed:
        yield f"  {_short(one):<{width}}  {one.mutant.line}"
    for one in done.killed:
        if one.argued:
            yield f"  equivalent: {one.mutant.line}"
            yield f"    {one.argued}"
        elif one.survives:
            yield f"  survives: {one.mutant.line} ({one.mutant.what})"
            yield f"    {one.bound}"
    if done.suite:
        yield f"{many(len(done.suite), 'test')} kill all that are killed: {', '.join(done.suite)}"


def _short(one: Killed) -> str:
    if one.by:
        more = f" and {len(one.by) - 1} more" if len(one.by) > 1 else ""
        return f"{one.by[0]}{more}"
    return "equivalent" if one.argued else "survives"
