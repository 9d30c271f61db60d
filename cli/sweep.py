"""``isolitmus sweep``: count every candidate of a scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.sweep import sweep as count_all
from isolitmus.cli.output import print_json, progress, say
from isolitmus.cli.separate import sizes
from isolitmus.specs import scope as read_scope

if TYPE_CHECKING:
    from isolitmus.checker.sweep import Sweep

__all__ = ["sweep"]


def sweep(scope: str, transactions: str | None, limit: int, *, as_json: bool) -> int:
    """Exit status 1 if some protocol admits what a level forbids, else 0."""
    inside = read_scope(scope)
    asked = inside.transactions if transactions is None else sizes(transactions)
    swept: list[Sweep] = []
    for n in asked:
        with progress(f"sweep {inside.name}") as tell:
            done = count_all(
                inside,
                n,
                limit=limit,
                progress=lambda k: tell(f"{n} transactions, {k:,} candidates"),  # noqa: B023
            )
        swept.append(done)
        if not as_json:
            _print(done)
    if as_json:
        documents = [done.to_json() for done in swept]
        print_json(documents[0] if len(documents) == 1 else documents)
    return int(any(any(c.forbidden.values()) for s in swept for c in s.protocols.values()))


def _print(done: Sweep) -> None:
    say(
        f"{done.scope}: {done.candidates:,} candidates with {done.transactions} transactions,"
        f" in {done.seconds:.1f} s"
    )
    for name, counts in done.protocols.items():
        say(f"  {name} admits {counts.admitted:,}, of which")
        width = max(map(len, counts.forbidden), default=0)
        for level, number in counts.forbidden.items():
            share = _share(number, counts.admitted)
            say(f"    {number:>9,} are forbidden by {level:<{width if share else 0}}{share}")
        say(
            f"    {counts.not_log_order:>9,} end with a table that the order of the log does not give"
        )
        say(
            f"    {counts.unexplained:>9,} have a version that no serial order of the writers gives"
        )


def _share(number: int, of: int) -> str:
    return f"  ({100 * number / of:.2f} %)" if number else ""
