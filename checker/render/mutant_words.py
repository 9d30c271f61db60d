"""What became of a spec's mutants, in lines for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.litmus import HistoryTest
from isolitmus.model.number import many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.checker.search.mutation import JudgedMutant, Kill, MutantReport

__all__ = ["mutant_lines"]


def mutant_lines(report: MutantReport) -> Iterator[str]:
    """Each mutant: its statement, and what tells it from the spec or why nothing does; then how many there are."""
    for one in report.judged:
        yield f"{one.mutant.number:>3}. {one.mutant.change}"
        yield from (f"     {line}" for line in _why(one))
    told, argued = len(report.told), len(report.argued)
    argues = f"{argued} argued to be equivalent, " if argued else ""
    left = [str(one.mutant.number) for one in report.survivors]
    rest = f"{len(left)} not told apart: {', '.join(left)}" if left else "none left"
    yield (
        f"{many(len(report.judged), 'mutant')} of {report.spec.name} in {report.seconds:.1f} s:"
        f" {told} told apart, {argues}{rest}."
    )


def _why(one: JudgedMutant) -> Iterator[str]:
    if one.kills:
        first, *others = one.kills
        more = f" (and {many(len(others), 'other test')})" if others else ""
        yield f"told by {_named(first)}: {first.words}{more}"
        return
    if one.argument:
        yield f"equivalent: {one.argument}"
    word = "unknown" if one.ended is not None else "none tells it apart"
    yield f"{word}: {one.bound}"


def _named(kill: Kill) -> str:
    """A test of the catalogue by its name; a history that was found as it is, if it is short."""
    if not kill.found:
        return kill.name
    if isinstance(kill.test, HistoryTest):
        history = kill.test.history
        parts = [f"{one.name} {one}" for one in history.transactions]
        parts += [
            f"{one.name} {one.status}" for one in history.transactions if one.status != "committed"
        ]
        parts += [f"session {' '.join(f'T{n}' for n in s)}" for s in history.sessions if len(s) > 1]
        return "; ".join(parts)
    statements = "; ".join(f"{name}: {one.sql}" for name, one in kill.test.transactions.items())
    return f"{kill.test.schedule} ({statements})"
